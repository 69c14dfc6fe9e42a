"""Tests of how many dimensions a tensor has, where that is known: ``if x.dim() == 2``, ``if len(x.shape) > 2``."""

from __future__ import annotations

from d9mlint.interp import shapes
from d9mlint.interp import values as v

COUNTING = ("dim", "ndimension")
"""Methods of tensors that give the number of dimensions."""
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def outcome(op: str, left: v.Value, right: v.Value) -> bool | None:
    """What a comparison of a number of dimensions with numbers gives; None where that is not known, or it is of others."""
    tensor = _counted(left)
    if tensor is None:
        tensor, right = _counted(right), left
        op = _MIRRORED.get(op, op)
        if tensor is None or op in ("in", "not in"):
            return None
    if op in ("in", "not in"):
        named = right.elts if isinstance(right, v.Items) and not right.open else []
    else:
        named = [right]
    numbers = [
        one.value for one in named if isinstance(one, v.Lit) and type(one.value) is int and not one.option
    ]
    if not numbers or len(numbers) != len(named):
        return None
    known = shapes.form(tensor)
    if known.sizes is None:
        return _with_at_least(op, known.least, numbers)
    return _with(op, len(known.sizes), numbers)


def _with(op: str, count: int, numbers: list[int]) -> bool | None:
    """What the comparison gives for a number of dimensions."""
    number = numbers[0]
    if op in ("==", "in"):
        return count in numbers
    if op in ("!=", "not in"):
        return count not in numbers
    if op in ("<", "<="):
        return count < number or (op == "<=" and count == number)
    if op in (">", ">="):
        return count > number or (op == ">=" and count == number)
    return None


def _with_at_least(op: str, least: int, numbers: list[int]) -> bool | None:
    """The same where a tensor has so many dimensions, or more."""
    if not least:
        return None
    if op in ("==", "in", "!=", "not in"):
        return None if least <= max(numbers) else op in ("!=", "not in")
    # All greater numbers give what this one gives, or it is not known.
    answer = _with(op, least, numbers)
    return answer if answer is (op in (">", ">=")) else None


def _counted(value: v.Value) -> v.Obj | None:
    """The tensor whose number of dimensions a value is."""
    if isinstance(value, v.Member):
        owner = value.owner if value.name == "ndim" else None
    elif isinstance(value, v.Obj) and value.api == "builtins.len":
        owner = _of_sizes(value.args.get("obj", 0))
    elif isinstance(value, v.Obj) and value.api in _METHODS:
        owner = value.owner
    else:
        return None
    return owner if isinstance(owner, v.Obj) and owner.form is not None else None


_METHODS = frozenset(f"{shapes.TENSOR}.{name}" for name in COUNTING)


def _of_sizes(value: v.Value | None) -> v.Value | None:
    """The tensor whose sizes a value is: ``x.shape``, ``x.size()``."""
    if isinstance(value, v.Member):
        return value.owner if value.name == "shape" else None
    if isinstance(value, v.Obj) and value.api == f"{shapes.TENSOR}.size" and not list(value.args.values()):
        return value.owner
    return None
