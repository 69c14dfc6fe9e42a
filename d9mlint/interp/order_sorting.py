"""Data in arbitrary order that the program sorts: in place, as a frame, or by the positions that ``argsort`` gives.

What is made of data in arbitrary order, such as an array, may still be sorted; whether it was is known at the end of
the run. ``numpy.argsort(ids)`` gives the positions that sort, another kind of order: what came about together with
the ids, taken at these positions, is sorted by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v

if TYPE_CHECKING:
    from d9mlint.interp.orders import Order, Orders
    from d9mlint.knowledge.schema import OrderEntry

SORTING = "sorting"
"""The kind of the order of positions that sort what they were made from."""
SORT_KEY = "@sort key"
"""Active in the key function of a sort: positions there are those of the elements that are compared."""
LENGTH = "builtins.len"
_MOST_VALUES = 32


def settle(orders: Orders, value: v.Value | None, asked: bool = False) -> None:
    """The program has sorted this, or has only ``asked`` which elements it has, and so what it was made from: another array,
    or each of those that it joins. Where it may be one of several values, it does that with each of them."""
    left = [value]
    seen = set[int]()
    while left and len(seen) < _MOST_VALUES:
        one = left.pop()
        if isinstance(one, v.AnyOf):
            left += one.values
        elif isinstance(one, v.Obj) and id(one) not in seen:
            seen.add(id(one))
            orders.settled.append(one)
            left += _made_from(orders, one, asked)


def _made_from(orders: Orders, one: v.Obj, asked: bool) -> list[v.Value]:
    """What an array was made from: its first argument, all where it joins them, and the elements of a list of them."""
    if one.owner is not None:
        return [one.owner]
    entry = orders.kb.order(one.api)
    joins = entry is not None and entry.flattens != ""
    found: list[v.Value] = []
    for value in one.args.pos if joins else one.args.pos[:1]:
        found += value.elts if isinstance(value, v.Items) and (asked or joins) else (value,)
    return found


def look_up(orders: Orders, entry: OrderEntry, args: v.Args) -> v.Args:
    """The arguments of a call without those of which it looks up elements by a key. Functions are called."""
    places = {place for name, place in entry.looked_up.items() if name not in args.kw}
    found = [args.get(name, place) for name, place in entry.looked_up.items()]
    if not any(isinstance(one, v.Obj | v.Mapping | v.Items | v.Member | v.AnyOf) for one in found):
        return args
    for one in found:
        settle(orders, one)
    return v.Args(
        [v.UNKNOWN if place in places else one for place, one in enumerate(args.pos)],
        {name: one for name, one in args.kw.items() if name not in entry.looked_up},
        args.star,
        args.dstar,
    )


def covers(sorting: Order | None, order: Order | None) -> bool:
    """Whether positions sort data in an order: both come from the same places."""
    return (
        sorting is not None
        and order is not None
        and sorting.kind == SORTING
        and order.kind != SORTING
        and set(order.keys) <= set(sorting.keys)
    )


def positions(order: Order | None) -> Order | None:
    """What sorting by data in an order gives: positions in it."""
    return order._replace(kind=SORTING, loop=0) if order is not None else None


def taken(orders: Orders, args: v.Args, owner: v.Value | None) -> bool:
    """Whether a call takes data in arbitrary order at the positions that sort it: ``numpy.take(names, order)``."""
    held: list[tuple[v.Value, Order]] = []
    found: Order | None = None
    for value in args.values() if owner is None else (owner, *args.values()):
        order = orders.of(value)
        if order is not None:
            held.append((value, order))
            if found is None and order.kind == SORTING:
                found = order
    if found is None:
        return False
    others = [(value, order) for value, order in held if order.kind != SORTING]
    if not others or not all(covers(found, order) for _, order in others):
        return False
    for value, _ in others:
        settle(orders, value)
    return True


def unsettled(orders: Orders) -> list[Any]:
    """The orders of data that the program has made and not sorted."""
    settled = {id(one) for one in orders.settled}
    return [one.order for one in orders.kept if id(one) not in settled]
