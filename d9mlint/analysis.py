"""All analysis runs of a project: every entry point, then the code that none of them reaches."""

from __future__ import annotations

import gc
import os
import pickle
import time
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from d9mlint.base.entry_report import EntryReport, shown
from d9mlint.base.errors import UsageError
from d9mlint.base.findings import Finding
from d9mlint.base.paths import TESTS
from d9mlint.checks.absent_modules import all_as_advice
from d9mlint.checks.merge import merge
from d9mlint.interp.entry_run import Analyzer
from d9mlint.ir import bodies
from d9mlint.ir.codec import unpack
from d9mlint.ir.limits import collect_young, collector_seldom, frames
from d9mlint.ir.nodes import FRAMES
from d9mlint.knowledge.loader import Compiled
from d9mlint.knowledge.plugins import find_plugins, plugins_digest
from d9mlint.project.entry_points import calls_its_own
from d9mlint.store.executors import Executor, Serial

if TYPE_CHECKING:
    from d9mlint.config.targets import Targets
    from d9mlint.store.entry_cache import EntryCache


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
        # Programs beside the tests of a project use what they test as another program does.
        trials = {
            report.relative
            for report in self.entries
            if report.tries_out or TESTS.search(report.relative) is not None
        }
        return merge((report.findings for report in self.reports), training, shown(self.reports), trials)


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
    shares: Sequence[Share],
    executor: Executor | None = None,
    spent: dict[str, float] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Runs:
    """As ``analyze``, for several projects in one run: each entry point belongs to the share of its file.

    The CPU seconds of the runs that are made are added to ``spent``, by the path of their file; ``progress`` gets what is
    being done."""
    executor = executor or Serial()
    job = AnalysisJob([share.analyzer for share in shares])
    project = job.project
    files = project.modules.files
    spent = {} if spent is None else spent
    tasks = [
        Task(index, entry)
        for index, share in enumerate(shares)
        for entry, known in enumerate(project.entries)
        if known.file.path in share.own
    ]
    entries = _reports(tasks, job, shares, executor, spent, _counter("programs", progress))
    left = unreached_code(shares[0].analyzer, entries)
    for share in shares:
        share.analyzer.forget_programs()
    tasks = [
        Task(index, module, reached)
        for index, share in enumerate(shares)
        for module, reached in left
        if files[module].path in share.own
    ]
    rest = _reports(tasks, job, shares, executor, spent, _counter("other modules", progress))
    return Runs(all_as_advice(entries, project.modules), rest)


Unreached = tuple[int, tuple[int, ...]]
"""A module by its place among the project's files, and those of its functions that entry points reach."""


class Task(NamedTuple):
    """An analysis run of a ``share``: that of an entry point, by its ``place`` among those of the project; or, where
    functions are given that entry points have ``reached``, that of the rest of a module by its place."""

    share: int
    place: int
    reached: tuple[int, ...] | None = None


class _Packed(NamedTuple):
    """A job for other processes. Facts and knowledge are encoded, the rest is plain data."""

    root: str
    files: list[tuple[str, str, bytes]]
    libraries: list[str]
    named: list[tuple[str, str]]
    shares: list[tuple[list[bytes], Targets, tuple[str, bool], list[str], list[str], str]]


class AnalysisJob:
    """The analysis runs of a project, whose results are the report and the CPU seconds of each."""

    opener = "d9mlint.analysis:open_job"

    def __init__(self, analyzers: Sequence[Analyzer]) -> None:
        self.analyzers = analyzers
        self.project = analyzers[0].project

    def run(self, task: Task) -> tuple[EntryReport, float]:
        """The result of a task."""
        began = time.process_time()
        analyzer = self.analyzers[task.share]
        if task.reached is None:
            report = analyzer.run_entry_at(task.place)
        else:
            report = analyzer.run_unreached_at((task.place, task.reached))
        bodies.let_go(self._remembered)
        collect_young()
        return report, time.process_time() - began

    def _remembered(self) -> set[int]:
        """The functions that made what is remembered from one run to the next, the classes in them, and the facts of their
        files, by their ids."""
        by_path: dict[str, set[int]] = {}
        for analyzer in self.analyzers:
            for path, index in analyzer.remembered():
                by_path.setdefault(path, set()).add(index)
        found: set[int] = set()
        for path, entered in by_path.items():
            facts = self.project.modules.by_path[path].facts
            if not facts.is_open:
                continue
            found.add(id(facts))
            found.update(id(facts.functions[index]) for index in entered)
            found.update(id(cls) for cls in facts.classes if max(cls.parent, 0) in entered)
        return found

    def name(self, task: Task) -> str:
        """What names the run of a task among those of its project."""
        analyzer = self.analyzers[task.share]
        if task.reached is None:
            return analyzer.entry_name(task.place)
        return analyzer.unreached_name((task.place, task.reached))

    def packed(self) -> bytes:
        """The job as bytes, for processes that do not inherit it."""
        project = self.project
        encode = msgspec.msgpack.encode
        with frames(FRAMES):
            files = [(file.path, file.relative, encode(file.facts)) for file in project.modules.files]
        shares = [
            (
                [encode(layer) for layer in one.knowledge.layers[1:]],
                one.targets,
                (one.device, one.device_given),
                sorted(one.rules.codes),
                [plugin.name for plugin in one.rules.plugins],
                plugins_digest(one.rules.plugins),
            )
            for one in self.analyzers
        ]
        return pickle.dumps(_Packed(project.root, files, sorted(project.libraries), project.named, shares))


def open_job(data: bytes) -> AnalysisJob:
    """The job that was packed. Raises UsageError where this process does not see the project's files."""
    from d9mlint import knowledge
    from d9mlint.checks.registry import Rules
    from d9mlint.interp.entry_run import Project, ProjectFile

    packed: _Packed = pickle.loads(data)
    facts = [(path, relative, unpack(encoded)) for path, relative, encoded in packed.files]
    # Configuration files beside the code are read where the code is analyzed.
    if not os.path.isdir(packed.root):
        raise UsageError(
            f"{packed.root} is missing there: the project must have the same path on all workers."
        )
    layered = [
        knowledge.load_layers([msgspec.msgpack.decode(layer, type=Compiled) for layer in layers])
        for layers, *_ in packed.shares
    ]
    project = Project(
        [ProjectFile(path, relative, one) for path, relative, one in facts if one is not None],
        packed.root,
        layered,
        frozenset(packed.libraries),
        packed.named,
    )
    analyzers = []
    for known, (_, targets, device, codes, names, digest) in zip(layered, packed.shares, strict=True):
        plugins = find_plugins(names, "configuration", packed.root)
        if plugins_digest(plugins) != digest:
            raise UsageError(f"the files of plugin {', '.join(names)} differ there.")
        rules = Rules(known, codes, plugins)
        analyzers.append(Analyzer(project, known, targets, device[0], rules, device_given=device[1]))
    return AnalysisJob(analyzers)


def _reports(
    tasks: Sequence[Task],
    job: AnalysisJob,
    shares: Sequence[Share],
    executor: Executor,
    spent: dict[str, float],
    progress: Callable[[int, int], None] | None = None,
) -> list[EntryReport]:
    """The report of each task, from the cache where nothing that it read has changed. The CPU seconds of the
    others are added to ``spent``; ``progress`` gets how many of how many are finished."""
    known: dict[Task, EntryReport] = {}
    for task in tasks:
        cache = shares[task.share].cache
        report = cache.get(job.name(task)) if cache is not None else None
        if report is not None:
            known[task] = report
    missing = [task for task in tasks if task not in known]
    if len(missing) <= executor.few:
        executor = Serial()
    if missing:
        # Facts live as long as the run: looking for garbage among them again and again costs a sixth of it.
        gc.collect()
        gc.freeze()
        # The imports of the first run are there for all others, in whatever process inherits them.
        first = 1 if executor.inherits else 0

        def finished(place: int, made: Sequence[tuple[EntryReport, float]]) -> None:
            for task, (report, seconds) in zip(missing[place:], made, strict=False):
                known[task] = report
                spent[report.entry] = spent.get(report.entry, 0.0) + seconds
                cache = shares[task.share].cache
                if cache is not None:
                    cache.put(job.name(task), report)
            if progress is not None:
                progress(len(known), len(tasks))

        finished(0, [])
        with collector_seldom():
            Serial().map(job, missing[:first], finished)
            executor.map(job, missing[first:], lambda place, made: finished(first + place, made))
    return [known[task] for task in tasks]


def _counter(what: str, progress: Callable[[str], None] | None) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda done, total: progress(f"analyzing {what}: {done} of {total}")


def unreached_code(analyzer: Analyzer, entries: Sequence[EntryReport]) -> list[Unreached]:
    """Modules with functions that no entry point reaches, and those of their functions that are reached."""
    reached: dict[int, set[int]] = {}
    for report in entries:
        # The smoke test of a module that more than tests import shows how it is called, not how it is used.
        imported = report.entry in analyzer.project.used and not report.trains and not report.function
        smoke = imported and not calls_its_own(analyzer.project.modules.by_path[report.entry])
        for module, functions in report.functions_reached().items():
            reached.setdefault(module, set()).update([0] if smoke else functions)
    left: list[Unreached] = []
    for index, file in enumerate(analyzer.project.modules.files):
        known = tuple(sorted(reached.get(index, ())))
        if file.facts.problem is None and len(known) < file.facts.count:
            left.append((index, known))
    return left
