"""A project that is kept warm between edits: facts, imports and the reports of its runs stay in memory.

After an edit, two answers are given. ``quick`` is about the edited file alone: its facts are read again, the code
of it that no entry point reaches is judged anew, and so are entry points whose last run took little time; what
the others found in the file is kept where the text did not change. ``complete`` then makes every run again that
read the file, and answers for all files as ``d9mlint check`` does.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from d9mlint.analysis import Runs, Share, unreached_code
from d9mlint.base.findings import Finding, Step
from d9mlint.base.paths import relative_to
from d9mlint.base.source import Source, Trouble, make_source, read_bytes
from d9mlint.checks.merge import merge
from d9mlint.config.entry_points import named_entries
from d9mlint.config.settings import Settings, load_settings
from d9mlint.interp.entry_run import Project, ProjectFile
from d9mlint.interp.interpreter import Interp
from d9mlint.ir.scopes import forget_names
from d9mlint.ir.traversal import forget_parents
from d9mlint.pipeline import Item, Prepared, Result, decide, findings_of, prepare
from d9mlint.store.gather import parse_one

if TYPE_CHECKING:
    from d9mlint.base.entry_report import EntryReport
    from d9mlint.ir import nodes as m
    from d9mlint.ir.nodes import FileFacts

QUICK_SECONDS = 0.1
"""Runs of entry points that took less CPU time than this in all are made again for the quick answer."""


class Cancelled(BaseException):
    """The text has been edited again: what is being computed is of no use any more."""


class Edit(NamedTuple):
    """The part of a text that was replaced: from ``start`` to ``old_end``, now to ``new_end``."""

    start: int
    old_end: int
    new_end: int

    def moved(self, start: int, end: int) -> tuple[int, int] | None:
        """Where a span of the old text is in the new one; None for one that the edit touches."""
        if end <= self.start:
            return start, end
        if start >= self.old_end:
            return start + self.new_end - self.old_end, end + self.new_end - self.old_end
        return None


def difference(old: str, new: str) -> Edit:
    """What lies between the beginning and the end that two texts have in common."""
    start, most = 0, min(len(old), len(new))
    if old[:most] == new[:most]:
        start = most
    else:
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            if old[:middle] == new[:middle]:
                low = middle
            else:
                high = middle - 1
        start = low
    low, high = 0, most - start
    while low < high:
        middle = (low + high + 1) // 2
        if old[len(old) - middle :] == new[len(new) - middle :]:
            low = middle
        else:
            high = middle - 1
    return Edit(start, len(old) - low, len(new) - low)


class Engine:
    """The project around a directory, or around a single file. Not for several threads at once. Raises UsageError for a
    configuration that cannot be read."""

    def __init__(
        self,
        anchor: str,
        overrides: Mapping[str, Any] | None = None,
        overlay: Mapping[str, bytes] | None = None,
    ) -> None:
        self.anchor = anchor
        directory = anchor if os.path.isdir(anchor) else os.path.dirname(anchor)
        self.settings: Settings = load_settings(directory, overrides=dict(overrides or {}))
        self._state: Prepared = prepare([anchor], self.settings, overlay)
        self._reports: dict[str, EntryReport] = {}
        self._stale: dict[str, EntryReport] = {}
        self._cost: dict[str, float] = {}
        self._before: dict[str, str] = {}
        self._facts_before: dict[str, FileFacts] = {}
        self._stop: Callable[[], bool] = lambda: False
        self._from_cache()
        self._listen()
        self.result: Result | None = None

    # --------------------------------------------------------------------------------------- reading

    @property
    def root(self) -> str:
        """The root of the project."""
        return self._state.found.root

    @property
    def project(self) -> Project:
        """The linked files."""
        return self._state.plan.project

    @property
    def files(self) -> frozenset[str]:
        """The files that are reported."""
        return self._state.found.reported

    def source(self, path: str) -> Source | None:
        """The text of a file as it was last analyzed."""
        return self._state.sources.get(path)

    @property
    def config_files(self) -> frozenset[str]:
        """Configuration files that the analyzed programs open."""
        return frozenset(p for r in (*self._reports.values(), *self._stale.values()) for p in r.config_files)

    def _from_cache(self) -> None:
        """Take over the reports that an earlier run has left on disk."""
        for share in self._state.plan.shares:
            if share.cache is None:
                continue
            analyzer = share.analyzer
            names = [analyzer.entry_name(i) for i in range(len(analyzer.project.entries))]
            for name in names:
                report = share.cache.get(name)
                if report is not None:
                    self._reports[name] = report

    def _listen(self) -> None:
        """Let every run of this project end when the text is edited again."""
        engine = self

        class Stoppable(Interp):
            def block(self, body: Iterable[m.Stmt]) -> None:
                if engine._stop():
                    raise Cancelled
                super().block(body)

        for share in self._state.plan.shares:
            share.analyzer.interp = Stoppable

    # --------------------------------------------------------------------------------------- editing

    def knows(self, path: str) -> bool:
        """Whether a file is part of the project as it was read."""
        return path in self._state.sources

    def edit(self, path: str, data: bytes | None) -> bool:
        """Let a file have another text: that of an editor, or with None what is on disk. Returns whether
        anything has changed. The file must be known."""
        content: bytes | Trouble = read_bytes(path) if data is None else data
        found, sources, parts, plan = self._state
        old = sources[path]
        source = make_source(path, content) if isinstance(content, bytes) else None
        if source is not None and old.problem is None and source.data == old.data:
            return False
        facts = dict(plan.facts)
        if source is None or source.problem is not None:
            facts.pop(path, None)
        else:
            facts[path] = parse_one(source)
        if path not in self._before:
            self._before[path] = old.text
            if path in plan.facts:
                self._facts_before[path] = plan.facts[path]
        sources.replace(path, content)
        forget_parents()
        forget_names()
        files = [ProjectFile(f, relative_to(f, found.root), x) for f, x in sorted(facts.items())]
        libraries = plan.project.libraries
        named, _ = named_entries(parts, facts)
        project = Project(files, found.root, libraries, named, plan.project)
        same = [f.path for f in project.modules.files] == [f.path for f in plan.project.modules.files]
        index = project.index.get(path)
        for name, report in list(self._reports.items()):
            # Reports name files by their places among all files.
            if not same or index is None or index in report.files:
                self._stale[name] = self._reports.pop(name)
        if not same:
            self._stale.clear()
        shares = [Share(s.analyzer.after_edit(project, [path]), s.own, None) for s in plan.shares]
        self._state = Prepared(
            found, sources, parts, plan._replace(shares=shares, project=project, facts=facts)
        )
        return True

    def forget_readers(self, path: str) -> None:
        """A configuration file has changed that programs open."""
        for name, report in list(self._reports.items()):
            if path in report.config_files:
                del self._reports[name]

    # ------------------------------------------------------------------------------------- answering

    def quick(self, path: str, stop: Callable[[], bool]) -> tuple[Item, ...] | None:
        """What is reported of an edited file, as far as it is known at once; None for a file that is not
        reported. Raises Cancelled."""
        if path not in self.files:
            return None
        self._stop = stop
        _, _, _, plan = self._state
        index = plan.project.index.get(path)
        found: list[Finding] = []
        if index is not None:
            found = self._quick_findings(path, index)
        return self._decided(path, found)

    def _decided(self, path: str, findings: list[Finding]) -> tuple[Item, ...]:
        """What is reported of findings in one file."""
        found, sources, parts, plan = self._state
        runs = Runs([], [])
        only = plan._replace(facts={path: plan.facts[path]} if path in plan.facts else {})
        analysis = findings_of(only, runs, found, sources, parts, findings)
        one = found._replace(files=(path,), reported=frozenset({path}))
        return decide(one, sources, parts, analysis, self.settings).items

    def _quick_findings(self, path: str, index: int) -> list[Finding]:
        plan = self._state.plan
        fresh: list[EntryReport] = []
        spent = 0.0
        for share, at, name in self._entries():
            if name not in self._stale:
                continue
            cost = self._cost.get(name, 1.0)
            if spent + cost <= QUICK_SECONDS:
                spent += cost
                fresh.append(self._run(name, lambda a=share.analyzer, i=at: a.run_entry_at(i)))  # type: ignore[misc]
        reached: set[int] = set()
        old = [r for name, r in self._stale.items() if " unreached " not in name]
        names = {fn.qualname: i for i, fn in enumerate(plan.facts[path].functions)}
        for qualname in self._reached_before(path, old, index):
            if qualname in names:
                reached.add(names[qualname])
        for report in (*self._reports.values(), *fresh):
            reached.update(report.reached.get(index, ()))
        if old or self._reports:
            share = next((s for s in reversed(plan.shares) if path in s.own), plan.shares[0])
            of = (index, tuple(sorted(reached)))
            if len(reached) < len(plan.facts[path].functions):
                fresh.append(share.analyzer.run_unreached_at(of))
        edit = difference(self._before.get(path, ""), self._state.sources[path].text)
        kept = [
            moved
            for report in old
            for f in report.findings
            if f.path == path and (moved := _moved(f, path, edit)) is not None
        ]
        current = [f for report in fresh for f in report.findings if f.path == path]
        training = {report.relative for report in [*old, *self._reports.values(), *fresh] if report.trains}
        return merge([kept, current], training)

    def _reached_before(self, path: str, stale: Iterable[EntryReport], index: int) -> set[str]:
        """The functions of a file, by name, that runs reached before it was edited."""
        facts = self._facts_before.get(path)
        if facts is None:
            return set()
        return {
            facts.functions[i].qualname
            for report in stale
            for i in report.reached.get(index, ())
            if i < len(facts.functions)
        }

    def complete(self, stop: Callable[[], bool]) -> Result:
        """Make all runs that are not known, and answer for all files. Raises Cancelled."""
        self._stop = stop
        found, sources, parts, plan = self._state
        entries = [
            self._run(name, lambda a=share.analyzer, i=at: a.run_entry_at(i))  # type: ignore[misc]
            for share, at, name in self._entries()
        ]
        unreached: list[EntryReport] = []
        names: set[str] = {name for _, _, name in self._entries()}
        for of in unreached_code(plan.shares[0].analyzer, entries):
            path = plan.project.modules.files[of[0]].path
            share = next((s for s in reversed(plan.shares) if path in s.own), plan.shares[0])
            name = share.analyzer.unreached_name(of)
            names.add(name)
            run = share.analyzer.run_unreached_at
            unreached.append(self._run(name, lambda run=run, of=of: run(of)))  # type: ignore[misc]
        self._reports = {name: report for name, report in self._reports.items() if name in names}
        self._stale.clear()
        self._before.clear()
        self._facts_before.clear()
        analysis = findings_of(plan, Runs(entries, unreached), found, sources, parts)
        self.result = decide(found, sources, parts, analysis, self.settings)
        return self.result

    def _entries(self) -> list[tuple[Share, int, str]]:
        plan = self._state.plan
        return [
            (share, at, share.analyzer.entry_name(at))
            for share in plan.shares
            for at, entry in enumerate(plan.project.entries)
            if entry.file.path in share.own
        ]

    def _run(self, name: str, make: Callable[[], EntryReport]) -> EntryReport:
        """The report of a run, made now unless it is known."""
        if self._stop():
            raise Cancelled
        known = self._reports.get(name)
        if known is None:
            began = time.thread_time()
            known = self._reports[name] = make()
            self._cost[name] = time.thread_time() - began
            self._stale.pop(name, None)
        return known


def _moved(finding: Finding, path: str, edit: Edit) -> Finding | None:
    """A finding of the old text in the new one; None where the edit touches it. Its fix is made anew."""
    span = edit.moved(finding.start, finding.end)
    if span is None:
        return None
    flow: list[Step] = []
    for step in finding.flow:
        place = edit.moved(step.start, step.end) if step.path == path else (step.start, step.end)
        if place is not None:
            flow.append(msgspec.structs.replace(step, start=place[0], end=place[1]))
    fix = finding.fix
    if fix is not None:
        edits = [edit.moved(one.start, one.end) for one in fix.edits]
        moved = tuple(
            msgspec.structs.replace(one, start=place[0], end=place[1])
            for one, place in zip(fix.edits, edits, strict=True)
            if place is not None
        )
        fix = (
            msgspec.structs.replace(fix, edits=moved)
            if len(moved) == len(fix.edits) and not fix.path
            else None
        )
    return msgspec.structs.replace(finding, start=span[0], end=span[1], flow=tuple(flow), fix=fix)
