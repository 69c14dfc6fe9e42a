"""Workflow commands that GitHub shows as annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.report.common import Options, clean, file_span, said, shown_path

if TYPE_CHECKING:
    from d9mlint.pipeline import Result

COMMANDS = {"error": "error", "warning": "warning", "advice": "notice"}


def render(result: Result, options: Options) -> str:
    """A command a finding; nothing for a clean run."""
    lines = []
    for item in result.items:
        f = item.finding
        source = result.sources[f.path]
        row, column, end_row, end_column = file_span(source, f.start, f.end)
        at = source.location(f.start)
        path = shown_path(f.path, options)
        cell = f"cell {at.cell}:" if at.cell is not None else ""
        properties = {"title": f"d9mlint {f.code} {item.rule.name}", "file": path, "line": str(row)}
        properties["endLine"] = str(end_row)
        if row == end_row and column is not None:
            # Columns of a span over several lines are refused.
            properties |= {"col": str(column), "endColumn": str(end_column)}
        listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
        message = f"{path}:{cell}{at.row}:{at.column}: {f.code} {clean(f.message)}"
        message += f"\nhelp: {f.help}" if f.help else ""
        message += f"\nnote: {said(f)}" if said(f) else ""
        lines.append(f"::{COMMANDS[f.severity.value]} {listed}::{_data(message)}")
    return "".join(line + "\n" for line in lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
