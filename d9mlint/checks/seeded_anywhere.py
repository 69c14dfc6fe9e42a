"""Findings about code that no entry point reaches which hold only where nothing in the project seeds a generator."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from d9mlint.base.entry_report import MAY_SEED
from d9mlint.base.findings import Finding
from d9mlint.base.paths import TESTS
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes
from d9mlint.knowledge import Knowledge


def without_seeded(
    findings: Iterable[Finding], files: Iterable[m.FileFacts], kb: Knowledge, programs: bool
) -> list[Finding]:
    """The findings without those that some code of the project may make untrue, or, where the project has no ``programs``,
    code that uses it."""
    kept = [
        one for one in findings if not one.unless.startswith(MAY_SEED) or programs or _is_run_by_pytest(one)
    ]
    asked = {one.unless for one in kept if one.unless.startswith(MAY_SEED)}
    if not asked:
        return kept
    known = list(files)
    seeded = {what for what in asked if _seeder(known, what, kb) is not None}
    return [one for one in kept if one.unless not in seeded]


def _is_run_by_pytest(finding: Finding) -> bool:
    """Whether a finding is in a test: what uses that is known, and all that it runs is in the project."""
    return finding.scope.rpartition(".")[2].startswith("test") and TESTS.search(finding.path) is not None


def why_seeded(finding: Finding, files: Mapping[str, m.FileFacts], kb: Knowledge, programs: bool) -> str:
    """Why a finding is one of those that are left out; empty for one that is not."""
    if not finding.unless.startswith(MAY_SEED):
        return ""
    if not programs and not _is_run_by_pytest(finding):
        return "no program is known that uses this code, and one may seed the generator"
    found = _seeder(files.values(), finding.unless, kb)
    if found is None:
        return ""
    facts, name = found
    path = os.path.basename(next(path for path, one in files.items() if one is facts))
    return f"`{name}` in {path} may seed the generator" if name else f"{path} could not be read"


def _seeder(files: Iterable[m.FileFacts], what: str, kb: Knowledge) -> tuple[m.FileFacts, str] | None:
    """A file that may seed a generator, as far as names tell, and the name; no name where it could not be read."""
    known = list(files)
    rng = what.removeprefix(MAY_SEED)
    names = kb.names_that_seed(rng)
    words = {word for facts in known for word in facts.words}
    likely = {name for name, libraries in names.items() if not words.isdisjoint(libraries)}
    for facts in known:
        if facts.problem is not None or facts.unread:
            return facts, ""
        if not any(one in names or kb.may_seed(one, False) or kb.may_seed(one, True) for one in facts.words):
            continue
        imported = dict(_imports(facts))
        for name, called in _used(facts):
            if _seeds(name, called, rng, likely, imported, kb):
                return facts, name.lstrip(".")
    return None


def _seeds(
    name: str, called: bool, rng: str, likely: set[str], imported: dict[str, str], kb: Knowledge
) -> bool:
    """Whether a name may seed a generator. ``likely`` are the last parts of the names of what seeds it in libraries that
    the project imports."""
    head, dot, rest = name.partition(".")
    last = name.rpartition(".")[2]
    alike = kb.may_seed(last, bool(dot))
    full = imported.get(head)
    if full is None:
        # A variable that is called like a function that seeds is none.
        return (alike or last in likely) and (called or bool(dot))
    api = kb.canonical(f"{full}.{rest}" if rest else full)
    entries = kb.rng(api) if alike or last in likely else ()
    if entries:
        return any(rng in kb.seeded_with(one) for entry in entries for one in entry.seeds)
    # An object of the project may be one of any library.
    return alike or (last in likely and not kb.is_of_known_library(api))


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
