"""DET802-DET804: numbers that depend on the compiler, the number of processors, or the number of processes."""

from __future__ import annotations

from typing import Any

from d9mlint.checks.base import Rule, argument_node
from d9mlint.checks.derivation import derives
from d9mlint.checks.drawing import draws
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, DecoratorEvent, EndEvent, SeedEvent
from d9mlint.interp.library.loaders import LOADER
from d9mlint.interp.listening import on, on_call
from d9mlint.interp.memory import remembered
from d9mlint.interp.places import Where

_FALLBACK = "torch.inductor.fallback_random"
# Calls that take a number of threads or workers, with its argument.
_PARALLEL = {
    "torch.set_num_threads": ("num_threads", 0),
    "torch.set_num_interop_threads": ("num_threads", 0),
    "tf.config.threading.set_intra_op_parallelism_threads": ("num_threads", 0),
    "tf.config.threading.set_inter_op_parallelism_threads": ("num_threads", 0),
    LOADER: ("num_workers", 5),
}


class ProcessorCount(Rule):
    """DET803: numbers of threads and workers that are computed from the machine."""

    codes = ("DET803",)

    @on_call(*_PARALLEL)
    def parallel(self, call: CallEvent) -> None:
        """A number of threads or workers is set."""
        argument, position = _PARALLEL[call.api]
        source = derives(self.run, argument_node(call.node, argument, position), "processor-count")
        if source:
            self.report(
                "DET803",
                call.node,
                f"`{argument}` is computed from `{source}`: machines with other processors split the work, "
                "and the random numbers of workers, differently",
                f"give `{argument}` a fixed number where results of different machines are compared",
                subject=call.api,
            )


class SeedOfRank(Rule):
    """DET804: seeds that are computed from the number of the process."""

    codes = ("DET804",)

    @on(SeedEvent)
    def seeded(self, event: SeedEvent) -> None:
        """Something is seeded."""
        entry, _, node, _ = event
        source = derives(self.run, argument_node(node, entry.seed_arg, entry.seed_pos), "rank")
        if source:
            shown = source.removeprefix("env:")
            self.report(
                "DET804",
                node,
                f"the seed is computed from `{shown}`: results depend on the number of processes",
                "build the model with the same seed on every rank, and derive other seeds from the number of the sample",
                subject=shown,
            )


class Compiler(Rule):
    """DET802: Inductor draws other numbers than eager mode, unless it is set to use eager's generator."""

    codes = ("DET802",)
    places = remembered(list[Where])

    def compiled(self, function: v.Value | None, options: v.Value | None, node: Any) -> None:
        """A function is compiled."""
        drawn = draws(self.run, function)
        if not drawn or not drawn & {"torch", "torch_cuda"}:
            return
        if isinstance(options, v.Mapping):
            fallback = options.items.get("fallback_random")
            if fallback is not None and v.truth(fallback) is not False:
                return
        self.places.append(Where(self.run, node, "torch.compile"))

    @on_call("torch.compile")
    def call(self, call: CallEvent) -> None:
        """Something is called."""
        self.compiled(call.args.get("model", 0), call.args.kw.get("options"), call.node)

    @on(DecoratorEvent)
    def decorator(self, event: DecoratorEvent) -> None:
        """A decorator is applied."""
        used, function, node = event
        if isinstance(used, v.Ext) and self.run.kb.canonical(used.name) == "torch.compile":
            self.compiled(function, None, node)
        elif isinstance(used, v.Obj) and used.api == "torch.compile":
            self.compiled(function, used.args.kw.get("options"), node)

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        if self.run.state.modes.get(_FALLBACK) is not None and self.run.mode(_FALLBACK).value in (True, None):
            return
        for place in self.places:
            self.report(
                "DET802",
                place,
                "the compiled function draws other random numbers than the same code without compilation",
                "set `torch._inductor.config.fallback_random = True` where the two are compared",
                subject=place.subject,
            )
