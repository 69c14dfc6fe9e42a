"""``trace --resume-at STEP``: an uninterrupted run, a run that is ended after a step, and the run that resumes it.
No framework is imported here.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from d9mlint.base.errors import UsageError
from d9mlint.trace import isolation
from d9mlint.trace.compare import Unequal, first_difference, pair
from d9mlint.trace.journal import STATE, Journal, journals
from d9mlint.trace.model import DIVERGED, EQUAL, UNKNOWN, Report
from d9mlint.trace.places import source_lines
from d9mlint.trace.program import NONE
from d9mlint.trace.resume import Resume, compare
from d9mlint.trace.runs import Session, info, unusable, versions


def resumed(session: Session, stop: int, arguments: Sequence[str]) -> Report:
    """Run the three runs and compare. Raises UsageError, runner.Interrupted."""
    options = session.options
    if options.steps and options.steps <= stop:
        raise UsageError("--steps has to be greater than --resume-at.")
    one, two, three = (session.directory(name) for name in ("first", "ended", "resumed"))
    ended = session.first(one, stop=0)
    first = list(journals(one))
    runs = [info(ended, first)]

    def report(outcome: str, reason: str = "", **more: Any) -> Report:
        return session.report(outcome, runs, reason, versions=versions(first), **more)

    trouble = unusable(one, first, ended, "first")
    if trouble:
        return report(UNKNOWN, trouble)
    first = [j for j in first if "torch" in j.header]
    if not first:
        return report(UNKNOWN, "--resume-at needs a PyTorch program")
    taken = max(j.steps for j in first)
    if taken <= stop:
        reason = f"the program takes {taken} optimizer steps; --resume-at {stop} leaves none to compare"
        return report(UNKNOWN, reason)
    session.progress(f"running again, until step {stop} is over")
    view = session.view()
    cut, printed = session.further(two, NONE, view=view, stop=stop, steps=0)
    interrupted = [j for j in journals(two) if "torch" in j.header]
    runs.append(info(cut, interrupted, printed))
    reached = [j for j in interrupted if (j.end or {}).get("ended") == "resume"]
    if not reached:
        trouble = unusable(two, interrupted, cut, "second") or "the second run ended before that step"
        return report(UNKNOWN, trouble)
    try:
        before = first_difference(pair(_plain(first), _plain(interrupted)), complete=False)
    except Unequal as error:
        return report(UNKNOWN, str(error))
    if before is not None:
        note = (
            "the runs differ before the run is resumed: make `d9mlint trace` without --resume-at equal first"
        )
        sources = source_lines(before)
        return report(DIVERGED, difference=before, sources=sources, notes=(note,))
    session.progress("resuming")
    steps = options.steps - stop if options.steps else 0
    again, printed = session.further(
        three, NONE, view=isolation.again(view), extra=arguments, stop=0, steps=steps
    )
    found = [j for j in journals(three) if "torch" in j.header]
    runs.append(info(again, found, printed))
    trouble = unusable(three, found, again, "resumed")
    try:
        difference, resume = compare(first, interrupted, found, stop, complete=not trouble and not steps)
    except Unequal as error:
        return report(UNKNOWN, trouble or str(error))
    if difference is None:
        if trouble:
            return report(UNKNOWN, trouble, resume=resume)
        return report(EQUAL, resume=resume, notes=(_equal_note(resume),))
    return report(
        DIVERGED,
        difference=difference,
        resume=resume,
        sources=source_lines(difference),
    )


def _equal_note(resume: Resume) -> str:
    first, last = resume.checkpoint + 1, resume.checkpoint + resume.compared
    return f"the resumed run repeats steps {first} to {last} of the uninterrupted run"


def _plain(found: Sequence[Journal]) -> list[Journal]:
    """Recordings without the state that was recorded for the resumed run."""
    result = []
    for one in found:
        plain = copy.copy(one)
        names = one.tables["name"]
        left_out = {n for n, text in enumerate(names) if ":" in text or text.endswith(" after the step")}
        plain.records = [r for r in one.records if r.kind != STATE or r.name not in left_out]
        result.append(plain)
    return result
