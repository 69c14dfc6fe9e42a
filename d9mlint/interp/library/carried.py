"""What functions are called with that a library runs in rounds, each with what the round before gave (``jax.lax.scan``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.library.keys import is_key
from d9mlint.interp.shapes import TF_TENSOR, Form, Sizes, form, is_number

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import RoleEntry

_DEPTH = 5
_ELEMENT = "[]"
"""Ends the name of an argument of which each round is given an element."""
_EACH = "*"
"""Ends the name of an argument that holds what each round is given, one after the other."""


def carry_of(run: RunView, role: RoleEntry, args: v.Args) -> v.Value | None:
    """What the first round of a loop of a library takes from before it, where keys are in it. Only these are known in the
    loop: the rounds change all else. None for anything else."""
    value = args.get(role.arg, role.pos) if role.arg else None
    return value if value is not None and keys_in(run, value) else None


def given_to_first(run: RunView, role: RoleEntry, carry: v.Value) -> v.Args:
    """What the function is called with in the first round."""
    kept = _keys_alone(run, carry, 0)
    return v.Args([kept if name == role.arg else v.UNKNOWN for name in role.more])


def tensors_of_round(role: RoleEntry, args: v.Args) -> v.Args | None:
    """What a loop of a library over tensors calls a function with in each round: tensors of as many dimensions as those that
    it begins with, or as an element of them has; None where none is known."""
    begun = args.get(role.arg, role.pos)
    if begun is None or args.star or args.dstar or all_hold(args, role.when) is not True:
        return None
    passed: list[v.Value] = []
    for name in role.more:
        kind = name.removeprefix(role.arg)
        if kind == _EACH:
            if not isinstance(begun, v.Items) or begun.open:
                return None
            passed += [_of_rank(() if is_number(one) else form(one).sizes) for one in begun.elts]
        else:
            passed.append(_of_rank(_element_sizes(form(begun))) if kind == _ELEMENT else v.UNKNOWN)
    return None if all(one is v.UNKNOWN for one in passed) else v.Args(passed)


def _element_sizes(known: Form) -> Sizes | None:
    """The sizes of an element of a tensor. Several rounds may be given the same number, and their gradients then add up at
    one place: those of a number are only known where no number is there twice."""
    if not known.sizes or (len(known.sizes) == 1 and not known.distinct):
        return None
    return known.sizes[1:]


def _of_rank(sizes: Sizes | None) -> v.Value:
    """A tensor of as many dimensions, if that is known: the rounds may change how long they are."""
    if sizes is None:
        return v.UNKNOWN
    made = v.Obj(TF_TENSOR, TF_TENSOR)
    made.start_with(Form((None,) * len(sizes)))
    return made


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
