"""Which statement a comment belongs to."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from d9mlint.ir.nodes import Comment


def place(
    text: str,
    lines: Sequence[int],
    comments: Sequence[tuple[int, str]],
    extents: Sequence[tuple[int, int]],
) -> list[Comment]:
    """Comments with the rows of their statements.

    ``lines`` are the offsets at which lines start; ``extents`` the spans of all simple statements and
    all headers of compound ones, in any order.
    """

    def row(offset: int) -> int:
        return bisect_right(lines, offset)

    rows = sorted((row(start), row(max(start, end - 1))) for start, end in extents)
    out: list[Comment] = []
    for start, comment in comments:
        at = row(start)
        own_line = not text[lines[at - 1] : start].strip()
        around = [r for r in rows if r[0] <= at <= r[1]]
        if not around and own_line:
            around = [r for r in rows if r[0] > at][:1]
        first = min((r[0] for r in around), default=at)
        last = max((r[1] for r in around), default=at)
        out.append(Comment(comment, start, at, own_line, first, last))
    return out
