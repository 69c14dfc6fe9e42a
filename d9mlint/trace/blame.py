"""Looks for the cause of a difference in further runs. No framework is imported here.

What is changed on purpose is the cause where a run with that change alone shows the same difference. The clock,
the random bytes of the operating system, and the addresses of objects differ in every run: they are the cause
where two runs in which they are fixed do not differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from d9mlint.trace import causes
from d9mlint.trace.causes import Suspect
from d9mlint.trace.compare import (
    Cause,
    Difference,
    Unequal,
    Verdict,
    first_difference,
    pair,
    with_earlier_draw,
    with_shared_draw,
)
from d9mlint.trace.journal import NOTE, Journal, journals
from d9mlint.trace.runs import Session
from d9mlint.trace.watcher import Watcher

SLOWER = 4.0
"""A run with a fixed clock may wait for a time that does not come: it is stopped after so many times the first run's
duration,"""
LEAST_SECONDS = 60.0
"""and not before this."""


def explained(
    session: Session,
    first: Sequence[Journal],
    second: Sequence[Journal],
    difference: Difference,
    more: Mapping[str, Any],
) -> Difference:
    """The difference with its cause, where further runs show it."""
    perturbed = session.options.perturb and difference.verdict in ("input", "scalar", "structure")
    if perturbed and difference.cause is None:
        session.progress("looking for the cause")
        difference = _by_change(session, first, difference, more)
    suspects: Sequence[Suspect] = causes.FIXED
    if difference.cause is None and difference.verdict in ("input", "scalar"):
        difference = with_shared_draw(pair(first, second), difference)
    if difference.cause is None and difference.verdict in ("input", "scalar"):
        guess = with_earlier_draw(pair(first, second), difference)
        if guess.cause is None or not perturbed:
            difference = guess
        else:
            # It is the cause where two runs in which random bytes are the same are equal.
            settled = _by_fixing(session, first, difference, more, suspects[:1], guess.cause)
            difference, suspects = (
                settled._replace(reason=guess.reason) if settled.cause else settled,
                suspects[1:],
            )
    if perturbed and difference.cause is None:
        difference = _by_fixing(session, first, difference, more, suspects)
    return difference


def _by_change(
    session: Session, first: Sequence[Journal], difference: Difference, more: Mapping[str, Any]
) -> Difference:
    """Find which of the changes on purpose makes the difference, by runs with one of them."""

    def reproduces(suspect: Suspect, name: str) -> bool:
        directory = session.directory(f"cause-{suspect.kind.replace(' ', '-')}-{name}")
        watcher = Watcher(first, directory, difference)
        session.further(directory, suspect.perturbation, watcher.passed, **more)
        try:
            found = first_difference(pair(first, list(journals(directory))), complete=False)
        except Unequal:
            return False
        return found is not None and _same(found, difference)

    def twice(suspect: Suspect) -> bool:
        # What differs in every run, between few values, may do the same by chance.
        return reproduces(suspect, "one") and reproduces(suspect, "two")

    suspect = causes.find(twice, causes.SUSPECTS)
    if suspect is None:
        return difference
    cause = causes.cause(suspect, _process(first, difference), difference.position, difference.place)
    # A number that is read from another file is data in another order.
    return difference._replace(cause=cause, verdict="input")


def _same(found: Difference, known: Difference) -> bool:
    """Whether a run differs from the first one at the same place in the same way."""
    place = (found.process, found.stream, found.ordinal) == (known.process, known.stream, known.ordinal)
    return place and (found.second is None or known.second is None or found.second == known.second)


def _by_fixing(
    session: Session,
    first: Sequence[Journal],
    difference: Difference,
    more: Mapping[str, Any],
    suspects: Sequence[Suspect],
    known: Cause | None = None,
) -> Difference:
    """Find what differs in every run, by pairs of runs in which it does not. ``known`` is the cause if there is one."""
    end = time.monotonic() + 2 * len(suspects) * max(SLOWER * session.seconds, LEAST_SECONDS)

    def settles(suspect: Suspect) -> list[Journal] | None:
        """The recordings of one of the runs, where they are equal up to the place of the difference."""
        found = []
        # Names of one length: strings of another one would move what is allocated after them.
        for name in ("one", "two"):
            directory = session.directory(f"fixed-{suspect.kind}-{name}")
            until = _until(Watcher(first, directory, difference).passed, end)
            session.further(directory, suspect.perturbation, until, **more)
            found.append(list(journals(directory)))
            noted = suspect.kind in causes.NOTED and known is None
            if noted and not any(causes.readers(one, suspect.kind) for one in found[-1]):
                # Nobody has asked for it.
                return None
        if not all(_reaches(one, difference) for one in found):
            return None
        try:
            left = first_difference(pair(*found), complete=False)
        except Unequal:
            return None
        return found[0] if left is None or left.position > difference.position else None

    for suspect in suspects:
        recording = settles(suspect)
        if recording is not None:
            journal = _process(recording, difference)
            cause = known or causes.cause(suspect, journal, len(journal.records), difference.place)
            verdicts: dict[str, Verdict] = {"entropy": "rng", "addresses": "input"}
            return difference._replace(cause=cause, verdict=verdicts.get(suspect.kind, difference.verdict))
    return difference


def _until(passed: Callable[[], bool], end: float) -> Callable[[], bool]:
    return lambda: time.monotonic() > end or passed()


def _process(found: Sequence[Journal], difference: Difference) -> Journal:
    return next(j for j in found if j.header.get("key", "") == difference.process)


def _reaches(found: Sequence[Journal], difference: Difference) -> bool:
    """Whether a recording goes as far as the record of a difference."""
    for one in found:
        if one.header.get("key", "") == difference.process:
            streams = one.tables["stream"]
            count = sum(1 for r in one.records if r.kind != NOTE and streams[r.stream] == difference.stream)
            return count > difference.ordinal
    return False
