"""Attributes that are given something random that nothing reads, or something else before anything does.

``self.transform = RandomCrop(8)`` and later ``data.transform = CenterCrop(8)``: what was made first draws nothing that
matters. An attribute counts as read where the program reads it, and where a library gets the instance or one that holds
it. What is known is kept with the path, as in ``overwritten``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, InstanceReadEvent, InstanceWriteEvent
from d9mlint.interp.listening import on
from d9mlint.interp.rng import GENERATOR_TYPES
from d9mlint.interp.state import Setting, Site
from d9mlint.interp.storage import made_at
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.state import State

REPLACED = "draw replaced:"
_ALONE = "draw alone:"
_LOADED = "draw loaded:"
_KEPT = "draw kept:"
_MOST_NESTED = 3
_HOLDING = frozenset({v.Items, v.Mapping, v.AnyOf})
_MAKING = frozenset({"draw", "init", "generator"})


class Replaced:
    """Follows what is random in attributes of instances."""

    def __init__(self, interp: Interp) -> None:
        self._interp = interp
        self._random: dict[str, bool] = {}

    @on(InstanceWriteEvent)
    def written(self, event: InstanceWriteEvent) -> None:
        """``instance.name = value``."""
        interp, stmt = self._interp, self._interp.statement
        new = self._place(event.value)
        if new is not None and isinstance(stmt, m.Assign) and len(stmt.targets) == 1:
            assert isinstance(event.value, v.Obj)
            if stmt.value is event.value.node:
                interp.state.flags.setdefault(_ALONE + new[0], new[1])
                if REPLACED + new[0] in interp.state.modes:
                    interp.state.modes[REPLACED + new[0]] = Setting(None, new[1])
                if self._is_generator(event.value) and self._keeps_its_attributes(event.owner):
                    interp.state.flags.setdefault(f"{_KEPT}{event.name} {new[0]}", new[1])
        old = self._place(event.old)
        if old is None or event.old is event.value or interp.branching or interp.uncertain or interp.guessing:
            return
        place, site = old
        flags = interp.state.flags
        if _ALONE + place in flags and _LOADED + place not in flags:
            interp.state.modes.setdefault(REPLACED + place, Setting(True, site))

    @on(InstanceReadEvent)
    def read(self, event: InstanceReadEvent) -> None:
        """``instance.name``."""
        self._given(event.value, 0)

    @on(CallEvent)
    def call(self, event: CallEvent) -> None:
        """Something outside of the program gets an instance."""
        if self._interp.kb.role(event.api, "takes-items") is not None:
            # What a dataset of the program reads then is seen.
            return
        if type(event.owner) is v.Inst:
            self._given(event.owner, 0)
        for value in (*event.args.pos, *event.args.kw.values()):
            if type(value) is v.Inst or type(value) in _HOLDING:
                self._given(value, 0)

    def _is_generator(self, value: v.Obj) -> bool:
        # One that does nothing but draw is reported wherever it is.
        return value.type not in GENERATOR_TYPES and any(
            one.kind == "generator" for one in self._interp.kb.rng(value.api)
        )

    def _keeps_its_attributes(self, owner: v.Inst) -> bool:
        """Whether no class of a library that an instance is derived from reads attributes that it does not know."""
        role = self._interp.kb.role
        return all(role(base, "base-only") is not None for base in owner.cls.external_bases())

    def _given(self, value: v.Value, depth: int) -> None:
        inner: list[v.Value] | tuple[v.Value, ...]
        if isinstance(value, v.Inst):
            inner = list(dict.values(value.attrs))
        elif isinstance(value, v.Items):
            inner = value.elts
        elif isinstance(value, v.Mapping):
            inner = list(value.items.values())
        elif isinstance(value, v.AnyOf):
            inner = value.values
        else:
            self._loaded(value)
            return
        if depth < _MOST_NESTED:
            for one in inner:
                self._given(one, depth + 1)

    def _loaded(self, value: v.Value) -> None:
        found = self._place(value)
        if found is not None:
            self._interp.state.flags.setdefault(_LOADED + found[0], found[1])

    def _place(self, value: v.Value | None) -> tuple[str, Site] | None:
        """Where something random was made, as text and as a place; None for anything else."""
        site = made_at(value) if isinstance(value, v.Obj) else None
        if site is None:
            return None
        assert isinstance(value, v.Obj)
        known = self._random.get(value.api)
        if known is None:
            entries = self._interp.kb.rng(value.api)
            known = any(one.kind in _MAKING and one.at == "call" and not one.in_place for one in entries)
            self._random[value.api] = known
        return (f"{site.path}:{site.start}", site) if known else None


def kept_places(state: State, is_read: Callable[[str], bool]) -> frozenset[Site]:
    """Where something random was made that is kept in an attribute which nothing reads; ``is_read`` says whether code that
    has not run may read attributes of a name."""
    kept = ((*name.removeprefix(_KEPT).split(" ", 1), site) for name, site in state.flags.starting(_KEPT))
    return frozenset(
        site for name, place, site in kept if _LOADED + place not in state.flags and not is_read(name)
    )


def replaced_places(state: State) -> frozenset[Site]:
    """Where something random was made that was replaced before anything read it."""
    return frozenset(
        setting.site
        for name, setting in state.modes.starting(REPLACED)
        if setting.value is True
        and setting.site is not None
        and _LOADED + name.removeprefix(REPLACED) not in state.flags
    )
