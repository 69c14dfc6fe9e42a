"""Plugins: a distribution with rules and facts, built and installed as users do it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import ROOT

from d9mlint import api

Run = Callable[..., Any]
Project = Callable[[dict[str, str]], Path]

CODE = """\
import acme
import torch
import shared

acme.fix(1)
print(torch.rand(3))
acme.Engine()
acme.Engine(fast=False)
one = acme.Sampler(1)
two = acme.Sampler(seed=2)
three = acme.Sampler(seed=1)
"""
FILES = {
    "train.py": CODE,
    # What a module does at its import counts in each of the programs that import it.
    "other.py": "import shared\nimport acme\nacme.Sampler(7)\n",
    "shared.py": "import acme\nsampler = acme.Sampler(7)\n",
    "d9mlint.toml": 'plugins = ["acme"]\n',
}
EXPECTED = [("ACM102", "other.py", 3), ("ACM101", "train.py", 7), ("ACM102", "train.py", 11)]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the example plugin, as pip installs it."""
    source = tmp_path_factory.mktemp("source") / "plugin"
    shutil.copytree(ROOT / "tests" / "example_plugin", source)
    target = tmp_path_factory.mktemp("installed")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
    ]
    done = subprocess.run(
        [*pip, "--no-build-isolation", "--target", str(target), str(source)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert list(target.glob("acme_rules-1.0.dist-info/entry_points.txt"))
    return target


def found(done: Any) -> list[tuple[str, str, int]]:
    assert done.code in (0, 1), done.err
    items = json.loads(done.out)
    return [(one["code"], os.path.basename(one["filename"]), one["location"]["row"]) for one in items]


def test_an_installed_plugin(run: Run, project: Project, installed: Path) -> None:
    root = project(FILES)
    env = {"PYTHONPATH": str(installed)}
    options = ("--output-format=json", "--ignore=DET101")
    plain = ("--output-format=json",)
    assert found(run(*plain, cwd=root, env=env)) == EXPECTED
    assert found(run(*plain, cwd=root, env=env)) == EXPECTED, "from the cache"
    for jobs in ("--executor=serial", "--jobs=2"):
        assert found(run(*plain, "--no-cache", jobs, cwd=root, env=env)) == EXPECTED
    assert found(run(*plain, "--select=ACM101", cwd=root, env=env)) == EXPECTED[1:2]
    assert "Reports acme's fast mode." in run("rule", "acme-fast-mode", cwd=root, env=env).out
    assert "seeds: torch" in run("knows", "acme.fix", cwd=root, env=env).out
    # Without it in the configuration it is not there.
    (root / "d9mlint.toml").write_text("")
    assert found(run(*options, cwd=root, env=env)) == []
    assert ("DET101", "train.py", 6) in found(run(*plain, cwd=root, env=env))
    # The user's own facts go before those of plugins.
    (root / "d9mlint.toml").write_text('plugins = ["acme"]\nknowledge = ["own.yaml"]\n')
    (root / "own.yaml").write_text("rng:\n  - {apis: [acme.fix], kind: stateless}\n")
    assert ("DET101", "train.py", 6) in found(run(*plain, cwd=root, env=env))


def test_a_plugin_that_is_not_installed(run: Run, project: Project, installed: Path) -> None:
    root = project({**FILES, "d9mlint.toml": '\nplugins = ["acne"]\n'})
    done = run(cwd=root)
    assert done.code == 2 and done.err.endswith("d9mlint.toml:2: plugin acne is not installed.\n")
    done = run(cwd=root, env={"PYTHONPATH": str(installed)})
    assert done.code == 2 and "plugin acne is not installed. Did you mean acme?" in done.err


def test_what_is_linted_is_no_plugin(run: Run, project: Project, installed: Path) -> None:
    root = project({**FILES, ".git/HEAD": ""})
    for path in installed.iterdir():
        shutil.copytree(path, root / path.name)
    (root / "acme_rules" / "__init__.py").write_text("raise SystemExit(70)\n")
    done = run(cwd=root, env={"PYTHONPATH": str(root)})
    assert done.code == 2 and done.err.count("\n") == 1
    assert "plugin acme is part of the linted project" in done.err


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("__init__.py", "RULES = [", "RULES = 1 or [", "acme_rules:RULES is not a list of rules."),
        ("__init__.py", "[Reseeded", "[str, Reseeded", "which is not a subclass of d9mlint.api.Rule."),
        ("__init__.py", '("ACM102",)', '("DET301",)', "must be codes of the plugin's own pages."),
        ("__init__.py", '("ACM102",)', '("ACM109",)', "reports ACM109, which has no page."),
        ("__init__.py", "import api", "import apy", "acme_rules:RULES cannot be imported: ImportError:"),
        ("facts.yaml", "seeds:", "seads:", "facts.yaml:4: unknown key `seads`, did you mean `seeds`?"),
    ],
)
def test_a_broken_plugin_is_one_clear_line(
    run: Run,
    project: Project,
    installed: Path,
    tmp_path_factory: pytest.TempPathFactory,
    file: str,
    old: str,
    new: str,
    message: str,
) -> None:
    broken = tmp_path_factory.mktemp("other") / "broken"
    # Code compiled in the same second from a text of the same length would count as compiled from the new one.
    shutil.copytree(installed, broken, ignore=shutil.ignore_patterns("__pycache__"))
    path = broken / "acme_rules" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    done = run(cwd=project(FILES), env={"PYTHONPATH": str(broken)})
    assert done.code == 2 and done.err.count("\n") == 1, done.err
    assert message in done.err


def test_the_api_is_all_that_is_promised() -> None:
    """`d9mlint.api` documents each of its names, has no others, and is enough for a plugin."""
    public = [name for name in vars(api) if not name.startswith("_")]
    assert set(api.__all__) <= set(public) and sorted(api.__all__, key=str.lower) == sorted(
        set(api.__all__), key=str.lower
    )
    extra = set(public) - set(api.__all__) - {"annotations", "TYPE_CHECKING", "Any"}
    assert not extra
    for name in api.__all__:
        one = getattr(api, name)
        assert name == "UNKNOWN" or (one.__doc__ or "").strip(), name
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "`d9mlint.api`" in text and "`plugins = [" in text
    # The plugin uses nothing else.
    plugin = (ROOT / "tests/example_plugin/acme_rules/__init__.py").read_text(encoding="utf-8")
    assert "from d9mlint import api" in plugin and plugin.count("d9mlint") == 1


def test_linting_from_python(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "train.py").write_text(
        "import torch\ntorch.backends.cudnn.benchmark = True\nprint(torch.rand(3))\n"
    )
    settings = api.load_settings(str(tmp_path), overrides={"select": ["DET3"], "cache": False, "jobs": 1})
    result = api.check([str(tmp_path)], settings)
    assert [item.finding.code for item in result.items] == ["DET301"]
