"""Objects that are not subscriptable: what ``parse_args`` gives, and those of classes without ``__getitem__``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from d9mlint.interp import values as v
from d9mlint.interp.library.options import NAMESPACE, PARSER
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import stores_of, times_stored
from d9mlint.ir.traversal import statements

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_ITEMS_OF = "__getitem__"
_PACKAGE = PARSER.partition(".")[0]
_ROLE: Final = "not-subscriptable"


def has_no_items(interp: Interp, name: m.Name, value: v.Value) -> bool:
    """Whether reading an item of what a variable or an attribute holds raises TypeError, whatever options are given."""
    if isinstance(value, v.Inst):
        return _of_class(interp, value.cls) and not _may_be_replaced(interp, name, value)
    if not isinstance(value, v.Obj):
        return False
    if value.type != NAMESPACE:
        known = value.owner is None and value.api == value.type and _is_named(interp, value.type)
    else:
        known = value.args.get("namespace", 1) is None and _gives_namespaces(value.owner)
    return known and not _may_be_replaced(interp, name, value)


def _of_class(interp: Interp, cls: v.Cls) -> bool:
    """Whether no class that one of the project inherits from says what an item is."""
    if cls.find(_ITEMS_OF) is not None:
        return False
    for one in cls.mro():
        if one.metaclass is not None or not all(_keeps_class(interp, by) for by in one.decorated):
            return False
        if any(not isinstance(base, (v.Cls, v.Ext)) for base in one.bases):
            return False
    return all(base == v.OBJECT or _is_named(interp, base) for base in cls.external_bases())


def _keeps_class(interp: Interp, decorator: v.Value) -> bool:
    """Whether a decorator of a class is one for classes of fields."""
    name = decorator.api if isinstance(decorator, v.Obj) else getattr(decorator, "name", "")
    return interp.kb.role(interp.kb.canonical(name), "compares-fields") is not None


def _is_named(interp: Interp, api: str) -> bool:
    return interp.kb.role(interp.kb.canonical(api), _ROLE) is not None


def _gives_namespaces(parser: v.Value | None) -> bool:
    """Whether a parser is one of Python's own library: those of others give what has items."""
    if isinstance(parser, v.Inst):
        bases = parser.cls.external_bases()
        return bool(bases) and all(base == PARSER for base in bases)
    return isinstance(parser, v.Obj) and parser.type == PARSER and parser.package == _PACKAGE


def _may_be_replaced(interp: Interp, name: m.Name, held: v.Inst | v.Obj) -> bool:
    """Whether a variable that holds an object, or has held it in the function that makes it, gets a value in more places
    than one, or the attribute does that it is read of: where an option is given, that may be a dict."""
    if any(
        value is held and times_stored(frame.function, one) > 1
        for frame in interp.stack()
        for one, value in frame.env.vars.items()
    ):
        return True
    attribute = name.id.rpartition(".")[2] if "." in name.id else ""
    functions = [one for file in interp.run_files() for one in interp.whole(file).functions]
    if attribute and sum(len(stores_of(one, attribute)) for one in functions) > 1:
        return True
    return any(
        any(isinstance(one, m.Name) and times_stored(function, one.id) > 1 for one in stmt.targets)
        for function in functions
        for stmt in statements(function.body)
        if isinstance(stmt, m.Assign) and stmt.value is held.node
    )
