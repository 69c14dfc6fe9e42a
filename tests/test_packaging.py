"""What reaches a user: the wheel, the source archive, the hooks, the first lines of the README."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from support import ROOT, RULES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def call(*command: str | Path, cwd: Path, env: dict[str, str] | None = None, code: int = 0) -> str:
    done = subprocess.run(
        [str(c) for c in command], cwd=cwd, capture_output=True, text=True, env={**os.environ, **(env or {})}
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    call(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    return out


def test_wheel_and_source_archive_carry_the_rules(built: Path) -> None:
    pages = {p.name for p in RULES.glob("DET*.md")}
    facts = {p.relative_to(RULES).as_posix() for p in RULES.rglob("*.yaml")}
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
    assert pages <= {n.removeprefix("d9mlint/_rules/") for n in names}
    assert facts <= {n.removeprefix("d9mlint/_rules/") for n in names}
    assert "d9mlint/py.typed" in names and not [n for n in names if n.startswith("tests/")]
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        members = {m.partition("/")[2] for m in archive.getnames()}
    assert {f"rules/{p}" for p in pages} <= members
    assert {"README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "d9mlint/__init__.py"} <= members


def test_metadata_names_the_license_the_addresses_and_the_extras(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        metadata = Parser().parsestr(
            wheel.read(next(n for n in wheel.namelist() if n.endswith("METADATA"))).decode()
        )
        assert any(n.endswith("licenses/LICENSE") for n in wheel.namelist())
    assert metadata["License-Expression"] == "MIT"
    assert len(metadata.get_all("Project-URL", [])) >= 3
    extras = set(metadata.get_all("Provides-Extra", []))
    assert {"lsp", "torch", "tensorflow", "dask", "ray", "watch", "test", "test-full", "all"} <= extras


@pytest.mark.full
def test_the_source_archive_installs(built: Path, tmp_path: Path) -> None:
    archive = next(built.glob("*.tar.gz"))
    target = tmp_path / "site"
    call(
        sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", target,
        archive, cwd=tmp_path,
    )  # fmt: skip
    shown = call(
        sys.executable, "-m", "d9mlint", "rule", "DET301", cwd=tmp_path, env={"PYTHONPATH": str(target)}
    )
    assert shown.startswith("# DET301 cudnn-benchmark")


def test_all_code_has_the_syntax_of_the_oldest_python() -> None:
    for path in (ROOT / "d9mlint").rglob("*.py"):
        ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 10))


@pytest.mark.full
def test_the_wheel_in_an_empty_environment_shows_a_rule_page_and_lints(built: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    call(python, "-m", "pip", "install", "--quiet", next(built.glob("*.whl")), cwd=tmp_path)
    installed = call(python, "-m", "pip", "list", "--format=freeze", cwd=tmp_path).lower()
    assert "torch" not in installed and "tensorflow" not in installed
    program = tmp_path / "venv" / "bin" / "d9mlint"
    clean = {"PYTHONPATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    page = call(program, "rule", "DET301", cwd=tmp_path, env=clean)
    assert page.startswith("# DET301 cudnn-benchmark") and "## Example" in page
    (tmp_path / "train.py").write_text("import torch\ntorch.backends.cudnn.benchmark = True\n")
    out = call(program, "--output-format=concise", "train.py", cwd=tmp_path, env=clean, code=1)
    assert out.startswith("train.py:2:1: error: DET301")
    assert call(program, "recipe", "index_add", cwd=tmp_path, env=clean).startswith("index_add: torch.Tensor")
    seen = "import d9mlint.knowledge.loader as l; print(len(list((l.rules_directory() / 'evidence').glob('*.json'))))"
    assert int(call(python, "-c", seen, cwd=tmp_path, env=clean)) > 0
    refused = subprocess.run(
        [program, "--verify", "--op", "index_add", "--quiet"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, **clean},
    )
    assert refused.returncode == 2 and not refused.stdout, refused
    assert "torch cannot be imported" in refused.stderr and "pip install torch" in refused.stderr


def test_dependencies_are_few_and_light() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = text.split("\ndependencies = [")[1].split("]")[0]
    assert set(re.findall(r'"([A-Za-z]+)', listed)) == {
        "click",
        "Jinja",
        "libcst",
        "msgspec",
        "packaging",
        "PyYAML",
        "tomli",
    }


def test_no_two_extras_contradict_each_other() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    wanted: dict[str, SpecifierSet] = {}
    for text in (one for listed in extras.values() for one in listed):
        requirement = Requirement(text)
        if requirement.name == "d9mlint":
            assert requirement.extras <= set(extras)
            continue
        wanted[requirement.name] = wanted.get(requirement.name, SpecifierSet()) & requirement.specifier
    for name, specifiers in wanted.items():
        # The least version that each clause allows.
        versions = [one.version for one in specifiers] or ["1"]
        assert any(specifiers.contains(version) for version in versions), (name, specifiers)
    # Both bring the files of the package `tensorflow`.
    assert not any(
        {"tensorflow", "tensorflow-cpu"} <= {Requirement(one).name for one in v} for v in extras.values()
    )


def test_the_commands_of_the_readme_are_on_its_first_screen_and_what_ci_runs() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first = "\n".join(readme.splitlines()[:22])
    setup = "python3 -m venv .venv && .venv/bin/pip install -e '.[test]' && .venv/bin/pytest -n auto --dist loadfile"
    assert "&& .venv/bin/d9mlint tests/example_project" in first and setup in first
    assert setup in (ROOT / ".ci/run").read_text(encoding="utf-8")


def test_hooks_lint_the_whole_project_once() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert [h["id"] for h in hooks] == ["d9mlint", "d9mlint-fix"]
    assert all(h["pass_filenames"] is False and h["require_serial"] is True and h["types_or"] for h in hooks)
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert action["runs"]["using"] == "composite"


@pytest.mark.full
def test_pre_commit_reports_and_fixes(tmp_path: Path) -> None:
    pytest.importorskip("pre_commit", reason="pre-commit is not installed (extra `test`)")
    identity = ["-c", "user.name=t", "-c", "user.email=t@t.example"]
    hooks = tmp_path / "hooks"
    call("git", "clone", "--quiet", "--no-hardlinks", ROOT, hooks, cwd=tmp_path)
    revision = call("git", "rev-parse", "HEAD", cwd=hooks).strip()
    user = tmp_path / "user"
    (user / "lib").mkdir(parents=True)
    call("git", "init", "--quiet", user, cwd=tmp_path)
    hazard = "import torch\n\n\ndef fast():\n    torch.backends.cudnn.benchmark = True\n"
    (user / "lib/speed.py").write_text(hazard)
    # At the root of a monorepo each service has its own configuration and pins.
    mode = "import torch\n\ntorch.manual_seed(0)\ntorch.use_deterministic_algorithms(True)\nx = torch.rand(3).cuda()\n"
    mode += "torch.save(x @ x, 'x.pt')\n"
    for service, (config, version) in {
        "a": ('[tool.d9mlint]\nignore = ["DET301"]\n', "2.4.0"),
        "b": ("[tool.other]\n", "2.8.0"),
    }.items():
        (user / "services" / service).mkdir(parents=True)
        (user / "services" / service / "pyproject.toml").write_text(config)
        (user / "services" / service / "requirements.txt").write_text(f"torch=={version}\n")
        (user / "services" / service / "fast.py").write_text(hazard)
        (user / "services" / service / "train.py").write_text(mode)
    (user / "train.py").write_text("from lib.speed import fast\n\nif __name__ == '__main__':\n    fast()\n")
    environment = {"PRE_COMMIT_HOME": str(tmp_path / "store"), "PYTHONPATH": ""}

    def pre_commit(hook: str, code: int, *args: str) -> str:
        one = {"id": hook, "args": list(args)}
        config = {"repos": [{"repo": str(hooks), "rev": revision, "hooks": [one]}]}
        (user / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
        call("git", "add", ".", cwd=user)
        # Only train.py is handed to the hook; the whole program is linted all the same.
        return call(
            sys.executable,
            "-m",
            "pre_commit",
            "run",
            "--files",
            "train.py",
            cwd=user,
            env=environment,
            code=code,
        )

    out = pre_commit("d9mlint", 1)
    assert "lib/speed.py:5:5" in out and "DET301" in out
    assert "services/b/fast.py:5:5" in out and "services/a/fast.py" not in out
    assert dict(re.findall(r"assuming torch ([\d.]+), pinned in services/(.)/requirements.txt:1", out)) == {
        "2.4.0": "a",
        "2.8.0": "b",
    }
    assert "files were modified by this hook" in pre_commit("d9mlint-fix", 1, "--extend-ignore", "DET305")
    assert (user / "lib/speed.py").read_text() == hazard.replace("True", "False")
    assert (user / "services/a/fast.py").read_text() == hazard
    assert "Passed" in pre_commit("d9mlint", 0, "--extend-ignore", "DET305")
    call("git", *identity, "commit", "--quiet", "-m", "done", cwd=user)


def lint_step(temp: Path, scripts: str = "bin") -> str:
    """The script of the action that lints, after a step that has installed d9mlint below ``temp``."""
    programs = temp / "d9mlint" / scripts
    programs.mkdir(parents=True)
    for name, arguments in {"d9mlint": "-m d9mlint", "python": ""}.items():
        (programs / name).write_text(f"#!/bin/sh\nexec '{sys.executable}' {arguments} \"$@\"\n")
        (programs / name).chmod(0o755)
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    return str(next(step["run"] for step in steps if step.get("id") == "lint"))


@pytest.mark.parametrize("scripts", ["bin", "Scripts"])
def test_the_action_reports_a_monorepo_by_its_projects(tmp_path: Path, scripts: str) -> None:
    step = lint_step(tmp_path / "temp", scripts)
    root = tmp_path / "work"
    call("git", "init", "--quiet", root, cwd=tmp_path)
    code = "import torch\n\nx = torch.rand(3)\ntorch.use_deterministic_algorithms(True)\ny = x.cuda() @ x.cuda()\n"
    for service, version in {"a": "2.4.0", "b": "2.8.0"}.items():
        (root / "services" / service).mkdir(parents=True)
        (root / "services" / service / "requirements.txt").write_text(f"torch=={version}\n")
        (root / "services" / service / "pyproject.toml").write_text(
            "[tool.d9mlint]\nignore = ['DET101']\n" * (service == "a")
        )
        (root / "services" / service / "train.py").write_text(code)
    environment = {
        "RUNNER_TEMP": str(tmp_path / "temp"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "PATHS": "services/a\nservices/b",
        "ARGS": "--extend-select DET305",
        "SARIF_FILE": "d9mlint.sarif",
    }
    out = call("bash", "-e", "-c", step, cwd=root, env=environment, code=1)
    places = {(found[1], found[2]) for found in re.finditer(r"title=d9mlint (DET\d+) .*?file=([^,]+)", out)}
    assert {("DET101", "services/b/train.py"), ("DET305", "services/a/train.py")} <= places
    assert ("DET101", "services/a/train.py") not in places
    assert "torch 2.4" in out and "torch 2.8" in out and "(entry point services/b/train.py)" in out
    assert (tmp_path / "output").read_text() == "exit-code=1\n"
    log = json.loads((root / "d9mlint.sarif").read_text())
    uris = {
        place["physicalLocation"]["artifactLocation"]["uri"]
        for result in log["runs"][0]["results"]
        for place in result["locations"]
    }
    assert uris == {"services/a/train.py", "services/b/train.py"} and all(
        (root / uri).is_file() for uri in uris
    )
    assert not (root / ".d9mlint_cache").exists() and not list(root.rglob(".d9mlint_cache"))


def test_paths_and_options_of_the_action_may_have_blanks(tmp_path: Path) -> None:
    step = lint_step(tmp_path / "temp dir")
    root = tmp_path / "work"
    names = ["my data/it's fast.py", "b.py", "--fix.py", "left $HOME `out`.py", "c*.py", "c1.py"]
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(
            "import torch\n\ntorch.backends.cudnn.benchmark = True\nprint(torch.rand(1))\n"
        )
    environment = {
        "RUNNER_TEMP": str(tmp_path / "temp dir"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "PATHS": "\"my data/it's fast.py\"\n  b.py --fix.py\n'c*.py'\n",
        "ARGS": "--select 'DET301, DET101' --ignore DET101",
        "SARIF_FILE": "",
    }
    out = call("bash", "-eo", "pipefail", "-c", step, cwd=root, env=environment, code=1)
    found = set(re.findall(r"title=d9mlint (DET\d+) .*?file=([^,]+),", out))
    assert found == {("DET301", name) for name in ("my data/it's fast.py", "b.py", "--fix.py", "c*.py")}
    everything = call("bash", "-e", "-c", step, cwd=root, env={**environment, "PATHS": " \n"}, code=1)
    assert "c1.py" in everything and "True" in (root / "c1.py").read_text()
    open_quote = {**environment, "PATHS": "it's"}
    refused = call("bash", "-e", "-c", step, cwd=root, env=open_quote, code=2)
    assert refused == "::error::paths: a quotation mark is not closed\n"


def test_the_action_refuses_what_is_no_version(tmp_path: Path) -> None:
    step = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"][0]
    environment = {"RUNNER_TEMP": str(tmp_path), "VERSION": "1 --index-url=x", "ACTION_PATH": str(ROOT)}
    assert "is not a version" in call("bash", "-e", "-c", step["run"], cwd=tmp_path, env=environment, code=2)
