"""DET308: a variable that is set after a call that has read it for good."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from d9mlint.checks.base import Rule
from d9mlint.interp.events import CallEvent, EnvironmentEvent
from d9mlint.interp.listening import Listening, on
from d9mlint.interp.memory import marks_path
from d9mlint.interp.rng import all_hold

if TYPE_CHECKING:
    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.schema import ReadAt


@functools.lru_cache(maxsize=2)
def _readers(kb: Knowledge) -> dict[str, list[tuple[str, ReadAt]]]:
    """Calls that read variables for good, with these variables."""
    readers: dict[str, list[tuple[str, ReadAt]]] = {}
    for setting in kb.settings():
        for name in setting.names:
            for reader in setting.read_at:
                for api in reader.apis:
                    readers.setdefault(api, []).append((name, reader))
    return readers


@functools.lru_cache(maxsize=2)
def _switches(kb: Knowledge) -> dict[str, list[tuple[str, ReadAt]]]:
    """Calls that decide whether variables are read at all, with these variables."""
    switches: dict[str, list[tuple[str, ReadAt]]] = {}
    for setting in kb.settings():
        for switch in setting.unread_after:
            for api in switch.apis:
                switches.setdefault(api, []).extend((name, switch) for name in setting.names)
    return switches


class ReadBefore(Rule):
    """DET308: a variable that is set after a call that has read it for good."""

    codes = ("DET308",)
    read = marks_path(bool)
    unread = marks_path(bool)
    wanted = marks_path(bool)

    def also(self) -> Iterable[tuple[Listening, Callable[[Any], None]]]:
        readers = _readers(self.run.kb)
        switches = _switches(self.run.kb)
        return [
            *(
                (Listening(CallEvent, (api,)), partial(self.switched, found))
                for api, found in switches.items()
            ),
            *((Listening(CallEvent, (api,)), partial(self.called, found)) for api, found in readers.items()),
        ]

    def switched(self, found: list[tuple[str, ReadAt]], call: CallEvent) -> None:
        """A call decides whether variables are read."""
        for name, switch in found:
            off = all_hold(call.args, switch.when, call.owner) is True
            (self.unread if off else self.wanted)[name] = True
            (self.wanted if off else self.unread).pop(name)

    def called(self, found: list[tuple[str, ReadAt]], call: CallEvent) -> None:
        """A call reads variables."""
        for name, reader in found:
            if name in self.unread and name not in self.wanted:
                continue
            if all_hold(call.args, reader.when, call.owner) is not False:
                self.read.setdefault(f"{name}:{call.api}", True)

    @on(EnvironmentEvent)
    def variable(self, event: EnvironmentEvent) -> None:
        """A variable is set."""
        name = event.name
        by = next((mark for mark, _ in self.read.items() if mark.startswith(f"{name}:")), "").rpartition(":")[
            2
        ]
        if by:
            self.report(
                "DET308",
                event.node,
                f"`{name}` is set too late: `{by}` has read it before this line",
                f"set it before `{by}`, or in the shell",
                subject=name,
            )
