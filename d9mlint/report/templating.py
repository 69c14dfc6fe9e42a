"""HTML pages from templates: whatever is inserted is escaped, unless it is markup of ours."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from d9mlint import __version__

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"

_INLINE = re.compile(
    r"`([^`]+)`|\[([^\]]+)\]\((https?://[^)\s]+)\)|<(https?://[^>\s]+)>|\[([^\]]+)\]\([^)]*\)"
)
_ITEM = re.compile(r"\s*(?:[*-]|\d+\.) +")


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
    made.filters["breakable"] = breakable
    return made


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


def breakable(text: str) -> Markup:
    """Text whose dotted names may be broken at the end of a line."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"([._])(?=[A-Za-z])", r"\1<wbr>", str(escape(text))))
