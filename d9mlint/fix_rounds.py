"""Rounds of linting and fixing until nothing is left to fix, and writing what came of it."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from d9mlint.base.findings import Finding, Severity
from d9mlint.base.source import Source, make_source
from d9mlint.fix.edits import BrokenFix, apply_edits, without_overlaps
from d9mlint.pipeline import Item, Result
from d9mlint.report.common import Options, is_fixable

if TYPE_CHECKING:
    from d9mlint.knowledge.schema import RulePage

ROUNDS = 10
"""Fixes may make way for others; more rounds than this mean two that undo each other."""


class Fixed(NamedTuple):
    """``result`` is that of the last round, with a DET002 for each fix that was dropped; ``changes`` the new
    content of the changed files by path; ``applied`` the changed file, the code and the name of the rule for each
    finding that was fixed."""

    result: Result
    changes: dict[str, bytes]
    originals: dict[str, bytes]
    applied: tuple[tuple[str, str, str], ...]

    @property
    def number(self) -> int:
        """How many findings were fixed."""
        return len(self.applied)


def fix(
    lint: Callable[[Mapping[str, bytes]], Result],
    overlay: Mapping[str, bytes],
    unsafe: bool,
    writable: Callable[[str], bool] = lambda path: True,
) -> Fixed:
    """Apply all fixes. ``lint`` lints with some files' contents replaced; nothing is written.

    Files that are not ``writable``, which is asked once for each that would be changed, keep their findings.
    """
    may_change: dict[str, bool] = {}
    options = Options("", unsafe_fixes=unsafe)
    changes: dict[str, bytes] = {}
    originals: dict[str, bytes] = {}
    broken: dict[tuple[str, str, str], Finding] = {}
    applied: list[tuple[str, str, str]] = []
    # A fix that leaves its finding where it was is not made over and over. Twice: another finding on an equal
    # line may have the mark of one that is gone.
    tried: Counter[tuple[str, str, str]] = Counter()
    result = lint(overlay)
    for _ in range(ROUNDS):
        by_path: dict[str, list[Finding]] = {}
        for item in result.items:
            f = item.finding
            path = f.fixed_path
            key = (f.path, item.fingerprint, f.message)
            if is_fixable(f, options) and key not in broken and tried[key] < 2:
                if path not in may_change:
                    # A file that is read and not linted, as where one module is named, is not changed.
                    may_change[path] = path in result.files and writable(path)
                if may_change[path]:
                    by_path.setdefault(path, []).append(f)
        done: list[tuple[str, str, str]] = []
        marks = {id(i.finding): i.fingerprint for i in result.items}
        names = {i.rule.code: i.rule.name for i in result.items}
        for path, findings in sorted(by_path.items()):
            source = result.sources[path]
            data, repaired, dropped = _fix_file(source, without_overlaps(findings))
            for f, reason in dropped:
                broken[(f.path, marks[id(f)], f.message)] = _dropped(f, reason)
            if repaired and data != source.data:
                originals.setdefault(path, source.data)
                changes[path] = data
                done += [(path, f.code, names[f.code]) for f in repaired]
                tried.update((f.path, marks[id(f)], f.message) for f in repaired)
        if not done:
            break
        applied += done
        result = lint({**overlay, **changes})
    if broken:
        result = _with_dropped(result, list(broken.values()))
    return Fixed(result, changes, originals, tuple(applied))


def _fix_file(
    source: Source, findings: Sequence[Finding]
) -> tuple[bytes, Sequence[Finding], list[tuple[Finding, str]]]:
    """All fixes at once; one by one when that breaks the file, leaving out those that do."""
    edits = [e for f in findings if f.fix for e in f.fix.edits]
    try:
        return apply_edits(source, edits), findings, []
    except BrokenFix as error:
        if len(findings) == 1:
            return source.data, [], [(findings[0], str(error))]
    kept: list[Finding] = []
    dropped: list[tuple[Finding, str]] = []
    data = source.data
    for finding in findings:
        try:
            data = apply_edits(source, [e for f in (*kept, finding) if f.fix for e in f.fix.edits])
            kept.append(finding)
        except BrokenFix as error:
            dropped.append((finding, str(error)))
    return data, kept, dropped


def _dropped(f: Finding, reason: str) -> Finding:
    return Finding(
        "DET002",
        f.path,
        f.start,
        f.end,
        f"the fix of {f.code} was not applied: {reason}",
        "make the change by hand",
        Severity.ERROR,
        subject=f"{f.code} {f.subject}",
        scope=f.scope,
    )


def _with_dropped(result: Result, dropped: Sequence[Finding]) -> Result:
    from d9mlint.filters.baseline import fingerprints

    page: RulePage | None = next((p for p in result.rules if p.code == "DET002"), None)
    if page is None:
        return result
    marks = fingerprints(dropped, result.root)
    extra = [Item(f, mark, page) for f, mark in zip(dropped, marks, strict=True)]
    items = sorted([*result.items, *extra], key=lambda i: i.finding.sort_key)
    return result._replace(items=tuple(items))


def unified_diff(path: str, old: bytes, new: bytes, shown: str) -> str:
    """The change of a file as a unified diff; of the text of each cell for a notebook."""
    one, other = make_source(path, old), make_source(path, new)
    if one.cells and other.cells and len(one.cells) == len(other.cells):
        return "".join(
            _diff(
                f"{one.raw[a.start : a.end]}\n", f"{other.raw[b.start : b.end]}\n", f"{shown}:cell {a.number}"
            )
            for a, b in zip(one.cells, other.cells, strict=True)
        )
    return _diff(one.raw, other.raw, shown)


def _diff(old: str, new: str, shown: str) -> str:
    before, after = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (old, new))
    lines = difflib.unified_diff(before, after, shown, shown, n=3)
    return "".join(
        line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines
    )
