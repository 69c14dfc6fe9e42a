"""DET304: switches that the version in use does not have yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from d9mlint.base.findings import Severity
from d9mlint.checks.base import Rule
from d9mlint.interp.events import AttributeEvent, CallEvent, EnvironmentEvent
from d9mlint.interp.listening import Listening, on
from d9mlint.interp.switches import TF_VARIABLES
from d9mlint.knowledge.versions import compare, parse, split


def _missing(rule: Rule, name: str, node: Any, consequence: str) -> None:
    """A call, attribute or variable that the targeted release does not have yet."""
    setting = rule.run.kb.setting(name)
    if setting is None or not setting.versions or rule.run.targets is None:
        return
    target = rule.run.targets.version(setting.library)
    first = next((value for operator, value in split(setting.versions)[1] if operator == ">="), "")
    if not first or not target.version or compare(parse(target.version), parse(first)) >= 0:
        return
    shown = name.removeprefix("env:")
    exists = "is not read by" if shown != name else "does not exist in"
    rule.report(
        "DET304",
        node,
        f"`{shown}` {exists} {setting.library} {target.version}: {consequence}",
        f"use {setting.library} {first} or later",
        subject=shown,
        severity=Severity.WARNING if shown != name else Severity.ERROR,
        targets=(f"{setting.library} {target.version}", target.source),
    )


class Newer(Rule):
    """DET304: what the facts say to exist from some release on: calls, attributes and variables."""

    codes = ("DET304",)

    def also(self) -> Iterable[tuple[Listening, Callable[[Any], None]]]:
        found: list[tuple[Listening, Callable[[Any], None]]] = []
        for setting in self.run.kb.settings():
            for name in setting.names if ">=" in setting.versions else ():
                if setting.kind == "call":
                    found.append((Listening(CallEvent, (name,)), self.called))
                elif setting.kind == "attribute":
                    found.append((Listening(AttributeEvent, (name,)), self.assigned))
        return found

    def called(self, call: CallEvent) -> None:
        """A call."""
        _missing(self, call.api, call.node, "the call raises AttributeError")

    def assigned(self, event: AttributeEvent) -> None:
        """An attribute is set."""
        _missing(self, event.name, self.run.statement, "setting it has no effect")

    @on(EnvironmentEvent)
    def exported(self, event: EnvironmentEvent) -> None:
        """A variable is set."""
        # Switches of older releases of TensorFlow have their own findings; without effect, a hazard is none.
        setting = self.run.kb.setting(f"env:{event.name}")
        if setting is not None and event.name not in TF_VARIABLES and not setting.hazards:
            _missing(self, f"env:{event.name}", event.node, "setting it has no effect")
