"""A report after edits that moved code and changed none that the run read: the same, at the places of now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from d9mlint.base.coverage import Cut, Gap
from d9mlint.base.entry_report import EntryReport
from d9mlint.base.findings import Edit, Finding, Step
from d9mlint.ir.edited import Edited, Lost, moved_end, moved_point, moved_start

_Placed = TypeVar("_Placed", Step, Gap, Cut, Finding)


def after_edits(report: EntryReport, edits: Mapping[int, tuple[str, Edited | None]]) -> EntryReport | None:
    """What a run would report now; None where that is not known without making it. ``edits`` has, by their places among
    the project's files, the edited files whose code the run read, with their paths."""
    moves: dict[str, Edited] = {}
    entered = report.functions_entered() if edits else {}
    for index, (path, edit) in edits.items():
        if edit is None or 0 in edit.changed or not edit.changed.isdisjoint(entered[index]):
            return None
        moves[path] = edit
    if not moves:
        return report
    try:
        return moved(report, moves)
    except Lost:
        return None


def moved(report: EntryReport, edits: Mapping[str, Edited]) -> EntryReport:
    """The report, with what it says of edited files at the new places. Raises ``Lost`` where one is not known."""
    return msgspec.structs.replace(
        report,
        findings=[_finding(one, edits) for one in report.findings],
        cuts=[_placed(one, edits) for one in report.cuts],
        gaps=[_placed(one, edits) for one in report.gaps],
    )


def _placed(one: _Placed, edits: Mapping[str, Edited]) -> _Placed:
    places = edits.get(one.path)
    if places is None or one.start == one.end == 0:
        return one
    start, end = moved_start(places, one.start), moved_end(places, one.end)
    return msgspec.structs.replace(one, start=start, end=end)


def _finding(finding: Finding, edits: Mapping[str, Edited]) -> Finding:
    fix = finding.fix
    if fix is not None and finding.fixed_path in edits:
        places = edits[finding.fixed_path]
        fix = msgspec.structs.replace(fix, edits=tuple(_edit(one, places) for one in fix.edits))
    result = _placed(finding, edits)
    return msgspec.structs.replace(result, flow=tuple(_placed(one, edits) for one in finding.flow), fix=fix)


def _edit(edit: Edit, places: Edited) -> Edit:
    if edit.start == edit.end:
        start = end = moved_point(places, edit.start)
    else:
        start, end = moved_start(places, edit.start), moved_end(places, edit.end)
    return Edit(start, end, edit.content)
