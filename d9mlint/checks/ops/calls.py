"""The call of an op as plain data for the runtime half: what is literal, and what tensors are known to be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from d9mlint.base.known_calls import MOST_VALUES, KnownCall, Operand
from d9mlint.interp import values as v
from d9mlint.interp.shapes import NOTHING, is_dtype

if TYPE_CHECKING:
    from d9mlint.knowledge import Knowledge

_FAMILIES = frozenset({None, "floating", "complex", "integer"})
"""Names of element types that are no dtype."""
TENSOR = "torch.Tensor"
_SCALARS = (bool, int, float, str, type(None))


def known_call(kb: Knowledge, args: v.Args, receiver: v.Value | None = None) -> KnownCall:
    """What is known of a call's arguments; a method's receiver is position 0."""
    positional = [*([receiver] if receiver is not None else []), *args.pos]
    named = [*((str(n), value) for n, value in enumerate(positional)), *args.kw.items()]
    literals: dict[str, Any] = {}
    tensors: dict[str, Operand] = {}
    for name, value in named:
        if isinstance(value, v.Items) and len(value.elts) == 1 and not value.open:
            # Indices are given as a sequence of one tensor for each dimension.
            inner = value.elts[0]
            value = inner if _is_tensor(inner) else value
        known, literal = _literal(value)
        if known:
            literals[name] = literal
        elif isinstance(value, v.Obj) and _is_tensor(value):
            tensors[name] = _operand(kb, value)
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


def _is_tensor(value: v.Value) -> bool:
    return isinstance(value, v.Obj) and (value.type == TENSOR or value.form is not None)


def _operand(kb: Knowledge, value: v.Obj) -> Operand:
    """Shape, dtype and elements of a tensor, as far as the analysis has worked them out."""
    entry = kb.tensor(value.api)
    if entry is not None and entry.sizes == "data" and not (value.args.star or value.args.dstar):
        data = value.args.get("data", 0) or value.args.get("value", 0) or value.args.get("initial_value", 0)
        stated = value.args.kw.get("dtype")
        if isinstance(data, v.Obj) and data is not value and _is_tensor(data) and stated is None:
            return _operand(kb, data)
        known, plain = _literal(data)
        if known:
            found = _of_data(plain, "int64" if value.type == TENSOR else "int32")
            return found if stated is None else msgspec.structs.replace(found, dtype=_dtype(value))
    sizes = (value.form or NOTHING).sizes
    dtype = _dtype(value)
    shape = None
    if sizes is not None and None not in sizes:
        shape = tuple(size for size in sizes if size is not None)
    drawn = is_dtype(dtype, "integer") and not (value.form or NOTHING).distinct and bool(kb.rng(value.api))
    return Operand(shape=shape, dtype=dtype, random=drawn)


def _dtype(value: v.Obj) -> str:
    """The dtype of a tensor; empty where it is not known."""
    dtype = (value.form or NOTHING).dtype
    return "" if dtype in _FAMILIES else dtype or ""


def _of_data(data: Any, integers: str) -> Operand:
    """The operand that a tensor of literal data is; ``integers`` is the dtype of whole numbers."""
    shape: list[int] = []
    level: Any = data
    while isinstance(level, list):
        shape.append(len(level))
        if len({len(item) if isinstance(item, list) else -1 for item in level}) > 1:
            return Operand()
        level = level[0] if level else None
    flat = _flat(data)
    kinds = {type(item) for item in flat}
    dtype = "float32" if float in kinds or not flat else integers if kinds == {int} else ""
    numbers = len(shape) == 1 and len(flat) <= MOST_VALUES and all(type(n) in (int, float) for n in flat)
    return Operand(shape=tuple(shape), dtype=dtype, values=tuple(flat) if numbers else None)


def _flat(data: Any) -> list[Any]:
    return [one for item in data for one in _flat(item)] if isinstance(data, list) else [data]
