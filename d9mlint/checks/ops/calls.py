"""The call of an op as plain data for the runtime half: what is literal, and what tensors are known to be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from d9mlint.base.known_calls import MOST_VALUES, KnownCall, Operand
from d9mlint.interp import values as v
from d9mlint.interp.shapes import form

_FILLED = {
    # Shapes as arguments, or as one sequence.
    **dict.fromkeys(("torch.zeros", "torch.ones", "torch.empty", "torch.rand", "torch.randn"), "sizes"),
    **dict.fromkeys(("torch.full",), "first"),
    "torch.randint": "size",
    "torch.tensor": "data",
    "torch.as_tensor": "data",
}
_FLOATING = frozenset({"torch.zeros", "torch.ones", "torch.empty", "torch.rand", "torch.randn"})
_FAMILIES = frozenset({None, "floating", "complex", "integer"})
"""Names of element types that are no dtype."""
_SCALARS = (bool, int, float, str, type(None))


def known_call(args: v.Args, receiver: v.Value | None = None) -> KnownCall:
    """What is known of a call's arguments; a method's receiver is position 0."""
    positional = [*([receiver] if receiver is not None else []), *args.pos]
    named = [*((str(n), value) for n, value in enumerate(positional)), *args.kw.items()]
    literals: dict[str, Any] = {}
    tensors: dict[str, Operand] = {}
    for name, value in named:
        if isinstance(value, v.Items) and len(value.elts) == 1 and not value.open:
            # Indices are given as a sequence of one tensor for each dimension.
            inner = value.elts[0]
            value = inner if isinstance(inner, v.Obj) and inner.type == "torch.Tensor" else value
        known, literal = _literal(value)
        if known:
            literals[name] = literal
        elif isinstance(value, v.Obj) and value.type == "torch.Tensor":
            tensors[name] = _operand(value)
    return KnownCall(
        literals=literals,
        tensors=tensors,
        present=tuple(name for name, _ in named),
        complete=not (args.star or args.dstar),
    )


def _literal(value: v.Value | None) -> tuple[bool, Any]:
    """Whether a value is literal, and what it is; sequences are lists, as in JSON."""
    if isinstance(value, v.Lit):
        # The default of an option is what the program has when nothing else is given.
        if value.option:
            return False, None
        return _plain(value.value)
    if isinstance(value, v.Items) and value.kind != "set" and not value.open:
        parts = [_literal(item) for item in value.elts]
        return all(known for known, _ in parts), [part for _, part in parts]
    return False, None


def _plain(value: Any) -> tuple[bool, Any]:
    if isinstance(value, (list, tuple)):
        parts = [_plain(item) for item in value]
        return all(known for known, _ in parts), [part for _, part in parts]
    # JSON has neither infinity nor NaN.
    return isinstance(value, _SCALARS) and (not isinstance(value, float) or math.isfinite(value)), value


def _operand(value: v.Obj) -> Operand:
    """Shape, dtype and elements of a tensor: what a constructor was given, else what the analysis has worked out."""
    made = _made(value)
    known = form(value)
    shape, dtype = made.shape, made.dtype
    if shape is None and known.sizes is not None and None not in known.sizes:
        shape = tuple(size for size in known.sizes if size is not None)
    if not dtype and known.dtype not in _FAMILIES:
        dtype = known.dtype or ""
    return msgspec.structs.replace(made, shape=shape, dtype=dtype)


def _made(value: v.Obj) -> Operand:
    """What a tensor is by the arguments of the constructor that has just made it."""
    kind = _FILLED.get(value.api)
    args = value.args
    if kind is None or args.star or args.dstar:
        return Operand()
    dtype = _dtype(args)
    if kind == "data":
        known, data = _literal(args.pos[0] if args.pos else args.kw.get("data"))
        return _of_data(data, dtype) if known else Operand(dtype=dtype or "")
    if kind == "first":
        shape = _shape(args.pos[:1] or [args.kw.get("size")])
    elif kind == "size":
        given = args.kw.get("size", args.pos[-1] if args.pos else None)
        shape = _shape([given]) if isinstance(given, (v.Items, v.Lit)) else None
    else:
        shape = _shape(args.pos or [args.kw.get("size")])
    if dtype is None and value.api in _FLOATING:
        dtype = "float32"
    if dtype is None and value.api == "torch.randint":
        dtype = "int64"
    return Operand(shape=shape, dtype=dtype or "", random=value.api == "torch.randint")


def _dtype(args: v.Args) -> str | None:
    """The dtype that a constructor is given; None where it is left out, empty where it is not known."""
    given = args.kw.get("dtype")
    if given is None:
        return None
    name = given.name if isinstance(given, v.Ext) else ""
    return {
        "torch.double": "float64",
        "torch.float": "float32",
        "torch.half": "float16",
        "torch.long": "int64",
    }.get(name, name.removeprefix("torch.") if name.startswith("torch.") else "")


def _shape(sizes: Sequence[v.Value | None]) -> tuple[int, ...] | None:
    parts = [_literal(size) for size in sizes]
    if not parts or not all(known for known, _ in parts):
        return None
    flat = [part for _, part in parts]
    if len(flat) == 1 and isinstance(flat[0], list):
        flat = flat[0]
    whole = all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in flat)
    return tuple(flat) if whole else None


def _of_data(data: Any, dtype: str | None) -> Operand:
    """The operand that ``torch.tensor`` makes of literal data."""
    shape: list[int] = []
    level: Any = data
    while isinstance(level, list):
        shape.append(len(level))
        if len({len(item) if isinstance(item, list) else -1 for item in level}) > 1:
            return Operand(dtype=dtype or "")
        level = level[0] if level else None
    flat = _flat(data)
    if dtype is None:
        kinds = {type(item) for item in flat}
        dtype = "float32" if float in kinds or not flat else "int64" if kinds == {int} else ""
    numbers = len(shape) == 1 and len(flat) <= MOST_VALUES and all(type(n) in (int, float) for n in flat)
    return Operand(shape=tuple(shape), dtype=dtype, values=tuple(flat) if numbers else None)


def _flat(data: Any) -> list[Any]:
    return [one for item in data for one in _flat(item)] if isinstance(data, list) else [data]
