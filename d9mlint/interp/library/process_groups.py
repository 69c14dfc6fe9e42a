"""Whether a program may have a process group: what it imports and names shows that nothing makes one."""

from __future__ import annotations

import posixpath
import sys
from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memo
from d9mlint.ir.traversal import nodes, statements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from d9mlint.interp.interpreter import Interp
    from d9mlint.project.modules import ModuleFile

_RUNS_OTHERS = frozenset({"importlib", "runpy", "code", "codeop", "pkgutil", "imp", "pdb", "timeit"})
"""Modules of Python that run code which is not imported by a statement."""
_RUNS_TEXTS = frozenset({"exec", "eval", "__import__", "get_ipython"})
_texts: dict[int, tuple[object, bool]] = memo()


def asked(interp: Interp, api: str) -> v.Value | None:
    """What ``torch.distributed.is_initialized()`` gives: False where nothing that the program may run makes a process
    group; None for unknown. A launcher makes none: the program itself has to."""
    if "asks-for-group" not in interp.kb.by_role(api) or interp.entry is None or interp.importing:
        return None
    if interp.without_group is None:
        interp.without_group = _has_none(interp, interp.entry)
    return v.FALSE if interp.without_group else None


def _has_none(interp: Interp, entry: ModuleFile) -> bool:
    """Whether no file that a program may import makes a process group, or runs what is not seen to make none."""
    entries = [one for one in interp.kb.role_entries() if one.role == "makes-group"]
    names = {api.rpartition(".")[2] for one in entries for api in one.apis}
    pending, known = [entry], {entry.path}
    while pending:
        file = pending.pop()
        facts = interp.whole(file)
        if file.notebook or facts.problem is not None or facts.unread or not names.isdisjoint(facts.words):
            return False
        if _runs_texts(facts):
            return False
        for found in _imported(interp, file):
            if found is None:
                return False
            if found.path not in known:
                known.add(found.path)
                pending.append(found)
    return True


def _runs_texts(facts: m.FileFacts) -> bool:
    """Whether a file runs code that is in a text."""
    if _RUNS_TEXTS.isdisjoint(facts.words):
        return False
    known = _texts.get(id(facts))
    if known is None or known[0] is not facts:
        found = any(
            isinstance(one, m.Name) and one.id.partition(".")[0] in _RUNS_TEXTS
            for function in facts.functions
            for one in nodes(function.body)
        )
        known = _texts[id(facts)] = (facts, found)
    return known[1]


def _imported(interp: Interp, file: ModuleFile) -> Iterator[ModuleFile | None]:
    """The files of the project that a file imports anywhere, with the packages that they are in; None for a library that
    is not known to make no process group."""
    above = file.directory
    while (package := interp.modules.by_path.get(posixpath.join(above, "__init__.py"))) is not None:
        yield package
        above = posixpath.dirname(above)
    for function in file.facts.functions:
        for stmt in statements(function.body) if function.imports else ():
            if isinstance(stmt, m.Import):
                for one in stmt.names:
                    yield from _module(interp, file, one.name)
            elif isinstance(stmt, m.ImportFrom) and stmt.level:
                yield from _relative(interp, file, stmt)
            elif isinstance(stmt, m.ImportFrom):
                yield from _module(interp, file, stmt.module)
                for one in stmt.names:
                    found = interp.modules.absolute(file, interp.entry_directory, f"{stmt.module}.{one.name}")
                    if found is not None and found.file is not None:
                        yield found.file


def _module(interp: Interp, file: ModuleFile, name: str) -> Iterator[ModuleFile | None]:
    """The files that an import of a module runs."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        found = interp.modules.absolute(file, interp.entry_directory, ".".join(parts[:count]))
        if found is None:
            if count > 1 or not _makes_none(interp, parts[0]):
                yield None
            return
        if found.file is not None:
            yield found.file


def _relative(interp: Interp, file: ModuleFile, stmt: m.ImportFrom) -> Iterator[ModuleFile | None]:
    found = interp.modules.relative(file, stmt.level, stmt.module)
    if found is None:
        yield None
        return
    if found.file is not None:
        yield found.file
    for one in stmt.names:
        inner = interp.modules.relative(file, stmt.level, ".".join(filter(None, (stmt.module, one.name))))
        if inner is not None and inner.file is not None:
            yield inner.file
        elif inner is None and found.file is None:
            yield None


def _makes_none(interp: Interp, library: str) -> bool:
    """Whether a library, or a module of Python, makes no process group, however it is used."""
    if library in sys.stdlib_module_names:
        return library not in _RUNS_OTHERS
    return interp.kb.role(library, "makes-no-group") is not None
