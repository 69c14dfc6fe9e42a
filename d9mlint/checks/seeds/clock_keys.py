"""DET107: JAX keys made from the clock."""

from __future__ import annotations

from d9mlint.checks.base import Rule
from d9mlint.checks.seeds.draws import entropy_source, report_changing_seed
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import on_call_if
from d9mlint.interp.rng import seed_value
from d9mlint.interp.text import call_text


class ClockKeys(Rule):
    """DET107: keys made from the clock."""

    codes = ("DET107",)

    @on_call_if(lambda rule, api: bool(rule.run.kb.rng(api)))
    def call(self, call: CallEvent) -> None:
        """A key, or a generator without global state, is made: from what seed?"""
        for entry in self.run.kb.rng(call.api):
            if entry.kind != "stateless" or not (entry.seed_arg or entry.seed_pos is not None):
                continue
            source = entropy_source(self.run, seed_value(call.args, entry))
            if source is not None:
                report_changing_seed(self, source, call.node, call_text(call))
