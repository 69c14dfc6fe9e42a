"""The report as one HTML page without scripts or links to elsewhere. No framework is imported here."""

from __future__ import annotations

import html
import linecache
import re
import shlex
from collections.abc import Iterable

from d9mlint.trace import report as reports
from d9mlint.trace.compare import Difference, Frame, Side
from d9mlint.trace.curve import Lane, by_step
from d9mlint.trace.facts import fact
from d9mlint.trace.model import DIVERGED, Report

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 920, 120, 44, 12, 18, 34
AROUND = 3
"""Lines of source that are shown before and after the one that is named."""
STYLE = """
.outcome { font-size: 1.15rem; font-weight: 600; } .diverged .outcome { color: #b3261e; }
.equal .outcome { color: #15703a; } .unknown .outcome { color: #8a5a00; }
.code { background: #f5f5f5; border-left: 4px solid #b3261e; overflow-x: auto; padding: .5rem 0; margin: .5rem 0;
  font: 13px/1.5 ui-monospace, monospace; white-space: pre; }
.code span { display: block; padding: 0 .8rem; } .code .named { background: #fbdcd9; font-weight: 600; }
.code b { color: #777; font-weight: 400; display: inline-block; min-width: 3.2em; }
.growth { display: block; width: 100%; height: auto; margin: .3rem 0 1rem; overflow: visible; }
.growth text { font: 11px system-ui, sans-serif; fill: #555; }
.growth .axis { stroke: #888; } .growth .step { stroke: #ccc; } .growth .same { fill: #dfe5ea; }
.growth .differs { fill: #c2410c; } .growth .first { stroke: #b3261e; stroke-width: 2; fill: none; }
.growth .label { fill: #b3261e; font-weight: 600; }
.remedy { border-left: 4px solid #15703a; padding: .2rem .8rem; background: #eef6f0; }
td.value { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) {
  .diverged .outcome { color: #ff8a80; } .equal .outcome { color: #6fd08c; } .unknown .outcome { color: #f0c060; }
  .code { background: #242424; border-color: #ff8a80; } .code .named { background: #5a2521; } .code b { color: #999; }
  .growth text { fill: #aaa; } .growth .axis { stroke: #777; } .growth .step { stroke: #3a3a3a; }
  .growth .same { fill: #2c3338; } .growth .differs { fill: #fb923c; } .growth .first { stroke: #ff8a80; }
  .growth .label { fill: #ff8a80; } .remedy { background: #1d2b21; border-color: #6fd08c; }
}
"""


def body(report: Report) -> str:
    """What the page of a report shows, as HTML; ``STYLE`` belongs to it."""
    parts = [f"<p>Command: <code>{_e(shlex.join(report.command))}</code></p>\n"]
    difference = report.difference
    if report.outcome == DIVERGED and difference is not None:
        parts += _diverged(report, difference)
    else:
        text = reports.text(report).strip().splitlines()
        parts.append(f'<p class="outcome">{_inline(text[0])}</p>\n')
        parts += [f"<p>{_inline(line)}</p>\n" for line in text[1:]]
    parts.append(_runs(report))
    return f'<main class="{report.outcome}">\n{"".join(parts)}</main>\n'


def _diverged(report: Report, difference: Difference) -> list[str]:
    parts = [f'<p class="outcome">{_inline(reports.headline(report))}</p>\n']
    parts.append(f"<p>{_inline(reports.what(difference))}: {_inline(difference.reason)}</p>\n")
    if difference.cause is not None:
        parts.append(f"<p>{_inline(difference.cause.text)}</p>\n")
    parts.append("<h2>Line of code</h2>\n")
    parts.append(_code(difference.place))
    parts.append(_path(difference))
    remedy = reports.remedy(report)
    if remedy or report.finding is not None:
        parts.append("<h2>Remedy</h2>\n")
    if remedy:
        parts.append(f'<p class="remedy">{_inline(remedy)}</p>\n')
    if report.finding is not None:
        found = report.finding
        where = f"{reports.shown(found.filename)}:{found.row}"
        parts.append(
            f'<p>{_e(found.code)} {_inline(found.message)} <span class="where">{_e(where)}</span></p>\n'
        )
    known = fact(report)
    if known:
        parts.append("<p>The linter does not report this line; with this fact it does:</p>\n")
        parts.append(f"<pre>{_e(known)}</pre>\n")
    parts.append("<h2>Values</h2>\n")
    parts.append(_values(report, difference))
    if report.lanes:
        parts.append("<h2>Growth of the difference</h2>\n")
        parts.append(_growth(report.lanes, difference))
    facts = reports.facts(report)
    if facts:
        parts.append("<h2>Evidence</h2>\n<ul>\n")
        parts += [f"<li>{_inline(line.removeprefix('note: '))}</li>\n" for line in facts]
        parts.append("</ul>\n")
    return parts


def _code(place: tuple[Frame, ...]) -> str:
    if not place:
        return "<p>No line of the program belongs to this difference.</p>\n"
    frame = place[0]
    lines = []
    for row in range(max(1, frame.row - AROUND), frame.row + AROUND + 1):
        text = linecache.getline(frame.filename, row).rstrip("\n")
        if text or row <= frame.row:
            style = ' class="named"' if row == frame.row else ""
            lines.append(f"<span{style}><b>{row}</b>{_e(text)}</span>")
    where = f"{reports.shown(frame.filename)}:{frame.row} in {frame.function}"
    return f'<div class="where">{_e(where)}</div>\n<div class="code">{"".join(lines)}</div>\n'


def _path(difference: Difference) -> str:
    lines = reports.called(difference)
    if not lines:
        return ""
    return (
        "<ul>\n" + "".join(f"<li>{_inline(line.removeprefix('note: '))}</li>\n" for line in lines) + "</ul>\n"
    )


def _values(report: Report, difference: Difference) -> str:
    rows: list[tuple[str, str, str]] = []
    one, other = difference.first, difference.second
    for label, pick in (("operation", _name), ("arguments", _args), ("digest", _digest)):
        a, b = pick(one), pick(other)
        if a or b:
            rows.append((label, a, b))
    found = report.confirmation
    if found and found.get("values"):
        index, (a, b) = found["values"]["index"], found["values"]["values"]
        rows.append((f"element {index} in two replays", a, b))
    if report.resume is not None:
        rows += [
            (f"{i.kind}: {i.name}", i.first, i.second) for i in report.resume.items if i.first or i.second
        ]
    body = "".join(
        f'<tr><th>{_inline(label)}</th><td class="value">{_e(a)}</td><td class="value">{_e(b)}</td></tr>\n'
        for label, a, b in rows
    )
    return f"<table>\n<tr><th></th><th>first run</th><th>second run</th></tr>\n{body}</table>\n"


def _name(side: Side | None) -> str:
    return f"{side.name} {side.shape}".strip().replace("`", "") if side is not None else "nothing here"


def _args(side: Side | None) -> str:
    return side.args if side is not None else ""


def _digest(side: Side | None) -> str:
    return side.digest if side is not None else ""


def _growth(found: Iterable[Lane], difference: Difference) -> str:
    parts = [
        "<p>Share of recorded operations whose result differs, in the order of execution; the second run went on "
        "after the first difference for this picture.</p>\n"
    ]
    shown = sorted(found, key=lambda lane: lane[:2] != (difference.process, difference.stream))[:8]
    for number, lane in enumerate(shown):
        parts.append(_lane(lane, difference, f"lane{number}"))
    return "".join(parts)


def _lane(lane: Lane, difference: Difference, name: str) -> str:
    total = sum(one.records for one in lane.bins)
    inner, base = WIDTH - LEFT - RIGHT, HEIGHT - BOTTOM
    told = "; ".join(f"step {step}: {differing} of {records}" for step, records, differing in by_step(lane))
    title = ", ".join(part for part in (lane.process.removesuffix(" (TensorFlow)"), lane.stream) if part)

    def x(place: int) -> float:
        return LEFT + inner * place / max(total, 1)

    parts = [
        f'<svg class="growth" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{name}t {name}d">',
        f'<title id="{name}t">Growth of the difference in {_e(title)}</title>',
        f'<desc id="{name}d">Records that differ by step. {_e(told)}.</desc>',
        f'<text x="{LEFT}" y="{TOP - 7}">{_e(title)}</text>',
    ]
    height = base - TOP
    for one in lane.bins:
        left, width = x(one.first), max(x(one.first + one.records) - x(one.first), 0.6)
        high = height * one.differing / one.records
        if one.differing < one.records:
            parts.append(
                f'<rect class="same" x="{left:.1f}" y="{TOP}" width="{width:.1f}" height="{height - high:.1f}"/>'
            )
        if one.differing:
            tip = f"step {one.step}: {one.differing} of {one.records} operations differ"
            parts.append(
                f'<rect class="differs" x="{left:.1f}" y="{base - high:.1f}" width="{width:.1f}" '
                f'height="{high:.1f}"><title>{tip}</title></rect>'
            )
    parts += _axes(lane, x, base)
    if (lane.process, lane.stream) == (difference.process, difference.stream):
        at = x(min(difference.ordinal, total))
        anchor = "end" if at > WIDTH / 2 else "start"
        parts.append(f'<path class="first" d="M{at:.1f} {TOP - 4}V{base + 4}"/>')
        shift = -6 if anchor == "end" else 6
        label = f"first difference: {difference.side.name}"
        parts.append(
            f'<text class="label" x="{at + shift:.1f}" y="{TOP - 7}" text-anchor="{anchor}">{_e(label)}</text>'
        )
        if anchor == "start" and at < LEFT + 220:
            # The name of the lane stands in the same place.
            parts.remove(f'<text x="{LEFT}" y="{TOP - 7}">{_e(title)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _axes(lane: Lane, x: object, base: int) -> list[str]:
    assert callable(x)
    parts = [f'<path class="axis" d="M{LEFT} {base}H{WIDTH - RIGHT}"/>']
    for share, label in ((0, "0 %"), (1, "100 %")):
        at = base - (base - TOP) * share
        parts.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{label}</text>')
    starts: dict[int, int] = {}
    for one in lane.bins:
        starts.setdefault(one.step, one.first)
    every = max(1, -(-len(starts) // 16))
    for number, (step, place) in enumerate(starts.items()):
        at = x(place)
        if number:
            parts.append(f'<path class="step" d="M{at:.1f} {TOP}V{base + 5}"/>')
        if number % every == 0:
            parts.append(f'<text x="{at + 2:.1f}" y="{base + 16}">step {step}</text>')
    return parts


def _runs(report: Report) -> str:
    rows = "".join(
        f"<tr><td>{number}</td><td>{'stopped' if r.exit_code is None else r.exit_code}</td><td>{r.steps}</td>"
        f"<td>{r.operations}</td></tr>\n"
        for number, r in enumerate(report.runs, 1)
    )
    return (
        "<h2>Runs</h2>\n<table>\n<tr><th>Run</th><th>Exit status</th><th>Optimizer steps</th><th>Records</th></tr>\n"
        f"{rows}</table>\n"
    )


def _inline(text: str) -> str:
    """A message, what stands in backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", _e(text))


def _e(text: str) -> str:
    return html.escape(text)
