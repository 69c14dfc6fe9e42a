"""``--diff-from``: no finding on a changed line is missed, whatever git is configured to do."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import notebook

from d9mlint.filters.changes import changed_rows

Run = Callable[..., Any]
Project = Callable[[dict[str, str]], Path]

BAD = "torch.backends.cudnn.benchmark = True\n"


def git(root: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@t.example", "-c", "commit.gpgsign=false"]
    return subprocess.run(
        ["git", *identity, *arguments], cwd=root, check=True, capture_output=True, text=True
    ).stdout


def committed(root: Path) -> Path:
    git(root, "init", "-q", ".")
    git(root, "add", "-A")
    git(root, "commit", "--allow-empty", "-qm", "first")
    return root


def found(
    run: Run, root: Path, *options: str, revision: str = "HEAD", **kwargs: Any
) -> list[tuple[str, Any, int]]:
    got = run(
        "--select=DET301", "--output-format=json", f"--diff-from={revision}", *options, cwd=root, **kwargs
    )
    note = "note: 1 file with Python code is not read because of .gitignore; `--no-respect-gitignore` includes it.\n"
    assert got.code in (0, 1) and got.err.removeprefix(note) == "", got.err
    return [(Path(f["filename"]).name, f["cell"], f["location"]["row"]) for f in json.loads(got.out)]


def test_changed_new_and_unchanged_files(run: Run, project: Project) -> None:
    root = committed(project({"a.py": "import torch\n" + BAD, "same.py": "import torch\n" + BAD}))
    assert found(run, root) == []
    (root / "a.py").write_text("import torch\nx = 1\n" + BAD + BAD.replace("True", "1"))
    (root / 'neu é\t"q".py').write_text("import torch\n" + BAD)
    (root / ".gitignore").write_text("ignored.py\n")
    (root / "ignored.py").write_text("import torch\n" + BAD)
    assert found(run, root) == [("a.py", None, 4), ('neu é\t"q".py', None, 2)]
    assert found(run, root, "ignored.py") == [("ignored.py", None, 2)]
    git(root, "add", "-A")
    git(root, "commit", "-qm", "second")
    assert found(run, root) == []
    assert found(run, root, revision="HEAD~1") == [("a.py", None, 4), ('neu é\t"q".py', None, 2)]


def test_rows_of_a_notebook_are_those_of_its_cells(run: Run, project: Project) -> None:
    cells = ["import torch\n", "x = 1\n" * 40, "y = 1\n" + BAD]
    root = committed(project({"n.ipynb": notebook(cells)}))
    assert found(run, root) == []
    data = json.loads((root / "n.ipynb").read_text())
    data["cells"][1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["1\n"] * 30}]
    data["cells"].insert(0, {"cell_type": "markdown", "metadata": {}, "source": ["# new\n"]})
    (root / "n.ipynb").write_text(json.dumps(data))
    assert found(run, root) == []
    cells[2] = "y = 2\n" + BAD + BAD.replace("True", "(True)")
    (root / "n.ipynb").write_text(notebook(cells))
    assert found(run, root) == [("n.ipynb", 3, 3)]


@pytest.mark.parametrize(
    "line",
    [
        "++ 1; ",
        "+ +1; ",
        "-- 1; ",
        "'''\n+++ b/other.py\n@@ -1 +1 @@\n--- a\n diff --git a b\n'''; ",
        "s = 'a\fb\vc\x1cd\x1de\x85f\u2028g\u2029h'; ",
        "\f",
        "s = '\x1b[m'; ",
        "s = 'x\f+++ other.py'; ",
        "s = 'x\u2028@@ -0,0 +900,1 @@'; ",
    ],
    ids=["++", "+ +", "--", "patch", "separators", "form feed", "escape", "file header", "hunk header"],
)
def test_only_line_feeds_end_lines_and_nothing_in_a_line_is_a_header(
    run: Run, project: Project, line: str
) -> None:
    root = committed(project({"a.py": "import torch\n\n\n" + "y = 1\n" * 5}))
    rows = line.count("\n")
    (root / "a.py").write_text(f"import torch\n\n{line}{BAD}\n" + "y = 1\n" * 5 + BAD, newline="")
    assert found(run, root) == [("a.py", None, 3 + rows), ("a.py", None, 10 + rows)]
    # The lines before and after a line that has separators in it are counted right.
    (root / "b.py").write_text(f"import torch\n\n{line}x = 1\n{BAD}" + BAD, newline="")
    git(root, "add", "b.py")
    git(root, "commit", "-qm", "b")
    (root / "b.py").write_text(f"import torch\n\n{line}x = 1\n{BAD}" + BAD.replace("True", "1"), newline="")
    assert ("b.py", None, 5 + rows) in found(run, root)
    assert ("b.py", None, 4 + rows) not in found(run, root)


def test_line_ends_and_encodings_are_no_changes(run: Run, project: Project) -> None:
    root = committed(project({"a.py": "import torch\n" + BAD, "b.py": "import torch\n" + BAD}))
    (root / "a.py").write_bytes(("import torch\n" + BAD).replace("\n", "\r\n").encode())
    (root / "b.py").write_bytes(b"\xef\xbb\xbf" + ("import torch\n" + BAD).encode())
    assert found(run, root) == []


CONFIG = {
    "diff.relative": "true",
    "diff.noprefix": "true",
    "diff.mnemonicPrefix": "true",
    "diff.external": "{boom}",
    "diff.algorithm": "patience",
    "diff.context": "20",
    "diff.interHunkContext": "20",
    "diff.wordRegex": ".",
    "diff.ignoreSubmodules": "all",
    "diff.orderFile": "none",
    "diff.x.textconv": "{boom}",
    "diff.x.command": "{boom}",
    "diff.x.binary": "true",
    "filter.x.clean": "{boom}",
    "filter.x.smudge": "{boom}",
    "filter.x.process": "{boom}",
    "core.fsmonitor": "{boom}",
    "core.pager": "{boom}",
    "core.sshCommand": "{boom}",
    "core.hooksPath": "hooks",
    "core.quotePath": "false",
    "core.attributesFile": "none",
    "core.untrackedCache": "true",
    "color.ui": "always",
    "color.diff": "always",
    "pager.diff": "true",
    "pager.ls-tree": "{boom}",
    "alias.ls-tree": "!{boom}",
    "alias.cat-file": "!{boom}",
    "status.showUntrackedFiles": "no",
    "trace2.eventTarget": "/tmp/none",
}


@pytest.mark.parametrize("inside", [".", "pkg"])
def test_nothing_that_git_is_configured_to_do_counts_or_runs(
    run: Run, project: Project, tmp_path_factory: pytest.TempPathFactory, inside: str
) -> None:
    attributes = "*.py diff=x filter=x -text\nbinary.py binary\n"
    root = committed(
        project({"a.py": "import torch\n", "pkg/b.py": "import torch\n", "pkg/binary.py": "import torch\n"})
    )
    (root / ".gitattributes").write_text(attributes)
    ran = tmp_path_factory.mktemp("ran") / "it"
    boom = root / "boom.sh"
    boom.write_text(f"#!/bin/sh\ntouch {ran}\n")
    boom.chmod(0o755)
    for key, value in CONFIG.items():
        git(root, "config", key, value.format(boom=boom))
    names = ["b.py", "binary.py"] if inside == "pkg" else ["a.py", "b.py", "binary.py"]
    for path in (root / "a.py", root / "pkg/b.py", root / "pkg/binary.py"):
        path.write_text("import torch\n" + BAD)
    other = committed(tmp_path_factory.mktemp("other"))
    hostile = {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / "none"),
        "GIT_OBJECT_DIRECTORY": str(other / ".git/objects"),
        "GIT_EXTERNAL_DIFF": str(boom),
        "GIT_PAGER": str(boom),
        "GIT_SSH_COMMAND": str(boom),
        "GIT_DIFF_OPTS": "-u20",
        "GIT_PREFIX": "pkg/",
        "GIT_NAMESPACE": "x",
        "GIT_LITERAL_PATHSPECS": "0",
        "GIT_TRACE": "1",
        "GIT_TRACE_SETUP": "1",
    }
    for environment in ({}, hostile):
        assert found(run, root, inside, env=environment) == [(name, None, 2) for name in names]
        assert found(run, root / inside, env=environment) == [(name, None, 2) for name in names]
    assert not ran.exists()


def test_objects_that_a_partial_clone_lacks_are_not_fetched(
    run: Run, project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = committed(project({"a.py": "import torch\n" + BAD, "b.py": "import torch\n" + BAD}))
    (root / "a.py").write_text("import torch\nx = 1\n" + BAD)
    name = git(root, "rev-parse", "HEAD:a.py").strip()
    (root / f".git/objects/{name[:2]}/{name[2:]}").unlink()
    ran = tmp_path_factory.mktemp("ran") / "it"
    for key, value in {
        "remote.origin.url": f"ext::touch {ran}",
        "remote.origin.promisor": "true",
        "remote.origin.partialclonefilter": "blob:none",
        "extensions.partialClone": "origin",
        "core.repositoryformatversion": "1",
        "protocol.ext.allow": "always",
    }.items():
        git(root, "config", key, value)
    # What the old line was cannot be known.
    assert found(run, root) == [("a.py", None, 3)]
    assert not ran.exists()


def test_a_change_far_from_where_the_parser_gives_up(run: Run, project: Project) -> None:
    root = committed(project({"a.py": "x = (1)\n" + "y = 1\n" * 20, "old.py": "x = (\n"}))
    (root / "a.py").write_text("x = ((1)\n" + "y = 1\n" * 20)
    got = run("--diff-from=HEAD", "--output-format=concise", cwd=root)
    assert "a.py:" in got.out and "DET001" in got.out and "old.py" not in got.out


def test_a_change_inside_of_the_flagged_expression(run: Run, project: Project) -> None:
    call = "loader = DataLoader(\n    data,\n    batch_size=2,\n    shuffle={},\n)\n"
    text = (
        "from torch.utils.data import DataLoader\ndata = list(range(9))\n{}for x in loader:\n    print(x)\n"
    )
    root = committed(project({"a.py": text.format(call.format("False"))}))
    (root / "a.py").write_text(text.format(call.format("True")))
    got = run(
        "--select=DET202", "--min-severity=advice", "--diff-from=HEAD", "--output-format=json", cwd=root
    )
    assert [f["code"] for f in json.loads(got.out)] == ["DET202"]


def test_links_and_nested_repositories_are_not_missed(
    run: Run, project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "real.py"
    outside.write_text("import torch\n" + BAD)
    root = project({"a.py": ""})
    (root / "link.py").symlink_to(outside)
    committed(root)
    (root / "nested").mkdir()
    (root / "nested/c.py").write_text("import torch\n" + BAD)
    committed(root / "nested")
    # What they were at the revision is not in this repository; a link out of it is not read (DET002).
    assert found(run, root) == [("link.py", None, 1), ("c.py", None, 2)]


@pytest.mark.parametrize("revision", ["none", "--output=x", "HEAD:a.py", "a..b", "", "@{upstream}", "-"])
def test_what_is_no_revision_is_said(run: Run, project: Project, revision: str) -> None:
    root = committed(project({"a.py": "import torch\n" + BAD}))
    before = sorted(p.name for p in root.iterdir() if p.name != ".d9mlint_cache")
    got = run(f"--diff-from={revision}", cwd=root)
    assert got.code == 2 and got.out == "" and got.err.startswith("error: ") and got.err.count("\n") == 1
    assert sorted(p.name for p in root.iterdir() if p.name != ".d9mlint_cache") == before


def test_names_that_are_not_utf_8(run: Run, project: Project) -> None:
    root = project({"a.py": ""})
    name = os.fsencode(root) + b"/caf\xe9.py"
    for text in ("import torch\n" + BAD, "import torch\nx = 1\n" + BAD):
        with open(name, "wb") as stream:
            stream.write(text.encode())
        if not (root / ".git").exists():
            committed(root)
    got = run("--select=DET301", "--diff-from=HEAD", cwd=root)
    assert (got.code, got.err) == (0, "")


def test_rows_that_are_not_changed_are_the_same_in_both() -> None:
    random_ = random.Random(0)
    for _ in range(300):
        lines = [
            random_.choice("abcdefghij") * random_.choice([1, 1, 9]) for _ in range(random_.randrange(40))
        ]
        other = list(lines)
        for _ in range(random_.randrange(6)):
            at = random_.randrange(len(other) + 1)
            other[at : at + random_.randrange(3)] = random_.choices("abcxyz", k=random_.randrange(3))
        rows = changed_rows(lines, other)
        changed = {row for first, last in rows for row in range(first, last + 1)}
        kept = iter(lines)
        assert all(x in kept for row, x in enumerate(other, 1) if row not in changed)
        assert changed_rows(lines, lines) == []


def test_comparing_takes_time_by_the_number_of_lines_only() -> None:
    random_ = random.Random(0)
    many = [random_.choice(["a", "b"]) for _ in range(100_000)]
    assert changed_rows(many, [random_.choice(["a", "b"]) for _ in range(100_000)])
    ordered = [str(i) for i in range(100_000)]
    assert changed_rows(ordered, ordered[::-1])
