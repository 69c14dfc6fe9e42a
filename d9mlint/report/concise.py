"""One line a finding: ``file:row:column: CODE message``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.report.common import Options, clean, is_fixable, paint, place, summary, verdict_mark

if TYPE_CHECKING:
    from d9mlint.pipeline import Item, Result


def render(result: Result, options: Options) -> str:
    """All findings, a line each, then a summary."""
    lines = [line(result, item, options) for item in result.items]
    return "\n".join([*lines, *summary(result, options)]) + "\n"


def line(result: Result, item: Item, options: Options) -> str:
    """A finding as one line."""
    f = item.finding
    where = paint(place(result.sources[f.path], f.start, options), "path", options)
    mark = "[*] " if is_fixable(f, options) else ""
    code = paint(f.code, f.severity.value, options)
    return f"{where}: {f.severity.value}: {code} {mark}{clean(f.message)}{verdict_mark(f)}"
