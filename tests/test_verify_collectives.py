"""Collectives under a real torchrun with gloo on the CPU, and what may go wrong with a rank or a comparison."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from d9mlint.evidence import model as evidence
from d9mlint.verify.presence import Presence

if importlib.util.find_spec("torch") is None:
    pytest.skip("PyTorch is not installed", allow_module_level=True)

ROOT = Path(__file__).resolve().parent.parent

# A session with ops that misbehave on purpose; what it is given is the name of one of the kinds.
DRIVER = """
import os, sys, time
from pathlib import Path
import torch
from d9mlint.verify import collectives
from d9mlint.verify.collective_ops import OPS

CONTROLS = tuple(op for op in OPS if not op.sums)
SUM = next(op for op in OPS if op.name == "all_reduce")


def fail(ranks, x):
    raise TypeError("not for this dtype")


def fail_on_rank_1(ranks, x):
    if ranks.rank == 1:
        raise NotImplementedError("not on this rank")
    return SUM.start(ranks, x)


def hang(ranks, x):
    if ranks.rank == 1:
        time.sleep(600)
    return SUM.start(ranks, x)


def die(ranks, x):
    if ranks.rank == 1:
        os.abort()
    return SUM.start(ranks, x)


def leave(ranks, x):
    if ranks.rank == 1:
        os._exit(0)
    if ranks.rank == 2:
        time.sleep(600)
    return SUM.start(ranks, x)


def differ(result, rank, run):
    result.view(torch.int32)[:2] += rank * run


def differ_on_ranks(result, rank, run):
    result.view(torch.int32)[0] += rank


def op(name, **changes):
    return SUM._replace(name=name, **changes)


kind, file = sys.argv[1:]
digest = None
ops = {
    "errors": (
        op("fails", start=fail),
        op("fails_on_rank_1", start=fail_on_rank_1),
        op("differs", spoil=differ),
        op("differs_on_ranks", spoil=differ_on_ranks),
        SUM,
    ),
    "blind": (SUM,),
    "hang": (SUM, op("hangs", start=hang), op("never_reached")),
    "death": (SUM, op("dies", start=die)),
    "departure": (SUM, op("leaves", start=leave)),
}[kind]
if kind == "blind":
    digest = lambda array: "always the same"
# The ranks meet within the limit too, though they import torch at different speeds. Where one rank fails, the others
# wait until it is over.
timeout = {"hang": 20.0, "errors": 60.0}.get(kind, 300.0)
options = collectives.Options(device="cpu", runs=3, timeout=timeout, evidence=Path(file))
plan = collectives.Plan((*CONTROLS, *ops), sizes=(1000,), dtypes=("float32",), digest=digest)
sys.exit(collectives.run(options, plan))
"""


class Job(NamedTuple):
    """A finished torchrun: its exit code, what it printed, and the evidence that it wrote."""

    code: int
    out: str
    err: str
    evidence: evidence.Evidence

    def row(self, name: str) -> str:
        """The line of the table for a collective."""
        return next(line for line in self.out.splitlines() if line.startswith(f"{name} "))


class Started(NamedTuple):
    """A torchrun that is under way."""

    process: subprocess.Popen[str]
    file: Path

    def job(self) -> Job:
        """Wait for the end."""
        out, err = self.process.communicate(timeout=900)
        assert self.file.exists(), err
        return Job(self.process.returncode, out, err, evidence.load(self.file))


def start(ranks: int, file: Path, *arguments: str | Path) -> Started:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    process = subprocess.Popen(
        [*torchrun, *map(str, arguments)],
        cwd=file.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return Started(process, file)


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Started]]:
    """Those that mostly wait, started together."""
    directory = tmp_path_factory.mktemp("collectives")
    driver = directory / "driver.py"
    driver.write_text(DRIVER)
    started = {}
    for kind, ranks in {"errors": 3, "hang": 2, "death": 2, "departure": 3}.items():
        file = directory / f"{kind}.json"
        started[kind] = start(ranks, file, driver, kind, file)
    yield started
    for session in started.values():
        if session.process.poll() is None:
            session.process.terminate()
            session.process.communicate(timeout=300)


@pytest.fixture
def misbehave(tmp_path: Path):
    def misbehave(kind: str, ranks: int = 2) -> Job:
        driver = tmp_path / "driver.py"
        driver.write_text(DRIVER)
        file = tmp_path / f"{kind}.json"
        return start(ranks, file, driver, kind, file).job()

    return misbehave


@pytest.mark.parametrize("world", [None, "1"])
def test_several_processes_are_needed(tmp_path: Path, world: str | None) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment |= {"WORLD_SIZE": world, "RANK": "0"} if world else {}
    done = subprocess.run(
        [sys.executable, "-m", "d9mlint.verify", "--collectives"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "torchrun --standalone --nproc-per-node 3 -m d9mlint.verify --collectives" in done.stderr


def test_a_file_that_can_not_be_written_is_told_before_the_ranks_meet(tmp_path: Path) -> None:
    # A module of the working directory does not become that of the standard library.
    (tmp_path / "random.py").write_text("raise SystemExit(9)")
    done = subprocess.run(
        [sys.executable, "-m", "d9mlint.verify", "--collectives", "--evidence", "random.py/a.json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "WORLD_SIZE": "3", "RANK": "0"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr == "random.py/a.json cannot be written: File exists.\n"


@pytest.mark.full
def test_all_collectives_are_compared_over_runs_and_ranks(
    sessions: dict[str, Started], tmp_path: Path
) -> None:
    file = tmp_path / "evidence.json"
    options = [
        "--collectives",
        "--device",
        "cpu",
        "--timeout",
        "600",
        "--runs",
        "2",
        "--seed",
        "7",
        "--evidence",
        file,
    ]
    job = start(3, file, "-m", "d9mlint.verify", *options).job()
    assert job.code == 0, job.err
    assert job.out.startswith("3 ranks, gloo on ")
    assert "No NCCL: the CPU was asked for." in job.out
    assert "determinis" not in job.out
    rows = [line for line in job.out.splitlines() if "float" in line]
    assert len(rows) == 6 * 3 * 3
    for name in ("broadcast", "all_gather"):
        controls = [row for row in rows if row.startswith(f"{name} (control)")]
        assert len(controls) == 9
        assert all(
            "equal in 2 runs at this size" in row and row.endswith("equal on 3 ranks") for row in controls
        )
    assert all(row.endswith(("equal on 3 ranks", "distinct")) for row in rows if row.startswith("all_reduce"))
    assert job.out.count("passed  ") == 5
    assert "FAILED" not in job.out

    assert job.evidence.controls_passed
    assert (job.evidence.runs, job.evidence.seed) == (2, 7)
    versions = job.evidence.machines[0].versions
    assert (versions["world_size"], versions["backend"]) == ("3", "gloo")
    outputs = {
        m.recipe: [(o.name, o.shape) for o in m.outputs]
        for m in job.evidence.measurements
        if m.dtype == "bfloat16" and m.sizes == {"x": (1026,)}
    }
    assert outputs["all_reduce_sum"] == [(n, (1026,)) for n in ("rank0", "rank1", "rank2", "ranks")]
    assert outputs["reduce_scatter_sum"] == [(n, (342,)) for n in ("rank0", "rank1", "rank2")]
    assert outputs["reduce_sum"] == [("rank0", (1026,))]


def test_a_blind_comparison_is_told_and_makes_the_rest_no_evidence(sessions: object, misbehave) -> None:
    job = misbehave("blind")
    assert job.code != 0
    assert "exitcode  : 2" in job.err
    assert job.out.count("FAILED  broadcast, one bit changed") == 2
    assert "the other lines are not evidence" in job.out
    assert not job.evidence.controls_passed
    assert "At least 3 ranks are needed to see the order of a sum" in job.out


@pytest.mark.full
def test_errors_cost_one_line_and_differences_are_seen(sessions: dict[str, Started]) -> None:
    job = sessions["errors"].job()
    assert job.code == 0, job.err
    assert job.row("fails").endswith("not run: TypeError: not for this dtype")
    assert job.row("fails_on_rank_1").endswith("not run: rank 1: NotImplementedError: not on this rank")
    assert "3 of 3 distinct" in job.row("differs")
    assert job.row("differs_on_ranks").endswith("equal in 3 runs at this size   3 of 3 distinct")
    assert job.row("all_reduce").endswith("equal in 3 runs at this size   equal on 3 ranks")
    assert "Sums: 1 of 3 differ between runs, 2 of 3 between ranks; 2 not run." in job.out
    found = {m.recipe: {o.name: o for o in m.outputs} for m in job.evidence.measurements}
    ranks = found["differs_on_ranks_sum"]
    assert [o.distinct for o in ranks.values()] == [1, 1, 1, 3]
    # One element of 1002, two units in the last place away on rank 2.
    assert ranks["ranks"].v_c == pytest.approx(1 / 1002)
    assert ranks["ranks"].ulp == 2
    runs = found["differs_sum"]
    assert [runs[f"rank{rank}"].distinct for rank in range(3)] == [1, 3, 3]
    assert runs["rank2"].v_c == pytest.approx(2 / 1002)


def test_a_rank_that_hangs_does_not_hang_the_session(sessions: dict[str, Started]) -> None:
    job = sessions["hang"].job()
    assert job.code != 0
    assert "not run: rank 1 did not answer in" in job.row("hangs")
    assert "The session ended early: rank 1 did not answer in" in job.out
    assert [m.outcome for m in job.evidence.measurements][-3:] == ["equal", "not run", "not run"]
    assert job.evidence.controls_passed


def test_a_rank_that_dies_leaves_what_was_measured(sessions: dict[str, Started]) -> None:
    job = sessions["death"].job()
    assert job.code != 0
    assert "equal in 3 runs at this size" in job.row("all_reduce")
    assert "not run" in job.row("dies")
    assert "The session ended early" in job.out
    assert [m.outcome for m in job.evidence.measurements][-2:] == ["equal", "not run"]


def test_a_rank_that_ends_is_noticed_without_a_time_limit_and_without_torchrun(
    sessions: dict[str, Started],
) -> None:
    # torchrun stops the other ranks only where one fails: rank 1 ends with status 0, and rank 2 waits.
    job = sessions["departure"].job()
    assert job.code != 0
    assert job.row("leaves").endswith("not run: rank 1 ended")
    assert "The session ended early: rank 1 ended." in job.out
    assert job.evidence.controls_passed


def test_only_ranks_that_know_the_token_count() -> None:
    first, second = Presence(), Presence()
    port = first.listen("token")
    assert port
    stranger = socket.create_connection(("localhost", port))
    stranger.sendall(b"other 1\n")
    stranger.close()
    second.join("localhost", port, "token", 1)
    with socket.create_connection(("localhost", port)) as connection:
        connection.sendall(b"token 2\n")
    for presence in (first, second):
        deadline = time.monotonic() + 60
        while not presence.gone and time.monotonic() < deadline:
            time.sleep(0.01)
        assert presence.gone == {2}


def test_a_rank_that_cannot_connect_goes_on() -> None:
    presence = Presence()
    with socket.create_server(("localhost", 0)) as server:
        port = server.getsockname()[1]
    presence.join("localhost", port, "token", 1)
    assert not presence.gone
