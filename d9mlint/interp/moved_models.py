"""What may move the weights of modules to another device, or put others in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.calls import has_model
from d9mlint.interp.devices import DEVICE, named, runner_of
from d9mlint.interp.library.inputs import MOVING
from d9mlint.interp.library_modules import MODULE, is_module
from d9mlint.interp.shapes import TENSOR, form
from d9mlint.interp.usage import handed_over

if TYPE_CHECKING:
    from d9mlint.interp.events import CallEvent, ObjectAttributeEvent
    from d9mlint.interp.view import RunView


def may_be_moved(interp: RunView, owner: v.Value | None, device: v.Value | None) -> bool:
    """Whether ``owner.to(device)`` may move the weights of a module, and not to the CPU: all but data, and modules that
    have no weights."""
    if device is not None and all(named(interp, one) == "cpu" for one in v.alternatives(device)):
        return False
    owners = v.alternatives(owner) if owner is not None else (v.UNKNOWN,)
    return not all(_has_no_weights(interp, one) for one in owners)


def _has_no_weights(interp: RunView, value: v.Value) -> bool:
    if v.is_none(value) is True:
        return True
    if not isinstance(value, v.Obj):
        return False
    data = form(value).grad is False and not value.api.endswith(".data")
    if value.api == DEVICE or (data and not is_module(interp, value)):
        return True
    entry = interp.kb.tensor(value.api)
    return value.type == value.api and entry is not None and entry.grad != "weights"


_LEAVING = ("torch.", "builtins.", "copy.", "functools.")
"""Before the names of functions that leave the weights of modules where they are, but for those that the knowledge names."""


def may_be_moved_by(interp: RunView, call: CallEvent) -> bool:
    """Whether a function may move the weights of a module that it is given or that its receiver holds: one that is not
    known, and one of a library that is not PyTorch itself; also one that makes weights of a tensor that may be elsewhere."""
    if runner_of(interp, call.api, call.args) is not None:
        return True
    if _leaves(interp, call):
        entry = interp.kb.tensor(call.api)
        if entry is not None and entry.grad == "leaf":
            return not _is_on_cpu(call.args.get("data", 0))
        assigned = call.args.kw.get("assign")
        if assigned is not None and v.truth(assigned) is not False:
            return True
        # `nn.Module.cuda(model)`
        return (
            call.owner is None and call.api.rpartition(".")[2] in MOVING and has_model(interp, call.args.pos)
        )
    owner = call.owner.receiver if isinstance(call.owner, v.Super) else call.owner
    held = [owner, *owner.attrs.values()] if isinstance(owner, v.Inst) else []
    return has_model(interp, held) or has_model(interp, handed_over(call.args))


def _leaves(interp: RunView, call: CallEvent) -> bool:
    """Whether a function is one of PyTorch or Python that leaves weights where they are, but for what its arguments say, or
    a method that does, which the class of a model has from a library."""
    if interp.kb.role(call.api, "moves-models") is not None:
        return False
    owner = call.owner.receiver if isinstance(call.owner, v.Super) else call.owner
    if call.api.startswith(_LEAVING):
        return True
    method = f"{MODULE}.{call.api.rpartition('.')[2]}"
    return (
        isinstance(owner, v.Inst)
        and has_model(interp, [owner])
        and any(interp.kb.role(api, "leaves-weights") is not None for api in (method, call.api))
    )


def may_be_replaced(interp: RunView, event: ObjectAttributeEvent) -> bool:
    """Whether weights of a module may be replaced by some that are elsewhere: ``parameter.data = x.cuda()``."""
    return isinstance(event.value, v.Obj) and event.value.type == TENSOR and not _is_on_cpu(event.value)


def _is_on_cpu(value: v.Value | None) -> bool:
    return value is None or all(form(one).device == "cpu" for one in v.alternatives(value))
