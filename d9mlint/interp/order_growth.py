"""Lists, tuples, dictionaries and texts that a loop makes longer by building a longer one: ``rows = rows + [row]``.

The loop collects as it does with ``rows.append(row)``: in a loop over an arbitrary order the longer one has that order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from d9mlint.interp import order_sums
from d9mlint.interp import values as v
from d9mlint.interp.order_folds import called
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import alike, nodes

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.orders import Order, Orders


def grown(orders: Orders, interp: Interp, stmt: m.Assign, value: v.Value) -> v.Value:
    """What a statement assigns, with the order of the loops in which it makes what its target held longer."""
    if len(stmt.targets) != 1:
        return value
    target = stmt.targets[0]
    if isinstance(target, m.Seq):
        if isinstance(stmt.value, m.Seq) and isinstance(value, v.Items) and value.kind != "s":
            # `rows, count = rows + [row], count + 1`
            parts = list(zip(target.elts, stmt.value.elts, value.elts, strict=False))
            if len(parts) == len(target.elts) == len(value.elts):
                value.elts = [_longer(orders, interp, *part) for part in parts]
        return value
    return _longer(orders, interp, target, stmt.value, value)


def _longer(orders: Orders, interp: Interp, target: m.Expr, written: m.Expr, value: v.Value) -> v.Value:
    if not isinstance(target, m.Name) or not _has_all_of(interp, written, target):
        return value
    old = interp.eval(target)
    order = _order_around(orders, interp, target.id, old)
    if order is None or any(isinstance(one, v.Mapping) for one in v.alternatives(old)) != isinstance(
        value, v.Mapping
    ):
        return value
    return orders.carried(value, order)


def _order_around(orders: Orders, interp: Interp, name: str, old: v.Value) -> Order | None:
    """The order of the loops that are younger than a sequence, a mapping or a text that a variable holds."""
    for one in v.alternatives(old):
        if isinstance(one, v.Mapping) or (isinstance(one, v.Items) and one.kind != "s"):
            around = orders.around(one.birth)
            if around is not None:
                return around
    loop = order_sums.loop_of(orders, interp, name)
    before = loop.before.get(name, old) if loop is not None else old
    is_text = isinstance(before, v.Lit) and isinstance(before.value, str)
    return loop.order if loop is not None and is_text else None


def _has_all_of(interp: Interp, written: m.Expr, target: m.Name) -> bool:
    """Whether an expression makes a sequence, mapping or text in which all of a variable is, with something else."""
    return any(alike(one, target) for one in _parts(interp, written))


def _parts(interp: Interp, written: m.Expr) -> Iterator[m.Expr]:
    """What an expression puts one behind the other."""
    if isinstance(written, m.BinOp) and written.op in "+|":
        for side in (written.left, written.right):
            yield from (side,) if isinstance(side, m.Name) else _parts(interp, side)
    elif isinstance(written, m.Seq) and written.kind != "s":
        yield from (one.value for one in written.elts if isinstance(one, m.Star))
    elif isinstance(written, m.Dict):
        yield from (one for key, one in zip(written.keys, written.values, strict=False) if key is None)
    elif isinstance(written, m.FString):
        yield from written.parts
    elif isinstance(written, m.IfExp):
        yield from _parts(interp, written.body)
        yield from _parts(interp, written.orelse)
    elif isinstance(written, m.Call):
        yield from _parts_of_call(interp, written)


def _parts_of_call(interp: Interp, call: m.Call) -> Iterator[m.Expr]:
    """Arguments of a function of the project that gives them with something behind or before them."""
    found = called(interp, call)
    if found is None:
        return
    function, given = found
    for one in nodes(function.body):
        if isinstance(one, m.Return) and isinstance(one.value, (m.BinOp, m.Seq, m.Dict, m.FString)):
            for part in _parts(interp, one.value):
                if isinstance(part, m.Name) and part.id in given:
                    yield given[part.id]
