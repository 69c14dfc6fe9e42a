"""Objects of JAX that hold a state of training, as ``TrainState`` of Flax does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.library.functional_modules import training_role

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

STATE_OF_JAX = "optax.OptState"
"""The type of the states of optimizers of JAX."""


def training_in(run: RunView, value: v.Value) -> v.Mapping | None:
    """What an object consists of that holds a state of training, as its class has it; None for others."""
    for one in v.alternatives(value):
        role = training_role(run.kb, one)
        if role is not None and isinstance(one, (v.Inst, v.Obj)):
            optimizer = v.Obj(STATE_OF_JAX, STATE_OF_JAX)
            parts: dict[Any, v.Value] = {**dict(one.attrs.items()), role.arg: optimizer}
            parts.update(dict.fromkeys(role.more, v.UNKNOWN))
            return v.Mapping(parts)
    return None
