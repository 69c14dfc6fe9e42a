"""Evidence as a section of an HTML page: machines, pictures, a table, controls."""

from __future__ import annotations

import html

from d9mlint.evidence import wording
from d9mlint.evidence.model import DIFFERS, NOT_RUN, Evidence
from d9mlint.evidence.wording import Op, Series, plain
from d9mlint.report.common import count
from d9mlint.report.evidence import plot

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
COLUMNS = ("Op", "Dtype", "Inputs", "Output", "Result", "V_ermv", "V_c", "Max ulp", "Deterministic mode")


def section(evidence: Evidence) -> str:
    """The section; it needs ``STYLE`` in the page."""
    every = wording.ops(evidence)
    parts = ['<section class="measurements" id="measured">\n<h2>Measured</h2>\n']
    parts += [f"<p>On {_e(wording.machine(m))}.</p>\n" for m in evidence.machines]
    if evidence.measurements:
        parts.append(f"<p>{_e(wording.session(evidence))}.</p>\n")
    failure = wording.control_failure(evidence) if every else ""
    missed = wording.race_failure(evidence)
    if failure:
        parts.append(f'<p class="alert" role="alert">{_e(failure)}</p>\n')
    elif evidence.controls:
        parts.append(f"<p>{_e(wording.controls(evidence).replace('controls', 'Controls', 1))}.</p>\n")
    if missed:
        parts.append(f'<p class="warn">{_e(missed)}</p>\n')
    parts.append(plot.figures(evidence))
    against = wording.contradictions(evidence, every)
    if against:
        parts.append("<h3>Contradicts the documentation</h3>\n")
    for said, pairs in against.items():
        rows = "".join(f"<li><b>{_e(title)}</b>: {_e(told)}</li>\n" for title, told in pairs)
        parts.append(f"<p>{_e(said.capitalize())}:</p>\n<ul>\n{rows}</ul>\n")
    parts.append(_settings(evidence))
    parts.append(_table(every) if every else "" if evidence.settings else "<p>No op was measured.</p>\n")
    return "".join([*parts, "</section>\n"])


def _settings(evidence: Evidence) -> str:
    """What came of settings, as a table."""
    if not evidence.settings:
        return ""
    rows = "".join(
        f"<tr><td>{plot.breakable(title)}</td><td>{plot.breakable(said)}</td></tr>\n"
        for title, said in wording.settings(evidence)
    )
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("Synthetic training run", "Result"))
    return (
        f'<h3>Settings</h3>\n<div class="wide"><table>\n<thead><tr>{heads}</tr></thead>\n'
        f"<tbody>\n{rows}</tbody></table></div>\n"
    )


def _table(every: list[Op]) -> str:
    heads = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    ranked = sorted(every, key=lambda op: (op.outcome != DIFFERS, op.outcome == NOT_RUN))
    bodies = "".join(_body(op) for op in ranked)
    notes = f'<p class="quiet">{_e(wording.DEFINITIONS)}</p>\n'
    if any(op.weak for op in every):
        notes += f'<p class="quiet">Weak: {_e(wording.WEAK)}.</p>\n'
    return f'<div class="wide"><table>\n<thead><tr>{heads}</tr></thead>\n{bodies}</table></div>\n{notes}'


def _body(op: Op) -> str:
    """The rows of an op: one for each output that differs, one for a series that is equal."""
    rows: list[str] = []
    for s in op.series:
        rows += _series(s)
    modes = "<br>".join(
        plot.breakable(f"{labels}: {said}" if labels else said) for labels, said in wording.modes(op)
    )
    notes = [f"cause: {said}" + (f" ({labels})" if labels else "") for labels, said in wording.causes(op)]
    notes += ["weak"] if op.weak else []
    small = "".join(f'<br><span class="quiet">{_e(note)}</span>' for note in notes)
    span = f' rowspan="{len(rows)}"'
    name = f'<td class="op"{span}><b>{plot.breakable(op.name)}</b><br>{_e(op.phase)}{small}</td>'
    first = f'{name}{rows[0]}<td class="mode"{span}>{modes}</td>'
    return "<tbody>\n" + "".join(f"<tr>{row}</tr>\n" for row in [first, *rows[1:]]) + "</tbody>\n"


def _series(s: Series) -> list[str]:
    m = s.main
    if m.outcome != DIFFERS or not m.outputs:
        names = ", ".join(plain(o.name) for o in m.outputs)
        return [
            _cells(s, 1) + f"<td>{_e(names)}</td>{_answer(wording.result(m), False, _sizes(s, None))}{_NONE}"
        ]
    rows = []
    for i, out in enumerate(m.outputs):
        differs = out.distinct > 1
        said = wording.result(m, out.distinct)
        row = _cells(s, len(m.outputs)) if i == 0 else ""
        row += f"<td>{_e(plain(out.name))}</td>{_answer(said, differs, _sizes(s, out.name))}"
        figures = (wording.number(out.v_ermv), wording.number(out.v_c), wording.ulps(out.ulp))
        rows.append(
            row + ("".join(f'<td class="n">{_e(text)}</td>' for text in figures) if differs else _NONE)
        )
    return rows


_NONE = "<td></td><td></td><td></td>"


def _cells(s: Series, rows: int) -> str:
    span = f' rowspan="{rows}"' if rows > 1 else ""
    return f'<td{span}>{_e(s.label)}</td><td class="shape"{span}>{"<br>".join(map(_e, wording.shapes(s.main)))}</td>'


def _answer(said: str, differs: bool, sizes: str) -> str:
    style = ' class="differs"' if differs else ""
    return f'<td class="answer"><span{style}>{_e(said)}</span>{sizes}</td>'


def _sizes(s: Series, output: str | None) -> str:
    """Answers at smaller sizes, below that at the largest."""
    said = wording.smaller(s, output)
    if not said and s.others and not wording.by_size(s):
        said = f"the same at {count(len(s.others), 'smaller size')}"
    return f'<br><span class="quiet">{_e(said)}</span>' if said else ""


def _e(text: str) -> str:
    return html.escape(text)
