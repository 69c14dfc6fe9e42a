"""Variables whose elements a function compares or computes with numbers, one after the other: ``if label == -1`` in a loop
over ``set(labels)``. These are numbers, too, or tuples of numbers, of which it asks ``0 in pair``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from d9mlint.interp.number_uses import is_computed_with_number, is_number, same, taken_from
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memo
from d9mlint.ir.scopes import names_assigned
from d9mlint.ir.traversal import loop_elements, nodes

_SAME_ELEMENTS = frozenset({"set", "frozenset", "list", "tuple", "sorted", "reversed", "tqdm"})
_DEPTH = 4
_TESTS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_known: dict[int, tuple[list[m.Stmt], frozenset[str]]] = memo()


def have_numbers(body: list[m.Stmt], node: m.Expr | None) -> bool:
    """Whether the elements of an expression are compared or computed with numbers in a body."""
    name = _name(node)
    if not name:
        return False
    known = _known.get(id(body))
    if known is None:
        known = _known[id(body)] = body, frozenset(_found(body))
    return bool(known[1]) and not known[1].isdisjoint({name, *same(body, name)})


def _found(body: list[m.Stmt]) -> Iterator[str]:
    assigned: dict[str, list[m.Expr]] = {}
    for one in nodes(body):
        if isinstance(one, m.Assign):
            for target in one.targets:
                if isinstance(target, m.Name):
                    assigned.setdefault(target.id, []).append(one.value)
    for one in nodes(body):
        pairs: list[tuple[str, m.Expr]] = []
        if isinstance(one, m.For):
            assigned_inside = names_assigned(one.body)
            pairs = [
                (target.id, over)
                for target, over in loop_elements(one.target, one.iter)
                if target.id not in assigned_inside
            ]
        elif isinstance(one, m.Comp):
            pairs = [
                (target.id, over)
                for part in one.generators
                for target, over in loop_elements(part.target, part.iter)
            ]
        for name, over in pairs:
            if any(_is_used_as_number(used, name) for used in nodes([one])):
                yield from _containers(assigned, over)


def _is_used_as_number(node: Any, name: str) -> bool:
    if isinstance(node, m.Compare):
        sides = [node.left, *node.comparators]
        if node.ops in (["in"], ["not in"]):
            # `0 in pair`: a text has no numbers in it.
            return is_number(node.left) and _is(node.comparators[0], name)
        return (
            _TESTS.issuperset(node.ops)
            and any(map(is_number, sides))
            and any(_is(one, name) for one in sides)
        )
    return isinstance(node, m.BinOp) and any(
        _is(one, name) and is_computed_with_number(node) for one in (node.left, node.right)
    )


def _is(node: m.Expr, name: str) -> bool:
    return isinstance(node, m.Name) and node.id == name


def _containers(assigned: dict[str, list[m.Expr]], over: m.Expr) -> Iterator[str]:
    """The variables that have the elements of an expression, through what they are assigned once."""
    for _ in range(_DEPTH):
        name = _name(over)
        if not name:
            return
        yield name
        values = assigned.get(name, [])
        if len(values) != 1:
            return
        over = values[0]


def _name(node: m.Expr | None) -> str:
    """The variable that has the elements of an expression: ``labels`` for ``list(set(labels))``."""
    while (
        isinstance(node, m.Call)
        and isinstance(node.func, m.Name)
        and node.func.id in _SAME_ELEMENTS
        and node.args
    ):
        node = node.args[0]
    return taken_from(node)
