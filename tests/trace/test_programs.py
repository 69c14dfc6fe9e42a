"""Whole programs under ``d9mlint trace``: hazards are named with their line and verdict, clean ones are equal.

A program says in a comment what is expected: ``# diverges: VERDICT`` stands on the line that is to be named, with
``in PROCESS`` where another process than the main one has to name it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import needs, until_it_strikes

pytestmark = needs("torch")

PROGRAMS = Path(__file__).parent / "programs"
EXPECTED = re.compile(r"# diverges: (\w+)(?: in (.+))?")
TIMEOUT = 1200
QUICK = {"backward_of_index", "time_seed"}
QUICK_CLEAN = {"loader_workers"}
LAUNCHED = ("ddp", "fsdp")
"""Programs of several processes, which a launcher starts, by how their names begin."""


def environment() -> dict[str, str]:
    """The environment of a user whose PATH has the launchers of the installed packages."""
    import torch

    scripts = Path(torch.__file__).parents[4] / "bin"
    path = os.pathsep.join([str(Path(sys.executable).parent), str(scripts), os.environ["PATH"]])
    return {
        **os.environ,
        "PATH": path,
        "OMP_NUM_THREADS": "2",
        "HF_HUB_OFFLINE": "1",
        "WANDB_MODE": "disabled",
    }


def traced(directory: Path, name: str, *options: str) -> dict[str, Any]:
    """The JSON report of a program of this directory, traced in a directory of its own.

    A process of a group with gloo now and then aborts when it exits ("terminate called without an active exception",
    torch 2.13: 2 of 38 runs without d9mlint). Such a program is traced again."""
    found = _traced(directory, name, options)
    for _ in range(3 if Path(name).name.startswith(LAUNCHED) else 0):
        if found["outcome"] != "unknown":
            break
        found = _traced(directory, name, options)
    return found


def _traced(directory: Path, name: str, options: tuple[str, ...]) -> dict[str, Any]:
    program = PROGRAMS / name
    shutil.copy(program, directory)
    launcher: list[str] = []
    if program.name.startswith(LAUNCHED):
        # With a port of its own choice: one that was free before may be taken when the program starts.
        launcher = ["torchrun", "--standalone", "--nproc-per-node", "2"]
    report = directory / "report.json"
    run = subprocess.run(
        [
            *(sys.executable, "-m", "d9mlint", "trace", "--output-format", "json", "-o", str(report)),
            *(*options, *launcher, program.name),
        ],
        cwd=directory,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert report.exists(), run.stderr
    found: dict[str, Any] = json.loads(report.read_text())
    assert run.returncode == {"equal": 0, "diverged": 1, "unknown": 2}[found["outcome"]], run.stderr
    return found


def cases(pattern: str, quick: set[str]) -> list[Any]:
    names = sorted(str(p.relative_to(PROGRAMS)) for p in PROGRAMS.glob(pattern))
    return [
        pytest.param(name, id=Path(name).stem, marks=[] if Path(name).stem in quick else [pytest.mark.full])
        for name in names
    ]


@pytest.mark.parametrize("name", cases("*.py", QUICK))
def test_a_hazard_is_named_with_its_line_and_verdict(name: str, tmp_path: Path) -> None:
    lines = (PROGRAMS / name).read_text().splitlines()
    row, expected = next((n, m) for n, line in enumerate(lines, 1) if (m := EXPECTED.search(line)))
    verdict, process = expected.groups()
    report = until_it_strikes(lambda: traced(tmp_path, name), verdict)
    difference = report["difference"]
    assert difference is not None, report["reason"]
    if "compile_inductor" in name:
        # A compiled function hides the line; the run without torch.compile names it.
        assert (difference["verdict"], difference["first"]["name"]) == ("op", "compiled function")
        difference = report["without_compile"]
    place = difference["place"][0]
    assert (difference["verdict"], Path(place["filename"]).name, place["row"]) == (verdict, name, row)
    assert process is None or difference["process"] == process
    if verdict == "op" and "compile_inductor" not in name:
        assert report["confirmation"]["distinct"] > 1
        assert report["confirmation"]["deterministic"]["distinct"] == 1


@pytest.mark.parametrize("name", cases("clean/*.py", QUICK_CLEAN))
def test_a_clean_program_is_equal(name: str, tmp_path: Path) -> None:
    report = traced(tmp_path, name)
    assert report["outcome"] == "equal", report["difference"] or report["reason"]
    assert report["runs"][0]["operations"] == report["runs"][1]["operations"]


@pytest.mark.full
def test_replay_lists_flaky_lines_and_returns_the_exit_code(tmp_path: Path) -> None:
    shutil.copy(PROGRAMS / "backward_of_index.py", tmp_path / "train.py")
    with (tmp_path / "train.py").open("a") as stream:
        stream.write("\nraise SystemExit(4)\n")
    run = subprocess.run(
        [*(sys.executable, "-m", "d9mlint", "trace", "--replay", "--output-format", "json"), "train.py"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert run.returncode == 4, run.stderr
    (site,) = json.loads(run.stdout)["sites"]
    assert (site["name"], site["forward"][0]["row"]) == ("aten.index_put", 11)


@pytest.mark.full
def test_the_light_level_names_the_step_and_what_differs(tmp_path: Path) -> None:
    light = ("--level", "light")
    difference = until_it_strikes(lambda: traced(tmp_path, "backward_of_index.py", *light), "op")[
        "difference"
    ]
    # The first step in which the race had another end: seldom a later one than the first.
    assert difference["verdict"] == "op" and 1 <= difference["step"] <= 8
    assert difference["first"]["name"] == "gradient of parameter 0"


@pytest.mark.full
def test_two_recordings_are_compared(tmp_path: Path) -> None:
    shutil.copy(PROGRAMS / "no_seed.py", tmp_path)
    command = [sys.executable, "-m", "d9mlint", "trace"]
    for name in ("one", "two"):
        subprocess.run(
            [*command, "record", "-o", name, "no_seed.py"], cwd=tmp_path, check=True, env=environment()
        )
    for other, expected in (("one", 0), ("two", 1)):
        run = subprocess.run(
            [*command, "compare", "one", other], cwd=tmp_path, capture_output=True, text=True
        )
        assert run.returncode == expected, run.stdout + run.stderr
    assert "used without a seed" in run.stdout
