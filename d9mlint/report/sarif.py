"""SARIF 2.1.0 as GitHub code scanning wants it."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from d9mlint import SITE, __version__
from d9mlint.base.paths import boundary, relative_to
from d9mlint.report import rule_page
from d9mlint.report.common import Options, edits_in_order, file_span, in_cell
from d9mlint.report.coverage import NO_ENTRY
from d9mlint.report.line_hash import line_hashes

if TYPE_CHECKING:
    from d9mlint.base.findings import Finding
    from d9mlint.base.source import Source
    from d9mlint.knowledge.schema import RulePage
    from d9mlint.pipeline import Item, Result

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "advice": "note"}
PROBLEM_SEVERITY = {"error": "error", "warning": "warning", "advice": "recommendation"}
PRECISION = {"high": "very-high", "medium": "high", "low": "medium"}
ROOT = "SRCROOT"
"""The top of the git repository (without git: the project's root): code scanning resolves paths there."""


def render(result: Result, options: Options) -> str:
    """The whole log: one run, with what comments hide as suppressed results and files that could not be
    judged as notifications."""
    index = {page.code: i for i, page in enumerate(result.rules)}
    hashes: dict[str, dict[int, str]] = {}
    hidden = {id(h.item): h.comment for h in result.hidden}
    items = sorted([*result.items, *(h.item for h in result.hidden)], key=lambda i: i.finding.sort_key)
    seen = {item.finding.code for item in items}
    failures = [i for i in items if i.finding.code in ("DET001", "DET002")]
    run = {
        "tool": {
            "driver": {
                "name": "d9mlint",
                "semanticVersion": __version__,
                **({"informationUri": SITE} if SITE else {}),
                "rules": [_rule(page, page.code in seen) for page in result.rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the repository."}}},
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    *(_notification(result, item) for item in failures),
                    *_not_followed(result),
                ],
            }
        ],
        "results": [_result(result, item, index, hashes, hidden.get(id(item))) for item in items],
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=1, ensure_ascii=False) + "\n"


def _not_followed(result: Result) -> list[dict[str, Any]]:
    """A notification for each place that an entry point does not follow, and for a tree without entry points."""
    if result.no_entry:
        return [{"level": "note", "message": {"text": NO_ENTRY}}] if result.files else []
    gaps = sorted({gap for one in result.coverage for gap in one.gaps})
    return [
        {
            "level": "note",
            "message": {"text": f"Not followed: {gap.text}"},
            "locations": [location(result, gap.path, gap.start, gap.end)],
        }
        for gap in gaps
    ]


def _rule(page: RulePage, seen: bool) -> dict[str, Any]:
    """A rule's description; what the page says only where the log has a result of it, so that a clean log is small."""
    what = (page.sections.get("What it does", "").strip() if seen else "") or page.summary
    rule: dict[str, Any] = {
        "id": page.code,
        "name": "".join(word.capitalize() for word in page.name.split("-")),
        "shortDescription": {"text": page.summary},
        "fullDescription": {"text": what},
        "help": {"text": what, **({"markdown": rule_page.markdown(page)} if seen else {})},
        "defaultConfiguration": {
            "level": LEVELS[page.severity],
            "enabled": page.default and not page.preview,
        },
        "properties": {
            "precision": PRECISION[page.confidence],
            "problem.severity": PROBLEM_SEVERITY[page.severity],
            "tags": ["determinism", page.family, *page.libraries],
        },
    }
    if SITE:
        rule["helpUri"] = f"{SITE}/rules/{page.path.removesuffix('.md')}/"
    return rule


def _result(
    result: Result,
    item: Item,
    index: dict[str, int],
    hashes: dict[str, dict[int, str]],
    comment: str | None,
) -> dict[str, Any]:
    f = item.finding
    source = result.sources[f.path]
    if f.path not in hashes:
        hashes[f.path] = line_hashes(source.data)
    prints = {"d9mlint/v1": item.fingerprint}
    line = None if source.cells is not None else hashes[f.path].get(source.row_column(f.start)[0])
    if line is not None:
        prints["primaryLocationLineHash"] = line
    entry: dict[str, Any] = {
        "ruleId": f.code,
        "ruleIndex": index[f.code],
        "level": LEVELS[f.severity.value],
        "message": {"text": "\n".join(filter(None, [f.message + in_cell(source, f.start), f.help]))},
        "locations": [location(result, f.path, f.start, f.end)],
        "partialFingerprints": prints,
        "properties": {"confidence": f.confidence.value},
    }
    if f.entry_point is not None:
        entry["properties"]["entryPoint"] = f.entry_point
    if f.targets:
        entry["properties"]["targets"] = list(f.targets)
    if f.evidence is not None:
        entry["properties"]["evidence"] = f.evidence
    if f.flow:
        entry["codeFlows"] = [_flow(result, f)]
    if f.fix is not None and result.sources[f.fixed_path].cells is None:
        entry["fixes"] = [_fix(result, item)]
    if comment is not None:
        entry["suppressions"] = [{"kind": "inSource", "justification": comment}]
    return entry


def location(result: Result, path: str, start: int, end: int) -> dict[str, Any]:
    """A place as SARIF writes it; the lines of a notebook are those of its file."""
    physical: dict[str, Any] = {"artifactLocation": _artifact(result, path)}
    if path in result.sources:
        physical["region"] = _region(result.sources[path], start, end)
    return {"physicalLocation": physical}


def _artifact(result: Result, path: str) -> dict[str, Any]:
    relative = relative_to(path, _base(result.root))
    if relative == path:
        return {"uri": "file://" + quote(path, errors="surrogateescape")}
    return {"uri": quote(relative, errors="surrogateescape"), "uriBaseId": ROOT}


@functools.lru_cache(maxsize=8)
def _base(root: str) -> str:
    return boundary(root)


def _region(source: Source, start: int, end: int) -> dict[str, int]:
    row, column, end_row, end_column = file_span(source, start, end)
    if column is None or end_column is None:
        return {"startLine": row, "endLine": end_row}
    return {"startLine": row, "startColumn": column, "endLine": end_row, "endColumn": end_column}


def _flow(result: Result, f: Finding) -> dict[str, Any]:
    steps = [(s.path, s.start, s.end, s.message) for s in f.flow]
    steps.append((f.path, f.start, f.end, f.message))
    locations = [
        {"location": {**location(result, path, start, end), "message": {"text": message}}}
        for path, start, end, message in steps
    ]
    return {"threadFlows": [{"locations": locations}]}


def _fix(result: Result, item: Item) -> dict[str, Any]:
    f = item.finding
    assert f.fix is not None
    source = result.sources[f.fixed_path]
    replacements = [
        {"deletedRegion": _region(source, e.start, e.end), "insertedContent": {"text": e.content}}
        for e in edits_in_order(item)
    ]
    change = {"artifactLocation": _artifact(result, f.fixed_path), "replacements": replacements}
    return {"description": {"text": f.fix.message}, "artifactChanges": [change]}


def _notification(result: Result, item: Item) -> dict[str, Any]:
    f = item.finding
    return {
        "level": "error",
        "message": {"text": f.message},
        "descriptor": {"id": f.code},
        "locations": [location(result, f.path, f.start, f.end)],
    }
