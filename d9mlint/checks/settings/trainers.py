"""DET312: options of trainers that allow results to vary."""

from __future__ import annotations

from d9mlint.base.findings import Fix
from d9mlint.checks.base import Rule, argument_node, replace_fix
from d9mlint.checks.settings.literals import is_true, literal_true
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import on_call
from d9mlint.interp.switches import LIGHTNING_TRAINERS


class Trainers(Rule):
    """DET312: options of trainers that allow results to vary."""

    codes = ("DET312",)

    @on_call(*LIGHTNING_TRAINERS)
    def lightning(self, call: CallEvent) -> None:
        """A trainer is made."""
        benchmark = call.args.kw.get("benchmark")
        if benchmark is not None and is_true(benchmark):
            node = argument_node(call.node, "benchmark")
            fix = replace_fix(node, "False", "set `benchmark` to `False`") if literal_true(node) else None
            text = "`benchmark=True`: autotuning may select different algorithms in each run"
            _trainer(self, call, "benchmark", text, fix)


def _trainer(rule: Rule, call: CallEvent, argument: str, text: str, fix: Fix | None = None) -> None:
    rule.report(
        "DET312",
        call.node,
        text,
        f"set `{argument}=" + ("False`" if argument == "benchmark" else "True`"),
        subject=f"{call.api}({argument})",
        fix=fix,
    )
