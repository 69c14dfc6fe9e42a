"""Objects of libraries that take steps with the parameters of a model: optimizers, whichever library they are of."""

from __future__ import annotations

from collections.abc import Iterator

from d9mlint.interp import tensors
from d9mlint.interp import values as v

STEPS = "@steps"
"""Attribute of an object of a library that has taken a step with the parameters it was made of."""
_STEP = "step"
_KNOWN = "torch.optim."
"""The optimizers and schedulers of PyTorch are known by their type."""
_GROUP = "params"
"""The key of a group of parameters under which they stand."""
_DEEPEST = 4


def take_step(owner: v.Value, name: str, args: v.Args) -> None:
    """A method is called: one of an object that was made of parameters may be a step of an optimizer, and so may be one
    that is given such an object, as that of a scaler of losses. What is given parameters in each step averages them."""
    if name != _STEP or _given_parameters(args):
        return
    for one in (owner, *args.values()):
        if not isinstance(one, v.Obj) or one.owner is not None or one.type != one.api:
            continue
        if not one.api.startswith(_KNOWN) and STEPS not in one.attrs and _given_parameters(one.args):
            one.attrs[STEPS] = v.TRUE


def _given_parameters(args: v.Args) -> bool:
    return next(parameters_in(args), None) is not None


def parameters_in(args: v.Args) -> Iterator[v.Obj]:
    """The parameters of models among arguments, some of those of one, or groups of them."""
    for one in args.values():
        yield from _parameters(one)


def _parameters(value: v.Value, depth: int = 0) -> Iterator[v.Obj]:
    if depth > _DEEPEST:
        return
    if isinstance(value, v.Obj) and tensors.MODULE_OF in value.attrs:
        if value.api == tensors.PARAMETER or value.api.endswith("parameters"):
            yield value
        return
    for one in _parts(value):
        yield from _parameters(one, depth + 1)


def optimized_by(optimizer: v.Obj) -> list[v.Value]:
    """The models whose parameters an optimizer was given; none where it may have been given others."""
    given = optimizer.args.get("params", 0)
    found = _modules(given) if given is not None else None
    return found or []


def _modules(value: v.Value, depth: int = 0) -> list[v.Value] | None:
    if isinstance(value, v.Obj) and tensors.MODULE_OF in value.attrs:
        of_parameters = value.api == tensors.PARAMETER or value.api.endswith("parameters")
        return [value.attrs[tensors.MODULE_OF]] if of_parameters else None
    parts = [one for one in _parts(value) if not isinstance(one, v.Func)]
    if not parts or depth > _DEEPEST:
        return None
    held = [_modules(one, depth + 1) for one in parts]
    return None if None in held else [one for some in held if some is not None for one in some]


def _parts(value: v.Value) -> Iterator[v.Value]:
    if isinstance(value, v.AnyOf):
        yield from value.values
    elif isinstance(value, v.Items):
        yield from value.elts
    elif isinstance(value, v.Mapping) and _GROUP in value.items:
        yield value.items[_GROUP]
    elif isinstance(value, v.Obj) and value.api.startswith(("builtins.", "itertools.")):
        yield from value.args.values()
