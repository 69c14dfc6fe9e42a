"""Sets among the elements of a sequence, which a call goes through: ``chain(*sets)``, ``map(list, sets)``. Texts in what a
model is asked, in which the order of a set or a listing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from d9mlint.interp import values as v
from d9mlint.interp.order_kinds import OBJECT, TEXT, TEXTS_ADDED, kind_of, kind_of_elements

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.orders import Order
    from d9mlint.knowledge.schema import OrderEntry

MESSAGES = {
    TEXT: "iteration order of these sets of strings differs between runs (hash randomization)",
    OBJECT: "iteration order of these sets differs between runs: their objects are hashed by address",
}
UNKNOWN_ELEMENTS = (
    "iteration order of these sets differs between runs if they contain strings (hash randomization)"
)
WAITED_FOR = (
    "the sets that `{name}` gives have an order that differs between runs: their tasks are hashed by address"
)
HELP_WAITED_FOR = "go through the tasks in the order in which they were started"
_SEVERAL = 2
_DEPTH = 3
_STATES = ("__getstate__", "__reduce__", "__reduce_ex__")
"""Methods that say what is stored of an object."""
_MOST_ATTRIBUTES = 64
HELP = "use `sorted(...)` for the elements of each set"


def sets_in(value: v.Value | None) -> list[v.Items]:
    """The sets among the elements of a list or tuple, as far as they are known."""
    if not isinstance(value, v.Items) or value.kind == "s":
        return []
    return [part for one in value.elts for part in v.alternatives(one) if _is_set(part)]


def _is_set(value: v.Value) -> TypeGuard[v.Items]:
    return isinstance(value, v.Items) and value.kind == "s"


def chained(interp: Interp, entry: OrderEntry, args: v.Args, node: Any) -> Order | None:
    """The order of what puts the elements of the elements of a sequence one after the other."""
    if entry.flattens == "starred" and not args.star:
        return None
    return order_inside(interp, args.get("", 0), node)


def order_inside(interp: Interp, value: v.Value | None, node: Any) -> Order | None:
    """The order in which the sets in a sequence are gone through."""
    found = [interp.orders.iterated_inside(interp, one, node) for one in sets_in(value)]
    known = [one for one in found if one is not None]
    return known[0].together(known[1:]) if known else None


def of_state(interp: Interp, args: v.Args) -> Order | None:
    """The orders in the attributes of objects of the program, which what stores them stores, too; nothing where their class
    says what is stored."""
    found: list[Order] = []
    for value in args.values():
        for one in v.alternatives(value):
            if isinstance(one, v.Inst) and not any(
                cls.env.read(name) is not None for cls in one.cls.mro() for name in _STATES
            ):
                orders = (interp.orders.deep(held, 1) for held in list(one.attrs.values())[:_MOST_ATTRIBUTES])
                found += [order for order in orders if order is not None]
    return found[0].together(found[1:]) if found else None


def chosen_set(args: v.Args, result: v.Value) -> v.Value:
    """The set that ``max(sets, key=len)`` gives; the result itself where not only sets are chosen from."""
    given = args.pos[0] if len(args.pos) == 1 and not args.star else None
    found = sets_in(given)
    if not found or not isinstance(given, v.Items) or not all(map(_is_set, given.elts)):
        return result
    return v.Items("s", [part for one in found for part in one.elts], any(one.open for one in found))


def made_sets(interp: Interp, entry: OrderEntry, result: v.Value) -> v.Value:
    """The set of texts, or the sequence of such sets, that a function of a library gives; what it gives itself where its
    elements are not known to be texts."""
    if kind_of_elements(interp, result) != TEXT:
        return result
    made = v.Items("s", [v.Obj("builtins.str")], True)
    return made if entry.gives == "set" else v.Items("l", [made], True)


def waited_for(interp: Interp, args: v.Args, node: Any, api: str, result: v.Value) -> v.Value:
    """The sets of the tasks that have ended and of the others, which a call gives that waits for all of them."""
    from d9mlint.interp.text import node_text

    given = args.get("fs", 0)
    if isinstance(given, v.Items) and not given.open and len(given.elts) < _SEVERAL:
        return result
    orders = interp.orders
    what = WAITED_FOR.replace("{name}", node_text(node, api))
    order = orders.made(interp, "DET210", node, what, HELP_WAITED_FOR, subject=api)
    return v.Items("t", [orders.carried(v.UNKNOWN, order), orders.carried(v.UNKNOWN, order)])


def note_texts(interp: Interp, args: v.Args, owner: v.Value) -> None:
    """Something is added to an object of a library: it may be texts, or pairs of texts."""
    if isinstance(owner, v.Obj) and TEXTS_ADDED not in owner.attrs:
        if any(TEXT in (kind_of(interp, one), kind_of_elements(interp, one)) for one in args.pos[:2]):
            owner.attrs[TEXTS_ADDED] = v.TRUE


def order_of_texts(interp: Interp, value: v.Value | None, depth: int = 0) -> Order | None:
    """The order that is written in a text, or in the texts of a list or dictionary."""
    if isinstance(value, v.AnyOf):
        parts = list(value.values)
    elif isinstance(value, v.Items):
        parts = value.elts
    elif isinstance(value, v.Mapping):
        parts = list(value.items.values())
    else:
        is_text = isinstance(value, v.Obj) and value.order is not None and kind_of(interp, value) == TEXT
        return interp.orders.of(value) if is_text else None
    if depth >= _DEPTH:
        return None
    found = [order_of_texts(interp, one, depth + 1) for one in parts]
    known = [one for one in found if one is not None]
    return known[0].together(known[1:]) if known else None
