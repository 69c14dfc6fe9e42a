"""The entry points of a project and what each of them reaches by imports."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from d9mlint.base.paths import relative_to
from d9mlint.config.entry_points import named_entries
from d9mlint.config.projects import split
from d9mlint.config.settings import Settings
from d9mlint.config.targets import find_targets
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import statements
from d9mlint.pipeline import gather_files, knowledge_of
from d9mlint.project.entry_points import find_entries, imported_files
from d9mlint.project.modules import Found, ModuleFile, Modules
from d9mlint.report.graph import Graph


def entry_graph(paths: Sequence[str], settings: Settings) -> Graph:
    """The entry points among ``paths``, and what they reach."""
    found, _, facts = gather_files(paths, settings)
    files = [ModuleFile(p, relative_to(p, found.root), f) for p, f in facts.items()]
    parts = split(found, settings)
    layered = knowledge_of(found, parts)
    libraries = layered[0].importable | find_targets(found.root).libraries
    modules = Modules(files, found.root, libraries)
    result: list[dict[str, Any]] = []
    edges: set[tuple[str, str]] = set()
    seen: set[str] = set()
    named, _ = named_entries(parts, facts)
    for entry in find_entries(modules, imported_files(modules, layered), layered, named):
        if entry.file.path in found.reported:
            reached = _reached(modules, entry.file, edges)
            seen.update(file.relative for file in reached)
            result.append(
                {
                    "entry": entry.file.relative,
                    "kind": entry.kind,
                    "function": entry.function,
                    "reaches": sorted(f.relative for f in reached if f is not entry.file),
                }
            )
    shown = sorted(f.relative for f in files if f.path in found.reported and f.relative not in seen)
    return Graph(found.root, result, sorted(edges), shown)


def _reached(modules: Modules, start: ModuleFile, edges: set[tuple[str, str]]) -> list[ModuleFile]:
    seen = {start.path: start}
    pending = [start]
    while pending:
        file = pending.pop()
        for found in _imported(modules, file, start.directory):
            if found.file is not None and found.file is not file:
                edges.add((file.relative, found.file.relative))
            if found.file is not None and found.file.path not in seen:
                seen[found.file.path] = found.file
                pending.append(found.file)
    return list(seen.values())


def _imported(modules: Modules, file: ModuleFile, entry_directory: str) -> Iterator[Found]:
    for body in [f.body for f in file.facts.functions] + [c.body for c in file.facts.classes]:
        for stmt in statements(body):
            if isinstance(stmt, m.Import):
                for alias in stmt.names:
                    parts = alias.name.split(".")
                    for i in range(1, len(parts) + 1):
                        found = modules.absolute(file, entry_directory, ".".join(parts[:i]))
                        if found is not None:
                            yield found
            elif isinstance(stmt, m.ImportFrom):
                yield from _imported_from(modules, file, entry_directory, stmt)


def _imported_from(
    modules: Modules, file: ModuleFile, entry_directory: str, stmt: m.ImportFrom
) -> Iterator[Found]:
    # What stands before a dot is a package, which is imported first.
    parts = stmt.module.split(".") if stmt.module else []
    packages = [".".join(parts[:i]) for i in range(1, len(parts))]
    for module in [*packages, stmt.module, *(f"{stmt.module}.{a.name}".lstrip(".") for a in stmt.names)]:
        if stmt.level:
            found = modules.relative(file, stmt.level, module)
        else:
            found = modules.absolute(file, entry_directory, module) if module else None
        if found is not None:
            yield found
            init = modules.by_path.get(os.path.join(found.directory, "__init__.py"))
            if init is not None:
                yield Found(init, found.directory)
