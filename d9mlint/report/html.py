"""One self-contained HTML page: to read, to keep beside a result, or to send. Its one script is the filter."""

from __future__ import annotations

import base64
import functools
import hashlib
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint import __version__
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

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from d9mlint.base.source import Source
    from d9mlint.evidence.model import Evidence
    from d9mlint.knowledge.schema import RulePage
    from d9mlint.pipeline import Item, Result

TEMPLATES = Path(__file__).parent / "templates"
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
_INLINE = re.compile(
    r"`([^`]+)`|\[([^\]]+)\]\((https?://[^)\s]+)\)|<(https?://[^>\s]+)>|\[([^\]]+)\]\([^)]*\)"
)
_ITEM = re.compile(r"\s*(?:[*-]|\d+\.) +")


class Line(NamedTuple):
    """A line of code: its number, its pieces with the class of each, and whether the finding is on it."""

    number: int
    pieces: tuple[tuple[str, str], ...]
    hit: bool


@functools.cache
def environment() -> Environment:
    """The templates; everything that is inserted is escaped unless it is Markup."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["inline"] = inline
    made.filters["prose"] = prose
    return made


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


def document(title: str, body: str, style: str = "") -> str:
    """A whole page around ``body``, which is HTML; ``style`` comes after that of all pages."""
    from markupsafe import Markup

    return page("page.html", title, style, body=Markup(body))


def page(template: str, title: str, style: str = "", script: str = "", **values: Any) -> str:
    """A page made of a template, with the style of all pages and at most one script."""
    from markupsafe import Markup

    code = (TEMPLATES / script).read_text(encoding="utf-8") if script else ""
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    return environment().get_template(template).render(
        title=title,
        version=__version__,
        style=Markup((TEMPLATES / "style.css").read_text(encoding="utf-8") + style),
        script=Markup(code),
        policy="default-src 'none'; style-src 'unsafe-inline'; img-src data:"
        + (f"; script-src 'sha256-{digest}'" if code else ""),
        **values,
    )  # fmt: skip


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


def inline(text: str) -> Markup:
    """Text with code spans and links of Markdown, everything else escaped. Links to other pages become their text."""
    from markupsafe import Markup, escape

    parts: list[Markup] = []
    end = 0
    for found in _INLINE.finditer(text):
        parts.append(escape(text[end : found.start()]))
        code, name, target, bare, local = found.groups()
        if code is not None:
            parts.append(Markup("<code>{}</code>").format(code))
        elif local is not None:
            parts.append(inline(local))
        else:
            shown = inline(name) if name is not None else Markup(escape(bare))
            parts.append(Markup('<a href="{}" rel="noreferrer">{}</a>').format(target or bare, shown))
        end = found.end()
    return Markup("").join([*parts, escape(text[end:])])


def prose(markdown: str) -> Markup:
    """The Markdown of rule pages: paragraphs, lists, tables and blocks of code."""
    from markupsafe import Markup

    parts: list[Markup] = []
    for kind, rows in _chunks(markdown):
        if kind == "code":
            parts.append(Markup("<pre>{}</pre>").format("\n".join(rows)))
        elif kind == "list":
            items: list[str] = []
            for row in rows:
                if _ITEM.match(row):
                    items.append(_ITEM.sub("", row, count=1))
                else:
                    items[-1] += f" {row.strip()}"
            parts.append(Markup("<ul>{}</ul>").format(Markup("").join(_tag("li", inline(i)) for i in items)))
        elif kind == "table":
            cells = [[inline(c.strip()) for c in row.strip().strip("|").split("|")] for row in rows]
            body = [
                _tag("tr", Markup("").join(_tag("th" if n == 0 else "td", c) for c in row))
                for n, row in enumerate(cells)
                if n != 1
            ]
            parts.append(_tag("table", Markup("").join(body)))
        else:
            parts.append(_tag("p", inline(" ".join(row.strip() for row in rows))))
    return Markup("\n").join(parts)


def _tag(name: str, content: Markup) -> Markup:
    from markupsafe import Markup

    return Markup(f"<{name}>{{}}</{name}>").format(content)


def _chunks(markdown: str) -> Iterator[tuple[str, list[str]]]:
    """Blocks of Markdown with their kind: ``code``, ``list``, ``table`` or ``text``."""
    kind, rows = "", list[str]()
    for row in [*markdown.splitlines(), ""]:
        if kind == "code":
            if row.lstrip().startswith("```"):
                yield kind, rows
                kind, rows = "", []
            else:
                rows.append(row)
            continue
        fence = row.lstrip().startswith("```")
        new = "code" if fence else "list" if _ITEM.match(row) else "table" if row.startswith("|") else "text"
        if (
            rows
            and (not row.strip() or new != kind)
            and not (kind == "list" and new == "text" and row.startswith(" "))
        ):
            yield kind, rows
            kind, rows = "", []
        if row.strip():
            kind = kind if rows else new
            if not fence:
                rows.append(row)
    if rows:
        yield kind, rows
