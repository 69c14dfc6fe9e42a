"""DET004: analysis runs that were cut off, by a budget, a limit of recursion, a program that fails as it is written, or a
defect of ours; and, as advice, places that were not followed."""

from __future__ import annotations

from collections.abc import Iterable

from d9mlint.base.coverage import Coverage, Gap, GapKind
from d9mlint.base.entry_report import EntryReport
from d9mlint.base.findings import Finding, Severity, Step
from d9mlint.base.paths import relative_to

CODE = "DET004"
MAX_STEPS_SHOWN = 5
"""Places that are named; more of them say nothing new."""


def incomplete(entries: Iterable[EntryReport], unreached: Iterable[EntryReport]) -> list[Finding]:
    """A finding for each run that was cut off, at the beginning of the file that it started from."""
    found = [_finding(report, "the analysis of the program that starts here") for report in entries]
    found += [_finding(report, "the analysis of code that no entry point reaches") for report in unreached]
    return [finding for finding in found if finding is not None]


def _finding(report: EntryReport, what: str) -> Finding | None:
    reasons = list(dict.fromkeys(cut.reason for cut in report.cuts))
    if report.failure:
        reasons.append(report.failure)
    if not reasons:
        return None
    flow = tuple(
        Step(cut.path, cut.start, cut.end, f"not followed beyond this place: {cut.reason}")
        for cut in report.cuts[:MAX_STEPS_SHOWN]
    )
    return Finding(
        CODE,
        report.entry,
        0,
        0,
        f"{what} was cut off ({'; '.join(reasons)}); findings may be missing",
        "Review by hand what was not followed. Leave generated code and code that is not trained out with `exclude`.",
        Severity.WARNING,
        subject=report.function,
        flow=flow,
    )


_FAILING: tuple[GapKind, ...] = ("undefined-name", "failing-call", "failing-subscript")
"""Behind these nothing runs."""


def failing(entries: Iterable[EntryReport], root: str) -> list[Finding]:
    """A finding for each program that ends where it asks for what is not there: at that place, or, if there are several such
    places, at the beginning of its file."""
    found: dict[Gap, Finding] = {}
    for report in sorted(entries, key=lambda one: (one.entry, one.function)):
        places = [gap for gap in report.gaps if gap.kind in _FAILING] if report.fails else []
        if not places:
            continue
        first = places[0] if len(places) == 1 else Gap(report.entry, 0, 0, places[0].kind, "")
        if first in found:
            continue
        what = f"{first.text}: the program ends here" if first.text else "the program that starts here fails"
        steps = (Step(one.path, one.start, one.end, one.text) for one in places[:MAX_STEPS_SHOWN])
        found[first] = Finding(
            CODE,
            first.path,
            first.start,
            first.end,
            f"{what}; what stands behind this is not judged",
            HELP[first.kind],
            Severity.WARNING,
            subject=first.text or report.function,
            entry_point=relative_to(report.entry, root),
            flow=() if first.text else tuple(steps),
        )
    return list(found.values())


def not_followed(covered: Iterable[Coverage], root: str, shown: Iterable[Finding] = ()) -> list[Finding]:
    """Advice for each place that entry points do not follow, once, with the first entry point by name; but for places at
    which a finding stands that is ``shown``."""
    found: dict[Gap, str] = {}
    places = {(one.path, one.start) for one in shown}
    for one in sorted(covered, key=lambda c: (c.entry, c.function)):
        for gap in one.gaps:
            if gap.kind != "budget" and (gap.path, gap.start) not in places:
                found.setdefault(gap, one.entry)
    return [
        Finding(
            CODE,
            gap.path,
            gap.start,
            gap.end,
            f"not followed: {gap.text}",
            HELP[gap.kind],
            Severity.ADVICE,
            subject=gap.text,
            entry_point=relative_to(entry, root),
        )
        for gap, entry in found.items()
    ]


HELP = {
    "dynamic-call": "review by hand what is called here",
    "failing-call": "pass the arguments that the call needs",
    "failing-subscript": "read an attribute instead, or store a dict or a sequence in the variable",
    "undefined-name": "define the name, or import it",
    "project-import": "lint the directory that holds the module too, or review it by hand",
    "library-call": "review by hand whether this library draws random numbers or trains on a GPU",
    "left-to-library": "review by hand what the library does with this code, and whether it is seeded before",
    "device": "set `device` in the configuration if the program never runs on a GPU",
    "constant": "check the program with the other value too, or make it an option of the command line",
}
