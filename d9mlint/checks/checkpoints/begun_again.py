"""DET603: loops over epochs that count from zero again after the whole state of a run was restored."""

from __future__ import annotations

from typing import Final, NamedTuple

from d9mlint.base.entry_report import are_other_files
from d9mlint.base.findings import Confidence
from d9mlint.checks.base import Rule
from d9mlint.checks.checkpoints.tensorflow import counts_from_zero
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, EndEvent, LoopEvent
from d9mlint.interp.file_names import ends_of
from d9mlint.interp.listening import on, on_call_if
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.places import Where
from d9mlint.interp.text import call_text

_RESTORES: Final = "restores-run"
_SAVES: Final = "saves-run"
_ADDS: Final = "adds-to-run"


class Restored(NamedTuple):
    """Where a run is restored before any training, and how what is loaded ends."""

    place: Where
    ends: frozenset[str]


class BegunAgain(Rule):
    """DET603: loops over epochs that begin with the first one again."""

    codes = ("DET603",)
    restored = remembered(list[Restored])
    loops = remembered_table(str, Where)
    """The outermost loops that count from zero."""
    saved_in = remembered_table(str, frozenset[str])
    """The loops in which a run is saved, and how what is saved ends."""
    holds_more = remembered(bool)
    """Whether an object of the program is saved and restored with the run, which may count epochs."""

    @on_call_if(lambda rule, api: rule.run.kb.role(api, _RESTORES) is not None)
    def restore(self, call: CallEvent) -> None:
        """The state of a run is restored: before it trains, so as to go on with it."""
        role = self.run.kb.role(call.api, _RESTORES)
        if role is None or self.run.loops or self.run.training_loops:
            return
        ends = ends_of(self.run, call.args.get(role.arg, role.pos))
        self.restored.append(Restored(Where(self.run, call.node, call_text(call)), ends))

    @on_call_if(lambda rule, api: rule.run.kb.role(api, _SAVES) is not None)
    def save(self, call: CallEvent) -> None:
        """The state of a run is saved."""
        role = self.run.kb.role(call.api, _SAVES)
        if role is not None and self.run.loops:
            outermost = self.run.loops[0].key
            self.saved_in[outermost] = ends_of(self.run, call.args.get(role.arg, role.pos))

    @on_call_if(lambda rule, api: rule.run.kb.role(api, _ADDS) is not None)
    def add(self, call: CallEvent) -> None:
        """Something more is saved with a run."""
        known = [isinstance(one, v.Obj) for one in call.args.pos]
        self.holds_more = self.holds_more or call.args.star or not all(known)

    @on(LoopEvent)
    def loop(self, event: LoopEvent) -> None:
        """A loop begins."""
        loop, begins = event
        if begins and counts_from_zero(loop) and len(self.run.loops) == 1:
            self.loops.setdefault(loop.key, lambda: Where(self.run, loop.stmt, "epochs"))

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        if not self.restored or self.holds_more or self.run.entry is None:
            return
        for key in self.loops.known():
            if key not in self.run.training_loops or key not in self.saved_in:
                continue
            begun, saved = self.loops[key], self.saved_in[key]
            by = next((one for one in self.restored if one.place.order < begun.order), None)
            if by is None or (saved and by.ends and are_other_files(saved, by.ends)):
                continue
            self.report(
                "DET603",
                begun,
                f"this loop counts from the first epoch again after `{by.place.subject}`: a resumed run repeats the "
                "epochs that are over",
                "save the number of the next epoch with the state, and begin the loop with it: "
                "`range(first_epoch, epochs)`",
                subject="epochs",
                confidence=Confidence.MEDIUM,
            )
