"""Sets in what a program saves by a library that asks a function for what it cannot save itself: ``json.dump(data, file,
default=list)``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.orders import Order
    from d9mlint.knowledge.schema import OrderEntry

_DEPTH = 4


def converts(entry: OrderEntry, args: v.Args) -> bool:
    """Whether a call saves data with a set in it, which it has converted by a function."""
    return bool(entry.converts) and entry.converts in args.kw and any(map(_sets, args.pos[:1]))


def order_of(interp: Interp, entry: OrderEntry, args: v.Args, node: Any) -> Order | None:
    """The order of what the function makes of the sets."""
    function = args.kw[entry.converts]
    if not isinstance(function, (v.Func, v.Partial, v.Ext)):
        return None
    return interp.orders.merged([interp.call(function, v.Args([one]), node) for one in _sets(args.pos[0])])


def _sets(value: v.Value) -> list[v.Items]:
    return list(_within(value, 0))


def _within(value: v.Value, depth: int) -> Iterator[v.Items]:
    """The sets in a value: itself, or somewhere in its elements."""
    if isinstance(value, v.Items) and value.kind == "s":
        yield value
        return
    held: list[v.Value] = []
    if isinstance(value, v.Items):
        held = value.elts
    elif isinstance(value, v.Mapping):
        held = list(value.items.values())
    elif isinstance(value, v.AnyOf):
        held = list(value.values)
    if depth < _DEPTH:
        for one in held:
            yield from _within(one, depth + 1)
