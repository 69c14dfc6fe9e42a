"""Programs whose runs differ are fixed on the command line, and are then equal bit for bit in three runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support import ROOT, blocks

FAST = ("NumPy", "Python")
"""Programs that start quickly; all others import a framework."""


class Example(NamedTuple):
    """A program: its title, its texts by path, and the file that is run."""

    title: str
    files: dict[str, str]
    script: str


def _examples() -> list[Example]:
    found: dict[str, dict[str, str]] = {}
    for block in blocks((ROOT / "tests/data/irreproducible.md").read_text(encoding="utf-8")):
        name = block.headings[2].removeprefix("file: ").strip("`")
        text = "" if block.text == "\n" else block.text
        found.setdefault(block.headings[1], {})[name] = text
    return [Example(title, files, next(iter(files))) for title, files in found.items()]


EXAMPLES = [
    pytest.param(one, marks=[] if one.title.startswith(FAST) else [pytest.mark.full], id=one.title)
    for one in _examples()
]


def _output(example: Example, directory: Path) -> str:
    """What a fresh process prints. Hashes of strings are drawn anew in each, and nothing is downloaded."""
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONHASHSEED", "CUBLAS_WORKSPACE_CONFIG")}
    env |= {"HF_HUB_OFFLINE": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, example.script], cwd=directory, env=env, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines, done.stderr
    return lines[-1]


@pytest.mark.parametrize("example", EXAMPLES)
def test_runs_are_equal_after_the_fix(
    run: Callable[..., Any], project: Callable[[dict[str, str]], Path], example: Example
) -> None:
    root = project(example.files)
    first = _output(example, root)
    assert any(_output(example, root) != first for _ in range(3)), "the runs should differ before the fix"
    run("--fix", "--unsafe-fixes", "--no-cache", ".", cwd=root)
    fixed = {name: (root / name).read_text() for name in example.files}
    assert fixed != example.files
    assert len({_output(example, root) for _ in range(3)}) == 1, "\n".join(fixed.values())
    again = run("--fix", "--unsafe-fixes", "--no-cache", "--diff", ".", cwd=root)
    assert again.out == ""
