"""Classes of the project that are dictionaries whose items are attributes as well: ``class AttrDict(dict)``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.data import set_item, subscript
from d9mlint.interp.methods import bind_method
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, children, is_none, nodes

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

DICTS = frozenset({"builtins.dict", "collections.OrderedDict", "collections.UserDict", "typing.Dict"})
_READING = frozenset(
    {
        "__bool__",
        "__call__",
        "__contains__",
        "__enter__",
        "__eq__",
        "__getattribute__",
        "__getitem__",
        "__iter__",
        "__len__",
        "__missing__",
        "__new__",
        "items",
        "keys",
        "values",
    }
)
"""What such a class does not define: what reads the items would give others."""
_STORING = ("__setattr__", "__setitem__", "update")
_KEEPS = frozenset(
    {
        "__class__",
        "__init__",
        "__setattr__",
        "__setitem__",
        "append",
        "dict",
        "endswith",
        "get",
        "getattr",
        "hasattr",
        "isinstance",
        "items",
        "iteritems",
        "keys",
        "list",
        "setattr",
        "startswith",
        "super",
        "tuple",
        "type",
        "update",
    }
)
"""What its storing methods may call: functions that put items where they are given, or ask for the types of these."""
_LOOKS_UP = frozenset({"__getattr__", "__getattribute__", "__getitem__", "get"})
_LAST = frozenset({"__getattr__", *_STORING})
"""Attributes of bases that come after the items."""
_STORES = frozenset({"__setattr__", "__setitem__"})
_DICT = ".__dict__"
_DEPTH = 8


def make(interp: Interp, cls: v.Cls, args: v.Args, node: Any) -> v.Mapping | None:
    """The object that a call of a class of the project makes, where that is a dictionary with attributes: its items are
    what its methods, as they are run, put there."""
    bases = cls.external_bases()
    if not bases or not DICTS.issuperset(map(interp.kb.canonical, bases)) or args.star:
        return None
    mro = cls.mro()
    if any(one.decorated or one.metaclass is not None for one in mro):
        return None
    if any(not _READING.isdisjoint(one.env.all()) for one in mro):
        return None
    init = cls.find("__init__")
    bodies = {
        name: interp.body(one)
        for name in ("__getattr__", "__init__", *_STORING)
        if isinstance(one := cls.find(name), v.Func)
    }
    by_dots = _gives_attributes(interp, cls, bodies)
    if not by_dots and (_STORES & bodies.keys() or any(_sets_attributes(interp, one) for one in mro)):
        return None
    if not all(_only_keeps(bodies[name], cls) for name in _STORING if name in bodies and name != "update"):
        return None
    made = v.Mapping({}, attributes=by_dots)
    made.cls = cls
    if isinstance(init, v.Func) and not _only_keeps(bodies["__init__"], cls):
        interp.call(bind_method(interp, init, made, cls, node), args, node)
    else:
        _fill(interp, made, args, node)
    nests = by_dots and any(_makes_others(body, cls) for body in bodies.values())
    return _with_attributes(made, _DEPTH) if nests else made


def attribute(interp: Interp, owner: v.Mapping, name: str, node: Any) -> v.Value | None:
    """What the class of a dictionary has under a name; None where it has nothing that comes before the items."""
    assert owner.cls is not None
    if name == "__class__":
        return owner.cls
    found = owner.cls.find(name)
    if isinstance(found, v.Func):
        stores = name in _STORING and _only_keeps(interp.body(found), owner.cls)
        return None if stores else bind_method(interp, found, owner, owner.cls, node)
    held = name in owner.items or (found is not None and name in _LAST)
    return None if found is None or held else bind_method(interp, found, owner, owner.cls, node)


def inherited(interp: Interp, owner: v.Mapping, name: str, args: v.Args, node: Any) -> v.Value:
    """A method of the dictionary that the class of the project derives from, called as ``super().update(...)``."""
    if name in _STORES and len(args.pos) == 2:
        set_item(interp, owner, args.pos[0], args.pos[1], node)
        return v.NONE
    if name in _LOOKS_UP and name != "get" and len(args.pos) == 1:
        return subscript(interp, owner, args.pos[0], node)
    if name == "__init__":
        _fill(interp, owner, args, node)
        return v.NONE
    return interp.call(v.Member(owner, name), args, node)


def _fill(interp: Interp, made: v.Mapping, args: v.Args, node: Any) -> None:
    """Put the items that a dictionary is made with into it."""
    given = v.Args([one for one in args.pos if not v.is_none(one)], args.kw, args.star, args.dstar)
    plain = interp.call(v.Ext("builtins.dict"), given, node)
    if isinstance(plain, v.Mapping):
        made.items.update(plain.items)
        made.open = made.open or plain.open
    else:
        made.open = True


def _gives_attributes(interp: Interp, cls: v.Cls, bodies: dict[str, list[m.Stmt]]) -> bool:
    """Whether reading an attribute gives an item."""
    if "__getattr__" in bodies:
        body = bodies["__getattr__"]
        given = [one.value for one in nodes(body) if isinstance(one, m.Return)]
        return bool(given) and all(_looks_up(one, body, cls) for one in given)
    read = cls.find("__getattr__")
    if read is not None:
        return isinstance(read, v.Ext) and read.name.rpartition(".")[2] in _LOOKS_UP
    inits = [one.env.all().get("__init__") for one in cls.mro()]
    return any(
        map(_is_itself, nodes(st for one in inits if isinstance(one, v.Func) for st in interp.body(one)))
    )


def _looks_up(value: m.Expr | None, body: list[m.Stmt], cls: v.Cls) -> bool:
    """Whether a method gives an item: ``self[name]``, ``self.get(name)``, or a dictionary of the class that is made of it;
    where there is none, it may give anything."""
    if isinstance(value, m.Subscript):
        return isinstance(value.value, m.Name) and "." not in value.value.id.removesuffix(_DICT)
    if isinstance(value, m.Name):
        kept = [one.value for one in nodes(body) if isinstance(one, m.Assign) and _binds(one, value.id)]
        return bool(kept) and all(
            not isinstance(one, m.Name) and (_looks_up(one, body, cls) or _makes_others([one], cls))
            for one in kept
        )
    return value is None or is_none(value) or called_name(value) in _LOOKS_UP


def _binds(stmt: m.Assign, name: str) -> bool:
    return any(isinstance(one, m.Name) and one.id == name for one in stmt.targets)


def _sets_attributes(interp: Interp, cls: v.Cls) -> bool:
    """Whether methods of a class give its objects attributes, which are no items."""
    return any(
        isinstance(one, m.Assign | m.AugAssign | m.AnnAssign) and not all(map(_is_item, _targets(one)))
        for method in cls.env.all().values()
        if isinstance(method, v.Func)
        for one in nodes(interp.body(method))
    )


def _targets(stmt: m.Assign | m.AugAssign | m.AnnAssign) -> list[m.Expr]:
    return stmt.targets if isinstance(stmt, m.Assign) else [stmt.target]


def _is_itself(node: Any) -> bool:
    """``self.__dict__ = self``"""
    return isinstance(node, m.Assign) and any(
        isinstance(one, m.Name) and isinstance(node.value, m.Name) and one.id == f"{node.value.id}.__dict__"
        for one in node.targets
    )


def _only_keeps(body: Sequence[m.Stmt], cls: v.Cls) -> bool:
    """Whether a method puts the items that it is given into the dictionary, as they are or made into such dictionaries. What
    it asks before may keep it from doing so."""
    for one in _nodes_that_store(body):
        if isinstance(one, m.Call) and called_name(one) not in _KEEPS and called_name(one) != cls.cls.name:
            return False
        if isinstance(one, m.Assign) and not all(map(_is_item, one.targets)) and not _is_itself(one):
            return False
    return True


def _nodes_that_store(body: Sequence[Any]) -> Iterator[Any]:
    """The nodes of a method without those of tests and of what it raises."""
    stack = list(body)
    while stack:
        one = stack.pop()
        if isinstance(one, m.Assert | m.Raise):
            continue
        yield one
        stack += [below for below in children(one) if not isinstance(one, m.If) or below is not one.test]


def _is_item(target: m.Expr) -> bool:
    """Whether a statement assigns an item or a variable, and no attribute."""
    if isinstance(target, m.Seq):
        return all(map(_is_item, target.elts))
    return isinstance(target, m.Subscript) or (isinstance(target, m.Name) and "." not in target.id)


def _makes_others(body: Sequence[Any], cls: v.Cls) -> bool:
    """Whether a method makes further dictionaries of its class, of those that are items: ``type(self)(value)``."""
    calls = [one for one in nodes(body) if isinstance(one, m.Call)]
    named = any(isinstance(one, m.Name) and one.id in (cls.cls.name, "self.__class__") for one in nodes(body))
    return named or any(called_name(one.func) == "type" for one in calls)


def _with_attributes(mapping: v.Mapping, depth: int) -> v.Mapping:
    for key, one in list(mapping.items.items()):
        inner = _nested(one, mapping.cls, depth - 1)
        if inner is not one:
            mapping.items[key] = inner
    return mapping


def _nested(value: v.Value, cls: v.Cls | None, depth: int) -> v.Value:
    if isinstance(value, v.Mapping) and not value.attributes:
        made = v.Mapping(dict(value.items), value.open, attributes=True)
        made.cls = cls
        return _with_attributes(made, depth) if depth > 0 else made
    if isinstance(value, v.Items) and depth > 0 and any(isinstance(one, v.Mapping) for one in value.elts):
        return v.Items(value.kind, [_nested(one, cls, depth - 1) for one in value.elts], value.open)
    return value
