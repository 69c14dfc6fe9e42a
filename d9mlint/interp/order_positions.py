"""The positions at which elements are found in sequences, and the numbers by which loops take them: where they are used
only to take out what stands there, in the same sequence or in one of the same order, the order does not count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.emptiness import RANGES
from d9mlint.interp.naming import called_in_library
from d9mlint.interp.order_looks import is_only_shown
from d9mlint.interp.order_sorting import LENGTH
from d9mlint.interp.order_ties import ties
from d9mlint.interp.passed_on import passed_on
from d9mlint.interp.places import running
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import assigned_names, counts_up
from d9mlint.ir.traversal import called_name, nodes, parents, variables

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.orders import Order

PLACE = "place"
"""The kind of an order that a position has: that of the sequence in which something was found."""
_MOST_NAMES = 4
_BOUNDS = 2


def is_index(fn: m.Function | None, node: Any) -> bool:
    """Whether the value of an expression is used only as an index, or as the position of what is taken out."""
    return fn is not None and _is_index(fn, node, _MOST_NAMES)


def _is_index(fn: m.Function, node: Any, names: int) -> bool:
    parent = parents(fn).get(id(node))
    if isinstance(parent, m.Subscript):
        return parent.index is node
    if isinstance(parent, m.Attr) and parent.name == "item":
        return _is_index(fn, parents(fn).get(id(parent)), names)
    if isinstance(parent, m.Call):
        if len(parent.args) != 1 or parent.args[0] is not node:
            return False
        return called_name(parent) == "pop" or (called_name(parent) == "int" and _is_index(fn, parent, names))
    if not isinstance(parent, m.Assign) or len(parent.targets) != 1 or not names:
        return False
    target = parent.targets[0]
    if not isinstance(target, m.Name) or "." in target.id:
        return False
    uses = [one for one in variables(fn).get(target.id, ()) if not _is_assigned(fn, one)]
    return bool(uses) and all(one.id == target.id and _is_index(fn, one, names - 1) for one in uses)


def _is_assigned(fn: m.Function, name: m.Name) -> bool:
    """Whether a name stands where a value is assigned to it."""
    parent = parents(fn).get(id(name))
    return isinstance(parent, m.Assign) and any(one is name for one in parent.targets)


def belongs(position: Order | None, order: Order | None) -> bool:
    """Whether a position is one in a sequence of this order."""
    return position is not None and order is not None and position.kind == PLACE and position.goes_with(order)


def taken_by_number(
    interp: Interp, value: v.Value, node: Any, stmt: m.For | None, comp: m.Comp | None
) -> Order | None:
    """The order of the elements that a loop takes by their numbers: ``for i in range(len(names))`` with ``names[i]``.
    Elsewhere the numbers are only places where something is stored, or shown."""
    order = interp.orders.of(_counted(passed_on(value)))
    if order is None:
        return None
    body: list[Any] = []
    target = None
    if stmt is not None:
        target, body = stmt.target, stmt.body
    elif comp is not None:
        target = next((one.target for one in comp.generators if one.iter is node), None)
        tests = [test for one in comp.generators for test in one.ifs]
        body = [comp.elt, *([comp.value] if comp.value is not None else []), *tests]
        body += [one.iter for one in comp.generators if one.iter is not node]
    if not isinstance(target, m.Name):
        return None
    if stmt is not None and target.id in assigned_names(stmt):
        return None
    return order if _takes(interp, order, target.id, body) else None


def counted_through(interp: Interp, stmt: m.While) -> tuple[str, Order] | None:
    """The variable with which a loop counts through a whole sequence, and the order of the elements that it takes by it:
    ``while i < len(names)`` with ``names[i]`` and, after all that reads it, ``i += 1``."""
    test = stmt.test
    if not isinstance(test, m.Compare) or len(test.ops) != 1 or test.ops[0] not in _BELOW:
        return None
    sides = (test.left, test.comparators[0])
    number, last = sides if _BELOW[test.ops[0]] else sides[::-1]
    if not isinstance(number, m.Name) or not counts_up(stmt, number.id):
        return None
    first = interp.frame.env.vars.get(number.id)
    if not isinstance(first, v.Lit) or first.value != 0:
        return None
    if any(isinstance(one, m.Return | m.Jump) for one in nodes(stmt.body)):
        # Which elements it does not come to depends on the order.
        return None
    order = interp.orders.of(_measured(interp, last))
    body = list(stmt.body)
    while body and not isinstance(body[-1], m.AugAssign):
        if any(_is_of(one, number.id) for one in nodes([body.pop()])):
            return None
    end = body.pop() if body else None
    if order is None or not isinstance(end, m.AugAssign) or not _is_of(end.target, number.id):
        return None
    return (number.id, order) if _takes(interp, order, number.id, body) else None


_BELOW = {"<": True, "!=": True, ">": False}
"""How a test says that a number is below a length, and whether the number stands in front."""


def _measured(interp: Interp, length: m.Expr) -> v.Value | None:
    """What an expression gives the length of."""
    if isinstance(length, m.Call):
        given = length.args[0] if len(length.args) == 1 and not length.keywords else None
        if not isinstance(given, m.Name) or called_in_library(interp, length) != LENGTH:
            return None
        return interp.value_of(given)
    value = interp.value_of(length) if isinstance(length, m.Name) else None
    return value.args.get("obj", 0) if isinstance(value, v.Obj) and value.api == LENGTH else None


def _is_of(node: Any, name: str) -> bool:
    """Whether a node is a variable, or an attribute of it."""
    return isinstance(node, m.Name) and node.id.partition(".")[0] == name


def _takes(interp: Interp, order: Order, name: str, body: list[Any]) -> bool:
    """Whether the body of a loop takes elements of sequences in this order by a number, and does nothing else with it."""
    fn = running(interp)
    if fn is None:
        return False
    above = parents(fn)
    taken = False
    for one in nodes(body):
        if not _is_of(one, name):
            continue
        user = above.get(id(one))
        if isinstance(user, m.Subscript) and user.index is one and isinstance(user.value, m.Name):
            owner = interp.eval(user.value)
            if isinstance(owner, v.Mapping):
                # A number is a key there, whatever the order of the keys is.
                continue
            held = interp.orders.of(owner)
            if held is not None and held.kind == order.kind and held.goes_with(order):
                taken = True
                continue
            stored = above.get(id(user))
            if isinstance(stored, m.Assign) and any(x is user for x in stored.targets):
                continue
        if not is_only_shown(interp, one, fn):
            return False
    return taken


def found_by_key(interp: Interp, args: v.Args, node: Any, key: str) -> Order | None:
    """``max(range(len(sizes)), key=lambda i: sizes[i])`` where that is an index: the position of the largest one, which
    belongs to the order of the sizes, unless several may be the largest."""
    array = _counted(args.pos[0]) if len(args.pos) == 1 else None
    order = interp.orders.of(array)
    written = next((one.value for one in getattr(node, "keywords", ()) if one.name == key), None)
    if order is None or order.kind != "sequence" or written is None or not is_index(running(interp), node):
        return None
    if isinstance(array, v.Items) and any(ties(interp, one) for one in array.elts):
        return None
    looked = _looked_up_by(interp, written, args.kw.get(key))
    held = interp.orders.of(interp.value_of(looked)) if looked is not None else None
    if held is None or held.kind != order.kind or not held.goes_with(order):
        return None
    return order._replace(kind=PLACE)


def _looked_up_by(interp: Interp, written: m.Expr, key: v.Value | None) -> m.Expr | None:
    """The sequence in which a key function looks up what it is given."""
    if isinstance(written, m.Name) and written.id.endswith(".__getitem__"):
        return m.Name(written.id.rpartition(".")[0], written.start, written.end)
    if not isinstance(key, v.Func) or key.fn.name != "<lambda>" or len(key.fn.params) != 1:
        return None
    for stmt in interp.body(key):
        item = stmt.value if isinstance(stmt, m.Return) else None
        if isinstance(item, m.Subscript) and isinstance(item.value, m.Name):
            if isinstance(item.index, m.Name) and item.index.id == key.fn.params[0].name:
                return item.value
    return None


def _counted(value: v.Value) -> v.Value | None:
    """What a range has a number for each element of."""
    if not isinstance(value, v.Obj) or value.api not in RANGES or value.args.star or value.args.dstar:
        return None
    first, last = (None, *value.args.pos)[-2:] if value.args.pos else (None, None)
    begins = first is None or (isinstance(first, v.Lit) and first.value == 0)
    if not begins or len(value.args.pos) > _BOUNDS or not isinstance(last, v.Obj) or last.api != LENGTH:
        return None
    return last.args.get("obj", 0)


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
