"""Evidence by itself: as a block of text after the findings, as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from d9mlint.evidence import wording
from d9mlint.evidence.model import DIFFERS, EQUAL, NOT_RUN, Evidence, document
from d9mlint.evidence.wording import Op, Series, plain
from d9mlint.report.common import Options, count, paint, width

HEADINGS = {DIFFERS: "Differ", EQUAL: "Equal at this size", NOT_RUN: "Not run"}
MEASURES = ("V_ermv", "V_c", "max ulp")
NAMES = 3
"""More outputs than this are counted where all of them are equal."""


class Row(NamedTuple):
    """A line of cells: series, output, answer, V_ermv with V_c and ulp where it differs, answers at smaller
    sizes."""

    series: str
    output: str
    answer: str
    measures: tuple[str, ...]
    smaller: str


class Alike(NamedTuple):
    """Series that are reported together: their labels, the names of their outputs, the first of them."""

    labels: str
    names: str
    series: Series


class Layout(NamedTuple):
    """Columns of a section: widths of names and answers, of measures, where measures begin, and how many
    are left after them."""

    names: tuple[int, int, int]
    measures: tuple[int, ...]
    left: int
    room: int


def evidence_json(evidence: Evidence) -> str:
    """The evidence document, as ``--evidence`` writes it."""
    return document(evidence).decode()


def table(evidence: Evidence, options: Options) -> list[str]:
    """The evidence as lines of text: machines, ops by outcome, what contradicts the documentation, controls."""
    every = wording.ops(evidence)
    failure = wording.control_failure(evidence) if every else ""
    lines = _machines(evidence, options)
    if failure:
        lines += ["", *_wrap(failure, options, "error")]
    for outcome in (DIFFERS, EQUAL, NOT_RUN):
        members = [op for op in every if op.outcome == outcome]
        if members:
            lines += ["", *_section(members, outcome, len(every), options)]
    if evidence.settings:
        lines += ["", paint("Settings, each a synthetic training run in fresh processes", "bold", options)]
        lines += _aligned(wording.settings(evidence), "  ", options)
    elif not every:
        lines += ["", "No op was measured."]
    against = wording.contradictions(evidence, every)
    if against:
        lines += ["", paint("Contradicts the documentation", "bold", options)]
    for said, pairs in against.items():
        lines += [f"  {said}:", *_aligned(pairs, "    ", options)]
    if not evidence.controls:
        return lines
    lines.append("")
    if failure:
        return [*lines, *_wrap(failure, options, "error")]
    missed = wording.race_failure(evidence)
    lines += _wrap(wording.controls(evidence), options, "" if missed else "green")
    return [*lines, *_wrap(missed, options, "warning")] if missed else lines


def _machines(evidence: Evidence, options: Options) -> list[str]:
    lines: list[str] = []
    for m in evidence.machines:
        lines += _hang("Measured on ", wording.machine(m), options)
    return [*lines, *_wrap(wording.session(evidence), options, "")] if evidence.measurements else lines


def _section(members: Sequence[Op], outcome: str, total: int, options: Options) -> list[str]:
    heading = f"{HEADINGS[outcome]}: {len(members)} of {count(total, 'op')}"
    if outcome == DIFFERS:
        return _differing(members, heading, options)
    lines = [paint(heading, "bold", options)]
    if outcome == NOT_RUN:
        return lines + _aligned([(op.title, said) for op in members for said in _reasons(op)], "  ", options)
    for op in members:
        lines += _equal(op, options)
    return lines + _legend(members, options)


def _reasons(op: Op) -> list[str]:
    told = wording.grouped(op, lambda s: wording.result(s.main))
    return [f"{labels}: {said}" if labels else said for labels, said in told]


def _legend(members: Iterable[Op], options: Options) -> list[str]:
    return _wrap(f"weak: {wording.WEAK}", options, "dim") if any(op.weak for op in members) else []


def _equal(op: Op, options: Options) -> list[str]:
    """An op that was equal: what and at which sizes, then the answers, one line where there is room."""
    alike = _alike(op.series)
    one = len(alike) == 1
    lines = [_head(op, alike[0].labels if one else "", options)]
    for labels, names, s in alike:
        start = f"  {names}  " if one else f"  {labels}  {names}  " if names else f"  {labels}  "
        lines += _hang(start, wording.main_result(s), options)
    notes = [("by size", own) for own in wording.grouped(op, wording.by_size)]
    modes = [("deterministic mode", own) for own in wording.modes(op)]
    if one and not notes and len(modes) == 1:
        together = f"{lines[1]}; {_labelled('deterministic mode', *modes[0][1])}"
        if _columns(together) <= options.width:
            return [lines[0], together]
    return lines + _notes([*notes, *modes], options)


def _differing(members: Sequence[Op], heading: str, options: Options) -> list[str]:
    rows = {id(op): _rows(op) for op in members}
    layout = _layout([row for own in rows.values() for row in own], options)
    headers = [name.rjust(w) for name, w in zip(MEASURES, layout.measures, strict=True)]
    headers += ["smaller sizes"] if any(_in_row(own, layout) for own in rows.values()) else []
    blanks = " " * (layout.left - len(heading))
    lines = [paint(heading, "bold", options) + blanks + paint("  ".join(headers), "dim", options)]
    for op in members:
        lines.append(_head(op, "", options))
        lines += _body(op, rows[id(op)], layout, options)
    return [*lines, *_wrap(wording.DEFINITIONS, options, "dim"), *_legend(members, options)]


def _layout(rows: Sequence[Row], options: Options) -> Layout:
    """Widths of columns; an answer without measures after it may be longer than its column."""
    names = [
        max(_columns(cell) for cell in cells)
        for cells in zip(*((r.series, r.output) for r in rows), strict=True)
    ]
    answer = max((_columns(r.answer) for r in rows if r.measures), default=0)
    measures = [
        max(len(name), *(len(r.measures[i]) for r in rows if r.measures)) if answer else 0
        for i, name in enumerate(MEASURES)
    ]
    left = 2 + sum(names) + 2 * 3 + answer
    return Layout(
        (names[0], names[1], answer), tuple(measures), left, options.width - left - sum(measures) - 2 * 3
    )


def _in_row(rows: Iterable[Row], layout: Layout) -> bool:
    """Whether the answers at smaller sizes of an op fit into its rows."""
    return 0 < max(_columns(row.smaller) for row in rows) <= layout.room


def _head(op: Op, labels: str, options: Options) -> str:
    """The op, its series where one line tells of all, and the shapes of its largest inputs."""
    title = op.title + (" [weak]" if op.weak else "")
    told = "  ".join(filter(None, [labels, wording.sizes(op.series[0].main)]))
    room = options.width - _columns(title) - 3
    shown = f"  {paint(_fit(told, room), 'dim', options)}" if told and room >= 12 else ""
    return paint(title, "bold", options) + shown


def _body(op: Op, rows: Sequence[Row], layout: Layout, options: Options) -> list[str]:
    in_row = _in_row(rows, layout)
    lines = []
    for row in rows:
        cells = [_pad(cell, w) for cell, w in zip(row[:3], layout.names, strict=True)]
        if row.measures:
            cells[2] = paint(cells[2], "error", options)
            cells += [cell.rjust(w) for cell, w in zip(row.measures, layout.measures, strict=True)]
        if row.smaller and in_row:
            blanks = [] if row.measures else [" " * (sum(layout.measures) + 2 * 2)]
            cells += [*blanks, row.smaller]
        lines.append("  " + "  ".join(cells).rstrip())
    notes = [] if in_row else [("by size", own) for own in wording.grouped(op, wording.by_size)]
    notes += [("cause", own) for own in wording.causes(op)]
    notes += [("deterministic mode", own) for own in wording.modes(op)]
    return lines + _notes(notes, options)


def _notes(notes: Iterable[tuple[str, tuple[str, str]]], options: Options) -> list[str]:
    lines: list[str] = []
    for label, (labels, said) in notes:
        lines += _hang(f"    {_labelled(label, labels, '')}", said, options)
    return lines


def _labelled(label: str, series: str, said: str) -> str:
    return f"{label}, {series}: {said}" if series else f"{label}: {said}"


def _rows(op: Op) -> list[Row]:
    """The rows of an op; series that are equal alike are one."""
    rows: list[Row] = []
    for labels, names, s in _alike(op.series):
        if s.main.outcome != DIFFERS or not s.main.outputs:
            answer = wording.result(s.main).removesuffix(" at this size")
            rows.append(Row(labels, names, answer, (), wording.smaller(s)))
            continue
        for i, out in enumerate(s.main.outputs):
            measures = (wording.number(out.v_ermv), wording.number(out.v_c), wording.ulps(out.ulp))
            differs = out.distinct > 1
            answer = wording.result(s.main, out.distinct) if differs else wording.equal(s.main)
            label = labels if i == 0 else ""
            sized = wording.smaller(s, out.name)
            rows.append(Row(label, plain(out.name), answer, measures if differs else (), sized))
    return rows


def _alike(series: Iterable[Series]) -> list[Alike]:
    """Series by what is reported about them; those that are equal alike are joined."""
    found: dict[tuple[str, ...], list[Series]] = {}
    for s in series:
        names = [plain(o.name) for o in s.main.outputs]
        told = ", ".join(names) if len(names) <= NAMES else f"{len(names)} outputs and gradients"
        own = s.label if s.main.outcome == DIFFERS else wording.by_size(s)
        found.setdefault((told, wording.main_result(s), own), []).append(s)
    return [
        Alike(", ".join(s.label for s in members), told, members[0]) for (told, *_), members in found.items()
    ]


def _aligned(pairs: Sequence[tuple[str, str]], indent: str, options: Options) -> list[str]:
    """Names with what is said of them beside, in a column that leaves half of the width."""
    wide = min(max(_columns(name) for name, _ in pairs), options.width // 2)
    lines: list[str] = []
    for name, said in pairs:
        lines += _filled(said, options.width, f"{indent}{_pad(name, wide)}  ", indent + " " * (wide + 2))
    return lines


def _columns(text: str) -> int:
    return sum(map(width, text))


def _pad(text: str, columns: int) -> str:
    return text + " " * max(columns - _columns(text), 0)


def _fit(text: str, room: int) -> str:
    if _columns(text) <= room:
        return text
    shown, used = "", 0
    for char in text:
        used += width(char)
        if used > room - 1:
            break
        shown += char
    return shown.rstrip(", ") + "…"


def _hang(start: str, text: str, options: Options) -> list[str]:
    """Text after a label, wrapped below itself."""
    indent = min(_columns(start), max(options.width // 2, 8))
    return _filled(text, options.width, start, " " * indent)


def _wrap(text: str, options: Options, style: str) -> list[str]:
    lines = _filled(text, options.width, "", "")
    return [paint(line, style, options) for line in lines] if style else lines


def _filled(text: str, room: int, start: str, indent: str) -> list[str]:
    """Words filled into lines of ``room`` columns; a word that is longer stands alone."""
    lines, current, empty = [], start, True
    for word in text.split(" "):
        if not empty and _columns(current) + 1 + _columns(word) > room:
            lines.append(current)
            current, empty = indent, True
        current += word if empty else f" {word}"
        empty = False
    return [*lines, current]
