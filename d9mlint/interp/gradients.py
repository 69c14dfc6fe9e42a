"""Tensors that no gradient reaches, as far as can be seen: data, indices, buffers and what is made of them; and
tensors that were fetched from the device."""

from __future__ import annotations

from d9mlint.interp import values as v

_CREATING = frozenset(
    f"torch.{name}"
    for name in (
        "zeros",
        "ones",
        "full",
        "empty",
        "eye",
        "tensor",
        "as_tensor",
        "from_numpy",
        "arange",
        "linspace",
        "logspace",
        "rand",
        "randn",
        "randint",
        "randperm",
        "zeros_like",
        "ones_like",
        "full_like",
        "empty_like",
        "rand_like",
        "randn_like",
        "randint_like",
    )
)
# Functions of which only the first argument carries a gradient.
_ONE_INPUT = frozenset({"pad", "interpolate", "upsample", "gather", "index_select", "reshape", "permute"})
# Methods that give their receiver's elements in another form, or some of them.
_FORMING = frozenset(
    {
        "to",
        "cuda",
        "cpu",
        "float",
        "double",
        "half",
        "bfloat16",
        "type",
        "type_as",
        "clone",
        "contiguous",
        "view",
        "view_as",
        "reshape",
        "flatten",
        "squeeze",
        "unsqueeze",
        "expand",
        "expand_as",
        "repeat",
        "permute",
        "transpose",
        "t",
        "flip",
        "gather",
        "index_select",
        "pin_memory",
        "detach",
    }
)


def detached(value: v.Value) -> bool:
    """Whether a value is a tensor that carries no gradient."""
    if isinstance(value, v.AnyOf):
        return all(detached(one) for one in value.values)
    return isinstance(value, v.Obj) and value.detached


def _without(value: v.Value) -> bool:
    """Whether an argument brings no gradient in: a plain value, or tensors without one."""
    if isinstance(value, v.Items):
        return not value.open and all(_without(one) for one in value.elts)
    return isinstance(value, (v.Lit, v.Ext)) or detached(value)


def of_call(api: str, args: v.Args) -> bool:
    """Whether the tensor that a library function gives carries no gradient."""
    wanted = args.kw.get("requires_grad")
    if args.dstar or (wanted is not None and v.truth(wanted) is not False):
        return False
    if api in _CREATING:
        return True
    one = api.rpartition(".")[2] in _ONE_INPUT
    inputs = args.pos[:1] if one else args.values()
    return any(_holds(value) for value in inputs) and all(_without(value) for value in inputs)


def _holds(value: v.Value) -> bool:
    return any(_holds(one) for one in value.elts) if isinstance(value, v.Items) else detached(value)


def of_method(owner: v.Value, name: str) -> bool:
    """Whether the tensor that a method gives carries no gradient."""
    return name in _FORMING and detached(owner)


def stays_on_cpu(owner: v.Value, name: str) -> bool:
    """Whether a method of a tensor on the CPU gives one there too."""
    return name in _FORMING and name not in ("to", "cuda") and isinstance(owner, v.Obj) and owner.on_cpu


def of_operator(left: v.Value, right: v.Value) -> bool:
    """Whether the result of an operator carries no gradient."""
    return _without(left) and _without(right)


def write(owner: v.Value, *written: v.Value) -> None:
    """Something is written into a tensor: it carries a gradient from now on unless that has none."""
    if isinstance(owner, v.Obj) and owner.detached and not all(_without(value) for value in written):
        owner.detached = False
