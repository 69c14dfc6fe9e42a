"""Tests of the element type of a tensor whose kind is known: integers are never of a floating-point type."""

from __future__ import annotations

from d9mlint.interp import shapes
from d9mlint.interp import values as v

_KINDS = ("bool", "floating", "complex", "integer")


def never_of_type(op: str, left: v.Value, right: v.Value) -> bool:
    """Whether the element type of a tensor is compared with types of other kinds alone. Types of one kind may be equal:
    another precision may be chosen where it is not seen."""
    if op in ("in", "not in"):
        named = right.elts if isinstance(right, v.Items) and not right.open else []
    else:
        named = [right]
        if not _is_type_of_tensor(left):
            left, named = right, [left]
    kind = _kind(left) if _is_type_of_tensor(left) else None
    return kind is not None and bool(named) and all(_kind(one) not in (None, kind) for one in named)


def _is_type_of_tensor(value: v.Value) -> bool:
    return isinstance(value, v.Member) and value.name == "dtype" and isinstance(value.owner, v.Obj)


def _kind(value: v.Value) -> str | None:
    """The kind of an element type: a truth value, a number of one of three kinds."""
    name = shapes.dtype_name(value)
    if name is None:
        return None
    return next((kind for kind in _KINDS if kind == name or shapes.is_dtype(name, kind)), None)
