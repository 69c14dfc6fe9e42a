"""What the calls of a function have in common that are seen in a run over unreached code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.tensors import detached, no_gradient

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp


def note_call(interp: Interp, func: v.Func, args: v.Args) -> None:
    """A function is called: which of its parameters are given tensors that do not require grad, in all calls so far."""
    known = interp.without_gradient.get(func.key)
    if known is None or known:
        found = _without_gradient(interp, func, args)
        interp.without_gradient[func.key] = found if known is None else found & known


def _without_gradient(interp: Interp, func: v.Func, args: v.Args) -> frozenset[str]:
    if no_gradient(interp) is True:
        return frozenset(one.name for one in func.fn.params)
    pos = list(args.pos)
    if func.receiver is not None:
        pos.insert(0, func.receiver)
    names = [one.name for one in func.fn.params if one.kind in ("p", "a")]
    given = {**dict(zip(names, pos, strict=False)), **args.kw}
    return frozenset(name for name, value in given.items() if detached(value))
