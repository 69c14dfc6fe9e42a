"""Fixes: what they change, and what they leave as it is."""

from __future__ import annotations

import json
import os
import resource
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import notebook, obey_permissions

from d9mlint.base.findings import Applicability, Edit, Finding, Fix, Severity
from d9mlint.base.source import make_source
from d9mlint.config.settings import load_settings
from d9mlint.fix.edits import BrokenFix, apply_edits, without_overlaps
from d9mlint.fix.write import NotWritten, write_source
from d9mlint.fix_rounds import fix
from d9mlint.pipeline import check

Run = Callable[..., Any]
Project = Callable[[dict[str, str]], Path]

CODE = "import torch\n\ntorch.backends.cudnn.benchmark = True\n"
FIXED = CODE.replace("True", "False")


def test_fix_writes_and_reports_what_is_left(run: Run, project: Project) -> None:
    root = project({"a.py": CODE, "b.py": "def f(:\n"})
    got = run("--select=DET301", "--fix", "--output-format=concise", cwd=root)
    assert (got.code, got.err) == (1, "Fixed 1 finding.\n")
    assert got.out.startswith("b.py:1:7: error: DET001") and "DET301" not in got.out
    assert (root / "a.py").read_text() == FIXED


def test_fix_only_reports_nothing(run: Run, project: Project) -> None:
    root = project({"a.py": CODE, "b.py": "def f(:\n"})
    assert run("--select=DET301", "--fix-only", "--quiet", cwd=root) == (0, "", "")
    assert (root / "a.py").read_text() == FIXED


def test_diff_changes_nothing(run: Run, project: Project) -> None:
    root = project({"a.py": CODE})
    got = run("--select=DET301", "--diff", cwd=root)
    assert got.code == 1
    assert got.out == (
        "--- a.py\n+++ a.py\n@@ -1,3 +1,3 @@\n import torch\n \n"
        "-torch.backends.cudnn.benchmark = True\n+torch.backends.cudnn.benchmark = False\n"
    )
    assert (root / "a.py").read_text() == CODE
    (root / "a.py").write_text(FIXED)
    assert tuple(run("--select=DET301", "--diff", cwd=root)) == (0, "", "")


@pytest.mark.parametrize(
    "data",
    [
        CODE.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + CODE.encode(),
        ("# coding: latin-1\ns = 'é'\n" + CODE).encode("latin-1"),
        CODE.rstrip("\n").encode(),
        CODE.replace("import torch", "import torch\n\f\ts = '\u2028'".replace("\t", "")).encode(),
    ],
    ids=["CRLF", "BOM", "latin-1", "no newline at the end", "form feed and line separator"],
)
def test_line_ends_encoding_and_mode_stay(run: Run, project: Project, data: bytes) -> None:
    root = project({})
    path = root / "a.py"
    path.write_bytes(data)
    path.chmod(0o751)
    run("--select=DET301", "--fix", cwd=root)
    assert path.read_bytes() == data.replace(b"True", b"False")
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


def test_a_link_stays_a_link_and_leads_nowhere_else(
    run: Run, project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("elsewhere")
    root = project({"one/d9mlint.toml": "", "one/b.py": CODE, "two/real.py": CODE, ".git/HEAD": ""})
    (outside / "real.py").write_text(CODE)
    (root / "one/a.py").symlink_to(root / "two/real.py")
    (root / "one/far.py").symlink_to(outside / "real.py")
    (root / "one/directory").symlink_to(outside)
    got = run("--select=DET301", "--fix", "--output-format=concise", cwd=root / "one")
    assert (root / "one/a.py").is_symlink() and (root / "two/real.py").read_text() == FIXED
    assert (root / "one/b.py").read_text() == FIXED
    # Beyond the repository nothing is read unless it is named, and nothing is written at all.
    assert (outside / "real.py").read_text() == CODE and (root / "one/far.py").is_symlink()
    assert got.code == 1 and "far.py:1:1: error: DET002" in got.out and "a.py" not in got.out
    assert got.err == "Fixed 2 findings.\n"
    for arguments in (["--fix"], ["--add-noqa"], ["--fix-only"]):
        got = run("--select=DET301", "far.py", "directory/real.py", *arguments, cwd=root / "one")
        assert got.err.count("outside of the project") == 2
    assert (outside / "real.py").read_text() == CODE


def test_a_file_with_several_hard_links_is_left_alone(run: Run, project: Project) -> None:
    root = project({"a.py": CODE, "b.py": CODE})
    os.link(root / "a.py", root / "other-name")
    got = run("--select=DET301", "--fix", "--output-format=concise", cwd=root)
    assert got.err == "warning: a.py was left unchanged: it has 2 hard links.\nFixed 1 finding.\n"
    assert got.code == 1 and got.out.startswith("a.py:3:1")
    assert [(root / n).read_text() for n in ("a.py", "other-name", "b.py")] == [CODE, CODE, FIXED]
    assert run("--select=DET301", "--add-noqa", cwd=root).code == 0
    assert (root / "other-name").read_text() == CODE


@pytest.mark.parametrize("option", ["--fix", "--fix-only", "--add-noqa"])
def test_a_file_that_can_not_be_written_costs_that_file(run: Run, project: Project, option: str) -> None:
    root = project({"a.py": CODE, "b.py": CODE, "locked/c.py": CODE, "z.py": CODE})
    (root / "b.py").chmod(0o444)
    (root / "locked").chmod(0o555)
    got = run("--select=DET301", option, "--output-format=concise", cwd=root, before=obey_permissions)
    assert got.code == 2
    assert "error: b.py was left unchanged: it is read-only.\n" in got.err
    assert "error: locked/c.py was left unchanged: its directory is read-only.\n" in got.err
    assert [(root / n).read_text() for n in ("b.py", "locked/c.py")] == [CODE, CODE]
    assert (root / "a.py").read_text() != CODE and (root / "z.py").read_text() != CODE
    if option == "--fix":
        assert [line.split(":")[0] for line in got.out.splitlines()[:2]] == ["b.py", "locked/c.py"]
    assert not list(root.rglob(".d9mlint-*"))


def test_a_write_that_fails_leaves_the_old_file(run: Run, project: Project) -> None:
    root = project({"a.py": CODE + "#" * 40_000 + "\n", "b.py": CODE})

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    before = (root / "a.py").read_text()
    options = ("--select=DET301", "--fix", "--no-cache", "--jobs=1", "--output-format=concise")
    got = run(*options, cwd=root, before=limit)
    assert got.code == 2 and "error: a.py was left unchanged: File too large.\n" in got.err
    assert got.out.startswith("a.py:3:1") and "b.py" not in got.out
    assert (root / "a.py").read_text() == before and (root / "b.py").read_text() == FIXED
    assert sorted(p.name for p in root.iterdir()) == ["a.py", "b.py", "pyproject.toml"]


def test_mode_owner_and_attributes_stay(run: Run, project: Project) -> None:
    root = project({"a.py": CODE})
    path = root / "a.py"
    if os.geteuid() == 0:
        os.chown(path, 12345, 23456)
    path.chmod(0o4755)
    os.setxattr(path, "user.note", b"mine")
    before = path.stat()
    assert run("--select=DET301", "--fix", cwd=root).code == 0
    after = path.stat()
    assert path.read_text() == FIXED
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert os.getxattr(path, "user.note") == b"mine"
    assert after.st_ino != before.st_ino and after.st_mtime_ns > before.st_mtime_ns


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"outputs": []', '"outputs": [], "outputs": [1]'),
        ("import torch", "import torch # \\r"),
    ],
    ids=["two values of a key", "carriage return"],
)
def test_a_notebook_of_which_something_would_be_lost_is_left_alone(
    run: Run, project: Project, old: str, new: str
) -> None:
    text = notebook([CODE]).replace(old, new, 1)
    root = project({"a.ipynb": text})
    got = run("--select=DET301,DET002", "--fix", "--output-format=concise", cwd=root)
    assert (root / "a.ipynb").read_text() == text
    assert (
        got.code == 1 and "DET002 the fix of DET301 was not applied: the " in got.out and "DET301" in got.out
    )


def test_text_that_its_encoding_would_not_give_back_is_left_alone(run: Run, project: Project) -> None:
    root = project({})
    data = b"# coding: utf-7\n# +AGE-\n" + CODE.encode()
    (root / "a.py").write_bytes(data)
    got = run("--select=DET301,DET002", "--fix", "--output-format=concise", cwd=root)
    assert (root / "a.py").read_bytes() == data and "would not stay the same in utf-7" in got.out


def test_a_notebook_keeps_everything_but_the_cell(run: Run, project: Project) -> None:
    text = notebook(["%matplotlib inline\nimport torch\n", "torch.backends.cudnn.benchmark = True\n"])
    data = json.loads(text)
    data["cells"][0]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["é\n"]}]
    before = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    root = project({"a.ipynb": before})
    got = run("--select=DET301", "--output-format=concise", cwd=root)
    assert got.out.startswith("a.ipynb:cell 2:1:1: error: DET301")
    run("--select=DET301", "--fix", cwd=root)
    assert (root / "a.ipynb").read_text() == before.replace("= True", "= False")


_CELLS = ["import torch\n\nprint('é', 1e5)\ntorch.backends.cudnn.benchmark = True\n"]


@pytest.mark.parametrize(
    "written",
    [
        lambda data: json.dumps(data, indent=1).replace("\n", "\r\n"),
        lambda data: "\ufeff" + json.dumps(data, indent="\t", ensure_ascii=False),
        lambda data: json.dumps(data, separators=(",", ":"), sort_keys=True),
        lambda data: "\n\n" + json.dumps(data, indent=2).replace("[]", "[ 1.0E5, 1e999 ]") + "\n\n",
        lambda data: json.dumps(data).replace("é", "\\u00e9"),
    ],
    ids=["CRLF", "byte order mark", "one line", "numbers and blank lines", "escaped"],
)
@pytest.mark.parametrize("joined", [False, True])
def test_a_notebook_stays_as_it_is_written(
    run: Run, project: Project, written: Callable[[Any], str], joined: bool
) -> None:
    data = json.loads(notebook(_CELLS))
    if joined:
        data["cells"][0]["source"] = _CELLS[0]
    before = written(data).encode()
    root = project({})
    (root / "a.ipynb").write_bytes(before)
    assert run("--select=DET301", "--fix", cwd=root).code == 0
    assert (root / "a.ipynb").read_bytes() == before.replace(b"= True", b"= False")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("first", [[], ["x = 1"], ["# seeds\n", "x = 1"]])
def test_lines_that_are_added_to_a_cell_are_written_like_others(
    run: Run, project: Project, newline: str, first: list[str]
) -> None:
    cells = ["".join(first), "import torch\nprint(torch.rand(3))\n"]
    root = project({})
    (root / "a.ipynb").write_bytes(notebook(cells).replace("\n", newline).encode())
    run("--select=DET101", "--fix", "--unsafe-fixes", cwd=root)
    after = (root / "a.ipynb").read_bytes().decode()
    data = json.loads(after)
    assert "manual_seed" in after
    assert after == (json.dumps(data, indent=1) + "\n").replace("\n", newline)


def finding(*edits: Edit, path: str = "/a.py") -> Finding:
    return Finding("DET301", path, 0, 1, "m", "h", Severity.ERROR, fix=Fix(Applicability.SAFE, "f", edits))


def test_a_fix_that_breaks_the_file_is_dropped_and_reported(project: Project) -> None:
    root = project({"a.py": CODE})
    overrides = {"select": ["DET301"], "cache": False}
    config = load_settings(str(root), overrides=overrides)

    def lint(overlay: Any) -> Any:
        result = check([str(root)], config, overlay=overlay)
        broken = [
            i._replace(finding=finding(Edit(0, 6, "imp ort"), path=str(root / "a.py"))) for i in result.items
        ]
        return result._replace(items=(*result.items, *broken[:1]))

    fixed = fix(lint, {}, False)
    assert fixed.changes == {str(root / "a.py"): FIXED.encode()}
    assert [i.finding.code for i in fixed.result.items] == ["DET002"]
    assert "would no longer parse" in fixed.result.items[0].finding.message


def test_edits_outside_of_the_file_or_the_encoding_are_refused() -> None:
    source = make_source("/a.py", b"# coding: latin-1\nx = 1\n")
    with pytest.raises(BrokenFix, match="outside"):
        apply_edits(source, [Edit(0, 99, "")])
    with pytest.raises(BrokenFix, match=r"latin-1|iso8859-1"):
        apply_edits(source, [Edit(22, 23, "'名'")])
    with pytest.raises(BrokenFix, match="overlap"):
        apply_edits(source, [Edit(18, 20, "y"), Edit(19, 21, "z")])


def test_edits_that_touch_wait_for_the_next_round() -> None:
    first, second, third = finding(Edit(0, 4, "a")), finding(Edit(3, 5, "b")), finding(Edit(5, 6, "c"))
    assert without_overlaps([first, second, third]) == [first, third]
    same = finding(Edit(0, 0, "import os\n"), Edit(9, 10, "x"))
    shared = finding(Edit(0, 0, "import os\n"), Edit(11, 12, "y"))
    assert without_overlaps([same, shared]) == [same, shared]
    elsewhere = finding(Edit(20, 20, "\n\nimport os"), Edit(23, 24, "z"))
    other = finding(Edit(20, 20, "\n\nimport sys"), Edit(23, 24, "z"))
    assert without_overlaps([same, elsewhere, other]) == [same, other]


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("mine")
    with pytest.raises(NotWritten, match="was changed"):
        write_source(str(path), b"new", b"old", str(tmp_path))
    assert path.read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["a.py"]


LINES = [
    "torch.backends.cudnn.benchmark = True",
    "cudnn.benchmark = 1",
    "setattr(torch.backends.cudnn, 'benchmark', True)",
    "x = 1  # noqa: DET301",
    "for p in os.listdir('.'): print(p)",
    "y = [p for p in glob.glob('*') if p]",
    "print(torch.randn(3))",
    "np.random.seed(None)",
    "torch.use_deterministic_algorithms(True, warn_only=True)",
    "if x: torch.backends.cudnn.benchmark = (True)  # é名",
    "# d9mlint: ignore[DET209]",
]
IMPORTS = "import glob, os, torch\nimport numpy as np\nfrom torch.backends import cudnn\nx = 0\n"


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    chosen=st.lists(st.sampled_from(LINES), min_size=1, max_size=6),
    newline=st.sampled_from(["\n", "\r\n"]),
    indented=st.booleans(),
)
def test_a_fixed_file_parses_lints_clean_of_what_was_fixed_and_is_stable(
    tmp_path_factory: pytest.TempPathFactory, chosen: list[str], newline: str, indented: bool
) -> None:
    root = tmp_path_factory.mktemp("fixed")
    body = "\n".join(("    " if indented else "") + line for line in chosen)
    text = (
        IMPORTS
        + ("def main():\n" if indented else "")
        + body
        + ("\n    pass\nmain()\n" if indented else "\n")
    )
    (root / "pyproject.toml").write_text("")
    (root / "a.py").write_bytes(text.replace("\n", newline).encode())
    config = load_settings(
        str(root), overrides={"select": ["ALL"], "cache": False, "unsafe-fixes": True, "jobs": 1}
    )

    def lint(overlay: Any) -> Any:
        return check([str(root)], config, overlay=overlay)

    fixed = fix(lint, {}, True)
    path = str(root / "a.py")
    data = fixed.changes.get(path, (root / "a.py").read_bytes())
    compile(data, "a.py", "exec")
    assert not [i for i in fixed.result.items if i.finding.fix and i.finding.fix.applicability != "display"]
    again = fix(lint, {path: data}, True)
    assert again.changes == {} and again.number == 0
    assert data.count(b"\r\n") == (data.count(b"\n") if newline == "\r\n" else 0)


def test_the_diff_of_a_notebook_names_the_cells(run: Run, project: Project) -> None:
    text = notebook(["import torch\n\nx = 1", "print(x)", "torch.backends.cudnn.benchmark = True\nx = 2"])
    out = run("--diff", "--select", "DET301", cwd=project({"n.ipynb": text})).out
    assert out == (
        "--- n.ipynb:cell 3\n+++ n.ipynb:cell 3\n@@ -1,2 +1,2 @@\n-torch.backends.cudnn.benchmark = True\n"
        "+torch.backends.cudnn.benchmark = False\n x = 2\n"
    )


@pytest.mark.parametrize("magic", ["", "%%capture\n"])
def test_what_a_fix_puts_before_a_function_is_in_its_cell(run: Run, project: Project, magic: str) -> None:
    head = (
        "import random\nimport numpy as np\nimport torch\nfrom torch.utils.data import DataLoader, Dataset\n"
    )
    data = (
        "class Data(Dataset):\n    def __len__(self):\n        return 8\n\n"
        "    def __getitem__(self, i):\n        return np.random.rand(3)\n"
    )
    loop = "def one(k):\n    for x in DataLoader(Data(), num_workers=2):\n        print(x)\n\n\none(3)\n"
    root = project({"n.ipynb": notebook([head, data, magic + loop])})
    out = run("--diff", "--unsafe-fixes", "--select", "DET201", cwd=root).out
    assert out.count("+++") == 1 and "+++ n.ipynb:cell 3\n" in out and "+def seed_worker" in out
