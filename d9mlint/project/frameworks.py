"""Files that frameworks load for what they define: nothing in the project starts them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from d9mlint.ir import nodes as m
from d9mlint.knowledge import Knowledge
from d9mlint.knowledge.schema import Role
from d9mlint.project.modules import ModuleFile, Modules

_DECORATORS: tuple[Role, ...] = ("registers", "registers-start", "starts")
"""What decorators do with functions and classes that a framework then calls."""


def is_loaded_by_framework(known: Knowledge, modules: Modules, file: ModuleFile) -> bool:
    """Whether a file defines at its top level what a framework calls: a decorator registers it, it is a class that is
    derived from one that the framework looks for, or it has a name that the framework looks for."""
    functions = file.facts.functions
    if started_by_name(known, file):
        return True
    decorators = [one for fn in functions if fn.parent == 0 and fn.cls < 0 for one in fn.decorators]
    classes = [one for one in file.facts.classes if one.parent <= 0 and one.cls < 0]
    decorators += [one for cls in classes for one in cls.decorators]
    bases = [one for cls in classes for one in cls.bases]
    return any(has_role(known, modules, file, one, _DECORATORS) for one in decorators) or any(
        has_role(known, modules, file, one, ("starts",)) for one in bases
    )


def is_looked_for(
    known: Knowledge, modules: Modules, file: ModuleFile, imports: Mapping[str, frozenset[str]]
) -> bool:
    """Whether a framework looks for what a file defines by its name, and nothing else imports the file than the package
    in which it is, so that the framework finds it there; ``imports`` are the files that each file imports."""
    if not started_by_name(known, file):
        return False
    importers = [modules.by_path[path] for path, targets in imports.items() if file.path in targets]
    return all(one.is_package and one.directory == file.directory for one in importers)


def started_by_name(known: Knowledge, file: ModuleFile) -> frozenset[str]:
    """The functions and classes of a file that a framework looks for by their names: where the file imports the framework,
    or defines two of the names, or the only one that there is."""
    functions = file.facts.functions
    defined = {fn.name for fn in functions if fn.parent == 0 and fn.cls < 0}
    defined |= {one.name for one in file.facts.classes if one.parent <= 0 and one.cls < 0}
    found: set[str] = set()
    for entry in known.starts_named:
        names = defined & set(entry.more)
        if len(names) >= min(2, len(entry.more)) or (names and _imports(file, entry.apis)):
            found |= names
    return frozenset(found)


def _imports(file: ModuleFile, libraries: Iterable[str]) -> bool:
    """Whether a file imports one of these packages at its top level."""
    imported: set[str] = set()
    for stmt in file.facts.functions[0].body:
        if isinstance(stmt, m.Import):
            imported |= {alias.name.partition(".")[0] for alias in stmt.names}
        elif isinstance(stmt, m.ImportFrom) and not stmt.level:
            imported.add(stmt.module.partition(".")[0])
    return not imported.isdisjoint(libraries)


def has_role(
    known: Knowledge, modules: Modules, file: ModuleFile, node: m.Expr, roles: tuple[Role, ...]
) -> bool:
    """Whether what an expression names, or calls, has one of these roles."""
    called = node.func if isinstance(node, m.Call) else node
    name = _full_name(modules, file, called.id) if isinstance(called, m.Name) else ""
    api = known.canonical(name) if name else ""
    return bool(api) and any(known.role(api, role) is not None for role in roles)


def _full_name(modules: Modules, file: ModuleFile, name: str) -> str:
    """The full name of what a dotted name means at the top level of a file, where a library defines it; that of a method by
    the class of its object, which is made there or in a file from which it is imported."""
    first, _, rest = name.partition(".")
    library, source = _imported(modules, file, first)
    if library:
        return f"{library}.{rest}" if rest else library
    if source is not None:
        file, first = source
    for stmt in file.facts.functions[0].body if rest else ():
        if (
            isinstance(stmt, m.Assign)
            and isinstance(stmt.value, m.Call)
            and isinstance(stmt.value.func, m.Name)
            and any(isinstance(one, m.Name) and one.id == first for one in stmt.targets)
        ):
            maker, _, attribute = stmt.value.func.id.partition(".")
            library, _ = _imported(modules, file, maker)
            return ".".join(filter(None, (library, attribute, rest))) if library else ""
    return ""


def _imported(modules: Modules, file: ModuleFile, name: str) -> tuple[str, tuple[ModuleFile, str] | None]:
    """What a name means that a file imports at its top level: the full name in a library, or the file of the project and
    the name there. Neither where it imports no such name."""
    for stmt in file.facts.functions[0].body:
        if isinstance(stmt, m.Import):
            for alias in stmt.names:
                if name == (alias.asname or alias.name.partition(".")[0]):
                    return alias.name if alias.asname else name, None
        elif isinstance(stmt, m.ImportFrom):
            for alias in stmt.names:
                if name != (alias.asname or alias.name):
                    continue
                if stmt.level:
                    found = modules.relative(file, stmt.level, stmt.module)
                else:
                    found = modules.absolute(file, "", stmt.module)
                if found is not None and found.file is not None:
                    return "", (found.file, alias.name)
                return "" if stmt.level else f"{stmt.module}.{alias.name}", None
    return "", None
