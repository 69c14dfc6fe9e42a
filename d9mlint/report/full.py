"""The format for people: the code around a finding, what to write instead, the way that leads there."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from d9mlint.base.findings import Edit, Finding, Fix
from d9mlint.base.source import Source, line_starts
from d9mlint.report.common import (
    CONTEXT,
    TAB,
    Options,
    clean,
    context_rows,
    flow_note,
    is_fixable,
    paint,
    place,
    row_place,
    said,
    shown_path,
    summary,
    width,
)
from d9mlint.report.evidence.tables import table

if TYPE_CHECKING:
    from d9mlint.pipeline import Result

DIFF_LINES = 12
"""A fix that touches more lines is not shown as a diff."""


def render(result: Result, options: Options) -> str:
    """All findings with their frames, what was measured, then a summary."""
    blocks = ["\n".join(lines) + "\n" for lines in _blocks(result, options)]
    if result.evidence is not None:
        blocks.append("\n".join(table(result.evidence, options)) + "\n")
        if verdicts := _verdicts(result, options):
            blocks.append("\n".join(verdicts) + "\n")
    return "\n".join([*blocks, "\n".join(summary(result, options)) + "\n"])


def _verdicts(result: Result, options: Options) -> list[str]:
    """A line for each finding that was measured: where it is, and what came of it."""
    rows = []
    for item in result.items:
        f = item.finding
        if f.evidence is not None:
            where = place(result.sources[f.path], f.start, options)
            rows.append((where, f"{f.code} {clean(f.subject)}", said(f).partition(" (")[0].partition(";")[0]))
    if not rows:
        return []
    places, names = (max(len(row[i]) for row in rows) for i in (0, 1))
    lines = [f"  {where:<{places}}  {name:<{names}}  {verdict}" for where, name, verdict in rows]
    return [paint("Verdicts", "bold", options), *lines]


def _blocks(result: Result, options: Options) -> list[list[str]]:
    """The findings as lines of text. Of those in a file that differ in their place alone, such as layers of one kind in a
    constructor, what is said is read once."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for item in result.items:
        f = item.finding
        said_of_it = (f.path, f.severity.value, _head(f, options), *_explanation(result, f, options))
        groups.setdefault(said_of_it, []).append(f)
    return [
        [head, *frame(result.sources[path], [(f.start, f.end) for f in found], severity, options), *rest]
        for (path, severity, head, *rest), found in groups.items()
    ]


def _head(f: Finding, options: Options) -> str:
    mark = "[*] " if is_fixable(f, options) else ""
    return f"{paint(f.code, f.severity.value, options)} {mark}{paint(clean(f.message), 'bold', options)}"


def _explanation(result: Result, f: Finding, options: Options) -> list[str]:
    """What stands under the lines of a finding: what to write instead, the way that leads there, what was measured."""
    lines: list[str] = []
    if f.help:
        lines += [
            f"{_word('help', options)} {clean(part)}" if i == 0 else f"      {clean(part)}"
            for i, part in enumerate(f.help.splitlines())
        ]
    if f.fix is not None:
        fixed = result.sources[f.fixed_path]
        changed = diff(fixed, f.fix, options)
        if changed and fixed is not result.sources[f.path]:
            lines.append(f"    {clean(shown_path(fixed.path, options))}")
        lines += changed
    for step in f.flow:
        other = result.sources.get(step.path)
        where = row_place(other, step.start, options) if other is not None else clean(step.path)
        lines.append(f"{_word('note', options)} {flow_note(clean(step.message), where)}")
    if f.targets:
        source_of = f", {clean(f.targets[1])}" if len(f.targets) > 1 and f.targets[1] else ""
        lines.append(f"{_word('note', options)} assuming {clean(f.targets[0])}{source_of}")
    if said(f):
        first, *more = textwrap.wrap(
            f"note: {said(f)}",
            options.width,
            subsequent_indent=" " * 6,
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines += [f"{_word('note', options)}{first.removeprefix('note:')}", *more]
    return lines


def _word(word: str, options: Options) -> str:
    return paint(f"{word}:", "bold", options)


def frame(source: Source, spans: Sequence[tuple[int, int]], style: str, options: Options) -> list[str]:
    """The lines of some spans with carets under them, and the lines around the first one."""
    around = [CONTEXT, *[0] * (len(spans) - 1)]
    shown = [_rows(source, start, context) for (start, _), context in zip(spans, around, strict=True)]
    gutter = max(len(str(rows.stop - 1 - shift)) for rows, shift in shown)
    edge = f"{' ' * gutter} {paint('|', 'dim', options)}"
    lines: list[str] = []
    for span, (rows, shift) in zip(spans, shown, strict=True):
        where = paint(place(source, span[0], options), "path", options)
        lines.append(f"{' ' * gutter}{paint('-->', 'dim', options)} {where}")
        if source.text:
            lines += [edge] if len(lines) == 1 else []
            lines += _marked(source, span, rows, shift, gutter, style, options)
    return [*lines, edge] if source.text else lines


def _rows(source: Source, start: int, context: int) -> tuple[range, int]:
    """The rows to show of a span with as many around it, and by how much they are shifted in a notebook's cell."""
    row = source.row_column(start)[0]
    return context_rows(source, start, row - context, row + context)


def _marked(
    source: Source, span: tuple[int, int], rows: range, shift: int, gutter: int, style: str, options: Options
) -> list[str]:
    """Rows with carets under a span that begins in one of them."""
    start, end = span
    row, column = source.row_column(start)
    end_row, end_column = source.row_column(max(start, end))
    bar = paint("|", "dim", options)
    room = max(options.width - gutter - 3, 40)
    lines = []
    for number in rows:
        text = source.line(number)
        stop = end_column - 1 if end_row == row else len(text)
        code, carets = _cut(text, column - 1, stop, room) if number == row else (_fit(text, room), "")
        label = paint(f"{number - shift:>{gutter}}", "dim", options)
        lines.append(f"{label} {bar} {code}".rstrip())
        if number == row:
            lines.append(f"{' ' * gutter} {bar} {carets[0]}{paint(carets[1], style, options)}")
    return lines


def _expand(text: str) -> list[tuple[str, int]]:
    """Characters as they are shown, with their widths; tabs become blanks up to the next tab stop."""
    if text.isascii() and text.isprintable():
        return [(char, 1) for char in text]
    shown: list[tuple[str, int]] = []
    at = 0
    for char in text:
        if char == "\t":
            blanks = TAB - at % TAB
            shown.append((" " * blanks, blanks))
            at += blanks
        else:
            safe = char if char.isprintable() or (width(char) == 0 and char.isprintable()) else clean(char)
            columns = width(safe) if len(safe) == 1 else len(safe)
            shown.append((safe, columns))
            at += columns
    return shown


def _fit(text: str, room: int) -> str:
    if text.isascii() and text.isprintable():
        return text if len(text) < room else f"{text[: room - 1]}…"
    shown, used = "", 0
    for char, columns in _expand(text):
        if used + columns > room - 1:
            return shown + "…"
        shown += char
        used += columns
    return shown


def _cut(text: str, start: int, stop: int, room: int) -> tuple[str, tuple[str, str]]:
    """A line cut to ``room`` columns around a span, with the blanks and the carets that go under it."""
    cells = _expand(text)
    stop = max(min(stop, len(cells)), start)
    total = sum(c for _, c in cells)
    left = 0
    prefix = ""
    if total > room:
        # Keep the start of the span in view, with some of what stands before it.
        while (left < start and sum(c for _, c in cells[left:stop]) > room - 2) or _before(
            cells, left, start
        ) > room // 2:
            left += 1
        prefix = "…" if left else ""
    shown, used = prefix, len(prefix)
    right = left
    while right < len(cells) and used + cells[right][1] <= room - (0 if total <= room else 1):
        shown += cells[right][0]
        used += cells[right][1]
        right += 1
    if right < len(cells):
        shown += "…"
    blanks = len(prefix) + _before(cells, left, start)
    carets = max(_before(cells, start, min(stop, right)), 1)
    return shown, (" " * blanks, "^" * carets)


def _before(cells: list[tuple[str, int]], first: int, last: int) -> int:
    return sum(c for _, c in cells[first:last])


def diff(source: Source, fix: Fix, options: Options) -> list[str]:
    """A fix as a small diff, each place with the lines that change there, numbered as they are before or after it, in a
    notebook with their cell; nothing when it would be long."""
    hunks: list[list[Edit]] = []
    last = -1
    for edit in sorted(fix.edits):
        first = source.row_column(edit.start)[0]
        if hunks and first <= last:
            hunks[-1].append(edit)
        else:
            hunks.append([edit])
        last = max(last, source.row_column(edit.end)[0])
    room = max(options.width - 10, 40)
    lines: list[str] = []
    shown = None
    added = 0
    for hunk in hunks:
        at = source.location(hunk[0].start)
        if at.cell != shown:
            shown, added = at.cell, 0
            lines.append(paint(f"    cell {shown}:", "dim", options))
        before = added
        for number, text in _hunk(source, hunk):
            sign = text[0]
            added += 1 if sign == "+" else -1
            line = f"{number + (before if sign == '+' else 0):>5} {sign} {_fit(text[1:], room)}".rstrip()
            lines.append(paint(line, "error" if sign == "-" else "green", options))
    return lines if len(lines) <= DIFF_LINES else []


def _hunk(source: Source, edits: list[Edit]) -> list[tuple[int, str]]:
    """The changed lines of neighboring edits: their numbers, and a sign with the text."""
    raw = source.raw
    first = source.row_column(edits[0].start)[0]
    last = source.row_column(max(e.end for e in edits))[0]
    begin = source.starts[first - 1]
    finish = source.starts[last] if last < len(source.starts) else len(raw)
    changed = raw[begin:finish]
    for edit in reversed(edits):
        changed = changed[: edit.start - begin] + edit.content + changed[edit.end - begin :]
    old, new = _lines(raw[begin:finish]), _lines(changed)
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    skipped = 0
    while old and new and old[0] == new[0]:
        old, new, skipped = old[1:], new[1:], skipped + 1
    shift = source.cell_at(edits[0].start).row - 1 if source.cells else 0
    number = first + skipped - shift
    removed = [(number + i, f"-{text}") for i, text in enumerate(old)]
    return removed + [(number + i, f"+{text}") for i, text in enumerate(new)]


def _lines(text: str) -> list[str]:
    starts = line_starts(text)
    lines = [text[a:b].rstrip("\r\n") for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
    return lines[:-1] if lines and not lines[-1] else lines
