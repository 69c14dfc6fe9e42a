"""DET307: a variable that op determinism overrules."""

from __future__ import annotations

from d9mlint.checks.base import Rule
from d9mlint.interp.events import EndEvent, EnvironmentEvent
from d9mlint.interp.listening import on
from d9mlint.interp.memory import remembered
from d9mlint.interp.places import Where

AUTOTUNE = ("TF_CUDNN_USE_AUTOTUNE", "TF_USE_CUDNN_AUTOTUNE")


class Autotuning(Rule):
    """DET307: a variable that op determinism overrules."""

    codes = ("DET307",)
    places = remembered(list[Where])

    @on(EnvironmentEvent)
    def variable(self, event: EnvironmentEvent) -> None:
        """A variable is set."""
        if event.name in AUTOTUNE:
            self.places.append(Where(self.run, event.node, event.name))

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """Whether op determinism is on is known."""
        for place in self.places:
            if self.run.switches.tf_wanted:
                self.report(
                    "DET307",
                    place,
                    f"`{place.subject}` conflicts with op determinism, which selects cuDNN algorithms itself",
                    "do not set it",
                    subject=place.subject,
                )
