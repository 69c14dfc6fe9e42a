"""One HTML page without scripts or links to elsewhere: to keep beside a result, or to send."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from d9mlint import __version__
from d9mlint.base.paths import relative_to
from d9mlint.report import full
from d9mlint.report.common import Options, clean, flow_note, is_fixable, place, row_place, said, summary
from d9mlint.report.coverage import coverage_html_rows
from d9mlint.report.evidence import page as measured_html

if TYPE_CHECKING:
    from d9mlint.pipeline import Item, Result

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem;
  color: #1c1c1c; background: #fff; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .3rem; }
pre { background: #f5f5f5; border-left: 4px solid #bbb; padding: .6rem .8rem; overflow-x: auto;
  margin: .4rem 0; }
.error pre { border-color: #c62828; } .warning pre { border-color: #e69500; }
.advice pre { border-color: #2a7ab0; }
.level { border-radius: .25rem; color: #fff; font-size: .8rem; padding: .1rem .4rem; }
.error .level { background: #c62828; } .warning .level { background: #9a6400; }
.advice .level { background: #2a7ab0; }
table { border-collapse: collapse; }
td, th { border: 1px solid #ccc; padding: .2rem .6rem; text-align: left; }
.where { color: #555; font-family: monospace; } ol { margin: .3rem 0; }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818; } pre { background: #242424; }
  .where { color: #aaa; } td, th { border-color: #444; } }
"""


def render(result: Result, options: Options) -> str:
    """All findings with their code, the way that leads there, and counts by rule."""
    plain = options._replace(color=False, width=140)
    counts: dict[str, int] = {}
    pages = {}
    for item in result.items:
        counts[item.finding.code] = counts.get(item.finding.code, 0) + 1
        pages[item.finding.code] = item.rule
    rows = "".join(
        f"<tr><td>{code}</td><td>{_e(pages[code].name)}</td><td>{_e(pages[code].summary)}</td>"
        f"<td>{number}</td></tr>\n"
        for code, number in sorted(counts.items())
    )
    counted = f"<table><tr><th>Rule</th><th>Name</th><th>About</th><th>Findings</th></tr>\n{rows}</table>\n"
    measured = measured_html.section(result.evidence) if result.evidence is not None else ""
    return document(
        "d9mlint report",
        "".join(f"<p>{_e(line)}</p>\n" for line in summary(result, plain))
        + (counted if rows else "")
        + "".join(_section(result, item, plain) for item in result.items)
        + _coverage(result)
        + measured,
        measured_html.STYLE if measured else "",
    )


def _coverage(result: Result) -> str:
    """What each entry point follows, and what it does not."""
    rows = []
    for one in result.coverage:
        gaps = "".join(
            f'<li><span class="where">{_e(clean(where))}</span> {_e(clean(text))}</li>'
            for where, text in coverage_html_rows(result, one)
        )
        name = relative_to(one.entry, result.root) + (f":{one.function}" if one.function else "")
        rows.append(
            f"<tr><td>{_e(clean(name))}</td><td>{one.followed}</td><td>{one.not_followed}</td>"
            f"<td>{f'<ul>{gaps}</ul>' if gaps else ''}</td></tr>\n"
        )
    if not rows:
        return ""
    head = "<tr><th>Entry point</th><th>Statements followed</th><th>Not followed</th><th>Where not</th></tr>"
    return f"<h2>Coverage</h2>\n<table>{head}\n{''.join(rows)}</table>\n"


def document(title: str, body: str, style: str = "") -> str:
    """A whole page around ``body``, which is HTML; ``style`` comes after that of all pages."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_e(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n<h1>{_e(title)}</h1>\n"
        f"{body}<p>d9mlint {__version__}</p>\n</body>\n</html>\n"
    )


def _section(result: Result, item: Item, options: Options) -> str:
    f = item.finding
    source = result.sources[f.path]
    shown = full.frame(source, f.start, f.end, f.severity.value, options)[1:]
    parts = [
        f'<section class="{f.severity.value}">',
        f'<h2><span class="level">{f.severity.value}</span> {f.code} {_e(clean(f.message))}</h2>',
        f'<div class="where">{_e(place(source, f.start, options))}</div>',
        f"<pre>{_e(chr(10).join(shown))}</pre>",
    ]
    if f.help:
        fixable = " (--fix does this)" if is_fixable(f, options) else ""
        parts.append(f"<p><b>help:</b> {_e(clean(f.help))}{fixable}</p>")
    if f.flow:
        parts.append("<ol>")
        for step in f.flow:
            other = result.sources.get(step.path)
            where = row_place(other, step.start, options) if other is not None else clean(step.path)
            parts.append(f"<li>{_e(flow_note(clean(step.message), where))}</li>")
        parts.append("</ol>")
    if f.targets:
        parts.append(f"<p>Assuming {_e(', '.join(f.targets))}.</p>")
    if said(f):
        parts.append(f'<p class="measured"><b>measured:</b> {_e(said(f))}</p>')
    parts.append("</section>\n")
    return "\n".join(parts)


def _e(text: str) -> str:
    return html.escape(text)
