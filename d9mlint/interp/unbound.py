"""Methods of built-in types that are called on the class: ``set.union(first, second)`` is ``first.union(second)``."""

from __future__ import annotations

import builtins
import inspect
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
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
    given = node.args[0] if isinstance(node, m.Call) and node.args else None
    held = interp.eval(given.value) if isinstance(given, m.Star) and isinstance(given.value, m.Name) else None
    sets = held.elts if isinstance(held, v.Items) else []
    return v.Items("s", [part for one in sets if isinstance(one, v.Items) for part in one.elts], True)
