"""The rules that can be run."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from d9mlint import checks
from d9mlint.base.errors import UsageError
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
from d9mlint.checks.base import Reporter, Rule
from d9mlint.interp import activity
from d9mlint.interp.hooks import Hooks
from d9mlint.interp.library.loaders import on_iterate
from d9mlint.knowledge.plugins import load_rules

if TYPE_CHECKING:
    from d9mlint.base.findings import Finding
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.plugins import Plugin

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


@functools.cache
def found_rules() -> tuple[type[Rule], ...]:
    """The rules of modules that are not listed above: whoever adds a module with a rule has added the rule."""
    listed = {family.__module__ if isinstance(family, type) else family.__name__ for family in _FAMILIES}
    names = sorted(f"{checks.__name__}.{one.name}" for one in pkgutil.iter_modules(checks.__path__))
    modules = [importlib.import_module(name) for name in names if name not in {*listed, __name__}]
    return tuple(
        one
        for module in modules
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, Rule) and one.codes and one.__module__ == module.__name__
    )


class Rules:
    """The rules of the given codes, which know what the knowledge base says, and those of plugins. Raises UsageError
    for a plugin whose rules cannot be used."""

    def __init__(self, knowledge: Knowledge, codes: Iterable[str], plugins: tuple[Plugin, ...] = ()) -> None:
        self.knowledge = knowledge
        self.codes = frozenset(codes)
        self.plugins = plugins
        self._own: list[type[Rule]] = load_rules(plugins, Rule) if plugins else []
        for rule in self._own:
            for code in rule.codes:
                if code not in knowledge.rules:
                    raise UsageError(f"{rule.__module__}.{rule.__name__} reports {code}, which has no page.")

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
        for rule in (*found_rules(), *self._own):
            if reporter.on(*rule.codes):
                interp.listeners.add(rule(interp, reporter))
        return reporter.findings
