"""Findings about functions that the programs of a project never call are advice.

Code that no entry point reaches is judged because something that is not known may call it. Where programs run the file,
and neither what they reach nor any file beside them names a function in a way that can lead to a call of it, it never
runs. Names decide: everything that might mean the function counts for it. Where a project has programs, the functions of
a file that none of them runs and that no file imports never run either, nor do those of other files that none of them
runs where nothing names the function or its class.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from d9mlint.base.coverage import BY_ATTRIBUTE, BY_CONFIGURATION
from d9mlint.base.entry_report import EntryReport
from d9mlint.base.findings import Finding, Severity, Step
from d9mlint.base.paths import TESTS, read_limited
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import at_once
from d9mlint.ir.endings import evaluated, never_run
from d9mlint.ir.function_tables import only_calls, tables
from d9mlint.ir.scopes import own_names, target_names
from d9mlint.ir.traversal import functions_around, nodes
from d9mlint.project.entry_points import (
    NOT_ENTRIES,
    calls_its_own,
    imports_of,
    is_built,
    is_main_test,
    is_test,
    may_be_built,
    runs_what_it_imports,
)
from d9mlint.project.frameworks import has_role

if TYPE_CHECKING:
    from d9mlint.base.coverage import Gap
    from d9mlint.interp.entry_run import Project
    from d9mlint.project.modules import Found, ModuleFile

MOST_STEPS = 8
"""How many functions that nothing reaches are followed, from each to one that names it."""
_ANY_NAME = frozenset({"eval", "exec", "globals", "locals"})
"""Builtins that may give whatever a module defines or imports."""
_ANY_MODULE = frozenset({"__import__", "import_module", "walk_packages", "iter_modules"})
"""The last part of names of calls that may give any module."""
_BY_CONFIGURED_NAME = frozenset(
    {
        "LightningCLI",
        "get_class",
        "get_object",
        "import_from_string",
        "import_string",
        "instantiate",
        "locate",
        "resolve_name",
        "run_module",
        "run_path",
        "spec_from_file_location",
    }
)
"""The same, by a name or a path that a text or a configuration holds."""
_MODULES = "sys.modules"
_BY_TEXT = frozenset({"getattr", "attrgetter", "methodcaller"})
"""Calls that give an attribute by its name."""
_OF_ANY = "?"
_OF_SELF = "self?"
"""Stand for the name of an attribute that is not known: of any object, or of the object that looks."""
_LOOKING = {"super": 0, "isinstance": 1, "issubclass": 1}
"""Builtins that make no object of a class that they are given, and call none of its methods, with its place among their
arguments."""
_HARMLESS = frozenset({"staticmethod", "classmethod", "property", "abstractmethod"})
"""Decorators that do not hand on what they decorate."""
MATERIAL = frozenset(
    {"dynamic-call", "project-import", "failing-call", "failing-subscript", "undefined-name", "budget"}
)
"""Gaps behind which a call may stand that was not seen."""
_RAISING = frozenset({"failing-call", "failing-subscript", "undefined-name"})
"""Gaps at an expression that always raises."""

Function = tuple[int, int]
"""A function by its file's place among the project's files and its index there."""


class Searching:
    """The search of a project, which is made when it is first asked for, and the programs that it is made from."""

    def __init__(self, reports: Iterable[EntryReport], project: Project) -> None:
        self._project = project
        self.programs = [one for one in reports if one.files]

    @cached_property
    def search(self) -> Search:
        """The same for all who ask."""
        return Search(self._project, self.programs)


def never_called(findings: Iterable[Finding], project: Project, searching: Searching) -> list[Finding]:
    """The findings, those in functions that never run as advice."""
    kept = list(findings)
    run = {index for one in searching.programs for index in one.files}
    asked = [
        place
        for place, one in enumerate(kept)
        if not one.entry_point and one.severity is not Severity.ADVICE and one.path in project.index
    ]
    if not asked or not run:
        return kept
    search = searching.search
    beside = {project.index[kept[place].path] for place in asked} - run
    left_out = {file for file in beside if search.is_left_out(file)}
    for place in asked:
        file = project.index[kept[place].path]
        if file not in run:
            # What stands in no function runs where the file itself is started.
            if file in left_out and search.is_in_function(kept[place]):
                kept[place] = _as_advice(kept[place], "no file of the project imports this one")
            elif search.is_named_nowhere(kept[place]):
                kept[place] = _as_advice(kept[place], "nothing in the project names it")
            continue
        function = search.around(kept[place])
        if function is not None and search.never_runs(function):
            kept[place] = _as_advice(kept[place], "nothing that one reaches calls it")
    return kept


def _as_advice(finding: Finding, why: str) -> Finding:
    if not finding.flow:
        return msgspec.structs.replace(finding, severity=Severity.ADVICE, idle=True)
    first, *rest = finding.flow
    text = f"{first.message.partition(';')[0]}, and {why}"
    flow = (Step(first.path, first.start, first.end, text), *rest)
    return msgspec.structs.replace(finding, severity=Severity.ADVICE, idle=True, flow=flow)


Imported = tuple[int, str, str]
"""What an import names: the number of dots, the module, and what is imported from it."""


class _Uses(msgspec.Struct):
    """What a file names: functions and classes by plain names, methods by attributes, each with the function around the
    place (below zero: the header of a class) and whether it is a call that is seen where the function runs. ``handed_on``
    are parts of the names of modules that are used as values, ``beginnings`` such parts (empty: the file itself) with how
    names begin that are looked up there, ``offered`` what a package that may be installed imports for others,
    ``any_name`` whether names are looked up in the module, ``any_module`` whether modules are, ``texts`` the names of
    attributes that are given as texts. ``own`` are the functions and classes that the module itself defines,
    ``variables`` the names that it gives other values, ``origins`` the modules that names are imported from, with the
    number of dots. ``of_modules`` are attributes of what is imported and may be a module, each with that; of what the
    module itself defines, with nothing."""

    names: dict[str, set[tuple[int, bool]]] = {}
    attributes: dict[str, set[tuple[int, bool]]] = {}
    of_modules: dict[str, set[tuple[int, bool, frozenset[Imported]]]] = {}
    imported: set[str] = set()
    handed_on: set[str] = set()
    beginnings: set[tuple[str, str]] = set()
    offered: set[str] = set()
    any_name: bool = False
    any_module: bool = False
    texts: set[str] = set()
    own: set[str] = set()
    variables: set[str] = set()
    origins: dict[str, set[tuple[int, str]]] = {}


class Search:
    """Looks for what may call functions of a project."""

    def __init__(self, project: Project, programs: Sequence[EntryReport]) -> None:
        self.project = project
        self.files = project.modules.files
        self.complete = not any(one.cuts or one.failure for one in programs)
        # The files of programs with calls that are decided at run time: these may call whatever is there, and make objects
        # of a class that something names, or any where configurations name classes. What is an attribute by its name is
        # a method, or is named somewhere.
        self.doubtful: set[int] = set()
        self.configured: set[int] = set()
        for one in programs:
            decided = [
                gap.text for gap in one.gaps if gap.kind == "dynamic-call" and BY_ATTRIBUTE not in gap.text
            ]
            self.doubtful.update(one.files if decided else ())
            self.configured.update(one.files if any(BY_CONFIGURATION in text for text in decided) else ())
        # The functions that programs reach, those among them in which calls may be missing, the files that programs run,
        # and those of which they use something: functions, or what they train as programs themselves, or would train if a
        # constant were another one.
        self.reached: dict[int, set[int]] = {}
        self.unsure: set[Function] = set()
        self.run: set[int] = set()
        self.used: set[int] = set()
        # The files that are programs only to show how they are called, and those of programs that do something of their own;
        # whether there are programs that are no tests.
        self.shown: set[int] = set()
        self.started = False
        working: set[int] = set()
        for one in programs:
            self.run.update(one.files)
            own = project.index.get(one.entry)
            self.started |= own is not None and not TESTS.search(self.files[own].relative)
            if own is not None and (one.trains or any(gap.kind == "constant" for gap in one.gaps)):
                self.used.add(own)
            unsure = any(gap.kind in MATERIAL for gap in one.gaps)
            shown = own is not None and _is_shown(one, project)
            if shown and own is not None:
                self.shown.add(own)
            if own is not None and not shown and any(_raises_in(gap, one.entry) for gap in one.gaps):
                # What it would use behind that, it does not.
                self.used.add(own)
            started = self._started_by(own)
            for file, functions in one.functions_reached().items():
                if shown and file == own:
                    self.reached.setdefault(file, set()).add(0)
                    continue
                if any(functions):
                    self.used.add(file)
                    working.update({file} & started)
                self.reached.setdefault(file, set()).update(functions)
                if unsure:
                    self.unsure.update((file, index) for index in functions)
        self.used |= self._imported_by(working)
        self.used |= self._parts_of_used()
        self.failing = _failing(programs, project)
        self._uses: dict[int, _Uses] = {}
        self._files_with: dict[str, list[int]] = {}
        self._answers: dict[Function, bool] = {}
        self._opened: dict[int, bool] = {}
        self._beginnings: dict[int, tuple[str, ...]] = {}
        self._texts: set[str] | None = None

    def _started_by(self, own: int | None) -> set[int]:
        """The file of a program, with those that it starts by importing them where it does nothing else."""
        if own is None:
            return set()
        modules, file = self.project.modules, self.files[own]
        if not runs_what_it_imports(modules, file):
            return {own}
        return {own, *(self.project.index[path] for path in imports_of(modules, file, top_level=True))}

    def _imported_by(self, working: set[int]) -> set[int]:
        """The files that programs run since they, or what they import, name them: a program that does something decides
        about them, also where it uses nothing of them. What a package imports may be there for others."""
        found: set[int] = set()
        left = sorted(working)
        while left:
            file = self.files[left.pop()]
            if not file.is_package:
                named = {self.project.index[path] for path in imports_of(self.project.modules, file)}
                left += sorted((named & self.run) - found)
                found |= named & self.run
        return found

    def _parts_of_used(self) -> set[int]:
        """The files that programs run since their package imports them, where programs use others of that package."""
        packages = {self.files[at].directory: self.files[at] for at in self.run if self.files[at].is_package}
        used = {self.files[at].directory for at in self.used}
        found: set[int] = set()
        for at in self.run - self.used:
            package = packages.get(self.files[at].directory)
            if package is None or package.directory not in used:
                continue
            stem = os.path.basename(self.files[at].path).removesuffix(".py")
            for node in package.facts.functions[0].body:
                if isinstance(node, m.ImportFrom) and node.level == 1 and node.module == stem:
                    found.add(at)
        return found

    def around(self, finding: Finding) -> Function | None:
        """The outermost function around a finding that no program reaches, in a file that programs use."""
        file = self.project.index[finding.path]
        reached = self.reached.get(file, set())
        if file not in self.used:
            return None
        with at_once():
            around = functions_around(self.files[file].facts.functions, finding.start)
        return next(((file, index) for index in around if index not in reached), None)

    def is_in_function(self, finding: Finding) -> bool:
        """Whether a finding stands in a function or method."""
        functions = self.files[self.project.index[finding.path]].facts.functions
        with at_once():
            return bool(functions_around(functions, finding.start))

    def is_left_out(self, file: int) -> bool:
        """Whether no program can run a file: no file of the project imports it or what may be it, and no program looks for
        modules by names that are not written."""
        module = self.files[file]
        if not self.started or not self.complete or self.configured or module.is_package:
            return False
        if is_built(self.project.modules, module):
            return False
        if os.path.basename(module.path) in NOT_ENTRIES or is_test(module) or TESTS.search(module.relative):
            return False
        if any(
            module.path in imports_of(self.project.modules, one) for one in self.files if one is not module
        ):
            return False
        parts = frozenset(module.relative.removesuffix(".py").split("/"))
        for at in self.run:
            words = self.files[at].facts.words
            if any(_has(words, word) for word in _BY_CONFIGURED_NAME):
                return False
            if any(_has(words, word) for word in (*_ANY_MODULE, "modules")):
                uses = self.uses_of(at)
                if uses.any_module or not parts.isdisjoint(uses.handed_on):
                    return False
        others = [self.uses_of(at) for at in self.with_word(module.stem) if at != file]
        if any(module.stem in one.imported or module.stem in one.origins for one in others):
            return False
        return not any(self.files[at].notebook and _runs_file(self.files[at], module) for at in self.run)

    def is_named_nowhere(self, finding: Finding) -> bool:
        """Whether a finding stands in a class or function that nothing in the project names, of a file that no program runs
        and some file may import: what imports it uses something else of it."""
        file = self.project.index[finding.path]
        module = self.files[file]
        if not self.started or not self.complete or self.configured or module.is_package:
            return False
        if os.path.basename(module.path) in NOT_ENTRIES or is_test(module) or TESTS.search(module.relative):
            return False
        if self._is_open(file):
            return False
        facts = module.facts
        with at_once():
            around = functions_around(facts.functions, finding.start)
        if not around:
            return False
        index = around[0]
        function = facts.functions[index]
        of = facts.classes[function.cls] if function.cls >= 0 else function
        if of.decorators or of.parent or (isinstance(of, m.Class) and (of.cls >= 0 or of.keywords)):
            return False
        if any(
            name.rpartition(".")[2] == module.stem
            for at in self.with_word(module.stem)
            for _, name in self.uses_of(at).origins.get("*", ())
        ):
            # A file that imports all of it offers all of it.
            return False
        own = {at for at, one in enumerate(facts.functions) if at == index or 0 <= one.cls == function.cls}
        for at in self.with_word(of.name):
            uses = self.uses_of(at)
            if of.name in uses.origins or of.name in uses.attributes or of.name in uses.of_modules:
                return False
            if any(at != file or place not in own for place, _ in uses.names.get(of.name, ())):
                return False
        return True

    def never_runs(self, function: Function) -> bool:
        """Whether no program can call a function."""
        if not self.complete:
            return False
        found = self._may_run(function, 0)
        if found:
            # What was assumed of functions that call each other may be wrong.
            self._answers = {of: answer for of, answer in self._answers.items() if answer}
        return not found

    def _may_run(self, function: Function, depth: int) -> bool:
        """Whether a function may run; the header of a class (its index below zero): whether there may be objects of it."""
        known = self._answers.get(function)
        if known is None:
            # What calls itself is not called because of that.
            self._answers[function] = False
            file, index = function
            if index < 0:
                known = depth > MOST_STEPS or self._may_live(file, ~index, depth)
            else:
                known = depth > MOST_STEPS or self._may_be_called(file, index, depth)
            self._answers[function] = known
        return known

    def _may_be_called(self, file: int, index: int, depth: int) -> bool:
        facts = self.files[file].facts
        one = facts.functions[index]
        if not index or index in self.reached.get(file, ()) or file not in self.run or self._is_open(file):
            return True
        if file in self.doubtful and one.cls < 0:
            return True
        if one.parent > 0 or one.name == "<lambda>":
            return self._may_run((file, max(one.parent, 0)), depth + 1)
        if not all(self._is_harmless(file, decorator) for decorator in one.decorators):
            return True
        # The body of a generator does not run where it is called.
        seen = not one.is_generator and not one.is_async
        if one.cls < 0:
            return one.name.startswith(self._beginnings[file]) or self._is_used(
                one.name, file, depth, seen=seen
            )
        if not self._may_run((file, ~one.cls), depth + 1):
            return False
        if file in self.doubtful:
            return True
        bases = facts.classes[one.cls].bases
        derived = not all(isinstance(base, m.Name) and base.id == "object" for base in bases)
        if one.name.startswith("__") or (derived and not one.name.startswith("_")):
            # Python itself, and classes of libraries, call methods by their names.
            return True
        unknown = [_OF_ANY, one.name]
        if derived or _OF_SELF in self.uses_of(file).texts:
            unknown.append(_OF_SELF)
        if not self._by_text().isdisjoint(unknown):
            return True
        return self._is_used(one.name, file, depth, method=True, seen=seen)

    def _may_live(self, file: int, index: int, depth: int) -> bool:
        """Whether there may be objects of a class, or of classes derived from it."""
        facts = self.files[file].facts
        cls = facts.classes[index]
        own = [(at, fn.name) for at, fn in enumerate(facts.functions) if fn.cls == index]
        reached = self.reached.get(file, set())
        if any(at in reached for at, _ in own) or cls.decorators or cls.keywords or cls.cls >= 0:
            return True
        if cls.parent > 0:
            return self._may_run((file, cls.parent), depth + 1)
        if file in self.configured or self._is_open(file) or cls.name.startswith(self._beginnings[file]):
            return True
        if file in self.doubtful:
            return self._is_named(cls.name, depth)
        # Where a class has no own constructor, a call of it leaves no trace.
        return self._is_used(cls.name, file, depth, seen=any(name == "__init__" for _, name in own))

    def _is_named(self, name: str, depth: int) -> bool:
        """Whether anything but its own statement names a class, or imports it; what is derived from it has to live."""
        for at in self.with_word(name):
            uses = self.uses_of(at)
            if name in uses.origins or name in uses.attributes or name in uses.of_modules:
                return True
            for around, _ in sorted(uses.names.get(name, set())):
                if around >= 0 or self._may_run((at, around), depth + 1):
                    return True
        return False

    def _is_used(self, name: str, file: int, depth: int, *, method: bool = False, seen: bool) -> bool:
        """Whether code that may run names something of a file so that it may be called. ``seen``: a plain call of it would
        have been followed where the code around it was."""
        for at in self.with_word(name):
            uses = self.uses_of(at)
            found = self.attributes(at, name, file, depth, method=method)
            if not method and self.may_mean(at, name, file):
                found = found | uses.names.get(name, set())
                if name in uses.offered:
                    found.add((0, False))
            for around, plain in sorted(found):
                if around in self.reached.get(at, ()):
                    if not plain or not seen or not self._was_followed(at, around):
                        return True
                elif at not in self.run or self._may_run((at, around), depth + 1):
                    return True
        return False

    def attributes(
        self, at: int, name: str, file: int, depth: int = 0, *, method: bool = False
    ) -> set[tuple[int, bool]]:
        """Where one file asks for an attribute that may be a function or class of a second file, or a method, each with the
        function around the place and whether it is a call that is seen where the function runs."""
        uses = self.uses_of(at)
        found = uses.attributes.get(name, set())
        for around, plain, imported in uses.of_modules.get(name, ()):
            if method or any(self._may_be_of(at, one, name, file, depth) for one in imported):
                found = found | {(around, plain)}
        return found

    def may_mean(self, at: int, name: str, file: int, depth: int = 0) -> bool:
        """Whether a function or class of a file may be what another file calls by a name: that file neither defines it
        itself nor imports it from elsewhere."""
        if at == file or depth > MOST_STEPS:
            return True
        uses = self.uses_of(at)
        origins = uses.origins.get(name, set())
        if not origins:
            return name not in uses.own and name not in uses.variables
        return any(self._may_lead(at, level, module, name, file, depth) for level, module in sorted(origins))

    def _may_lead(self, at: int, level: int, module: str, name: str, file: int, depth: int) -> bool:
        """Whether a module that a name is imported from may have it from a file."""
        found, several = self._meant(at, level, module)
        # What is neither a module of the project nor found from the file is of a library.
        return (found is not None or level > 0 or bool(several)) and self._may_have(
            several, name, file, depth
        )

    def _may_be_of(self, at: int, imported: Imported, name: str, file: int, depth: int) -> bool:
        """Whether an attribute of what a file imports may be a function of another file: of a module, what that may have."""
        level, module, part = imported
        found, several = self._meant(at, level, f"{module}.{part}".strip("."))
        if found is None and not several and (part or not level):
            # Of a library, or no module but something in one, which may have any.
            return bool(part)
        return self._may_have(several, name, file, depth)

    def _meant(self, at: int, level: int, module: str) -> tuple[Found | None, list[ModuleFile]]:
        """What a file means by the name of a module that it imports, and the files of the project that may be that."""
        modules, importer = self.project.modules, self.files[at]
        found = modules.relative(importer, level, module) if level else modules.absolute(importer, "", module)
        several = [] if level else modules.named(module)
        if found is not None and found.file is not None:
            several = [*several, found.file]
        return found, several

    def _may_have(self, several: list[ModuleFile], name: str, file: int, depth: int) -> bool:
        """Whether a name that is imported from one of these modules may be of a file; with none, from what is not seen."""
        places = {self.project.index[one.path] for one in several}
        return not places or any(self.may_mean(one, name, file, depth + 1) for one in places)

    def _was_followed(self, file: int, index: int) -> bool:
        """Whether every call in a function that programs reach was seen."""
        one = self.files[file].facts.functions[index]
        return not one.is_generator and not one.is_async and (file, index) not in self.unsure

    def _is_open(self, file: int) -> bool:
        """Whether something may find any function of a file by a name that is not written."""
        known = self._opened.get(file)
        if known is None:
            known = self._opened[file] = self._may_be_looked_up(file)
        return known

    def _may_be_looked_up(self, file: int) -> bool:
        module = self.files[file]
        if is_built(self.project.modules, module):
            # What is installed is there for others.
            return True
        parts = frozenset(module.relative.removesuffix(".py").split("/"))
        beginnings: set[str] = set()
        for at in sorted(self.run):
            words = self.files[at].facts.words
            if any(_has(words, word) for word in (*_ANY_MODULE, *_ANY_NAME, *parts, "modules")):
                uses = self.uses_of(at)
                named = at == file or not parts.isdisjoint(uses.imported)
                if uses.any_module or (uses.any_name and named) or not parts.isdisjoint(uses.handed_on):
                    return True
                beginnings.update(text for of, text in uses.beginnings if of in parts or (not of and named))
        self._beginnings[file] = tuple(sorted(beginnings))
        return False

    def _by_text(self) -> set[str]:
        """The names of attributes that are given as texts."""
        if self._texts is None:
            some = [
                at for at in sorted(self.run) if any(_has(self.files[at].facts.words, x) for x in _BY_TEXT)
            ]
            self._texts = {text for at in some for text in self.uses_of(at).texts}
        return self._texts

    def with_word(self, name: str) -> list[int]:
        found = self._files_with.get(name)
        if found is None:
            found = [at for at, file in enumerate(self.files) if _has(file.facts.words, name)]
            self._files_with[name] = found
        return found

    def _is_harmless(self, file: int, decorator: m.Expr) -> bool:
        """Whether a decorator does not hand on what it decorates."""
        if isinstance(decorator, m.Name) and decorator.id.rpartition(".")[2] in _HARMLESS:
            return True
        module = self.files[file]
        known = self.project.layered
        return any(
            has_role(one, self.project.modules, module, decorator, ("only-decorates",)) for one in known
        )

    def uses_of(self, at: int) -> _Uses:
        found = self._uses.get(at)
        if found is None:
            file = self.files[at]
            with at_once():
                tables = self._tables(at)
                found = self._uses[at] = _uses(
                    file, self.failing.get(at, frozenset()), at in self.shown, self._is_offering(file), tables
                )
        return found

    def _tables(self, at: int) -> frozenset[int]:
        """The names of functions in tables of a file of which all code only asks for what they have under a key, and calls
        that: a program that comes there calls those that may be meant, and no other one."""
        found = tables(self.files[at].facts)
        known: list[int] = []
        for name, entries in found.items():
            # Nothing imports a notebook.
            others = [one for one in self.with_word(name) if one != at and not self.files[at].notebook]
            if all(only_calls(self.files[one].facts, name) for one in others):
                known += entries
        return frozenset(known)

    def _is_offering(self, file: ModuleFile) -> bool:
        """Whether what a file imports may be there for others than the project."""
        return file.is_package and may_be_built(self.project.modules, file)


def _runs_file(notebook: ModuleFile, module: ModuleFile) -> bool:
    """Whether a notebook runs a file by a line that is no Python: ``%run tools.py``."""
    try:
        text = read_limited(notebook.path)
    except OSError:
        return True
    return re.search(rb"%run\b[^\n\\]*\b" + re.escape(module.stem.encode()) + rb"\b", text) is not None


def _is_shown(program: EntryReport, project: Project) -> bool:
    """Whether a program is no more than the smoke test of a module that files import which are no tests."""
    if program.entry not in project.used or program.trains or program.function:
        return False
    return not calls_its_own(project.modules.by_path[program.entry])


def _raises_in(gap: Gap, path: str) -> bool:
    return gap.kind in _RAISING and gap.path == path


def _failing(programs: Sequence[EntryReport], project: Project) -> dict[int, frozenset[tuple[int, int]]]:
    """The places in each file of expressions that raise, in all programs that run it."""
    found: dict[int, frozenset[tuple[int, int]]] = {}
    for one in programs:
        own: dict[int, set[tuple[int, int]]] = {}
        for gap in one.gaps:
            if gap.kind in _RAISING and gap.path in project.index:
                own.setdefault(project.index[gap.path], set()).add((gap.start, gap.end))
        for file in one.files:
            places = frozenset(own.get(file, ()))
            found[file] = found[file] & places if file in found else places
    return found


def _has(words: list[str], word: str) -> bool:
    at = bisect_left(words, word)
    return at < len(words) and words[at] == word


def _uses(
    file: ModuleFile,
    failing: frozenset[tuple[int, int]],
    shown: bool,
    offering: bool,
    entries: frozenset[int],
) -> _Uses:
    """``shown``: what the file does when it is started shows how it is called; ``offering``: what it imports may be there
    for others; ``entries``: names in tables that say no more than a call where the table is asked."""
    facts = file.facts
    found = _Uses()
    if facts.problem is not None:
        return found
    renamed: dict[str, str] = {}
    modules: dict[str, set[str]] = {}
    bound: dict[str, set[Imported]] = {}
    for node in (node for fn in facts.functions for node in nodes(fn.body)):
        if isinstance(node, m.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                modules.setdefault(alias.asname or parts[0], set()).update(parts)
                bound.setdefault(alias.asname or parts[0], set()).add(
                    (0, alias.name if alias.asname else parts[0], "")
                )
                found.imported.update(parts)
        elif isinstance(node, m.ImportFrom):
            for alias in node.names:
                found.origins.setdefault(alias.name, set()).add((node.level, node.module))
            found.imported.update(node.module.split("."))
            for alias in node.names:
                renamed[alias.asname or alias.name] = alias.name
                modules.setdefault(alias.asname or alias.name, set()).add(alias.name)
                bound.setdefault(alias.asname or alias.name, set()).add((node.level, node.module, alias.name))
                if offering:
                    found.offered.add(alias.name)
    found.own.update(fn.name for fn in facts.functions if fn.parent == 0 and fn.cls < 0)
    found.own.update(cls.name for cls in facts.classes if cls.parent == 0 and cls.cls < 0)
    rebound = _rebound(facts)
    found.variables.update(rebound)
    only = {
        name: frozenset(some) for name, some in bound.items() if name not in found.own and name not in rebound
    }
    for around, some in _code(facts):
        own = _own(facts.functions[around]) if around > 0 else frozenset[str]()
        code = list(nodes(_of_use(some, shown) if around == 0 else some))
        # What raises in a cell of a notebook ends that cell.
        if around > 0 or (around == 0 and not file.notebook):
            code = _that_run(code, facts.functions[around], failing, found.own)
        _add(found, around, code, renamed, modules, only, own, rebound if around == 0 else {}, entries)
    return found


def _that_run(
    some: list[Any], function: m.Function, failing: frozenset[tuple[int, int]], own: set[str]
) -> list[Any]:
    """Some nodes of a function without those of statements that never run, and without calls that are never made."""
    never = {id(one) for one in nodes(never_run(function.body, failing, own))}
    if failing:
        never |= {id(part) for one in some for part in _never_made(one, failing)}
    return [one for one in some if id(one) not in never] if never else some


def _never_made(node: Any, failing: frozenset[tuple[int, int]]) -> tuple[Any, ...]:
    """A call of which an argument always raises, and the name that it calls."""
    if not isinstance(node, m.Call) or not isinstance(node.func, m.Name):
        return ()
    given = (*node.args, *(one.value for one in node.keywords))
    raises = any((part.start, part.end) in failing for one in given for part in evaluated(one))
    return (node, node.func) if raises else ()


def _of_use(some: Iterable[Any], shown: bool) -> Iterator[Any]:
    """Statements of a module without what it says that others may import, and, where what it does when it is started only
    shows how it is called, without that."""
    for one in some:
        if shown and isinstance(one, m.If) and is_main_test(one.test):
            yield from one.orelse
        elif not (isinstance(one, m.Assign) and any(_is_exports(target) for target in one.targets)):
            yield one


def _is_exports(target: Any) -> bool:
    return isinstance(target, m.Name) and target.id == "__all__"


def _own(function: m.Function) -> frozenset[str]:
    """The variables of a function, which it does not import."""
    imported = {
        alias.asname or alias.name.partition(".")[0]
        for node in (nodes(function.body) if function.imports else ())
        if isinstance(node, (m.Import, m.ImportFrom))
        for alias in node.names
    }
    return own_names(function) - imported


def _rebound(facts: m.FileFacts) -> dict[str, int]:
    """Where variables that a module imports get another value in each run of its body."""
    found: dict[str, int] = {}
    for stmt in facts.functions[0].body:
        if isinstance(stmt, (m.Import, m.ImportFrom)):
            for alias in stmt.names:
                found.pop(alias.asname or alias.name.partition(".")[0], None)
        elif isinstance(stmt, (m.Assign, m.AnnAssign)) and stmt.value is not None:
            names: set[str] = set()
            for target in stmt.targets if isinstance(stmt, m.Assign) else [stmt.target]:
                target_names(target, names)
            for name in names:
                found.setdefault(name, stmt.end)
    return found


def _code(facts: m.FileFacts) -> Iterator[tuple[int, Iterable[Any]]]:
    """All code of a file, with the function that it runs in; the bases of a class with the class."""
    for index, fn in enumerate(facts.functions):
        yield index, fn.body
        yield max(fn.parent, 0), [*fn.decorators, *(p.default for p in fn.params if p.default is not None)]
    for index, cls in enumerate(facts.classes):
        yield ~index, cls.bases
        yield max(cls.parent, 0), [*cls.body, *cls.decorators, *cls.keywords]


def _add(
    uses: _Uses,
    around: int,
    some: list[Any],
    renamed: dict[str, str],
    modules: dict[str, set[str]],
    only: dict[str, frozenset[Imported]],
    own: frozenset[str],
    rebound: dict[str, int],
    entries: frozenset[int],
) -> None:
    """``only`` are variables that hold nothing but what is imported, ``own`` are those of the function, ``rebound`` says
    behind which place a variable of the module is none of the modules."""
    called: set[int] = set()
    looked_in: set[int] = set()
    stored: set[int] = set()
    asked: set[int] = set()
    for node in some:
        looked_in.update(_only_asked(node))
        if isinstance(node, (m.Assign, m.AnnAssign, m.For)):
            targets = node.targets if isinstance(node, m.Assign) else [node.target]
            stored.update(id(one) for one in targets)
        owner, key = _looked_up(node)
        beginning = _beginning(key) if key is not None else ""
        if beginning:
            looked_in.add(id(owner))
            of = modules.get(owner.id, set()) if isinstance(owner, m.Name) else [""]
            uses.beginnings.update((one, beginning) for one in of)
    for node in some:
        if isinstance(node, m.Call):
            called.add(id(node.func))
            asked.update(_asked_for(node))
            if id(node) not in looked_in:
                _look_up(uses, node, modules)
    for node in some:
        if isinstance(node, m.Attr):
            for part in node.name.split("."):
                uses.attributes.setdefault(part, set()).add((around, False))
        if not isinstance(node, m.Name) or id(node) in asked:
            continue
        head, *rest = node.id.split(".")
        plain = id(node) in called or node.start in entries
        uses.names.setdefault(renamed.get(head, head), set()).add((around, plain and not rest))
        if head not in renamed:
            uses.names[head].add((around, plain and not rest))
        whole = len(rest) == 1 and (head in ("self", "cls") or head in modules)
        imported = only.get(head) if len(rest) == 1 and head not in own else None
        if len(rest) == 1 and head in uses.own and head not in own and head not in rebound:
            # An attribute of a class or function of the module itself is none of another module.
            imported = frozenset()
        for part in rest:
            if imported is not None:
                uses.of_modules.setdefault(part, set()).add((around, plain and whole, imported))
            else:
                uses.attributes.setdefault(part, set()).add((around, plain and whole))
        # A variable that is given something else is not used by that, also where it had the name of a module before.
        used = not plain and id(node) not in looked_in and id(node) not in stored
        used = used and head not in own and node.start < rebound.get(head, node.start + 1)
        if (not rest and used) or "__dict__" in rest:
            uses.handed_on |= modules.get(head, set())
        uses.any_module |= node.id == _MODULES


def _only_asked(node: Any) -> Iterator[int]:
    """The namespaces of which a test only asks whether they have a name: ``"x" in globals()``."""
    if isinstance(node, m.Compare):
        for op, one in zip(node.ops, node.comparators, strict=True):
            if op in ("in", "not in") and isinstance(one, m.Call) and not one.args and not one.keywords:
                yield id(one)


def _asked_for(call: m.Call) -> Iterator[int]:
    """The classes of which a call asks something, and makes no object: ``super(C, self)``, ``isinstance(x, C)``."""
    place = _LOOKING.get(call.func.id) if isinstance(call.func, m.Name) else None
    if place is None or len(call.args) <= place:
        return
    cls = call.args[place]
    yield from (id(one) for one in (cls.elts if isinstance(cls, m.Seq) else [cls]))


def _looked_up(node: Any) -> tuple[Any, m.Expr | None]:
    """What a node looks a name up in, a variable or a call of ``globals()``, and the name."""
    if isinstance(node, m.Subscript):
        return (node.value, node.index) if _is_namespace(node.value) else (None, None)
    if not isinstance(node, m.Call) or not node.args:
        return None, None
    if isinstance(node.func, m.Attr) and node.func.name == "get" and _is_namespace(node.func.value):
        return node.func.value, node.args[0]
    if isinstance(node.func, m.Name) and node.func.id == "getattr" and len(node.args) > 1:
        return node.args[0], node.args[1] if isinstance(node.args[0], m.Name) else None
    return None, None


def _is_namespace(node: Any) -> bool:
    return isinstance(node, m.Call) and isinstance(node.func, m.Name) and node.func.id == "globals"


def _look_up(uses: _Uses, call: m.Call, modules: dict[str, set[str]]) -> None:
    """A call that gives something by its name."""
    name = ""
    if isinstance(call.func, (m.Name, m.Attr)):
        name = (call.func.id if isinstance(call.func, m.Name) else call.func.name).rpartition(".")[2]
    if name in _BY_TEXT:
        owner, *rest = call.args if name == "getattr" and call.args else [None, *call.args]
        of = owner.id if isinstance(owner, m.Name) else ""
        if rest and isinstance(rest[0], m.Const):
            uses.texts.add(str(rest[0].value))
        elif of.partition(".")[0] not in modules:
            # What a module is used for beside that is seen by itself.
            uses.texts.add(_OF_SELF if of == "self" else _OF_ANY)
    elif isinstance(call.func, m.Name) and call.func.id in _ANY_NAME:
        # A module may have its own function of that name.
        uses.any_name |= name not in uses.own and name not in modules
    elif name in _ANY_MODULE and call.args:
        known = _beginning(call.args[0]).lstrip(".").partition(".")[0]
        uses.any_module |= not known
        uses.handed_on.add(known)


def _beginning(text: m.Expr) -> str:
    """How a text begins, as far as it is written."""
    while isinstance(text, (m.BinOp, m.FString)):
        text = text.left if isinstance(text, m.BinOp) else text.parts[0]
    return text.value if isinstance(text, m.Const) and isinstance(text.value, str) else ""
