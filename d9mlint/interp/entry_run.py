"""One analysis run: from an entry point to a report that is plain data.

``run_entry`` and ``run_unreached`` are functions of the project's files, the knowledge base, the targets and the
rules. What one run does is never known to another: an import that several runs have in common is taken over
only where it would happen again in the same way (see ``import_cache``). So reports can be made in any order and
in any process, kept under what they read, and merged (see ``checks.merge``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import msgspec

from d9mlint.base.entry_report import (
    DETERMINISTIC_MODE,
    OP_DETERMINISM,
    SEEDED_WORKERS,
    WORKSPACE,
    EntryReport,
    packed,
)
from d9mlint.base.findings import Finding
from d9mlint.interp import values as v
from d9mlint.interp.activity import TRAIN, Activity, states, trained_on
from d9mlint.interp.calls import answer_by, blank_instance, is_managed, manage
from d9mlint.interp.context import QUIET
from d9mlint.interp.events import EndEvent
from d9mlint.interp.frames import BudgetExceeded
from d9mlint.interp.heap import HEAP
from d9mlint.interp.import_cache import ImportCache, ImportLog
from d9mlint.interp.interpreter import MAIN, Interp
from d9mlint.interp.library import commands, hooks, own_gradients, replacing
from d9mlint.interp.library.loaders import Loaders
from d9mlint.interp.library.options import option_params
from d9mlint.interp.listening import Wanted
from d9mlint.interp.overwritten import Overwritten
from d9mlint.interp.releases import ReleaseNames
from d9mlint.interp.replaced import Replaced
from d9mlint.interp.storage import Storage
from d9mlint.interp.switches import CUBLAS, DETERMINISTIC, SEEDED_BY_TRAINER, Switches
from d9mlint.interp.trail import functions
from d9mlint.interp.usage import flatten
from d9mlint.ir import nodes as m
from d9mlint.ir.limits import with_deep_stack
from d9mlint.knowledge.versions import keep_oldest
from d9mlint.project.entry_points import Entry, find_entries, imported_files, used_files
from d9mlint.project.frameworks import started_by_name
from d9mlint.project.import_order import ImportOrder, Needed
from d9mlint.project.modules import ModuleFile, Modules
from d9mlint.project.releases import installed_by

if TYPE_CHECKING:
    from d9mlint.config.targets import Targets
    from d9mlint.interp.recording import Recording, Spot
    from d9mlint.ir.nodes import FileFacts
    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.plugins import Plugin

RECURSION_LIMIT = 12_000
"""Python frames; abstract calls nest some ten deep per project call."""


MOST_FILES = 4_096
"""Each program has all of its steps in a project with at most this many files, half of them with up to twice as many, and
so on: a tree of everything that is installed has thousands of programs, each of which goes through all of a library."""
UNREACHED_STEPS = 20_000_000
"""Steps for all modules with code that no entry point reaches, shared out evenly among the project's files."""
LEAST_STEPS = 5_000
"""Steps that each of them has in any case."""
_MOST_GIVEN = 3
"""How many functions deep those are called that unreached ones give: a decorator with options gives one that gives one."""


class ProjectFile(NamedTuple):
    """A file as discovery and extraction left it; both paths with slashes, ``relative`` to the root."""

    path: str
    relative: str
    facts: FileFacts


AnyInterp = TypeVar("AnyInterp", bound=Interp)


class RuleSet(Protocol):
    """The rules of a run, by their codes, with the plugins that some come from."""

    codes: frozenset[str]
    plugins: tuple[Plugin, ...]

    def start(self, interp: Interp) -> Callable[[], list[Finding]]:
        """Listen to a run; the result gives what was found when it has ended."""


class Project:
    """The files of a project, linked, with what all analysis runs of it have in common. ``layered`` is the knowledge of
    each of its parts, which knows the frameworks that start programs."""

    def __init__(
        self,
        files: Iterable[ProjectFile],
        root: str,
        layered: Iterable[Knowledge],
        libraries: frozenset[str] = frozenset(),
        named: Iterable[tuple[str, str]] = (),
        before: Project | None = None,
    ) -> None:
        # What an earlier state of the project has in common with this one is the same objects.
        known: dict[str, ModuleFile] = before.modules.by_path if before is not None else {}

        def module(f: ProjectFile) -> ModuleFile:
            old = known.get(f.path)
            same = old is not None and old.facts is f.facts and old.relative == f.relative
            return old if old is not None and same else ModuleFile(f.path, f.relative, f.facts)

        self.modules: Modules = Modules([module(f) for f in files], root, libraries)
        named = list(named)
        self.root = root
        self.libraries = libraries
        self.named = named
        self.layered = list(dict.fromkeys(layered))
        # What is named as an entry point is run for itself, whoever imports it too.
        self.imported = imported_files(self.modules, self.layered) - {path for path, _ in named}
        self.used = self.imported & used_files(self.modules)
        self.entries: list[Entry] = find_entries(self.modules, self.imported, self.layered, named)
        self.index = {file.path: i for i, file in enumerate(self.modules.files)}
        self.import_order = ImportOrder(self.modules)

    def program_steps(self, most: int) -> int:
        """How many steps each program may run besides its imports, of which it has at ``most`` so many."""
        return most >> ((max(1, len(self.modules.files)) - 1) // MOST_FILES).bit_length()


def run_entry(
    project: Project, knowledge: Knowledge, targets: Targets, device: str, rules: RuleSet, entry: Entry
) -> EntryReport:
    """The report of one entry point: a function of its arguments alone. An ``Analyzer`` gives the same for many,
    and runs the imports that they have in common once."""
    return Analyzer(project, knowledge, targets, device, rules).run_entry(entry)


Releases = tuple[tuple[str, str], ...]
"""Libraries and their releases that the names of a program tell."""
Start = Callable[["Interp"], None]


class Analyzer:
    """Makes the reports of one project. It holds the imports that its runs have in common, nothing else.
    ``device_given`` is whether the user named the device."""

    def __init__(
        self,
        project: Project,
        knowledge: Knowledge,
        targets: Targets,
        device: str,
        rules: RuleSet,
        *,
        device_given: bool = False,
    ) -> None:
        self.project = project
        self.knowledge = knowledge
        self.targets = targets
        self.device = device
        self.device_given = device_given
        self.rules = rules
        # Imports by the releases that the names of a program tell, first those of entry points.
        self._imports: dict[Releases, tuple[ImportCache, ImportCache]] = {}
        self.interp: type[Interp] = Interp
        # Who listens to which calls, in runs over unreached code and in programs.
        self._wanted: tuple[Wanted, Wanted] = ({}, {})

    def after_edit(self, project: Project, paths: Iterable[str]) -> Analyzer:
        """The same for the project as it is when some of its files have been edited; imports that did not read
        them are kept."""
        new = Analyzer(
            project, self.knowledge, self.targets, self.device, self.rules, device_given=self.device_given
        )
        new.interp = self.interp
        new._imports = self._imports
        for path in paths:
            for imports in new._imports.values():
                for cache in imports:
                    cache.forget(path)
        return new

    def remembered(self) -> set[tuple[str, int]]:
        """The functions that made the objects of remembered imports."""
        return {
            one for caches in self._imports.values() for cache in caches for one in cache.functions_entered()
        }

    def forget_imports(self) -> None:
        """Keep no imports of earlier runs."""
        self._imports = {}

    def forget_programs(self) -> None:
        """Keep no imports of programs: those that remain to be judged are not run as programs."""
        self._imports = {releases: (ImportCache(), known[1]) for releases, known in self._imports.items()}

    def run_entry(self, entry: Entry) -> EntryReport:
        """Run an entry point: its module as ``__main__``, then the commands it registers."""
        return self._run(entry.file, entry, lambda interp: _run_program(interp, entry))

    def record_entry(self, index: int, spot: Spot) -> tuple[EntryReport, Recording]:
        """Run an entry point, and note what is known at a line."""
        entry = self.project.entries[index]
        return self._recorded(entry.file, entry, lambda interp: _run_program(interp, entry), spot)

    def record_unreached(self, of: tuple[int, tuple[int, ...]], spot: Spot) -> tuple[EntryReport, Recording]:
        """Look at the unreached functions of a module, and note what is known at a line."""
        file = self.project.modules.files[of[0]]
        return self._recorded(file, None, self._unreached(file, frozenset(of[1])), spot)

    def run_unreached(self, file: ModuleFile, reached: frozenset[int]) -> EntryReport:
        """Look at the functions of a module that no entry point reaches, with unknown arguments."""
        return self._run(file, None, self._unreached(file, reached))

    def _unreached(self, file: ModuleFile, reached: frozenset[int]) -> Callable[[Interp], None]:
        # Not what other modules left over: reports are made in any order.
        share = UNREACHED_STEPS // max(1, len(self.project.modules.files))
        judged = frozenset((file.path, i) for i in range(file.facts.count) if i not in reached)

        def start(interp: Interp) -> None:
            interp.judged = judged
            interp.allow(max(LEAST_STEPS, min(interp.budget, share)))
            _run_module(interp, file)

        return start

    def entry_name(self, index: int) -> str:
        """What names the run of an entry point among those of its project."""
        entry = self.project.entries[index]
        path = entry.file.path
        return f"{self.project.index[entry.file.path]} {entry.function or ''} {self._kind(path)}"

    def _kind(self, path: str) -> str:
        """Who imports a file: other code, tests alone, or nothing."""
        if path in self.project.used:
            return "imported"
        return "tested" if path in self.project.imported else "script"

    def run_entry_at(self, index: int) -> EntryReport:
        """Run an entry point by its place among those of the project."""
        return self.run_entry(self.project.entries[index])

    def unreached_name(self, of: tuple[int, tuple[int, ...]]) -> str:
        """What names the run over unreached code of a module."""
        kind = self._kind(self.project.modules.files[of[0]].path)
        order = self.project.import_order.digest(self.project.modules.files[of[0]])
        return f"{of[0]} unreached {','.join(map(str, of[1]))} {kind} {order}"

    def run_unreached_at(self, of: tuple[int, tuple[int, ...]]) -> EntryReport:
        """Look at the unreached functions of a module by its place among the project's files."""
        return self.run_unreached(self.project.modules.files[of[0]], frozenset(of[1]))

    def _by_file(self, functions: Iterable[tuple[str, int]]) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for path, index in sorted(functions):
            found.setdefault(self.project.index[path], []).append(index)
        return found

    def _parameters(self, interp: Interp) -> dict[int, dict[int, list[str]]]:
        found: dict[int, dict[int, list[str]]] = {}
        for (path, index), names in sorted(interp.without_gradient.items()):
            if names:
                found.setdefault(self.project.index[path], {})[index] = sorted(names)
        return found

    def _run_files(self, interp: Interp, file: ModuleFile) -> list[int]:
        paths = {file.path, *(path for path, mod in interp.loaded.items() if mod.file is not None)}
        return sorted(self.project.index[path] for path in paths)

    def _run(self, file: ModuleFile, entry: Entry | None, start: Callable[[Interp], None]) -> EntryReport:
        own, installed = self._own_targets(file, entry)
        report, inferred = self._run_for(own, installed, file, entry, start)
        inferred = _joined(inferred, installed)
        targets = own.with_inferred(dict(inferred))
        if installed:
            report = msgspec.structs.replace(report, releases=dict(inferred))
        if targets is not own:
            # Versions decide what calls do: the program is run as one of the releases that it was written for.
            final, _ = self._run_for(targets, inferred, file, entry, start)
            # What the first run read has chosen the release.
            one, other = report.functions_entered(), final.functions_entered()
            both = {
                index: sorted({*one.get(index, ()), *other.get(index, ())})
                for index in sorted(one.keys() | other.keys())
            }
            report = msgspec.structs.replace(final, entered=packed(both), releases=dict(inferred))
        return report

    def _own_targets(self, file: ModuleFile, entry: Entry | None) -> tuple[Targets, Releases]:
        """The targets of a program that may be a notebook, which installs releases itself, and these."""
        if entry is None or not file.path.endswith(".ipynb"):
            return self.targets, ()
        installed = installed_by(self.knowledge, file.facts)
        return self.targets.with_inferred(installed), tuple(sorted(installed.items()))

    def _run_for(
        self, targets: Targets, releases: Releases, file: ModuleFile, entry: Entry | None, start: Start
    ) -> tuple[EntryReport, Releases]:
        """The report of a run for some targets, and the releases that the names in it tell."""
        imports = self._imports.setdefault(releases, (ImportCache(), ImportCache()))
        imports[0 if entry else 1].let_go()
        interp = self._interp(self.interp, entry, imports[0 if entry else 1], targets)
        if entry is None:
            interp.ready = self._settle(imports[1], targets, file)
        report = self._report(interp, file, entry, start)
        interp.forget_calls()
        return report, _inferred(interp)

    def _settle(self, imports: ImportCache, targets: Targets, file: ModuleFile) -> Needed:
        """Import what the code of a file imports, each module by itself behind those that it needs.

        Packages import one another in circles, and what the import of one of their modules makes depends on which
        of them was first. No program says that where none reaches the code: then the order is that of the
        project's imports, and each module is run once."""
        order = self.project.import_order
        files, needed = order.needed_by_code(file)
        for one in files:
            if not imports.is_settled(one.path):
                interp = self._interp(self.interp, None, imports, targets)
                interp.ready = order.needed(one)
                self._report(interp, one, None, partial(_import_alone, file=one))
                imports.settle(interp, one, order.circle(one), order.needed(one))
                interp.forget_calls()
        return needed

    def _recorded(
        self, file: ModuleFile, entry: Entry | None, start: Callable[[Interp], None], spot: Spot
    ) -> tuple[EntryReport, Recording]:
        own, installed = self._own_targets(file, entry)
        report, recording, inferred = self._recorded_for(own, file, entry, start, spot)
        releases = dict(_joined(inferred, installed))
        targets = own.with_inferred(releases)
        if targets is not own:
            report, recording, _ = self._recorded_for(targets, file, entry, start, spot)
        return msgspec.structs.replace(report, releases=releases), recording

    def _recorded_for(
        self, targets: Targets, file: ModuleFile, entry: Entry | None, start: Start, spot: Spot
    ) -> tuple[EntryReport, Recording, Releases]:
        from d9mlint.interp.recording import RecordedInterp, Recorder

        # What an import does is to be seen: none is taken over from another run.
        interp = self._interp(RecordedInterp, entry, ImportCache(), targets)
        # It hears of everything before the rules.
        interp.recorder = Recorder(spot, interp)
        report = self._report(interp, file, entry, start)
        return report, interp.recorder.recording(), _inferred(interp)

    def _interp(
        self, kind: type[AnyInterp], entry: Entry | None, imports: ImportCache, targets: Targets
    ) -> AnyInterp:
        interp = kind(
            self.project.modules,
            self.knowledge,
            targets=targets,
            device=self.device,
            device_given=self.device_given,
            entry=entry.file if entry else None,
            imported=self.project.imported,
            used=self.project.used,
            imports=imports,
        )
        interp.allow(self.project.program_steps(interp.budget))
        return interp

    def _report(
        self,
        interp: Interp,
        file: ModuleFile,
        entry: Entry | None,
        start: Callable[[Interp], None],
    ) -> EntryReport:
        start_models(interp)
        findings = self.rules.start(interp)
        if interp.targets is self.targets and type(interp) is self.interp:
            # Who records a run listens too.
            interp.listeners.know(self._wanted[entry is not None])
        interp.import_log = ImportLog()
        failure = ""
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, RECURSION_LIMIT))
        HEAP.push()
        HEAP.forget_patches()
        depth = HEAP.depth

        def follow() -> None:
            start(interp)
            hooks.run_rest(interp)
            replacing.run_rest(interp, TRAIN in interp.places)
            if TRAIN in interp.places:
                own_gradients.take_gradients(interp)
            interp.listeners.tell(EndEvent())

        try:
            with_deep_stack(follow)
        except BudgetExceeded:
            pass  # the cut is noted
        except RecursionError:
            failure = "its calls are nested too deeply"
        except Exception as error:
            # A defect of ours costs the findings of one entry point, never the run; it is not silent.
            place = interp.here() if interp.frame is not None else None
            where = f" at {place.path}, character {place.start}" if place else ""
            failure = f"internal error{where}: {type(error).__name__}: {error}"
        finally:
            HEAP.unwind(depth)
            HEAP.pop()
            HEAP.undo(0)
            interp.imports.end_run()
            sys.setrecursionlimit(limit)
        trains = entry is not None and TRAIN in interp.places
        guards = entry is not None and entry.kind == "main" and file.path in self.project.used
        return EntryReport(
            entry=file.path,
            function=(entry.function or "") if entry else "",
            findings=findings(),
            reached=packed(self._by_file(interp.visited - interp.left_to_libraries)),
            files=self._run_files(interp, file) if entry is not None else [],
            config_files=sorted(interp.config_files),
            steps=interp.steps,
            cuts=sorted(interp.cuts),
            failure=failure,
            relative=file.relative,
            trains=trains,
            tries_out=guards and not trains and not interp.activity.saved_files,
            gaps=sorted(interp.gaps),
            fails=interp.fails,
            entered=packed(self._by_file(functions(interp.trail))),
            states=states(interp),
            device=trained_on(interp) if entry is not None else "",
            loads=sorted(interp.activity.loaded_files),
            saves=sorted(interp.activity.saved_files),
            saves_in_training=sorted(interp.activity.saved_in_training),
            switched_on=_switched_on(interp, trains),
            without_gradient=packed(self._parameters(interp)),
        )


def _switched_on(interp: Interp, trains: bool) -> list[str]:
    """The switches of determinism that a program has on at its end; those of a whole program only where it trains."""
    switches = (
        (OP_DETERMINISM, trains and interp.switches.tf_wanted),
        (
            DETERMINISTIC_MODE,
            trains and (interp.switches.torch_on or interp.mode(DETERMINISTIC).value is True),
        ),
        (WORKSPACE, trains and interp.state.env.get(CUBLAS) is not None),
        (SEEDED_WORKERS, interp.mode(SEEDED_BY_TRAINER).value),
    )
    return [name for name, is_on in switches if is_on]


def _inferred(interp: Interp) -> Releases:
    """The releases for which the names in a run tell that it was written."""
    found = dict(interp.releases)
    keep_oldest(found, interp.implied_releases)
    return tuple(sorted(found.items()))


def _joined(inferred: Releases, installed: Releases) -> Releases:
    """Inferred releases, or those that a program installs itself in their place."""
    return tuple(sorted({**dict(inferred), **dict(installed)}.items())) if installed else inferred


def start_models(interp: Interp) -> None:
    """What the interpreter knows of libraries beside its models of single calls. It hears of everything before
    the rules, which read what it has found out."""
    interp.activity = Activity(interp)
    interp.switches = Switches(interp)
    interp.release_names = ReleaseNames(interp)
    for model in (
        Loaders(interp),
        interp.activity,
        Storage(interp),
        Overwritten(interp),
        Replaced(interp),
        interp.release_names,
        interp.switches,
    ):
        interp.listeners.add(model)


def _run_program(interp: Interp, entry: Entry) -> None:
    name = interp.modules.name_of(entry.file)
    parents = name.split(".")[:-1]
    if parents and (entry.function is not None or _is_run_as_module(entry.file)):
        # Started from the directory of the outermost package; Python imports the packages around a module before it.
        interp.look_first_in(interp.modules.package_root(entry.file.directory))
        interp.frame = interp.base_frame(v.Mod(name, entry.file), entry.file)
        interp.import_parents(entry.file, parents)
        interp.frame = None  # type: ignore[assignment]
    mod = interp.loaded.get(entry.file.path) if entry.function is not None else None
    if mod is None:
        mod = interp.run_file(entry.file, MAIN if entry.function is None else name)
    interp.frame = interp.base_frame(mod, entry.file)
    interp.statement = None
    if entry.function is not None:
        target = mod.env.vars.get(entry.function)
        if isinstance(target, v.Func):
            interp.call(target, option_params(interp, target), None)
        elif isinstance(target, v.Obj):
            commands.start(interp, target)
    values = list(mod.env.vars.values())
    own = [one for one in values if isinstance(one, v.Func) and commands.is_command(one)]
    commands.run_commands(interp, own, _started_by_frameworks(interp, entry.file, values))
    commands.serve_all(interp, mod)
    interp.drain()


def _started_by_frameworks(
    interp: Interp, file: ModuleFile, values: Iterable[v.Value]
) -> list[Callable[[], None]]:
    """What frameworks start of what a module has: callers stand behind what they call, and run first."""
    named = started_by_name(interp.kb, file)
    starts: list[Callable[[], None]] = []
    for one in values:
        if isinstance(one, v.Func) and (one.fn.name in named or commands.is_started(interp, one)):
            starts.append(partial(commands.run_started, interp, one))
        elif isinstance(one, v.Cls) and one.file is file:
            if one.cls.name in named or commands.is_started(interp, one):
                starts.append(partial(_start_class, interp, one))
    return starts[::-1]


def _start_class(interp: Interp, cls: v.Cls) -> None:
    if not commands.has_run(interp, cls):
        answer_by(interp, cls, None)


def _is_run_as_module(file: ModuleFile) -> bool:
    """Whether a file can be started as a module of its package only, by ``python -m``: it imports relative to it."""
    return any(isinstance(stmt, m.ImportFrom) and stmt.level for stmt in file.facts.functions[0].body)


def _import_alone(interp: Interp, file: ModuleFile) -> None:
    name = interp.modules.name_of(file)
    interp.frame = interp.base_frame(v.Mod(name, file), file)
    interp.statement = None
    interp.import_parents(file, name.split("."))


def _run_module(interp: Interp, file: ModuleFile) -> None:
    # The import brings in what the module needs; then its own body is run again, and judged.
    _import_alone(interp, file)
    interp.visited.clear()
    interp.frame = None  # type: ignore[assignment]
    mod = interp.run_file(file, interp.modules.name_of(file))
    interp.frame = interp.base_frame(mod, file)
    # Nothing in the code makes these calls: they have no place.
    interp.statement = None
    for value in list(mod.env.vars.values()):
        if isinstance(value, v.Func) and value.file is file:
            if value.key in interp.judged and value.key not in interp.visited:
                _run_given(interp, interp.call(value, v.Args(star=True, dstar=True), None))
        elif isinstance(value, v.Cls) and value.file is file:
            _run_class(interp, value)
    interp.drain()


def _run_class(interp: Interp, cls: v.Cls) -> None:
    members = [x for x in cls.env.vars.values() if isinstance(x, v.Func)]
    if all(x.key not in interp.judged for x in members):
        return
    inst = blank_instance(interp, cls)
    init = cls.find("__init__")
    if isinstance(init, v.Func):
        # Attributes that __init__ makes are known in the other methods, with unknown arguments.
        interp.call(init.bind(inst), v.Args(star=True, dstar=True), None)
    bases = [interp.kb.role(base, "calls-quietly") for base in cls.external_bases()]
    quiet = {name for role in bases if role is not None for name in role.more}
    for member in members:
        if member.key in interp.judged and member.key not in interp.visited:
            with interp.within(*([QUIET] if member.fn.name in quiet else [])):
                _run_given(interp, interp.call(member.bind(inst), v.Args(star=True, dstar=True), None))


def _run_given(interp: Interp, given: v.Value, depth: int = 0) -> None:
    """Whoever calls a function may call the functions that it gives, and enter the context manager that it is."""
    for one in flatten(given):
        if is_managed(one):
            manage(interp, one, lambda _: None, None)
        elif isinstance(one, v.Func) and one.key in interp.judged and one.key not in interp.visited:
            made = interp.call(one, v.Args(star=True, dstar=True), None)
            if depth < _MOST_GIVEN:
                _run_given(interp, made, depth + 1)
