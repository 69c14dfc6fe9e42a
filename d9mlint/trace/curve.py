"""How a difference grows: the share of records that differ, over operations and steps. No framework is imported
here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from d9mlint.trace.compare import Names, Streams, differing
from d9mlint.trace.journal import STEP, Journal

BINS = 240
"""Bins of one process, at most."""


class Bin(NamedTuple):
    """Consecutive records of one step: the place of the first one, how many there are, how many differ."""

    step: int
    first: int
    records: int
    differing: int


class Lane(NamedTuple):
    """One thread of one process."""

    process: str
    stream: str
    bins: tuple[Bin, ...]


def lanes(pairs: Sequence[tuple[Journal, Journal]]) -> tuple[Lane, ...]:
    """The bins of all processes and threads, as far as both runs have been recorded."""
    found = []
    for first, second in pairs:
        names = Names(first, second)
        one, other = Streams.of(first).by_name, Streams.of(second).by_name
        for stream, mine in one.items():
            bins = _bins(first, second, mine, other.get(stream, []), names)
            if bins:
                found.append(Lane(str(first.header.get("key", "")), stream, bins))
    return tuple(found)


def _bins(
    first: Journal, second: Journal, mine: list[int], theirs: list[int], names: Names
) -> tuple[Bin, ...]:
    differs: list[tuple[int, bool]] = []
    step = 1
    found = set(differing(first, second, mine, theirs, names))
    for ordinal in range(min(len(mine), len(theirs))):
        differs.append((step, ordinal in found))
        if first.records[mine[ordinal]].kind == STEP:
            step += 1
    size = max(1, -(-len(differs) // BINS))
    bins: list[Bin] = []
    for place, (number, different) in enumerate(differs):
        last = bins[-1] if bins else None
        if last is None or last.step != number or last.records >= size:
            bins.append(Bin(number, place, 1, int(different)))
        else:
            bins[-1] = last._replace(records=last.records + 1, differing=last.differing + different)
    return tuple(bins)


def by_step(lane: Lane) -> list[tuple[int, int, int]]:
    """For each step its number, how many records there are and how many differ."""
    result: dict[int, tuple[int, int]] = {}
    for one in lane.bins:
        records, differing = result.get(one.step, (0, 0))
        result[one.step] = (records + one.records, differing + one.differing)
    return [(step, records, differing) for step, (records, differing) in result.items()]
