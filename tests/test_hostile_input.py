"""What strangers may put into a project: nothing waits, nothing takes for ever, nothing of others is shown."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from d9mlint.base.errors import UsageError
from d9mlint.base.notebooks import as_python, cell_texts
from d9mlint.base.paths import is_inside, read_limited
from d9mlint.base.source import make_source
from d9mlint.base.yaml_limits import YamlLimitError, load_yaml
from d9mlint.config.discover import discover
from d9mlint.config.gitignore import compile_pattern
from d9mlint.config.pins import read_pins
from d9mlint.config.settings import Settings, load_settings
from d9mlint.knowledge.errors import KnowledgeError
from d9mlint.knowledge.pages import parse_page
from d9mlint.pipeline import Result, check

posix = pytest.mark.skipif(sys.platform == "win32", reason="no FIFOs, links need rights")

SECRET = "hunter2-topsecret"
TRAIN = "import torch\n\nif __name__ == '__main__':\n    torch.manual_seed(0)\n    print(torch.rand(3))\n"
SECONDS = 20.0
"""Of CPU time, for what takes a fraction of one; what it guards against takes hours."""


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line, with a limit of time."""
    command = [sys.executable, "-m", "d9mlint", *arguments, str(project)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def lint(project: Path, **values: object) -> Result:
    return check([str(project)], Settings(cache=False, **values))  # type: ignore[arg-type]


def codes(result: Result) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for item in result.items:
        found.setdefault(os.path.basename(item.finding.path), []).append(item.finding.code)
    return found


def quick(action: Callable[[], object]) -> None:
    began = time.process_time()
    action()
    assert time.process_time() - began < SECONDS


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project inside of a git repository, beside a file that is nobody's business."""
    top = tmp_path / "repo"
    (top / ".git").mkdir(parents=True)
    root = top / "proj"
    root.mkdir()
    (root / "pyproject.toml").write_text("")
    (root / "train.py").write_text(TRAIN)
    (tmp_path / "secret.txt").write_text(f"{SECRET} = [\npassword {SECRET}\n")
    (tmp_path / "secret.yaml").write_text(f"seed: true\nkey: {SECRET}\n")
    return root


@posix
def test_what_is_no_regular_file_is_reported_and_never_opened(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(project / "pipe.py")
    os.mkfifo(project / "pipe.ipynb")
    os.mkfifo(project / "requirements.txt")
    os.mkfifo(project / "environment.yml")
    os.mkfifo(project / ".gitignore")
    os.symlink("/dev/zero", project / "zero.py")
    os.symlink("/dev/zero", project / "requirements-dev.txt")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(project)  # the names of sockets are short
        listening.bind("socket.py")
        done = run(project, "--output-format", "json", "--no-cache")
    found = {(os.path.basename(f["filename"]), f["code"]): f["message"] for f in json.loads(done.stdout)}
    assert set(found) == {(n, "DET002") for n in ("pipe.py", "pipe.ipynb", "zero.py", "socket.py")}, (
        done.stderr
    )
    assert "FIFO" in found["pipe.py", "DET002"]
    assert "socket" in found["socket.py", "DET002"]
    assert done.returncode == 1


@posix
def test_named_configuration_that_is_a_pipe_is_an_error(project: Path) -> None:
    os.mkfifo(project / "pipe")
    for option in ("--config", "--baseline", "--evidence"):
        done = run(project, option, str(project / "pipe"), "--no-cache")
        assert done.returncode == 2, done.stderr


@posix
def test_links_that_lead_out_of_the_project_are_not_read(project: Path, tmp_path: Path) -> None:
    os.symlink(tmp_path / "secret.txt", project / "leak.py")
    (project.parent / "shared.py").write_text("x = 1\n")
    os.symlink(project.parent / "shared.py", project / "shared.py")
    (project / "package").mkdir()
    os.symlink(tmp_path, project / "package" / "directory")
    for form in ("full", "sarif"):
        done = run(project, "--output-format", form, "--no-cache")
        assert SECRET not in done.stdout + done.stderr
        assert "leads out of the project" in done.stdout
    assert codes(lint(project)) == {"leak.py": ["DET002"]}
    # Whoever names the file may read it.
    assert codes(check([str(project / "leak.py")], Settings(cache=False))) == {"leak.py": ["DET001"]}


@posix
def test_requirements_reach_to_the_top_of_the_repository_and_not_beyond(
    project: Path, tmp_path: Path
) -> None:
    (project.parent / "base.txt").write_text("torch==2.4.0\n")
    os.symlink(tmp_path / "secret.txt", project / "requirements-link.txt")
    os.symlink(tmp_path / "secret.txt", project / "setup.cfg")
    lines = [
        "-r ../base.txt",
        "-r ../../secret.txt",
        f"-r {tmp_path}/secret.txt",
        "-c ../../nothing-there.txt",
    ]
    (project / "requirements.txt").write_text("\n".join(lines) + "\n")
    pins = read_pins(project)
    assert [(pin.library, pin.spec) for pin in pins.pins] == [("torch", "==2.4.0")]
    told = [str(problem) for problem in pins.problems]
    assert SECRET not in str(told)
    assert sum("outside of the project" in one for one in told) == 3  # also of what is not there
    assert sum("leads out of the project" in one for one in told) == 1  # two links to one file


def test_files_outside_that_are_extended_are_not_quoted(project: Path, tmp_path: Path) -> None:
    contents = [
        f'select = ["{SECRET}"]\nnonsense-{SECRET} = 1\n',
        f"{SECRET} = [\n",
        f'device = "{SECRET}"\n',
        f'extend = "{SECRET}"\n',
        f"[tool.d9mlint]\njobs = '{SECRET}'\n",
    ]
    (project / "d9mlint.toml").write_text('extend = "../../user.toml"\n')
    for content in contents:
        (tmp_path / "user.toml").write_text(content)
        with pytest.raises(UsageError) as raised:
            load_settings(str(project))
        assert SECRET not in str(raised.value)
        assert "user.toml" in str(raised.value)
    (tmp_path / "user.toml").write_text('device = "cpu"\n')
    assert load_settings(str(project)).device == "cpu"
    (project.parent / "team.toml").write_text("nonsense = 1\n")
    (project / "d9mlint.toml").write_text('extend = "../team.toml"\n')
    with pytest.raises(UsageError, match="nonsense"):
        load_settings(str(project))


@posix
def test_configuration_that_is_a_link_out_of_the_project_is_not_there(project: Path, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text('device = "cpu"\n')
    os.symlink(tmp_path / "other.toml", project / "d9mlint.toml")
    assert load_settings(str(project)).device == "cuda"


READS = """\
import torch, yaml

if __name__ == "__main__":
    with open("{path}") as f:
        config = yaml.safe_load(f)
    if config["seed"]:
        torch.manual_seed(0)
    print(torch.rand(3))
"""


@posix
def test_configuration_read_by_the_program_is_inside_the_boundary(project: Path, tmp_path: Path) -> None:
    os.symlink(tmp_path / "secret.yaml", project / "link.yaml")
    (tmp_path / "repo-too").mkdir()
    (tmp_path / "repo-too" / "c.yaml").write_text("seed: false\n")
    (project.parent / "proj-too").mkdir()
    (project.parent / "proj-too" / "c.yaml").write_text("seed: false\n")
    expected = {
        "../proj-too/c.yaml": ["DET101"],  # inside the repository: it is read, and seeds nothing
        "../../repo-too/c.yaml": [],  # not read: what it says is not known
        "../../secret.yaml": [],
        "link.yaml": [],
    }
    for path, found in expected.items():
        (project / "train.py").write_text(READS.format(path=path))
        assert codes(lint(project)).get("train.py", []) == found, path


def test_components_are_compared_not_characters(tmp_path: Path) -> None:
    (tmp_path / "proj").mkdir()
    (tmp_path / "project").mkdir()
    assert is_inside(str(tmp_path / "proj" / "x"), str(tmp_path / "proj"))
    assert is_inside(str(tmp_path / "proj"), str(tmp_path / "proj") + "/")
    assert not is_inside(str(tmp_path / "project" / "x"), str(tmp_path / "proj"))
    assert not is_inside(str(tmp_path / "proj" / ".." / "x"), str(tmp_path / "proj"))
    assert is_inside("/etc/passwd", "/")


def test_no_more_than_the_limit_is_read(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 100)
    assert read_limited(str(tmp_path / "f"), 100) == b"x" * 100
    with pytest.raises(OSError):
        read_limited(str(tmp_path / "f"), 99)
    with pytest.raises(OSError):
        read_limited(str(tmp_path))


# ---------------------------------------------------------------------------------------------- YAML

BOMB = "a0: &a0 {x: 1}\n" + "".join(
    f"a{k}: &a{k} {{{', '.join(f'k{j}: *a{k - 1}' for j in range(9))}}}\n" for k in range(1, 12)
)
MERGES = "a0: &a0 {x: 1, y: 2}\n" + "".join(
    f"a{k}: &a{k} {{<<: [{', '.join([f'*a{k - 1}'] * 9)}]}}\n" for k in range(1, 12)
)
BOMBS = {
    "mappings": BOMB,
    "merge keys": MERGES,
    "lists": "- &a0 [1]\n" + "".join(f"- &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]\n" for k in range(1, 12)),
    "itself": "&a [*a]\n",
    "itself, deeper": "x: &a {y: {z: *a}}\n",
    "deep": "[" * 50_000,
    "deep blocks": "".join(" " * k + "a:\n" for k in range(1000)),
    "deep mappings": "{a: " * 20_000,
    "sexagesimal": "x: 1" + ":59" * 300_000 + "\n",
    "digits": "x: " + "9" * 900_000 + "\n",
    "tagged": 'x: !!int "1' + ":59" * 300_000 + '"\n',
    "many": "[" + "1," * 900_000 + "]",
    "equal hashes": "".join(f"{k * (2**61 - 1)}: 1\n" for k in range(1, 40_000)),
    "equal hashes, hexadecimal": "".join(f"{k * (2**61 - 1):#x}: 1\n" for k in range(1, 40_000)),
    "equal hashes, quoted": "".join(f'!!int "{k * (2**61 - 1)}": 1\n' for k in range(1, 40_000)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_yaml_that_would_explode_is_refused(name: str) -> None:
    def load() -> None:
        with pytest.raises((YamlLimitError, yaml.YAMLError)):
            load_yaml(BOMBS[name])

    quick(load)


def test_yaml_as_people_write_it_is_read() -> None:
    text = (
        "base: &b {lr: 1e-3, seed: 0}\ntrain: {<<: *b, lr: 0.1}\neval: [*b, *b]\nwhen: 2024-01-01\ntext: >\n  "
        + "word " * 500
    )
    data = load_yaml(text)
    assert data["train"] == {"lr": 0.1, "seed": 0}
    assert data["eval"] == [{"lr": "1e-3", "seed": 0}] * 2
    weights = load_yaml("[" + "0.1234567890123456789, " * 5000 + "]")
    assert len(weights) == 5000


@pytest.mark.parametrize("name", ["mappings", "itself", "deep", "sexagesimal"])
def test_yaml_bombs_by_every_way_into_a_run(name: str, project: Path) -> None:
    for file in ("c.yaml", "environment.yml"):
        (project / file).write_text(BOMBS[name])
    (project / "conf").mkdir()
    (project / "conf" / "config.yaml").write_text("defaults:\n  - part\n")
    (project / "conf" / "part.yaml").write_text(BOMBS[name])
    (project / "train.py").write_text(READS.format(path="c.yaml"))
    (project / "app.py").write_text(
        "import hydra\nimport torch\n\n\n@hydra.main(config_path='conf', config_name='config')\n"
        "def main(cfg):\n    torch.manual_seed(cfg.seed)\n\n\nif __name__ == '__main__':\n    main()\n"
    )
    quick(lambda: lint(project))


def test_yaml_bombs_in_front_matter() -> None:
    with pytest.raises(KnowledgeError):
        parse_page("DET999.md", f"---\n{BOMB}---\n# DET999\n")


# ------------------------------------------------------------------------------------------ patterns

PATTERNS = [
    "*a" * 12 + "*b",
    "**/a" * 12 + "/b",
    "**/*a*" * 8 + "/b",
    "?*" * 12 + "b",
    "[a]*" * 12 + "b",
    "*a*/" * 8 + "b",
    "a/**/" * 12 + "b/**",
]
PATHS = ["a" * 250, "a/" * 120 + "c", "aa/" * 80 + "c", "a/" * 30 + "a" * 200]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_match_in_time_proportional_to_the_path(pattern: str) -> None:
    compiled = compile_pattern(pattern)
    assert compiled is not None
    quick(lambda: [compiled.regex.match(path) for path in PATHS * 20])


def test_hostile_patterns_by_every_way_into_a_run(project: Path) -> None:
    (project / ("a" * 240 + ".py")).write_text("x = 1\n")
    (project / ".gitignore").write_text("\n".join(PATTERNS))
    settings = {
        "extend_exclude": tuple(PATTERNS),
        "per_file_ignores": dict.fromkeys(PATTERNS, ("DET101",)),
        "base": str(project),
    }
    quick(lambda: lint(project, **settings))


# ----------------------------------------------------------------------------------------- notebooks

CELLS = {
    "escaped quotes": '%m\nx = "' + '\\"' * 200_000,
    "blanks": "%m\n" + " " * 400_000 + "a",
    "brackets": "%m\n" + "(" * 400_000,
    "brackets in lines": "%m\n" + "([{\n" * 100_000,
    "names": "%m\n" + "a." * 200_000,
    "equals": "%m\n" + "a = " * 100_000,
    "question marks": "%m\n" + "?" * 400_000,
    "quotes": "%m\n" + "'''\"\"\"" * 50_000,
    "continued": "%m \\\n" * 50_000,
    "lambdas": "x = " + "lambda: " * 50_000 + "?",
    "minus": "%m\nx = " + "-" * 400_000 + "1",
}


@pytest.mark.parametrize("name", CELLS)
def test_cells_are_read_in_time_proportional_to_their_length(name: str) -> None:
    def read() -> None:
        assert len(as_python(CELLS[name])) == len(CELLS[name])

    quick(read)


def test_a_cell_with_an_unclosed_string_hides_no_magic_below() -> None:
    cell = {
        "cell_type": "code",
        "source": "x = 'it is open\n%matplotlib inline\ny = 1\n",
        "metadata": {},
        "outputs": [],
    }
    text = cell_texts(json.dumps({"cells": [cell], "nbformat": 4}).encode())[1]
    assert "\n#matplotlib inline\n" in text


def test_encodings_whose_decoders_are_slow_are_refused() -> None:
    for name in ("punycode", "idna"):
        source = make_source("x.py", f"# coding: {name}\n".encode() + b"a-" + b"b" * 1_000_000)
        assert source.problem is not None
        assert source.problem.code == "DET002"


# ---------------------------------------------------------------------------------------------- pins

PINS = {
    "requirements.txt": "torch" + " " * 400_000 + "x\n" + "torch >= 1" + " " * 400_000 + "!\n",
    "requirements-2.txt": "-r requirements-2.txt\n" * 1000 + "torch ; " + "(" * 50_000 + "\n",
    "setup.cfg": "[options]\ninstall_requires =\n  torch"
    + " " * 400_000
    + "x\n[a]\nb"
    + " " * 400_000
    + "c\n",
    "setup.py": "x = '" + '"' * 300_000 + "torch" + "=" * 300_000,
    "environment.yml": "dependencies:\n- "
    + "[" * 90
    + "]" * 90
    + "\n- '"
    + "[" * 400_000
    + "'\n- torch="
    + "1" * 5000
    + "\n",
    "pyproject.toml": "[project]\ndependencies = ["
    + "".join(f'"p{k}>=1",\n' for k in range(40_000))
    + "]\n[tool.poetry.dependencies]\ntorch = '^"
    + "9" * 5000
    + "'\n",
    "poetry.lock": "[[package]]\nname =" + " " * 400_000 + "\nversion = '" + "9" * 5000 + "'\n",
    "Pipfile.lock": json.dumps({"default": {f"p{k}": {"version": "==1"} for k in range(40_000)}}),
}


@pytest.mark.parametrize("name", PINS)
def test_pins_are_read_in_time_proportional_to_their_length(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(PINS[name])
    quick(lambda: read_pins(tmp_path))


def test_discovery_takes_everything_else_as_before(project: Path) -> None:
    found = discover([str(project)])
    assert [os.path.basename(path) for path in found.files] == ["train.py"]
    assert found.outside == frozenset()
