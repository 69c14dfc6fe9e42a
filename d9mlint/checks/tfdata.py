"""DET206, DET208, DET406: tf.data pipelines, Keras workers and TF1 loops that run in parallel."""

from __future__ import annotations

from typing import Any

from d9mlint.checks.base import Rule
from d9mlint.checks.drawing import what_is_drawn
from d9mlint.interp import values as v
from d9mlint.interp.calls import owner_types
from d9mlint.interp.events import CallEvent, ObjectAttributeEvent
from d9mlint.interp.listening import on_call, on_method, on_object_attribute


class ParallelMap(Rule):
    """DET206: stages of tf.data whose order or draws depend on scheduling."""

    codes = ("DET206",)

    @on_call("tf.data.Dataset.map", "tf.data.Dataset.interleave", "tf.data.Dataset.batch")
    def stage(self, call: CallEvent) -> None:
        """A stage is added."""
        if self.run.switches.tf_on:
            return
        name = call.api.rpartition(".")[2]
        order = call.args.kw.get("deterministic")
        if isinstance(order, v.Lit) and order.value is False:
            self._vary(
                call.node,
                f"`{name}(deterministic=False)` yields elements in completion order",
                "tf.data_map_parallel",
                "pass `deterministic=True`, or leave the argument out",
            )
            return
        calls = call.args.kw.get("num_parallel_calls")
        if calls is None or (isinstance(calls, v.Lit) and calls.value in (1, None)):
            return
        func = call.args.get("map_func", 0)
        drawn = what_is_drawn(self.run, [func]) & {"tensorflow", "numpy", "python", "keras"}
        if drawn:
            self._vary(
                call.node,
                f"parallel `{name}` over a function that draws random numbers: draw order depends on thread scheduling",
                "tf.data_stateful_map",
                "use stateless random ops with a seed per element, or enable op determinism",
            )

    def _vary(self, node: Any, message: str, op: str, help: str) -> None:
        self.report("DET206", node, message, help, subject="tf.data", op=op)

    @on_object_attribute("deterministic", "experimental_deterministic")
    def options(self, event: ObjectAttributeEvent) -> None:
        """An option of a pipeline is set."""
        owner, name, value, _ = event
        if owner.api in ("tf.data.Options", "tf.data.experimental.Options") and not self.run.switches.tf_on:
            if isinstance(value, v.Lit) and value.value is False:
                self._vary(
                    self.run.statement,
                    f"`options.{name} = False` yields elements in completion order",
                    "tf.data_map_parallel",
                    f"set `{name}` to True, or leave it unset",
                )


class KerasWorkers(Rule):
    """DET208: several workers feed one Keras model."""

    codes = ("DET208",)

    @on_method("fit", "fit_generator")
    def fit(self, call: CallEvent) -> None:
        """A model is trained."""
        types = owner_types(self.run, call.owner) if call.owner is not None else []
        keras = any(t.startswith("tf.keras.") for t in types)
        if not keras and (
            types[:1] != ["?"] or (not self.run.uses("tensorflow") and not self.run.uses("keras"))
        ):
            return
        data = call.args.get("x", 0) or call.args.kw.get("generator")
        workers = call.args.kw.get("workers")
        processes = call.args.kw.get("use_multiprocessing")
        validation = call.args.kw.get("validation_data")
        message = ""
        if isinstance(workers, v.Lit) and isinstance(workers.value, int) and workers.value > 1:
            message = (
                f"`workers={workers.value}`: workers share RNG state, so draw order depends on scheduling"
            )
        elif isinstance(processes, v.Lit) and processes.value is True:
            message = "`use_multiprocessing=True`: every process gets a copy of the RNG states"
        elif validation is not None and validation is data and isinstance(data, v.Inst):
            if not (isinstance(workers, v.Lit) and workers.value == 0) and not self.run.kb_matches(
                "tensorflow", ">=2.16"
            ):
                message = "training and validation share one pipeline and race for it unless `workers=0`"
        elif isinstance(data, v.Inst) and self.run.kb_matches("tensorflow", ">=2.16"):
            count = data.args.kw.get("workers")
            if isinstance(count, v.Lit) and isinstance(count.value, int) and count.value > 1:
                message = f"`PyDataset` with `workers={count.value}`: draw order depends on scheduling"
        if message:
            self.report(
                "DET208",
                call.node,
                message,
                "use one worker (0 when validation shares the pipeline), or a generator per element",
                subject="fit",
            )


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
