"""The rules that can be run."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TYPE_CHECKING

from d9mlint import checks
from d9mlint.base.errors import UsageError
from d9mlint.checks.base import Reporter, Rule
from d9mlint.knowledge.plugins import load_rules

if TYPE_CHECKING:
    from d9mlint.base.findings import Finding
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.plugins import Plugin


@functools.cache
def all_rules() -> tuple[type[Rule], ...]:
    """The rules of all modules of ``d9mlint.checks``: whoever adds a module with a rule has added the rule.

    Among themselves their order does not matter."""
    names = sorted(one.name for one in pkgutil.walk_packages(checks.__path__, f"{checks.__name__}."))
    modules = [importlib.import_module(name) for name in names]
    return tuple(rule for module in modules for rule in rules_of(module))


def rules_of(module: ModuleType) -> list[type[Rule]]:
    """The rules that a module defines, in their order."""
    return [
        one
        for one in vars(module).values()
        if isinstance(one, type)
        and issubclass(one, Rule)
        and one is not Rule
        and one.__module__ == module.__name__
    ]


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
        rules = (*all_rules(), *self._own)
        needed = [rule.fixed_with for rule in rules if not self.codes.isdisjoint(rule.codes)]
        reporter = Reporter(interp, self.knowledge, self.codes.union(*needed))
        interp.report = reporter.add
        for rule in rules:
            if not rule.codes or reporter.on(*rule.codes):
                interp.listeners.add(rule(interp, reporter))
        return reporter.findings
