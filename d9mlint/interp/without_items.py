"""Objects that are not subscriptable: what ``parse_args`` gives, and those of classes without ``__getitem__``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from d9mlint.interp import values as v
from d9mlint.interp.library.options import NAMESPACE, PARSER
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import times_stored
from d9mlint.ir.traversal import statements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from d9mlint.interp.frames import Frame
    from d9mlint.interp.interpreter import Interp

_ITEMS_OF = "__getitem__"
_PACKAGE = PARSER.partition(".")[0]
_ROLE: Final = "not-subscriptable"


def has_no_items(interp: Interp, value: v.Value) -> bool:
    """Whether reading an item of a value raises TypeError, whatever options are given."""
    if isinstance(value, v.Inst):
        return _of_class(interp, value.cls)
    if not isinstance(value, v.Obj) or value.owner is None:
        return isinstance(value, v.Obj) and value.api == value.type and _is_named(interp, value.type)
    if value.type != NAMESPACE or value.args.get("namespace", 1) is not None:
        return False
    return _gives_namespaces(value.owner) and not _may_be_replaced(interp, value)


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


def _gives_namespaces(parser: v.Value) -> bool:
    """Whether a parser is one of Python's own library: those of others give what has items."""
    if isinstance(parser, v.Inst):
        bases = parser.cls.external_bases()
        return bool(bases) and all(base == PARSER for base in bases)
    return isinstance(parser, v.Obj) and parser.type == PARSER and parser.package == _PACKAGE


def _may_be_replaced(interp: Interp, space: v.Obj) -> bool:
    """Whether a variable that holds a namespace, or has held it in the function that makes it, gets a value in more places
    than one: where an option is given, that may be a dict."""
    held = any(
        value is space and times_stored(frame.function, name) > 1
        for frame in _running(interp)
        for name, value in frame.env.vars.items()
    )
    return held or any(
        any(isinstance(one, m.Name) and times_stored(function, one.id) > 1 for one in stmt.targets)
        for file in interp.run_files()
        for function in interp.whole(file).functions
        for stmt in statements(function.body)
        if isinstance(stmt, m.Assign) and stmt.value is space.node
    )


def _running(interp: Interp) -> Iterator[Frame]:
    frame: Frame | None = interp.frame
    while frame is not None:
        yield frame
        frame = frame.caller
