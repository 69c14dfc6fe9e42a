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
from d9mlint.interp.library.loaders import on_iterate

if TYPE_CHECKING:
    from d9mlint.base.findings import Finding
    from d9mlint.interp.hooks import Hooks
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

    def start(self, hooks: Hooks) -> Callable[[], list[Finding]]:
        """Listen to a run; the result gives what was found when it has ended."""
        reporter = Reporter(self.knowledge, self.codes)
        hooks.report = reporter.report
        hooks.iterations.append(on_iterate)
        activity.register(hooks)
        coverage.register(hooks)
        storage.register(hooks)
        releases.register(hooks)
        for family in _FAMILIES:
            family.register(hooks, reporter)
        return reporter.findings
