"""The methods by which the containers of Python grow."""

from __future__ import annotations

from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memoized
from d9mlint.ir.traversal import alike, nodes

GROWING = frozenset({"append", "appendleft", "extend", "extendleft", "insert", "add", "update", "setdefault"})
"""Methods that put what they are given into a list, a deque, a set or a dictionary."""


def grows_items_of(function: m.Function, container: m.Expr) -> bool:
    """Whether a function puts something into what a container holds: ``table[word].add(tag)``, ``table[word] |= tags``."""
    return any(alike(one, container) for one in _with_growing_items(function))


@memoized
def _with_growing_items(function: m.Function) -> list[m.Expr]:
    """The containers into whose items a function puts something; memoised while it lives."""
    found: list[m.Expr] = []
    for one in nodes(function.body):
        grown = one.target if isinstance(one, m.AugAssign) else None
        if isinstance(one, m.Call) and isinstance(one.func, m.Attr) and one.func.name in GROWING:
            grown = one.func.value
        if isinstance(grown, m.Subscript):
            found.append(grown.value)
    return found
