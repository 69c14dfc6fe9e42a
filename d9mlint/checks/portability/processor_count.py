"""DET803: numbers of threads and workers that are computed from the machine."""

from __future__ import annotations

from d9mlint.checks.base import Rule, argument_node
from d9mlint.checks.derivation import derives
from d9mlint.interp.events import CallEvent
from d9mlint.interp.library.loaders import LOADER
from d9mlint.interp.listening import on_call

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
