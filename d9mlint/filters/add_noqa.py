"""Where a suppression comment can be written, and writing it: ``--add-noqa``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from d9mlint.base.findings import Edit
from d9mlint.base.source import Source

_TOKEN = re.compile(r"\"\"\"|'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#[^\r\n]*|\\.", re.DOTALL)


def noqa_row(source: Source, offset: int) -> int:
    """The row at which a comment hides a finding at ``offset``: the first from its own on whose end is
    neither inside a string nor continued by a backslash. Within its cell in a notebook."""
    row = comment_row(source, offset)
    return row - source.cell_at(offset).row + 1 if source.cells else row


def comment_row(source: Source, offset: int) -> int:
    """As ``noqa_row``, but counted over joined cells."""
    row = source.row_column(offset)[0]
    blocked = _blocked_rows(source)
    while row < source.lines and (row in blocked or source.line(row).endswith("\\")):
        row += 1
    return row


def _blocked_rows(source: Source) -> set[int]:
    """Rows that end inside a triple-quoted string."""
    text = source.text
    blocked: set[int] = set()
    if '"""' not in text and "'''" not in text:
        return blocked
    position = 0
    while True:
        match = _TOKEN.search(text, position)
        if match is None:
            return blocked
        position = match.end()
        quotes = match.group()
        if quotes in ('"""', "'''"):
            end = position
            while True:
                end = text.find(quotes, end)
                if end < 0:
                    end = len(text)
                    break
                inside = text[position:end]
                if (len(inside) - len(inside.rstrip("\\"))) % 2 == 0:
                    break
                end += 1
            first, last = source.row_column(match.start())[0], source.row_column(end)[0]
            blocked.update(range(first, last))
            position = end + 3


STYLES = ("d9mlint", "noqa")
_PRESENT = {
    "noqa": re.compile(r"#\s*noqa\s*:\s*([A-Z][A-Z0-9]*(?:[\s,]+[A-Z]+[0-9]+)*)"),
    "d9mlint": re.compile(r"#\s*d9mlint\s*:\s*ignore\[([^\]]*)\]"),
}


def noqa_edits(
    source: Source, rows: Iterable[tuple[int, Iterable[str]]], reason: str = "", style: str = "d9mlint"
) -> list[Edit]:
    """Edits that write a suppression at the end of each row (counted over joined cells), naming the given
    codes: ``# d9mlint: ignore[...]``, which other linters leave alone, or with style ``noqa`` a ``# noqa``.
    A comment of that style that is there already gets the codes added."""
    edits = []
    for row, codes in sorted(rows):
        line = source.line(row)
        start = source.starts[row - 1]
        present = _PRESENT[style].search(line)
        if present:
            written = re.findall(r"[A-Za-z][\w-]*", present.group(1))
            listed = ", ".join(dict.fromkeys([*written, *sorted(codes)]))
            edits.append(Edit(start + present.start(1), start + present.end(1), listed))
        else:
            listed = ", ".join(sorted(codes))
            pragma = f"noqa: {listed}" if style == "noqa" else f"d9mlint: ignore[{listed}]"
            comment = f"  # {pragma}{' ' + reason if reason else ''}"
            edits.append(Edit(start + len(line.rstrip()), start + len(line), comment))
    return edits
