"""The bundled example: a program that runs, and whose hazards are found."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import ROOT, lint

EXAMPLE = ROOT / "tests" / "example_project"
Run = Callable[..., Any]


@pytest.fixture
def example(tmp_path: Path) -> Path:
    target = tmp_path / "example"
    shutil.copytree(
        EXAMPLE, target, ignore=shutil.ignore_patterns(".d9mlint_cache", "data", "*.pt", "__pycache__")
    )
    return target


def test_its_hazards_are_found(example: Path) -> None:
    result = lint(example, {})
    found = [
        (
            i.finding.code,
            Path(i.finding.path).name,
            result.sources[i.finding.path].row_column(i.finding.start)[0],
        )
        for i in result.items
    ]
    for expected in [
        ("DET209", "data.py", 12),
        ("DET209", "data.py", 13),
        ("DET201", "data.py", 33),
        ("DET108", "model.py", 10),
        ("DET302", "train.py", 33),
        ("DET301", "train.py", 42),
    ]:
        assert expected in found
    assert not [place for place in found if place[1] == "make_data.py"]


def test_the_readme_shows_what_is_said(run: Run) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = readme.split("Example output:\n\n```\n")[1].split("\n```")[0]
    got = run("--no-cache", cwd=EXAMPLE)
    assert shown in got.out


def test_it_runs_and_learns(example: Path) -> None:
    pytest.importorskip("torch")

    def python(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=example, capture_output=True, text=True, timeout=900
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    python("make_data.py")
    losses = [float(line.split()[-1]) for line in python("train.py", "--epochs", "2").splitlines()]
    assert losses[1] < losses[0]
    assert python("train.py", "--epochs", "3", "--resume").startswith("epoch 2: ")
