"""DET602: functions of libraries that put the states in a checkpoint back into what trains, none of RNGs among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from d9mlint.base.terminal import listed
from d9mlint.checks.base import Rule
from d9mlint.checks.checkpoints.states import is_scheduler, optimizes, rng_states
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.calls import has_model
from d9mlint.interp.context import CALLED_BACK
from d9mlint.interp.events import AnyDrawEvent, CallEvent, EndEvent, SeedEvent
from d9mlint.interp.listening import on, on_call_if, on_method
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.places import Where
from d9mlint.interp.state import UNSEEDED, Site
from d9mlint.interp.storage import made_at
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import receiver
from d9mlint.knowledge.rng_states import state_restored

if TYPE_CHECKING:
    from collections.abc import Iterable

_RNGS = ("torch", "numpy", "python")


class PutBack(NamedTuple):
    """Where states are put back, and where the objects were made that get theirs: None where that is not known."""

    place: Where
    name: str
    made: frozenset[Site] | None
    depth: int
    """In how many functions that libraries call."""


class StatesPutBack(Rule):
    """DET602: training that goes on from what a library has saved, without the states of RNGs."""

    codes = ("DET602",)
    engines = remembered(set[Site])
    """Where what trains was made, whose states have none of RNGs."""
    put_back = remembered(list[PutBack])
    by_hand = remembered(list[PutBack])
    """Where what trains is given its state alone,"""
    saves_itself = remembered(bool)
    """and whether the program saves checkpoints, and no library does."""
    drawn_from = remembered(set[tuple[str, int]])
    """The RNGs that are drawn from, where they were seeded before, and in how many functions that libraries call."""
    drawn_later = remembered(set[str])
    """Those that are drawn from after states were put back."""
    reseeded = remembered(set[tuple[str, int]])
    """Those that such functions seed, as by the number of the epoch."""
    restored = remembered(set[str])
    """Those whose states the program restores itself."""
    stepped = remembered_table(Site, str)
    """Where optimizers and schedulers were made that take steps, and what the program calls them."""

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "trains-without-rng") is not None)
    def made(self, call: CallEvent) -> None:
        """Something is made that trains."""
        role = self.run.kb.role(call.api, "trains-without-rng")
        if role is not None and self.run.entry is not None and all_hold(call.args, role.when) is True:
            self.engines.add(self.run.here(call.node))

    def _called_back(self) -> int:
        """In how many functions the program is that libraries call. Asked only where something trains so."""
        return sum(one == CALLED_BACK for one in self.run.contexts)

    @on(AnyDrawEvent)
    def drawn(self, event: AnyDrawEvent) -> None:
        """An RNG is drawn from: after states were put back, or in a function that a library was given and calls later."""
        rng, entry, _ = event
        if not self.engines or rng not in _RNGS or entry.kind in ("init", "split"):
            return
        rng = self.run.state.level(rng).parent or rng
        if self.run.state.level(rng).level != UNSEEDED:
            self.drawn_from.add((rng, self._called_back()))
            if self.put_back or self.by_hand:
                self.drawn_later.add(rng)

    @on(SeedEvent)
    def seeded(self, event: SeedEvent) -> None:
        """RNGs are seeded."""
        if self.engines and not event.args.are_literals():
            depth = self._called_back()
            self.reseeded.update((rng, depth) for rng in event.rngs)

    @on_method("step")
    def step(self, call: CallEvent) -> None:
        """An optimizer or a scheduler takes a step."""
        owner = call.owner
        if not isinstance(owner, v.Obj) or not (optimizes(owner) or is_scheduler(owner.type)):
            return
        role, site = self.run.kb.role(owner.api, "keeps-no-state"), made_at(owner)
        name = receiver(call.node) if isinstance(call.node, m.Call) else ""
        if site is not None and name and not (role is not None and all_hold(owner.args, role.when) is True):
            self.stepped.setdefault(site, lambda: name)

    @on_call_if(lambda rule, api: bool(state_restored(rule.run.kb, api)))
    def set_state(self, call: CallEvent) -> None:
        """The program restores the state of an RNG itself."""
        self.restored.add(state_restored(self.run.kb, call.api))

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "puts-back") is not None)
    def puts_back(self, call: CallEvent) -> None:
        """States are put back into the objects in a dictionary."""
        role = self.run.kb.role(call.api, "puts-back")
        given = call.args.get(role.arg, role.pos) if role is not None else None
        if role is None or given is None or self.run.entry is None:
            return
        for one in v.alternatives(given):
            parts = list(_parts(one.items.values())) if isinstance(one, v.Mapping) else []
            if not isinstance(one, v.Mapping) or not any(
                isinstance(part, v.Obj) and made_at(part) in self.engines for part in parts
            ):
                continue
            if any(isinstance(part, v.Inst) and not has_model(self.run, [part]) for part in parts):
                # It may keep the states of RNGs.
                continue
            sites = [made_at(part) if isinstance(part, v.Obj) else None for part in parts]
            known = not one.open and not any(part is v.UNKNOWN for part in parts)
            made = frozenset(site for site in sites if site is not None) if known else None
            name = ".".join(call.api.split(".")[-2:])
            depth = self._called_back()
            self.put_back.append(PutBack(Where(self.run, call.node, call.api), name, made, depth))
            return

    @on_method("load_state_dict")
    def takes_state(self, call: CallEvent) -> None:
        """What trains is given the state in a checkpoint that a library has saved, which the program has read itself."""
        owner, entry = call.owner, self.run.entry
        if entry is not None and isinstance(owner, v.Obj) and made_at(owner) in self.engines:
            place, name = Where(self.run, call.node, call.api), ".".join(call.api.split(".")[-2:])
            self.by_hand.append(PutBack(place, name, None, self._called_back()))

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "saves-checkpoint") is not None)
    def saves(self, call: CallEvent) -> None:
        """The program saves a checkpoint itself: what that lacks is reported there."""
        self.saves_itself = True

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        by_hand = [] if self.put_back or self.saves_itself else self.by_hand[:1]
        for one in [*self.put_back, *by_hand]:
            stepped = (
                {site: self.stepped[site] for site in self.stepped.known()} if one.made is not None else {}
            )
            left_out = sorted({name for site, name in stepped.items() if site not in (one.made or ())})
            inner = {rng for rng, depth in self.drawn_from if depth > one.depth}
            kept = {*self.restored, *(rng for rng, depth in self.reseeded if depth > one.depth)}
            rngs = [rng for rng in _RNGS if rng in {*inner, *self.drawn_later} - kept]
            lacks = [*(f"the state of `{name}`" for name in left_out), *rng_states(rngs)]
            if not lacks:
                continue
            helps = (
                [f"add {listed([f'`{name}`' for name in left_out])} to the dictionary"] if left_out else []
            )
            if rngs:
                helps.append(
                    "train with `DeterministicEngine`, which keeps the RNG states, or add an object to the dictionary whose "
                    "`state_dict` has them"
                )
            self.report(
                "DET602",
                one.place,
                f"`{one.name}` does not restore {listed(lacks)}, so resumed training continues from a different state",
                "; ".join(helps),
                subject=one.place.subject,
            )


def _parts(values: Iterable[v.Value]) -> Iterable[v.Value]:
    for value in values:
        yield from v.alternatives(value)
