"""Named tuples: what their fields hold is known by name and by position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp import values as v

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

TUPLE_TYPE = "collections.namedtuple"
_ONE = "collections.namedtuple.__new__"
_CLASS = "typing.NamedTuple"


class Fields(NamedTuple):
    """``Obj.data`` of a type of named tuples: the names of its fields."""

    names: tuple[str, ...]


def define(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``namedtuple("Point", ["x", "y"])``."""
    given = args.get("field_names", 1)
    if isinstance(given, v.Lit) and isinstance(given.value, str):
        names = given.value.replace(",", " ").split()
    elif isinstance(given, v.Items) and not given.open:
        names = [one.value for one in given.elts if isinstance(one, v.Lit) and isinstance(one.value, str)]
        if len(names) < len(given.elts):
            return None
    else:
        return None
    made = v.Obj(api, "", args, node)
    made.file, made.data = interp.frame.file, Fields(tuple(names))
    return made


def make(interp: Interp, kind: v.Obj, args: v.Args, node: Any) -> v.Value | None:
    """``Point(1, 2)``; None for what is no type of named tuples."""
    if not isinstance(kind.data, Fields):
        return None
    one = v.Obj(_ONE, _ONE, args, node)
    one.file, one.data = interp.frame.file, kind.data
    for place, name in enumerate(kind.data.names):
        one.attrs[name] = args.get(name, place) or v.UNKNOWN
    if interp.orders.any:
        return interp.orders.carried(one, interp.orders.deep(v.Items("t", list(args.values()))))
    return one


def fill(inst: v.Inst, args: v.Args) -> None:
    """``class Point(namedtuple("Point", ["x", "y"]))``: what an instance is made with is what its fields hold."""
    for one in inst.cls.mro():
        for base in one.bases:
            if isinstance(base, v.Obj) and isinstance(base.data, Fields):
                for place, name in enumerate(base.data.names):
                    inst.attrs[name] = args.get(name, place) or v.UNKNOWN
                return


def is_record(cls: v.Cls) -> bool:
    """Whether a class is derived from one of named tuples that a call has made."""
    return any(
        isinstance(base, v.Obj) and isinstance(base.data, Fields) for one in cls.mro() for base in one.bases
    )


def _names(cls: v.Cls) -> tuple[str, ...]:
    """The fields of a class of named tuples, in their order; none of any other class."""
    for one in cls.mro():
        for base in one.bases:
            if isinstance(base, v.Ext) and base.name == _CLASS:
                return tuple(one.fields)
            if isinstance(base, v.Obj) and isinstance(base.data, Fields):
                return base.data.names
    return ()


def field_names(value: v.Value) -> tuple[str, ...]:
    """The names of the fields of a named tuple, or of a type of these; none of anything else."""
    if isinstance(value, v.Inst | v.Cls):
        return _names(value if isinstance(value, v.Cls) else value.cls)
    known = isinstance(value, v.Obj) and value.type in (_ONE, TUPLE_TYPE) and isinstance(value.data, Fields)
    return value.data.names if known and isinstance(value, v.Obj) else ()


def fields(value: v.Value) -> list[v.Value] | None:
    """What the fields of a named tuple hold, in their order; None for anything else."""
    held = named(value)
    return None if held is None else list(held.values())


def named(value: v.Value) -> dict[str, v.Value] | None:
    """What the fields of a named tuple hold, by their names; None for anything else."""
    if isinstance(value, v.Inst):
        names = _names(value.cls)
        known = bool(names) and all(map(value.attrs.get, names))
        return {name: value.attrs[name] for name in names} if known else None
    if not isinstance(value, v.Obj) or value.type != _ONE or not isinstance(value.data, Fields):
        return None
    return {name: value.attrs[name] for name in value.data.names}


def is_type(value: v.Value) -> bool:
    """Whether a value is a type of named tuples."""
    return isinstance(value, v.Obj) and value.type == TUPLE_TYPE and isinstance(value.data, Fields)


def type_of(value: v.Obj) -> v.Obj | None:
    """The type of a named tuple; None for anything else."""
    if value.type != _ONE or not isinstance(value.data, Fields):
        return None
    made = v.Obj(TUPLE_TYPE, "", v.NO_ARGS, value.node)
    made.file, made.data = value.file, value.data
    return made


def like(value: v.Value, held: dict[str, v.Value], node: Any) -> v.Value:
    """A named tuple of the same type as another one, with these fields."""
    made: v.Obj | v.Inst
    if isinstance(value, v.Inst):
        made = v.Inst(value.cls, v.Args([], held), node)
    else:
        assert isinstance(value, v.Obj)
        made = v.Obj(_ONE, _ONE, v.Args([], held), node)
        made.file, made.data = value.file, value.data
        made.order = value.order
    made.attrs.update(held)
    return made
