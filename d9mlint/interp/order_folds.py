"""What a loop builds up by a function of the project: ``state = mix(state, part)``, where ``mix`` returns a sum or a product
in which ``state`` is a term."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

OPERATORS = frozenset("+-*")


def called(interp: Interp, call: m.Expr) -> tuple[m.Function, Mapping[str, m.Expr]] | None:
    """The function of the project that an expression calls, and what is written there for its parameters."""
    if not isinstance(call, m.Call) or not isinstance(call.func, m.Name):
        return None
    func = interp.value_of(call.func)
    if not isinstance(func, v.Func) or any(isinstance(one, m.Star) for one in call.args):
        return None
    names = [one.name for one in func.fn.params if one.kind in ("p", "a")]
    given = dict(zip(names[1:] if func.receiver is not None else names, call.args, strict=False))
    given.update((one.name, one.value) for one in call.keywords if one.name is not None)
    return func.fn, given


def sums_in(interp: Interp, written: m.Expr, name: str) -> tuple[list[m.Expr], list[m.Expr]] | None:
    """The sums and products that the function returns which an expression calls, those in which a variable is a term that it
    is given, and what else it is given; None where it returns none."""
    if isinstance(written, m.IfExp):
        # `total = x if total is None else add(total, x)`
        return sums_in(interp, written.body, name) or sums_in(interp, written.orelse, name)
    found = called(interp, written)
    if found is None:
        return None
    function, given = found
    sums: list[m.Expr] = []
    for param, one in given.items():
        if isinstance(one, m.Name) and one.id == name:
            sums += [each for each in _returned(function, param) if is_term(each, param, items=True)]
    rest = [one for one in given.values() if not isinstance(one, m.Name) or one.id != name]
    return (sums, rest) if sums and rest else None


def _returned(function: m.Function, param: str) -> Iterator[m.Expr]:
    """What a function returns: the expression itself, what it has given the variable that it returns, or an item of it.
    What it adds to a parameter in place is a sum too."""
    values = [
        one.value for one in nodes(function.body) if isinstance(one, m.Return) and one.value is not None
    ]
    names = {one.id for one in values if isinstance(one, m.Name)}
    for one in nodes(function.body):
        if isinstance(one, m.Assign) and any(_holder(target) in names for target in one.targets):
            values.append(one.value)
        elif isinstance(one, m.AugAssign) and isinstance(one.target, m.Name) and one.op in OPERATORS:
            if one.target.id == param and param in names:
                values.append(m.BinOp(one.op, one.target, one.value, one.start, one.end))
    for value in values:
        if isinstance(value, m.Comp) and value.kind in "ld":
            yield value.value if value.value is not None else value.elt
        else:
            yield value


def _holder(target: m.Expr) -> str | None:
    """The variable that an assignment gives something, or an item of which."""
    held = target.value if isinstance(target, m.Subscript) else target
    return held.id if isinstance(held, m.Name) else None


def is_term(node: m.Expr, name: str, items: bool = False) -> bool:
    """Whether a variable, or an item of it, is part of a sum or product, other than as an argument of a call."""
    if isinstance(node, m.IfExp):
        return is_term(node.body, name, items) or is_term(node.orelse, name, items)
    if isinstance(node, m.BinOp) and node.op in OPERATORS:
        return any(
            _is_held(side, name, items) or is_term(side, name, items) for side in (node.left, node.right)
        )
    return False


def _is_held(node: Any, name: str, items: bool) -> bool:
    if items and isinstance(node, m.Subscript):
        node = node.value
    return isinstance(node, m.Name) and node.id == name
