"""Loaders that nothing iterates: those of which the program reads the dataset only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.ir import nodes as m
from d9mlint.ir.liveness import only_asked_for

if TYPE_CHECKING:
    from d9mlint.interp.events import CallEvent
    from d9mlint.interp.view import RunView

_KEPT = frozenset({"dataset", "batch_size", "num_workers", "drop_last"})
"""Attributes of loaders that are as they were given: to read them starts no worker and draws no order."""


def is_idle(run: RunView, call: CallEvent) -> bool:
    """Whether a loader is made that the function which makes it does not iterate and keeps for itself."""
    frame = run.frame
    function = frame.func.fn if frame.func is not None else frame.file.facts.functions[0]
    return isinstance(call.node, m.Call) and only_asked_for(frame.file.facts, function, call.node, _KEPT)
