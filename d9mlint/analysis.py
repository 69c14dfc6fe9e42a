"""All analysis runs of a project: every entry point, then the code that none of them reaches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from d9mlint.base.findings import Finding
from d9mlint.checks.merge import merge
from d9mlint.interp.entry_run import Analyzer, EntryReport
from d9mlint.project.modules import ModuleFile


class Runs(NamedTuple):
    """The reports of a project's entry points, and those of its modules with unreached code."""

    entries: list[EntryReport]
    unreached: list[EntryReport]

    @property
    def reports(self) -> list[EntryReport]:
        """All of them."""
        return [*self.entries, *self.unreached]

    def findings(self) -> list[Finding]:
        """What they found, merged."""
        return merge(report.findings for report in self.reports)


def analyze(analyzer: Analyzer) -> Runs:
    """Run every entry point and look at the code that none of them reached."""
    entries = [analyzer.run_entry(entry) for entry in analyzer.project.entries]
    unreached = [analyzer.run_unreached(file, reached) for file, reached in _left(analyzer, entries)]
    return Runs(entries, unreached)


def _left(analyzer: Analyzer, entries: Sequence[EntryReport]) -> list[tuple[ModuleFile, frozenset[int]]]:
    """Modules with functions that no entry point reaches, and those of their functions that are reached."""
    reached: dict[str, set[int]] = {}
    for report in entries:
        for path, index in report.reached:
            reached.setdefault(path, set()).add(index)
    left: list[tuple[ModuleFile, frozenset[int]]] = []
    for file in analyzer.project.modules.files:
        known = frozenset(reached.get(file.path, ()))
        if file.facts.problem is None and len(known) < len(file.facts.functions):
            left.append((file, known))
    return left
