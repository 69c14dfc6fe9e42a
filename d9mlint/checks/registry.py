"""The rules that can be run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from d9mlint.checks import (
    asynchrony,
    checkpoints,
    coverage,
    data,
    hazards,
    kernels,
    keys,
    limits,
    loading,
    memory,
    ops,
    order,
    portability,
    recomputation,
    releases,
    resume,
    seeds,
    settings,
    settings_tf,
    storage,
    tfdata,
)
from d9mlint.checks.base import Reporter
from d9mlint.interp import activity
from d9mlint.interp.hooks import Hooks
from d9mlint.interp.library.loaders import on_iterate

if TYPE_CHECKING:
    from d9mlint.base.findings import Finding
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge import Knowledge

# What the program does is noted first: rules ask for it. Among themselves their order does not matter.
_FAMILIES = (
    seeds,
    settings,
    settings_tf,
    data,
    loading,
    tfdata,
    order,
    memory,
    ops,
    kernels,
    keys,
    asynchrony,
    limits,
    recomputation,
    checkpoints,
    resume,
    portability,
    hazards,
)


class Rules:
    """The rules of the given codes, which know what the knowledge base says."""

    def __init__(self, knowledge: Knowledge, codes: Iterable[str]) -> None:
        self.knowledge = knowledge
        self.codes = frozenset(codes)

    def start(self, interp: Interp) -> Callable[[], list[Finding]]:
        """Listen to a run; the result gives what was found when it has ended."""
        reporter = Reporter(interp, self.knowledge, self.codes)
        interp.report = reporter.add
        models = Hooks()
        models.iterations.append(on_iterate)
        activity.register(models)
        coverage.register(models)
        storage.register(models)
        releases.register(models)
        models.adopt(interp, interp.listeners)
        for family in _FAMILIES:
            if isinstance(family, type):
                interp.listeners.add(family(interp, reporter))
                continue
            hooks = Hooks()
            family.register(hooks, reporter)
            hooks.adopt(interp, interp.listeners)
        return reporter.findings
