"""GitLab's code quality report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from d9mlint.base.paths import boundary, relative_to
from d9mlint.report.common import Options, file_span, in_cell, said

if TYPE_CHECKING:
    from d9mlint.pipeline import Item, Result

SEVERITIES = {"error": "major", "warning": "minor", "advice": "info"}


def render(result: Result, options: Options) -> str:
    """All findings as one JSON list; ``[]`` when there are none. Paths are relative to the git repository
    (without git: the project's root), as GitLab needs them."""
    base = boundary(result.root)
    return (
        json.dumps([_entry(result, item, base) for item in result.items], indent=2, ensure_ascii=False) + "\n"
    )


def _entry(result: Result, item: Item, base: str) -> dict[str, Any]:
    f = item.finding
    source = result.sources[f.path]
    row, column, end_row, end_column = file_span(source, f.start, f.end)
    where: dict[str, Any] = {"lines": {"begin": row, "end": end_row}}
    if column is not None:
        begin, end = {"line": row, "column": column}, {"line": end_row, "column": end_column}
        where = {"positions": {"begin": begin, "end": end}}
    text = f"{f.code} {f.message}{in_cell(source, f.start)}"
    return {
        "description": text + (f". Measured: {said(f)}" if said(f) else ""),
        "check_name": item.rule.name,
        "fingerprint": item.fingerprint,
        "severity": SEVERITIES[f.severity.value],
        "location": {"path": relative_to(f.path, base), **where},
    }
