"""Findings under a heading for each file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.report.common import Options, clean, is_fixable, paint, shown_path, summary, verdict_mark

if TYPE_CHECKING:
    from d9mlint.pipeline import Result


def render(result: Result, options: Options) -> str:
    """Files in path order, their findings below them, then a summary."""
    lines: list[str] = []
    current = ""
    for item in result.items:
        f = item.finding
        if f.path != current:
            if current:
                lines.append("")
            current = f.path
            lines.append(paint(shown_path(f.path, options) + ":", "bold", options))
        at = result.sources[f.path].location(f.start)
        where = f"{at.row}:{at.column}" if at.cell is None else f"cell {at.cell}:{at.row}:{at.column}"
        mark = "[*] " if is_fixable(f, options) else ""
        code = paint(f.code, f.severity.value, options)
        lines.append(f"  {where} {f.severity.value} {code} {mark}{clean(f.message)}{verdict_mark(f)}")
    if lines:
        lines.append("")
    return "\n".join([*lines, *summary(result, options)]) + "\n"
