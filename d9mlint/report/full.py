"""The format for people: the code around a finding, what to write instead, the way that leads there."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from d9mlint.base.findings import Edit, Fix
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
    from d9mlint.pipeline import Item, Result

DIFF_LINES = 12
"""A fix that touches more lines is not shown as a diff."""


def render(result: Result, options: Options) -> str:
    """All findings with their frames, what was measured, then a summary."""
    blocks = ["\n".join(block(result, item, options)) + "\n" for item in result.items]
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


def block(result: Result, item: Item, options: Options) -> list[str]:
    """A finding as lines of text."""
    f = item.finding
    source = result.sources[f.path]
    mark = "[*] " if is_fixable(f, options) else ""
    lines = [f"{paint(f.code, f.severity.value, options)} {mark}{paint(clean(f.message), 'bold', options)}"]
    lines += frame(source, f.start, f.end, f.severity.value, options)
    if f.help:
        lines += [
            f"{_word('help', options)} {clean(part)}" if i == 0 else f"      {clean(part)}"
            for i, part in enumerate(f.help.splitlines())
        ]
    if f.fix is not None:
        fixed = result.sources[f.fixed_path]
        changed = diff(fixed, f.fix, options)
        if changed and fixed is not source:
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


def frame(source: Source, start: int, end: int, style: str, options: Options) -> list[str]:
    """The lines around a span with carets under it."""
    where = place(source, start, options)
    row, column = source.row_column(start)
    end_row, end_column = source.row_column(max(start, end))
    rows, shift = context_rows(source, start, row - CONTEXT, row + CONTEXT)
    gutter = len(str(rows.stop - 1 - shift))
    bar = paint("|", "dim", options)
    lines = [f"{' ' * gutter}{paint('-->', 'dim', options)} {paint(where, 'path', options)}"]
    if not source.text:
        return lines
    lines.append(f"{' ' * gutter} {bar}")
    room = max(options.width - gutter - 3, 40)
    for number in rows:
        text = source.line(number)
        stop = end_column - 1 if end_row == row else len(text)
        code, carets = _cut(text, column - 1, stop, room) if number == row else (_fit(text, room), "")
        label = paint(f"{number - shift:>{gutter}}", "dim", options)
        lines.append(f"{label} {bar} {code}".rstrip())
        if number == row:
            lines.append(f"{' ' * gutter} {bar} {carets[0]}{paint(carets[1], style, options)}")
    lines.append(f"{' ' * gutter} {bar}")
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
    """A fix as a small diff, each place with the lines that change there, in a notebook with their cell; nothing when it
    would be long."""
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
    for hunk in hunks:
        at = source.location(hunk[0].start)
        if at.cell != shown:
            shown = at.cell
            lines.append(paint(f"    cell {shown}:", "dim", options))
        for number, text in _hunk(source, hunk):
            sign = text[0]
            line = f"{number:>5} {sign} {_fit(text[1:], room)}".rstrip()
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
