"""Branches of which a run takes one: what is made in one of them does not meet what another one did."""

from __future__ import annotations

import bisect
import itertools
from typing import TYPE_CHECKING, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.heap import HEAP
from d9mlint.interp.state import Rng

if TYPE_CHECKING:
    from collections.abc import Sequence

    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.state import State


class Parting(NamedTuple):
    """Branches that were followed one after the other: ``spans`` are the times at which each began and ended, with its
    number. ``left`` is how each left the RNGs at which they do not agree, ``met`` how these are where the branches meet."""

    spans: tuple[tuple[int, int, int], ...]
    left: tuple[dict[str, Rng], ...]
    met: dict[str, Rng]

    def branch(self, time: int) -> int | None:
        """The branch that was running at a time, if one was."""
        if not self.spans[0][0] < time <= self.spans[-1][1]:
            return None
        return next((number for began, ended, number in self.spans if began < time <= ended), None)


class Open(NamedTuple):
    """Branches of which one has returned from the function: the others last until it ends. ``returned`` counts what had
    been returned by then."""

    spans: tuple[tuple[int, int, int], ...]
    state: State
    returned: int
    number: int


_BLOCK = 64
"""So many partings are passed over at once where all of them began too late."""


class Partings:
    """The branches of one run, but for those of imports: a run that takes an import over does not run them."""

    __slots__ = ("_all", "_at", "_began", "_first", "_latest", "_of_rngs", "used")

    def __init__(self) -> None:
        self._all: list[Parting] = []
        # When each began, and the latest time at which one of the partings up to it ended.
        self._began: list[int] = []
        self._latest: list[int] = []
        # The earliest time at which one of each block of partings began.
        self._first: list[int] = []
        # For each time that was asked for: how many partings were looked at, and the branches in which it lies.
        self._at: dict[int, tuple[int, dict[int, int]]] = {}
        self._of_rngs: list[Parting] = []
        # The objects of libraries that are being used.
        self.used: list[v.Obj] = []

    def add(self, spans: tuple[tuple[int, int, int], ...], states: Sequence[State], met: State) -> None:
        """Branches have met, each with its state; ``met`` is theirs together."""
        tables = [state.rng.held for state in states]
        if all(table is tables[0] for table in tables):
            self._append(Parting(spans, (), {}))
            return
        names = sorted({name for table in tables for name in table})
        names = [name for name in names if len({table.get(name) for table in tables}) > 1]
        left = tuple({name: _level(state, name) for name in names} for state in states)
        parting = Parting(spans, left, {name: _level(met, name) for name in names})
        self._append(parting)
        if names:
            self._of_rngs.append(parting)

    def separate(self, spans: tuple[tuple[int, int, int], ...]) -> None:
        """A run takes one of several branches that nothing but their times is known of."""
        if spans[-1][1] > spans[0][0]:
            self._append(Parting(spans, (), {}))

    def _append(self, parting: Parting) -> None:
        began = parting.spans[0][0]
        if len(self._all) % _BLOCK:
            self._first[-1] = min(self._first[-1], began)
        else:
            self._first.append(began)
        self._all.append(parting)
        self._began.append(began)
        ended = parting.spans[-1][1]
        self._latest.append(max(ended, self._latest[-1]) if self._latest else ended)

    def close(self, interp: Interp, left_open: list[Open], ends: list[State]) -> None:
        """A function ends that has returned in some branches: so do the other ones."""
        for one in left_open:
            others = ends[one.returned :]
            if others:
                state = others[0] if len(others) == 1 else interp.state
                spans = (*one.spans, (one.spans[-1][1], HEAP.clock, one.number))
                self.add(spans, (one.state, state) if one.number else (state, one.state), interp.state)

    def exclusive(self, one: int, other: int) -> bool:
        """Whether two times lie in branches of which only one is taken."""
        branches = self._branches(other)
        return any(branches.get(parting, first) != first for parting, first in self._branches(one).items())

    def together(self, one: int, other: int) -> bool:
        """Whether a time lies in the innermost branch in which another one does, of those that have met others."""
        branches = self._branches(other)
        inner = max(branches, key=self._began.__getitem__, default=None)
        return inner is not None and self._branches(one).get(inner) == branches[inner]

    def _branches(self, time: int) -> dict[int, int]:
        """The branch that was running at a time, by the number of its parting: the same object is asked for many times,
        and partings that had ended before it was made are passed over."""
        looked_at, branches = self._at.get(time) or (bisect.bisect_left(self._latest, time), {})
        count = len(self._all)
        if looked_at < count:
            # Of an old object most began after it was made.
            number = looked_at
            while number < count:
                block = number // _BLOCK
                behind = min(count, (block + 1) * _BLOCK)
                if self._first[block] < time:
                    for one in range(number, behind):
                        if self._began[one] < time and (branch := self._all[one].branch(time)) is not None:
                            branches[one] = branch
                number = behind
            self._at[time] = count, branches
        return branches

    def of_one(self, births: Sequence[int | None]) -> bool:
        """Whether of several objects the program makes only one, by the times at which they are made."""
        known = [one for one in births if one is not None]
        return len(known) == len(births) and all(
            self.exclusive(one, other) for one, other in itertools.combinations(known, 2)
        )

    def parted(self, time: int) -> bool:
        """Whether a time lies in a branch that has met others."""
        return bool(self._branches(time))

    def level(self, interp: Interp, rng: str, now: Rng) -> Rng:
        """How an RNG is seeded for what was made in one of several branches and draws behind them: as that branch left
        it, where more is known of that than of all together, and nothing has seeded it since."""
        through: set[int] | None = None
        for parting in reversed(self._of_rngs):
            met = parting.met.get(rng)
            # What has to be given for the other branch is only known behind it.
            if met is None or met._replace(option=now.option, needs=now.needs) != now:
                continue
            through = self.made(interp) if through is None else through
            branches = {branch for time in through if (branch := parting.branch(time)) is not None}
            if len(branches) == 1:
                left = parting.left[branches.pop()][rng]
                if (left.level, bool(left.option)) > (now.level, bool(now.option)):
                    return left
        return now

    def made(self, interp: Interp) -> set[int]:
        """When the objects were made through which the run came here: what methods were called on, what functions were
        given, and the objects of libraries that are being used."""
        held: list[v.Value | None] = list(self.used)
        for frame in interp.stack():
            if frame.func is not None:
                held += [dict.get(frame.env.vars, param.name) for param in frame.func.fn.params]
        births = {one.birth for one in held if isinstance(one, (v.Inst, v.Obj))}
        return {birth for birth in births if not HEAP.is_shared(birth)}


def _level(state: State, rng: str) -> Rng:
    """As ``state.level``, for those whose answer does not depend on it."""
    return state.rng.held.get(rng) or Rng(state.default_level)
