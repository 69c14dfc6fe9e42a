"""Classes of the project that are dictionaries whose items are attributes as well: ``class AttrDict(dict)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, is_none, nodes

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

DICTS = frozenset({"builtins.dict", "collections.OrderedDict", "collections.UserDict"})
_SPECIAL = frozenset(
    {
        "__copy__",
        "__deepcopy__",
        "__delattr__",
        "__dir__",
        "__doc__",
        "__getattr__",
        "__getstate__",
        "__init__",
        "__module__",
        "__qualname__",
        "__repr__",
        "__setattr__",
        "__setitem__",
        "__setstate__",
        "__slots__",
        "__str__",
        "update",
    }
)
"""What such a class may define: of methods with other names it is not known what they do to the items."""
_STORING = ("__init__", "__setattr__", "__setitem__", "update")
_KEEPS = frozenset(
    {
        "__class__",
        "__init__",
        "__setattr__",
        "__setitem__",
        "append",
        "dict",
        "get",
        "hasattr",
        "isinstance",
        "items",
        "iteritems",
        "keys",
        "list",
        "setattr",
        "super",
        "tuple",
        "type",
        "update",
    }
)
"""What its storing methods may call: functions that put items where they are given, or ask for the types of these."""
_LOOKS_UP = frozenset({"__getattr__", "__getattribute__", "__getitem__", "get"})
_DEPTH = 8


def make(interp: Interp, cls: v.Cls, args: v.Args, node: Any) -> v.Mapping | None:
    """The object that a call of a class of the project makes, where that is a dictionary with attributes and no more."""
    bases = cls.external_bases()
    if not bases or not DICTS.issuperset(map(interp.kb.canonical, bases)) or args.star:
        return None
    named = cls.env.all() if len(cls.mro()) == 1 and not cls.decorated and cls.metaclass is None else None
    if named is None or not _SPECIAL.issuperset(named):
        return None
    bodies = {
        name: interp.body(one)
        for name in ("__getattr__", *_STORING)
        if isinstance(one := named.get(name), v.Func)
    }
    storing = [bodies[name] for name in _STORING if name in bodies]
    if not _gives_attributes(named, bodies) or not all(_only_keeps(body, cls) for body in storing):
        return None
    given = v.Args([one for one in args.pos if not v.is_none(one)], args.kw, args.star, args.dstar)
    made = interp.call(v.Ext("builtins.dict"), given, node)
    if not isinstance(made, v.Mapping):
        return None
    return _with_attributes(made, _DEPTH if any(_makes_others(body, cls) for body in storing) else 0)


def _gives_attributes(named: dict[str, v.Value], bodies: dict[str, list[m.Stmt]]) -> bool:
    """Whether reading an attribute gives an item."""
    if "__getattr__" in bodies:
        given = [one.value for one in nodes(bodies["__getattr__"]) if isinstance(one, m.Return)]
        return bool(given) and all(map(_looks_up, given))
    read = named.get("__getattr__")
    if read is not None:
        return isinstance(read, v.Ext) and read.name.rpartition(".")[2] in _LOOKS_UP
    return any(map(_is_itself, nodes(bodies.get("__init__", []))))


def _looks_up(value: m.Expr | None) -> bool:
    """Whether a method gives an item: ``self[name]``, ``self.get(name)``; where there is none, it may give anything."""
    if isinstance(value, m.Subscript):
        return isinstance(value.value, m.Name) and "." not in value.value.id
    return value is None or is_none(value) or called_name(value) in _LOOKS_UP


def _is_itself(node: Any) -> bool:
    """``self.__dict__ = self``"""
    return isinstance(node, m.Assign) and any(
        isinstance(one, m.Name) and isinstance(node.value, m.Name) and one.id == f"{node.value.id}.__dict__"
        for one in node.targets
    )


def _only_keeps(body: list[m.Stmt], cls: v.Cls) -> bool:
    """Whether a method puts the items that it is given into the dictionary, as they are or made into such dictionaries."""
    for one in nodes(body):
        if isinstance(one, m.Call) and called_name(one) not in _KEEPS and called_name(one) != cls.cls.name:
            return False
        if isinstance(one, m.Assign) and not all(map(_is_item, one.targets)) and not _is_itself(one):
            return False
    return True


def _is_item(target: m.Expr) -> bool:
    """Whether a statement assigns an item or a variable, and no attribute."""
    if isinstance(target, m.Seq):
        return all(map(_is_item, target.elts))
    return isinstance(target, m.Subscript) or (isinstance(target, m.Name) and "." not in target.id)


def _makes_others(body: list[m.Stmt], cls: v.Cls) -> bool:
    """Whether a method makes further dictionaries of its class, of those that are items: ``type(self)(value)``."""
    calls = [one for one in nodes(body) if isinstance(one, m.Call)]
    named = any(isinstance(one, m.Name) and one.id in (cls.cls.name, "self.__class__") for one in nodes(body))
    return named or any(called_name(one.func) == "type" for one in calls)


def _with_attributes(mapping: v.Mapping, depth: int) -> v.Mapping:
    items = {key: _nested(one, depth - 1) if depth else one for key, one in mapping.items.items()}
    return v.Mapping(items, mapping.open, attributes=True)


def _nested(value: v.Value, depth: int) -> v.Value:
    if isinstance(value, v.Mapping) and not value.attributes:
        return _with_attributes(value, max(depth, 0))
    if isinstance(value, v.Items) and depth > 0 and any(isinstance(one, v.Mapping) for one in value.elts):
        return v.Items(value.kind, [_nested(one, depth - 1) for one in value.elts], value.open)
    return value
