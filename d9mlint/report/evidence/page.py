"""Evidence as a section of an HTML page: machines, pictures, a table, controls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from d9mlint.evidence import wording
from d9mlint.evidence.model import DIFFERS, NOT_RUN, Evidence
from d9mlint.evidence.wording import Op, Series, plain
from d9mlint.report.common import count
from d9mlint.report.evidence import plot
from d9mlint.report.templating import environment

if TYPE_CHECKING:
    from markupsafe import Markup

STYLE = (
    """
.measurements .wide { overflow-x: auto; } .measurements table { font-size: .85rem; }
.measurements td { vertical-align: top; } .measurements td.n { text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.measurements td.shape { min-width: 6rem; } .measurements td.answer { min-width: 9rem; }
.measurements td.op, .measurements td.mode { min-width: 10rem; overflow-wrap: break-word; }
.measurements h3 { font-size: .95rem; margin: 1.4rem 0 .3rem; }
.measurements .differs { color: #b3261e; font-weight: 600; } .measurements .quiet { color: #5a5a5a; }
.measurements .alert { border: 2px solid #b3261e; border-radius: .3rem; padding: .5rem .8rem; font-weight: 600; }
.measurements .warn { border-left: 4px solid #e69500; padding-left: .8rem; font-weight: 600; }
.measurements tbody + tbody { border-top: 2px solid #999; }
.measurements details { margin: .6rem 0; } .measurements summary { cursor: pointer; }
@media (prefers-color-scheme: dark) { .measurements .differs { color: #ff8a80; }
  .measurements .quiet { color: #a8a8a8; } .measurements .alert { border-color: #ff8a80; } }
"""
    + plot.STYLE
)


class Cells(NamedTuple):
    """What the rows of a series have in common: its dtype, the shapes of its inputs, how many rows there are."""

    label: str
    shapes: list[str]
    rows: int


class Row(NamedTuple):
    """A row of the table: an output that differs, or all outputs of a series that is equal."""

    series: Cells | None
    output: str
    said: str
    differs: bool = False
    sizes: str = ""
    figures: tuple[str, ...] = ()


class Entry(NamedTuple):
    """An op in the table."""

    name: str
    phase: str
    notes: list[str]
    modes: list[str]
    rows: list[Row]


def section(evidence: Evidence) -> Markup:
    """The section; it needs ``STYLE`` in the page."""
    from markupsafe import Markup

    every = wording.ops(evidence)
    controls = wording.controls(evidence).replace("controls", "Controls", 1) if evidence.controls else ""
    pictures = plot.pictures(evidence)
    return Markup(
        environment()
        .get_template("measured.html")
        .render(
            machines=[wording.machine(one) for one in evidence.machines],
            session=wording.session(evidence) if evidence.measurements else "",
            failure=wording.control_failure(evidence) if every else "",
            controls=controls,
            missed=wording.race_failure(evidence),
            keys=pictures.keys,
            differing=pictures.differing,
            equal=pictures.equal,
            equal_count=count(len(pictures.equal), "op"),
            against=wording.contradictions(evidence, every),
            settings=list(wording.settings(evidence)) if evidence.settings else [],
            ops=[
                _entry(op)
                for op in sorted(every, key=lambda op: (op.outcome != DIFFERS, op.outcome == NOT_RUN))
            ],
            definitions=wording.DEFINITIONS,
            weak=wording.WEAK if any(op.weak for op in every) else "",
        )
    )


def _entry(op: Op) -> Entry:
    notes = [f"cause: {said}" + (f" ({labels})" if labels else "") for labels, said in wording.causes(op)]
    return Entry(
        op.name,
        op.phase,
        [*notes, "weak"] if op.weak else notes,
        [f"{labels}: {said}" if labels else said for labels, said in wording.modes(op)],
        [row for series in op.series for row in _rows(series)],
    )


def _rows(s: Series) -> Iterator[Row]:
    """One for each output that differs, one for a series that is equal."""
    m = s.main
    if m.outcome != DIFFERS or not m.outputs:
        names = ", ".join(plain(o.name) for o in m.outputs)
        yield Row(Cells(s.label, wording.shapes(m), 1), names, wording.result(m), sizes=_sizes(s, None))
        return
    for i, out in enumerate(m.outputs):
        yield Row(
            Cells(s.label, wording.shapes(m), len(m.outputs)) if i == 0 else None,
            plain(out.name),
            wording.result(m, out.distinct),
            out.distinct > 1,
            _sizes(s, out.name),
            (wording.number(out.v_ermv), wording.number(out.v_c), wording.ulps(out.ulp)),
        )


def _sizes(s: Series, output: str | None) -> str:
    """Answers at smaller sizes, below that at the largest."""
    said = wording.smaller(s, output)
    if not said and s.others and not wording.by_size(s):
        return f"the same at {count(len(s.others), 'smaller size')}"
    return said
