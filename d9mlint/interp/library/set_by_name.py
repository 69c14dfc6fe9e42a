"""What a program sets under names that it computes, or takes from a file or the command line: what had been there is a
default then, and may be replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.heap import Cells
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp


def as_defaults(
    held: MutableMapping[Any, v.Value], name: v.Value = v.UNKNOWN, value: v.Value = v.UNKNOWN
) -> None:
    """A value is stored in a dict or an object under a name that is not known."""
    for key, default in _replaced(held, name, value).items():
        held[key] = default
    if isinstance(held, Cells) and isinstance(held.owner, v.Inst):
        held[v.MORE] = v.TRUE


def may_be_none(
    held: MutableMapping[Any, v.Value], replaced: Callable[[Any], bool] = lambda name: True
) -> None:
    """Other values, which are not known, may have replaced options: what their types exclude is possible."""
    for key, one in list(held.items()):
        if isinstance(one, v.Lit) and (one.never_none or one.kind) and replaced(key):
            held[key] = v.Lit(one.value, one.option, one.instead, one.choices)


def set_in_object(owner: v.Inst, name: v.Value, value: v.Value) -> None:
    """``setattr(owner, name, value)`` of a name that is not known: attributes of its class are defaults too."""
    for cls in owner.cls.mro():
        for key, default in _replaced(cls.env.all(), name, value).items():
            if key not in owner.attrs:
                owner.attrs[key] = default
    as_defaults(owner.attrs, name, value)


def set_in_scope(env: v.Env, name: v.Value, value: v.Value) -> None:
    """As ``globals()[name] = value``, or ``setattr(Config, name, value)``."""
    if isinstance(name, v.Lit):
        env.write(str(name.value), value)
        return
    for key, default in _replaced(env.all(), name, value).items():
        env.write(key, default)


def update_scope(env: v.Env, given: v.Value) -> None:
    """``globals().update(given)``."""
    if not isinstance(given, v.Mapping) or given.open:
        set_in_scope(env, v.UNKNOWN, v.UNKNOWN)
    if isinstance(given, v.Mapping):
        for key, value in given.items.items():
            if isinstance(key, str):
                env.write(key, value)


def scope_of(interp: Interp, node: Any) -> v.Env | None:
    """The scope that ``globals().update(...)`` or ``globals()[name] = value`` writes to."""
    changed = node.func if isinstance(node, m.Call) else node
    owner = changed.value if isinstance(changed, (m.Attr, m.Subscript)) else None
    if not isinstance(owner, m.Call) or not isinstance(owner.func, m.Name) or owner.func.id != _GLOBALS:
        return None
    called = interp.eval(owner.func)
    return (
        interp.frame.mod.env if isinstance(called, v.Ext) and called.name == f"builtins.{_GLOBALS}" else None
    )


_GLOBALS = "globals"


def _replaced(held: Mapping[Any, v.Value], name: v.Value, value: v.Value) -> dict[Any, v.Value]:
    """The constants that may be replaced, each as the default of the option that its name is."""
    if isinstance(value, (v.Inst, v.Func, v.Cls)) or (
        isinstance(value, v.Obj) and value.type and not value.type.startswith("builtins.")
    ):
        # Layers, methods and the like do not replace constants.
        return {}
    return {
        key: v.Lit(one.value, one.option or key, one.instead, one.choices)
        for key, one in held.items()
        if isinstance(one, v.Lit)
        and (not one.option or one.never_none or one.kind)
        and isinstance(key, str)
        and not key.startswith("__")
        and v.may_be(name, key)
        and not (isinstance(value, v.Lit) and value.value == one.value)
    }
