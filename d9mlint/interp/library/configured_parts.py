"""Parts that a parser of configurations makes for the classes that it makes, as the types of their parameters say."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from d9mlint.base.coverage import BY_CONFIGURATION
from d9mlint.interp import values as v
from d9mlint.interp.library_modules import MODULE

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.ir import nodes as m

Annotated = Callable[["Interp", v.Func, "m.Expr"], v.Value]
"""What an annotation says of a parameter."""
_ANY = v.Args(star=True, dstar=True)
_DEEPEST = 4
"""So many classes are made one for the other at most."""


def given(
    interp: Interp, cls: v.Cls, args: v.Args, node: Any, annotated: Annotated, depth: int = 0
) -> v.Args:
    """The arguments that a class is made with, with an object for each parameter without a default whose annotation names a
    class of the program: the command line and files say what that one is made with."""
    init = cls.find("__init__")
    if not isinstance(init, v.Func) or depth == _DEEPEST:
        return args
    made: dict[str, v.Value] = {}
    for param in init.fn.params[1:]:
        if param.kind not in ("a", "k") or param.default is not None or param.annotation is None:
            continue
        if param.name in args.kw:
            continue
        kind = annotated(interp, init, param.annotation)
        if isinstance(kind, v.Inst) and not _is_record(kind.cls):
            inner = given(interp, kind.cls, _ANY, node, annotated, depth + 1)
            made[param.name] = interp.call(kind.cls, inner, node)
        elif isinstance(kind, v.Obj) and kind.type == MODULE:
            interp.gap(
                "dynamic-call", f"the `{param.name}` that `{cls.cls.name}` is given {BY_CONFIGURATION}", node
            )
    return args.replaced(v.Args(None, made)) if made else args


def _is_record(cls: v.Cls) -> bool:
    """Whether the fields of a class are all that there is to be made."""
    return cls.find("__init__") is None
