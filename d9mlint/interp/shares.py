"""Numbers that are divided among several, rounded up: a part of a positive number is positive too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import alike

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_SHARE: Final = "@share"
"""Attribute of a number that is a part of a positive one, rounded up."""


def share(interp: Interp, node: m.Expr) -> v.Obj | None:
    """The whole number that ``(workers + n - 1) / n`` gives, rounded down, where ``workers`` is known to be positive."""
    return _number_of(interp, _divided(node))


def rounded_up(interp: Interp, api: str, args: v.Args, node: Any) -> v.Obj | None:
    """``ceil(workers / n)``."""
    given = node.args[0] if isinstance(node, m.Call) and len(node.args) == 1 else None
    return _number_of(interp, given.left if isinstance(given, m.BinOp) and given.op == "/" else None)


def _number_of(interp: Interp, divided: m.Expr | None) -> v.Obj | None:
    if divided is None or not is_positive(interp.value_of(divided)):
        return None
    number = v.Obj("builtins.int")
    number.attrs[_SHARE] = v.TRUE
    return number


def is_positive(value: v.Value) -> bool:
    """Whether a number is more than zero, whatever it is."""
    return all(map(_is_positive, v.alternatives(value)))


def _is_positive(number: v.Value) -> bool:
    if isinstance(number, v.Lit):
        return isinstance(number.value, int) and number.value > 0
    if not isinstance(number, v.Obj):
        return False
    # The largest one is positive where any is.
    largest = number.api == "builtins.max" and len(number.args.pos) > 1
    return _SHARE in number.attrs or (largest and any(map(is_positive, number.args.pos)))


def _divided(node: m.Expr) -> m.Expr | None:
    """What is divided with rounding up: ``a`` of ``(a + b - 1) / b``, in any order of the terms."""
    if not isinstance(node, m.BinOp) or node.op not in ("/", "//"):
        return None
    terms = _terms(node.left, 1)
    ones = [one for sign, one in terms if sign * _constant(one) == -1]
    rest = [one for sign, one in terms if sign == 1 and not _constant(one)]
    others = [one for one in rest if not alike(one, node.right)]
    if len(terms) != 3 or len(ones) != 1 or len(rest) != 2 or len(others) != 1:
        return None
    return others[0]


def _terms(node: m.Expr, sign: int) -> list[tuple[int, m.Expr]]:
    if isinstance(node, m.BinOp) and node.op in ("+", "-"):
        right = -sign if node.op == "-" else sign
        return [*_terms(node.left, sign), *_terms(node.right, right)]
    return [(sign, node)]


def _constant(node: m.Expr) -> int:
    return node.value if isinstance(node, m.Const) and isinstance(node.value, int) else 0
