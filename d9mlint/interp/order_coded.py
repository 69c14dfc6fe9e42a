"""Numbers that stand for the elements of sequences which are only compared: what a distance counts is the same whichever
numbers the elements have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.liveness import may_be_shared
from d9mlint.ir.traversal import called_name, nodes, parents, receiver

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_ONE_FOR_ONE = frozenset({"chr", "list", "tuple"})
"""Functions that give another value for each other number, or the same ones in another sequence."""


def is_only_code(interp: Interp, function: m.Function, name: str) -> bool:
    """Whether a function takes numbers out of one of its mappings only for the elements of sequences that are compared with
    each other, element by element: ``distance([ids[w] for w in first], [ids[w] for w in second])``."""
    taken: dict[str, bool] = {}
    given: dict[int, tuple[m.Call, set[int]]] = {}
    if not _is_only_compared(interp, function, name, True, taken, given):
        return False
    if may_be_shared(interp.whole(interp.frame.file), function, {name, *taken}):
        return False
    return all(len(coded) == len(call.args) > 1 for call, coded in given.values())


def _is_only_compared(
    interp: Interp,
    function: m.Function,
    name: str,
    mapping: bool,
    taken: dict[str, bool],
    given: dict[int, tuple[m.Call, set[int]]],
) -> bool:
    """Whether the numbers in a mapping, or in a sequence, are only compared. ``taken`` are the sequences that have been
    looked at, and ``given`` which arguments of the calls that compare have such numbers."""
    above, stores, reads = parents(function), 0, 0
    for one in nodes(function.body):
        if not isinstance(one, m.Name) or one.id.partition(".")[0] != name:
            continue
        up: Any = above.get(id(one))
        if isinstance(up, m.Assign) and any(target is one for target in up.targets):
            stores += 1
            continue
        reads += 1
        node: Any = one
        if mapping:
            if not isinstance(up, m.Subscript) or up.value is not one:
                return False
            node, up = up, above.get(id(up))
        while _keeps_apart(node, up):
            node, up = up, above.get(id(up))
        if isinstance(up, m.Call) and any(arg is node for arg in up.args) and _compares(interp, up):
            given.setdefault(id(up), (up, set()))[1].add(id(node))
            continue
        target = up.targets[0] if mapping and isinstance(up, m.Assign) and len(up.targets) == 1 else None
        if not isinstance(target, m.Name) or "." in target.id:
            return False
        if target.id not in taken:
            taken[target.id] = True
            if not _is_only_compared(interp, function, target.id, False, taken, given):
                return False
    return stores == 1 and reads > 0


def _keeps_apart(node: Any, up: Any) -> bool:
    """Whether what is made of numbers tells the same ones apart: a sequence of them, or of characters."""
    if isinstance(up, m.Comp):
        return up.elt is node and up.value is None and up.kind in ("l", "g")
    if not isinstance(up, m.Call) or not any(arg is node for arg in up.args):
        return False
    name = called_name(up)
    # The characters of a text, between which nothing stands.
    return name == "join" or (name in _ONE_FOR_ONE and not receiver(up))


def _compares(interp: Interp, call: m.Call) -> bool:
    """Whether a call only asks which elements of its arguments are equal."""
    func = interp.value_of(call.func)
    entry = interp.kb.order(interp.kb.canonical(func.name)) if isinstance(func, v.Ext) else None
    return entry is not None and entry.compares
