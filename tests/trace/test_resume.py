"""``trace --resume-at``: what a checkpoint does not keep is named, each kind by a small program.

The first line of a program says what is expected: the verdict and a piece of the text, after which the marked
line is to be named where there is one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import needs

from d9mlint.trace import journal
from d9mlint.trace.compare import Unequal
from d9mlint.trace.journal import NOTE, OP, RNG, STATE, STEP, Journal, Writer
from d9mlint.trace.resume import compare

PROGRAMS = Path(__file__).parent / "programs" / "resume"
EPOCHS = {"sampler_epoch", "loader_position", "loader_generator", "iterable_shuffle"}
"""Programs whose second epoch is interrupted."""


def resumed(directory: Path, program: Path, *options: str) -> dict[str, Any]:
    shutil.copy(program, directory)
    report = directory / "report.json"
    command = [*(sys.executable, "-m", "d9mlint", "trace"), "--output-format", "json", "-o", str(report)]
    run = subprocess.run(
        [*command, *options, "--resume-args=--resume", program.name],
        cwd=directory,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert report.exists(), run.stderr
    found: dict[str, Any] = json.loads(report.read_text())
    assert run.returncode == {"equal": 0, "diverged": 1, "unknown": 2}[found["outcome"]], run.stderr
    return found


@needs("torch")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(p.stem, marks=[] if p.stem == "scheduler" else [pytest.mark.full])
        for p in sorted(PROGRAMS.glob("*.py"))
    ],
)
def test_what_a_checkpoint_lacks_is_named(name: str, tmp_path: Path) -> None:
    program = PROGRAMS / f"{name}.py"
    lines = program.read_text().splitlines()
    expected = lines[0].removeprefix("# expect: ")
    step = 6 if name in EPOCHS else 4
    report = resumed(tmp_path, program, "--resume-at", str(step))
    if expected == "equal":
        assert report["outcome"] == "equal", report["difference"] or report["reason"]
        assert report["resume"]["steps_compared"] == 2
        return
    difference = report["difference"]
    assert difference is not None, report["reason"]
    verdict, _, text = expected.partition(" |")
    assert difference["verdict"] == verdict
    assert text.strip() in f"{difference['first']['name']} {difference['reason']}", difference
    marked = next((n for n, line in enumerate(lines, 1) if line.endswith("# line")), 0)
    row = marked or next(n for n, line in enumerate(lines, 1) if line.endswith("# saved"))
    assert difference["place"][0]["row"] == row
    assert report["resume"]["checkpoint_step"] == step
    # The files of the uninterrupted run are those that stay.
    import torch

    state = torch.load(tmp_path / "ckpt.pt", weights_only=False)
    assert state.get("step", 6) == 6


@pytest.mark.full
@needs("torch")
def test_a_step_after_the_last_one_leaves_nothing_to_compare(tmp_path: Path) -> None:
    report = resumed(tmp_path, PROGRAMS / "complete.py", "--resume-at", "6")
    assert report["outcome"] == "unknown"
    assert report["reason"] == "the program takes 6 optimizer steps; --resume-at 6 leaves none to compare"


# Recordings without running torch.

NAMES = (
    "aten.mul",
    "SGD.step",
    "parameter: Net.weight",
    "generator: python generator",
    "python generator after the step",
    "seed random.setstate",
    "attribute: `p` of Net",
)
MUL, STEPPED, WEIGHT, PYTHON, AFTER, SETSTATE, P = range(1, 8)


def recording(path: Path, *steps: list[bytes], events: dict[str, Any] | None = None) -> Journal:
    writer = Writer(str(path), {"key": "main", "pid": 1})
    table = {
        "stream": ["main"],
        "name": list(NAMES),
        "path": ["/p/t.py:3:<module>"],
        "args": ["0.1", "0.2"],
    }
    writer.json(b"T", table)
    for records in steps:
        writer.records(b"".join([*records, record(STEP, STEPPED)]))
    if events:
        writer.json(b"J", events)
    writer.json(b"E", {"steps": len(steps)})
    writer.close()
    return Journal(str(path)).update()


def record(kind: int, name: int, digest: int = 0, args: int = 0) -> bytes:
    return journal.RECORD.pack(kind, 0, 1, name, 1, 0, 0, args, 0, digest)


def step(weight: int, product: int, python: int = 1, p: int = 1) -> list[bytes]:
    return [
        record(OP, MUL, product),
        record(STATE, WEIGHT, weight),
        record(STATE, PYTHON, python),
        record(STATE, P, p, p),
        record(STATE, AFTER, python + 50),
    ]


def verdict(tmp_path: Path, resumed: list[list[bytes]], **events: Any) -> tuple[str, str]:
    uninterrupted = [step(weight=k, product=10 + k, python=k) for k in range(1, 5)]
    first = recording(tmp_path / "a", *uninterrupted)
    ended = recording(tmp_path / "b", *uninterrupted[:2], events={"written": {"/c": [2, ""]}})
    third = recording(tmp_path / "c", *resumed, events={"read": {"/c": [0, ""]}, **events})
    found, _ = compare([first], [ended], [third], 2, complete=True)
    return ("equal", "") if found is None else (found.verdict, found.reason)


def test_a_resumed_run_that_continues_is_equal(tmp_path: Path) -> None:
    assert verdict(tmp_path, [step(3, 13, 3), step(4, 14, 4)]) == ("equal", "")


def test_what_is_executed_before_the_first_step_does_not_count(tmp_path: Path) -> None:
    setup = [record(OP, MUL, 999), record(RNG, MUL, 998)]
    assert verdict(tmp_path, [[*setup, *step(3, 13, 3)], step(4, 14, 4)]) == ("equal", "")


def test_an_attribute_that_differs_alone_is_no_difference(tmp_path: Path) -> None:
    assert verdict(tmp_path, [step(3, 13, 3, p=2), step(4, 14, 4, p=2)]) == ("equal", "")
    (tmp_path / "more").mkdir()
    found = verdict(tmp_path / "more", [step(3, 77, 3, p=2), step(4, 78, 4, p=2)])
    text = "the attribute `p` of Net is not restored: 0.1 in the uninterrupted run, 0.2 in the resumed one"
    assert found == ("state", text)


def test_a_generator_that_was_restored_is_not_blamed(tmp_path: Path) -> None:
    restored = [record(NOTE, SETSTATE, 52)]
    found = verdict(tmp_path, [[*restored, *step(3, 77, 9)], step(4, 14, 4)])
    assert found[0] == "state" and "not deterministic" in found[1]
    (tmp_path / "more").mkdir()
    found = verdict(tmp_path / "more", [step(3, 77, 9), step(4, 14, 4)])
    assert found == ("rng", "the state of the python generator is not restored: its content differs")


def test_the_wrong_number_of_steps_is_a_difference(tmp_path: Path) -> None:
    found = verdict(tmp_path, [step(3, 13, 3), step(4, 14, 4), step(5, 15, 5)])
    assert found == ("structure", "the resumed run takes 3 optimizer steps where 2 were left")


def test_parameters_tell_which_checkpoint_was_read(tmp_path: Path) -> None:
    assert verdict(tmp_path, [step(2, 12, 2), step(3, 13, 3), step(4, 14, 4)], read={}) == ("equal", "")
    (tmp_path / "more").mkdir()
    found = verdict(tmp_path / "more", [step(1, 11, 1), step(2, 12, 2)])
    assert found[0] == "state" and "begins with the parameters after step 0" in found[1]


def test_a_resumed_run_without_a_step_cannot_be_compared(tmp_path: Path) -> None:
    with pytest.raises(Unequal, match="took no optimizer step"):
        verdict(tmp_path, [])
