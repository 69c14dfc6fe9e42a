"""Slices that share a sequence out: ``files[i:i + n] for i in range(0, len(files), n)`` takes every entry once.

Which entries come together depends on the order; that there is one of each does not.
"""

from __future__ import annotations

from typing import Any

from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import parents


def is_share(function: m.Function | None, node: m.Subscript) -> bool:
    """Whether a slice is one of those that a loop or comprehension cuts all of a sequence into."""
    part = node.index
    if function is None or not isinstance(part, m.Slice) or part.step is not None:
        return False
    if not isinstance(part.lower, m.Name) or part.upper is None:
        return False
    rounds = _iterated(function, node, part.lower.id)
    if not isinstance(rounds, m.Call) or not isinstance(rounds.func, m.Name) or rounds.func.id != "range":
        return False
    if len(rounds.args) != 3 or not _is_zero(rounds.args[0]) or not _is_length(rounds.args[1], node.value):
        return False
    return any(_reaches(upper, part.lower, rounds.args[2]) for upper in _bounds(part.upper, node.value))


def _iterated(function: m.Function, node: Any, name: str) -> m.Expr | None:
    """What the loop or comprehension around an expression goes through whose variable has a name."""
    above = parents(function)
    while node is not None:
        if isinstance(node, m.For) and isinstance(node.target, m.Name) and node.target.id == name:
            return node.iter
        if isinstance(node, m.Comp):
            for one in node.generators:
                if isinstance(one.target, m.Name) and one.target.id == name:
                    return one.iter
        node = above.get(id(node))
    return None


def _bounds(upper: m.Expr, whole: m.Expr) -> list[m.Expr]:
    """The ends that a slice may have besides the end of the sequence, as in ``min(i + n, len(files))``."""
    if isinstance(upper, m.Call) and isinstance(upper.func, m.Name) and upper.func.id == "min":
        return [one for one in upper.args if not _is_length(one, whole)] if len(upper.args) == 2 else []
    return [upper]


def _reaches(upper: m.Expr, lower: m.Name, step: m.Expr) -> bool:
    """Whether a slice ends where the next one begins."""
    if not isinstance(upper, m.BinOp) or upper.op != "+":
        return False
    return (_same(upper.left, lower) and _same(upper.right, step)) or (
        _same(upper.right, lower) and _same(upper.left, step)
    )


def _is_length(node: m.Expr, whole: m.Expr) -> bool:
    if not isinstance(node, m.Call) or not isinstance(node.func, m.Name) or node.func.id != "len":
        return False
    return len(node.args) == 1 and _same(node.args[0], whole)


def _is_zero(node: m.Expr) -> bool:
    return isinstance(node, m.Const) and node.value == 0


def _same(one: m.Expr, other: m.Expr) -> bool:
    """Whether two names or numbers are written alike."""
    if isinstance(one, m.Name) and isinstance(other, m.Name):
        return one.id == other.id
    return isinstance(one, m.Const) and isinstance(other, m.Const) and one.value == other.value
