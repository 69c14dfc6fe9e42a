"""DET802-DET804: numbers that depend on the compiler, the number of processors, or the number of processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.checks.base import Reporter, argument_node
from d9mlint.checks.derivation import derives
from d9mlint.checks.recomputation import draws
from d9mlint.interp import values as v
from d9mlint.interp.library.loaders import LOADER
from d9mlint.interp.places import Where

if TYPE_CHECKING:
    from d9mlint.interp.hooks import CallEvent, Hooks
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import RngEntry

_FALLBACK = "torch.inductor.fallback_random"
_COMPILED = "compiled-draws"
# Calls that take a number of threads or workers, with its argument.
_PARALLEL = {
    "torch.set_num_threads": ("num_threads", 0),
    "torch.set_num_interop_threads": ("num_threads", 0),
    "tf.config.threading.set_intra_op_parallelism_threads": ("num_threads", 0),
    "tf.config.threading.set_inter_op_parallelism_threads": ("num_threads", 0),
    LOADER: ("num_workers", 5),
}


def register(hooks: Hooks, reporter: Reporter) -> None:
    """Listen to compilers, threads and seeds."""
    if reporter.on("DET802"):
        _compiler(hooks, reporter)
    if reporter.on("DET803"):

        @hooks.on_call(*_PARALLEL)
        def parallel(interp: Interp, call: CallEvent) -> None:
            argument, position = _PARALLEL[call.api]
            source = derives(interp, argument_node(call.node, argument, position), "processor-count")
            if source:
                reporter.report(
                    interp,
                    "DET803",
                    call.node,
                    f"`{argument}` is computed from `{source}`: machines with other processors split the work, "
                    "and the random numbers of workers, differently",
                    f"give `{argument}` a fixed number where results of different machines are compared",
                    subject=call.api,
                )

    if reporter.on("DET804"):

        def seeded(interp: Interp, entry: RngEntry, args: v.Args, node: Any, rngs: list[str]) -> None:
            source = derives(interp, argument_node(node, entry.seed_arg, entry.seed_pos), "rank")
            if source:
                shown = source.removeprefix("env:")
                reporter.report(
                    interp,
                    "DET804",
                    node,
                    f"the seed is computed from `{shown}`: results depend on the number of processes",
                    "build the model with the same seed on every rank, and derive other seeds from the number of the sample",
                    subject=shown,
                )

        hooks.seeds.append(seeded)


def _compiler(hooks: Hooks, reporter: Reporter) -> None:
    """Inductor draws other numbers than eager mode, unless it is set to use eager's generator."""

    def compiled(interp: Interp, function: v.Value | None, options: v.Value | None, node: Any) -> None:
        drawn = draws(interp, function)
        if not drawn or not drawn & {"torch", "torch_cuda"}:
            return
        if isinstance(options, v.Mapping):
            fallback = options.items.get("fallback_random")
            if fallback is not None and v.truth(fallback) is not False:
                return
        interp.notes.setdefault(_COMPILED, []).append(Where(interp, node, "torch.compile"))

    @hooks.on_call("torch.compile")
    def call(interp: Interp, call: CallEvent) -> None:
        compiled(interp, call.args.get("model", 0), call.args.kw.get("options"), call.node)

    @hooks.on_call("@decorator")
    def decorator(interp: Interp, call: CallEvent) -> None:
        used, function = call.args.pos[0], call.args.pos[1]
        if isinstance(used, v.Ext) and interp.kb.canonical(used.name) == "torch.compile":
            compiled(interp, function, None, call.node)
        elif isinstance(used, v.Obj) and used.api == "torch.compile":
            compiled(interp, function, used.args.kw.get("options"), call.node)

    def end(interp: Interp) -> None:
        if interp.state.modes.get(_FALLBACK) is not None and interp.mode(_FALLBACK).value in (True, None):
            return
        for place in interp.notes.get(_COMPILED, []):
            reporter.report(
                interp,
                "DET802",
                place,
                "the compiled function draws other random numbers than the same code without compilation",
                "set `torch._inductor.config.fallback_random = True` where the two are compared",
                subject=place.subject,
            )

    hooks.ends.append(end)
