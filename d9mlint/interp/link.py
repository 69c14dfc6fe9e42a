"""Linking: the files of a project, its entry points, and the abstract runs over them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.calls import blank_instance
from d9mlint.interp.interpreter import Interp
from d9mlint.interp.library.options import option_params
from d9mlint.interp.sharing import SharedModules
from d9mlint.ir.nodes import FileFacts
from d9mlint.project.entry_points import Entry, find_entries, imported_files
from d9mlint.project.modules import ModuleFile, Modules

if TYPE_CHECKING:
    from d9mlint.config.targets import Targets
    from d9mlint.interp.hooks import Hooks
    from d9mlint.knowledge import Knowledge

RECURSION_LIMIT = 12_000
"""Python frames; abstract calls nest some ten deep per project call."""


class ProjectFile(NamedTuple):
    """A file as discovery and extraction left it; both paths with slashes, ``relative`` to the root."""

    path: str
    relative: str
    facts: FileFacts


class Program:
    """A linked project."""

    def __init__(
        self, files: Iterable[ProjectFile], root: str, knowledge: Knowledge, targets: Targets, device: str
    ) -> None:
        self.modules = Modules([ModuleFile(f.path, f.relative, f.facts) for f in files], root)
        self.knowledge = knowledge
        self.targets = targets
        self.device = device
        self.imported = imported_files(self.modules)
        self.entries: list[Entry] = find_entries(self.modules, self.imported)
        self.visited: set[int] = set()
        self.config_files: set[str] = set()
        self.shared = SharedModules()
        self.failures: list[tuple[Entry, str]] = []

    def run(self, hooks: Hooks) -> None:
        """Run every entry point, then what none of them reached."""
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, RECURSION_LIMIT))
        try:
            for entry in self.entries:
                interp = self._interp(hooks, entry)
                try:
                    run_entry(interp, entry)
                    for hook in hooks.ends:
                        hook(interp)
                except RecursionError:
                    self.failures.append((entry, "it is nested too deeply"))
                except Exception as error:
                    # A defect of ours costs the findings of one entry point, never the run; it is not silent.
                    place = interp.here() if interp.frame is not None else None
                    where = f" at {place.path}, character {place.start}" if place else ""
                    self.failures.append((entry, f"internal error{where}: {type(error).__name__}: {error}"))
                self.visited |= interp.visited
                self.config_files |= interp.config_files
            self._run_rest(hooks)
        finally:
            sys.setrecursionlimit(limit)

    def _interp(self, hooks: Hooks, entry: Entry | None) -> Interp:
        return Interp(
            self.modules,
            self.knowledge,
            hooks,
            targets=self.targets,
            device=self.device,
            entry=entry.file if entry else None,
            imported=self.imported,
            shared=self.shared if entry else None,
        )

    def _run_rest(self, hooks: Hooks) -> None:
        """Look at code that no entry point reaches, under neutral assumptions."""
        interp = self._interp(hooks, None)
        interp.already = frozenset(self.visited)
        for file in self.modules.files:
            facts = file.facts
            if facts.problem is not None or all(id(fn) in self.visited for fn in facts.functions):
                continue
            try:
                self._run_module_rest(interp, file)
            except RecursionError:
                continue
            except Exception as error:
                self.failures.append(
                    (Entry(file, "rest"), f"internal error: {type(error).__name__}: {error}")
                )
        for hook in hooks.ends:
            hook(interp)
        self.config_files |= interp.config_files

    def _run_module_rest(self, interp: Interp, file: ModuleFile) -> None:
        interp.steps = 0
        interp.exhausted = False
        mod = interp.loaded.get(file.path) or interp.run_file(file, _module_name(self.modules, file))
        interp.frame = interp.base_frame(mod, file)
        # Nothing in the code makes these calls: they have no place.
        interp._node = None
        seen = self.visited
        for value in list(mod.env.vars.values()):
            if isinstance(value, v.Func) and value.file is file:
                if id(value.fn) not in seen and id(value.fn) not in interp.visited:
                    interp.call(value, v.Args(star=True, dstar=True), None)
            elif isinstance(value, v.Cls) and value.file is file:
                self._run_class_rest(interp, value)
        interp.drain()
        interp.frame = None  # type: ignore[assignment]

    def _run_class_rest(self, interp: Interp, cls: v.Cls) -> None:
        members = [x for x in cls.env.vars.values() if isinstance(x, v.Func)]
        if all(id(x.fn) in self.visited for x in members):
            return
        inst = blank_instance(interp, cls)
        init = cls.find("__init__")
        if isinstance(init, v.Func):
            # Attributes that __init__ makes are known in the other methods, with unknown arguments.
            interp.call(init.bind(inst), v.Args(star=True, dstar=True), None)
        for member in members:
            if id(member.fn) not in self.visited and id(member.fn) not in interp.visited:
                interp.call(member.bind(inst), v.Args(star=True, dstar=True), None)


def run_entry(interp: Interp, entry: Entry) -> None:
    """Start a program: run its module as ``__main__``, then the commands it registers."""
    name = "__main__" if entry.function is None else _module_name(interp.modules, entry.file)
    mod = interp.run_file(entry.file, name)
    interp.frame = interp.base_frame(mod, entry.file)
    interp._node = None
    if entry.function is not None:
        target = mod.env.vars.get(entry.function)
        if isinstance(target, v.Func):
            interp.call(target, option_params(interp, target), None)
    commands = [f for f in mod.env.vars.values() if isinstance(f, v.Func) and is_command(f)]
    starts: list[Callable[[], None]] = []
    for func in commands:
        if id(func.fn) not in interp.visited:

            def start(func: v.Func = func) -> None:
                interp.call(func, option_params(interp, func), None)

            starts.append(start)
    if len(starts) == 1:
        starts[0]()
    elif starts:
        # Every command is a program of its own: none sees what another one has seeded.
        interp.branch(starts)
    interp.drain()


def is_command(func: v.Func) -> bool:
    """Whether decorators make a function a command of its own: click, typer, hydra, sacred."""
    for decorator in func.decorated:
        name = _decorator_name(decorator)
        if name.rpartition(".")[2] in ("command", "automain") or name in ("hydra.main",):
            return True
    return False


def _decorator_name(decorator: Any) -> str:
    if isinstance(decorator, v.Obj):
        return decorator.api
    if isinstance(decorator, v.Member):
        return "?." + decorator.name
    return decorator.name if isinstance(decorator, v.Ext) else ""


def _module_name(modules: Modules, file: ModuleFile) -> str:
    base = modules.package_root(file.directory)
    relative = file.path[len(base) + 1 :]
    name = relative.rpartition(".")[0].replace("/", ".")
    return name.removesuffix(".__init__")


def link(
    files: Iterable[ProjectFile], root: str, knowledge: Knowledge, targets: Targets, device: str = "cuda"
) -> Program:
    """Make a program of files. ``root`` is the project root, absolute, with slashes."""
    return Program(files, root, knowledge, targets, device)
