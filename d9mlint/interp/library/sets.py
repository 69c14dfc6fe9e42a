"""Functions of libraries that combine sets: ``functools.reduce(set.union, sets)``, ``operator.or_(first, second)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.data import binary

if TYPE_CHECKING:
    from collections.abc import Callable

    from d9mlint.interp.interpreter import Interp


def _reduce(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``functools.reduce(step, sequence, start)``: the function is called for each element."""
    step, sequence = (args.pos[0], args.pos[1]) if len(args.pos) > 1 else (None, None)
    combines = isinstance(step, v.Ext) and _combines_sets(interp, step.name)
    follows = isinstance(step, v.Func | v.Partial) or (
        isinstance(step, v.Ext) and step.name == "builtins.getattr"
    )
    if not (follows or combines) or not isinstance(sequence, v.Items):
        return v.Items("s", [], True) if combines and args.pos[2:] and _is_set(args.pos[2]) else None
    rest = list(sequence.elts)
    if sequence.open and (not rest or not all(map(_is_set, rest))):
        return None
    if not interp.may_unroll(len(rest)) or (not rest and len(args.pos) < 3):
        return None
    value = args.pos[2] if len(args.pos) > 2 else rest[0] if sequence.open else rest.pop(0)
    for one in rest:
        value = interp.call(args.pos[0], v.Args([value, one]), node)
    return value


def _combines_sets(interp: Interp, name: str) -> bool:
    """Whether a function of a library gives a set of two sets."""
    return name in _SET_OPERATORS or name.startswith(("builtins.set.", "builtins.frozenset."))


def _is_set(value: v.Value) -> bool:
    return isinstance(value, v.Items) and value.kind == "s"


def _set_operator(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``operator.or_(first, second)``: a set of two sets."""
    if len(args.pos) != 2 or not _is_set(args.pos[0]):
        return None
    return binary(interp, _SET_OPERATORS[api], args.pos[0], args.pos[1], node)


_SET_OPERATORS = {
    "operator.or_": "|",
    "operator.and_": "&",
    "operator.sub": "-",
    "operator.xor": "^",
    "operator.ior": "|",
}

SET_MODELS: dict[str, Callable[[Interp, str, v.Args, Any], v.Value | None]] = {
    "functools.reduce": _reduce,
    **dict.fromkeys(_SET_OPERATORS, _set_operator),
}
