"""All modules within a module, as ``module.modules()`` and ``module.apply(fn)`` go through them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import tensors
from d9mlint.interp import values as v
from d9mlint.interp.containers import CONTAINERS, children, container_of, is_known
from d9mlint.interp.devices import DEVICE
from d9mlint.interp.library.options import NAMESPACE
from d9mlint.interp.library_modules import is_module
from d9mlint.interp.named_weights import has_no_weights, parts_of

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.view import RunView

_DEEPEST = 8
_LEAF = frozenset({"weight", "bias"})
"""The names of the weights of layers without parts."""


def within(interp: RunView, module: v.Value, inner_first: bool) -> list[v.Value] | None:
    """A module and the modules in it, behind those in them or before these; None where others may be in it. One that a loop
    makes in each of its rounds stands for all of them."""
    found: list[v.Value] = []
    return found if _collect(interp, module, inner_first, found, 0) else None


def _collect(interp: RunView, module: v.Value, inner_first: bool, found: list[v.Value], depth: int) -> bool:
    if any(one is module for one in found):
        return True
    held = [] if _is_leaf(interp, module) else _modules_in(interp, module)
    if held is None or depth > _DEEPEST:
        return False
    if not inner_first:
        found.append(module)
    if not all(_collect(interp, one, inner_first, found, depth + 1) for one in held):
        return False
    if inner_first:
        found.append(module)
    return True


def _modules_in(interp: RunView, module: v.Value) -> list[v.Value] | None:
    """The modules that are parts of a module; None where that is not known."""
    container = container_of(module)
    if container is None and not isinstance(module, v.Inst):
        return None
    held = parts_of(interp, module)
    if held is None or (container is not None and not is_known(container)):
        return None
    return [one for _, one in held if not _is_none(interp, one)]


def _is_none(interp: RunView, value: v.Value) -> bool:
    """Whether a value is known to be no module."""
    if not isinstance(value, v.Obj):
        return False
    return value.api == tensors.PARAMETER or (value.type.startswith(_PLAIN) and not is_module(interp, value))


_PLAIN = ("builtins.", DEVICE, NAMESPACE, v.GIVEN)


def _is_leaf(interp: RunView, module: v.Value) -> bool:
    """Whether a module is a layer of a library without layers in it."""
    if not isinstance(module, v.Obj) or module.api in CONTAINERS:
        return False
    role = interp.kb.role(module.api, "names-in-parts")
    return _LEAF.issuperset(role.more) if role is not None else has_no_weights(interp, module)


def modules(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``module.modules()`` and ``module.named_modules()``: all of them, where these are known."""
    found = within(interp, owner, inner_first=False)
    if found is None:
        some = children(interp, owner, name, args, node)
        if isinstance(some, v.Items):
            some.elts = [*some.elts, v.Items("t", [v.UNKNOWN, v.UNKNOWN]) if _are_named(name) else v.UNKNOWN]
        return some
    return v.Items("l", [v.Items("t", [v.UNKNOWN, one]) if _are_named(name) else one for one in found])


def _are_named(method: str) -> bool:
    return method.startswith("named_")


MODULE_METHODS = {"*.modules": modules, "*.named_modules": modules}
