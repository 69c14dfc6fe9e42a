"""What an abstract run knows at a point: seeds, modes, environment variables, and what happened before."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any, NamedTuple, TypeVar

from d9mlint.base.options import both
from d9mlint.interp.heap import ABSENT, HEAP, Activation

T = TypeVar("T")

UNSEEDED, MAYBE, SEEDED = 0, 1, 2
"""Levels of a random number generator. MAYBE: seeded on some paths, or by something not understood."""
REPLACED = "draw replaced:"
"""Begins what is set where something random was made, when an attribute has it no more; see ``replaced``."""


class Site(NamedTuple):
    """A place in a file: path, start and end offset."""

    path: str
    start: int
    end: int


class Part(NamedTuple):
    """What has to hold for a branch to be taken: an option has a value, or passes a test. ``usual``: it does by default."""

    option: str
    value: object
    usual: bool


Ways = tuple[frozenset[Part], ...]
"""What has to hold for a branch to be taken: all of one of these."""


class Rng(NamedTuple):
    """State of one RNG. ``option`` names the option that would seed it, when only its default keeps it
    from being seeded, and ``needs`` what has to hold of options for that; ``site`` is the place of that seeding;
    ``helper`` what may have seeded it, by its name.
    ``parent`` is the RNG of another process that gave it its seed; ``elsewhere`` whether another graph of TensorFlow
    has been seeded, at ``site``; ``new_graph`` whether the program made the graph that is the default one, so that no
    seed at its start is for it, and ``graph`` the context that makes it the default one, or, for an ``estimator``, what its
    seed would be given to; ``some_ranks`` whether only some of the processes of the program have seeded it; ``or_worker``
    is the RNG that gives it its seed if what is running is in a worker, which is not known."""

    level: int
    option: str = ""
    site: Site | None = None
    helper: str = ""
    parent: str = ""
    elsewhere: bool = False
    new_graph: bool = False
    some_ranks: bool = False
    graph: Site | None = None
    estimator: bool = False
    or_worker: str = ""
    needs: Ways = ()


class Setting(NamedTuple):
    """A mode or environment variable: its value (None for unknown) and where it was set."""

    value: Any
    site: Site | None
    option: str = ""


RNG, MODE, ENV, FLAG = "rng", "mode", "env", "flag"
"""Kinds of what a state knows by name."""
OF_OPTIONS = "?"
"""How marks begin that stay where paths meet of which one is taken only if an option is given."""
ASIDE = "aside"
"""Stands among them for the option that leads to the path."""

Asked = tuple[str, str, bool]
"""What was asked of a state: the kind and the name; or, where the last is true, all names that begin like this."""


class StateTable(MutableMapping[str, T]):
    """What a state knows of one kind. Who asks and who writes is noted in the running activation (see ``heap``), so that
    what a call did is taken over wherever all that it asked has the same answer. Copies share their content
    until one of them is written to."""

    __slots__ = ("_held", "_kind", "_shared")

    def __init__(self, kind: str, held: dict[str, T] | None = None) -> None:
        self._kind = kind
        self._held: dict[str, T] = {} if held is None else held
        self._shared = held is not None

    @property
    def held(self) -> dict[str, T]:
        """The content, for those whose answer does not depend on it. It is not to be changed."""
        return self._held

    def copy(self) -> StateTable[T]:
        """An independent copy; making one asks nothing."""
        self._shared = True
        new: StateTable[T] = StateTable.__new__(StateTable)
        new._kind = self._kind
        new._held = self._held
        new._shared = True
        return new

    def restore(self, saved: dict[str, T]) -> None:
        """Let the content be what it was when it was saved as ``held``."""
        changed, kind, now = HEAP.act.changed, self._kind, self._held
        self._shared = True
        if saved is now:
            return
        changed.update((kind, name) for name in saved if saved[name] is not now.get(name, ABSENT))
        changed.update((kind, name) for name in now if name not in saved)
        self._held = saved

    def save(self) -> dict[str, T]:
        """The content, for ``restore``."""
        self._shared = True
        return self._held

    def _own(self) -> dict[str, T]:
        if self._shared:
            self._held = self._held.copy()
            self._shared = False
        return self._held

    def starting(self, prefix: str) -> list[tuple[str, T]]:
        """What is known under names that begin like this."""
        HEAP.act.asked.add((self._kind, prefix, True))
        return [item for item in self._held.items() if item[0].startswith(prefix)]

    def __getitem__(self, name: str) -> T:
        HEAP.act.asked.add((self._kind, name, False))
        return self._held[name]

    def get(self, name: str, default: Any = None) -> Any:
        HEAP.act.asked.add((self._kind, name, False))
        return self._held.get(name, default)

    def __contains__(self, name: object) -> bool:
        HEAP.act.asked.add((self._kind, str(name), False))
        return name in self._held

    def __setitem__(self, name: str, value: T) -> None:
        HEAP.act.changed.add((self._kind, name))
        self._own()[name] = value

    def setdefault(self, name: str, default: Any = None) -> Any:
        """As that of dict. Where the name is missing nothing is asked: what is done is the same everywhere."""
        found = self._held.get(name, ABSENT)
        if found is not ABSENT:
            HEAP.act.asked.add((self._kind, name, False))
            return found
        HEAP.act.hinted.add((self._kind, name))
        self._own()[name] = default
        return default

    def __delitem__(self, name: str) -> None:
        HEAP.act.asked.add((self._kind, name, False))
        HEAP.act.changed.add((self._kind, name))
        del self._own()[name]

    def __iter__(self) -> Iterator[str]:
        HEAP.act.asked.add((self._kind, "", True))
        return iter(self._held)

    def __len__(self) -> int:
        HEAP.act.asked.add((self._kind, "", True))
        return len(self._held)


class State:
    """Mutable state of one path. ``alive`` is False behind a return, raise, break or exit. ``aside`` names
    the option that would have to be given for the program to come here at all."""

    __slots__ = ("_aside", "alive", "default_level", "env", "flags", "lost", "modes", "raised", "rng")

    def __init__(self, default_level: int = UNSEEDED) -> None:
        self.alive = True
        self._aside = ""
        # Whether the path ended by an exception or an exit: what goes on instead is then the usual way.
        self.raised = False
        # Whether it ended where the program asks for a name that nothing defines: that was not meant.
        self.lost = False
        self.default_level = default_level
        self.rng: StateTable[Rng] = StateTable(RNG)
        self.modes: StateTable[Setting] = StateTable(MODE)
        self.env: StateTable[Setting] = StateTable(ENV)
        # First place at which something happened on this path: "draw:torch", "train", "cuda".
        self.flags: StateTable[Any] = StateTable(FLAG)

    def copy(self) -> State:
        """An independent copy."""
        new = State.__new__(State)
        new.default_level = self.default_level
        new.alive = self.alive
        new._aside = self._aside
        new.raised = self.raised
        new.lost = self.lost
        new.rng = self.rng.copy()
        new.modes = self.modes.copy()
        new.env = self.env.copy()
        new.flags = self.flags.copy()
        return new

    def restore(self, saved: State) -> None:
        """Know of seeds, modes, variables and what happened what a copy knows, which is not used any more."""
        self.rng.restore(saved.rng.save())
        self.modes.restore(saved.modes.save())
        self.env.restore(saved.env.save())
        self.flags.restore(saved.flags.save())

    @property
    def aside(self) -> str:
        """The option that would have to be given for the program to come here."""
        HEAP.act.asked.add(LED)
        return self._aside

    @aside.setter
    def aside(self, option: str) -> None:
        self._aside = option

    @property
    def noted_aside(self) -> str:
        """The same, asked by whoever records that something happens at a place. What was recorded of a call on a path that
        needs no option also covers the paths that need one, so the call need not run again there."""
        HEAP.act.asked.add(_NOTED)
        return self._aside

    def lead_aside(self, option: str) -> None:
        """From here on an option has to be given, if none had to be before. What depends on that asks for itself."""
        self._aside = self._aside or option

    @property
    def usual(self) -> bool:
        """Whether no option has to be given; for those who compare the ends of paths that began alike."""
        return not self._aside

    def level(self, rng: str) -> Rng:
        """The state of an RNG."""
        return self.rng.get(rng) or Rng(self.default_level)

    def table(self, kind: str) -> StateTable[Any]:
        """What is known of one kind."""
        if kind == FLAG:
            return self.flags
        return self.rng if kind == RNG else self.modes if kind == MODE else self.env

    def answer(self, asked: Asked) -> Any:
        """What tells the answers to a question apart."""
        kind, name, all_such = asked
        if kind == ASIDE:
            return self._aside
        held = self.table(kind)._held
        if not all_such:
            # Most of what is asked for is not there.
            known = held.get(name)
            return None if known is None else _plain(kind, known)
        return {one: _plain(kind, known) for one, known in held.items() if one.startswith(name)}


def _plain(kind: str, value: Any) -> Any:
    """What code can tell of a value: not where it was set. Of what happened only whether it did."""
    if value is None:
        return None
    if kind == RNG:
        return (
            value.level,
            value.option,
            value.helper,
            value.parent,
            value.elsewhere,
            value.some_ranks,
            value.or_worker,
        )
    return True if kind == FLAG else str(value.value)


class Effect(NamedTuple):
    """What a call or an import did to the state, and what it asked: questions with their answers; names with what
    they stand for afterwards (``ABSENT`` for nothing), those that were only set where they were missing in
    ``hints``; and the option that leads to its end, None where it is the one that led to its beginning. ``lost``: it does
    not come to its end, since the program asks for a name that nothing defines; ``exits``: it ends the program."""

    answers: tuple[tuple[Asked, Any], ...]
    writes: tuple[tuple[str, str, Any], ...]
    hints: tuple[tuple[str, str, Any], ...]
    aside: str | None
    raised: bool
    lost: bool = False
    exits: bool = False

    def changes(self, *kinds: str) -> bool:
        """Whether anything of these kinds was changed."""
        return any(kind in kinds for kind, _, _ in (*self.writes, *self.hints))

    def holds(self, state: State) -> bool:
        """Whether all that was asked has the same answer here."""
        return all(
            state.answer(asked) == answer or (asked == _NOTED and not answer)
            for asked, answer in self.answers
        )

    def apply(self, state: State) -> None:
        """Let the running activation have asked and done the same."""
        HEAP.act.asked.update(asked for asked, _ in self.answers)
        for kind, name, value in self.writes:
            table = state.table(kind)
            if value is not ABSENT:
                table[name] = value
            elif name in table.held:
                del table[name]
        for kind, name, value in self.hints:
            state.table(kind).setdefault(name, value)
        if self.aside is not None:
            state.aside = self.aside
        state.raised = state.raised or self.raised


def effect(act: Activation, before: State, after: State) -> Effect:
    """What an activation asked of the state, and what it did to it."""
    asked = set(act.asked)
    writes: list[tuple[str, str, Any]] = []
    hints: list[tuple[str, str, Any]] = []
    for kind, name in (*act.changed, *act.hinted.difference(act.changed)):
        was = before.table(kind).held.get(name, ABSENT)
        now = after.table(kind).held.get(name, ABSENT)
        if now is was or now == was:
            # Written on a path that was left, or taken back: what stands there is what stood there.
            if (kind, name) in act.changed:
                asked.add((kind, name, False))
        elif (kind, name) in act.changed:
            writes.append((kind, name, now))
        else:
            hints.append((kind, name, now))
    answers = tuple((one, before.answer(one)) for one in sorted(asked))
    aside = after.answer(LED)
    aside = None if aside == before.answer(LED) else aside
    return Effect(
        answers, tuple(sorted(writes, key=_place)), tuple(sorted(hints, key=_place)), aside, after.raised
    )


LED: Asked = (ASIDE, "", False)
_NOTED: Asked = (ASIDE, "noted", False)
"""The questions for the option that leads to the path: in general, and for what is recorded about a place."""


def _place(write: tuple[str, str, Any]) -> tuple[str, str]:
    return write[:2]


def join_states(states: list[State]) -> State:
    """The state after paths meet: what all agree on stays, else it is unknown."""
    alive = [s for s in states if s.alive]
    if not alive:
        dead = states[0].copy() if states else State()
        dead.alive = False
        dead.lost = bool(states) and all(one.lost for one in states)
        return dead
    usual = [s for s in alive if s.usual]
    if usual and len(usual) < len(alive):
        main = join_states(usual)
        for other in alive:
            if not other.usual:
                main = prefer(main, other, other.aside)
        return main
    first = alive[0].copy()
    for other in alive[1:]:
        for name in _differing(first.rng, other.rng):
            first.rng[name] = _join_rng(first.level(name), other.level(name))
        _join_settings(first.modes, other.modes)
        _join_settings(first.env, other.env)
        for flag, site in _lacking(first.flags, other.flags):
            first.flags.setdefault(flag, site)
    return first


def _lacking(one: StateTable[T], other: StateTable[T]) -> list[tuple[str, T]]:
    """What another path knows under names under which one knows nothing. On most paths nothing happens that has not
    happened before."""
    known, held = one.held, other.held
    if known is held or held.keys() <= known.keys():
        return []
    return [item for item in held.items() if item[0] not in known]


def _differing(one: StateTable[T], other: StateTable[T]) -> list[str]:
    """The names of which two paths know different things."""
    a, b = one.held, other.held
    if a is b:
        return []
    return [name for name in {**a, **b} if a.get(name) != b.get(name)]


def _join_rng(a: Rng, b: Rng) -> Rng:
    if a.level == b.level:
        return a if a.option else b
    return Rng(MAYBE, "", a.site or b.site)


def _join_settings(into: StateTable[Setting], other: StateTable[Setting]) -> None:
    for name in _differing(into, other):
        a, b = into.get(name), other.get(name)
        if a is None or b is None or a.value != b.value:
            site = (a.site if a else None) or (b.site if b else None)
            into[name] = Setting(None, site)


def prefer(main: State, other: State, option: str) -> State:
    """The state when an option's default takes ``main``; RNGs that only ``other`` seeds carry the option."""
    if not main.alive:
        if other.alive:
            other = other.copy()
            # Which paths are usual ones depends on how this one began.
            HEAP.act.asked.add(LED)
            other.aside = option
            return other
        return main
    if other.alive:
        for flag, site in _lacking(main.flags, other.flags):
            if flag.startswith(OF_OPTIONS):
                main.flags.setdefault(flag, site)
        for name in _differing(main.rng, other.rng):
            rng, mine = other.level(name), main.level(name)
            if mine.level != UNSEEDED or mine.option:
                continue
            if rng.level == SEEDED:
                main.rng[name] = Rng(UNSEEDED, option, rng.site)
            elif rng.level == UNSEEDED and rng.option:
                main.rng[name] = Rng(UNSEEDED, both(option, rng.option), rng.site, needs=rng.needs)
        for name in _differing(main.modes, other.modes):
            setting = other.modes.get(name)
            if setting is not None and name not in main.modes and setting.value:
                main.modes[name] = Setting(False, setting.site, option)
    return main
