"""Tests that compare what models give, and take no gradient of it."""

from __future__ import annotations

from d9mlint.interp.activity import TRAIN
from d9mlint.interp.view import RunView
from d9mlint.project.entry_points import is_test

_GRADIENTS = frozenset(
    {"autograd", "backward", "grad", "gradcheck", "gradgradcheck", "requires_grad", "requires_grad_"}
)


def takes_no_gradient(run: RunView, path: str) -> bool:
    """Whether a file holds tests, which their runner alone calls, that name nothing that takes a gradient or trains, and
    call nothing that was seen to."""
    file = run.modules.by_path[path]
    if run.entry is not None or not is_test(file) or TRAIN in run.places:
        return False
    words = run.whole(file).words
    return _GRADIENTS.isdisjoint(words) and run.kb.training_methods.keys().isdisjoint(words)
