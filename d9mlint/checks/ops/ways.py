"""Whether a deterministic mode is on where an op is made or called, on the way through the program that leads there: what
is known at its end does not tell one of several commands, or one branch, from the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from d9mlint.interp.events import CallEvent, EnvironmentEvent
from d9mlint.interp.listening import on, on_call, on_call_if
from d9mlint.interp.memory import marks_path, remembered_table
from d9mlint.interp.switches import (
    ARGUMENTS,
    DETERMINISTIC,
    ENABLING,
    FULL,
    LIGHTNING_TRAINERS,
    OP_DETERMINISM,
    TF_VARIABLES,
    TORCH_SWITCHES,
    WARN_ONLY,
    is_on,
)

if TYPE_CHECKING:
    from d9mlint.interp.memory import Memory
    from d9mlint.interp.places import Where
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge import Knowledge

Mode = Literal["on", "warns", "off", "unknown"]
_SWITCHES = ("deterministic", "full_determinism")
"""The arguments of trainers that turn a mode on."""
_TRAINERS = frozenset({*LIGHTNING_TRAINERS, *ARGUMENTS})


class ModesByWay:
    """Listens for what turns the modes on behind an op; a base of the rule that judges ops."""

    run: RunView
    on_way = marks_path(bool)
    """The places of ops on the present path, by their names below."""
    turned_on = remembered_table(str, bool)
    """The places behind which a mode is turned on, on the same path."""

    @property
    def memory(self) -> Memory:
        """Where the fields are remembered."""
        return self.run.memory

    @on_call(*TORCH_SWITCHES, *FULL, *ENABLING)
    def turned(self, call: CallEvent) -> None:
        """A mode is turned on, or off."""
        self._note()

    @on_call_if(lambda rule, api: api in _TRAINERS or _sets_mode(rule.run.kb, api))
    def turned_by_arguments(self, call: CallEvent) -> None:
        """A trainer, what it is given, or something else that turns it on is called, and its arguments may say so."""
        if call.args.dstar or any(name in call.args.kw for name in _SWITCHES):
            self._note()

    @on(EnvironmentEvent)
    def enabled_by_variable(self, event: EnvironmentEvent) -> None:
        """A variable enables op determinism."""
        if event.name in TF_VARIABLES and is_on(event.value):
            self._note()

    def _note(self) -> None:
        for name, _ in self.on_way.items():
            self.turned_on[name] = True

    def mode_here(self, place: Where, is_tf: bool) -> Mode:
        """Whether the mode of a library is on where an op is made or called."""
        self.on_way.setdefault(_name(place), True)
        if is_tf:
            by_variable = any(name in self.run.state.env for name in TF_VARIABLES)
            setting = self.run.mode(OP_DETERMINISM)
            return "unknown" if by_variable or setting.option else _known(setting.value)
        setting = self.run.mode(DETERMINISTIC)
        if setting.option:
            return "unknown"
        warns = setting.value is True and self.run.mode(WARN_ONLY).value is True
        return "warns" if warns else _known(setting.value)

    def stays(self, place: Where, mode: Mode) -> bool:
        """Whether the mode is known where an op is, and nothing turns it on behind that: a module is made before it is
        called."""
        return mode in ("on", "warns") or (mode == "off" and _name(place) not in self.turned_on)


def _sets_mode(kb: Knowledge, api: str) -> bool:
    return any(one.name == DETERMINISTIC for entry in kb.rng(api) for one in entry.sets)


def _known(value: object) -> Mode:
    return "on" if value is True else "off" if value is False else "unknown"


def _name(place: Where) -> str:
    return f"{place.site.path}:{place.site.start}:{place.site.end}"
