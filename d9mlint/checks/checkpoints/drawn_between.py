"""DET601, DET602: what is drawn after the state of an RNG was saved in the same round, or restored before the loop."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.checks.checkpoints.rounds import InRound, in_round
from d9mlint.checks.checkpoints.stages import Test, exclude, is_in_loop, tests_around
from d9mlint.checks.checkpoints.weights import sources
from d9mlint.interp import values as v
from d9mlint.interp.context import CPU_CONTEXT
from d9mlint.interp.events import AnyDrawEvent, CallEvent, IterationEvent, Loop, LoopEvent, SeedEvent
from d9mlint.interp.library.loaders import LOADER
from d9mlint.interp.listening import on, on_call_if, on_method
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.places import Moment, Where
from d9mlint.interp.state import Site
from d9mlint.interp.text import node_text
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes
from d9mlint.knowledge.rng_states import state_given, state_restored

if TYPE_CHECKING:
    from d9mlint.interp.memory import Memory
    from d9mlint.interp.view import RunView

_RNGS = ("torch", "numpy", "python")
_OBJECT = "object"
_FORKED = "torch.fork_rng"
_ITERATES = "a loop over a `DataLoader`"
_DEEPEST = 3


class Drawn(NamedTuple):
    """Where an RNG is drawn from: when, in which loops and where in their rounds, behind which tests, in which process."""

    rng: str
    place: Where
    name: str
    at: tuple[InRound, ...]
    tests: frozenset[Test]
    given: tuple[str, ...]
    process: int

    def after(self, other: Set) -> bool:
        """Whether it is drawn from in the run that restores something, later."""
        return (
            self.place.order > other.place.order
            and self.process == other.process
            and not exclude(self.tests, other.tests)
            and set(self.given) <= set(other.place.given)
        )


class Set(NamedTuple):
    """Where something is restored: what, behind which tests, in which loops and in which process."""

    what: str
    place: Where
    tests: frozenset[Test]
    loops: frozenset[str]
    process: int


class DrawnBetween:
    """Knows what is drawn after a state was saved in a round, or restored before the loop."""

    run: RunView
    memory: Memory
    later_draws = remembered(list[Drawn])
    """What is drawn once something was loaded or saved."""
    later_sets = remembered(list[Set])
    """Where states of RNGs that were loaded are restored, and objects are given theirs."""
    begun_later = remembered_table(str, int)
    """When loops began first after that."""
    seeded_at = remembered(list[tuple[str, Where]])
    """Where RNGs are seeded again after that."""
    later_seeds = remembered(list[Drawn])
    """Those of them that do not seed with a number that was loaded."""
    states_taken = remembered(set[tuple[Site, str, InRound]])
    """Where states of RNGs are asked for,"""
    states_stored = remembered(set[tuple[int, int]])
    """and those that are saved."""
    saved_in = remembered(set[tuple[Site, InRound]])
    """Where something is saved in a loop."""
    steps_in = remembered(set[tuple[str, int]])
    """Where the program trains: in which loops, and where in their rounds."""

    @on(AnyDrawEvent)
    def drawn_between(self, event: AnyDrawEvent) -> None:
        """An RNG is drawn from."""
        if event.rng in _RNGS and self._asks():
            level = self.run.state.level(event.rng)
            if not level.parent:
                self._draws(event.rng, event.node, f"`{node_text(event.node, event.entry.apis[0])}`")

    @on(IterationEvent)
    def iterated_between(self, event: IterationEvent) -> None:
        """A loader is gone through, which draws the seed of its workers, whether it has any or not."""
        value = event.value
        if isinstance(value, v.Obj) and value.type == LOADER and self._asks():
            if value.args.get("generator", 12) is None and not (value.args.star or value.args.dstar):
                self._draws("torch", None, _ITERATES)

    def _asks(self) -> bool:
        if self.run.entry is None:
            return False
        if not (self.later_sets or self.saved_in):
            return False
        if CPU_CONTEXT in self.run.contexts or _FORKED in self.run.contexts:
            return False
        # A generator draws when it is asked for the next value, wherever that is.
        return not any(one.func is not None and one.func.fn.is_generator for one in self.run.stack())

    def _draws(self, rng: str, node: Any, name: str) -> None:
        node = self._in_statement(node)
        if node is None or not self._may_count(node):
            return
        place = Where(self.run, node, name)
        began, at = self.run.process_began, self._rounds(node)
        self.later_draws.append(Drawn(rng, place, name, at, tests_around(self.run, node), place.given, began))

    def _rounds(self, node: m.Call) -> tuple[InRound, ...]:
        """Where a call is in the loops of its process. What the statement of a loop draws, as a loader does that it goes
        through, it draws before its rounds."""
        loops = (loop for loop in _own_loops(self.run) if loop.stmt is not self.run.statement)
        found = (in_round(self.run, loop, node) for loop in loops)
        return tuple(one for one in found if one is not None)

    def _may_count(self, node: m.Call) -> bool:
        """Whether a draw may be between a state and a loop that trains, or follow in a round in which something was saved.
        What the functions draw that a round calls before is asked for nowhere, and calls in which more is asked are
        remembered for fewer circumstances."""
        if isinstance(self.run.statement, m.For) or is_in_loop(self.run.frame.body, node.start):
            return True
        saved_in = frozenset(at.loop for _, at in self.saved_in)
        return not self.run.loops or (bool(saved_in) and self.run.loops.within(saved_in))

    def _in_statement(self, node: Any) -> m.Call | None:
        """A call of the statement that is running, by which the place is known where something is drawn: a layer, or a
        loader, draws elsewhere than where it was made."""
        statement = self.run.statement
        parts = nodes([statement]) if statement is not None else ()
        calls = [one for one in parts if isinstance(one, m.Call)]
        return next((one for one in calls if one is node), next(iter(calls), None))

    @on_call_if(lambda rule, api: bool(state_restored(rule.run.kb, api)))
    def set_between(self, call: CallEvent) -> None:
        """The state of an RNG is restored, which may be the one in a file."""
        if self.run.entry is not None and any(any(sources(one)) for one in _held(call.args.values())):
            self._sets(state_restored(self.run.kb, call.api), call)

    @on_method("load_state_dict")
    def given_between(self, call: CallEvent) -> None:
        """An object is given its state."""
        if self.run.entry is not None:
            self._sets(_OBJECT, call)

    def _sets(self, what: str, call: CallEvent) -> None:
        place, loops = Where(self.run, call.node, what), frozenset(one.key for one in self.run.loops)
        self.later_sets.append(
            Set(what, place, tests_around(self.run, call.node), loops, self.run.process_began)
        )

    @on(LoopEvent)
    def begun_between(self, event: LoopEvent) -> None:
        """A loop begins."""
        if event.begins and self.later_sets:
            self.begun_later.setdefault(event.loop.key, lambda: Moment(self.run.steps))

    @on(SeedEvent)
    def seeded_between(self, event: SeedEvent) -> None:
        """RNGs are seeded."""
        if not self.later_sets:
            return
        self.seeded_at.extend((rng, Where(self.run, event.node)) for rng in event.rngs)
        if self.run.entry is None or not event.args.are_literals():
            return
        if _FORKED in self.run.contexts or any(state_restored(self.run.kb, api) for api in event.entry.apis):
            return
        name = f"`{node_text(event.node, event.entry.apis[0])}`"
        place, tests = Where(self.run, event.node, name), tests_around(self.run, event.node)
        began, at = self.run.process_began, self._rounds(event.node)
        self.later_seeds.extend(Drawn(rng, place, name, at, tests, place.given, began) for rng in event.rngs)

    @on_call_if(lambda rule, api: bool(state_given(rule.run.kb, api)))
    def taken_between(self, call: CallEvent) -> None:
        """The state of an RNG is asked for."""
        at = in_round(self.run, self.run.loops[-1], call.node) if self.run.loops else None
        if at is not None and self.run.entry is not None:
            self.states_taken.add((self.run.here(call.node), state_given(self.run.kb, call.api), at))

    def stored_between(self, call: CallEvent, content: v.Value) -> None:
        """Something is saved."""
        if self.run.entry is None or not self.run.loops:
            return
        self.states_stored.update(
            site for one in _held([content]) if (site := self._asked_at(one)) is not None
        )
        at = in_round(self.run, self.run.loops[-1], call.node)
        if at is not None:
            self.saved_in.add((self.run.here(call.node), at))

    def _asked_at(self, value: v.Value) -> tuple[int, int] | None:
        """Where in its file a call stands that has given the state of an RNG."""
        if not isinstance(value, v.Obj) or value.node is None or not state_given(self.run.kb, value.api):
            return None
        return value.node.start, value.node.end

    @on_method("backward", "step", "minimize")
    def trained_between(self, call: CallEvent) -> None:
        """The program trains, or something else takes a step."""
        found = (in_round(self.run, loop, call.node) for loop in self.run.loops)
        self.steps_in.update((one.loop, one.offset) for one in found if one is not None)

    def drawn_late(self, training: Collection[str], seeded: Collection[tuple[str, str]]) -> Iterator[Drawn]:
        """The first draw of each RNG that follows in the round of a loop that trains after its state was saved, unless
        each round seeds it."""
        restored = {one.what for one in self.later_sets}
        kept = [
            (rng, at) for site, rng, at in self.states_taken if (site.start, site.end) in self.states_stored
        ]
        for rng in _RNGS:
            states = [
                at for one, at in kept if one == rng and at.loop in training and (rng, at.loop) not in seeded
            ]
            found = self._following(rng, states) if rng in restored else []
            yield from found[:1]

    def drawn_after_save(self, place: Where, rngs: Iterable[str], training: Collection[str]) -> list[Drawn]:
        """What is drawn from some RNGs in a round after something was saved in it."""
        saved = [at for site, at in self.saved_in if site == place.site and at.loop in training]
        return [one for rng in rngs for one in self._following(rng, saved)]

    def _following(self, rng: str, states: list[InRound]) -> list[Drawn]:
        """What is drawn from an RNG in the same round after all of some states were saved, which is after the round has
        trained."""
        loops = {one.loop for one in states}
        if len(loops) != 1:
            return []
        offsets = {offset for loop, offset in self.steps_in if loop in loops}
        if not offsets or max(offsets) > min(one.offset for one in states):
            return []
        return [
            drawn
            for drawn in self.later_draws
            if drawn.rng == rng and not drawn.given
            if any(one.loop in loops and all(map(one.follows, states)) for one in drawn.at)
        ]

    def drawn_early(self, training: Collection[str]) -> Iterator[tuple[Set, Drawn]]:
        """Where states are restored from which something is drawn before the loop that trains."""
        for rng in _RNGS:
            given = [one for one in self.later_sets if one.what == rng]
            for one in given[-1:]:
                found = self._between(one, [rng], training)
                yield from [(one, drawn) for drawn in found[:1]]

    def seeded_early(self, training: Collection[str]) -> Iterator[tuple[Set, Drawn]]:
        """Where states are restored of RNGs that are seeded again before the loop that trains, in the same runs."""
        for rng in _RNGS:
            given = [one for one in self.later_sets if one.what == rng]
            for one in given[-1:]:
                found = self._within(one, [rng], training, self.later_seeds)
                yield from [(one, seeded) for seeded in found[:1] if seeded.tests <= one.tests]

    def drawn_after_load(self, rngs: Collection[str], training: Collection[str]) -> list[Drawn]:
        """What is drawn from some RNGs between the place where objects are first given what was loaded and the loop that
        trains."""
        given = [one for one in self.later_sets if one.what == _OBJECT and one.loops.isdisjoint(training)]
        seeds = (one for first in given[:1] for one in self._within(first, rngs, training, self.later_seeds))
        return [*(drawn for one in given[:1] for drawn in self._between(one, rngs, training)), *seeds]

    def _between(self, one: Set, rngs: Collection[str], training: Collection[str]) -> list[Drawn]:
        ends = self._ends(one, training)
        if ends is None:
            return []
        seeded = {rng for rng, place in self.seeded_at if one.place.order < place.order < ends}
        drawn = self._within(one, rngs, training, self.later_draws)
        return [one for one in drawn if one.rng not in seeded]

    def _ends(self, one: Set, training: Collection[str]) -> int | None:
        """When the loop begins that trains after something was restored outside of it."""
        began = [self.begun_later[key] for key in self.begun_later.known() if key in training]
        ends = min((moment for moment in began if moment > one.place.order), default=None)
        return ends if one.loops.isdisjoint(training) else None

    def _within(
        self, one: Set, rngs: Collection[str], training: Collection[str], among: Iterable[Drawn]
    ) -> list[Drawn]:
        """Those draws, or seeds, of some RNGs that are between the place where something is restored and that loop."""
        ends = self._ends(one, training)
        return [
            found
            for found in among
            if ends is not None and found.rng in rngs and found.after(one) and found.place.order < ends
            if all(at.loop not in training for at in found.at)
        ]


def _own_loops(run: RunView) -> list[Loop]:
    """The running loops of the process that runs, without those of the program that has started it."""
    began = run.process_began
    return [loop for loop in run.loops if loop.start > began]


def _held(values: Iterable[v.Value], depth: int = 0) -> Iterator[v.Value]:
    """Values, and what collections hold, and what the calls were given that made them."""
    for value in values:
        for one in v.alternatives(value):
            yield one
            inner: Iterable[v.Value] = ()
            if isinstance(one, v.Mapping):
                inner = one.items.values()
            elif isinstance(one, v.Items):
                inner = one.elts
            elif isinstance(one, v.Obj):
                inner = [*one.args.pos, *([one.owner] if one.owner is not None else [])]
            if depth < _DEEPEST:
                yield from _held(inner, depth + 1)
