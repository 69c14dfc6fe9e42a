"""DET105: a hash seed that is set after the interpreter has read it."""

from __future__ import annotations

from d9mlint.checks.base import Rule
from d9mlint.interp.events import (
    EndEvent,
    EnvironmentEvent,
)
from d9mlint.interp.listening import on
from d9mlint.interp.memory import remembered
from d9mlint.interp.places import Where


class HashSeed(Rule):
    """DET105: PYTHONHASHSEED is read when the interpreter starts."""

    codes = ("DET105",)
    places = remembered(list[Where])

    @on(EnvironmentEvent)
    def environment(self, event: EnvironmentEvent) -> None:
        """A variable is set."""
        if event.name != "PYTHONHASHSEED":
            return
        self.places.append(Where(self.run, event.node, event.name))
        if self.run.entry is None:
            self._report()

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """Whether the program starts itself again is known."""
        self._report()

    def _report(self) -> None:
        places, self.places = self.places, []
        for place in places:
            if "exec" in self.run.places:
                continue
            self.report(
                "DET105",
                place,
                "setting `PYTHONHASHSEED` in a running process has no effect: Python reads it only at start-up",
                "set it in the shell (`PYTHONHASHSEED=0 python ...`), and sort sets of strings before iterating over them",
                subject="PYTHONHASHSEED",
            )
