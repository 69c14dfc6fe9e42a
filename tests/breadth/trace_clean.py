"""Traces clean programs many times: every run must be equal to the first one.

    python tests/breadth/trace_clean.py [--runs N] [--round N] [--repeat N] [--only NAME ...]

A round is one first process and some further ones, each with its own hash seed and clock and with the other order of
listings, as the second run of ``d9mlint trace`` has them. A process executes one program; with ``--repeat`` it
executes a group of them (those of torch, those of TensorFlow) so many times over: importing the libraries takes most
of the time of a small program. Rounds go over all programs in turn, so a part of the runs says
something about each of them. Prints one line for a round, every alarm, and the sums.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from d9mlint.trace.compare import Unequal, first_difference, pair
from d9mlint.trace.journal import journals
from d9mlint.trace.program import SECOND, program
from d9mlint.trace.runs import Options, Session, unusable
from d9mlint.verify.workspace import workspace

PROGRAMS = Path(__file__).parents[1] / "trace" / "programs"
RUNS, ROUND = 1000, 10
LIMIT = 3600.0
"""Seconds after which a round counts as hung."""
RANKS = ("ddp", "fsdp")
"""How the names of programs begin that need a launcher."""


class Group(NamedTuple):
    """Programs that one process executes, one after another."""

    name: str
    paths: tuple[Path, ...]
    repeat: int

    def write(self, directory: str) -> str:
        """Put the programs into a directory, and return the name of the script to start there."""
        for path in self.paths:
            shutil.copy(path, directory)
        names = [path.name for path in self.paths] * self.repeat
        if len(names) == 1:
            return names[0]
        script = f"{self.name}_together.py"
        lines = ["import runpy", *(f"runpy.run_path({name!r}, run_name='__main__')" for name in names)]
        Path(directory, script).write_text("\n".join(lines) + "\n")
        return script


def round_of(script: str, seed: int, runs: int) -> list[str]:
    """The alarms of one round in the working directory; empty strings for the runs that were equal."""
    command = [script]
    if script.startswith(RANKS):
        command = ["torchrun", "--standalone", "--nproc-per-node", "2", script]
    chosen = random.Random(f"{script} {seed}")
    with workspace("d9mlint-clean-") as scratch:
        session = Session(program(command, None), Options(), scratch, lambda _: None)
        directory = session.directory("first")
        ended = session.first(directory)
        first = list(journals(directory))
        trouble = unusable(directory, first, ended, "first")
        if trouble:
            return [trouble] * runs
        found = []
        for number in range(runs):
            directory = session.directory(f"run{number}")
            perturbation = SECOND._replace(
                hash_seed=str(chosen.randrange(1, 2**32)), clock=chosen.randrange(1, 10**8)
            )
            again, printed = session.further(directory, perturbation)
            second = list(journals(directory))
            alarm = unusable(directory, second, again, "second")
            try:
                difference = None if alarm else first_difference(pair(first, second), complete=True)
                alarm = alarm or (repr(difference) if difference is not None else "")
            except Unequal as error:
                alarm = str(error)
            found.append(f"{alarm}\n{printed}" if alarm else "")
            shutil.rmtree(directory)
        return found


def in_a_process(group: Group, seed: int, runs: int) -> list[str]:
    """A round in its own process and directory: what the programs print goes nowhere."""
    with tempfile.TemporaryDirectory() as directory:
        script = group.write(directory)
        result = Path(directory).with_suffix(".json")
        command = [sys.executable, __file__, "execute", script, str(seed), str(runs), str(result)]
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "2",
            "HF_HUB_OFFLINE": "1",
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }
        try:
            ended = subprocess.run(
                command, cwd=directory, env=environment, capture_output=True, text=True, timeout=LIMIT
            )
            found: list[str] = json.loads(result.read_text())
            return found
        except subprocess.TimeoutExpired:
            return ["hung"] * runs
        except FileNotFoundError:
            return [ended.stderr[-2000:] or f"exited with status {ended.returncode}"] * runs
        finally:
            result.unlink(missing_ok=True)


def groups(only: list[str], repeat: int) -> list[Group]:
    """What the processes execute: one program each, or, repeated, all that can share one."""
    torch = [p for p in sorted(PROGRAMS.glob("clean/*.py")) if not only or p.stem in only]
    tensorflow = [p for p in sorted(PROGRAMS.glob("tensorflow/clean/*.py")) if not only or p.stem in only]
    if not repeat:
        return [Group(path.stem, (path,), 1) for path in (*torch, *tensorflow)]
    ranks = [p for p in torch if p.stem.startswith(RANKS)]
    kinds = {"torch": [p for p in torch if p not in ranks], "tensorflow": tensorflow}
    together = [Group(name, tuple(paths), repeat) for name, paths in kinds.items() if paths]
    # A second process group of one process waits for ever, traced or not.
    return [*together, *(Group(path.stem, (path,), 1) for path in ranks)]


def main() -> int:
    """Returns 1 where a run was not equal."""
    if sys.argv[1:2] == ["execute"]:
        script, seed, runs, result = sys.argv[2:]
        Path(result).write_text(json.dumps(round_of(script, int(seed), int(runs))))
        return 0
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=RUNS, help="executions of programs that are compared")
    parser.add_argument("--round", type=int, default=ROUND, help="processes compared with one first process")
    parser.add_argument("--repeat", type=int, default=0, help="executions of each program in one process")
    parser.add_argument("--only", nargs="+", default=[], help="names of programs")
    asked = parser.parse_args()
    chosen = groups(asked.only, asked.repeat)
    done = processes = rounds = alarms = 0
    counts: dict[str, int] = {}
    while done < asked.runs:
        group = chosen[rounds % len(chosen)]
        size = len(group.paths) * group.repeat
        runs = min(asked.round, -(-(asked.runs - done) // size))
        start = time.monotonic()
        found = in_a_process(group, rounds, runs)
        seconds = time.monotonic() - start
        raised = [alarm for alarm in found if alarm]
        rounds, processes, done, alarms = (
            rounds + 1,
            processes + runs,
            done + runs * size,
            alarms + len(raised),
        )
        for path in group.paths:
            counts[path.stem] = counts.get(path.stem, 0) + runs * group.repeat
        print(
            f"{group.name}: {runs} processes of {size} executions, {len(raised)} not equal, {seconds:.0f} s;",
            end=" ",
        )
        print(f"{done} executions in all, {alarms} not equal", flush=True)
        for alarm in raised:
            print(alarm, flush=True)
    print(", ".join(f"{name} {count}" for name, count in counts.items()))
    print(
        f"{done} executions in {processes} processes, compared with {rounds} first ones: {alarms} not equal"
    )
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
