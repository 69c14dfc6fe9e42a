"""Hooks of modules: functions that a module calls whenever it is called, and others that run in the backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from d9mlint.interp import tensors
from d9mlint.interp import values as v
from d9mlint.interp.context import QUIET
from d9mlint.interp.library_modules import is_module

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import RoleEntry

ROLE = "registers-hook"
BEFORE, AFTER, BACKWARD = "before", "after", "backward"
_HOOKS = "@hooks"
"""Attribute of a module: the handles of its hooks."""
_HANDLE = "handle of a hook"
"""``api`` of what registering a hook gives."""
_WHEN = "@when"
"""Attribute of a handle: whether its hook is called before the module or after it."""
_PART = "@part"
"""Attribute of the handle of a hook of a part of a module that is not seen to be called."""
_DONE = "@done"
"""Attribute of a handle whose hook has run, or is removed."""
_ANY = v.Args(star=True, dstar=True)


def register(interp: Interp, owner: v.Value, role: RoleEntry, args: v.Args, node: Any) -> v.Value | None:
    """A module gets a hook; None where it is not known which module does, so that the hook is run at once."""
    hook, when = args.get(role.arg, role.pos), role.more[0]
    if not isinstance(hook, (v.Func, v.Partial)):
        return None
    if when == BACKWARD:
        # No gradient is taken of what computes gradients.
        with interp.within(QUIET):
            interp.call(hook, _ANY, node)
        return v.Obj(_HANDLE, "", args, node)
    whole = _whole(interp, owner)
    if whole is None or interp.importing:
        return None
    handle = v.Obj(_HANDLE, "", v.Args([hook], args.kw), node)
    handle.owner = whole
    if whole is not owner:
        handle.attrs[_PART] = v.TRUE
    handle.attrs[_WHEN] = v.Lit(when)
    whole.attrs[_HOOKS] = v.Items("l", [*_handles(whole), handle])
    if not interp.speculating:
        interp.hooks.append(handle)
    return handle


def _whole(interp: Interp, owner: v.Value) -> v.Inst | v.Obj | None:
    """The module that a program makes of which something is a part."""
    while isinstance(owner, v.Member):
        owner = owner.owner
    if isinstance(owner, v.Inst):
        return owner
    return owner if isinstance(owner, v.Obj) and is_module(interp, owner) else None


def remove(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``handle.remove()``."""
    whole = owner.owner if isinstance(owner, v.Obj) else None
    if isinstance(owner, v.Obj) and isinstance(whole, (v.Inst, v.Obj)):
        if not interp.branching:
            whole.attrs[_HOOKS] = v.Items("l", [one for one in _handles(whole) if one is not owner])
        owner.attrs[_DONE] = v.TRUE
    return v.NONE


def call_with(
    interp: Interp, module: v.Inst | v.Obj, args: v.Args, node: Any, run: Callable[[v.Args], v.Value]
) -> v.Value:
    """Call a module, which ``run`` does, and its hooks before and after that."""
    handles = _handles(module)
    if not handles:
        return run(args)
    for handle in handles:
        given = _run(interp, handle, args, [], node) if _is(handle, BEFORE) else None
        if given is not None:
            args = v.Args(list(given.elts) if isinstance(given, v.Items) else [given], args.kw)
    result = run(args)
    for handle in handles:
        given = _run(interp, handle, args, [result], node) if _is(handle, AFTER) else None
        result = result if given is None else given
    return result


def _handles(module: v.Inst | v.Obj) -> list[v.Obj]:
    known = module.attrs.get(_HOOKS)
    return [one for one in known.elts if isinstance(one, v.Obj)] if isinstance(known, v.Items) else []


def _is(handle: v.Obj, when: str) -> bool:
    kept = handle.attrs.get(_WHEN)
    return isinstance(kept, v.Lit) and kept.value == when


def _run(interp: Interp, handle: v.Obj, args: v.Args, result: list[v.Value], node: Any) -> v.Value | None:
    """What a hook gives in place of what it is given; None where it gives nothing."""
    hook = handle.args.pos[0]
    handle.attrs[_DONE] = v.TRUE
    if _PART in handle.attrs:
        part = tensors.batch("")
        interp.call(hook, v.Args([v.UNKNOWN, v.Items("t", [part]), *([part] if result else [])]), node)
        return None
    named = handle.args.get("with_kwargs")
    keywords = (
        [v.Mapping(dict(args.kw), args.dstar)] if named is not None and v.truth(named) is not False else []
    )
    module = handle.owner or v.UNKNOWN
    given = interp.call(hook, v.Args([module, v.Items("t", args.pos, args.star), *keywords, *result]), node)
    found = [one for one in v.alternatives(given) if v.is_none(one) is not True]
    if not found or keywords:
        return None
    return v.join([*found, *result]) if len(found) < len(list(v.alternatives(given))) else given


def run_rest(interp: Interp) -> None:
    """Run the hooks of modules that only a library calls."""
    for handle in interp.hooks:
        if _DONE not in handle.attrs:
            interp.call(handle.args.pos[0], _ANY, handle.node)


HOOK_METHODS = {f"{_HANDLE}.remove": remove}
