"""DET303: a switch that is named and not called."""

from __future__ import annotations

from d9mlint.base.findings import Severity
from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.events import BareNameEvent
from d9mlint.interp.listening import on
from d9mlint.interp.switches import ENABLE


class NotCalled(Rule):
    """DET303: a switch that is named and not called."""

    codes = ("DET303",)

    @on(BareNameEvent)
    def bare(self, event: BareNameEvent) -> None:
        """A name stands alone."""
        value, node = event
        if isinstance(value, v.Ext) and self.run.kb.canonical(value.name) in (
            ENABLE,
            "torch.use_deterministic_algorithms",
        ):
            name = value.name.rpartition(".")[2]
            self.report(
                "DET303",
                node,
                f"`{name}` is not called: the parentheses are missing",
                f"write `{name}()`" if name.startswith("enable") else f"write `{name}(True)`",
                subject=ENABLE,
                severity=Severity.ERROR,
            )
