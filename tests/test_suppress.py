"""Suppression comments, baselines, and what is reported in spite of them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import notebook

Run = Callable[..., Any]
Project = Callable[[dict[str, str]], Path]

HEAD = "import torch\n\n"
HAZARD = "torch.backends.cudnn.benchmark = True"


def codes(run: Run, root: Path, *arguments: str) -> list[tuple[str, int]]:
    got = run("--select=DET301,DET003", "--output-format=json", *arguments, cwd=root)
    assert got.code in (0, 1), got.err
    return [(f["code"], f["location"]["row"]) for f in json.loads(got.out)]


@pytest.mark.parametrize(
    "code",
    [
        f"{HAZARD}  # noqa: DET301",
        f"{HAZARD}  # noqa: E501, DET301",
        f"{HAZARD}  # NOQA:DET301 because",
        f"{HAZARD}  # noqa",
        f"{HAZARD}  # d9mlint: ignore[DET301]",
        f"{HAZARD}  # d9mlint: ignore[cudnn-benchmark] measured",
        f"{HAZARD}  # d9mlint: ignore",
        f"{HAZARD}  # text # noqa: DET301",
        f"# noqa: DET301\n{HAZARD}",
        f"# noqa\n{HAZARD}",
        f"# text  # noqa: DET301\n{HAZARD}",
        f"# d9mlint: ignore[DET301]\n{HAZARD}",
        f"# d9mlint: file-ignore[DET301]\nx = 1\n{HAZARD}",
        f"# d9mlint: disable[DET301]\n{HAZARD}\n# d9mlint: enable[DET301]",
        "setattr(\n    torch.backends.cudnn,\n    'benchmark',  # noqa: DET301\n    True,\n)",
        "setattr(\n    torch.backends.cudnn,\n    'benchmark',\n    True,\n)  # noqa: DET301",
        "with torch.backends.cudnn.flags(\n    benchmark=True  # noqa: DET301\n):\n    print()",
    ],
)
def test_hidden(run: Run, project: Project, code: str) -> None:
    assert codes(run, project({"a.py": HEAD + code + "\n"})) == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (f"s = '# noqa: DET301'; {HAZARD}", [("DET301", 3)]),
        (f"{HAZARD}  # noqa: DET101", [("DET301", 3)]),
        (f"# propagate_type: (x: Tensor)  # noqa\n{HAZARD}", [("DET301", 4)]),
        ("setattr(\n    torch.backends.cudnn,\n    # text # noqa\n    'benchmark', True)", [("DET301", 3)]),
        (f"{HAZARD}\n# d9mlint: enable[DET301]", [("DET301", 3)]),
        (f"# d9mlint: disable[DET301]\n{HAZARD}\n# d9mlint: enable[DET301]\n{HAZARD}", [("DET301", 6)]),
        ("x = 1  # noqa: DET301", [("DET003", 3)]),
        ("x = 1  # noqa: E501", []),
        ("x = 1  # noqa", []),
        ("x = 1  # d9mlint: ignore", [("DET003", 3)]),
        ("x = 1  # d9mlint: ignroe[DET301]", [("DET003", 3)]),
        ("x = 1  # d9mlint: ignore[cudnn-bench]", [("DET003", 3)]),
        ("x = 1  # noqa: DET301, DET003", []),
    ],
)
def test_not_hidden(run: Run, project: Project, code: str, expected: list[tuple[str, int]]) -> None:
    assert codes(run, project({"a.py": HEAD + code + "\n"})) == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1  # noqa: DET301", "x = 1"),
        ("x = 1  # noqa: DET301, E501", "x = 1  # noqa: E501"),
        ("x = 1  # noqa: E501,DET301", "x = 1  # noqa: E501"),
        ("x = 1  # noqa: DET301 # text", "x = 1  # text"),
        ("x = 1  # text # noqa: DET301", "x = 1  # text"),
        ("# noqa: DET301\nx = 1", "x = 1"),
        (f"{HAZARD}  # d9mlint: ignore[DET301, DET309]", f"{HAZARD}  # d9mlint: ignore[DET301]"),
    ],
)
def test_the_fix_removes_what_hides_nothing(run: Run, project: Project, before: str, after: str) -> None:
    root = project({"a.py": HEAD + before + "\n"})
    run("--select=DET301,DET309,DET003", "--fix", "--no-cache", cwd=root)
    assert (root / "a.py").read_text() == HEAD + after + "\n"


def test_comments_of_rules_that_are_off_are_left_alone(run: Run, project: Project) -> None:
    root = project({"a.py": HEAD + "x = 1  # noqa: DET112\n"})
    assert codes(run, root) == []


def test_per_file_ignores(run: Run, project: Project) -> None:
    config = '[tool.d9mlint.per-file-ignores]\n"old/" = ["DET301"]\n"*_test.py" = ["settings"]\n'
    files = {"a.py": HEAD + HAZARD, "old/b.py": HEAD + HAZARD, "x_test.py": HEAD + HAZARD}
    root = project({**files, "pyproject.toml": config})
    got = json.loads(run("--select=DET301", "--output-format=json", cwd=root).out)
    assert [Path(f["filename"]).name for f in got] == ["a.py"]


def test_add_noqa_hides_everything_and_nothing_is_unused(run: Run, project: Project) -> None:
    code = (
        HEAD + f"{HAZARD}\n{HAZARD}  # noqa: E501\nx = '''\n'''; {HAZARD}; y = '''\n# not here\n'''\n"
        f"if x: \\\n    {HAZARD}\n"
    )
    root = project({"a.py": code})
    got = run("--select=DET301", "--add-noqa=old code", cwd=root)
    assert got.out == "Added 4 suppressions in 1 file.\n"
    text = (root / "a.py").read_text()
    assert f"{HAZARD}  # d9mlint: ignore[DET301] old code\n" in text
    assert f"{HAZARD}  # noqa: E501  # d9mlint: ignore[DET301] old code\n" in text
    assert codes(run, root) == []


def test_the_word_behind_add_noqa_is_a_path_and_no_reason(run: Run, project: Project) -> None:
    root = project({"a.py": HEAD + HAZARD, "old/b.py": HEAD + HAZARD})
    got = run("--select=DET301", "--add-noqa", "old", cwd=root)
    assert got.out == "Added 1 suppression in 1 file.\n"
    assert (root / "a.py").read_text() == HEAD + HAZARD
    assert (root / "old/b.py").read_text().endswith(f"{HAZARD}  # d9mlint: ignore[DET301]")


def test_add_noqa_writes_into_the_cells_of_a_notebook(run: Run, project: Project) -> None:
    root = project({"a.ipynb": notebook([HEAD, f"%time x = 1\n{HAZARD}\n", "y = 2\n"])})
    got = run("--select=DET301", "--add-noqa", cwd=root)
    assert got.out == "Added 1 suppression in 1 file.\n"
    cells = [c["source"] for c in json.loads((root / "a.ipynb").read_text())["cells"]]
    assert "".join(cells[1]) == f"%time x = 1\n{HAZARD}  # d9mlint: ignore[DET301]\n"
    assert ["".join(c) for c in (cells[0], cells[2])] == [HEAD, "y = 2\n"]
    assert run("--select=DET301", cwd=root).code == 0


def test_a_baseline_survives_moved_lines(run: Run, project: Project) -> None:
    root = project({"a.py": HEAD + f"{HAZARD}\n{HAZARD}\n"})
    flags = ("--select=DET301", "--baseline=known.json")
    assert run(*flags, "--update-baseline", cwd=root).out == "Wrote 2 findings to known.json.\n"
    first = (root / "known.json").read_text()
    (root / "a.py").write_text(HEAD + f"x = 1\n\n{HAZARD}\n{HAZARD}\n")
    assert run(*flags, cwd=root).out == "No findings in 1 file.\n2 findings suppressed by the baseline.\n"
    (root / "a.py").write_text(HEAD + f"{HAZARD}\n{HAZARD}\n{HAZARD}\n")
    assert run(*flags, cwd=root).code == 1
    (root / "a.py").write_text(HEAD + f"{HAZARD}\n{HAZARD}\n")
    run(*flags, "--update-baseline", cwd=root)
    assert (root / "known.json").read_text() == first


def test_a_baseline_of_one_file_keeps_what_it_says_of_others(run: Run, project: Project) -> None:
    root = project({"a.py": HEAD + HAZARD + "\n", "b.py": HEAD + HAZARD + "\n"})
    flags = ("--select=DET301", "--baseline=known.json")
    run(*flags, "--update-baseline", cwd=root)
    first = (root / "known.json").read_text()
    run(*flags, "--update-baseline", "a.py", cwd=root)
    assert (root / "known.json").read_text() == first
    (root / "b.py").unlink()
    run(*flags, "--update-baseline", "a.py", cwd=root)
    assert len(json.loads((root / "known.json").read_text())["findings"]) == 1


@pytest.mark.parametrize(
    "text", ["", "[]", '{"version": 99, "findings": []}', '{"version": 1, "findings": [{}]}']
)
def test_a_malformed_baseline_exits_with_2(run: Run, project: Project, text: str) -> None:
    assert run("--baseline=known.json", cwd=project({"known.json": text})).code == 2


def test_only_lines_that_differ_from_a_revision(run: Run, project: Project) -> None:
    root = project({"a.py": HEAD + f"{HAZARD}\nx = 1\n", "b c.py": HEAD})

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@t.example"]
        subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "start")
    assert codes(run, root, "--diff-from", "HEAD") == []
    (root / "a.py").write_text(HEAD + f"{HAZARD}\nx = 1\n{HAZARD}\n")
    (root / "b c.py").write_text(HEAD + HAZARD + "\n")
    (root / "new.py").write_text(HEAD + HAZARD + "\n")
    assert codes(run, root, "--diff-from", "HEAD") == [("DET301", 5), ("DET301", 3), ("DET301", 3)]
