"""Methods of built-in types that are called on the class: ``set.union(first, second)`` is ``first.union(second)``."""

from __future__ import annotations

import builtins
import inspect
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.order_kinds import sample
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_CLASSES = {
    name: one for name, one in vars(builtins).items() if isinstance(one, type) and not name.startswith("_")
}
_SETS = frozenset({"set", "frozenset"})


def bound(interp: Interp, api: str, args: v.Args, node: Any) -> tuple[v.Member, v.Args] | None:
    """The method of its first argument that a call on a class stands for, and its other arguments; None where the call is
    not that of a method, or the first argument may be anything. Methods of sets have a set."""
    names = api.split(".")
    if len(names) != 3 or names[0] != "builtins" or names[1] not in _CLASSES:
        return None
    if not inspect.ismethoddescriptor(getattr(_CLASSES[names[1]], names[2], None)):
        return None
    owner = args.pos[0] if args.pos else None
    if isinstance(owner, v.Items | v.Mapping):
        return v.Member(owner, names[2]), args.rest()
    if names[1] not in _SETS or (owner is None and not args.star):
        return None
    return v.Member(
        _first_of(interp, node) if owner is None else v.Items("s", [], True), names[2]
    ), args.rest()


def _first_of(interp: Interp, node: Any) -> v.Items:
    """The sets that a call is given as ``*sets``, as one."""
    return v.Items("s", elements_given(interp, node), True)


def elements_given(interp: Interp, node: Any) -> list[v.Value]:
    """The elements of what a call is given as ``*parts``: of each list or set in a sequence, as far as they are known."""
    given = node.args[-1] if isinstance(node, m.Call) and node.args else None
    held = interp.value_of(given.value) if isinstance(given, m.Star) else None
    found: list[v.Value] = []
    for one in held.elts if isinstance(held, v.Items) else ():
        found += (one.elts if isinstance(one, v.Items) else sample(interp, one, None)) or [v.UNKNOWN]
    return found
