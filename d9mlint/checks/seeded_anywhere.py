"""Findings about code that no entry point reaches which hold only where nothing in the project seeds a generator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from d9mlint.base.entry_report import MAY_SEED
from d9mlint.base.findings import Finding
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes
from d9mlint.knowledge import Knowledge


def without_seeded(
    findings: Iterable[Finding], files: Iterable[m.FileFacts], kb: Knowledge, programs: bool
) -> list[Finding]:
    """The findings without those that some code of the project may make untrue, or, where the project has no ``programs``,
    code that uses it."""
    kept = list(findings)
    asked = {one.unless for one in kept if one.unless.startswith(MAY_SEED)}
    if not asked:
        return kept
    known = list(files) if programs else []
    seeded = {
        what
        for what in asked
        if not programs or any(_may_seed(one, what.removeprefix(MAY_SEED), kb) for one in known)
    }
    return [one for one in kept if one.unless not in seeded]


def _may_seed(facts: m.FileFacts, rng: str, kb: Knowledge) -> bool:
    """Whether a file may seed a generator, as far as names tell."""
    if facts.problem is not None or facts.unread:
        return True
    names = kb.names_that_seed(rng)
    if not any(word in names or kb.may_seed(word, False) or kb.may_seed(word, True) for word in facts.words):
        return False
    imported = dict(_imports(facts))
    return any(_seeds(name, called, rng, names, imported, kb) for name, called in _used(facts))


def _seeds(
    name: str, called: bool, rng: str, names: frozenset[str], imported: dict[str, str], kb: Knowledge
) -> bool:
    head, dot, rest = name.partition(".")
    last = name.rpartition(".")[2]
    if last not in names and not kb.may_seed(last, bool(dot)):
        return False
    full = imported.get(head)
    if full is None:
        # A variable that is called like a function that seeds is none.
        return called or bool(dot)
    entries = kb.rng(kb.canonical(f"{full}.{rest}" if rest else full))
    return any(rng in entry.seeds for entry in entries) if entries else True


def _used(facts: m.FileFacts) -> Iterator[tuple[str, bool]]:
    """The names that a file uses, as they are written, and whether they are called."""
    for node in _nodes(facts):
        if isinstance(node, m.Call):
            if isinstance(node.func, m.Name):
                yield node.func.id, True
            elif isinstance(node.func, m.Attr):
                yield f".{node.func.name}", True
        elif isinstance(node, m.Name):
            yield node.id, False
        elif isinstance(node, m.Attr):
            yield f".{node.name}", False


def _imports(facts: m.FileFacts) -> Iterator[tuple[str, str]]:
    """The names that a file imports, with what they stand for."""
    for node in _nodes(facts):
        if isinstance(node, m.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (top, top)
        elif isinstance(node, m.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _nodes(facts: m.FileFacts) -> Iterator[Any]:
    for function in facts.functions:
        yield from nodes([*function.body, *function.decorators])
    for cls in facts.classes:
        yield from nodes([*cls.body, *cls.decorators, *cls.bases])
