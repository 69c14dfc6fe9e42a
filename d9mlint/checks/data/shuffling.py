"""DET202: loaders and samplers that shuffle without a generator."""

from __future__ import annotations

from d9mlint.base.findings import Severity
from d9mlint.checks.base import Rule, seeded_generator
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, IterationEvent
from d9mlint.interp.idle import is_idle
from d9mlint.interp.library.loaders import LOADER, is_seeded_before
from d9mlint.interp.listening import on, on_call
from d9mlint.interp.memory import remembered_table
from d9mlint.interp.naming import for_others
from d9mlint.interp.places import Where
from d9mlint.interp.state import SEEDED, UNSEEDED, Site

SAMPLERS = (
    "torch.utils.data.RandomSampler",
    "torch.utils.data.WeightedRandomSampler",
    "torch.utils.data.SubsetRandomSampler",
)


class Shuffling(Rule):
    """DET202: loaders and samplers that shuffle without a generator."""

    codes = ("DET202",)
    seeded_before = remembered_table(Site, bool)
    """For loaders that are iterated, whether torch is seeded each time before that."""

    def judge(self, call: CallEvent, what: str) -> None:
        """Judge at the end, when it is known whether torch is seeded."""
        generator = call.args.kw.get("generator")
        if generator is not None and v.is_none(generator) is not True:
            return
        place = Where(self.run, call.node, call.api)
        made = self.run.state.level("torch")
        generator_help, remedy = seeded_generator(self.run, call.api)
        idle = for_others(self.run, call.node)

        def later() -> None:
            # What another process seeds before it makes a loader is not known at the end of the program.
            now = self.run.state.level("torch")
            # Where the branch that made it is one of several, what that did is not known of all of them.
            same = made.level == SEEDED or (made.option and now.level == UNSEEDED)
            level, option = (made if same else now)[:2]
            if self.run.entry is None or level not in (SEEDED, UNSEEDED) or idle():
                return
            seeded = level == SEEDED
            if seeded and self.seeded_before.get(place.site):
                return
            why = (
                "the shuffle order depends on every earlier random draw"
                if seeded
                else f"torch is seeded only if `{option}` is given, so by default the order differs between runs"
                if option
                else "torch is never seeded, so the order differs between runs"
            )
            self.report(
                "DET202",
                place,
                f"`{what}` without `generator=`: {why}",
                generator_help,
                subject=call.api,
                severity=Severity.ADVICE if seeded else Severity.ERROR,
                entry_wide=True,
                cause=("DET101", "torch"),
                remedy=remedy,
            )

        self.run.later(later)

    @on(IterationEvent)
    def iterated(self, event: IterationEvent) -> None:
        """A loader is iterated."""
        found = is_seeded_before(event.value)
        if found is not None:
            self.seeded_before[found[0]] = found[1]

    @on_call(LOADER)
    def loader(self, call: CallEvent) -> None:
        """A loader is made."""
        shuffle = call.args.get("shuffle", 2)
        if shuffle is not None and v.truth(shuffle) is True and not call.args.dstar:
            if not is_idle(self.run, call.node):
                self.judge(call, "DataLoader(shuffle=True)")

    @on_call(*SAMPLERS)
    def sampler(self, call: CallEvent) -> None:
        """A sampler is made."""
        if not is_idle(self.run, call.node, frozenset()):
            self.judge(call, call.api.rpartition(".")[2])
