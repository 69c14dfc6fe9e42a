"""Methods of the program that a method of a library's class calls on its receiver, one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import tensors
from d9mlint.interp import values as v
from d9mlint.interp.methods import bind_method
from d9mlint.interp.shapes import Form, form
from d9mlint.interp.usage import flatten

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import RoleEntry


def run(interp: Interp, inst: v.Inst, role: RoleEntry, args: v.Args, node: Any) -> v.Value | None:
    """``convolution.propagate(edges, x=x)`` calls ``message(x_j)``, ``aggregate(messages, index)`` and ``update(sums)``.
    Gives what the last one gives, None where the program does not define it."""
    result: v.Value | None = None
    for place, name in enumerate(role.more):
        found = inst.cls.find(name)
        if not isinstance(found, v.Func):
            # The library's own, which gives a tensor of some other shape.
            result = None
            continue
        _, *params = found.fn.params
        kw = {one.name: _given(one.name, args) for one in params if one.kind in ("a", "k")}
        pos: list[v.Value] = []
        first = next((one.name for one in params if one.kind in ("p", "a")), None)
        if place and first is not None:
            kw.pop(first, None)
            pos = [v.UNKNOWN if result is None else result]
        bound = bind_method(interp, found, inst, inst.cls, node)
        result = interp.call(bound, v.Args(pos, kw), node)
    return result


def run_of_argument(interp: Interp, role: RoleEntry, args: v.Args, node: Any, passes_on: bool) -> None:
    """``scaler.step(optimizer)`` calls ``optimizer.step()``. A method passes the arguments behind it on; what a function
    passes is not known."""
    passed = args.pos[role.pos + 1 :] if passes_on and role.pos is not None else []
    behind = v.Args(passed, star=not passes_on, dstar=not passes_on)
    for given in v.alternatives(args.get(role.arg, role.pos) or v.NONE):
        # Callbacks come as a list, also of pairs with their names.
        for one in flatten(given) if isinstance(given, v.Items) else [given]:
            if not isinstance(one, v.Inst):
                continue
            for name in role.more:
                found = one.cls.find(name)
                if isinstance(found, v.Func):
                    interp.call(bind_method(interp, found, one, one.cls, node), behind, node)


def run_with_model(interp: Interp, inst: v.Inst, role: RoleEntry, node: Any) -> None:
    """``trainer.train()`` calls ``training_step(model, batch)`` and ``compute_loss(model, batch)``."""
    model = inst.args.get(role.arg, role.pos) or v.UNKNOWN
    for name in role.more:
        found = inst.cls.find(name)
        if isinstance(found, v.Func):
            bound = bind_method(interp, found, inst, inst.cls, node)
            interp.call(bound, v.Args([model, tensors.batch("")], dstar=True), node)


def _given(name: str, args: v.Args) -> v.Value:
    """What a method gets for a parameter: the keyword argument of that name, or rows of it."""
    if name in args.kw:
        return args.kw[name]
    whole = args.kw.get(name.rpartition("_")[0])
    if not isinstance(whole, v.Obj) or whole.type != tensors.TENSOR:
        return v.UNKNOWN
    known = form(whole)
    sizes = None if known.sizes is None else (None, *known.sizes[1:])
    rows = Form(sizes, known.dtype, known.device, known.grad, whole=known.whole, least=known.least)
    return tensors.make(f"{tensors.TENSOR}.__getitem__", rows, whole.likely)
