"""What the static analysis says at the place where two traced runs diverge."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from d9mlint.base.errors import UsageError
from d9mlint.trace.model import Report, StaticFinding
from d9mlint.trace.places import places

if TYPE_CHECKING:
    from d9mlint.pipeline import Result

INCOMPLETE = "DET004"


def with_finding(report: Report) -> Report:
    """The report with the finding at the cause, the forward line, the line itself, or the call path, in this order."""
    difference = report.difference
    if difference is None or not report.source:
        return report
    from d9mlint.config.settings import load_settings
    from d9mlint.pipeline import check_program

    where = places(difference)
    others = sorted({frame.filename for frame in where if os.path.isfile(frame.filename)} - {report.source})
    try:
        result = check_program(report.source, load_settings(os.path.dirname(report.source)), others)
    except UsageError:
        return report
    found = by_place(result)
    for frame in where:
        finding = found.get((os.path.realpath(frame.filename), frame.row))
        if finding is not None:
            return report._replace(finding=finding)
    cut = [item.finding.message for item in result.items if item.finding.code == INCOMPLETE]
    if result.incomplete:
        note = f"no finding of the static analysis at this place: {'; '.join(cut) or 'it was cut off'}"
        return report._replace(notes=(*report.notes, note))
    return report


def by_place(result: Result) -> dict[tuple[str, int], StaticFinding]:
    """The first finding of every row, by real path and row."""
    found: dict[tuple[str, int], StaticFinding] = {}
    for item in result.items:
        finding = item.finding
        if finding.code == INCOMPLETE:
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
