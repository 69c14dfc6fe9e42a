"""Whether what a dataset holds is in memory alone, where a later run finds none of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import Role

_DEEPEST = 32
"""How many calls are followed to the one that made a dataset."""


def is_held_in_memory(
    run: RunView, api: str, args: v.Args, owner: v.Value | None, kind: str = "", depth: int = 0
) -> bool:
    """Whether what a call gives is seen to be held in memory: by what the call itself does, by what it is given, or, of
    a method that gives an object of the class of its receiver (``kind``), since that one is."""
    if depth > _DEEPEST or _plays(run, api, "held-in-file", args, owner):
        return False
    if _plays(run, api, "held-in-memory", args, owner):
        return True
    role = run.kb.role(api, "held-as-given")
    if role is not None:
        given = args.get(role.arg, role.pos)
        return given is not None and _is_value(run, given, depth + 1)
    of_class = isinstance(owner, v.Obj) and (not kind or owner.type == kind)
    return of_class and owner is not None and _is_value(run, owner, depth + 1)


def _is_value(run: RunView, value: v.Value, depth: int) -> bool:
    """The same of a value; of several that it may be, or that it holds, all must be."""
    if isinstance(value, v.Obj):
        return is_held_in_memory(run, value.api, value.args, value.owner, value.type, depth)
    some: tuple[v.Value, ...] = ()
    if isinstance(value, v.AnyOf):
        some = value.values
    elif isinstance(value, v.Items) and not value.open:
        some = tuple(value.elts)
    elif isinstance(value, v.Mapping) and not value.open:
        some = tuple(value.items.values())
    return bool(some) and all(_is_value(run, one, depth + 1) for one in some)


def _plays(run: RunView, api: str, role: Role, args: v.Args, owner: v.Value | None) -> bool:
    entry = run.kb.role(api, role)
    return entry is not None and all_hold(args, entry.when, owner) is True
