"""All analysis runs of a project: every entry point, then the code that none of them reaches."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from d9mlint.base.findings import Finding
from d9mlint.checks.merge import merge
from d9mlint.interp.entry_run import Analyzer, EntryReport
from d9mlint.store.executors import Executor, Serial

if TYPE_CHECKING:
    from d9mlint.store.entry_cache import EntryCache

FEW = 4
"""So few runs are made in this process: starting others would take longer."""


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
        training = {report.relative for report in self.entries if report.trains}
        return merge((report.findings for report in self.reports), training)


def analyze(analyzer: Analyzer, executor: Executor | None = None, cache: EntryCache | None = None) -> Runs:
    """Run every entry point and look at the code that none of them reached."""
    return analyze_shares([Share(analyzer, analyzer.project.modules.by_path, cache)], executor)


class Share(NamedTuple):
    """Files that are analyzed with the same versions and settings, by their paths. All shares of an analysis
    have the same project."""

    analyzer: Analyzer
    own: Container[str]
    cache: EntryCache | None = None


def analyze_shares(
    shares: Sequence[Share], executor: Executor | None = None, spent: dict[str, float] | None = None
) -> Runs:
    """As ``analyze``, for several projects in one run: each entry point belongs to the share of its file.

    The CPU seconds of the runs that are made are added to ``spent``, by the path of their file."""
    executor = executor or Serial()
    project = shares[0].analyzer.project
    files = project.modules.files
    entries: list[EntryReport] = []
    spent = {} if spent is None else spent
    for analyzer, own, cache in shares:
        inputs = [index for index, entry in enumerate(project.entries) if entry.file.path in own]
        entries += _reports(inputs, analyzer.entry_name, analyzer.run_entry_at, executor, cache, spent)
    left = _left(shares[0].analyzer, entries)
    unreached: list[EntryReport] = []
    for analyzer, own, cache in shares:
        mine = [one for one in left if files[one[0]].path in own]
        unreached += _reports(
            mine, analyzer.unreached_name, analyzer.run_unreached_at, executor, cache, spent
        )
    return Runs(entries, unreached)


Unreached = tuple[int, tuple[int, ...]]
"""A module by its place among the project's files, and those of its functions that entry points reach."""
Input = TypeVar("Input")


def _reports(
    inputs: Sequence[Input],
    name: Callable[[Input], str],
    task: Callable[[Input], EntryReport],
    executor: Executor,
    cache: EntryCache | None,
    spent: dict[str, float],
) -> list[EntryReport]:
    """The report of each input, from the cache where nothing that it read has changed. The CPU seconds of the
    others are added to ``spent``."""
    known = {i: cache.get(name(one)) for i, one in enumerate(inputs)} if cache is not None else {}
    missing = [i for i in range(len(inputs)) if known.get(i) is None]
    if len(missing) <= FEW:
        executor = Serial()
    reports: dict[int, EntryReport] = {}

    def timed(one: Input) -> tuple[EntryReport, float]:
        began = time.process_time()
        report = task(one)
        return report, time.process_time() - began

    if missing:
        # Facts live as long as the run: looking for garbage among them again and again costs a sixth of it.
        gc.collect()
        gc.freeze()
        # The imports of the first run are there for all others, in whatever process.
        first, *rest = missing
        made = [timed(inputs[first]), *executor.map(timed, [inputs[i] for i in rest])]
        for index, (report, seconds) in zip(missing, made, strict=True):
            reports[index] = report
            spent[report.entry] = spent.get(report.entry, 0.0) + seconds
    for index, report in reports.items():
        if cache is not None:
            cache.put(name(inputs[index]), report)
    return [reports.get(i) or known[i] for i in range(len(inputs))]  # type: ignore[misc]


def _left(analyzer: Analyzer, entries: Sequence[EntryReport]) -> list[Unreached]:
    """Modules with functions that no entry point reaches, and those of their functions that are reached."""
    reached: dict[int, set[int]] = {}
    for report in entries:
        for module, functions in report.reached.items():
            reached.setdefault(module, set()).update(functions)
    left: list[Unreached] = []
    for index, file in enumerate(analyzer.project.modules.files):
        known = tuple(sorted(reached.get(index, ())))
        if file.facts.problem is None and len(known) < len(file.facts.functions):
            left.append((index, known))
    return left
