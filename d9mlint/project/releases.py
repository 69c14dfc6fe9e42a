"""For which releases of libraries a project was written, as far as the names tell that its files import or use.

A program tells by the names that it uses itself, see ``interp.releases``. Where one uses only names that all releases
have, the other files of its project, and the distributions that it asks for, tell more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from d9mlint.base.notebooks import CHOOSES, INSTALLS, RECORDS
from d9mlint.config.pins import EXACT, extra_of, library_name
from d9mlint.config.targets import INSTALLED
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import body_that_holds, passing
from d9mlint.ir.optional_imports import optional_imports
from d9mlint.ir.traversal import nodes, statements
from d9mlint.knowledge.versions import at_most, keep_oldest

if TYPE_CHECKING:
    from d9mlint.config.targets import Targets
    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.schema import InferredEntry


def releases_of_project(
    kb: Knowledge, files: Iterable[m.FileFacts], targets: Sequence[Targets] = ()
) -> dict[str, str]:
    """The releases, by library. Names that only later releases have tell that a project is not for an old one."""
    found: dict[str, str] = {}
    implied: dict[str, str] = {}
    names = [f"{name}." for one in targets for name in one.libraries]
    shown = list(names)
    calls: list[tuple[str, str]] = []
    for facts in passing(files):
        if words := _words(kb, facts):
            named, replaceable = _named(facts, words, calls)
            names += named
            without = tuple(name for name in replaceable if _entry(kb, name) is not None)
            shown += [name for name in named if not name.startswith(without)]
    entries = [_entry(kb, name) for name in shown]
    entries += [
        entry
        for name, argument in calls
        for entry, arguments in kb.inferred_by_arguments(kb.canonical(name))
        if argument in arguments
    ]
    for entry in entries:
        if entry is None or not entry.project:
            continue
        is_later = any(x.startswith(tuple(entry.later)) for x in names)
        if entry.likelier or not is_later:
            keep_oldest(found, {entry.library: entry.version})
            keep_oldest(implied, entry.implies)
        if not is_later and all(one.admits(entry.likelier) for one in targets):
            keep_oldest(implied, entry.likelier)
    keep_oldest(found, implied)
    return found


def _entry(kb: Knowledge, name: str) -> InferredEntry | None:
    """What a name with a dot behind it shows."""
    return kb.inferred(name) or kb.inferred(name.rstrip("."))


def _words(kb: Knowledge, facts: m.FileFacts) -> set[str]:
    """The words of a file that may be parts of names that tell releases of the libraries of which it speaks."""
    known = set(facts.words)
    spoken = (words for head, words in kb.release_words.items() if head in known)
    return known.intersection(set().union(*spoken))


def installed_by(kb: Knowledge, facts: m.FileFacts) -> dict[str, str]:
    """The releases that the commands of a notebook install, by library, and extras of libraries (``jax[cuda12]``); and
    the newest ones with which it can have run, as far as it records that."""
    found: dict[str, str] = {}
    for stmt in facts.functions[0].body:
        items = stmt.value.elts if isinstance(stmt, m.ExprStmt) and isinstance(stmt.value, m.Seq) else []
        command = items[0].value if len(items) == 1 and isinstance(items[0], m.Const) else None
        if not isinstance(command, str):
            continue
        if command.startswith(INSTALLS):
            for word in command.split():
                exact = EXACT.fullmatch(word)
                if exact is not None:
                    found[library_name(exact[1])] = INSTALLED + exact[2]
                if extra := extra_of(word):
                    found[extra] = INSTALLED
        elif command.startswith(CHOOSES):
            found["tensorflow"] = INSTALLED + _CHOSEN
        elif command.startswith(RECORDS):
            keep_oldest(found, _newest_recorded(kb, command.removeprefix(RECORDS).split()))
    return found


def _newest_recorded(kb: Knowledge, recorded: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in recorded:
        releases = kb.recorded.get(".".join(word.split(".")[:2]), {})
        keep_oldest(found, {at_most(library): release for library, release in releases.items()})
    return found


_CHOSEN = "1.15"
"""What notebooks get that choose the first series of a framework."""


def _named(facts: m.FileFacts, words: set[str], calls: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """The dotted names that a file imports, or uses of what it imports together with some words, each with a dot behind
    it; and those that it imports but can do without. The calls of what it imports are added with those of their arguments
    that are such words."""
    found: list[str] = []
    replaceable: list[str] = []
    local: dict[str, str] = {}
    for function in facts.functions:
        for stmt in statements(function.body) if function.imports else ():
            names: list[str] = []
            if isinstance(stmt, m.Import):
                names = [f"{one.name}." for one in stmt.names]
                local.update((one.asname, one.name) for one in stmt.names if one.asname)
                local.update((one.name.partition(".")[0],) * 2 for one in stmt.names if not one.asname)
            elif isinstance(stmt, m.ImportFrom) and not stmt.level:
                names = [f"{stmt.module}.{one.name}." for one in stmt.names]
                local.update((one.asname or one.name, f"{stmt.module}.{one.name}") for one in stmt.names)
            found += names
            if names and stmt.start in optional_imports(function):
                replaceable += names
    for function in facts.functions:
        for node in nodes([*function.decorators, *body_that_holds(function, *words)]):
            if isinstance(node, m.Name):
                head, dot, rest = node.id.partition(".")
                if dot and head in local:
                    found.append(f"{local[head]}.{rest}.")
            elif (
                isinstance(node, m.Call)
                and isinstance(node.func, m.Name)
                and not words.isdisjoint(given := [one.name for one in node.keywords if one.name is not None])
            ):
                head, dot, rest = node.func.id.partition(".")
                if head in local:
                    calls += [(f"{local[head]}{dot}{rest}", name) for name in given]
    return found, replaceable
