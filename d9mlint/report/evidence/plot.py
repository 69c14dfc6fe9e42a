"""Pictures of evidence: for each op the distinct results over the size of its inputs, as inline SVG.

Small multiples with the same horizontal scale, so that ops can be compared; a dtype has a shape and a
colour; each point says its numbers when it is pointed at. No scripts, nothing from elsewhere.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from d9mlint.evidence import wording
from d9mlint.evidence.model import DIFFERS, EQUAL, NOT_RUN, Evidence, Measurement
from d9mlint.evidence.wording import Op, Series, plain

if TYPE_CHECKING:
    from markupsafe import Markup

WIDTH, HEIGHT = 264, 132
LEFT, RIGHT, TOP, BOTTOM = 30, 20, 12, 28
DODGE = 8
"""Pixels between series, which would hide one another where they agree."""
RADIUS = 4.2
DTYPES = ("float32", "bfloat16", "float16", "float64")
"""These have the same shape and colour in every report."""
SHAPES = 6
STYLE = """
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(15.5rem, 1fr)); gap: 1rem 1.4rem;
  margin: .6rem 0 1.2rem; }
.plots figure { margin: 0; display: flex; flex-direction: column; justify-content: space-between; }
.plots svg { display: block; width: 100%; max-width: 21rem; height: auto; overflow: visible; }
.plots figcaption { font-size: .82rem; line-height: 1.3; overflow-wrap: anywhere; padding-left: 30px; }
.plots figcaption span { color: #5a5a5a; }
.plot text { font: 11px system-ui, sans-serif; fill: #5a5a5a; }
.plot .grid { stroke: #d9d9d9; stroke-width: 1; } .plot .axis { stroke: #8a8a8a; stroke-width: 1; }
.plot .mark, .key .mark { stroke-width: 1.6; stroke-linejoin: round; }
.plot .line { fill: none; stroke-width: 1.4; opacity: .55; }
.plot .fresh .line { stroke-dasharray: 3 3; }
.d0 { fill: #0b62a4; stroke: #0b62a4; } .d1 { fill: #c2410c; stroke: #c2410c; }
.d2 { fill: #15803d; stroke: #15803d; } .d3 { fill: #7e22ce; stroke: #7e22ce; }
.d4 { fill: #92620a; stroke: #92620a; } .d5 { fill: #0f766e; stroke: #0f766e; }
.fresh .mark, .mark.fresh { fill: #fff; }
.keys { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none; margin: .4rem 0; padding: 0;
  font-size: .85rem; }
.key { vertical-align: -3px; margin-right: .3rem; }
@media (prefers-color-scheme: dark) {
  .plots figcaption span { color: #a8a8a8; } .plot text { fill: #a8a8a8; }
  .plot .grid { stroke: #3a3a3a; } .plot .axis { stroke: #777; }
  .d0 { fill: #60a5fa; stroke: #60a5fa; } .d1 { fill: #fb923c; stroke: #fb923c; }
  .d2 { fill: #4ade80; stroke: #4ade80; } .d3 { fill: #c084fc; stroke: #c084fc; }
  .d4 { fill: #facc15; stroke: #facc15; } .d5 { fill: #2dd4bf; stroke: #2dd4bf; }
  .fresh .mark, .mark.fresh { fill: #181818; }
}
@media print { .plots figure { break-inside: avoid; } }
"""


class Key(NamedTuple):
    """An entry of the legend: its text, the style of its mark, and the mark's outline."""

    name: str
    style: str
    shape: str


class Picture(NamedTuple):
    """An op and its picture."""

    op: Op
    picture: Markup


class Pictures(NamedTuple):
    """The legend, the pictures of ops that differed, and of those that were equal at every size."""

    keys: list[Key]
    differing: list[Picture]
    equal: list[Picture]


class Scale(NamedTuple):
    """The horizontal scale of all pictures, in powers of ten of the number of input elements."""

    low: float
    high: float

    def x(self, number: int) -> float:
        """Pixels from the left."""
        inner = WIDTH - LEFT - RIGHT
        if self.high == self.low:
            return LEFT + inner / 2
        return LEFT + inner * (math.log10(number) - self.low) / (self.high - self.low)

    def ticks(self) -> list[int]:
        """Powers of ten, at most five; the ends where fewer than two lie between them."""
        first, last = math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9)
        step = max(math.ceil((last - first + 1) / 5), 1)
        powers = [10**p for p in range(first, last + 1, step)]
        return powers if len(powers) > 1 else sorted({round(10**self.low), round(10**self.high)})


def pictures(evidence: Evidence) -> Pictures:
    """The pictures of all ops that ran at known sizes, with one scale."""
    shown = [op for op in wording.ops(evidence) if any(_points(s) for s in op.series)]
    if not shown:
        return Pictures([], [], [])
    sizes = [math.log10(wording.elements(m)) for op in shown for s in op.series for m in _points(s)]
    scale = Scale(min(sizes), max(sizes))
    dtypes = _dtypes(s.dtype for op in shown for s in op.series)
    differing = [op for op in shown if op.outcome == DIFFERS]
    equal = [op for op in shown if op.outcome == EQUAL]
    return Pictures(
        _legend(shown, dtypes),
        [Picture(op, svg(op, f"plot{i}", scale, dtypes)) for i, op in enumerate(differing)],
        [Picture(op, svg(op, f"plot{i}", scale, dtypes)) for i, op in enumerate(equal, len(differing))],
    )


def _points(series: Series) -> list[Measurement]:
    return [m for m in series.points if m.outcome != NOT_RUN and wording.elements(m) > 0]


def _dtypes(found: Iterable[str]) -> dict[str, int]:
    """The number of the shape and colour of each dtype."""
    unknown = sorted(set(found) - set(DTYPES))
    return {name: i if i < len(DTYPES) else 4 + (i - 4) % 2 for i, name in enumerate([*DTYPES, *unknown])}


def _legend(shown: Sequence[Op], dtypes: dict[str, int]) -> list[Key]:
    used = {s.dtype for op in shown for s in op.series if _points(s)}
    keys = [Key(plain(name), f"d{n}", _mark(n, 7, 7)) for name, n in dtypes.items() if name in used]
    if any(s.process == "fresh" for op in shown for s in op.series):
        keys.append(Key("hollow: each run in its own process", "d0 fresh", _mark(0, 7, 7)))
    return keys


def svg(op: Op, name: str, scale: Scale, dtypes: dict[str, int]) -> Markup:
    """The picture of one op; ``name`` is unique in the page."""
    from markupsafe import Markup

    series = [s for s in op.series if _points(s)]
    runs = max(m.runs for s in series for m in _points(s))
    base = HEIGHT - BOTTOM

    def y(distinct: int) -> float:
        return base - (base - TOP) * (distinct - 1) / max(runs - 1, 1)

    said = "; ".join(f"{s.label}: {', '.join(_told(m) for m in _points(s))}" for s in series)
    parts = [
        f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-labelledby="{name}t {name}d" xmlns="http://www.w3.org/2000/svg">',
        f'<title id="{name}t">{_e(op.title)}</title>',
        f'<desc id="{name}d">Distinct results by number of input elements. {_e(said)}.</desc>',
    ]
    for level in sorted({1, runs, *({(runs + 1) // 2} if runs > 2 else ())}):
        style = "axis" if level == 1 else "grid"
        at = f"{y(level):.1f}"
        parts.append(f'<path class="{style}" d="M{LEFT - 6} {at}H{WIDTH - RIGHT + 8}"/>')
        if level in (1, runs):
            parts.append(f'<text x="{LEFT - 11}" y="{y(level) + 4:.1f}" text-anchor="end">{level}</text>')
    for tick in scale.ticks():
        x = scale.x(tick)
        parts.append(f'<path class="axis" d="M{x:.1f} {base}v4"/>')
        parts.append(f'<text x="{x:.1f}" y="{base + 17}" text-anchor="middle">{wording.short(tick)}</text>')
    for i, s in enumerate(series):
        shift = (i - (len(series) - 1) / 2) * min(DODGE, 3 * DODGE / len(series))
        parts.append(
            _series(s, [(scale.x(wording.elements(m)) + shift, y(m.distinct)) for m in _points(s)], dtypes)
        )
    return Markup("\n".join([*parts, "</svg>\n"]))


def _series(s: Series, places: Sequence[tuple[float, float]], dtypes: dict[str, int]) -> str:
    kind = dtypes[s.dtype]
    way = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    if len(places) == 1:
        # A point alone stands on the axis.
        way += f"V{HEIGHT - BOTTOM}"
    line = f'<path class="line d{kind}" style="fill:none" d="{way}"/>'
    marks = "".join(
        f'<path class="mark d{kind}" d="{_mark(kind, x, y)}"><title>{_e(_tip(s, m))}</title></path>'
        for m, (x, y) in zip(_points(s), places, strict=True)
    )
    return f'<g class="{"fresh" if s.process == "fresh" else "same"}">{line}{marks}</g>'


def _told(m: Measurement) -> str:
    return f"{m.distinct} of {m.runs} at {wording.short(wording.elements(m))}"


def _tip(s: Series, m: Measurement) -> str:
    """What a point says when it is pointed at."""
    lines = [f"{s.label}: {wording.result(m)}", wording.sizes(m)]
    for out in m.outputs:
        if out.distinct > 1:
            lines.append(
                f"{plain(out.name)}: {wording.result(m, out.distinct)}, V_ermv {wording.number(out.v_ermv)}, "
                f"V_c {wording.number(out.v_c)}, max ulp {wording.ulps(out.ulp)}"
            )
    return "\n".join(lines)


def _mark(kind: int, x: float, y: float) -> str:
    """The outline of a shape around a point: circle, square, triangle, diamond, pentagon, hexagon."""
    r = RADIUS
    if kind % SHAPES == 0:
        return f"M{x - r:.1f} {y:.1f}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0z"
    corners, turn, size = ((4, 45, 1.25), (3, 90, 1.35), (4, 0, 1.3), (5, 90, 1.15), (6, 0, 1.1))[
        kind % SHAPES - 1
    ]
    angles = [math.radians(turn + 360 * i / corners) for i in range(corners)]
    points = [f"{x + size * r * math.cos(a):.1f} {y - size * r * math.sin(a):.1f}" for a in angles]
    return f"M{'L'.join(points)}z"


def _e(text: str) -> str:
    return html.escape(text)
