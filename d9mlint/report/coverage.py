"""What was not followed, as text and as plain data."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from d9mlint.base.paths import relative_to
from d9mlint.base.terminal import clean, count

if TYPE_CHECKING:
    from d9mlint.base.coverage import Coverage, Gap
    from d9mlint.pipeline import Result

NO_ENTRY = (
    "No entry point was found: code was judged with unknown arguments, and missing seeds and modes were not judged. "
    "Name entry points with `entry-points` in the configuration."
)
KINDS = {
    "dynamic-call": ("call decided at run time", "calls decided at run time"),
    "failing-call": ("call that raises TypeError", "calls that raise TypeError"),
    "failing-subscript": ("subscript that raises TypeError", "subscripts that raise TypeError"),
    "undefined-name": ("name that is not defined", "names that are not defined"),
    "project-import": ("import of the project not found", "imports of the project not found"),
    "library-call": ("unknown library call", "unknown library calls"),
    "left-to-library": ("piece of code left to a library", "pieces of code left to libraries"),
    "device": ("unknown device", "unknown devices"),
    "constant": ("branch left out by a constant", "branches left out by constants"),
    "budget": ("place cut off", "places cut off"),
}


def coverage_line(result: Result) -> str:
    """One line that says what was not followed; empty where nothing that matters was left out."""
    if result.no_entry:
        return NO_ENTRY if result.files else ""
    gaps = {gap for one in result.coverage for gap in one.gaps if gap.kind != "budget"}
    if not gaps:
        return ""
    entries = sum(any(gap.kind != "budget" for gap in one.gaps) for one in result.coverage)
    verb = "was" if len(gaps) == 1 else "were"
    return (
        f"{count(len(gaps), 'place')} in {count(entries, 'program')} {verb} not followed ({_counted(gaps)}); "
        "`d9mlint graph --coverage` lists them."
    )


def idle_line(result: Result) -> str:
    """One line that says how many findings are not reported because no program calls what they are in; empty for none."""
    if not result.idle:
        return ""
    verb = "is" if result.idle == 1 else "are"
    return (
        f"{count(result.idle, 'finding')} in functions that no program calls {verb} advice; "
        "`--min-severity advice` shows all."
    )


def left_out_line(result: Result) -> str:
    """One line that says how many files git ignores, which may be programs; empty for none."""
    if not result.left_out:
        return ""
    verb, them = ("is", "it") if result.left_out == 1 else ("are", "them")
    return (
        f"{count(result.left_out, 'file with Python code', 'files with Python code')} {verb} not read because of "
        f".gitignore; `--no-respect-gitignore` includes {them}."
    )


def _counted(gaps: set[Gap]) -> str:
    numbers: Counter[str] = Counter(gap.kind for gap in gaps)
    return ", ".join(count(numbers[kind], *words) for kind, words in KINDS.items() if numbers[kind])


def coverage_data(result: Result) -> list[dict[str, Any]]:
    """The coverage of each entry point as plain data, paths relative to the project's root."""
    return [
        {
            "entry": relative_to(one.entry, result.root),
            "function": one.function or None,
            "files": one.files,
            "statements": {"followed": one.followed, "not_followed": one.not_followed},
            "not_followed": [
                {
                    "kind": gap.kind,
                    "message": gap.text,
                    "filename": relative_to(gap.path, result.root),
                    "row": row,
                    "column": column,
                }
                for gap in one.gaps
                for row, column in [_place(result, gap)]
            ],
        }
        for one in result.coverage
    ]


def coverage_text(result: Result) -> str:
    """The coverage of each entry point as lines of text."""
    lines: list[str] = []
    for one in coverage_data(result):
        name = one["entry"] + (f":{one['function']}" if one["function"] else "")
        followed, rest = one["statements"]["followed"], one["statements"]["not_followed"]
        lines.append(
            f"{name}: {followed} of {count(followed + rest, 'statement')} in {count(one['files'], 'file')} followed"
        )
        for gap in one["not_followed"]:
            place = f"{gap['filename']}:{gap['row']}:{gap['column']}"
            lines.append(f"  {place}: {KINDS[gap['kind']][0]}: {gap['message']}")
    if not lines:
        lines.append(coverage_line(result) or "No entry points.")
    return "".join(f"{clean(line)}\n" for line in lines)


def _place(result: Result, gap: Gap) -> tuple[int, int]:
    source = result.sources.get(gap.path)
    return source.row_column(gap.start) if source is not None else (1, 1)


def coverage_html_rows(result: Result, one: Coverage) -> list[tuple[str, str]]:
    """The places that an entry point does not follow, each with its reason."""
    rows: list[tuple[str, str]] = []
    for gap in one.gaps:
        row, column = _place(result, gap)
        rows.append((f"{relative_to(gap.path, result.root)}:{row}:{column}", gap.text))
    return rows
