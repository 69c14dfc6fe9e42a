"""Loaders that nothing iterates: those of which the program reads the dataset only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp.naming import running
from d9mlint.ir import nodes as m
from d9mlint.ir.liveness import may_be_shared, only_asked_for

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

_KEPT = frozenset({"dataset", "batch_size", "num_workers", "drop_last"})
"""Attributes of loaders that are as they were given: to read them starts no worker and draws no order."""


def is_idle(run: RunView, node: Any) -> bool:
    """Whether a loader is made that the function which makes it does not iterate and keeps for itself."""
    function = running(run)
    if function is None or not isinstance(node, m.Call):
        return False
    kept = only_asked_for(function, node, _KEPT)
    return bool(kept) and not may_be_shared(run.whole(run.frame.file), function, {kept})
