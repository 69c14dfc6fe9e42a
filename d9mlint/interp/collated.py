"""What the default collate function of a loader makes of the items of a dataset: one more dimension before theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from d9mlint.interp import shapes, tensors
from d9mlint.interp import values as v

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from d9mlint.interp.view import RunView

ITEM: Final = "@item"
"""Attribute of a loader: what the dataset gives for one index, where the loader puts such items together by default."""


def keep_item(loader: v.Obj, dataset: v.Value | None, given: Sequence[v.Value]) -> None:
    """Remember of a loader what one item is. ``given`` is what the methods of the dataset have given."""
    collate, size = loader.args.get("collate_fn", 6), loader.args.get("batch_size", 1)
    default = collate is None or v.is_none(collate) is True
    own = isinstance(dataset, v.Inst) and all(
        (dataset.cls.find(name) is not None) is (name == "__getitem__")
        for name in ("__getitem__", "__getitems__", "__iter__")
    )
    several = isinstance(dataset, v.Items) and dataset.kind == "l" and dataset.elts
    if isinstance(dataset, v.Items) and several and default:
        loader.attrs[ITEM] = v.join(dataset.elts)
    elif own and default and given and (size is None or v.is_none(size) is False) and not loader.args.dstar:
        loader.attrs[ITEM] = given[0]


def fill(interp: RunView, batch: v.Obj, loader: v.Obj) -> None:
    """Let a batch of a loader know its parts, where the number of dimensions of one is known."""
    item = loader.attrs.get(ITEM)
    other = interp.kb.result_type(f"{loader.package}.@batch")
    if other:
        if isinstance(item, v.Obj) and item.type == other:
            _join_graphs(batch, item)
        return
    if isinstance(item, v.Items) and item.kind != "s" and not item.open and item.elts:
        parts = [_stacked(one, batch) for one in item.elts]
        if any(parts):
            others: list[v.Value] = [part or _unknown(batch) for part in parts]
            batch.attrs[v.BATCH_PARTS] = v.Items("t", others)
    elif isinstance(item, v.Mapping) and not item.open:
        for name, one in item.items.items():
            part = _stacked(one, batch)
            if isinstance(name, str) and part is not None:
                batch.attrs[name] = part


def _join_graphs(batch: v.Obj, graph: v.Obj) -> None:
    """The tensors of several graphs are put one behind the other, numbers as the elements of a vector."""
    for name, one in (*graph.args.kw.items(), *graph.attrs.items()):
        sizes = shapes.form(one).sizes if isinstance(one, v.Obj) else None
        if sizes is not None:
            form = shapes.form(batch)._replace(
                sizes=(None,) * max(1, len(sizes)), dtype=shapes.form(one).dtype
            )
            batch.attrs[name] = tensors.make(tensors.PART, form, likely=True)


def move(batch: v.Value | None, moved: v.Obj) -> None:
    """What is known of the parts of a batch by their names is known of it where it is moved."""
    if not isinstance(batch, v.Obj) or batch.api != tensors.BATCH or moved.form is None:
        return
    for name, one in batch.attrs.items():
        if isinstance(one, v.Obj) and one.type == shapes.TENSOR and not name.startswith("@"):
            form = shapes.form(one)._replace(device=moved.form.device)
            moved.attrs[name] = tensors.make(tensors.PART, form, likely=True)


def put(batch: v.Obj, index: v.Value, value: v.Value, each: bool) -> None:
    """A tensor is stored as a part of a batch, or ``each`` part is such a tensor now."""
    tensors.put(batch, value, each)
    held = batch.attrs.get(v.BATCH_PARTS)
    if isinstance(held, v.Items):
        at = index.value if isinstance(index, v.Lit) else None
        if isinstance(at, int) and not each and -len(held.elts) <= at < len(held.elts):
            parts = list(held.elts)
            parts[at] = v.join((parts[at], value))
        else:
            parts = [_put(one, value, each) for one in held.elts]
        batch.attrs[v.BATCH_PARTS] = v.Items(held.kind, parts)
    for name, one in list(batch.attrs.items()):
        if not name.startswith("@"):
            batch.attrs[name] = _put(one, value, each)


def update(batch: v.Obj, given: Iterable[v.Value]) -> None:
    """What mappings or sequences hold is stored as parts of a batch."""
    for one in given:
        held = (
            one.items.values() if isinstance(one, v.Mapping) else one.elts if isinstance(one, v.Items) else ()
        )
        for value in list(held):
            put(batch, v.UNKNOWN, value, False)


def _put(one: v.Value, value: v.Value, each: bool) -> v.Value:
    """What a part of a batch is where it may have been replaced; whoever has taken it before keeps what it was."""
    if not isinstance(one, v.Obj) or one.form is None:
        return one
    made = tensors.make(one.api, one.form, likely=True)
    tensors.put(made, value, each)
    if made.form == one.form:
        return one
    made.attrs.update(one.attrs)
    return made


def _unknown(batch: v.Obj) -> v.Obj:
    made = tensors.batch(shapes.form(batch).device)
    made.attrs[tensors.BATCH_OF] = batch.attrs[tensors.BATCH_OF]
    return made


def part(batch: v.Obj, index: object) -> v.Value:
    """What stands at a place of a batch; the batch itself where that is not known."""
    held = batch.attrs.get(v.BATCH_PARTS)
    known = isinstance(held, v.Items) and isinstance(index, int) and -len(held.elts) <= index < len(held.elts)
    return held.elts[index] if known and isinstance(held, v.Items) and isinstance(index, int) else batch


def _stacked(one: v.Value, batch: v.Obj) -> v.Obj | None:
    """What is made of one part of several items, where its number of dimensions or its element type is known."""
    several = v.alternatives(one)
    sizes: shapes.Sizes | None = None
    dtype = None
    if all(map(shapes.is_number, several)):
        sizes = ()
    elif all(isinstance(each, v.Obj) and each.type == shapes.TENSOR for each in several):
        sizes, dtype = shapes.form(one).sizes, shapes.form(one).dtype
    else:
        dtypes = {shapes.array_dtype(each) for each in several}
        dtype = dtypes.pop() if len(dtypes) == 1 else None
    if sizes is None and dtype is None:
        return None
    whole = None if sizes is None else (None, *sizes)
    form = shapes.Form(whole, dtype, shapes.form(batch).device, grad=False, least=1)
    made = tensors.make(tensors.PART, form, likely=True)
    made.attrs[tensors.BATCH_OF] = batch.attrs[tensors.BATCH_OF]
    return made
