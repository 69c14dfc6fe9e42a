"""Modules whose inputs are moved to a device when they are called: those of a model on several devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import shapes
from d9mlint.interp import values as v
from d9mlint.interp.data import class_of_batch
from d9mlint.interp.device_names import ACCELERATORS, common
from d9mlint.interp.devices import named, runner_of
from d9mlint.interp.tensors import BATCH_OF, TENSOR
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes, statements

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

MOVING = frozenset({"to", "cpu", "cuda"})
"""Methods that move a module."""
_INPUTS = "@inputs"
"""Attribute of a module: the device to which the inputs of its calls are moved."""


def take_in(interp: Interp, api: str, module: v.Value, args: v.Args) -> None:
    """A module is wrapped by a library, which may move what it is called with."""
    found = runner_of(interp, api, args)
    if found is None or not found.entry.inputs or found.device == "cpu":
        return
    for one in v.alternatives(module):
        if isinstance(one, (v.Inst, v.Obj)):
            one.attrs[_INPUTS] = v.UNKNOWN if interp.branching or not found.device else v.Lit(found.device)


def follow(interp: Interp, module: v.Value, name: str, args: v.Args) -> None:
    """A module is moved by ``to``, ``cpu`` or ``cuda``: whoever calls it afterwards has its inputs there."""
    device = named(interp, args.get("device", 0)) if name == "to" else name
    for one in v.alternatives(module):
        if isinstance(one, v.Obj) and one.api == v.BATCH and one.form is not None:
            _move_batch(interp, one, name, device)
        if isinstance(one, (v.Inst, v.Obj)) and _INPUTS in one.attrs:
            if name != "to" or device or v.UNKNOWN in args.values():
                one.attrs[_INPUTS] = v.UNKNOWN if interp.branching or not device else v.Lit(device)


def _move_batch(interp: Interp, batch: v.Obj, name: str, device: str) -> None:
    """A batch is moved, if it is of a class that moves its tensors in place."""
    kind = class_of_batch(interp, batch)
    if kind and batch.form is not None and interp.kb.role(f"{kind}.{name}", "moves-in-place") is not None:
        batch.form = batch.form._replace(
            device=common(batch.form.device, device) if interp.branching else device
        )


def may_move(interp: Interp, batch: v.Value, name: str) -> None:
    """A method is called of what a function of the program puts together for a loader: one of a class of the program that
    moves what it holds may be meant. Where its tensors are then is not known."""
    if (
        not isinstance(batch, v.Obj)
        or batch.api != v.BATCH
        or batch.form is None
        or batch.form.device != "cpu"
    ):
        return
    loader = batch.attrs.get(BATCH_OF)
    collate = loader.args.get("collate_fn", 6) if isinstance(loader, v.Obj) else None
    if not isinstance(collate, (v.Func, v.Partial, v.Inst)):
        return
    if any(cls.find("forward") is None and _moves(interp, func) for cls, func in interp.methods_named(name)):
        batch.form = batch.form._replace(device="")


def _moves(interp: Interp, func: v.Func) -> bool:
    """Whether a method moves tensors and sets attributes of its object to what that gives."""
    own = f"{func.fn.params[0].name}." if func.fn.params else ""
    for stmt in statements(interp.body(func)):
        if not isinstance(stmt, m.Assign) or not any(
            called_name(one) in MOVING for one in nodes([stmt.value])
        ):
            continue
        if own and any(isinstance(one, m.Name) and one.id.startswith(own) for one in nodes(stmt.targets)):
            return True
    return False


def moved(interp: Interp, module: v.Inst | v.Obj, args: v.Args, node: Any) -> v.Args:
    """The arguments with which a module is run that was called with these."""
    device = module.attrs.get(_INPUTS)
    if device is None:
        return args
    return v.Args(
        [_moved(interp, one, device, node) for one in args.pos],
        {name: _moved(interp, one, device, node) for name, one in args.kw.items()},
        args.star,
        args.dstar,
    )


def _moved(interp: Interp, value: v.Value, device: v.Value, node: Any) -> v.Value:
    """A tensor, or a container of tensors, on a device."""
    if isinstance(value, v.Obj):
        here = value.type == TENSOR and shapes.form(value).device not in ("", *ACCELERATORS)
        return interp.call(v.Member(value, "to"), v.Args([device]), node) if here else value
    if isinstance(value, v.Items):
        items = [_moved(interp, one, device, node) for one in value.elts]
        same = all(one is other for one, other in zip(items, value.elts, strict=True))
        return value if same else v.Items(value.kind, items, value.open)
    if isinstance(value, v.Mapping):
        held = {key: _moved(interp, one, device, node) for key, one in value.items.items()}
        same = all(held[key] is one for key, one in value.items.items())
        return value if same else v.Mapping(held, value.open)
    if isinstance(value, v.AnyOf):
        return v.join([_moved(interp, one, device, node) for one in value.values])
    return value
