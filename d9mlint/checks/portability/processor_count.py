"""DET803: numbers of threads, workers and examples that are computed from the machine."""

from __future__ import annotations

from typing import Any

from d9mlint.checks.base import Rule, argument_node
from d9mlint.checks.derivation import derives
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import on_call_if


def _is_sized(rule: Any, api: str) -> bool:
    return "machine-sized" in rule.run.kb.by_role(api)


class ProcessorCount(Rule):
    """DET803: numbers of threads, workers and examples that are computed from the machine."""

    codes = ("DET803",)

    @on_call_if(_is_sized)
    def divided(self, call: CallEvent) -> None:
        """Work is divided by a number."""
        for entry in self.run.kb.roles(call.api):
            if entry.role != "machine-sized":
                continue
            number = argument_node(call.node, entry.arg, entry.pos)
            source = derives(self.run, number, "processor-count")
            if source:
                self.report(
                    "DET803",
                    call.node,
                    f"`{entry.arg}` is computed from `{source}`: machines with other processors or devices "
                    "divide the work differently",
                    f"give `{entry.arg}` a fixed number where results of different machines are compared",
                    subject=f"{call.api}:{entry.arg}",
                )
