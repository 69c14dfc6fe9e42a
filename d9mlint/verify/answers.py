"""The answers of jobs put together: cases that were reached or not, counts over processes, both modes."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from d9mlint.evidence.model import DIFFERS, EQUAL, NOT_RUN, Mode
from d9mlint.verify.launcher import End

SHORTEST = 0.005
"""Seconds of a run below which its time is noise: no ratio is reported."""
FEWEST = 3
"""Timed runs of each kind that a ratio of times needs."""
TOO_MUCH = ("out of memory", "no answer within", "killed by", "ended with")
"""How reasons begin that smaller inputs may do away with."""


class Case(NamedTuple):
    """One dtype and size of a recipe."""

    dtype: str
    scale: float


def take(end: End, cases: list[Case], found: dict[Case, dict[str, Any]]) -> Case | None:
    """Put a job's answers into ``found``; the case at which it ended early, or None when it came to its end."""
    last: Case | None = None
    for line in end.lines:
        case = cases[line["case"]]
        if "started" in line:
            last = case
        else:
            found[case] = line
    if not end.trouble and all(case in found for case in cases):
        return None
    return last or cases[0]


def early(end: End, told: bool) -> str:
    """Why a job ended before its last case; ``told``: whether the case at which it did has an answer."""
    return end.trouble or ("the device is no longer usable" if told else "it exited without a result")


def joined(known: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """Two results of one case from different processes: digests together, the larger distances."""
    if "outputs" not in result or "outputs" not in known:
        return known if "outputs" in known else result
    outputs = []
    for one, other in zip(known["outputs"], result["outputs"], strict=True):
        digests = list(dict.fromkeys([*one["digests"], *other["digests"]]))
        far = {
            key: max((v for v in (one[key], other[key]) if v is not None), default=None)
            for key in ("v_ermv", "v_c", "ulp")
        }
        outputs.append({**one, **far, "digests": digests, "distinct": len(digests)})
    times = [*known["times"], *result["times"]]
    return {**known, "outputs": outputs, "times": times, "processes": known.get("processes", 1) + 1}


def telling(plain: dict[Case, dict[str, Any]], dtype: str) -> Case | None:
    """The size at which deterministic mode is asked: the largest that differed, else the largest that ran."""
    ran = [case for case, found in plain.items() if case.dtype == dtype and "outputs" in found]
    differed = [case for case in ran if any(o["distinct"] > 1 for o in plain[case]["outputs"])]
    return max(differed or ran, key=lambda case: case.scale, default=None)


def deterministic_mode(plain: dict[str, Any], mode: dict[str, Any], process: str) -> Mode:
    """What deterministic mode did, compared with the same runs without it."""
    error = mode.get("error")
    if error is not None and error["refused"]:
        return Mode(outcome="raises", message=f"{error['type']}: {error['message']}")
    if "outputs" not in mode:
        return Mode(outcome=NOT_RUN, message=trouble(mode))
    distinct = max(o["distinct"] for o in mode["outputs"])
    # The first run of a process warms up: its time says nothing.
    ratio, spread = time_ratio(plain["times"], mode["times"]) if process == "same" else (None, None)
    outcome = EQUAL
    if distinct > 1:
        agreed = max(o["distinct"] for o in plain["outputs"]) == 1
        outcome = "memory fill" if mode.get("filled") == "yes" else DIFFERS if agreed else "unchanged"
    return Mode(outcome=outcome, distinct=distinct, time_ratio=ratio, time_spread=spread)


def time_ratio(
    plain: Sequence[float], other: Sequence[float]
) -> tuple[float, tuple[float, float]] | tuple[None, None]:
    """The ratio of the medians of two series of times, and the smallest and the largest ratio of their members;
    nothing where runs are too short or too few to tell."""
    if min(len(plain), len(other)) < FEWEST or min(*plain, *other) < SHORTEST:
        return None, None
    spread = (min(other) / max(plain), max(other) / min(plain))
    return statistics.median(other) / statistics.median(plain), spread


def cause(plain: dict[str, Any], mode: dict[str, Any] | None) -> str:
    """Why plain runs differ, as far as it was determined: see ``evidence.Measurement``."""
    filled = (mode or {}).get("filled", "no")
    restored = plain.get("restored", "no")
    if filled == "yes":
        return "uninitialized memory"
    if restored == "yes":
        return "rng"
    return "not determined" if "undetermined" in (filled, restored) else ""


def trouble(found: dict[str, Any]) -> str:
    """Why a case gave no result; empty where it did."""
    if "trouble" in found:
        return str(found["trouble"])
    error = found.get("error")
    if error is None:
        return ""
    if error["type"] == "NoSamples":
        return str(error["message"])
    text = f"{error['type']}: {error['message']}"
    return f"out of memory ({text})" if error["memory"] else text
