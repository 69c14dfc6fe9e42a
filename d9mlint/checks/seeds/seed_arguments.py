"""DET107: arguments of libraries that are seeds and differ from run to run."""

from __future__ import annotations

from d9mlint.checks.base import Rule
from d9mlint.checks.seeds.draws import entropy_source, report_changing_seed
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import on_call_if
from d9mlint.interp.text import call_text


class SeedArguments(Rule):
    """DET107: seeds that estimators, samplers and other objects of libraries are given by name."""

    codes = ("DET107",)

    @on_call_if(lambda rule, api: rule.run.kb.is_of_known_library(api))
    def call(self, call: CallEvent) -> None:
        """A library is given arguments by name."""
        if self.run.in_worker:
            return
        for name, value in call.args.kw.items():
            source = entropy_source(self.run, value) if self.run.kb.is_seed(name) else None
            if source is not None:
                report_changing_seed(self, source, call.node, call_text(call))
