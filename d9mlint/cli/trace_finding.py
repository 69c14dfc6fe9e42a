"""What the static analysis says at the place where two traced runs diverge."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from d9mlint.base.errors import UsageError
from d9mlint.base.findings import Confidence
from d9mlint.trace.about import is_about
from d9mlint.trace.compare import Difference, Frame
from d9mlint.trace.facts import Span, fact, made_at, running_at, unseeded
from d9mlint.trace.journal import BACKWARD, COMPILED, KINDS, OP
from d9mlint.trace.model import Report, StaticFinding
from d9mlint.trace.places import places, source_lines

if TYPE_CHECKING:
    from d9mlint.base.source import Source
    from d9mlint.knowledge.schema import OpEntry
    from d9mlint.pipeline import Result

INCOMPLETE = "DET004"
BY_CAUSE = {
    "hash seed": ("DET210", "DET213"),
    "addresses": ("DET210",),
    "listing": ("DET209",),
    "entropy": ("DET101", "DET102", "DET103", "DET106", "DET107"),
    "clock": ("DET107", "DET216", "DET314"),
}
"""The rules about what a further run has shown to be the cause: the run does not show the line, the rule does."""

MISSING_SEED = {"torch": "DET101", "numpy": "DET102", "python": "DET103", "tensorflow": "DET104"}
"""The rules about programs that never seed a generator."""


DETERMINISTIC_MODE = ("DET302", "DET303", "DET306")
"""The rules about programs in which deterministic mode is off."""


class Place(NamedTuple):
    """A finding and where it is: its real path, and the rows and columns at which it begins and ends."""

    finding: StaticFinding
    op: str
    filename: str
    span: Span
    confidence: Confidence

    def holds(self, frame: Frame) -> bool:
        """Whether it is at the line of a frame."""
        return self.filename == os.path.realpath(frame.filename) and self.span[0] <= frame.row <= self.span[2]

    def inside(self, span: Span) -> bool:
        """Whether it is inside of a part of its file."""
        return span[:2] <= self.span[:2] and self.span[2:] <= span[2:]


def with_finding(report: Report) -> Report:
    """The report with the finding at the cause, the forward line, the line itself, or the call path, in this order; else
    with the only one about the cause, or about the generator that nothing seeds. Where an operation differs, it is a
    finding about this operation."""
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
        unsure = msgspec.structs.replace(
            settings, min_confidence="low", **{f"{k}_version": v for k, v in report.versions.items()}
        )
        result = check_program(report.source, unsure, others)
    except UsageError:
        return report
    everywhere = findings(result)
    sure = [one for one in everywhere if one.confidence.rank >= Confidence(settings.min_confidence).rank]
    for found in (sure, everywhere):
        chosen = _of_operation(found, report) if _is_operation(difference) else _at_frames(found, where)
        if chosen is not None:
            return report._replace(finding=chosen)
    kind = difference.cause.kind if difference.cause is not None else ""
    all_sure = dict.fromkeys(one.finding for one in sure)
    about = [f for f in all_sure if f.code in BY_CAUSE.get(kind, ())]
    if len(about) == 1:
        return _at(report, difference, about[0])
    code = MISSING_SEED.get(unseeded(difference), "")
    about = [f for f in all_sure if f.code == code]
    if len(about) == 1:
        # At the first draw of the program, which need not be the first whose numbers differ.
        return report._replace(finding=about[0])
    report = _without_known(report)
    cut = [item.finding.message for item in result.items if item.finding.code == INCOMPLETE]
    if result.incomplete:
        note = f"no finding of the static analysis at this place: {'; '.join(cut) or 'it was cut off'}"
        return report._replace(notes=(*report.notes, note))
    return report


def _at_frames(found: Sequence[Place], where: Sequence[Frame]) -> StaticFinding | None:
    at = (one.finding for frame in where for one in found if one.holds(frame))
    return next(at, None)


def _is_operation(difference: Difference) -> bool:
    """Whether an operation of PyTorch differs that has its own name."""
    side = difference.side
    named = side.kind == KINDS[OP] and not side.flags & COMPILED and not side.name.startswith("tf.")
    return named and difference.verdict == "op"


def _of_operation(found: Sequence[Place], report: Report) -> StaticFinding | None:
    """The finding about the operation that differs: about the call that was running or the layer that was called; else
    the only one in the program that names it, or the one about deterministic mode where that is the remedy."""
    difference = report.difference
    assert difference is not None
    if not difference.place:
        return None
    from d9mlint.knowledge import load

    known = load()
    operation, innermost = difference.side.name, difference.place[0]
    backward = bool(difference.side.flags & BACKWARD and difference.side.forward)
    other = "forward" if backward else "backward"

    def names_it(one: Place) -> bool:
        entry = known.op(one.op)
        return entry is not None and is_about(operation, entry.apis, entry.alerts, entry.operations)

    # The project's own facts are not among the entries: the place alone says that they are about the operation.
    possible = [
        one for one in found if one.op and not ((entry := known.op(one.op)) and entry.passes == other)
    ]
    own = [one for one in possible if one.filename == os.path.realpath(innermost.filename)]
    made = made_at(innermost)
    exact = bool(innermost.columns)
    running = {*running_at(innermost), *made}
    near = [*(one for one in own if one.holds(innermost)), *_inside(own, made)]
    chosen = [one for one in near if names_it(one)]
    if not chosen:
        # An entry that names other operations is about those.
        silent = [one for one in own if not _names_operations(known.op(one.op))]
        chosen = [one for one in silent if (one.span in running if exact else one in near)]
    if chosen:
        return chosen[0].finding
    named = list(dict.fromkeys(one.finding for one in possible if names_it(one)))
    if len(named) == 1:
        return named[0]
    replays = report.confirmation
    fixed = replays is None or (
        replays["deterministic"]["distinct"] == 1 and not replays["deterministic"]["raises"]
    )
    return (
        _at_frames([one for one in found if one.finding.code in DETERMINISTIC_MODE], places(difference))
        if fixed
        else None
    )


def _names_operations(entry: OpEntry | None) -> bool:
    return entry is not None and bool(entry.alerts or entry.operations)


def _inside(found: Sequence[Place], spans: Sequence[Span]) -> list[Place]:
    return [one for one in found if any(one.inside(span) for span in spans)]


def _without_known(report: Report) -> Report:
    """The report without a fact about a call that the knowledge base has facts about: it would replace them. What they
    say of the operation that differs is said."""
    from d9mlint.knowledge import load

    about = re.search(r"^ +apis: \[(.+)\]$", fact(report), re.MULTILINE)
    difference = report.difference
    if about is None or difference is None:
        return report
    known = load()
    ops = [entry for entry in known.op_entries() if about[1] in entry.apis]
    if not ops and not any(about[1] in entry.apis for entry in known.rng_entries()):
        return report
    shows = f"`d9mlint knows {about[1]}` shows the facts about this call"
    if not _is_operation(difference):
        note = f"{shows}; none of them applies here"
        return report._replace(known=True, notes=(*report.notes, note))
    name = difference.side.name
    of_operation = [op for op in ops if is_about(name, op.apis, op.alerts, op.operations)]
    notes = [
        f"this operation is known to differ under this condition: {op.condition}"
        for op in of_operation
        if op.condition
    ]
    notes.append(shows if of_operation else f"{shows}; none of them names this operation")
    remedies = list(dict.fromkeys(op.remedy for op in of_operation))
    advice = remedies[0] if len(remedies) == 1 else ""
    return report._replace(known=True, advice=advice, notes=(*report.notes, *notes))


def _at(report: Report, difference: Difference, finding: StaticFinding) -> Report:
    """The report with its cause at the place of the only finding about such a cause."""
    cause = difference.cause
    assert cause is not None
    function = next((f.function for f in places(difference) if f.filename == finding.filename), "<module>")
    path = (Frame(finding.filename, finding.row, function),)
    difference = difference._replace(cause=cause._replace(path=path))
    return report._replace(difference=difference, finding=finding, sources=source_lines(difference))


def findings(result: Result) -> list[Place]:
    """The findings with their places."""
    found = []
    for item in result.items:
        finding = item.finding
        if finding.code == INCOMPLETE:
            continue
        source = result.sources[finding.path]
        row, column = source.row_column(finding.start)
        last, end = source.row_column(max(finding.start, finding.end - 1))
        fix = finding.fix.message if finding.fix is not None else ""
        one = StaticFinding(
            finding.code, item.rule.name, finding.path, row, finding.message, finding.help, fix
        )
        span = (row, _bytes(source, row, column - 1), last, _bytes(source, last, end))
        found.append(Place(one, finding.op, os.path.realpath(finding.path), span, finding.confidence))
    return found


def _bytes(source: Source, row: int, column: int) -> int:
    """How many bytes of a row are before a column."""
    return len(source.line(row)[:column].encode())
