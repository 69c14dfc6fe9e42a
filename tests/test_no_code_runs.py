"""No code of what is linted is run: modules under every name that is imported lie in wait for it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Collection
from pathlib import Path

import pytest
import yaml
from support import ROOT

Project = Callable[[dict[str, str]], Path]

CODE = "import torch\n\ntorch.backends.cudnn.benchmark = True\n"
DEPENDENCIES = [
    "_yaml",
    "attr",
    "click",
    "colorama",
    "expecttest",
    "hatchling",
    "importlib_metadata",
    "jinja2",
    "libcst",
    "markupsafe",
    "msgspec",
    "numpy",
    "packaging",
    "pip",
    "pkg_resources",
    "rich",
    "setuptools",
    "sitecustomize",
    "tensorflow",
    "tomli",
    "torch",
    "triton",
    "typing_extensions",
    "usercustomize",
    "yaml",
    "wheel",
]


def imported_before() -> set[str]:
    """What Python itself imports before the first line of a module that it runs by ``-m``: such a module of the
    working directory is run by every ``python -m``, of whatever package."""
    code = "import runpy, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def plant(root: Path, *, but: Collection[str] = ()) -> Path:
    """Put a module under every name of the standard library and of the dependencies; the file they write to.

    Where a program is linted, ``torch`` is left out: a project's torch.py is what the program imports, and then it
    has no finding.
    """
    ran = root.parent / f"{root.name}-ran"
    names = {*sys.stdlib_module_names, *DEPENDENCIES}.difference(but)
    for name in names - {"__main__", "d9mlint"}:
        (root / f"{name}.py").write_text(f"open({str(ran)!r}, 'a').write('{name}\\n')\n")
    # They are there to be imported; linting hundreds of programs would only take long.
    (root / ".gitignore").write_text("*.py\n!train.py\n!lib.py\n")
    return ran


def call(root: Path, *command: str | Path, code: int | None = 1, **environment: str) -> str:
    done = subprocess.run(
        [str(c) for c in command], cwd=root, capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert code is None or done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def ran(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


OPTIONS = ("--select=DET301", "--jobs=2", "--output-format=concise", "--no-cache")


@pytest.mark.parametrize("form", ["script", "-I -m", "-m"])
def test_nothing_is_imported_from_the_working_directory(project: Project, form: str) -> None:
    root = project({"train.py": CODE, "lib.py": "x = 1\n"})
    planted = plant(root, but={"torch", *(imported_before() if form == "-m" else ())})
    start: list[str | Path] = [Path(sys.executable).with_name("d9mlint")]
    if form != "script":
        start = [sys.executable, *form.split(), "d9mlint"]
    assert "train.py:3:1" in call(root, *start, *OPTIONS)
    assert "+torch.backends.cudnn.benchmark = False" in call(root, *start, *OPTIONS, "--diff", "train.py")
    assert ran(planted) == []


def environment_inside(root: Path) -> Path:
    """A virtual environment in the project that holds d9mlint itself, and finds what it needs."""
    venv.create(root / ".venv", with_pip=False, symlinks=True)
    (packages,) = (root / ".venv/lib").glob("python*/site-packages")
    shutil.copytree(ROOT / "d9mlint", packages / "d9mlint", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(
        ROOT / "rules", packages / "d9mlint/_rules", ignore=shutil.ignore_patterns("evidence", "recipes")
    )
    others = [p for p in sys.path if p.endswith("site-packages") and os.path.isdir(p)]
    (packages / "others.pth").write_text("\n".join(others) + "\n")
    return root / ".venv/bin/python"


def test_a_virtual_environment_inside_of_the_project(project: Project) -> None:
    root = project({"train.py": CODE, "lib.py": "x = 1\n"})
    python = environment_inside(root)
    planted = plant(root, but={"torch", *imported_before()})
    assert "train.py:3:1" in call(root, python, "-m", "d9mlint", *OPTIONS)
    assert ran(planted) == []


def test_a_checkout_that_is_not_installed_still_starts_its_workers(project: Project, tmp_path: Path) -> None:
    root = project({"train.py": CODE, "lib.py": "x = 1\n"})
    for name in ("d9mlint", "rules"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    (root / ".gitignore").write_text("d9mlint/\nrules/\n")
    paths = [p for p in sys.path if p.endswith("site-packages")]
    code = f"import sys, runpy; sys.path[:] = [p for p in sys.path if 'site-packages' not in p] + {paths!r}; "
    code += "sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in repr(f)]; sys.path.insert(0, '.'); "
    code += "runpy.run_module('d9mlint', run_name='__main__', alter_sys=True)"
    assert "train.py:3:1" in call(root, sys.executable, "-S", "-c", code, *OPTIONS, "train.py")


def test_jobs_of_verify_that_start_python_anew(project: Project) -> None:
    from d9mlint.verify.server import _ANEW, python

    root = project({})
    planted = plant(root)
    path = json.dumps([p for p in sys.path if os.path.isabs(p)] + [str(ROOT)])
    call(root, *python(_ANEW, path, json.dumps({"library": "none"})))
    assert ran(planted) == []


def test_the_server_of_verify(project: Project) -> None:
    from d9mlint.verify.server import python

    root = project({})
    planted = plant(root)
    code = (
        "import sys; sys.path[:1] = [p for p in sys.path[:1] if p]; sys.path.append(sys.argv[1])\n"
        "from d9mlint.verify.launcher import CannotStart, Server\n"
        "server = Server('msgspec', sys.argv[2])\n"
        "try:\n    server.run({}, 1)\nexcept CannotStart as error:\n    print(error)"
    )
    said = call(root, *python(code, str(ROOT), str(root)), code=0)
    assert "No module named 'd9mlint.verify.msgspec_backend'" in said
    assert ran(planted) == []


@pytest.mark.full
def test_measuring_in_a_directory_of_planted_modules(project: Project) -> None:
    root = project({"train.py": CODE})
    planted = plant(root, but=imported_before())
    for start in ([sys.executable, "-m", "d9mlint", "--verify"], [sys.executable, "-m", "d9mlint.verify"]):
        out = call(root, *start, "--op", "index_add", "--runs", "2", "--device", "cpu", code=None)
        assert "index_add" in out and "Traceback" not in out
    assert ran(planted) == []


def steps() -> dict[str, str]:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    return {step["name"]: step["run"] for step in action["runs"]["steps"]}


def test_the_action_takes_paths_over_several_lines_and_no_path_for_an_option(tmp_path: Path) -> None:
    program = tmp_path / "temp/d9mlint/bin/d9mlint"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nprintf "%s|" "$@"\necho\ncase "$*" in *sarif*) exit 2;; esac\nexit 1\n')
    program.chmod(0o755)
    python = program.with_name("python")
    python.write_text(f"#!/bin/sh\nexec '{sys.executable}' \"$@\"\n")
    python.chmod(0o755)
    output = tmp_path / "output"
    environment = {
        "RUNNER_TEMP": str(tmp_path / "temp"),
        "GITHUB_OUTPUT": str(output),
        "PATHS": "src  lib\n--fix\n$(touch x)\n *\n",
        "ARGS": "--select DET3\n--device cpu",
        "SARIF_FILE": "",
    }
    script = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", steps()["Lint"]]
    cache = f"--cache-dir|{tmp_path}/temp/d9mlint-cache|--select|DET3|--device|cpu|"
    expected = f"{cache}--output-format|github|--|src|lib|--fix|$(touch|x)|*|\n"
    assert call(tmp_path, *script, **environment) == expected
    assert output.read_text() == "exit-code=1\n"
    out = call(
        tmp_path, *script, code=2, **{**environment, "SARIF_FILE": "a b.sarif", "ARGS": "", "PATHS": "."}
    )
    assert out.splitlines()[1].endswith("--output-format|sarif|-o|a b.sarif|--|.|")


@pytest.mark.full
def test_the_action_in_a_workspace_of_planted_modules(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = project({"train.py": CODE, "pip.conf": "[global]\nindex-url = http://localhost:1\n"})
    planted = plant(root, but={"torch"})
    temp = tmp_path_factory.mktemp("runner")
    environment = {
        "RUNNER_TEMP": str(temp),
        "GITHUB_OUTPUT": str(temp / "output"),
        "GITHUB_ACTIONS": "true",
        "ACTION_PATH": str(ROOT),
        "PATHS": "train.py",
        "ARGS": "--select DET301",
        "SARIF_FILE": str(temp / "out.sarif"),
    }
    bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]
    call(root, *bash, steps()["Set up d9mlint"], code=0, **environment)
    assert "::error title=d9mlint DET301" in call(root, *bash, steps()["Lint"], **environment)
    assert json.loads((temp / "out.sarif").read_text())["runs"][0]["results"]
    assert ran(planted) == [] and not (root / ".d9mlint_cache").exists()


def imported_for_a_command() -> set[str]:
    """What Python itself imports from the working directory for ``python -c``, before the first line of the command:
    nothing up to 3.12, ``linecache`` and what it imports from 3.13 on."""
    code = "import sys; print(*sys.modules)"
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(code)
        script.flush()
        command, file = (
            subprocess.run([sys.executable, "-S", *start], capture_output=True, text=True, check=True)
            for start in (("-c", code), (script.name,))
        )
    return set(command.stdout.split()) - set(file.stdout.split())


@pytest.mark.full
@pytest.mark.parametrize("safe_path", [False, True])
def test_the_hook_of_pre_commit_in_a_repository_of_planted_modules(
    project: Project, tmp_path_factory: pytest.TempPathFactory, safe_path: bool
) -> None:
    """With pre-commit itself, which clones and installs the hook's repository.

    In the linted repository, pre-commit asks the Python of a hook for its version by ``python -S -c``, before it runs
    the hook. What Python imports for that is not ours to prevent; ``PYTHONSAFEPATH`` prevents it.
    """
    pytest.importorskip("pre_commit", reason="pre-commit is not installed (extra `test`)")
    of_python = imported_for_a_command()
    assert not of_python or sys.version_info >= (3, 13)
    if safe_path and not of_python:
        pytest.skip("this Python imports nothing from the working directory for `python -c`")
    hooks = tmp_path_factory.mktemp("hooks")
    for name in ("d9mlint", "rules"):
        shutil.copytree(ROOT / name, hooks / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml"):
        shutil.copy(ROOT / name, hooks / name)
    identity = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost")
    call(hooks, "git", "init", "-q", code=0)
    call(hooks, "git", "add", "-A", code=0)
    call(hooks, "git", *identity, "commit", "-q", "-m", "hooks", code=0)
    revision = call(hooks, "git", "rev-parse", "HEAD", code=0).strip()
    hook = {"repo": str(hooks), "rev": revision, "hooks": [{"id": "d9mlint", "args": list(OPTIONS)}]}
    root = project({"train.py": CODE, ".pre-commit-config.yaml": json.dumps({"repos": [hook]})})
    planted = plant(root, but={"torch"} if safe_path else {"torch", *of_python})
    call(root, "git", "init", "-q", code=0)
    call(root, "git", "add", "-A", code=0)
    # -I: pre-commit itself must not import what is planted in the working directory.
    out = call(
        root,
        sys.executable,
        "-I",
        "-m",
        "pre_commit",
        "run",
        "--all-files",
        PRE_COMMIT_HOME=str(tmp_path_factory.mktemp("home")),
        **({"PYTHONSAFEPATH": "1"} if safe_path else {}),
    )
    assert "train.py:3:1" in out
    assert ran(planted) == []
