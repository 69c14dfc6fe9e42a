"""DET203: distributed samplers that do not know the epoch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from d9mlint.checks.base import Rule, argument_node
from d9mlint.interp import values as v
from d9mlint.interp.context import NO_GRADIENT
from d9mlint.interp.events import CallEvent, EndEvent, LoopEvent
from d9mlint.interp.library.loaders import LOADER
from d9mlint.interp.listening import on, on_call, on_call_if, on_method
from d9mlint.interp.memory import remembered
from d9mlint.interp.places import Where
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView


DISTRIBUTED_SAMPLER = "torch.utils.data.DistributedSampler"
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
    repeated = remembered(set[Site])
    """Where samplers are made whose loaders are iterated again and again."""

    @on_call(DISTRIBUTED_SAMPLER)
    def made(self, call: CallEvent) -> None:
        """A sampler is made."""
        shuffle = call.args.get("shuffle", 3)
        if shuffle is not None and v.truth(shuffle) is not True:
            return
        if self.run.contexts.innermost(NO_GRADIENT) is not None or _evaluates(self.run, call.node):
            # The order in which a model is evaluated changes nothing.
            return
        self.samplers.append(Where(self.run, call.node, call.api))

    @on(LoopEvent)
    def loop(self, event: LoopEvent) -> None:
        """A loop over batches begins in another loop."""
        loop, begins = event
        if not begins or not isinstance(loop.stmt, m.For):
            return
        if not any(one is not loop and one.frame.env is loop.frame.env for one in self.run.loops):
            return
        header: list[Any] = [loop.stmt.iter]
        for node in nodes(header):
            value = self.run.eval(node) if isinstance(node, m.Name) else None
            if not isinstance(value, v.Obj) or value.type != LOADER:
                continue
            sampler = value.args.get("sampler", 3)
            site = made_at(sampler) if isinstance(sampler, v.Obj) else None
            if site is not None:
                self.repeated.add(site)

    @on_method("set_epoch")
    def set_epoch(self, call: CallEvent) -> None:
        """The epoch is set."""
        if not self.run.uncertain:
            self.epoch_set = True

    @on_call_if(lambda _, api: _sets_epochs(api))
    def trainer(self, call: CallEvent) -> None:
        """A trainer sets the epoch."""
        self.epoch_set = True

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        if self.epoch_set or self.run.exhausted:
            return
        for place in self.samplers:
            if self.run.entry is None and place.site not in self.repeated:
                # Whoever gets it may set the epoch.
                continue
            self.report(
                "DET203",
                place,
                "`DistributedSampler` shuffles but `set_epoch()` is never called: every epoch uses the same order",
                "call `sampler.set_epoch(epoch)` at the start of each epoch",
                subject=place.subject,
            )


_EPOCH_CALLS = (
    "Trainer",
    "Accelerator",
    "Fabric",
    "CLI",
    "Engine",
    "create_supervised_trainer",
    "auto_dataloader",
)
_EVALUATION = re.compile(r"(^|[._])(val|valid|validation|test|eval|dev)", re.IGNORECASE)


def _evaluates(interp: RunView, node: Any) -> bool:
    """Whether a sampler is made of, or kept as, something for evaluation, by name."""
    data = argument_node(node, "dataset", 0)
    names = [data.id] if isinstance(data, m.Name) else []
    stmt = interp.statement
    if isinstance(stmt, m.Assign):
        names += [t.id for t in stmt.targets if isinstance(t, m.Name)]
    return any(_EVALUATION.search(name) for name in names)
