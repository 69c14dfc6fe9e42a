"""Tables of functions that code only asks for what they have under a key, to call it: ``TABLE = {"a": first}``,
``TABLE[name](rows)``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import own_names
from d9mlint.ir.traversal import nodes

_SAID = (".__name__", ".__doc__")
"""Attributes of a function that only say something of it."""


def tables(facts: m.FileFacts) -> dict[str, list[int]]:
    """The variables of a file that hold tables of which the file only calls what they have under a key, each with the
    places of the names in it."""
    found: dict[str, list[int]] = {}
    several: set[str] = set()
    for function in facts.functions:
        for node in nodes(function.body):
            value = node.value if isinstance(node, m.Assign) and len(node.targets) == 1 else None
            target = node.targets[0] if value is not None else None
            if not isinstance(value, (m.Dict, m.Seq)) or not isinstance(target, m.Name):
                continue
            held = value.values if isinstance(value, m.Dict) else value.elts
            entries = [one.start for one in held if isinstance(one, m.Name)]
            if entries and "." not in target.id:
                several.update({target.id} & found.keys())
                found[target.id] = entries
    return {name: found[name] for name in sorted(found.keys() - several) if only_calls(facts, name, 1)}


def only_calls(facts: m.FileFacts, name: str, made: int = 0) -> bool:
    """Whether a file only calls what a table has under a key; ``made``: how often it gives the variable a value. In a file
    that is not that of the table, a variable of this name that the file makes itself is no such table."""
    another = not made and _makes_itself(facts, name)
    for around, body in _bodies(facts):
        some = list(nodes(body))
        harmless: set[int] = set()
        taken: set[str] = set()
        called = {id(one.func) for one in some if isinstance(one, m.Call)}
        for node in some:
            if isinstance(node, m.Assign) and _is_taken(node.value, name):
                # The function is called later, under another name.
                harmless.add(id(_table(node.value)))
                taken.update(one.id if isinstance(one, m.Name) else "" for one in node.targets)
            elif isinstance(node, m.Assign):
                stored = [one for one in node.targets if isinstance(one, m.Name) and one.id == name]
                harmless.update(map(id, stored))
                made -= 0 if another else len(stored)
            elif isinstance(node, m.Compare):
                asked = zip(node.ops, node.comparators, strict=True)
                harmless.update(id(one) for op, one in asked if op in ("in", "not in"))
            elif _is_taken(node, name) and (id(node) in called or _is_written(node)):
                harmless.add(id(_table(node)))
            elif isinstance(node, m.Name) and node.id == f"{name}.keys" and id(node) in called:
                harmless.add(id(node))
            elif isinstance(node, m.ImportFrom):
                if any(one.name == name and one.asname not in (None, name) for one in node.names):
                    return False
        named = [node for node in some if _names(node, name) and not (another and _heads(node, name))]
        if any(id(node) not in harmless for node in named):
            return False
        if (
            taken
            and not another
            and not (around >= 0 and all(_is_only_called(facts, around, one) for one in taken))
        ):
            return False
    return made == 0


def _makes_itself(facts: m.FileFacts, name: str) -> bool:
    """Whether a module gives a variable a value that it imports from nowhere."""
    body = list(nodes(facts.functions[0].body))
    if any(isinstance(one, m.ImportFrom) and {"*", name} & {x.name for x in one.names} for one in body):
        return False
    targets = [target for one in body if isinstance(one, m.Assign) for target in one.targets]
    return any(isinstance(one, m.Name) and one.id == name for one in targets)


def _bodies(facts: m.FileFacts) -> Iterator[tuple[int, list[Any]]]:
    """All code of a file; what stands in classes and in the heads of functions with no function."""
    for index, function in enumerate(facts.functions):
        yield index, function.body
        defaults = [one.default for one in function.params if one.default is not None]
        yield -1, [*function.decorators, *defaults]
    for cls in facts.classes:
        yield -1, [*cls.body, *cls.bases, *cls.decorators, *cls.keywords]


def _names(node: Any, name: str) -> bool:
    """Whether a node names a table, here or in its module, or something of it."""
    text = node.id if isinstance(node, m.Name) else node.name if isinstance(node, m.Attr) else ""
    return name in text.split(".")


def _table(node: Any) -> Any:
    """The table that is asked for something: by a key, or by its method."""
    return node.value if isinstance(node, m.Subscript) else node.func if isinstance(node, m.Call) else None


def _is_taken(node: Any, name: str) -> bool:
    """Whether a node gives what a table has under one key: ``TABLE[key]``, ``TABLE.get(key)``."""
    table = _table(node)
    if not isinstance(table, m.Name):
        return False
    if isinstance(node, m.Subscript):
        is_table = table.id == name or table.id.endswith(f".{name}")
        return is_table and not isinstance(node.index, m.Slice)
    # What stands for a key that the table lacks may be handed on.
    return table.id == f"{name}.get" and len(node.args) == 1


def _is_written(node: Any) -> bool:
    """Whether the key is written where a table is asked."""
    return isinstance(node, m.Subscript) and isinstance(node.index, m.Const)


def _is_only_called(facts: m.FileFacts, around: int, name: str) -> bool:
    """Whether code does nothing with a variable of a function, or of the module, but set, call and name it."""
    if not name or "." in name:
        return False
    for index, function in enumerate(facts.functions):
        own = own_names(function) if index else frozenset[str]()
        if index != around and (name in own or (around and function.parent != around)):
            continue
        some = list(nodes(function.body))
        fine = {id(one.func) for one in some if isinstance(one, m.Call)}
        fine |= {id(one) for one in some if isinstance(one, m.Name) and one.id.endswith(_SAID)}
        fine |= {id(target) for one in some if isinstance(one, m.Assign) for target in one.targets}
        if any(_heads(node, name) and id(node) not in fine for node in some):
            return False
    return True


def _heads(node: Any, name: str) -> bool:
    return isinstance(node, m.Name) and node.id.partition(".")[0] == name
