"""DET603: loops over epochs that count from zero again after the whole state of a run was restored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from d9mlint.base.entry_report import are_other_files
from d9mlint.base.findings import Confidence
from d9mlint.checks.base import Rule
from d9mlint.checks.checkpoints.tensorflow import counts_from_zero
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.events import CallEvent, EndEvent, Loop, LoopEvent
from d9mlint.interp.file_names import ends_of
from d9mlint.interp.listening import on, on_call_if
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.naming import running
from d9mlint.interp.places import Where
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.text import call_text
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import stores_of, times_stored
from d9mlint.ir.traversal import nodes, statements

if TYPE_CHECKING:
    from d9mlint.knowledge.schema import RoleEntry

_RESTORES: Final = "restores-run"
_SAVES: Final = "saves-run"
_ADDS: Final = "adds-to-run"


class Kept(NamedTuple):
    """What restores or saves a run: how the file or folder ends, and where the object was made whose method does it."""

    ends: frozenset[str]
    made: Site | None

    def is_other(self, saved: Kept) -> bool:
        """Whether what is restored is known to be none of what is saved."""
        if self.made is not None and saved.made is not None and self.made != saved.made:
            return True
        return bool(saved.ends and self.ends) and are_other_files(saved.ends, self.ends)


class Restored(NamedTuple):
    """Where a run is restored before any training, and by what."""

    place: Where
    by: Kept


class BegunAgain(Rule):
    """DET603: loops over epochs that begin with the first one again."""

    codes = ("DET603",)
    restored = remembered(list[Restored])
    loops = remembered_table(str, Where)
    """The outermost loops that count from zero."""
    saved_in = remembered_table(str, Kept)
    """The loops in which a run is saved, and by what."""
    holds_more = remembered(bool)
    """Whether an object of the program is saved and restored with the run, which may count epochs."""

    @on_call_if(lambda rule, api: rule.run.kb.role(api, _RESTORES) is not None)
    def restore(self, call: CallEvent) -> None:
        """The state of a run is restored: before it trains, so as to go on with it."""
        role = self.run.kb.role(call.api, _RESTORES)
        if role is None or self.run.loops or self.run.training_loops:
            return
        if all_hold(call.args, role.when) is not True:
            return
        self.restored.append(Restored(Where(self.run, call.node, call_text(call)), self._kept(call, role)))

    @on_call_if(lambda rule, api: rule.run.kb.role(api, _SAVES) is not None)
    def save(self, call: CallEvent) -> None:
        """The state of a run is saved."""
        role = self.run.kb.role(call.api, _SAVES)
        if role is not None and self.run.loops:
            outermost = self.run.loops[0].key
            self.saved_in[outermost] = self._kept(call, role)

    def _kept(self, call: CallEvent, role: RoleEntry) -> Kept:
        """What a call restores or saves."""
        made = made_at(call.owner) if isinstance(call.owner, v.Obj) else None
        return Kept(ends_of(self.run, call.args.get(role.arg, role.pos)), made)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, _ADDS) is not None)
    def add(self, call: CallEvent) -> None:
        """Something more is saved with a run."""
        known = [isinstance(one, v.Obj) for one in call.args.pos]
        self.holds_more = self.holds_more or call.args.star or not all(known)

    @on(LoopEvent)
    def loop(self, event: LoopEvent) -> None:
        """A loop begins."""
        loop, begins = event
        if begins and counts_from_zero(loop) and not self.run.loops.nested and not self._may_go_on(loop):
            self.loops.setdefault(loop.key, lambda: Where(self.run, loop.stmt, "epochs"))

    def _may_go_on(self, loop: Loop) -> bool:
        """Whether a loop begins with a number that the function sets in several places, or counts to one that it lessens:
        where it restores a run, too."""
        function, counted = running(self.run), loop.stmt.iter if isinstance(loop.stmt, m.For) else None
        if function is None or not isinstance(counted, m.Call):
            return False
        first, last = _names(counted.args[:2][:-1]), _names(counted.args[:2][-1:])
        return any(
            times_stored(function, name) > 1 or ("." in name and stores_of(function, name.rpartition(".")[2]))
            for name in first
        ) or any(
            isinstance(one, m.AugAssign)
            and one.op == "-"
            and isinstance(one.target, m.Name)
            and one.target.id in last
            for one in statements(function.body)
        )

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
            if by is None or by.by.is_other(saved):
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


def _names(args: list[m.Expr]) -> list[str]:
    """The variables that some arguments name."""
    return [one.id for one in nodes(args) if isinstance(one, m.Name)]
