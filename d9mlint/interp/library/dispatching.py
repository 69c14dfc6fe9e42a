"""Functions that choose what they run by the class of their first argument: ``functools.singledispatch``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.kinds import instance_of

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_DISPATCHERS = frozenset({"functools.singledispatch", "functools.singledispatchmethod"})
_WAITING = "functools.singledispatch.register"
"""What ``function.register(cls)`` gives: a decorator."""
_MOST = 64


def dispatches(func: v.Func) -> bool:
    """Whether a function has others for the classes of its first argument."""
    return any(map(_is_dispatcher, func.decorated))


def _is_dispatcher(decorator: v.Value) -> bool:
    return isinstance(decorator, v.Ext) and decorator.name in _DISPATCHERS


def keep(interp: Interp, decorator: v.Value, func: v.Value) -> None:
    """A decorator registers a function with the one that it is an attribute of, for a class that is named there or by an
    annotation."""
    if not isinstance(func, v.Func):
        return
    if (
        isinstance(decorator, v.Member)
        and isinstance(decorator.owner, v.Func)
        and decorator.name == "register"
    ):
        if dispatches(decorator.owner):
            _register(decorator.owner, _annotated(interp, func), func)
    elif isinstance(decorator, v.Obj) and decorator.api == _WAITING:
        function, cls = decorator.args.pos
        if isinstance(function, v.Func):
            _register(function, cls, func)


def register(interp: Interp, function: v.Func, args: v.Args, node: Any) -> v.Value | None:
    """``function.register(cls, other)``, ``function.register(cls)``, ``function.register(other)``; None for methods of other
    functions."""
    if not dispatches(function) or args.star or not args.pos:
        return None
    first, *rest = args.pos
    other = rest[0] if rest else args.kw.get("func")
    if other is not None:
        if isinstance(other, v.Func):
            _register(function, first, other)
        return other
    if isinstance(first, v.Func):
        _register(function, _annotated(interp, first), first)
        return first
    return v.Obj(_WAITING, "", v.Args([function, first]), node)


def _register(function: v.Func, cls: v.Value, other: v.Func) -> None:
    held = function.env.read(_key(function))
    known = held.elts if isinstance(held, v.Items) else []
    if len(known) < _MOST:
        function.env.write(_key(function), v.Items("t", [*known, v.Items("t", [cls, other])]))


def _key(function: v.Func) -> str:
    """Under this name, which no variable has, the scope of the function keeps the others."""
    return f"{function.fn.qualname} for classes"


def _annotated(interp: Interp, func: v.Func) -> v.Value:
    params = func.fn.params
    noted = next((one.annotation for one in params[:2] if one.annotation is not None), None)
    return interp.eval(noted) if noted is not None else v.UNKNOWN


def chosen(interp: Interp, func: v.Func, args: v.Args) -> list[v.Func]:
    """The functions that a call may run: those that are registered for a class of which the first argument is, or may be,
    and the function itself where that is of none of them."""
    held = func.env.read(_key(func))
    given = args.pos[0] if args.pos else v.UNKNOWN
    surely: list[tuple[int, v.Func]] = []
    perhaps: list[v.Func] = []
    for one in held.elts if isinstance(held, v.Items) else ():
        assert isinstance(one, v.Items)
        cls, other = one.elts
        assert isinstance(other, v.Func)
        answer = instance_of(interp, given, cls)
        other = other.bind(func.receiver)
        if answer is True:
            surely.append((_depth(given, cls), other))
        elif answer is None:
            perhaps.append(other)
    if surely:
        # Of several classes the nearest counts; of one class, what is registered last.
        nearest = min(depth for depth, _ in surely)
        return [*perhaps, [other for depth, other in surely if depth == nearest][-1]]
    itself = func.bind(func.receiver)
    itself.decorated = tuple(one for one in func.decorated if not _is_dispatcher(one))
    return [itself, *perhaps]


def _depth(value: v.Value, cls: v.Value) -> int:
    mro = value.cls.mro() if isinstance(value, v.Inst) else []
    return mro.index(cls) if isinstance(cls, v.Cls) and cls in mro else len(mro)
