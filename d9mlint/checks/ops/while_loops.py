"""DET406: loops of TensorFlow 1 whose iterations run concurrently."""

from __future__ import annotations

from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import on_call

_LOOPS = [f"{head}.{name}" for head in ("tf", "tf.compat.v1") for name in ("while_loop", "map_fn", "scan")]


class Loops(Rule):
    """DET406: loops of TensorFlow 1 whose iterations run concurrently."""

    codes = ("DET406",)

    @on_call(*_LOOPS)
    def loop(self, call: CallEvent) -> None:
        """A loop is built."""
        if not self.run.kb_matches("tensorflow", "<2.0") and not self.run.switches.tf_graph:
            return
        position = {"while_loop": 4, "map_fn": 3, "scan": 3}[call.api.rpartition(".")[2]]
        parallel = call.args.get("parallel_iterations", position)
        if parallel is None or (isinstance(parallel, v.Lit) and parallel.value != 1):
            shown = parallel.value if isinstance(parallel, v.Lit) else "10 by default"
            self.report(
                "DET406",
                call.node,
                f"`{call.api.rpartition('.')[2]}` with `parallel_iterations` ({shown}): iterations may run concurrently",
                "pass `parallel_iterations=1`",
                subject=call.api,
                remedy=("parallel_iterations", "1", str(position)),
            )
