"""DET304: switches by names that they no longer have."""

from __future__ import annotations

from d9mlint.base.findings import Severity
from d9mlint.checks.base import Rule, replace_fix
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import on_call
from d9mlint.interp.text import call_text
from d9mlint.ir import nodes as m

RENAMED = {
    "torch.set_deterministic": "use_deterministic_algorithms",
    "torch.is_deterministic": "are_deterministic_algorithms_enabled",
}


class Deprecated(Rule):
    """DET304: switches by names that they no longer have."""

    codes = ("DET304",)

    @on_call(*RENAMED)
    def renamed(self, call: CallEvent) -> None:
        """A switch by its former name."""
        if self.run.targets is None or self.run.targets.matches("torch", "<1.8"):
            return
        target = self.run.targets.version("torch")
        gone = self.run.targets.matches("torch", ">=1.10")
        new = RENAMED[call.api]
        fix = None
        if isinstance(call.node, m.Call) and isinstance(call.node.func, m.Name) and "." in call.node.func.id:
            prefix = call.node.func.id.rpartition(".")[0]
            fix = replace_fix(call.node.func, f"{prefix}.{new}", f"call {new}")
        state = "was removed in torch 1.10" if gone else "is deprecated"
        self.report(
            "DET304",
            call.node,
            f"`{call_text(call)}` {state} (torch {target.version})",
            f"use `torch.{new}`",
            subject=call.api,
            severity=Severity.ERROR if gone else Severity.WARNING,
            fix=fix,
            targets=(f"torch {target.version}", target.source),
        )
