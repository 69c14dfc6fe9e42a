"""DET106: generators that are created without a seed, and given one later."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, EndEvent
from d9mlint.interp.listening import Listening, on
from d9mlint.interp.memory import remembered
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at


class SeededLater(Rule):
    """DET106: a generator that is created without a seed and then given one, or a state, is a seeded one."""

    codes = ("DET106",)
    sites = remembered(set[Site])

    def also(self) -> Iterable[tuple[Listening, Callable[[CallEvent], None]]]:
        return [(Listening(CallEvent, tuple(self.run.kb.seeding_methods), method=True), self.seeded)]

    def seeded(self, call: CallEvent) -> None:
        """A generator is given a seed."""
        value = call.args.pos[0] if call.args.pos else next(iter(call.args.kw.values()), None)
        if value is None:
            value = v.UNKNOWN if call.args.star or call.args.dstar else v.NONE
        if call.owner is None or v.is_none(value) is True:
            return
        for one in v.alternatives(call.owner):
            site = made_at(one) if isinstance(one, v.Obj) else None
            if site is not None:
                self.sites.add(site)

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What is ever seeded is known."""
        for site in self.sites:
            self.reporter.withdraw("DET106", site)
            if self.run.silences is not None:
                self.run.silences("DET106", site, "the generator is given a seed later")
