"""DET203: distributed samplers that do not know the epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.context import NO_GRADIENT
from d9mlint.interp.events import CallEvent, EndEvent, LoopEvent
from d9mlint.interp.library.loaders import LOADER
from d9mlint.interp.listening import on, on_call_if, on_method
from d9mlint.interp.memory import remembered
from d9mlint.interp.places import Where
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

# Libraries whose trainers call set_epoch themselves.
EPOCH_CALLERS = (
    "lightning",
    "pytorch_lightning",
    "accelerate",
    "transformers",
    "ignite",
)


def _sets_epochs(api: str) -> bool:
    """Whether a call is that of a library that sets the epoch of samplers. Importing it is not using it: its trainer is
    made, or its loader prepared."""
    head, _, rest = api.partition(".")
    return head in EPOCH_CALLERS and rest.rpartition(".")[2].endswith(_EPOCH_CALLS)


class Epochs(Rule):
    """DET203: distributed samplers whose epoch is never set."""

    codes = ("DET203",)
    samplers = remembered(list[Where])
    epoch_set = remembered(bool)
    """Whether a library sets it, or the program sets it of something that is not known."""
    set_for = remembered(set[Site])
    """Where samplers are made that get the epoch."""
    others = remembered(set[Site])
    known = remembered(set[Site])
    """Calls that set the epoch of another object, and of a sampler; both where a condition decides which it is."""
    once = remembered(set[Site])
    """Where samplers are made that get one epoch before all loops."""
    repeated = remembered(set[Site])
    """Where samplers are made whose loaders are iterated again and again."""
    endless = remembered(set[Site])
    """Those of them whose loaders a generator function iterates so: a stream of batches to train with."""
    evaluated = remembered(set[Site])
    """Where samplers are made whose loaders are iterated without gradients."""
    iterated = remembered(set[tuple[Site, str]])
    """Where samplers are made, and the loops that iterate their loaders."""

    @on_call_if(lambda rule, api: rule.run.kb.role(api, _BY_EPOCH) is not None)
    def made(self, call: CallEvent) -> None:
        """A sampler is made, or a loader with one."""
        entry = self.run.kb.role(call.api, _BY_EPOCH)
        if entry is None or all_hold(call.args, entry.when) is not True:
            return
        if self.run.contexts.within(NO_GRADIENT):
            # The order in which a model is evaluated changes nothing.
            return
        self.samplers.append(Where(self.run, call.node, call.api))

    @on(LoopEvent)
    def loop(self, event: LoopEvent) -> None:
        """A loop over batches begins."""
        loop, begins = event
        if not begins or not isinstance(loop.stmt, m.For) or not self.samplers:
            return
        header: list[Any] = [loop.stmt.iter]
        named = [self.run.value_of(node) for node in nodes(header) if isinstance(node, m.Name)]
        sites: set[Site] = set()
        for value in (loop.over, *named):
            # The same loader may be looked at through a progress bar on one process only.
            for one in v.alternatives(value) if value is not None else ():
                if not isinstance(one, v.Obj) or one.type != LOADER:
                    continue
                sites.update(site for site in self._samplers(one) if site is not None)
        if not sites:
            return
        nested = any(one is not loop and one.frame.env is loop.frame.env for one in self.run.loops)
        for site in sorted(sites):
            self.iterated.add((site, loop.key))
            if self.run.contexts.within(NO_GRADIENT):
                self.evaluated.add(site)
            if nested:
                self.repeated.add(site)
                if isinstance(loop.frame.func, v.Func) and loop.frame.func.fn.is_generator:
                    self.endless.add(site)

    @on_method("set_epoch")
    def set_epoch(self, call: CallEvent) -> None:
        """The epoch is set: of one sampler, or of some that is not known."""
        if self.run.uncertain:
            return
        site = self.run.here(call.node)
        owner = call.owner or v.UNKNOWN
        samplers = {one for one in self._samplers(owner) if one is not None}
        if not samplers and _is_made(owner):
            self.others.add(site)
            return
        if not samplers:
            self.epoch_set = True
            return
        self.known.add(site)
        if isinstance(call.args.get("epoch", 0), v.Lit) and not self.run.loops:
            self.once.update(samplers)
        else:
            self.set_for.update(samplers)

    def _samplers(self, value: v.Value, depth: int = 0) -> Iterator[Site | None]:
        """Where a value, or what it was made with, is made, if it is ordered by epoch."""
        for one in v.alternatives(value):
            if isinstance(one, v.Lit):
                # What stands there if an option is given.
                if one.instead is not None:
                    yield from self._samplers(one.instead, depth)
            elif isinstance(one, v.Obj) and self.run.kb.role(one.api, _BY_EPOCH) is not None:
                yield made_at(one)
            elif isinstance(one, v.Obj) and depth < _MOST_WRAPPED:
                for given in one.args.values():
                    yield from self._samplers(given, depth + 1)

    @on_call_if(lambda _, api: _sets_epochs(api))
    def trainer(self, call: CallEvent) -> None:
        """A trainer sets the epoch."""
        self.epoch_set = True

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        if self.epoch_set or self.others - self.known or self.run.exhausted:
            return
        trained = self.run.training_loops
        for place in self.samplers:
            loops = {loop for site, loop in self.iterated if site == place.site}
            trains = place.site in self.endless or loops & trained
            if trained and not trains and (loops or self.set_for):
                # The order in which a model is evaluated changes nothing, nor that of what is only counted beside a
                # sampler that gets the epoch.
                continue
            if self.run.entry is None and place.site not in self.repeated:
                # Whoever gets it may set the epoch.
                continue
            if place.site in self.set_for or place.site in self.evaluated:
                continue
            what = place.subject.rpartition(".")[2]
            called = "called before the first epoch only" if place.site in self.once else "never called"
            self.report(
                "DET203",
                place,
                f"`{what}` shuffles but `set_epoch()` is {called}: every epoch uses the same order",
                f"call `{'sampler' if what.endswith('Sampler') else 'loader'}.set_epoch(epoch)` at the start of each epoch",
                subject=place.subject,
            )


_BY_EPOCH: Final = "ordered-by-epoch"
_MOST_WRAPPED = 3
"""So deep samplers are looked for in loaders and samplers that are made with them."""
_EPOCH_CALLS = (
    "Trainer",
    "Accelerator",
    "Fabric",
    "CLI",
    "Engine",
    "create_supervised_trainer",
    "auto_dataloader",
)


def _is_made(value: v.Value) -> bool:
    """Whether a value is an object of a library's class that the program makes."""
    return isinstance(value, v.Obj) and made_at(value) is not None and v.names_class(value.api)
