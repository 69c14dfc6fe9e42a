"""Of what functions take gradients that a library differentiates (``jax.grad``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.context import DIFFERENTIATED, FIXED_WEIGHTS, TRAINED_WEIGHTS

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import RoleEntry

_DEPTH = 5
_WEIGHTS = frozenset({TRAINED_WEIGHTS, FIXED_WEIGHTS})
_CALLED = ".__call__"


def with_marks(role: RoleEntry, transform: v.Obj, args: v.Args) -> v.Args:
    """The arguments with which the function runs of which ``transform`` takes gradients; those are marked that they are
    taken of. ``more`` of the role names the argument of ``transform`` that numbers them: the first one without it."""
    if not role.more or args.star:
        return args
    numbered = transform.args.get(role.more[0], (role.pos or 0) + 1)
    wanted = numbered.elts if isinstance(numbered, v.Items) else [v.Lit(0) if numbered is None else numbered]
    numbers = {one.value for one in wanted if isinstance(one, v.Lit)}
    pos = [_marked(value) if number in numbers else value for number, value in enumerate(args.pos)]
    return v.Args(pos, args.kw, args.star, args.dstar)


def _marked(value: v.Value) -> v.Value:
    if value is v.UNKNOWN or isinstance(value, v.Member):
        value = v.Obj(f"?.{DIFFERENTIATED}")
    _mark(value, 0)
    return value


def _mark(value: v.Value, depth: int) -> None:
    if isinstance(value, v.Obj) and DIFFERENTIATED not in value.attrs:
        value.attrs[DIFFERENTIATED] = v.TRUE
    for part in _parts(value) if depth < _DEPTH else ():
        _mark(part, depth + 1)


def _parts(value: v.Value) -> list[v.Value]:
    match value:
        case v.Items():
            return list(value.elts)
        case v.AnyOf():
            return list(value.values)
        case v.Mapping():
            return list(value.items.values())
        case v.Inst() | v.Obj():
            return list(value.attrs.values())
    return []


def _holds_marked(value: v.Value, depth: int = 0) -> bool:
    if isinstance(value, v.Obj) and DIFFERENTIATED in value.attrs:
        return True
    return depth < _DEPTH and any(_holds_marked(part, depth + 1) for part in _parts(value))


def with_weights(run: RunView, weights: list[v.Value]) -> tuple[str, ...]:
    """The context in which a module runs that is given its weights where a function is differentiated."""
    if DIFFERENTIATED not in run.contexts:
        return ()
    return (TRAINED_WEIGHTS if any(map(_holds_marked, weights)) else FIXED_WEIGHTS,)


def is_taken_of_layer(run: RunView, layer: v.Obj) -> bool:
    """Whether a gradient is taken of the weights of a layer where it is called: it is part of what the running function is
    differentiated by, or of a module whose weights are."""
    if DIFFERENTIATED not in run.contexts:
        return False
    return DIFFERENTIATED in layer.attrs or run.contexts.innermost(_WEIGHTS) == TRAINED_WEIGHTS


def is_taken(run: RunView, value: v.Value | None, depth: int = 0) -> bool:
    """Whether a gradient is taken of a value: the running function is differentiated by it, or a layer whose weights it is
    differentiated by has given it."""
    if not isinstance(value, v.Obj) or depth > _DEPTH or DIFFERENTIATED not in run.contexts:
        return False
    if DIFFERENTIATED in value.attrs:
        return True
    layer = value.owner
    if isinstance(layer, v.Obj) and value.api.endswith(_CALLED) and is_taken_of_layer(run, layer):
        return True
    return run.kb.role(value.api, "no-variable") is None and is_taken(run, layer, depth + 1)
