"""DET304: packages that patch releases of TensorFlow which they do not know."""

from __future__ import annotations

from d9mlint.base.findings import Severity
from d9mlint.checks.base import Rule
from d9mlint.checks.settings.tf_release import switch_for, version
from d9mlint.interp.events import CallEvent, EnvironmentEvent
from d9mlint.interp.listening import on, on_call
from d9mlint.interp.switches import TF_PATCHES, TF_VARIABLES, is_on
from d9mlint.interp.text import call_text


class Patches(Rule):
    """DET304: packages that patch releases of TensorFlow which they do not know."""

    codes = ("DET304",)

    @on_call(*TF_PATCHES)
    def patch(self, call: CallEvent) -> None:
        """A patch is applied."""
        if self.run.targets is None or (
            call.api.startswith("tfd") and self.run.targets.matches("tensorflow", ">=1.14,<2.1")
        ):
            return
        target = self.run.targets.version("tensorflow")
        raises = call.api.startswith("tfd")
        text = (
            f"raises TypeError on TensorFlow {target.version}"
            if raises
            else "was never released under this name"
        )
        self.report(
            "DET304",
            call.node,
            f"`{call_text(call)}` {text}",
            switch_for(self.run),
            subject=call.api,
            severity=Severity.ERROR,
            targets=(f"tensorflow {target.version}", target.source),
        )

    @on(EnvironmentEvent)
    def variable(self, event: EnvironmentEvent) -> None:
        """A variable that later releases do not need."""
        name, value, node = event
        if name not in TF_VARIABLES or not is_on(value):
            return
        old = version(self.run, "<2.8") if name == "TF_DETERMINISTIC_OPS" else version(self.run, "<2.1")
        if self.run.targets is None or old:
            return
        target = self.run.targets.version("tensorflow")
        if any(map(self.run.uses, ("torch", "jax"))) and not self.run.uses("tensorflow"):
            # Seeding helpers of programs with torch or JAX set it for good measure; TensorFlow's switch is of no use there.
            return
        self.report(
            "DET304",
            node,
            f"`{name}` is deprecated in TensorFlow {target.version}",
            switch_for(self.run),
            subject=name,
            severity=Severity.WARNING,
            targets=(f"tensorflow {target.version}", target.source),
        )
