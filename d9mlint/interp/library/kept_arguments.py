"""Calls that keep arguments in attributes of the object: those of the constructor in which they stand, as
``self.save_hyperparameters()``, or the model that ``trainer.fit(model)`` is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.assignment import set_attribute

if TYPE_CHECKING:
    from d9mlint.interp.frames import Frame
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import RoleEntry


def keep_given(interp: Interp, owner: v.Value, role: RoleEntry, args: v.Args, node: Any) -> None:
    """The receiver of a call keeps what it is given in its attributes."""
    given = args.get(role.arg, role.pos)
    if isinstance(given, (v.Inst, v.Obj, v.Func, v.Partial)):
        for name in role.more:
            set_attribute(interp, owner, name, given, node)


def keep(interp: Interp, inst: v.Value | None, role: RoleEntry, args: v.Args) -> v.Value | None:
    """What the object has from now on; None where no constructor of it runs. A function, which is not called of an
    object, is about that whose constructor runs."""
    constructor = _constructor(interp.frame)
    if inst is None and constructor is not None and constructor.func is not None:
        inst = constructor.func.receiver
    if not isinstance(inst, v.Inst):
        return None
    named, whole = _chosen(args)
    known, open_ = (dict(whole), False) if whole is not None else _arguments(constructor, inst)
    if constructor is None and whole is None:
        return None
    if named:
        known = {name: known.get(name, v.UNKNOWN) for name in named}
    ignored = args.kw.get(role.more[0]) if role.more else None
    for one in _texts(ignored):
        known.pop(one, None)
    if not role.arg:
        for name, value in known.items():
            inst.attrs[name] = value
        return v.NONE
    before = inst.attrs.get(role.arg)
    if isinstance(before, v.Mapping):
        known, open_ = {**before.items, **known}, open_ or before.open
    inst.attrs[role.arg] = v.Mapping(known, open_, attributes=True)
    return v.NONE


def _chosen(args: v.Args) -> tuple[list[str], dict[str, v.Value] | None]:
    """The names of the arguments that are to be kept, or else what one object holds that is kept in their place."""
    names: list[str] = []
    for one in args.pos:
        if isinstance(one, v.Mapping):
            return [], {key: value for key, value in one.items.items() if isinstance(key, str)}
        if isinstance(one, v.Obj):
            return [], dict(one.attrs)
        names += _texts(one)
    return names, None


def _texts(value: v.Value | None) -> list[str]:
    """Names in a text, which commas divide, or in a sequence of texts."""
    found = []
    for one in value.elts if isinstance(value, v.Items) else [value]:
        if isinstance(one, v.Lit) and isinstance(one.value, str):
            found += [name.strip() for name in one.value.split(",") if name.strip()]
    return found


def _constructor(frame: Frame | None) -> Frame | None:
    """The innermost constructor that runs."""
    while frame is not None and not _is_constructor(frame):
        frame = frame.caller
    return frame


def _is_constructor(frame: Frame) -> bool:
    return frame.func is not None and frame.func.fn.name == "__init__"


def _arguments(frame: Frame | None, inst: v.Inst) -> tuple[dict[str, v.Value], bool]:
    """What the parameters of the constructors of an object hold, those of derived classes before those of their bases,
    and whether there may be more."""
    found: dict[str, v.Value] = {}
    more = False
    while frame is not None and frame.func is not None and _is_constructor(frame):
        if frame.func.receiver is not inst:
            break
        for param in frame.func.fn.params[1:]:
            held = frame.env.read(param.name)
            if param.kind == "w" and isinstance(held, v.Mapping):
                found |= held.items
                more |= held.open
            elif param.kind not in ("v", "w") and held is not None:
                found[param.name] = held
        frame = frame.caller
    return found, more
