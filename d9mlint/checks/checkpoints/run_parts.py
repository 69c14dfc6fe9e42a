"""DET601: optimizers and schedulers that a library does not save with a run, because it was not given them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from d9mlint.base.terminal import listed
from d9mlint.checks.base import Rule
from d9mlint.checks.checkpoints.states import continues_from_epoch, is_scheduler, makes_scheduler, optimizes
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.events import CallEvent, EndEvent
from d9mlint.interp.listening import on, on_call_if, on_method
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.places import Where
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.text import call_text
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import receiver

_TAKES: Final = "takes-into-run"
_ADDS: Final = "adds-to-run"
_SAVES: Final = "saves-run"
_RESTORES: Final = "restores-run"
_STATES = ("state_dict", "load_state_dict")


class RunParts(Rule):
    """DET601: what takes steps with a run, and is not saved with it."""

    codes = ("DET601",)
    taken = remembered(set[Site])
    """Where the objects were made that are saved with a run, or whose states the program asks for or sets."""
    unseen = remembered(bool)
    """Whether a library was given more than is seen."""
    remedy = remembered_table(str, str)
    """By libraries that were given parts of a run, the method that adds others."""
    stepped = remembered_table(tuple[Site, frozenset[str]], str)
    """Where objects with a state were made that take steps, the loops around a step that began later, and what the program
    calls them."""
    placed = remembered(set[Site])
    """Those that are given the number of the epoch, by their steps or where they are made."""
    saved = remembered_table(str, Where)
    """The loops in which a library saves a run that it was given parts of."""
    libraries = remembered_table(str, str)
    """The same loops, and which library that is."""
    restored = remembered(bool)
    """Whether a run is restored."""

    @on_call_if(lambda rule, api: any(rule.run.kb.role(api, role) is not None for role in (_TAKES, _ADDS)))
    def take(self, call: CallEvent) -> None:
        """A library is given what it saves with a run."""
        role = self.run.kb.role(call.api, _TAKES)
        if role is not None:
            self.remedy[role.library] = role.more[0]
        self.unseen = self.unseen or call.args.star or call.args.dstar
        self.taken.update(_places(call.args.values()))

    @on_method(*_STATES)
    def asked(self, call: CallEvent) -> None:
        """The program saves or restores the state of an object itself."""
        self.taken.update(_places([call.owner] if call.owner is not None else []))

    @on_call_if(lambda rule, api: makes_scheduler(rule.run, api))
    def scheduler(self, call: CallEvent) -> None:
        """A scheduler is made, which may go on from an epoch."""
        if call.owner is None and continues_from_epoch(self.run, call):
            self.placed.add(self.run.here(call.node))

    @on_method("step")
    def step(self, call: CallEvent) -> None:
        """Something takes a step."""
        owner = call.owner
        if not isinstance(owner, v.Obj) or not isinstance(call.node, m.Call):
            return
        if not is_scheduler(owner.type) and not optimizes(owner):
            return
        stateless = self.run.kb.role(owner.api, "keeps-no-state")
        site = made_at(owner)
        if site is None or (stateless is not None and all_hold(owner.args, stateless.when) is True):
            return
        if call.args.pos or call.args.kw:
            self.placed.add(site)
        later = frozenset(loop.key for loop in self.run.loops if owner.birth < loop.start)
        self.stepped[site, later] = receiver(call.node)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, _SAVES) is not None)
    def save(self, call: CallEvent) -> None:
        """A run is saved."""
        role = self.run.kb.role(call.api, _SAVES)
        if role is not None:
            for loop in self.run.loops:
                self.saved[loop.key] = Where(self.run, call.node, call_text(call))
                self.libraries[loop.key] = role.library

    @on_call_if(lambda rule, api: rule.run.kb.role(api, _RESTORES) is not None)
    def restore(self, call: CallEvent) -> None:
        """A run is restored."""
        self.restored = True

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        if not self.restored or self.unseen or self.run.entry is None:
            return
        loops = {*self.saved.known()}
        # Steps that are taken elsewhere make up for those that are not saved.
        kept = {*self.taken, *self.placed}
        kept |= {site for site, around in self.stepped.known() if loops.isdisjoint(around)}
        for loop in self.saved.known():
            method = self.remedy.get(self.libraries[loop])
            found = [one for one in self.stepped.known() if loop in one[1] and one[0] not in kept]
            names = {name: None for one in found if (name := self.stepped[one])}
            if method is None or not names:
                continue
            place, parts = self.saved[loop], listed([f"`{name}`" for name in names])
            states = "state" if len(names) == 1 else "states"
            self.report(
                "DET601",
                place,
                f"`{place.subject}` does not save the {states} of {parts}; a resumed run diverges from an uninterrupted one",
                f"call `{method}()` with {parts} before the state is restored",
                subject=place.subject,
            )
            return


def _places(values: Iterable[v.Value]) -> set[Site]:
    """Where the objects were made that are among some values."""
    objects = (one for value in values for one in v.alternatives(value) if isinstance(one, v.Obj))
    return {site for one in objects if (site := made_at(one)) is not None}
