"""Objects with fields, of which the program makes others by naming the fields that differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.library import records
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_FIELD = "dataclasses.field"
_OF_CLASSES = frozenset({"ClassVar", "InitVar", "KW_ONLY"})


def field_names(cls: v.Cls) -> list[str]:
    """The names of the fields of a dataclass, in their order; none for another class."""
    found: dict[str, None] = {}
    for one in reversed(cls.mro()):
        if not one.fields or not any(map(_makes_fields, one.decorated)):
            continue
        for stmt in one.cls.body:
            if (
                isinstance(stmt, m.AnnAssign)
                and isinstance(stmt.target, m.Name)
                and _is_field(stmt.annotation)
            ):
                found[stmt.target.id] = None
    return list(found)


def _makes_fields(decorator: v.Value) -> bool:
    name = (
        decorator.name
        if isinstance(decorator, v.Ext)
        else decorator.api
        if isinstance(decorator, v.Obj)
        else ""
    )
    return name.rpartition(".")[2] in _DATACLASSES


_DATACLASSES = frozenset({"dataclass", "define", "frozen", "mutable", "attrs", "s"})
"""Decorators of several libraries that make fields of annotated attributes."""


def _is_field(annotation: m.Expr | None) -> bool:
    named = annotation.value if isinstance(annotation, m.Subscript) else annotation
    name = named.id if isinstance(named, m.Name) else named.name if isinstance(named, m.Attr) else ""
    return name.rpartition(".")[2] not in _OF_CLASSES


def fields(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``dataclasses.fields(config)``: an object for each, whose name is known."""
    first = args.pos[0] if args.pos else None
    cls = first.cls if isinstance(first, v.Inst) else first
    names = field_names(cls) if isinstance(cls, v.Cls) else []
    if not names:
        return None
    made: list[v.Value] = []
    for name in names:
        field = v.Obj("dataclasses.Field", "", v.NO_ARGS, node if isinstance(node, m.Call) else None)
        field.attrs["name"] = v.Lit(name)
        made.append(field)
    return v.Items("t", made)


def replaced(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``dataclasses.replace(config, name=value)``: the class makes an object of the fields that there are and the others."""
    if not args.pos or args.star or args.dstar:
        return None
    results: list[v.Value] = []
    for one in v.alternatives(args.pos[0]):
        record = _with_fields(one, args, node)
        if record is not None:
            results.append(record)
            continue
        names = field_names(one.cls) if isinstance(one, v.Inst) else []
        if not names or not isinstance(one, v.Inst):
            return None
        held: dict[str, v.Value] = {
            name: one.attrs.get(name, v.UNKNOWN) for name in names if not _left_out(one.cls.find(name))
        }
        results.append(interp.call(one.cls, v.Args([], {**held, **args.kw}), node))
    return v.join(results)


def is_bare_field(found: v.Value | None) -> bool:
    """Whether a dataclass defines a field that its objects have only where something gives it: it has no default."""
    if not isinstance(found, v.Obj) or not _left_out(found):
        return False
    return not {"default", "default_factory"} & found.args.kw.keys() and not found.args.dstar


def _left_out(default: v.Value | None) -> bool:
    """Whether the constructor does not take a field: ``field(init=False)``."""
    if not isinstance(default, v.Obj) or default.api != _FIELD:
        return False
    taken = default.args.kw.get("init")
    return taken is not None and v.truth(taken) is False


def _replace(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``pair._replace(first=value)``."""
    if args.pos or args.dstar:
        return None
    made = [_with_fields(one, args, node) for one in v.alternatives(owner)]
    return None if None in made else v.join([one for one in made if one is not None])


def _with_fields(owner: v.Value, args: v.Args, node: Any) -> v.Value | None:
    """A named tuple like another one, with some fields replaced; None for anything else."""
    held = records.named(owner)
    return records.like(owner, {**held, **args.kw}, node) if held is not None else None


def _as_mapping(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``pair._asdict()``."""
    held = records.named(owner)
    return v.Mapping(dict(held)) if held is not None else None


def _make(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``Pair._make(values)``."""
    given = args.pos[0] if len(args.pos) == 1 else None
    if not isinstance(given, v.Items) or given.open or given.kind == "s":
        return None
    if not isinstance(owner, v.Cls) and not records.is_type(owner):
        return None
    return interp.call(owner, v.Args(list(given.elts)), node)


FIELD_MODELS: dict[str, Callable[..., v.Value | None]] = {
    "dataclasses.fields": fields,
    "dataclasses.replace": replaced,
    "copy.replace": replaced,
    "attr.fields": fields,
    "attrs.fields": fields,
    "attr.evolve": replaced,
    "attrs.evolve": replaced,
}
FIELD_METHODS: dict[str, Callable[..., v.Value | None]] = {
    "*._replace": _replace,
    "*._asdict": _as_mapping,
    "*._make": _make,
}
