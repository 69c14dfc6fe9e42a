"""The rounds of a loop that counts where it cuts a list of texts in two, as what looks for the module in a dotted name does:
``for n in range(len(parts), 0, -1): import_module(".".join(parts[:n]))``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from d9mlint.interp.interpreter import Interp

_RANGE = "builtins.range"
_MOST = 8


def counted(
    interp: Interp, iterated: v.Value, target: m.Expr, inside: Iterable[m.Expr | m.Stmt]
) -> list[v.Value] | None:
    """The numbers that a loop counts through where each is a bound of a slice of a list of texts that are all known."""
    if not isinstance(iterated, v.Obj) or iterated.api != _RANGE or not isinstance(target, m.Name):
        return None
    numbers = _numbers(iterated)
    if numbers is None or not any(_cuts(interp, one, target.id) for one in nodes(inside)):
        return None
    return [v.Lit(number) for number in numbers]


def _numbers(iterated: v.Obj) -> range | None:
    """The numbers of a ``range``, if they are known and few."""
    args = iterated.args
    bounds = [one.value for one in args.pos if isinstance(one, v.Lit) and type(one.value) is int]
    if len(bounds) != len(args.pos) or not bounds or args.star or 0 in bounds[2:]:
        return None
    numbers = range(*bounds)
    return numbers if len(numbers) <= _MOST else None


def empty_each(iterated: v.Value, comp: m.Comp) -> list[v.Value] | None:
    """The numbers that ``Pair(*([] for _ in range(2)))`` counts through: each field gets its own container."""
    if comp.kind != "g" or not isinstance(iterated, v.Obj) or iterated.api != _RANGE:
        return None
    made = comp.elt
    empty = (isinstance(made, m.Seq) and not made.elts) or (isinstance(made, m.Dict) and not made.keys)
    numbers = _numbers(iterated) if empty else None
    return None if numbers is None else [v.Lit(number) for number in numbers]


def _cuts(interp: Interp, node: object, counter: str) -> bool:
    """Whether an expression takes the texts of a list up to a number or from it on."""
    if not isinstance(node, m.Subscript) or not isinstance(node.index, m.Slice):
        return False
    if not isinstance(node.value, m.Name):
        return False
    bounds = (node.index.lower, node.index.upper)
    if not any(isinstance(one, m.Name) and one.id == counter for one in bounds):
        return False
    cut = interp.frame.env.read(node.value.id)
    return (
        isinstance(cut, v.Items)
        and not cut.open
        and bool(cut.elts)
        and all(isinstance(one, v.Lit) and isinstance(one.value, str) for one in cut.elts)
    )


def has_found_module(stmt: m.Try, env: v.Env) -> bool:
    """Whether a ``try`` whose handlers only go on to the next round has found the module of the project that is looked for:
    its first statement has called what gives it."""
    first = stmt.body[0]
    if not isinstance(first, m.Assign) or not isinstance(first.value, m.Call) or len(first.targets) != 1:
        return False
    target = first.targets[0]
    if not isinstance(target, m.Name) or not isinstance(env.vars.get(target.id), v.Mod):
        return False
    return all(_goes_on(one.body) for one in stmt.handlers)


def _goes_on(body: list[m.Stmt]) -> bool:
    return all(isinstance(one, m.Jump) and one.kind == "continue" for one in body)
