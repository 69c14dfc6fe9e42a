"""DET406: loops of TensorFlow 1 whose iterations run concurrently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.checks.base import Rule
from d9mlint.checks.drawing import Observer
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent
from d9mlint.interp.kinds import computes
from d9mlint.interp.listening import on, on_call
from d9mlint.interp.state import Site
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

_LOOPS = [f"{head}.{name}" for head in ("tf", "tf.compat.v1") for name in ("while_loop", "map_fn", "scan")]


class Loops(Rule):
    """DET406: loops of TensorFlow 1 whose iterations run concurrently."""

    codes = ("DET406",)

    @on_call(*_LOOPS)
    def loop(self, call: CallEvent) -> None:
        """A loop is built."""
        if not self.run.kb_matches("tensorflow", "<2.0") and not self.run.switches.tf_graph:
            return
        name = call.api.rpartition(".")[2]
        position = {"while_loop": 4, "map_fn": 3, "scan": 3}[name]
        parallel = call.args.get("parallel_iterations", position)
        if parallel is None or (isinstance(parallel, v.Lit) and parallel.value != 1):
            if name != "while_loop" and _only_computes(self.run, call.args.get("fn", 0)):
                # Each iteration is of one element, or waits for what the one before has given.
                self.silent(
                    "DET406", call.node, f"the function of `{name}` draws nothing and changes nothing"
                )
                return
            shown = parallel.value if isinstance(parallel, v.Lit) else "10 by default"
            self.report(
                "DET406",
                call.node,
                f"`{name}` with `parallel_iterations` ({shown}): iterations may run concurrently",
                "pass `parallel_iterations=1`",
                subject=call.api,
                remedy=("parallel_iterations", "1", str(position)),
            )


class _Computations(Observer):
    """The calls of ops that compute something of their arguments and nothing else, and the functions of the program
    that make them."""

    def __init__(self, run: RunView) -> None:
        super().__init__(run)
        self.seen: set[Site] = set()
        """Calls that make such ops, and those of functions that were followed."""
        self.functions: dict[tuple[str, int], v.Func] = {}
        self._outside = len(run.stack())

    @on(CallEvent)
    def called(self, call: CallEvent) -> None:
        """An op is made, or something else is called."""
        if computes(self.run.kb, call.api):
            self.seen.add(self.run.here(call.node))
        for frame in self.run.stack()[self._outside :]:
            if frame.call_site is not None:
                self.seen.add(frame.call_site)
            if frame.func is not None:
                self.functions[frame.func.key] = frame.func


def _only_computes(run: RunView, function: v.Value | None) -> bool:
    """Whether all that a function calls are ops that compute something of their arguments and nothing else."""
    if isinstance(function, v.Ext):
        return computes(run.kb, run.kb.canonical(function.name))
    if not isinstance(function, v.Func):
        return False
    found = _Computations(run)
    with run.fork(found) as fork:
        fork.call(function, v.Args([v.UNKNOWN], star=True), None)
    found.functions[function.key] = function
    return all(
        Site(one.file.path, node.start, node.end) in found.seen
        for one in found.functions.values()
        for node in nodes(one.fn.body)
        if isinstance(node, (m.Call, m.Lambda))
    )
