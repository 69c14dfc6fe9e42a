"""A project that is kept warm between edits: facts, imports and the reports of its runs stay in memory.

After an edit, the reports of runs that read none of the code that says something else now are kept, with the new places.
Two answers are given. ``quick`` is about the edited file alone: its facts are read again, the code of it that no entry
point reaches is judged anew, and so are entry points whose last run took little time; what the others found in the file
is kept where the text did not change. ``complete`` then makes the runs again that read changed code, and answers for all
files as ``d9mlint check`` does.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from d9mlint.analysis import Runs, Share, unreached_code
from d9mlint.base.entry_report import shown
from d9mlint.base.findings import Finding, Step
from d9mlint.base.paths import relative_to
from d9mlint.base.source import Source, Trouble, make_source, read_bytes
from d9mlint.checks.callers import left_by_callers
from d9mlint.checks.merge import merge
from d9mlint.checks.never_called import Searching, never_called
from d9mlint.checks.untaken import without_untaken
from d9mlint.config.entry_points import named_entries
from d9mlint.config.settings import Settings, load_settings
from d9mlint.interp.entry_run import Project, ProjectFile
from d9mlint.interp.interpreter import Interp
from d9mlint.ir.bodies import forget
from d9mlint.ir.edited import edited
from d9mlint.pipeline import Item, Prepared, Result, decide, findings_of, prepare, with_known_evidence
from d9mlint.project.releases import releases_of_project
from d9mlint.store.gather import parse_one
from d9mlint.store.moved import after_edits

if TYPE_CHECKING:
    from d9mlint.base.entry_report import EntryReport
    from d9mlint.ir import nodes as m
    from d9mlint.ir.edited import Edited
    from d9mlint.ir.nodes import FileFacts

QUICK_SECONDS = 0.1
"""Runs of entry points that took less CPU time than this in all are made again for the quick answer."""

UNREACHED_SECONDS = 0.15
"""So is the run over the code of the file that no entry point reaches; else what it found before is shown until all other
files are answered for."""


UNREACHED = " unreached "
"""What is in the names of the runs over code that no entry point reaches, behind the place of the file."""


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


class State(NamedTuple):
    """A file as it was."""

    text: str
    facts: FileFacts


class Outdated(NamedTuple):
    """A report of a run that read code which says something else now, with the states, by path, of the edited files
    that the run read: those that it is about."""

    report: EntryReport
    states: dict[str, State]


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
        self._stale: dict[str, Outdated] = {}
        self._cost: dict[str, float] = {}
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
        outdated = (old.report for old in self._stale.values())
        return frozenset(p for r in (*self._reports.values(), *outdated) for p in r.config_files)

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
        sources.replace(path, content)
        forget()
        files = [ProjectFile(f, relative_to(f, found.root), x) for f, x in sorted(facts.items())]
        old_project = plan.project
        named, _ = named_entries(parts, facts)
        project = Project(
            files, found.root, old_project.layered, old_project.libraries, named, before=old_project
        )
        same = [f.path for f in project.modules.files] == [f.path for f in plan.project.modules.files]
        if not same:
            # Reports mean files by their places among all files.
            self._reports.clear()
            self._stale.clear()
        elif path in facts:
            self._outdate(path, State(old.text, plan.facts[path]), project.index, facts)
        shares = [Share(s.analyzer.after_edit(project, [path]), s.own, None) for s in plan.shares]
        releases = releases_of_project(plan.known, facts.values(), plan.asked)
        plan = plan._replace(shares=shares, project=project, facts=facts)
        if releases != plan.releases:
            # Versions decide what calls do.
            self._reports.clear()
            self._stale.clear()
            plan = plan._replace(
                targets=[one.with_inferred(releases) for one in plan.asked], releases=releases
            )
            for share, targets in zip(shares, plan.targets, strict=True):
                share.analyzer.targets = targets
                share.analyzer.forget_imports()
        self._state = Prepared(found, sources, parts, plan)
        return True

    def _outdate(
        self, path: str, was: State, places: Mapping[str, int], facts: Mapping[str, FileFacts]
    ) -> None:
        """A file has changed: sort out the reports that say something else now, and take those back that are right
        again, as when a change is undone or a line that did not parse is finished."""
        place = places[path]
        for name, report in list(self._reports.items()):
            if place in report.functions_entered():
                del self._reports[name]
                # A run over a text that did not parse followed less than the one before.
                if name not in self._stale or was.facts.problem is None:
                    self._stale[name] = Outdated(report, {path: was})
        edits: dict[tuple[str, int], Edited | None] = {}

        def edit(of: str, state: State) -> Edited | None:
            key = of, id(state.facts)
            if key not in edits:
                edits[key] = edited(state.facts, facts[of])
            return edits[key]

        for name, old in list(self._stale.items()):
            if place in old.report.functions_entered():
                old.states.setdefault(path, was)
            if path not in old.states or name in self._reports:
                continue
            changed = {places[of]: (of, edit(of, state)) for of, state in old.states.items()}
            now = after_edits(old.report, changed)
            if now is not None:
                self._reports[name] = now
                del self._stale[name]

    def forget_readers(self, path: str) -> None:
        """A configuration file has changed that programs open."""
        for name, report in list(self._reports.items()):
            if path in report.config_files:
                del self._reports[name]
        for name, old in list(self._stale.items()):
            if path in old.report.config_files:
                del self._stale[name]

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
        # Fixes are for the releases that programs are judged by.
        known = (*self._reports.values(), *(old.report for old in self._stale.values()))
        judged = [
            msgspec.structs.replace(r, findings=[], cuts=[], gaps=[], failure="") for r in known if r.releases
        ]
        runs = Runs([], judged)
        searching = Searching(known, plan.project)
        findings = left_by_callers(findings, known, plan.project, plan.known, searching)
        findings = without_untaken(findings, plan.project, searching)
        findings = never_called(findings, plan.project, searching)
        only = plan._replace(facts={path: plan.facts[path]} if path in plan.facts else {})
        analysis = findings_of(only, runs, found, sources, parts, findings)
        one = found._replace(files=(path,), reported=frozenset({path}))
        return decide(one, sources, parts, analysis, self.settings).items

    def _quick_findings(self, path: str, index: int) -> list[Finding]:
        plan = self._state.plan
        spent = 0.0
        for share, at, name in self._entries():
            cost = self._cost.get(name, 1.0)
            if name in self._stale and spent + cost <= QUICK_SECONDS:
                spent += cost
                self._run(name, lambda a=share.analyzer, i=at: a.run_entry_at(i))  # type: ignore[misc]
        live = dict(self._reports)
        outdated = {name: old for name, old in self._stale.items() if name not in live}
        functions = plan.facts[path].functions
        names = {fn.qualname: i for i, fn in enumerate(functions)}
        programs = [old for name, old in outdated.items() if UNREACHED not in name]
        reached = {names[name] for name in _reached_before(path, index, programs) if name in names}
        for name, report in live.items():
            if UNREACHED not in name:
                reached.update(report.functions_reached().get(index, ()))
        anew = self._cost.get(f"{index}{UNREACHED}", 0.0) <= UNREACHED_SECONDS
        if anew:
            # What no entry point reaches in this file is judged as it is now.
            for reports in (live, outdated):
                for name in [name for name in reports if name.startswith(f"{index}{UNREACHED}")]:
                    del reports[name]
        if anew and (programs or live) and len(reached) < len(functions):
            share = next((s for s in reversed(plan.shares) if path in s.own), plan.shares[0])
            analyzer, of = share.analyzer, (index, tuple(sorted(reached)))
            name = analyzer.unreached_name(of)
            live[name] = self._run(name, lambda: analyzer.run_unreached_at(of))
        text = self._state.sources[path].text
        edits: dict[str, Edit] = {}
        found: list[list[Finding]] = []
        for report in live.values():
            found.append([f for f in report.findings if f.path == path])
        for old in outdated.values():
            here = [f for f in old.report.findings if f.path == path]
            if here:
                before = old.states[path].text if path in old.states else text
                if before not in edits:
                    edits[before] = difference(before, text)
                found.append([moved for f in here if (moved := _moved(f, path, edits[before])) is not None])
        trained = (*live.values(), *(old.report for old in outdated.values()))
        return merge(found, {report.relative for report in trained if report.trains}, shown(trained))

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
        # What was known before a text was broken is right again when the text is finished.
        broken = {path for path, one in plan.facts.items() if one.problem is not None}
        self._stale = {name: old for name, old in self._stale.items() if not broken.isdisjoint(old.states)}
        analysis = findings_of(plan, Runs(entries, unreached), found, sources, parts)
        result = decide(found, sources, parts, analysis, self.settings)
        self.result = with_known_evidence(result, self.settings.evidence)
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
            # The name of a run over unreached code has what is reached behind the place of the file.
            at, unreached, _ = name.partition(UNREACHED)
            self._cost[f"{at}{unreached}" if unreached else name] = time.thread_time() - began
        return known


def _reached_before(path: str, index: int, outdated: Iterable[Outdated]) -> set[str]:
    """The functions of a file, by name, that runs reached before it was edited."""
    return {
        facts.functions[i].qualname
        for old in outdated
        if path in old.states
        for facts in [old.states[path].facts]
        for i in old.report.functions_reached().get(index, ())
        if i < len(facts.functions)
    }


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
