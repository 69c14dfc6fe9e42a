"""What the static analysis says at the place where two traced runs diverge."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import msgspec

from d9mlint.base.errors import UsageError
from d9mlint.base.findings import Confidence
from d9mlint.trace.compare import Difference, Frame
from d9mlint.trace.facts import fact, unseeded
from d9mlint.trace.model import Report, StaticFinding
from d9mlint.trace.places import places, source_lines

if TYPE_CHECKING:
    from d9mlint.pipeline import Result

INCOMPLETE = "DET004"
BY_CAUSE = {
    "hash seed": ("DET210", "DET213"),
    "addresses": ("DET210",),
    "listing": ("DET209",),
    "entropy": ("DET101", "DET102", "DET103", "DET106", "DET107"),
    "clock": ("DET107", "DET314"),
}
"""The rules about what a further run has shown to be the cause: the run does not show the line, the rule does."""

MISSING_SEED = {"torch": "DET101", "numpy": "DET102", "python": "DET103", "tensorflow": "DET104"}
"""The rules about programs that never seed a generator."""


def with_finding(report: Report) -> Report:
    """The report with the finding at the cause, the forward line, the line itself, or the call path, in this order; else
    with the only one about the cause, or about the generator that nothing seeds."""
    difference = report.difference
    if difference is None or not report.source:
        return report
    from d9mlint.config.settings import load_settings
    from d9mlint.pipeline import check_program

    where = places(difference)
    others = sorted({frame.filename for frame in where if os.path.isfile(frame.filename)} - {report.source})
    try:
        settings = load_settings(os.path.dirname(report.source))
        # At the line that has diverged, what the linter was not sure of is shown too.
        unsure = msgspec.structs.replace(settings, min_confidence="low")
        result = check_program(report.source, unsure, others)
    except UsageError:
        return report
    found = by_place(result, least=Confidence(settings.min_confidence))
    for findings in (found, by_place(result)):
        for frame in where:
            finding = findings.get((os.path.realpath(frame.filename), frame.row))
            if finding is not None:
                return report._replace(finding=finding)
    kind = difference.cause.kind if difference.cause is not None else ""
    about = [f for f in dict.fromkeys(found.values()) if f.code in BY_CAUSE.get(kind, ())]
    if len(about) == 1:
        return _at(report, difference, about[0])
    code = MISSING_SEED.get(unseeded(difference), "")
    about = [f for f in dict.fromkeys(found.values()) if f.code == code]
    if len(about) == 1:
        # At the first draw of the program, which need not be the first whose numbers differ.
        return report._replace(finding=about[0])
    report = _without_known(report)
    cut = [item.finding.message for item in result.items if item.finding.code == INCOMPLETE]
    if result.incomplete:
        note = f"no finding of the static analysis at this place: {'; '.join(cut) or 'it was cut off'}"
        return report._replace(notes=(*report.notes, note))
    return report


def _without_known(report: Report) -> Report:
    """The report without a fact about a call that the knowledge base has facts about: it would replace them."""
    from d9mlint.knowledge import load

    about = re.search(r"^ +apis: \[(.+)\]$", fact(report), re.MULTILINE)
    if about is None:
        return report
    known = load()
    apis = [entry.apis for entry in known.op_entries()] + [entry.apis for entry in known.rng_entries()]
    if not any(about[1] in names for names in apis):
        return report
    note = f"`d9mlint knows {about[1]}` shows the facts about this call; none of them applies here"
    return report._replace(known=True, notes=(*report.notes, note))


def _at(report: Report, difference: Difference, finding: StaticFinding) -> Report:
    """The report with its cause at the place of the only finding about such a cause."""
    cause = difference.cause
    assert cause is not None
    function = next((f.function for f in places(difference) if f.filename == finding.filename), "<module>")
    path = (Frame(finding.filename, finding.row, function),)
    difference = difference._replace(cause=cause._replace(path=path))
    return report._replace(difference=difference, finding=finding, sources=source_lines(difference))


def by_place(result: Result, least: Confidence = Confidence.LOW) -> dict[tuple[str, int], StaticFinding]:
    """The first finding of every row, by real path and row."""
    found: dict[tuple[str, int], StaticFinding] = {}
    for item in result.items:
        finding = item.finding
        if finding.code == INCOMPLETE or finding.confidence.rank < least.rank:
            continue
        source = result.sources[finding.path]
        first = source.row_column(finding.start)[0]
        last = source.row_column(max(finding.start, finding.end - 1))[0]
        fix = finding.fix.message if finding.fix is not None else ""
        one = StaticFinding(
            finding.code, item.rule.name, finding.path, first, finding.message, finding.help, fix
        )
        for row in range(first, last + 1):
            found.setdefault((os.path.realpath(finding.path), row), one)
    return found
