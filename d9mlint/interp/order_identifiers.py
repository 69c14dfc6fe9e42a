"""Identifiers that differ between runs, such as those of ``uuid.uuid4()``: what they are decides nothing, but what is
sorted by them has an arbitrary order, and so has what is chosen by a number that is made from one.

A value that is an identifier, or is made from one, carries an order of the kind ``IDENTIFIER``, as do a list of
identifiers and a mapping with identifiers as its keys. Only this module looks at it: nothing else depends on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.columns import TABLES, is_column
from d9mlint.interp.heap import FIELD, HEAP
from d9mlint.interp.order_kinds import is_text

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.orders import Order, Orders
    from d9mlint.ir import nodes as m
    from d9mlint.knowledge.schema import OrderEntry

IDENTIFIER = "identifier"
"""The kind of the order of an identifier, and of what holds some."""
_CHOICE = -1
"""The loop of the order of a number that an identifier was reduced to."""
_MOST = 64
_CHOOSING = frozenset({"%", "&", "//", ">>", "^"})
_KEYS = frozenset({"keys", "items"})
_COLUMN = "@identifiers in "
"""How the attributes of a table begin that stand for its columns of identifiers."""


def of(value: v.Value | None) -> Order | None:
    """Where an identifier comes from, or those that are in a list or the keys of a mapping."""
    if isinstance(value, (v.Obj, v.Items, v.Mapping)):
        order = value.order
        if value.birth < HEAP.act.start:
            HEAP.read(value, FIELD, value, "order", order)
        return order if order is not None and order.kind == IDENTIFIER else None
    if isinstance(value, v.AnyOf):
        return next((order for one in value.values if (order := of(one)) is not None), None)
    return None


def leading(value: v.Value | None) -> Order | None:
    """The identifier by which a value is compared with others: itself, or the first element of a tuple."""
    if isinstance(value, v.Items) and value.kind in "tl" and value.elts:
        return leading(value.elts[0])
    return of(value) if isinstance(value, (v.Obj, v.AnyOf)) else None


def compared(value: v.Value | None) -> Order | None:
    """The identifiers by which the elements of a value are compared when it is sorted."""
    own = of(value)
    if own is not None or not isinstance(value, v.Items):
        return own
    return next((order for one in value.elts[:_MOST] if (order := leading(one)) is not None), None)


def ranked(
    interp: Interp, entry: OrderEntry | None, api: str, args: v.Args, node: Any, owner: v.Value | None
) -> Order | None:
    """The identifiers by which a call sorts, or of which it gives the smallest or largest."""
    by_column = _by_column(interp, api, args, owner)
    if by_column is not None:
        return by_column
    if entry is None or not entry.key:
        return None
    if entry.key in args.kw:
        return interp.orders.ranked.pop(id(node), None)
    if owner is None and len(args.pos) > 1:
        return next((order for one in args.pos if (order := leading(one)) is not None), None)
    return compared(owner if owner is not None else args.pos[0] if args.pos else None)


def called(
    orders: Orders,
    entry: OrderEntry | None,
    api: str,
    args: v.Args,
    result: v.Value,
    owner: v.Value | None,
    ranked: Order | None,
) -> v.Value:
    """The result of a library call, with what is known of identifiers."""
    role, name = entry.role if entry is not None else "", api.rpartition(".")[2]
    _keep_columns(api, args, result, owner)
    if ranked is not None:
        if owner is not None and (role == "settle" or v.truth(args.kw.get("inplace") or v.FALSE)):
            orders.put(owner, arbitrary(ranked))
        elif entry is not None and entry.gives == "element":
            orders.decide(arbitrary(ranked))
        else:
            return orders.carried(result, arbitrary(ranked))
        return result
    if role == "grow":
        _grown(orders, name, args, owner)
        return result
    if role == "push":
        orders.decide(arbitrary(leading(args.get("item", 1))))
        return result
    order: Order | None = None
    if isinstance(owner, v.Mapping):
        order = of(owner) if name in _KEYS else None
    elif isinstance(owner, v.Obj):
        order = of(owner) if type(result) is not v.Items else None
    elif owner is None and (role == "carry" or api.startswith("hashlib.")) and args.pos:
        order = compared(args.pos[0])
        for value in args.pos[1:]:
            order = order or of(value)
    return orders.carried(result, order) if order is not None else result


def arbitrary(order: Order | None) -> Order | None:
    """The order that sorting by identifiers gives."""
    return order._replace(kind="sequence", loop=0) if order is not None else None


def _by_column(interp: Interp, api: str, args: v.Args, owner: v.Value | None) -> Order | None:
    """The identifiers in the first column by which a table is sorted, or grouped in the order of what is in it."""
    if not isinstance(owner, v.Obj) or owner._attrs is None:
        return None
    role = interp.kb.role(api, "orders-by-column")
    if role is None or all_hold(args, role.when) is False:
        return None
    named = args.get(role.arg, role.pos)
    if isinstance(named, v.Items) and named.elts:
        named = named.elts[0]
    return of(owner.attrs.get(f"{_COLUMN}{named.value}")) if isinstance(named, v.Lit) else None


def _keep_columns(api: str, args: v.Args, result: v.Value, owner: v.Value | None) -> None:
    """Note which columns of a table that is made hold identifiers: those of what it is made from."""
    if not isinstance(result, v.Obj) or not api.startswith(TABLES):
        return
    for value in (owner, *args.pos, *args.kw.values()):
        for one in value.elts[:_MOST] if isinstance(value, v.Items) else (value,):
            if isinstance(one, v.Mapping):
                for name, column in one.items.items():
                    _note_column(result, name, compared(column))
            elif isinstance(one, v.Obj) and one._attrs is not None and one is not result:
                held = [(name, of(column)) for name, column in one.attrs.items() if name.startswith(_COLUMN)]
                for name, order in held:
                    _note_column(result, name.removeprefix(_COLUMN), order)


def _note_column(table: v.Obj, name: object, order: Order | None) -> None:
    if order is not None:
        column = v.Obj("?", "?")
        column.order = order
        table.attrs[f"{_COLUMN}{name}"] = column


def keyed(orders: Orders, owner: v.Value, index: v.Value, value: v.Value | None = None) -> None:
    """``owner[index] = value``."""
    chosen(orders, index)
    if isinstance(owner, v.Obj) and isinstance(index, v.Lit) and is_column(owner):
        if f"{_COLUMN}{index.value}" in owner.attrs:
            del owner.attrs[f"{_COLUMN}{index.value}"]
        _note_column(owner, index.value, compared(value))
    order = leading(index) if isinstance(owner, v.Mapping) else None
    if order is not None and owner.order is None:  # type: ignore[union-attr]
        orders.put(owner, order)


def _grown(orders: Orders, name: str, args: v.Args, owner: v.Value | None) -> None:
    """``rows.append((identifier, row))``, ``jobs.setdefault(identifier, [])``."""
    value = args.pos[-1] if args.pos else None
    chosen(orders, *args.pos)
    if isinstance(owner, v.Mapping):
        order = leading(args.pos[0]) if name == "setdefault" and args.pos else None
        order = order or (of(value) if name == "update" else None)
    else:
        order = compared(value) if name in ("extend", "update") else leading(value)
    if order is not None and isinstance(owner, (v.Items, v.Mapping)) and owner.order is None:
        orders.put(owner, order)


def operated(interp: Interp, node: m.BinOp, left: v.Value, right: v.Value) -> Order | None:
    """The identifier that ``left op right`` is made from; reduced, it may choose something."""
    order = of(left)
    if order is not None and node.op in _CHOOSING and not is_text(interp, left, node.left):
        return order._replace(loop=_CHOICE)
    return order or of(right)


def made_from(result: v.Value, order: Order) -> v.Value:
    """The result of an operator: another value than what it was made from."""
    made = v.Obj("?", result.type if isinstance(result, v.Obj) else "?")
    if isinstance(result, v.Obj):
        made.data, made.node, made.file = result.data, result.node, result.file
        made.api = result.api
    made.order = order
    return made


def chosen(orders: Orders, *values: v.Value) -> None:
    """Something is chosen by values: by a test, a comparison, as an index, as one of several numbers."""
    for value in values:
        order = of(value) if isinstance(value, v.Obj) else None
        if order is not None and order.loop == _CHOICE:
            orders.decide(arbitrary(order))
