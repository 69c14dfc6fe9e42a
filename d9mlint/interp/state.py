"""What an abstract run knows at a point: seeds, modes, environment variables, and what happened before."""

from __future__ import annotations

from typing import Any, NamedTuple

UNSEEDED, MAYBE, SEEDED = 0, 1, 2
"""Levels of a random number generator. MAYBE: seeded on some paths, or by something not understood."""


class Site(NamedTuple):
    """A place in a file: path, start and end offset."""

    path: str
    start: int
    end: int


class Rng(NamedTuple):
    """State of one RNG. ``option`` names the option that would seed it, when only its default keeps it
    from being seeded; ``site`` is the place of that seeding; ``helper`` what may have seeded it, by its name."""

    level: int
    option: str = ""
    site: Site | None = None
    helper: str = ""


class Setting(NamedTuple):
    """A mode or environment variable: its value (None for unknown) and where it was set."""

    value: Any
    site: Site | None
    option: str = ""


class State:
    """Mutable state of one path. ``alive`` is False behind a return, raise, break or exit. ``aside`` names
    the option that would have to be given for the program to come here at all."""

    __slots__ = ("alive", "aside", "default_level", "env", "flags", "modes", "raised", "rng")

    def __init__(self, default_level: int = UNSEEDED) -> None:
        self.alive = True
        self.aside = ""
        # Whether the path ended by an exception or an exit: what goes on instead is then the usual way.
        self.raised = False
        self.default_level = default_level
        self.rng: dict[str, Rng] = {}
        self.modes: dict[str, Setting] = {}
        self.env: dict[str, Setting] = {}
        # First place at which something happened on this path: "draw:torch", "train", "cuda".
        self.flags: dict[str, object] = {}

    def copy(self) -> State:
        """An independent copy."""
        new = State(self.default_level)
        new.alive = self.alive
        new.aside = self.aside
        new.raised = self.raised
        new.rng = dict(self.rng)
        new.modes = dict(self.modes)
        new.env = dict(self.env)
        new.flags = dict(self.flags)
        return new

    def level(self, rng: str) -> Rng:
        """The state of an RNG."""
        return self.rng.get(rng) or Rng(self.default_level)

    def key(self) -> tuple[Any, ...]:
        """What decides how code runs from here: equal keys, equal runs."""
        return (self.settings_key(), tuple(sorted(self.flags)))

    def settings_key(self) -> tuple[Any, ...]:
        """Seeds, modes and environment: what decides how an import runs that changes none of them."""
        return (
            tuple(sorted((name, r.level, r.option, r.helper) for name, r in self.rng.items())),
            tuple(sorted((name, str(s.value)) for name, s in self.modes.items())),
            tuple(sorted((name, str(s.value)) for name, s in self.env.items())),
            self.aside,
        )


def join_states(states: list[State]) -> State:
    """The state after paths meet: what all agree on stays, else it is unknown."""
    alive = [s for s in states if s.alive]
    if not alive:
        dead = states[0].copy() if states else State()
        dead.alive = False
        return dead
    usual = [s for s in alive if not s.aside]
    if usual and len(usual) < len(alive):
        main = join_states(usual)
        for other in alive:
            if other.aside:
                main = prefer(main, other, other.aside)
        return main
    first = alive[0].copy()
    for other in alive[1:]:
        if first.rng != other.rng:
            for name in {**first.rng, **other.rng}:
                first.rng[name] = _join_rng(first.level(name), other.level(name))
        if first.modes != other.modes:
            _join_settings(first.modes, other.modes)
        if first.env != other.env:
            _join_settings(first.env, other.env)
        if len(first.flags) != len(other.flags) or first.flags.keys() != other.flags.keys():
            first.flags = {**other.flags, **first.flags}
    return first


def _join_rng(a: Rng, b: Rng) -> Rng:
    if a.level == b.level:
        return a if a.option else b
    return Rng(MAYBE, "", a.site or b.site)


def _join_settings(into: dict[str, Setting], other: dict[str, Setting]) -> None:
    for name in {**into, **other}:
        a, b = into.get(name), other.get(name)
        if a is None or b is None or a.value != b.value:
            site = (a.site if a else None) or (b.site if b else None)
            into[name] = Setting(None, site)


def prefer(main: State, other: State, option: str) -> State:
    """The state when an option's default takes ``main``; RNGs that only ``other`` seeds carry the option."""
    if not main.alive:
        if other.alive:
            other = other.copy()
            other.aside = option
            return other
        return main
    if other.alive:
        for name, rng in other.rng.items():
            mine = main.level(name)
            if rng.level == SEEDED and mine.level == UNSEEDED and not mine.option:
                main.rng[name] = Rng(UNSEEDED, option, rng.site)
        for name, setting in other.modes.items():
            if name not in main.modes and setting.value:
                main.modes[name] = Setting(False, setting.site, option)
    return main
