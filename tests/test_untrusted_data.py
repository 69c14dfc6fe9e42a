"""Whatever is in a project, and wherever output goes: one clear error or a finding, never a failure of d9mlint."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from conftest import Ran
from support import obey_permissions

from d9mlint.cli.app import run as cli
from d9mlint.config.settings import FORMATS
from d9mlint.config.targets import find_targets
from d9mlint.knowledge.errors import KnowledgeError
from d9mlint.knowledge.loader import compile_rules
from d9mlint.knowledge.pages import parse_page

Run = Callable[..., Any]
Here = Callable[..., Ran]
Project = Callable[[dict[str, str]], Path]

CODE = "import torch\n\ntorch.backends.cudnn.benchmark = True\n"
NUMBER = "9" * 5000
DEEP = "[" * 5000
CONFIG = "# d9mlint\n"

HOSTILE = {
    "brackets": f"{CONFIG}x = {DEEP}",
    "closed brackets": f"{CONFIG}x = {DEEP}{']' * 5000}",
    "tables in tables": f"{CONFIG}x = {'{x=' * 3000}1{'}' * 3000}",
    "dotted": f"{CONFIG}{'a.' * 3000}a = 1",
    "digits": f"{CONFIG}x = {NUMBER}",
    "our digits": f"[tool.d9mlint]\njobs = {NUMBER}",
    "hexadecimal digits": f"[tool.d9mlint]\njobs = 0x{'f' * 9000}",
    "hexadecimal list": f"[tool.d9mlint]\nselect = 0x{'f' * 9000}",
    "our brackets": f"[tool.d9mlint]\nselect = {DEEP}",
    "dotted select": f"[tool.d9mlint.select]\n{'a.' * 900}a = 1",
    "long key": f"[tool.d9mlint]\n{'k' * 300_000} = 1",
    "long value": f"[tool.d9mlint]\ncolor = '{'v' * 300_000}'",
    "a list of tables": "[[tool.d9mlint]]\nselect = []",
    "a date": "[tool.d9mlint]\nselect = 1979-05-27",
    "not a number": "[tool.d9mlint]\njobs = nan",
    "version digits": f"[tool.d9mlint]\ntorch-version = '2.{NUMBER}'",
    "null": "# d9mlint\0",
    "not UTF-8": "# d9mlint \udcff",
    "headers": f"[tool.d9mlint]\nignroe = 1\n{'[' + ' ' * 20_000}\n" * 2,
    "null in a path": '[tool.d9mlint]\nbaseline = "a\\u0000b"',
    "null in a cache": '[tool.d9mlint]\ncache-dir = "a\\u0000b"',
    "null in a pattern": '[tool.d9mlint]\nexclude = ["a\\u0000b", "["]',
    "null in extend": '[tool.d9mlint]\nextend = "a\\u0000b"',
    "long path": f"[tool.d9mlint]\nbaseline = '{'b' * 5000}'",
    "long cache path": f"[tool.d9mlint]\ncache-dir = '{'b' * 5000}'",
    "long extend": f"[tool.d9mlint]\nextend = '{'b' * 5000}'",
    "extend a directory": "[tool.d9mlint]\nextend = '.'",
    "extend a device": "[tool.d9mlint]\nextend = '/dev/zero'",
    "a surrogate": '[tool.d9mlint]\nselect = ["\\uD800"]',
    "control characters": '[tool.d9mlint]\nselect = ["DET\\u001b[31m\\n::error::x"]',
}  # fmt: skip


def judged(got: Any) -> None:
    assert got.code in (0, 1, 2), got
    assert "Traceback" not in got.err and "itself failed" not in got.err, got.err
    assert len(got.err) < 2000 and "\x1b" not in got.out + got.err
    if got.code == 2:
        assert [line for line in got.err.splitlines() if line.startswith("error: ")] == got.err.splitlines()[
            -1:
        ]


@pytest.fixture
def here(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Here:
    """Runs the command line in this process, where there is no time for a new one each time."""

    def here(root: Path, *arguments: str, **environment: str) -> Ran:
        with monkeypatch.context() as context:
            context.chdir(root)
            for name, value in environment.items():
                context.setenv(name, value)
            code = cli(["--jobs=1", *arguments])
        return Ran(code, *capfd.readouterr())

    return here


@pytest.mark.parametrize("kind", list(HOSTILE))
def test_configuration(here: Here, project: Project, kind: str) -> None:
    root = project({"train.py": CODE})
    (root / "pyproject.toml").write_bytes(HOSTILE[kind].encode("utf-8", "surrogateescape"))
    judged(here(root, "--select=DET301"))


@pytest.mark.parametrize("name", ["pyproject.toml", "d9mlint.toml"])
def test_a_byte_order_mark_in_the_configuration(here: Here, project: Project, name: str) -> None:
    table = "[tool.d9mlint]\n" if name == "pyproject.toml" else ""
    root = project({"train.py": CODE})
    (root / name).write_bytes(b"\xef\xbb\xbf" + f"{table}select = ['DET309']\n".encode())
    assert here(root) == (0, "No findings in 1 file.\n", "")
    (root / name).write_bytes(b"\xef\xbb\xbf" + f"{table}# \u2028\x85\nselct = []\n".encode())
    assert f"{name}:{2 + bool(table)}: unknown key selct" in here(root).err


PINS = {
    "requirements.txt": [f"torch=={NUMBER}", f"torch>=1.{NUMBER},<2", f"torch>=1; python_version<'3.{NUMBER}'",
                         f"torch~={NUMBER}.1", "torch==" + "1." * 9000 + "1", "\0", "torch==\x1b[31m1"],
    "setup.cfg": ["[options", f"[options]\ninstall_requires =\n  torch=={NUMBER}\n", "[a]\n[a]\n", "\0"],
    "setup.py": [f"x = 'torch=={NUMBER}'", "(" * 5000],
    "Pipfile": [DEEP, f"x = {NUMBER}", f"[packages]\ntorch = '^1.{NUMBER}'"],
    "Pipfile.lock": [DEEP, NUMBER, json.dumps({"default": {"torch": {"version": f"=={NUMBER}"}}}), '{"default": 1}'],
    "poetry.lock": [f"[[package]]\nname = 'torch'\nversion = '{NUMBER}'"],
    "environment.yml": [f"dependencies: [torch={NUMBER}]", "[" * 3000, "a: 2024-13-45", "? [1]\n: 2",
                        "!!python/object:x {}"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, texts in PINS.items() for t in texts], ids=repr)
def test_pins(project: Project, name: str, text: str) -> None:
    targets = find_targets(project({name: text}))
    assert targets.version("torch").source and targets.key()


@pytest.mark.parametrize(
    "text",
    [DEEP, "[" + NUMBER + "]", "{}", "[]", "\0", '{"version": 1, "findings": [{"fingerprint": 1}]}',
     '{"version": 1, "findings": [{"fingerprint": [], "code": {}, "path": 1, "scope": null}]}', '{"version": 1e999}'],
)  # fmt: skip
def test_baselines_and_evidence(here: Here, project: Project, text: str) -> None:
    root = project({"train.py": CODE, "known.json": text})
    for arguments in (
        ["--baseline=known.json"],
        ["--baseline=known.json", "--update-baseline"],
        ["--evidence=known.json"],
    ):
        judged(here(root, "--select=DET301", *arguments))
        assert (root / "known.json").read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        "- {id: 2024-13-45}\n",
        "- id: 1979-99-99\n",
        "[" * 3000,
        "- &a [*a]\n",
        "- !!int x\n",
        "- id: a\x1b[\n",
        "a0: &a0 [1]\n" + "".join(f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]\n" for k in range(1, 12)),
    ],
)
def test_an_invalid_value_in_the_knowledge_base_is_named_by_its_place(tmp_path: Path, text: str) -> None:
    for name in ("knowledge/rng/x.yaml", "knowledge/aliases.yaml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        with pytest.raises(KnowledgeError, match=rf"^{name}:\d+: "):
            compile_rules(tmp_path)
        path.unlink()
    with pytest.raises(KnowledgeError):
        parse_page("DET1-x.md", "---\ncode: 2024-13-45\n---\n")


def test_a_broken_rule_is_no_bug_of_d9mlint(tmp_path: Path, project: Project) -> None:
    root = project({"train.py": CODE})
    (tmp_path / "rules/knowledge").mkdir(parents=True)
    (tmp_path / "rules/knowledge/aliases.yaml").write_text("exact: 2024-13-45\n")
    code = (
        "import sys; from pathlib import Path; import d9mlint.knowledge.loader as loader\n"
        "loader.rules_directory = lambda: Path(sys.argv.pop(1))\n"
        "from d9mlint.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "rules"), "--no-cache"],
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"error: .*knowledge/aliases.yaml:1: no valid YAML: .*\n", done.stderr)


NAMES = [b"caf\xe9.py", b"new\nline.py", b"esc\x1b[31m.py", b"::error::x.py", b"##[error]x.py", b"'\"&<>.py",
         "\u202e\u2028é名.py".encode(), b" .py", b"-o.py", b"%0A.py", b"{x}.py", b"a" * 250 + b".py"]  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
def test_names_of_files_in_every_format(here: Here, project: Project, form: str) -> None:
    root = project({})
    for name in NAMES:
        with open(os.fsencode(root) + b"/" + name, "w") as stream:
            stream.write(CODE)
    options = ("--select=DET301", f"--output-format={form}")
    for environment in ({}, {"GITHUB_ACTIONS": "true"}):
        got = here(root, *options, **environment)
        judged(got)
        assert got.code == 1 and got.err == ""
        commands = [x for x in got.out.splitlines() if x.lstrip().startswith("::") or "##[" in x]
        if form == "github":
            assert len(commands) == len(NAMES) and all(
                c.startswith("::error title=d9mlint DET301") for c in commands
            )
        elif environment:
            assert commands == []
        if form in ("json", "sarif", "gitlab", "rdjson"):
            assert json.loads(got.out)
        if form == "json":
            assert len(json.loads(got.out)) == len(NAMES)
            assert any(f["filename"].endswith("caf\ufffd.py") for f in json.loads(got.out))
            assert any(f["filename"].endswith("##[error]x.py") for f in json.loads(got.out))
        if form == "junit":
            ElementTree.fromstring(got.out)
        if form in ("concise", "grouped"):
            assert "./::error::x.py:" in got.out
        assert here(root, *options, "-o", "out", **environment) == (1, "", "")
        (root / "out").read_text(encoding="utf-8")


def test_a_baseline_of_names_that_are_not_utf_8(here: Here, project: Project) -> None:
    root = project({"known.json": '{"version": 1, "findings": []}'})
    with open(os.fsencode(root) + b"/caf\xe9.py", "w") as stream:
        stream.write(CODE)
    options = ("--select=DET301", "--baseline=known.json")
    for _ in range(2):
        got = here(root, *options, "--update-baseline")
        assert (got.code, got.err) == (0, "")
        assert here(root, *options).code == 0
    assert [f["path"] for f in json.loads((root / "known.json").read_text())["findings"]] == ["caf\udce9.py"]


def test_a_baseline_that_can_not_be_written_stays(run: Run, project: Project) -> None:
    root = project({"train.py": CODE, "out/known.json": '{"version": 1, "findings": []}'})
    before = (root / "out/known.json").read_text()
    (root / "out").chmod(0o555)
    options = ("--select=DET301", "--update-baseline", "--baseline=out/known.json", "--no-cache", "--jobs=1")

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))

    for limit in (obey_permissions, full):
        got = run(*options, cwd=root, before=limit)
        judged(got)
        assert got.code == 2 and "known.json cannot be written" in got.err
        assert (root / "out/known.json").read_text() == before
        assert [p.name for p in (root / "out").iterdir()] == ["known.json"]
        (root / "out").chmod(0o755)


def shell(root: Path, command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command.replace("d9mlint", f"{sys.executable} -m d9mlint", 1)],
        cwd=root,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(
    "command",
    [
        "d9mlint --select=DET301",
        "d9mlint -o /dev/full",
        "d9mlint rule DET301",
        "d9mlint --version",
        "d9mlint graph",
    ],
)
def test_a_full_disk_for_output(project: Project, command: str) -> None:
    done = shell(project({"train.py": CODE}), f"{command} > /dev/full")
    assert done.returncode == 2
    assert re.fullmatch(r"error: .* written: No space left on device\.\n", done.stderr), done.stderr


def test_streams_that_are_full_or_closed(project: Project) -> None:
    root = project({"train.py": CODE, "requirements.txt": "-r gone.txt\n"})
    for command, code in {
        "d9mlint --select=DET301 2> /dev/full": 1,
        "d9mlint --nonsense 2> /dev/full": 2,
        "d9mlint --select=DET301 2>&-": 1,
        "d9mlint --select=DET301 >&-": 1,
        "d9mlint --select=DET301 <&- >&- 2>&-": 1,
        "d9mlint --nonsense >&- 2>&-": 2,
        "d9mlint - < /dev/null": 0,
    }.items():
        done = shell(root, command)
        assert done.returncode == code, (command, done.stderr)
        assert "Traceback" not in done.stderr and "Exception" not in done.stderr
    assert run_twice(root)


def run_twice(root: Path) -> bool:
    """Nothing that was printed to a closed stream went into a file of the cache."""
    done = [shell(root, "d9mlint --select=DET301 --output-format=json") for _ in range(2)]
    return done[0].stdout == done[1].stdout and json.loads(done[0].stdout)[0]["code"] == "DET301"


def test_a_working_directory_that_is_gone(project: Project) -> None:
    root = project({"train.py": CODE})
    gone = "mkdir gone; cd gone; rmdir ../gone; d9mlint"
    for command in (
        gone,
        f"{gone} --show-settings",
        f"{gone} clean",
        f"{gone} graph",
        f"{gone} --diff-from HEAD",
    ):
        done = shell(root, command)
        assert done.returncode == 2, command
        assert done.stderr == "error: The working directory cannot be read: No such file or directory.\n"
    assert shell(root, f"{gone} --version").returncode == 0


def test_the_locale_does_not_matter(project: Project) -> None:
    root = project({"café.py": CODE, "名前.py": "import torch\ntorch.backends.cudnn.benchmark = True  # é\n"})
    expected: dict[str, tuple[int, str, str]] = {}
    for environment in (
        {"LC_ALL": "C.UTF-8"},
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "latin-1:strict"},
    ):
        for command in ("d9mlint --select=DET301 --output-format=json", "d9mlint rule DET301",
                        "d9mlint --select=DET301 café.py nöne.py"):  # fmt: skip
            done = shell(root, command, **environment)
            got = (done.returncode, done.stdout, done.stderr)
            assert expected.setdefault(command, got) == got, (environment, command)
            assert "Traceback" not in done.stderr


def test_little_memory_is_said_in_a_line(project: Project) -> None:
    root = project({"train.py": CODE, **{f"m{i}.py": "x = [1, 2, 3]\n" * 3000 for i in range(6)}})
    seen = set()
    for megabytes in (100, 200, 2000):
        done = shell(root, f"ulimit -v {megabytes * 1000}; exec d9mlint --select=DET301 --no-cache --jobs=2")
        seen.add(done.returncode)
        if done.returncode not in (0, 1, 2) or "Fatal" in done.stderr:
            # Python itself does not start.
            assert megabytes <= 60, done.stderr
            continue
        assert "itself failed" not in done.stderr and len(done.stderr.splitlines()) <= 1, (
            megabytes,
            done.stderr,
        )
    assert 1 in seen


def test_control_characters_in_messages_and_patches(here: Here, project: Project) -> None:
    root = project(
        {
            "requirements.txt": "-r g\x1b[31mone.txt\n",
            "tr\x1bain.py": CODE,
            "a.py": f"x = '\x1b[31m\x07'\r\n{CODE}",
        }
    )
    for arguments in (
        ["train.py"],
        ["--diff"],
        ["--baseline=\x1b[31m"],
        ["--select=\x1b[31m"],
        ["--config=\x1b"],
        ["--\x1b[31m"],
        ["--output-format=\x1b"],
        ["--diff-from=\x1b"],
    ):
        got = here(root, *arguments)
        judged(got)
        assert "\x1b" not in got.out + got.err and "\x07" not in got.out
    shown = here(root, "--select=DET301", "--diff").out
    assert "--- tr␛ain.py\n" in shown and " x = '␛[31m␇'\r\n" in shown
    assert here(root, "--select=DET301", "--diff", "-o", "fix.patch", "a.py").code == 1
    done = subprocess.run(
        ["patch", "-p0", "--binary"], stdin=(root / "fix.patch").open("rb"), cwd=root, capture_output=True
    )
    assert done.returncode == 0, done.stdout
    assert (root / "a.py").read_bytes() == f"x = '\x1b[31m\x07'\r\n{CODE}".replace("True", "False").encode()


def test_a_patch_in_a_workflow_holds_no_commands(here: Here, project: Project) -> None:
    root = project({"a.py": CODE + "'''\n::error::x\n##[error]x'''\n"})
    got = here(root, "--select=DET301", "--diff", GITHUB_ACTIONS="true")
    assert "error" in got.out
    assert not [x for x in got.out.splitlines() if x.lstrip().startswith("::") or "##[" in x]


def test_an_unreadable_directory(run: Run, project: Project) -> None:
    root = project({"a.py": "", "locked/b.py": CODE, "locked/deep/c.py": CODE, "skipped/d.py": ""})
    (root / ".gitignore").write_text("skipped/\n")
    for name in ("locked", "skipped"):
        (root / name).chmod(0)
    got = run("--select=DET301", cwd=root, before=obey_permissions)
    assert got == (0, "No findings in 1 file.\n", "warning: locked cannot be read: Permission denied.\n")
    assert run("--select=DET301", "--quiet", cwd=root, before=obey_permissions).err == ""
    for named in (["locked"], ["a.py", "locked"]):
        got = run("--select=DET301", *named, cwd=root, before=obey_permissions)
        assert got == (2, "", "error: locked cannot be read: Permission denied.\n")
    for name in ("locked", "skipped"):
        (root / name).chmod(0o755)


def test_no_python_files(here: Here, project: Project) -> None:
    root = project({"docs/a.txt": "", "src/b.py": CODE, "stubs/c.pyi": ""})
    got = here(root, "docs", "stubs")
    assert got.code == 0 and got.err == "warning: No Python files or notebooks were found in docs, stubs.\n"
    assert here(root, "docs", "--output-format=json").out == "[]\n"
    assert here(root, "docs", "--quiet").err == ""
    assert here(root, "src", "--select=DET301").err == ""
