"""Functions whose gradients the program computes itself: ``Function.apply(x)`` runs ``forward`` of the class, and where a
gradient is taken of what that gives, ``backward`` runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp import tensors
from d9mlint.interp import values as v
from d9mlint.interp.context import QUIET
from d9mlint.interp.shapes import NOTHING, form

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import RoleEntry

_SAVED = "saved_tensors"
"""Attribute of the context: what ``forward`` saves for ``backward``."""


class Applied(NamedTuple):
    """A call whose gradient the program computes itself."""

    cls: v.Cls
    name: str
    args: v.Args
    node: Any


def is_followed(cls: v.Value | None, role: RoleEntry) -> bool:
    """Whether all that runs where a function is applied and differentiated is code of the program."""
    forward, _, backward = role.more
    return isinstance(cls, v.Cls) and all(isinstance(cls.find(one), v.Func) for one in (forward, backward))


def apply(interp: Interp, cls: v.Cls, role: RoleEntry, args: v.Args, node: Any) -> v.Value | None:
    """``Function.apply(x)`` calls ``forward(context, x)`` with gradients switched off, or ``forward(x)`` and
    ``setup_context(context, (x,), result)`` where the class has a method for the context. Gives tensors that require grad
    where one of the arguments does; None where nothing is known of them."""
    name, apart, back = role.more
    if not isinstance(cls.find(name), v.Func):
        return None
    context = v.Obj(role.arg, role.arg)
    is_apart = isinstance(cls.find(apart), v.Func)
    with interp.within(QUIET):
        given = [] if is_apart else [context]
        func = interp.attribute(cls, name, node)
        result = interp.call(func, v.Args([*given, *args.pos], args.kw, args.star, args.dstar), node)
        if is_apart:
            inputs = v.Items("t", args.pos, args.star or args.dstar)
            interp.call(interp.attribute(cls, apart, node), v.Args([context, inputs, result]), node)
    grad = tensors.requires_grad(interp, args.values()) if not args.star else None
    if grad is not False and isinstance(cls.find(back), v.Func):
        found = list(result.elts) if isinstance(result, v.Items) else [result]
        gradients = [_tensor(one, False) or tensors.make(tensors.BATCH, NOTHING) for one in found]
        interp.activity.applied.add(Applied(cls, back, v.Args([context, *gradients]), node))
    if isinstance(result, v.Items):
        return v.Items(result.kind, [_tensor(one, grad) or one for one in result.elts], result.open)
    return _tensor(result, grad)


def _tensor(value: v.Value, grad: bool | None) -> v.Obj | None:
    """A tensor like another one, of which only that may differ whether it requires grad."""
    if not isinstance(value, v.Obj) or value.type != tensors.TENSOR:
        return None
    made = tensors.make(value.api, form(value)._replace(grad=grad), value.likely)
    made.args, made.node, made.file, made.owner = v.Args([value]), value.node, value.file, value.owner
    return made


def take_gradients(interp: Interp, node: Any = None) -> None:
    """A gradient is taken: what was applied before, and has not run yet, runs its ``backward``. ``node`` is where that is,
    without it where each was applied."""
    activity = interp.activity
    if not activity.applied:
        return
    waiting = list(activity.applied)[activity.gone_back :]
    activity.gone_back += len(waiting)
    for one in waiting:
        with interp.within(QUIET):
            interp.call(interp.attribute(one.cls, one.name, one.node), one.args, node or one.node)


def keep_saved(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``context.save_for_backward(x, y)``."""
    if isinstance(owner, v.Obj) and not args.star:
        owner.attrs[_SAVED] = v.Items("t", list(args.pos))
    return v.NONE


SAVING_METHODS = {"*.save_for_backward": keep_saved}
