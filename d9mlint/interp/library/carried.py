"""What functions are called with that a library runs in rounds, each with what the round before gave (``jax.lax.scan``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.library.keys import is_key

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import RoleEntry

_DEPTH = 5
_ELEMENT = "[]"
"""Ends the name of an argument of which each round is given an element."""


def carry_of(run: RunView, role: RoleEntry, args: v.Args) -> v.Value | None:
    """What the first round of a loop of a library takes from before it, where keys are in it. Only these are known in the
    loop: the rounds change all else. None for anything else."""
    value = args.get(role.arg, role.pos) if role.arg else None
    return value if value is not None and keys_in(run, value) else None


def given_to_first(run: RunView, role: RoleEntry, carry: v.Value) -> v.Args:
    """What the function is called with in the first round."""
    kept = _keys_alone(run, carry, 0)
    return v.Args([kept if name == role.arg else v.UNKNOWN for name in role.more])


def handed_on(role: RoleEntry, given: v.Value) -> v.Value:
    """What the next round takes of what the function gave: the first of two where each round is given an element."""
    if not any(name.endswith(_ELEMENT) for name in role.more):
        return given
    return given.elts[0] if isinstance(given, v.Items) and given.elts else v.UNKNOWN


def keys_in(run: RunView, value: v.Value, depth: int = 0) -> list[v.Obj]:
    """The keys that a value is, or holds in tuples, lists and dictionaries."""
    if is_key(run, value):
        return [value] if isinstance(value, v.Obj) else []
    held: list[v.Value] = []
    if depth < _DEPTH and isinstance(value, v.Items):
        held = value.elts
    elif depth < _DEPTH and isinstance(value, v.Mapping):
        held = list(value.items.values())
    return [key for part in held for key in keys_in(run, part, depth + 1)]


def _keys_alone(run: RunView, value: v.Value, depth: int) -> v.Value:
    if is_key(run, value):
        return value
    if depth < _DEPTH and isinstance(value, v.Items):
        parts = [_keys_alone(run, part, depth + 1) for part in value.elts]
        return v.Items(value.kind, parts, value.open)
    if depth < _DEPTH and isinstance(value, v.Mapping):
        items = {name: _keys_alone(run, part, depth + 1) for name, part in value.items.items()}
        return v.Mapping(items, value.open, value.attributes)
    return v.UNKNOWN
