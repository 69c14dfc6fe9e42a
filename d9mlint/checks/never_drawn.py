"""Findings about generators that a class keeps in an attribute which nothing in the project reads: nobody draws from them.

Names decide: whatever may be the attribute counts as reading it. Only ``self.name`` in a class that is not related to the
one that keeps the generator is another attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from d9mlint.base.entry_report import IF_READ
from d9mlint.base.findings import Finding
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import passing
from d9mlint.ir.liveness import ATTRIBUTES_BY_TEXT
from d9mlint.ir.traversal import nodes


def without_kept(findings: Iterable[Finding], files: Sequence[m.FileFacts]) -> list[Finding]:
    """The findings without those about generators that are kept and never read."""
    kept = list(findings)
    asked = {one.unless for one in kept if one.unless.startswith(IF_READ)}
    unread: set[str] = set()
    for condition in asked:
        cls, _, attribute = condition.removeprefix(IF_READ).partition(".")
        with_word = [one for one in files if attribute in one.words]
        if not any(one.unread for one in files) and not _is_read(with_word, _related(files, cls), attribute):
            unread.add(condition)
    return [one for one in kept if one.unless not in unread]


def _related(files: Iterable[m.FileFacts], name: str) -> set[str]:
    """The classes that a class may share attributes with: those that it is derived from, or that are derived from one of
    them, by their names."""
    groups: list[set[str]] = []
    own = set()
    for facts in passing(files):
        for cls in facts.classes:
            own.add(cls.name)
            bases = {one.id.rpartition(".")[2] for one in nodes(cls.bases) if isinstance(one, m.Name)}
            groups.append({cls.name, *bases})
    found = {name}
    while True:
        near = found.union(*(one & own for one in groups if not one.isdisjoint(found)))
        if near == found:
            return found
        found = near


def _is_read(files: Iterable[m.FileFacts], related: set[str], attribute: str) -> bool:
    for facts in passing(files):
        by_text = not ATTRIBUTES_BY_TEXT.isdisjoint(facts.words)
        if by_text and any(cls.name in related for cls in facts.classes):
            return True
        if any(_reads(facts, index, related, attribute) for index in range(len(facts.functions))):
            return True
        if any(_names(cls.body, attribute) for cls in facts.classes):
            return True
    return False


def _names(parts: Iterable[Any], attribute: str) -> bool:
    return any(attribute in _attributes(one) for one in nodes(parts))


def _attributes(node: Any) -> list[str]:
    """The attributes that a node asks for, or may ask for by a text."""
    if isinstance(node, m.Name):
        return node.id.split(".")[1:]
    if isinstance(node, m.Attr):
        return node.name.split(".")
    return [node.value] if isinstance(node, m.Const) and isinstance(node.value, str) else []


def _reads(facts: m.FileFacts, index: int, related: set[str], attribute: str) -> bool:
    function = facts.functions[index]
    parts = [*function.body, *function.decorators, *(x.default for x in function.params if x.default)]
    stored = {id(target) for one in nodes(parts) for target in _targets(one)}
    # `self.np_random, seed = seeding.np_random(seed)`: what makes a generator may be called like the attribute.
    making = {
        id(one.value.func)
        for one in nodes(parts)
        if isinstance(one, m.Assign)
        and isinstance(one.value, m.Call)
        and any(attribute in _attributes(target) for target in _targets(one))
    }
    owner = _class_around(facts, index)
    for node in nodes(parts):
        if attribute not in _attributes(node):
            continue
        if (
            id(node) in making
            and isinstance(node, m.Name)
            and node.id.partition(".")[0] not in ("self", "cls")
        ):
            continue
        if isinstance(node, m.Name):
            head, *rest = node.id.split(".")
            if head == "self" and rest[0] == attribute and owner is not None and owner not in related:
                continue
            if id(node) in stored and rest[-1] == attribute and attribute not in rest[:-1]:
                continue
        elif isinstance(node, m.Attr) and id(node) in stored and node.name == attribute:
            continue
        return True
    return False


def _targets(node: Any) -> Iterator[m.Expr]:
    if isinstance(node, (m.Assign, m.AnnAssign)):
        targets = node.targets if isinstance(node, m.Assign) else [node.target]
        for target in targets:
            yield from target.elts if isinstance(target, m.Seq) else [target]


def _class_around(facts: m.FileFacts, index: int) -> str | None:
    while index > 0:
        function = facts.functions[index]
        if function.cls >= 0:
            return facts.classes[function.cls].name
        index = function.parent
    return None
