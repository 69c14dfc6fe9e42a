"""DET601: schedulers and the like that take the step of a round after their state was saved in it."""

from __future__ import annotations

from typing import Any

from d9mlint.checks.base import Rule
from d9mlint.checks.checkpoints.rounds import InRound, in_round, offset_in
from d9mlint.checks.checkpoints.states import is_scaler, is_scheduler, optimizes, owners, saved, saves
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, EndEvent
from d9mlint.interp.listening import on, on_call_if, on_method
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.places import Where
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.text import call_text


class SteppedLate(Rule):
    """DET601: states that are saved before the step of their round is taken."""

    codes = ("DET601",)
    taken = remembered(set[tuple[Site, InRound]])
    """Where the states of schedulers and the like are asked for."""
    stepped = remembered(set[tuple[Site, InRound]])
    """Where they take steps,"""
    places = remembered_table(tuple[Site, InRound], Where)
    """and the calls."""
    elsewhere = remembered(set[Site])
    """Those that take steps outside of loops."""
    trained = remembered(set[tuple[str, int]])
    """Where optimizers take steps: in which loops, and where in their bodies."""
    saved = remembered(set[Site])
    restored = remembered(set[Site])
    """What is saved and given its state again."""

    @on_method("state_dict")
    def asked(self, call: CallEvent) -> None:
        """Something is asked for its state."""
        sites = self._advancing(call)
        here = self._here(call.node) if sites else None
        if here is not None:
            self.taken.update((site, here) for site in sites)

    @on_method("load_state_dict")
    def restore(self, call: CallEvent) -> None:
        """Something is given its state."""
        self.restored.update(self._advancing(call))

    @on_call_if(saves)
    def save(self, call: CallEvent) -> None:
        """Something is saved."""
        content = saved(self.run, call)
        if content is not None:
            self.saved.update(owners(content)[0])

    @on_method("step", "update", "update_parameters")
    def step(self, call: CallEvent) -> None:
        """A step is taken."""
        given = [call.owner, *call.args.pos] if call.api.endswith(".step") else []
        if any(isinstance(one, v.Obj) and optimizes(one) for one in given):
            offsets = ((loop.key, offset_in(self.run, loop, call.node)) for loop in self.run.loops)
            self.trained.update((key, offset) for key, offset in offsets if offset is not None)
            return
        sites = self._advancing(call)
        here = self._here(call.node) if sites else None
        for site in sites:
            if here is None:
                self.elsewhere.add(site)
            else:
                self.stepped.add((site, here))
                self.places.setdefault((site, here), lambda: Where(self.run, call.node, call_text(call)))

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        kept = set(self.saved) & set(self.restored) - set(self.elsewhere)
        for site, step in sorted(self.places.known(), key=lambda one: (one[1].loop, one[1].offset)):
            others = [one for made, one in self.stepped if made == site and one.loop != step.loop]
            states = [one for made, one in self.taken if made == site]
            if site not in kept or others or not states or not all(map(step.follows, states)):
                continue
            # A state that is saved before the training of the round is the one that the round begins with.
            offsets = {offset for loop, offset in self.trained if loop == step.loop}
            if not offsets or max(offsets) > min(one.offset for one in states):
                continue
            place = self.places[site, step]
            self.report(
                "DET601",
                place,
                f"`{place.subject}` is called after the checkpoint of the same round is saved: a resumed run goes on with "
                "the state from before this step",
                f"call `{place.subject}` before its state is saved",
                subject=place.subject,
            )

    def _here(self, node: Any) -> InRound | None:
        """Where a call is made in the body of the innermost loop."""
        loop = self.run.loops[-1] if self.run.loops and self.run.entry is not None else None
        return in_round(self.run, loop, node) if loop is not None else None

    def _advancing(self, call: CallEvent) -> list[Site]:
        """Where the scheduler, scaler or average of weights was made whose method is called."""
        made = [
            made_at(one)
            for one in (v.alternatives(call.owner) if call.owner is not None else ())
            if isinstance(one, v.Obj)
            if is_scheduler(one.type) or is_scaler(one.type) or self.run.kb.role(one.api, "averages")
        ]
        return [site for site in made if site is not None]
