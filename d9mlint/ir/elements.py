"""What becomes of the elements that methods give in loops: whether anything may call them. By syntax alone.

``for layer in self.modules(): if isinstance(layer, Linear): init(layer.weight)`` asks each layer for its class and its
weights, and calls none. A method that is used in another way may hand its elements on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import body_that_holds, memo
from d9mlint.ir.liveness import may_be_shared
from d9mlint.ir.traversal import nodes, parents, variables

_named: dict[tuple[int, tuple[str, ...]], tuple[m.FileFacts, bool]] = memo()
_ASKING = frozenset({"isinstance", "type", "id", "len", "print", "repr", "str", "hasattr"})
"""Functions that call nothing they are given."""
_PASSING = frozenset({"enumerate", "list", "tuple", "reversed"})
"""Functions whose elements are those of what they are given."""


def uses_names_with(facts: m.FileFacts, parts: tuple[str, ...]) -> bool:
    """Whether a file uses names which contain one of some texts; memoised while its facts live."""
    known = _named.get((id(facts), parts))
    if known is None or known[0] is not facts:
        found = any(part in word for word in facts.words for part in parts)
        known = _named[id(facts), parts] = (facts, found)
    return known[1]


def may_call_elements(facts: m.FileFacts, texts: Iterable[str], methods: tuple[str, ...]) -> bool:
    """Whether a file may call what attributes or methods give whose names hold one of some texts, or call one of some
    methods of it."""
    held = [word for word in facts.words if any(text in word for text in texts)]
    if not held:
        return False
    for cls in facts.classes:
        parts = [*cls.body, *cls.bases, *cls.decorators, *(x.value for x in cls.keywords)]
        if any(_mentions(one, held) for one in nodes(parts)):
            return True
    for function in facts.functions:
        parts = [*function.decorators, *(x.default for x in function.params if x.default)]
        if any(_mentions(one, held) for one in nodes(parts)):
            return True
        for one in nodes(body_that_holds(function, *held)):
            if _mentions(one, held) and not _only_asked(facts, function, one, methods):
                return True
    return False


def _mentions(node: Any, words: list[str]) -> bool:
    """Whether a node is an attribute of one of some names, or imports one."""
    if isinstance(node, m.ImportFrom):
        return any(one.name in words for one in node.names)
    if isinstance(node, m.Name):
        return any(part in words for part in node.id.split(".")[1:])
    return isinstance(node, m.Attr) and any(part in words for part in node.name.split("."))


def _only_asked(facts: m.FileFacts, function: m.Function, node: Any, methods: tuple[str, ...]) -> bool:
    """Whether a loop goes through what a method gives, and calls none of it."""
    above = parents(function)
    call = above.get(id(node))
    if not (isinstance(call, m.Call) and call.func is node):
        return False
    loop = above.get(id(call))
    if isinstance(loop, m.Call) and isinstance(loop.func, m.Name) and loop.func.id in _PASSING:
        call, loop = loop, above.get(id(loop))
    if not isinstance(loop, (m.For, m.Generator)) or loop.iter is not call:
        return False
    target = loop.target
    names = target.elts if isinstance(target, m.Seq) else [target]
    return all(
        isinstance(one, m.Name)
        and "." not in one.id
        and not may_be_shared(facts, function, {one.id})
        and all(_asks(above, use, methods) for use in variables(function)[one.id])
        for one in names
    )


def _asks(above: dict[int, Any], use: m.Name, methods: tuple[str, ...]) -> bool:
    """Whether a use of a variable only asks for the class of what it holds, or for attributes, or sets these."""
    parent = above.get(id(use))
    attributes = use.id.split(".")[1:]
    call = parent if isinstance(parent, m.Call) and parent.func is use else None
    if not attributes:
        # The loop itself assigns it.
        if isinstance(parent, m.Seq):
            node: Any = parent
            parent = above.get(id(parent))
        else:
            node = use
        if isinstance(parent, (m.For, m.Generator)) and parent.target is node:
            return True
        if isinstance(parent, m.Call) and isinstance(parent.func, m.Name):
            return node is use and parent.func.id in _ASKING
        return node is use and isinstance(parent, (m.Compare, m.FString))
    if attributes[0] in methods or attributes[0] == "__call__":
        return False
    if call is None or len(attributes) > 1:
        return True
    # Methods may give the object itself, or call it with what they are given.
    given = [*call.args, *(one.value for one in call.keywords)]
    return isinstance(above.get(id(call)), m.ExprStmt) and all(isinstance(one, m.Const) for one in given)
