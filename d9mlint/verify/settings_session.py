"""Runs probes of settings: several fresh processes without and with the remedy, put together as evidence."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from d9mlint.evidence.model import NOT_RUN, Machine, Setting
from d9mlint.verify.answers import time_ratio
from d9mlint.verify.launcher import CannotStart, Server
from d9mlint.verify.settings import RESUME, Probe

MOST = 8
"""Pairs of runs, at most, until a difference without the remedy was seen."""


def run_probe(
    server: Server, probe: Probe, device: str, machine: Machine, runs: int, timeout: float
) -> Setting:
    """Run a probe. A race need not strike on a busy machine: where runs agree, more are made, up to MOST."""
    if probe.needs == "cuda" and machine.kind != "cuda":
        return not_run(probe, "needs a GPU")
    if probe.needs == "nccl" and int(machine.versions.get("gpus", "0")) < 2:
        return not_run(probe, "needs two GPUs")
    bare: list[dict[str, Any]] = []
    treated: list[dict[str, Any]] = []
    # A process that imports its framework takes seconds, and what it shows is no race.
    most = runs if probe.restart else max(runs, MOST)
    while len(bare) < runs or (len(bare) < most and len(digests(bare)) == 1):
        # In turns, so that the load of the machine is the same for both.
        for remedy, found in ((False, bare), (True, treated)):
            result = _once(server, probe, device, remedy, timeout)
            if "not_run" in result:
                if remedy and digests(bare) and len(treated) == 0:
                    return _about(probe, "raises", reason=result["not_run"], runs=len(bare))
                return not_run(probe, result["not_run"])
            found.append(result)
    return judge(probe, bare, treated)


def _once(server: Server, probe: Probe, device: str, remedy: bool, timeout: float) -> dict[str, Any]:
    job = {"mode": "setting", "setting": probe.id, "remedy": remedy, "device": device}
    job["restart"] = probe.restart
    try:
        end = server.run(job, timeout)
    except CannotStart as error:
        return {"not_run": str(error)}
    if end.trouble or not end.lines:
        return {"not_run": end.trouble or "it exited without a result"}
    return end.lines[-1]


def digests(runs: Sequence[dict[str, Any]]) -> set[str]:
    """The distinct results of runs, with those of the uninterrupted runs where there are any."""
    return {run["digest"] for run in runs} | {run["reference"] for run in runs if run["reference"]}


def judge(probe: Probe, bare: Sequence[dict[str, Any]], treated: Sequence[dict[str, Any]]) -> Setting:
    """The verdict over both series, and the cost of the remedy."""
    without, with_remedy = len(digests(bare)), len(digests(treated))
    outcome = "not fixed" if with_remedy > 1 else "fixed" if without > 1 else "equal"
    times = [[run["seconds"] for run in runs] for runs in (bare, treated)]
    ratio, spread = time_ratio(times[0], times[1])
    memory = [int(statistics.median(run["memory"] for run in runs)) for runs in (bare, treated)]
    return _about(
        probe,
        outcome,
        runs=len(bare),
        without=without,
        with_remedy=with_remedy,
        seconds=statistics.median(times[0]),
        # A resumed run costs what it costs: saving more state is no cost of training.
        time_ratio=None if probe.claim == RESUME else ratio,
        time_spread=None if probe.claim == RESUME else spread,
        memory=(memory[0], memory[1]),
    )


def not_run(probe: Probe, reason: str) -> Setting:
    """A probe that did not run, with the reason."""
    return _about(probe, NOT_RUN, reason=reason)


def _about(probe: Probe, outcome: str, **fields: Any) -> Setting:
    return Setting(
        probe=probe.id,
        title=probe.title,
        remedy=probe.remedy,
        library=probe.library,
        outcome=outcome,
        claim=probe.claim,
        codes=probe.codes,
        subjects=probe.subjects,
        **fields,
    )


def run_all(
    probes: Sequence[Probe],
    library: str,
    run: Callable[[Probe], Setting],
    progress: Callable[[str], None],
    found: list[Setting],
) -> None:
    """Run the probes of one library."""
    own = [probe for probe in probes if probe.library == library]
    for number, probe in enumerate(own, 1):
        progress(f"running the setting {probe.id} ({number} of {len(own)})")
        found.append(run(probe))
