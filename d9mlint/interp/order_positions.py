"""The positions at which elements are found in sequences: where they are used only to take out what stands there, in the
same sequence or in one of the same order, the order does not count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes, parents, variables

if TYPE_CHECKING:
    from d9mlint.interp.orders import Order

PLACE = "place"
"""The kind of an order that a position has: that of the sequence in which something was found."""
_MOST_NAMES = 4


def is_index(fn: m.Function | None, node: Any) -> bool:
    """Whether the value of an expression is used only as an index, or as the position of what is taken out."""
    return fn is not None and _is_index(fn, node, _MOST_NAMES)


def _is_index(fn: m.Function, node: Any, names: int) -> bool:
    parent = parents(fn).get(id(node))
    if isinstance(parent, m.Subscript):
        return parent.index is node
    if isinstance(parent, m.Call):
        return called_name(parent) == "pop" and len(parent.args) == 1 and parent.args[0] is node
    if not isinstance(parent, m.Assign) or len(parent.targets) != 1 or not names:
        return False
    target = parent.targets[0]
    if not isinstance(target, m.Name) or "." in target.id:
        return False
    uses = [one for one in variables(fn).get(target.id, ()) if one is not target]
    return bool(uses) and all(one.id == target.id and _is_index(fn, one, names - 1) for one in uses)


def belongs(position: Order | None, order: Order | None) -> bool:
    """Whether a position is one in a sequence of this order."""
    return (
        position is not None
        and order is not None
        and position.kind == PLACE
        and (position.keys, position.site) == (order.keys, order.site)
    )


def is_given_by_test(node: Any) -> bool:
    """``next(x for x in names if x == name)``: whatever element a call gets first is equal to what a test names."""
    comp = node.args[0] if isinstance(node, m.Call) and node.args else None
    if not isinstance(comp, m.Comp) or comp.kind != "g" or len(comp.generators) != 1:
        return False
    target = comp.generators[0].target
    return isinstance(target, m.Name) and any(_names(target.id, one) for one in comp.generators[0].ifs)


def _names(name: str, test: m.Expr) -> bool:
    """Whether a test says that a variable equals something that does not depend on it."""
    if isinstance(test, m.BoolOp) and test.op == "and":
        return _names(name, test.left) or _names(name, test.right)
    if not isinstance(test, m.Compare) or test.ops != ["=="]:
        return False
    sides = (test.left, test.comparators[0])
    return any(
        isinstance(one, m.Name)
        and one.id == name
        and not any(isinstance(x, m.Name) and x.id.partition(".")[0] == name for x in nodes([other]))
        for one, other in (sides, sides[::-1])
    )
