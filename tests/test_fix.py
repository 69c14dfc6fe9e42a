"""Fixes: what they change, and what they leave as it is."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import notebook

from d9mlint.base.errors import UsageError
from d9mlint.base.findings import Applicability, Edit, Finding, Fix, Severity
from d9mlint.base.source import make_source
from d9mlint.config.settings import load_settings
from d9mlint.fix.edits import BrokenFix, apply_edits, without_overlaps
from d9mlint.fix.rounds import fix, write_atomically
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


def test_a_link_stays_a_link(run: Run, project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = project({})
    target = tmp_path_factory.mktemp("elsewhere") / "real.py"
    target.write_text(CODE)
    os.symlink(target, root / "a.py")
    run("--select=DET301", "--fix", cwd=root)
    assert (root / "a.py").is_symlink() and target.read_text() == FIXED


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
    assert "would not parse" in fixed.result.items[0].finding.message


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


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("mine")
    with pytest.raises(UsageError, match="was changed"):
        write_atomically(str(path), b"new", b"old")
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


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    assert again.changes == {} and again.mended == 0
    assert data.count(b"\r\n") == (data.count(b"\n") if newline == "\r\n" else 0)
