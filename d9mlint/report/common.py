"""What several formats share: names of files, places, safe text."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from d9mlint.base.findings import Applicability, Finding
from d9mlint.base.notebooks import file_rows
from d9mlint.base.paths import relative_to
from d9mlint.base.source import Source
from d9mlint.base.terminal import clean as clean
from d9mlint.base.terminal import count as count
from d9mlint.evidence.model import NOW
from d9mlint.report.coverage import coverage_line, idle_line, left_out_line

if TYPE_CHECKING:
    from d9mlint.pipeline import Item, Result

TAB = 4
"""Columns of a tab in text output."""
CONTEXT = 2
"""Rows that are shown above and below a finding."""
VERDICTS = ("confirmed", "can differ", "equal", "not run")
"""What a measurement can say of a finding."""


class Options(NamedTuple):
    """How to print: ``cwd`` is what paths are shown relative to, ``width`` the columns of the terminal,
    ``unsafe_fixes`` whether fixes that may change meaning count as fixable."""

    cwd: str
    color: bool = False
    width: int = 120
    unsafe_fixes: bool = False


STYLES = {
    "error": "1;31",
    "warning": "1;33",
    "advice": "1;36",
    "bold": "1",
    "dim": "2",
    "path": "36",
    "green": "32",
}


def paint(text: str, style: str, options: Options) -> str:
    """Text in a colour, where colours are wanted."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if options.color and text else text


def shown_path(path: str, options: Options) -> str:
    """A path as people are shown it: relative to the working directory where it is below it."""
    shown = clean(relative_to(path, options.cwd))
    # A line of a log that begins with two colons is a command to GitHub's runner.
    return f"./{shown}" if shown.lstrip().startswith("::") else shown


def place(source: Source, offset: int, options: Options) -> str:
    """``file:row:column``, with the cell in a notebook."""
    at = source.location(offset)
    cell = f"cell {at.cell}:" if at.cell is not None else ""
    return f"{shown_path(source.path, options)}:{cell}{at.row}:{at.column}"


def row_place(source: Source, offset: int, options: Options) -> str:
    """``file:row``, with the cell in a notebook."""
    return place(source, offset, options).rpartition(":")[0]


class Span(NamedTuple):
    """A place in a file as its lines are numbered there; no columns where they are not those of the code."""

    row: int
    column: int | None
    end_row: int
    end_column: int | None


def file_span(source: Source, start: int, end: int) -> Span:
    """Where a span is in the file itself: of a notebook the lines of its JSON, which is what hosts show."""
    (row, column), (end_row, end_column) = source.row_column(start), source.row_column(max(end, start))
    if source.cells is None:
        return Span(row, column, end_row, end_column)
    first = _file_row(source, start)
    return Span(first, None, max(first, _file_row(source, max(end - 1, start))), None)


def _file_row(source: Source, offset: int) -> int:
    at = source.location(offset)
    rows = _notebook_rows(source.data).get(at.cell or 0, ())
    return rows[min(at.row, len(rows)) - 1] if rows else 1


@functools.lru_cache(maxsize=64)
def _notebook_rows(data: bytes) -> dict[int, tuple[int, ...]]:
    return file_rows(data)


def context_rows(source: Source, start: int, first: int, last: int) -> tuple[range, int]:
    """The rows from ``first`` to ``last`` that there are in a file, or in the cell of a notebook around ``start``; and
    by how much the rows of that cell are shifted."""
    least, most, shift = 1, source.lines, 0
    if source.cells:
        cell = source.cell_at(start)
        least, shift = cell.row, cell.row - 1
        most = source.row_column(max(cell.end - 1, cell.start))[0]
    if most > least and not source.line(most):
        # Nothing follows the last line break.
        most -= 1
    return range(max(least, first), min(most, last) + 1), shift


def in_cell(source: Source, offset: int) -> str:
    """`` (cell 3, line 2)`` for a place in a notebook, to stand after a message; empty elsewhere."""
    at = source.location(offset)
    return f" (cell {at.cell}, line {at.row})" if at.cell is not None else ""


_PLACE = re.compile(r"\b(?:by|in) ([^\s:()]+):\d+")


def rebased(result: Result, base: str) -> Result:
    """The result with names of files in its messages relative to ``base``, as the places are. Messages name the entry
    point and the pin file relative to the project's root."""
    if result.root == base:
        return result
    return result._replace(items=tuple(_rebased(item, result.root, base) for item in result.items))


def _rebased(item: Item, root: str, base: str) -> Item:
    f = item.finding
    named = {found[1] for target in f.targets for found in _PLACE.finditer(target)}
    if f.entry_point is not None:
        named.add(f.entry_point.partition(":")[0])
    shown = {name: relative_to(f"{root}/{name}", base) for name in named if not name.startswith("/")}
    shown = {name: text for name, text in shown.items() if text != name and not text.startswith("/")}
    if not shown:
        return item
    every = "|".join(re.escape(name) for name in sorted(shown, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w/.-])(?:{every})(?![\w/-]|\.\w)")

    def text(old: str) -> str:
        return pattern.sub(lambda found: shown[found.group()], old)

    return item._replace(
        finding=msgspec.structs.replace(
            f,
            message=text(f.message),
            help=text(f.help),
            targets=tuple(map(text, f.targets)),
            entry_point=text(f.entry_point) if f.entry_point is not None else None,
            flow=tuple(msgspec.structs.replace(step, message=text(step.message)) for step in f.flow),
        )
    )


def width(char: str) -> int:
    """The columns a character takes in a terminal."""
    if char == "\t":
        return TAB
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def is_fixable(finding: Finding, options: Options) -> bool:
    """Whether ``--fix`` with these options would apply the fix of a finding."""
    if finding.fix is None:
        return False
    kind = finding.fix.applicability
    return kind is Applicability.SAFE or (kind is Applicability.UNSAFE and options.unsafe_fixes)


def summary(result: Result, options: Options) -> list[str]:
    """The closing lines of text reports."""
    items = result.items
    if not items:
        lines = [f"No findings in {count(len(result.files), 'file')}."]
    else:
        severities = [i.finding.severity.value for i in items]
        parts = []
        for name in ("error", "warning"):
            if name in severities:
                parts.append(count(severities.count(name), name))
        if "advice" in severities:
            parts.append(f"{severities.count('advice')} advice")
        files = len({i.finding.path for i in items})
        lines = [
            f"Found {count(len(items), 'finding')} in {count(files, 'file')} ({', '.join(parts)}; "
            f"{count(len(result.files), 'file')} checked)."
        ]
    fixable = sum(is_fixable(i.finding, options) for i in items)
    more = sum(
        i.finding.fix is not None and i.finding.fix.applicability is Applicability.UNSAFE for i in items
    )
    more = 0 if options.unsafe_fixes else more
    if fixable:
        text = f"[*] {fixable} fixable with --fix"
        lines.append(f"{text}, {more} more with --unsafe-fixes." if more else f"{text}.")
    elif more:
        lines.append(f"{more} fixable with --fix --unsafe-fixes.")
    if result.incomplete:
        lines.append(f"{count(result.incomplete, 'analysis run')} cut off (DET004): findings may be missing.")
    if line := coverage_line(result):
        lines.append(line)
    if line := idle_line(result):
        lines.append(line)
    if line := left_out_line(result):
        lines.append(line)
    if result.baselined:
        lines.append(f"{count(result.baselined, 'finding')} suppressed by the baseline.")
    if result.stale:
        entries = count(result.stale, "entry", "entries")
        verb = "matches" if result.stale == 1 else "match"
        lines.append(
            f"{entries} of the baseline no longer {verb} a finding; --prune-baseline removes stale entries."
        )
    if result.evidence is not None:
        lines.append(_verdicts([i.finding for i in items], result.evidence.runs))
    return lines


def _verdicts(findings: Iterable[Finding], usual: int) -> str:
    """How many findings were measured, and what came of it."""
    told = [f.evidence for f in findings if f.evidence is not None]
    if not told:
        return "No finding was measured."
    if not any(e.get("controls_passed", True) for e in told):
        return "A control failed: no finding was confirmed."
    by_verdict = {verdict: [e for e in told if e.get("verdict") == verdict] for verdict in VERDICTS}
    numbers = sorted({_equal_runs(e) for e in by_verdict["equal"]} or {usual})
    runs = count(numbers[0], "run") if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]} runs"
    confirmed = count(len(by_verdict["confirmed"]), "finding")
    equal, not_run = len(by_verdict["equal"]), len(by_verdict["not run"])
    kinds = {e.get("kind") for e in told if e.get("verdict") != "not run"}
    place = " on the CPU" if kinds == {"cpu"} else ""
    possible = len(by_verdict["can differ"])
    parts = [
        f"{confirmed} confirmed{place}",
        *([f"{possible} where the op can differ"] if possible else []),
        f"{equal} equal in {runs} at this size",
        f"{not_run} not run",
    ]
    return f"{', '.join(parts)}."


def said(finding: Finding) -> str:
    """What was measured of a finding, in one sentence or more; empty where nothing was."""
    text = (finding.evidence or {}).get("summary")
    return clean(" ".join(text.split())) if isinstance(text, str) else ""


def verdict_mark(finding: Finding) -> str:
    """The verdict of what was measured, to stand after a message: `` [confirmed]``."""
    evidence = finding.evidence
    if evidence is None or evidence.get("verdict") not in VERDICTS:
        return ""
    if not evidence.get("controls_passed", True):
        return " [no evidence: a control failed]"
    verdict: str = evidence["verdict"]
    before = evidence.get("source", NOW) != NOW
    if verdict == "equal":
        verdict = f"{'observed ' if before else ''}equal in {count(_equal_runs(evidence), 'run')}"
    elif verdict == "confirmed" and before:
        verdict = "observed to differ"
    elif verdict == "can differ" and before:
        verdict = "op observed to differ"
    elif verdict == "can differ":
        verdict = "op can differ"
    if verdict == "not run":
        return " [not run]"
    # The finding is about a GPU: who reads one line must not take a CPU for it.
    place = " on the CPU" if evidence.get("kind") == "cpu" else ""
    return f" [{verdict}{place}{', weak' if evidence.get('weak') else ''}]"


def _equal_runs(evidence: Mapping[str, Any]) -> int:
    """The fewest runs of the measurements that were equal."""
    own = [m["runs"] for m in evidence.get("measurements", ()) if m.get("outcome") == "equal"]
    return min(own, default=0)


def flow_note(message: str, where: str) -> str:
    """A step of a flow as one line."""
    if message.endswith(" here"):
        return f"{message.removesuffix(' here')} at {where}"
    return f"{message} ({where})"


def edits_in_order(item: Item) -> Iterable[Any]:
    """The edits of an item's fix by place."""
    return sorted(item.finding.fix.edits) if item.finding.fix else ()
