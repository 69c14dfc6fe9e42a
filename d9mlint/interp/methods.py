"""Attributes of a class, seen through an instance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

NEW = "__new__"
"""A method that is given the class itself, as it is."""
STATIC, OF_CLASS = "builtins.staticmethod", "builtins.classmethod"
BINDING = frozenset({STATIC, OF_CLASS})
"""Decorators that say nothing but what a method is bound to."""
_PROPERTIES = frozenset({"property", "cached_property", "lazy_property"})
_GETTER, _SETTER = "fget", "fset"
_ADDS_SETTER, _ADDS_DELETER = "setter", "deleter"


def bind_method(interp: Interp, found: v.Value, receiver: v.Value, cls: v.Cls, node: Any) -> v.Value:
    """A class attribute seen through an instance."""
    if isinstance(found, v.Func):
        if is_decorated(found, STATIC) or found.fn.name == NEW:
            return found
        if is_decorated(found, OF_CLASS):
            return found.bind(cls)
        bound = found.bind(receiver)
        if is_property(found):
            return interp.call(bound, v.NO_ARGS, node)
        return bound
    if isinstance(found, v.AnyOf):
        return v.join([bind_method(interp, one, receiver, cls, node) for one in found.values])
    if isinstance(found, v.Inst):
        return given_by_descriptor(interp, found, receiver, cls, node)
    getter = found.args.get(_GETTER, 0) if isinstance(found, v.Obj) and _is_property(found.api) else None
    return interp.call(getter.bind(receiver), v.NO_ARGS, node) if isinstance(getter, v.Func) else found


def with_accessor(decorator: v.Value, value: v.Value) -> v.Func | None:
    """The property that ``@x.setter``, or ``@x.deleter``, makes of a property and a function; None for other decorators."""
    prop = decorator.owner if isinstance(decorator, v.Member) else None
    if not isinstance(decorator, v.Member) or not isinstance(prop, v.Func) or not isinstance(value, v.Func):
        return None
    if decorator.name not in (_ADDS_SETTER, _ADDS_DELETER) or not is_property(prop):
        return None
    made = prop.bind(prop.receiver)
    if decorator.name == _ADDS_SETTER:
        made.setter = value
    return made


def setter_of(found: v.Value | None) -> v.Func | None:
    """The function that an assignment calls to an attribute that is a property of the class."""
    if isinstance(found, v.Func):
        return found.setter
    setter = found.args.get(_SETTER, 1) if isinstance(found, v.Obj) and _is_property(found.api) else None
    return setter if isinstance(setter, v.Func) else None


def given_by_descriptor(interp: Interp, found: v.Inst, receiver: v.Value, cls: v.Cls, node: Any) -> v.Value:
    """What an object that is an attribute of a class stands for there: what its ``__get__`` gives, or the function of which
    it is a property, where it is a descriptor."""
    getter = found.cls.find("__get__")
    given: v.Value = found
    if isinstance(getter, v.Func):
        given = interp.call(getter.bind(found), v.Args([receiver, cls]), node)
        if not interp.state.alive:
            # It raises as far as is known, as one does that looks for what a library has stored.
            interp.state.alive = True
            given = v.UNKNOWN
    elif receiver is v.NONE:
        return found
    if given is v.UNKNOWN or given is found:
        behind: v.Value | None = found.attrs.get(_GETTER)
        if isinstance(behind, v.Func) and any(map(_is_property, found.cls.external_bases())):
            return interp.call(behind.bind(receiver), v.NO_ARGS, node)
    return given


def is_decorated(func: v.Func, name: str) -> bool:
    """Whether a function has a decorator of a library, by its full name."""
    return any(isinstance(d, v.Ext) and d.name == name for d in func.decorated)


def is_property(func: v.Func) -> bool:
    """Whether a function of a class is asked for as an attribute."""
    return any(isinstance(d, v.Ext) and _is_property(d.name) for d in func.decorated)


def _is_property(name: str) -> bool:
    return name.rpartition(".")[2] in _PROPERTIES


def named_from(interp: Interp, func: v.Func, name: str) -> v.Value | None:
    """What a dotted name means where a function is defined, as in an annotation; None where nothing defines it."""
    head, _, rest = name.partition(".")
    env: v.Env | None = func.env
    value: v.Value | None = None
    while env is not None and value is None:
        value = env.read(head)
        env = env.parent
    value = value or func.mod.env.read(head) or interp.typed(func.mod, head)
    for part in rest.split(".") if rest and value is not None else ():
        value = interp.attribute(value, part) if value is not None else None
    return value
