"""DET202: loaders and samplers that shuffle without a generator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from d9mlint.base.findings import Severity
from d9mlint.base.options import given_in_words
from d9mlint.checks.base import Rule, seeded_generator
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.events import CallEvent, IterationEvent, LoopEvent
from d9mlint.interp.idle import is_idle
from d9mlint.interp.library.loaders import LOADER, is_seeded_before
from d9mlint.interp.listening import on, on_call, on_call_if
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.naming import for_others
from d9mlint.interp.places import Where
from d9mlint.interp.state import SEEDED, UNSEEDED, Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.usage import handed_over

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

_RANDOM: Final = "torch.utils.data.RandomSampler"
SAMPLERS = (
    _RANDOM,
    "torch.utils.data.WeightedRandomSampler",
    "torch.utils.data.SubsetRandomSampler",
)

_REPLACED = (LOADER, _RANDOM)
"""What a distributed sampler takes the place of: it goes around any other sampler."""
_REPLACES: Final = "replaces-samplers"


def _sites(value: v.Value) -> Iterator[Site]:
    """Where a loader is made, and its random sampler."""
    for one in v.alternatives(value):
        if isinstance(one, v.Obj) and one.type == LOADER:
            samplers = (x for x in one.args.values() if isinstance(x, v.Obj) and x.api == _RANDOM)
            yield from filter(None, map(made_at, (one, *samplers)))


def _is_for_trainer(run: RunView) -> bool:
    """Whether what runs is a method that a library calls, or has been called by one."""
    receivers = (frame.func.receiver for frame in run.stack() if frame.func is not None)
    bases = (base for one in receivers if isinstance(one, v.Inst) for base in one.cls.external_bases())
    return any(run.kb.hooks(run.kb.canonical(base)) is not None for base in bases)


class Shuffling(Rule):
    """DET202: loaders and samplers that shuffle without a generator."""

    codes = ("DET202",)
    seeded_before = remembered_table(Site, bool)
    """For loaders that are iterated, whether torch is seeded each time before that."""
    replaced = remembered(set[Site])
    """Where loaders are made that a trainer gives a distributed sampler in place of a random one."""
    returned = remembered(set[Site])
    """Where those are made that the program gets back with it, and goes through itself."""
    kept = remembered(set[Site])
    looped = remembered(set[Site])
    """Where those are made that a trainer takes as they are, and those that loops of the program go through."""
    modules_replaced = remembered(bool)
    modules_kept = remembered(bool)
    """Whether a trainer does so with the loaders that methods of modules make, and whether one may not."""

    @on_call_if(lambda rule, api: rule.run.kb.role(api, _REPLACES) is not None)
    def given(self, call: CallEvent) -> None:
        """Loaders, or modules that make them, are given to what may make their samplers distributed."""
        entry = self.run.kb.role(call.api, _REPLACES)
        if entry is None or call.owner is None:
            return
        replaces = all_hold(call.args, entry.when) is True and all(
            self._is_distributed(one) for one in v.alternatives(call.owner)
        )
        loaders = self.kept if not replaces else self.returned if entry.more else self.replaced
        for one in handed_over(call.args):
            if isinstance(one, v.Inst):
                self.modules_replaced = self.modules_replaced or replaces
                self.modules_kept = self.modules_kept or not replaces
            loaders.update(_sites(one))

    def _is_distributed(self, owner: v.Value) -> bool:
        """Whether a trainer makes random samplers distributed."""
        entry = self.run.kb.role(owner.api, _REPLACES) if isinstance(owner, v.Obj) else None
        return entry is not None and isinstance(owner, v.Obj) and all_hold(owner.args, entry.when) is True

    @on(LoopEvent)
    def loop(self, event: LoopEvent) -> None:
        """A loop of the program goes through batches."""
        loop, begins = event
        if begins and loop.over is not None:
            self.looped.update(_sites(loop.over))

    def _is_replaced(self, site: Site, for_trainer: bool) -> bool:
        """Whether a loader, or sampler, is made for what puts a distributed sampler in its place."""
        if site in self.kept or site in self.returned:
            return site not in self.kept
        if site in self.looped:
            return False
        return site in self.replaced or (for_trainer and self.modules_replaced and not self.modules_kept)

    def judge(self, call: CallEvent, what: str) -> None:
        """Judge at the end, when it is known whether torch is seeded."""
        generator = call.args.kw.get("generator")
        if generator is not None and v.is_none(generator) is not True:
            return
        place = Where(self.run, call.node, call.api)
        made = self.run.state.level("torch")
        generator_help, remedy = seeded_generator(self.run, call.api)
        idle = for_others(self.run, call.node)
        for_trainer = _is_for_trainer(self.run)

        def later() -> None:
            if call.api in _REPLACED and self._is_replaced(place.site, for_trainer):
                return
            # What another process seeds before it makes a loader is not known at the end of the program.
            now = self.run.state.level("torch")
            # Where the branch that made it is one of several, what that did is not known of all of them.
            same = made.level == SEEDED or (made.option and now.level == UNSEEDED)
            level, option = (made if same else now)[:2]
            if self.run.entry is None or idle():
                return
            # A program that may seed torch, as where a configuration has a seed, gets the advice that one gets which does.
            seeded = level != UNSEEDED
            if seeded and self.seeded_before.get(place.site):
                return
            why = (
                "the shuffle order depends on every earlier random draw"
                if seeded
                else f"torch is seeded only if {given_in_words(option)}, so by default the order differs between runs"
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
