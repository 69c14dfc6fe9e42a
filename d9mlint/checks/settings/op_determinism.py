"""DET306: training with TensorFlow without op determinism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.checks.base import Rule
from d9mlint.checks.settings.tf_release import switch_for, version
from d9mlint.interp.activity import TF_TRAIN, where
from d9mlint.interp.events import EndEvent
from d9mlint.interp.listening import on

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView


class WithoutOpDeterminism(Rule):
    """DET306: training with TensorFlow without op determinism."""

    codes = ("DET306",)

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """Whether the program trains, and whether op determinism is on, is known."""
        run = self.run
        place = where(run, TF_TRAIN)
        if run.entry is None or place is None or run.device != "cuda" or "no-gpu" in run.places:
            return
        if _switched_on(run) or run.targets is None:
            return
        target = run.targets.version("tensorflow")
        self.report(
            "DET306",
            place,
            f"`{place.entry}` trains with TensorFlow {target.version} without op determinism",
            switch_for(run),
            subject="tensorflow",
            targets=(f"tensorflow {target.version}", target.source),
            entry_wide=True,
        )


def _switched_on(run: RunView) -> bool:
    switches = run.switches
    if switches.tf_on:
        return True
    if version(run, "<2.1"):
        return switches.tf_patched or "TF_CUDNN_DETERMINISTIC" in switches.tf_variables
    return "TF_DETERMINISTIC_OPS" in switches.tf_variables
