"""Attempts that ask for an attribute first: ``try: x.module.train()``, ``except AttributeError: x.train()``.

Where the object is one of the project that surely has no such attribute, only the handler runs; where it surely has it, the
handler does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import conditions
from d9mlint.interp import values as v
from d9mlint.interp.known_attributes import has, has_now
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import assigned_attributes, stores_of
from d9mlint.ir.traversal import statements

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_MISSING = "AttributeError"
_CATCHING = frozenset({_MISSING, "Exception", "BaseException"})


def handler_of_missing(interp: Interp, stmt: m.Try) -> m.Handler | None:
    """The handler that runs in place of the body, whose first statement asks for an attribute that is not there."""
    handler = next((one for one in stmt.handlers if not _CATCHING.isdisjoint(_caught(one))), None)
    if handler is None:
        return None
    first = _first(interp, stmt.body, called_with=True)
    if _has_attribute(interp, first) is False or (
        first is not None and _is_first_set_by(interp, first, handler)
    ):
        return handler
    return None


def are_idle(interp: Interp, stmt: m.Try) -> bool:
    """Whether the handlers are for a missing attribute only, and the one that the body asks for is there."""
    only = all(_caught(one) == {_MISSING} for one in stmt.handlers)
    return only and len(stmt.body) == 1 and _has_attribute(interp, _first(interp, stmt.body)) is True


def _is_first_set_by(interp: Interp, name: m.Name, handler: m.Handler) -> bool:
    """Whether an attribute of an object of the project is not there yet, and nothing but the handler stores it."""
    if interp.entry is None or interp.guessing or interp.uncertain or name.id.count(".") != 1:
        return False
    head, _, attribute = name.id.partition(".")
    value = interp.lookup(head)
    if (
        not isinstance(value, v.Inst)
        or attribute.startswith("_")
        or has_now(interp, value, attribute) is not False
    ):
        return False
    here = {one.start for one in statements(handler.body)}
    found = False
    for file in interp.run_files():
        facts = interp.whole(file)
        if attribute not in assigned_attributes(facts):
            continue
        stores = [one for function in facts.functions for one in stores_of(function, attribute)]
        if file is not interp.frame.file or not stores or any(one.start not in here for one in stores):
            return False
        found = True
    return found


def _caught(handler: m.Handler) -> set[str]:
    if handler.type is None:
        return {"BaseException"}
    named = handler.type.elts if isinstance(handler.type, m.Seq) else [handler.type]
    return {one.id if isinstance(one, m.Name) else "" for one in named}


def _has_attribute(interp: Interp, first: m.Name | None) -> bool | None:
    if interp.entry is None or interp.guessing or interp.uncertain:
        return None
    head, *rest = first.id.split(".") if first is not None else [""]
    if first is None or not rest:
        return None
    value = interp.lookup(head) or v.UNKNOWN
    for part in rest:
        if not isinstance(value, v.Inst):
            value = _of_library(interp, value, part, first)
            continue
        found = has(interp, value, part)
        if found is not True:
            return found
        held = dict.get(value.attrs, part) or value.cls.find(part) or v.UNKNOWN
        # What a property gives is not known.
        value = v.UNKNOWN if isinstance(held, v.Func) and held.fn.decorators else held
    # Of objects of libraries nothing is known but the attributes that the program's own are in.
    return True if isinstance(interp.lookup(head), v.Inst) and value is not v.UNKNOWN else None


def _of_library(interp: Interp, value: v.Value, name: str, node: m.Name) -> v.Value:
    """An attribute of an object of a library that a call has made, such as the data of a loader."""
    return interp.attribute(value, name, node) if isinstance(value, v.Obj) else v.UNKNOWN


def _first(interp: Interp, body: list[m.Stmt], called_with: bool = False) -> m.Name | None:
    """The name with attributes that a body evaluates first; with ``called_with`` also as what a function is called with."""
    stmt = body[0] if body else None
    if isinstance(stmt, m.If) and isinstance(stmt.test, (m.Name, m.Const, m.Unary)):
        answer = conditions.condition(interp, stmt.test).answer
        if answer is not None:
            return _first(interp, stmt.body if answer else stmt.orelse, called_with)
        both = [_first(interp, stmt.body, called_with), _first(interp, stmt.orelse, called_with)]
        return both[0] if both[0] is not None and both[1] is not None and _same(*both) else None
    node: object = stmt.value if isinstance(stmt, (m.ExprStmt, m.Assign, m.Return)) else None
    while not isinstance(node, m.Name):
        if isinstance(node, m.Call):
            plain = isinstance(node.func, m.Name) and "." not in node.func.id
            node = node.args[0] if called_with and plain and node.args else node.func
        elif isinstance(node, (m.Attr, m.Subscript)):
            node = node.value
        else:
            return None
    return node


def _same(one: m.Name | None, other: m.Name | None) -> bool:
    """Whether two names are attributes of one object."""
    return one is not None and other is not None and one.id.rpartition(".")[0] == other.id.rpartition(".")[0]
