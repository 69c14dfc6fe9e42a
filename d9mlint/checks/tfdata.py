"""DET206, DET208, DET406: tf.data pipelines, Keras workers and TF1 loops that run in parallel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.checks.base import Reporter
from d9mlint.checks.data import what_is_drawn
from d9mlint.interp import values as v
from d9mlint.interp.calls import owner_types

if TYPE_CHECKING:
    from d9mlint.interp.hooks import CallEvent, Hooks
    from d9mlint.interp.interpreter import Interp


def register(hooks: Hooks, reporter: Reporter) -> None:
    """Listen to parallel stages."""
    if reporter.on("DET206"):
        _parallel_map(hooks, reporter)
    if reporter.on("DET208"):
        _keras_workers(hooks, reporter)
    if reporter.on("DET406"):
        _loops(hooks, reporter)


def _determinism_on(interp: Interp) -> bool:
    return "tf-on" in interp.notes


def _parallel_map(hooks: Hooks, reporter: Reporter) -> None:
    @hooks.on_call("tf.data.Dataset.map", "tf.data.Dataset.interleave", "tf.data.Dataset.batch")
    def stage(interp: Interp, call: CallEvent) -> None:
        if _determinism_on(interp):
            return
        name = call.api.rpartition(".")[2]
        order = call.args.kw.get("deterministic")
        if isinstance(order, v.Lit) and order.value is False:
            report(
                interp,
                call.node,
                f"`{name}(deterministic=False)` yields elements in completion order",
                "tf.data_map_parallel",
            )
            return
        calls = call.args.kw.get("num_parallel_calls")
        if calls is None or (isinstance(calls, v.Lit) and calls.value in (1, None)):
            return
        func = call.args.get("map_func", 0)
        drawn = what_is_drawn(interp, interp.frame, [func]) & {"tensorflow", "numpy", "python", "keras"}
        if drawn:
            report(
                interp,
                call.node,
                f"parallel `{name}` over a function that draws random numbers: draw order depends on thread scheduling",
                "tf.data_stateful_map",
            )

    def report(interp: Interp, node: Any, message: str, op: str) -> None:
        reporter.report(
            interp,
            "DET206",
            node,
            message,
            "use stateless random ops with a seed per element, or enable op determinism",
            subject="tf.data",
            op=op,
        )

    def options(interp: Interp, owner: v.Obj, name: str, value: v.Value, node: Any) -> None:
        if owner.api in ("tf.data.Options", "tf.data.experimental.Options") and not _determinism_on(interp):
            if isinstance(value, v.Lit) and value.value is False:
                report(
                    interp,
                    interp.statement,
                    f"`options.{name} = False` yields elements in completion order",
                    "tf.data_map_parallel",
                )

    for name in ("deterministic", "experimental_deterministic"):
        hooks.object_attributes.setdefault(name, []).append(options)


def _keras_workers(hooks: Hooks, reporter: Reporter) -> None:
    @hooks.on_method("fit", "fit_generator")
    def fit(interp: Interp, call: CallEvent) -> None:
        types = owner_types(interp, call.owner) if call.owner is not None else []
        keras = any(t.startswith("tf.keras.") for t in types)
        if not keras and (types[:1] != ["?"] or (not interp.uses("tensorflow") and not interp.uses("keras"))):
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
            if not (isinstance(workers, v.Lit) and workers.value == 0) and not interp.kb_matches(
                "tensorflow", ">=2.16"
            ):
                message = "training and validation share one pipeline and race for it unless `workers=0`"
        elif isinstance(data, v.Inst) and interp.kb_matches("tensorflow", ">=2.16"):
            count = data.args.kw.get("workers")
            if isinstance(count, v.Lit) and isinstance(count.value, int) and count.value > 1:
                message = f"`PyDataset` with `workers={count.value}`: draw order depends on scheduling"
        if message:
            reporter.report(
                interp,
                "DET208",
                call.node,
                message,
                "use one worker (0 when validation shares the pipeline), or a generator per element",
                subject="fit",
            )


def _loops(hooks: Hooks, reporter: Reporter) -> None:
    names = [f"{head}.{name}" for head in ("tf", "tf.compat.v1") for name in ("while_loop", "map_fn", "scan")]

    @hooks.on_call("tf.compat.v1.disable_v2_behavior", "tf.compat.v1.disable_eager_execution")
    def graph(interp: Interp, call: CallEvent) -> None:
        interp.notes["tf1-graph"] = True

    @hooks.on_call(*names)
    def loop(interp: Interp, call: CallEvent) -> None:
        if not interp.kb_matches("tensorflow", "<2.0") and "tf1-graph" not in interp.notes:
            return
        position = {"while_loop": 4, "map_fn": 3, "scan": 3}[call.api.rpartition(".")[2]]
        parallel = call.args.get("parallel_iterations", position)
        if parallel is None or (isinstance(parallel, v.Lit) and parallel.value != 1):
            shown = parallel.value if isinstance(parallel, v.Lit) else "10 by default"
            reporter.report(
                interp,
                "DET406",
                call.node,
                f"`{call.api.rpartition('.')[2]}` with `parallel_iterations` ({shown}): iterations may run concurrently",
                "pass `parallel_iterations=1`",
                subject=call.api,
                remedy=("parallel_iterations", "1", str(position)),
            )
