"""Which callables take the arguments of a call, and where they have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView


def accepts(func: v.Value, args: v.Args) -> bool:
    """Whether a callable takes the arguments of a call: of several that may be meant, only those can be."""
    bound = isinstance(func, (v.Inst, v.Cls)) or (isinstance(func, v.Func) and func.receiver is not None)
    if isinstance(func, v.Inst):
        names = ("__call__", "forward", "call")
        func = next((x for name in names if (x := func.cls.find(name)) is not None), v.UNKNOWN)
    elif isinstance(func, v.Cls):
        func = func.find("__init__") or v.UNKNOWN
    if not isinstance(func, v.Func):
        return True
    params = func.fn.params
    if not any(param.kind == "w" for param in params) and not set(args.kw) <= {
        param.name for param in params if param.kind not in ("p", "v")
    }:
        return False
    placed = [param for param in params if param.kind in ("p", "a")][int(bound) :]
    if len(args.pos) > len(placed) and not any(param.kind == "v" for param in params):
        return False
    missing = [
        param for param in placed[len(args.pos) :] if param.default is None and param.name not in args.kw
    ]
    return not missing or args.star or args.dstar


def may_be_called(interp: RunView, func: v.Value, args: v.Args) -> bool:
    """The same, also for modules of a library that take a fixed number of inputs."""
    if not isinstance(func, v.Obj):
        return accepts(func, args)
    role = interp.kb.role(func.api, "takes-inputs")
    if role is None or role.pos is None:
        return True
    given = len(args.pos) + len(args.kw)
    return given <= role.pos if args.star or args.dstar else given == role.pos


def are_keywords(interp: RunView, node: Any, value: v.Value) -> bool:
    """Whether a value is the dictionary in which the running function gets its keyword arguments, all of which are known."""
    func = interp.frame.func
    return (
        isinstance(value, v.Mapping)
        and not value.open
        and isinstance(node, m.Name)
        and func is not None
        and any(one.kind == "w" and one.name == node.id for one in func.fn.params)
    )
