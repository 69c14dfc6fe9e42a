"""One self-contained HTML page: to read, to keep beside a result, or to send. Its one script is the filter."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.base.paths import relative_to
from d9mlint.report import full
from d9mlint.report.common import (
    CONTEXT,
    Options,
    clean,
    context_rows,
    flow_note,
    is_fixable,
    place,
    row_place,
    said,
    shown_path,
    summary,
)
from d9mlint.report.coverage import coverage_html_rows
from d9mlint.report.evidence import page as measured_html
from d9mlint.report.templating import document, page

if TYPE_CHECKING:
    from d9mlint.base.source import Source
    from d9mlint.evidence.model import Evidence
    from d9mlint.knowledge.schema import RulePage
    from d9mlint.pipeline import Item, Result

LONGEST_SPAN = 12
"""Lines shown of a finding that spans more."""
LONGEST_LINE = 500
"""Characters shown of a line."""

_TOKEN = re.compile(
    r"(?P<comment>#.*)"
    r"|(?P<string>[rbfuRBFU]{0,2}(?:\"(?:\\.|[^\"\\])*\"?|'(?:\\.|[^'\\])*'?))"
    r"|(?P<keyword>\b(?:False|None|True|and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally"
    r"|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield)\b)"
    r"|(?P<number>\b\d[\w.]*)"
)


class Line(NamedTuple):
    """A line of code: its number, its pieces with the class of each, and whether the finding is on it."""

    number: int
    pieces: tuple[tuple[str, str], ...]
    hit: bool


def render(result: Result, options: Options) -> str:
    """All findings with their code, why they matter, the way that leads there and the fix; counts by rule; what was
    not followed; what was measured."""
    from markupsafe import Markup

    plain = options._replace(color=False, width=140)
    findings = [_finding(result, item, number, plain) for number, item in enumerate(result.items, 1)]
    pages = {item.rule.code: item.rule for item in result.items}
    measured = measured_html.section(result.evidence) if result.evidence is not None else ""
    return page(
        "report.html",
        "d9mlint report",
        measured_html.STYLE if measured else "",
        script="filter.js" if len(findings) > 1 else "",
        summary=summary(result, plain),
        findings=findings,
        rules=[_rule(page, findings) for _, page in sorted(pages.items())],
        coverage=list(_coverage(result)),
        measured=Markup(measured),
    )


def evidence_page(evidence: Evidence) -> str:
    """What was measured, as a separate page."""
    return document("d9mlint measurements", measured_html.section(evidence), measured_html.STYLE)


def _finding(result: Result, item: Item, number: int, options: Options) -> dict[str, Any]:
    f = item.finding
    source = result.sources[f.path]
    fixed = result.sources[f.fixed_path]
    return {
        "id": f"f{number}",
        "code": f.code,
        "name": item.rule.name,
        "severity": f.severity.value,
        "confidence": f.confidence.value,
        "message": clean(f.message),
        "where": place(source, f.start, options),
        "entry": clean(f.entry_point or ""),
        "lines": lines(source, f.start, f.end),
        "help": clean(f.help),
        "fix": f.fix.applicability.value if f.fix is not None else "",
        "applied": is_fixable(f, options),
        "fixed_file": "" if fixed is source else shown_path(fixed.path, options),
        "diff": full.diff(fixed, f.fix, options) if f.fix is not None else [],
        "flow": [_step(result, step, options) for step in f.flow],
        "assuming": [clean(target) for target in f.targets if target],
        "measured": said(f),
        "why": item.rule.sections.get("Why it matters", ""),
    }


def _step(result: Result, step: Any, options: Options) -> dict[str, str]:
    source = result.sources.get(step.path)
    where = row_place(source, step.start, options) if source is not None else clean(step.path)
    text = "" if source is None else _shown(source.line(source.row_column(step.start)[0]).strip())
    return {"note": flow_note(clean(step.message), where), "code": text}


def _rule(page: RulePage, findings: list[dict[str, Any]]) -> dict[str, Any]:
    own = [finding for finding in findings if finding["code"] == page.code]
    return {
        "code": page.code,
        "name": page.name,
        "summary": page.summary,
        "count": len(own),
        "first": own[0]["id"],
        "severity": own[0]["severity"],
    }


def _coverage(result: Result) -> Iterator[dict[str, Any]]:
    """What each entry point follows, and what it does not."""
    for one in result.coverage:
        name = relative_to(one.entry, result.root) + (f":{one.function}" if one.function else "")
        yield {
            "entry": clean(name),
            "followed": one.followed,
            "not_followed": one.not_followed,
            "gaps": [(clean(where), clean(text)) for where, text in coverage_html_rows(result, one)],
        }


def lines(source: Source, start: int, end: int) -> list[Line]:
    """The lines around a span as pieces: code by the class of its tokens, the span with ``hit`` in addition."""
    if not source.text:
        return []
    row, column = source.row_column(start)
    end_row, end_column = source.row_column(max(start, end))
    rows, shift = context_rows(source, start, row - CONTEXT, min(end_row, row + LONGEST_SPAN) + CONTEXT)
    found = []
    for number in rows:
        text = source.line(number)
        left = column - 1 if number == row else len(text) - len(text.lstrip())
        right = end_column - 1 if number == end_row else len(text)
        hit = row <= number <= end_row and right > left
        pieces = tuple(_pieces(text[:LONGEST_LINE], (left, right) if hit else (0, 0)))
        found.append(Line(number - shift, pieces, row <= number <= end_row))
    return found


def _pieces(text: str, span: tuple[int, int]) -> Iterator[tuple[str, str]]:
    """A line cut where a token or the span begins or ends."""
    tokens = [(m.start(), m.end(), m.lastgroup or "") for m in _TOKEN.finditer(text)]
    cuts = sorted({0, len(text), *span, *(x for a, b, _ in tokens for x in (a, b))})
    for left, right in itertools.pairwise(cuts):
        if left >= len(text):
            break
        kind = next((kind for a, b, kind in tokens if a <= left < b), "")
        hit = "hit" if span[0] <= left < span[1] else ""
        yield " ".join(filter(None, (kind, hit))), _shown(text[left:right])


def _shown(text: str) -> str:
    """Text with control characters made visible; tabs stay."""
    return "\t".join(map(clean, text.split("\t")))
