"""For which releases of libraries a project was written, as far as the modules tell that its files import.

A program tells by the names that it uses itself, see ``interp.releases``. Where one uses only names that all releases
have, the other files of its project, and the distributions that it asks for, tell more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import statements
from d9mlint.knowledge.versions import keep_oldest

if TYPE_CHECKING:
    from d9mlint.knowledge import Knowledge


def releases_of_project(
    kb: Knowledge, files: Iterable[m.FileFacts], libraries: Iterable[str] = ()
) -> dict[str, str]:
    """The releases, by library. Names that only later releases have tell that a project is not for an old one."""
    found: dict[str, str] = {}
    implied: dict[str, str] = {}
    names = [f"{name}." for name in libraries]
    for facts in files:
        if not kb.release_words.isdisjoint(facts.words):
            names += _imported(facts)
    for name in names:
        entry = kb.inferred(name)
        if entry is not None and entry.project and not any(x.startswith(tuple(entry.later)) for x in names):
            keep_oldest(found, {entry.library: entry.version})
            keep_oldest(implied, entry.implies)
    return {**implied, **found}


def _imported(facts: m.FileFacts) -> list[str]:
    """The dotted names that a file imports, each with a dot behind it."""
    found: list[str] = []
    for function in facts.functions:
        for stmt in statements(function.body) if function.imports else ():
            if isinstance(stmt, m.Import):
                found += [f"{one.name}." for one in stmt.names]
            elif isinstance(stmt, m.ImportFrom) and not stmt.level:
                found += [f"{stmt.module}.{one.name}." for one in stmt.names]
    return found
