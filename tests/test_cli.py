"""The command line as a user meets it: standard output, standard error, exit code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
Project = Callable[[dict[str, str]], Path]

TRAIN = """\
import torch
from torch.backends import cudnn


def main():
\tcudnn.benchmark = True
\ttorch.manual_seed(0)
\ttorch.randn(3).requires_grad_().sum().backward()


if __name__ == "__main__":
    main()
"""


def test_full_shows_the_code_the_help_the_fix_and_the_way(run: Run, project: Project) -> None:
    got = run("--select", "DET301", cwd=project({"train.py": TRAIN}))
    assert got.code == 1 and got.err == ""
    assert (
        got.out
        == """\
DET301 [*] `cudnn.benchmark = True`: autotuning may select different algorithms in each run
 --> train.py:6:2
  |
4 |
5 | def main():
6 |     cudnn.benchmark = True
  |     ^^^^^^^^^^^^^^^^^^^^^^
7 |     torch.manual_seed(0)
8 |     torch.randn(3).requires_grad_().sum().backward()
  |
help: set `torch.backends.cudnn.benchmark = False`
    6 -     cudnn.benchmark = True
    6 +     cudnn.benchmark = False
note: main() is called at train.py:12

Found 1 finding in 1 file (1 error; 1 file checked).
[*] 1 fixable with --fix.
"""
    )


def test_findings_that_differ_in_their_place_alone_are_explained_once(run: Run, project: Project) -> None:
    """Each of them keeps its place, its line and its count; those of which something else differs stand by themselves."""
    lines = [
        "import torch",
        "",
        "class Net(torch.nn.Module):",
        "    def __init__(self):",
        "        super().__init__()",
        "        self.first = torch.nn.ReflectionPad2d(1)",
        "        self.large = torch.nn.Upsample(scale_factor=2, mode='bilinear')",
        "        self.other = torch.nn.Linear(8, 8)",
        "        self.third = torch.nn.ReflectionPad2d(3)",
        "        self.last = torch.nn.ReflectionPad2d(1)",
    ]
    root = project({"net.py": "\n".join(lines) + "\n"})
    got = run("--select=DET401", "--torch-version=2.7", "--no-cache", "--color=never", cwd=root)
    assert got.out.count("`torch.nn.ReflectionPad2d` on CUDA") == 1 and got.out.count("help: ") == 2
    assert (
        f"""\
  --> net.py:6:22
   |
 4 | {lines[3]}
 5 | {lines[4]}
 6 | {lines[5]}
   |                      ^^^^^^^^^^^^^^^^^^^^^^^^^^^
 7 | {lines[6]}
 8 | {lines[7]}
  --> net.py:9:22
 9 | {lines[8]}
   |                      ^^^^^^^^^^^^^^^^^^^^^^^^^^^
  --> net.py:10:21
10 | {lines[9]}
   |                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^
   |
help: """
        in got.out
    )
    assert "Found 4 findings" in got.out
    listed = run("--select=DET401", "--torch-version=2.7", "--output-format=concise", "--no-cache", cwd=root)
    assert [line.split(": ")[0] for line in listed.out.splitlines()[:4]] == [
        "net.py:6:22",
        "net.py:7:22",
        "net.py:9:22",
        "net.py:10:21",
    ]


def test_concise_is_a_line_a_finding(run: Run, project: Project) -> None:
    root = project({"train.py": TRAIN})
    got = run("--select=DET301", "--output-format=concise", root / "train.py", cwd=root.parent)
    assert got.out.splitlines()[0] == (
        f"{root.name}/train.py:6:2: error: DET301 [*] `cudnn.benchmark = True`: autotuning "
        "may select different algorithms in each run"
    )


def test_a_clean_run(run: Run, project: Project) -> None:
    root = project({"train.py": "import torch\n", "b.py": ""})
    assert tuple(run(cwd=root)) == (0, "No findings in 2 files.\n", "")
    assert tuple(run("--output-format", "json", cwd=root)) == (0, "[]\n", "")
    assert tuple(run("--output-format", "json-lines", cwd=root)) == (0, "", "")


def test_statistics(run: Run, project: Project) -> None:
    root = project({"train.py": TRAIN, "bad.py": "def f(:\n"})
    got = run("--select", "DET301", "--statistics", cwd=root)
    assert [line.split()[:2] for line in got.out.splitlines()[:2]] == [["1", "DET001"], ["1", "DET301"]]
    data = json.loads(run("--select", "DET301", "--statistics", "--output-format", "json", cwd=root).out)
    assert data[1] == {"code": "DET301", "name": "cudnn-benchmark", "count": 1}


def test_exit_codes(run: Run, project: Project) -> None:
    root = project({"train.py": TRAIN})
    assert run("--select", "DET301", cwd=root).code == 1
    assert run("--select", "DET301", "--exit-zero", cwd=root).code == 0
    assert run("--select", "DET309", cwd=root).code == 0
    warned = project({"train.py": "import torch\nprint(torch.ones(1))  # noqa: DET301\n"})
    assert run("--select", "DET301,DET003", cwd=warned).code == 1
    assert run("--select", "DET301,DET003", "--fail-on", "error", cwd=warned).code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian.py"], "error: trian.py does not exist. Did you mean train.py?\n"),
        (["grph"], "error: grph does not exist. Did you mean the command graph?\n"),
        (
            ["-v", "graph"],
            "error: graph does not exist. A command is the first word: `d9mlint graph`, then its options.\n",
        ),
        (["--selct", "DET1"], "error: Unknown option --selct. Did you mean --select?"),
        (["--select", "DET9"], "error: command line: select: unknown rule DET9."),
        (["--select", "cudnn-benchmrk"], "unknown rule cudnn-benchmrk. Did you mean cudnn-benchmark?"),
        (["--output-format", "jsn"], "'jsn' is not one of full, concise,"),
        (["--torch-version", "new"], "torch-version must be a version"),
        (["--config", "none.toml"], "none.toml does not exist"),
        (["--baseline", "none.json"], "The baseline"),
        (["rule", "DET999"], "Unknown rule DET999."),
        (["rule"], "Name a rule"),
        (["config", "selct"], "Unknown configuration key selct. Did you mean select?"),
        (["-", "train.py"], "cannot be combined"),
        (["--diff-from", "HEAD"], "error: git rev-parse"),
        (["-o", "train.py/x"], "cannot be written"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_what_can_not_be_done_exits_with_2(
    run: Run, project: Project, arguments: list[str], message: str
) -> None:
    got = run(*arguments, cwd=project({"train.py": TRAIN}), stdin=b"", env={"GIT_CEILING_DIRECTORIES": "/"})
    assert (got.code, got.out) == (2, "")
    assert message in got.err and "Traceback" not in got.err


def test_a_wrong_configuration_names_file_line_and_key(run: Run, project: Project) -> None:
    root = project({"pyproject.toml": "[tool.d9mlint]\nignroe = []\n"})
    got = run(cwd=root)
    assert got.code == 2
    assert got.err == f"error: {root}/pyproject.toml:2: unknown key ignroe. Did you mean ignore?\n"


def test_files_that_can_not_be_judged_are_findings_and_the_rest_goes_on(run: Run, project: Project) -> None:
    root = project({"train.py": TRAIN, "bad.py": "x = (\n", "cell.ipynb": "{"})
    (root / "latin.py").write_bytes(b"s = '\xe9'\n")
    (root / "deep.py").write_text("x = " + "(" * 5000 + ")" * 5000 + "\n")
    (root / "sum.py").write_text("x = " + "1 + " * 20000 + "1\n")
    (root / "null.py").write_bytes(b"x = 1\0")
    got = run("--select", "DET301", "--output-format", "json", cwd=root)
    found = {(os.path.basename(f["filename"]), f["code"]) for f in json.loads(got.out)}
    assert {
        ("train.py", "DET301"),
        ("bad.py", "DET001"),
        ("latin.py", "DET002"),
        ("cell.ipynb", "DET002"),
    } < found
    assert {name for name, _ in found} == {p.name for p in root.glob("*.*") if p.suffix in (".py", ".ipynb")}


@pytest.mark.parametrize("text", ["", "\n", "\ufeff"])
def test_an_empty_notebook_has_no_cells(run: Run, project: Project, text: str) -> None:
    got = run(cwd=project({"new.ipynb": text}))
    assert (got.code, got.out) == (0, "No findings in 1 file.\n")
    assert got.err == ""


def test_standard_input(run: Run, project: Project) -> None:
    root = project(
        {
            "train.py": "import lib\n\nif __name__ == '__main__':\n    print(lib.go())\n",
            "lib.py": "def go(): pass\n",
        }
    )
    new = b"import torch\n\ndef go():\n    return torch.randn(3)\n"
    got = run(
        "--select=DET101", "--output-format=concise", "-", "--stdin-filename", "lib.py", cwd=root, stdin=new
    )
    assert got.out.startswith("lib.py:4:12: error: DET101")
    alone = run("--select=DET301", "--output-format=concise", "-", cwd=root, stdin=TRAIN.encode())
    assert alone.out.startswith("<stdin>:6:2: error: DET301")


def test_standard_input_is_fixed_to_standard_output(run: Run, project: Project) -> None:
    got = run("--select=DET301", "--fix", "-", cwd=project({}), stdin=TRAIN.encode())
    assert got.out == TRAIN.replace("True", "False")


def test_an_argument_sees_the_same_program_as_the_whole(run: Run, project: Project) -> None:
    root = project(
        {
            "train.py": "import torch\nimport model\ntorch.manual_seed(0)\nprint(model.build())\n",
            "model.py": "import torch\n\ndef build():\n    return torch.nn.Linear(2, 2)\n",
            "other.py": "import torch\nprint(torch.randn(3))\n",
        }
    )
    assert run("model.py", "--select=DET101", cwd=root).code == 0
    assert run("other.py", "--select=DET101", cwd=root).code == 1


def test_rule_pages_are_shown_offline(run: Run) -> None:
    by_code, by_name = run("rule", "DET301"), run("rule", "cudnn-benchmark")
    assert by_code.out == by_name.out
    assert by_code.out.startswith("# DET301 cudnn-benchmark\n")
    listed = run("rule", "--all").out
    assert "DET301  cudnn-benchmark: " in listed and "DET112" in listed
    data = json.loads(run("rule", "DET101", "--output-format", "json").out)
    assert data[0]["code"] == "DET101" and "## Example" in data[0]["markdown"]


def test_the_graph_names_entry_points_and_what_they_reach(run: Run, project: Project) -> None:
    root = project(
        {
            "train.py": TRAIN.replace("import torch\n", "import torch\nimport pkg.a\n"),
            "pkg/a.py": "",
            "b.py": "",
        }
    )
    assert run("graph", cwd=root).out == (
        "train.py (main)\n  pkg/a.py\nNot reached from any entry point:\n  b.py\n"
    )
    assert json.loads(run("graph", "--output-format", "json", cwd=root).out)["entries"][0]["reaches"] == [
        "pkg/a.py"
    ]


def test_the_graph_as_a_picture(run: Run, project: Project, tmp_path: Path) -> None:
    code = "import torch\nfrom pkg import a\nimport pkg.b\n\nif __name__ == '__main__':\n    print(a.f(1))\n"
    library = "from pkg import b\n\n\ndef f(x):\n    return x\n"
    root = project(
        {"train.py": code, "pkg/a.py": library, "pkg/b.py": "", 'odd"<x>.py': "y = 1\n", "c.py": ""}
    )
    dot = run("graph", "--output-format", "dot", "--coverage", cwd=root).out
    assert '"train.py" -> "pkg/a.py";' in dot and '"pkg/a.py" -> "pkg/b.py";' in dot
    assert re.search(r'"train.py" \[label="train.py\\n\d+ of \d+ statements followed", style=bold\];', dot)
    assert '"c.py" [label="c.py", style=dashed];' in dot and '"odd\\"<x>.py"' in dot
    mermaid = run("graph", "--output-format", "mermaid", cwd=root).out
    numbers = dict(re.findall(r'  (f\d+)\["([^"]+)"\]', mermaid))
    edges = {(numbers[a], numbers[b]) for a, b in re.findall(r"  (f\d+) --> (f\d+)", mermaid)}
    assert mermaid.startswith("flowchart LR\n") and ("train.py", "pkg/a.py") in edges
    assert "odd#34;#60;x#62;.py" in numbers.values()
    page = tmp_path / "graph.html"
    assert run("graph", "--output-format", "html", "--coverage", "-o", page, cwd=root).out == ""
    shown = page.read_text()
    assert "<text" in shown and "has a __main__ guard" in shown and "<meter" in shown
    assert (
        "Not reached from any entry point" in shown and "<x>" not in shown and "odd&#34;&lt;x&gt;.py" in shown
    )


def test_the_graph_has_packages_and_lines_within_a_column(run: Run, project: Project) -> None:
    code = "from pkg.sub.b import f\nfrom c import g\n\nif __name__ == '__main__':\n    print(f(1))\n"
    packages = {"pkg/__init__.py": "", "pkg/sub/__init__.py": "", "pkg/sub/b.py": "def f(x):\n    return x\n"}
    root = project({"train.py": code, "c.py": "from pkg.sub import b\n\ng = b.f\n", **packages})
    reached = json.loads(run("graph", "--output-format", "json", cwd=root).out)["entries"][0]["reaches"]
    assert reached == ["c.py", "pkg/__init__.py", "pkg/sub/__init__.py", "pkg/sub/b.py"]
    page = run("graph", "--output-format", "html", cwd=root).out
    boxes = {
        name: (float(x), float(x) + float(wide), float(y) + 12)
        for x, y, wide, name in re.findall(
            r'<rect x="(.+?)" y="(.+?)" width="(.+?)".*?<text .*?>(.+?)</text>', page
        )
    }
    # From c.py to a file below it: out to the right, and back into the right side.
    right, top = boxes["c.py"][1:]
    bottom = boxes["pkg/sub/b.py"][2]
    (line,) = re.findall(
        rf'd="M{right} {top}C(\S+) {top} (\S+) {bottom} {right} {bottom}"'.replace(".0", r"(?:\.0)?"), page
    )
    assert all(float(bend) > right for bend in line)


def test_the_cache_is_marked_and_removed(run: Run, project: Project) -> None:
    root = project({"train.py": TRAIN})
    run(cwd=root)
    assert (
        (root / ".d9mlint_cache/CACHEDIR.TAG")
        .read_text()
        .startswith("Signature: 8a477f597d28d172789f06886806bc55")
    )
    assert (root / ".d9mlint_cache/.gitignore").read_text() == "*\n"
    assert run("clean", cwd=root).out == "Removed .d9mlint_cache.\n"
    assert not (root / ".d9mlint_cache").exists()
    assert run("clean", cwd=root).out == "No cache found.\n"
    assert run("--no-cache", cwd=root).code == 1
    assert not (root / ".d9mlint_cache").exists()


def test_a_directory_that_is_no_cache_is_not_removed(run: Run, project: Project) -> None:
    root = project({"pyproject.toml": "[tool.d9mlint]\ncache-dir = 'data'\n", "data/x.txt": "mine"})
    assert run("clean", cwd=root).out == "No cache found.\n"
    assert (root / "data/x.txt").exists()


def test_settings_are_shown_with_their_origins(run: Run, project: Project) -> None:
    root = project({"pyproject.toml": "[tool.d9mlint]\njobs = 2\n"})
    out = run("--show-settings", "--device", "cpu", cwd=root).out
    assert f"jobs = 2  # {root}/pyproject.toml:2\n" in out
    assert 'device = "cpu"  # command line\n' in out
    assert 'fail-on = "warning"  # default\n' in out


def test_colours(run: Run, project: Project) -> None:
    root = project({"train.py": TRAIN})
    assert "\x1b[" not in run(cwd=root).out
    assert "\x1b[" in run("--color", "always", cwd=root).out
    assert "\x1b[" in run(cwd=root, env={"FORCE_COLOR": "1"}).out
    assert "\x1b[" not in run(cwd=root, env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).out


def test_control_characters_tabs_and_wide_characters(run: Run, project: Project) -> None:
    code = 'import torch\nif 1:\n\ts = "名\x1b[31m"; torch.backends.cudnn.benchmark = True\n'
    out = run("--select=DET301", cwd=project({"train.py": code})).out
    assert "\x1b" not in out
    lines = out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("3 |"))
    assert lines[at] == '3 |     s = "名␛[31m"; torch.backends.cudnn.benchmark = True'
    # The wide character takes two columns, so the carets start one further right than by characters.
    assert lines[at + 1].index("^") == lines[at].index("torch.backends") + 1


def test_a_long_line_is_cut_around_the_place(run: Run, project: Project) -> None:
    code = f"import torch\nx = {'1 + ' * 100}1; torch.backends.cudnn.benchmark = True; y = {'1 + ' * 100}1\n"
    lines = run("--select=DET301", cwd=project({"train.py": code})).out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("2 |"))
    assert len(lines[at]) <= 120 and "…" in lines[at]
    start = lines[at + 1].index("^")
    assert lines[at][start:].startswith("torch.backends.cudnn.benchmark = True")


def test_version_is_quick_to_ask(run: Run) -> None:
    assert run("--version").out == "d9mlint 0.1.0\n"
    code = "import sys; sys.argv = ['d9mlint', '--version']; from d9mlint.__main__ import main; main()"
    heavy = "print(any(m in sys.modules for m in ('click', 'libcst', 'msgspec', 'yaml')))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; {heavy}"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "False"


def test_no_run_imports_the_parser_and_a_warm_run_starts_no_process_for_it(project: Project) -> None:
    root = project({"train.py": TRAIN})
    loaded = "'libcst' in sys.modules, 'd9mlint.store.pool' in sys.modules"
    code = f"import sys; from d9mlint.cli.app import run; run([]); print({loaded})"
    for expected in ("False True", "False False"):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root)
        assert done.stdout.splitlines()[-1] == expected


def test_a_closed_pipe_is_no_error(project: Project) -> None:
    root = project({f"m{i}.py": "import torch\ntorch.backends.cudnn.benchmark = True\n" for i in range(300)})
    command = f"{sys.executable} -m d9mlint --output-format json . | head -1"
    done = subprocess.run(["bash", "-c", command], cwd=root, capture_output=True, text=True)
    assert done.stderr == ""


def test_help_names_the_commands(run: Run) -> None:
    assert all(name in run("--help").out for name in ("check", "rule", "graph", "clean", "config"))
    assert "--select" in run("check", "--help").out
    assert "_D9MLINT_COMPLETE" in run("completion", "bash").out


SHADOWING = [
    "__future__",
    "abc",
    "ast",
    "click",
    "enum",
    "json",
    "msgspec",
    "os",
    "random",
    "torch",
    "types",
    "yaml",
]


def test_nothing_that_is_linted_is_imported(project: Project) -> None:
    boom = "import sys\nsys.exit('imported')\nimport torch\ntorch.backends.cudnn.benchmark = True\n"
    filler = "".join(f"def f{i}(x):\n    return [x + {i}]\n" for i in range(4000))
    root = project({"filler.py": filler, **{f"{name}.py": boom for name in SHADOWING}})
    program = Path(sys.executable).with_name("d9mlint")
    for _ in ("cold, with worker processes", "warm"):
        done = subprocess.run(
            [program, "--select=DET301", "--jobs=2"], cwd=root, capture_output=True, text=True
        )
        assert done.returncode in (0, 1) and done.stderr == ""
        assert "in 13 files" in done.stdout or "DET301" in done.stdout


def test_all_rule_pages_as_markdown(run: Run, project: Project) -> None:
    """Every page, one after the other, each beginning with its title."""
    done = run("rule", "--all", "--output-format", "markdown")
    assert done.code == 0
    assert done.out.count("\n## What it does\n") == done.out.count("\n## When to suppress\n") > 50
    assert done.out.startswith("# DET001 ")


def test_a_file_of_pins_that_can_not_be_read_is_named(run: Run, project: Project) -> None:
    root = project({"train.py": TRAIN, "requirements.txt": "numpy\n-r gone.txt\n"})
    for _ in ("cold", "warm"):
        got = run("--select", "DET301", cwd=root)
        assert got.err == "warning: requirements.txt:2: includes gone.txt, which does not exist\n"
    assert run("--select", "DET301", "--quiet", cwd=root).err == ""
