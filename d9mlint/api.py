"""The names of d9mlint that other packages may rely on. Everything else may change in any release.

Linting from Python::

    from d9mlint import api

    settings = api.load_settings("src", overrides={"select": ["DET3"]})
    for item in api.check(["src"], settings).items:
        print(item.finding.code, item.finding.path, item.finding.message)

Rules with code, in a plugin or in ``d9mlint/checks``::

    class ClockSeed(api.Rule):
        codes = ("ACM003",)
        seen = api.remembered(bool)

        @api.on_call("acme.seed")
        def seeded(self, call: api.CallEvent) -> None:
            seed = api.literal(call.args.get("value", 0))
            if seed is None:
                self.report("ACM003", call.node, "`acme.seed` without a seed", "pass a number")

* ``Rule``: one object for each analysis run, called at events through methods with a decorator. ``codes`` are the rules that
  it reports with ``report(code, place, message, help)``; each has a page. ``self.run`` is the run, which is asked and never
  changed: ``run.entry`` (None in code that no entry point reaches), ``run.uses(library)``, ``run.kb_matches(library,
  versions)``, ``run.mode(name)``, ``run.device``.
* ``on_call``, ``on_method``, ``on_attribute``: calls by canonical name, methods by bare name, attributes of library modules.
  ``on(EndEvent)`` and ``on(EnvironmentEvent)``: the end of the program, environment variables.
* ``remembered(kind)``: a field that is state of one run. Plain attributes are not: an import that several runs have in
  common is analyzed once, and only declared fields know that.
* ``literal(value)``: the Python value of an abstract value where it is known for certain, else ``UNKNOWN``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.base.errors import UsageError
from d9mlint.base.findings import Applicability, Confidence, Edit, Finding, Fix, Severity, Step
from d9mlint.checks.base import Rule
from d9mlint.config.settings import Settings, load_settings
from d9mlint.interp import values as _values
from d9mlint.interp.events import AttributeEvent, CallEvent, EndEvent, EnvironmentEvent
from d9mlint.interp.listening import on, on_attribute, on_call, on_method
from d9mlint.interp.memory import remembered
from d9mlint.pipeline import Item, Result, check

if TYPE_CHECKING:
    from d9mlint.interp.values import Value

__all__ = [
    "UNKNOWN",
    "Applicability",
    "AttributeEvent",
    "CallEvent",
    "Confidence",
    "Edit",
    "EndEvent",
    "EnvironmentEvent",
    "Finding",
    "Fix",
    "Item",
    "Result",
    "Rule",
    "Settings",
    "Severity",
    "Step",
    "UsageError",
    "check",
    "literal",
    "load_settings",
    "on",
    "on_attribute",
    "on_call",
    "on_method",
    "remembered",
]


class _Unknown:
    """The answer where a value is not known."""

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __bool__(self) -> bool:
        return False


UNKNOWN = _Unknown()
"""What ``literal`` gives for a value that is not known for certain."""


def literal(value: Value | None) -> Any:
    """The Python value of an argument: None where the argument is None or left out, ``UNKNOWN`` where its value is not
    known. The default of an option of the program is a known value."""
    if value is None:
        return None
    return value.value if isinstance(value, _values.Lit) else UNKNOWN
