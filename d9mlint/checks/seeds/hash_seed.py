"""DET105: a hash seed that is set after the interpreter has read it."""

from __future__ import annotations

from d9mlint.base.findings import Severity
from d9mlint.checks.base import Rule
from d9mlint.interp.activity import TRAIN, where
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
    by_hash = ("DET210", "DET213")
    """The rules about what depends on hashes of texts."""
    places = remembered(list[Where])

    @on(EnvironmentEvent)
    def environment(self, event: EnvironmentEvent) -> None:
        """A variable is set."""
        if event.name != "PYTHONHASHSEED":
            return
        self.places.append(Where(self.run, event.node, event.name))
        if self.run.entry is None:
            self._report(Severity.ADVICE)

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """Whether the program starts itself again is known, and whether anything in it depends on hashes."""
        if self.places:
            run = self.run
            decided = run.orders.finish(
                run.reads_variable, run.reads_attribute, where(run, TRAIN) is not None
            )
            self._report(None if any(key[0] in self.by_hash for key in decided) else Severity.ADVICE)

    def _report(self, severity: Severity | None) -> None:
        places, self.places = self.places, []
        for place in places:
            if "exec" in self.run.places:
                continue
            self.report(
                "DET105",
                place,
                "setting `PYTHONHASHSEED` in a running process has no effect on it: Python reads it only at start-up",
                "set it in the shell (`PYTHONHASHSEED=0 python ...`), and sort sets of strings before iterating over them",
                subject="PYTHONHASHSEED",
                severity=severity,
            )
