"""The diagnostic format of reviewdog."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from d9mlint.report.common import Options, edits_in_order, file_span, in_cell, said, shown_path
from d9mlint.report.json import rule_url

if TYPE_CHECKING:
    from d9mlint.base.source import Source
    from d9mlint.pipeline import Item, Result

SEVERITIES = {"error": "ERROR", "warning": "WARNING", "advice": "INFO"}


def render(result: Result, options: Options) -> str:
    """All findings as one diagnostic result. Columns count bytes of UTF-8, as the format asks."""
    data = {
        "source": {"name": "d9mlint"},
        "severity": "WARNING",
        "diagnostics": [_diagnostic(result, item, options) for item in result.items],
    }
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _diagnostic(result: Result, item: Item, options: Options) -> dict[str, Any]:
    f = item.finding
    source = result.sources[f.path]
    code: dict[str, Any] = {"value": f.code}
    url = rule_url(item.rule)
    if url:
        code["url"] = url
    diagnostic: dict[str, Any] = {
        "message": "\n".join(
            filter(None, [f.message + in_cell(source, f.start), f.help, said(f) and f"measured: {said(f)}"])
        ),
        "location": {"path": shown_path(f.path, options), "range": _range(source, f.start, f.end)},
        "severity": SEVERITIES[f.severity.value],
        "code": code,
    }
    # A suggestion has no path of its own: it is for the file of the diagnostic.
    if f.fix is not None and f.fixed_path == f.path and source.cells is None:
        # One range for the whole fix: reviewdog offers each suggestion on its own, and half a fix breaks the code.
        edits = list(edits_in_order(item))
        start, end = edits[0].start, max(e.end for e in edits)
        text, position = "", start
        for e in edits:
            text += source.text[position : e.start] + e.content
            position = max(position, e.end)
        text += source.text[position:end]
        diagnostic["suggestions"] = [{"range": _range(source, start, end), "text": text}]
    return diagnostic


def _range(source: Source, start: int, end: int) -> dict[str, Any]:
    if source.cells is not None:
        span = file_span(source, start, end)
        return {"start": {"line": span.row}, "end": {"line": span.end_row}}
    return {"start": _position(source, start), "end": _position(source, max(start, end))}


def _position(source: Source, offset: int) -> dict[str, int]:
    row, column = source.row_column(offset)
    before = source.raw[source.starts[row - 1] : source.starts[row - 1] + column - 1]
    return {"line": row, "column": len(before.encode("utf-8", "replace")) + 1}
