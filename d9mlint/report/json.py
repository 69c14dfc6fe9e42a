"""JSON: the contract that other programs read. A list of findings; an empty run is ``[]``."""

from __future__ import annotations

import json as codec
import re
from typing import TYPE_CHECKING, Any

from d9mlint.filters.add_noqa import noqa_row
from d9mlint.report.common import Options, edits_in_order

if TYPE_CHECKING:
    from d9mlint.base.source import Source
    from d9mlint.knowledge.schema import RulePage
    from d9mlint.pipeline import Item, Result


def render(result: Result, options: Options) -> str:
    """All findings as one JSON list."""
    return codec.dumps([entry(result, item) for item in result.items], indent=2, ensure_ascii=False) + "\n"


def entry(result: Result, item: Item) -> dict[str, Any]:
    """A finding as JSON data. Rows and columns are 1-based, columns count characters, ends are exclusive."""
    f = item.finding
    source = result.sources[f.path]
    fix = None
    if f.fix is not None:
        fix = {
            "applicability": f.fix.applicability.value,
            "message": f.fix.message,
            "filename": f.fixed_path,
            "edits": [
                {
                    "content": e.content,
                    "location": location(result.sources[f.fixed_path], e.start),
                    "end_location": location(result.sources[f.fixed_path], e.end),
                }
                for e in edits_in_order(item)
            ],
        }
    return {
        "code": f.code,
        "name": item.rule.name,
        "severity": f.severity.value,
        "confidence": f.confidence.value,
        "message": f.message,
        "help": f.help,
        "filename": f.path,
        "cell": source.location(f.start).cell,
        "location": location(source, f.start),
        "end_location": location(source, f.end),
        "entry_point": f.entry_point,
        "flow": [
            {
                "filename": step.path,
                **(
                    location(result.sources[step.path], step.start)
                    if step.path in result.sources
                    else NOWHERE
                ),
                "message": step.message,
            }
            for step in f.flow
        ],
        "fix": fix,
        "evidence": f.evidence,
        "url": rule_url(item.rule),
        "noqa_row": noqa_row(source, f.start),
        "fingerprint": item.fingerprint,
    }


NOWHERE = {"row": 1, "column": 1}


def location(source: Source, offset: int) -> dict[str, int]:
    """A place as JSON data, within its cell in a notebook."""
    at = source.location(offset)
    return {"row": at.row, "column": at.column}


def rule_url(page: RulePage) -> str | None:
    """The first reference of a rule's page."""
    match = re.search(r"<(https?://[^>\s]+)>|\((https?://[^)\s]+)\)", page.sections.get("References", ""))
    return (match[1] or match[2]) if match else None
