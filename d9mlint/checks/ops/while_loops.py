"""DET406: loops of TensorFlow 1 whose iterations run concurrently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.checks.base import Rule
from d9mlint.checks.drawing import Observer, draws
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.events import CallEvent
from d9mlint.interp.kinds import computes
from d9mlint.interp.listening import on, on_call_if
from d9mlint.interp.state import Site
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import RoleEntry

_CODE = "DET406"


def _is_loop(rule: Rule, api: str) -> bool:
    return any(entry.rule == _CODE for entry in rule.run.kb.ops(api))


class Loops(Rule):
    """DET406: loops of TensorFlow 1 whose iterations run concurrently."""

    codes = (_CODE,)

    @on_call_if(_is_loop)
    def loop(self, call: CallEvent) -> None:
        """A loop is built."""
        if not self.run.kb_matches("tensorflow", "<2.0") and not self.run.switches.tf_graph:
            return
        name = call.api.rpartition(".")[2]
        limit = next(one for entry in self.run.kb.ops(call.api) if entry.rule == _CODE for one in entry.when)
        parallel = call.args.get(limit.arg, limit.pos)
        if parallel is None or (isinstance(parallel, v.Lit) and parallel.value != 1):
            role = self.run.kb.role(call.api, "calls-in-steps")
            if role is not None and not _draws_in_steps(self.run, call.args, role):
                # Each step waits for the state that the one before has given.
                self.silent(_CODE, call.node, f"nothing that `{name}` calls is seen to draw")
                return
            if role is None and name != "while_loop" and _only_computes(self.run, call.args.get("fn", 0)):
                # Each iteration is of one element, or waits for what the one before has given.
                self.silent(_CODE, call.node, f"the function of `{name}` draws nothing and changes nothing")
                return
            given = parallel.value if parallel is not None else None
            shown = given if given is not None else f"{limit.default} by default"
            self.report(
                _CODE,
                call.node,
                f"`{name}` with `{limit.arg}` ({shown}): iterations may run concurrently",
                f"pass `{limit.arg}=1`",
                subject=call.api,
                remedy=(limit.arg, "1", str(limit.pos)),
            )


def _draws_in_steps(run: RunView, args: v.Args, role: RoleEntry) -> bool:
    """Whether one of the cells, helpers and functions in the arguments of a loop, or of a cell, draws in each step."""
    called = (args.get(arg, (role.pos or 0) + at) for at, arg in enumerate((role.arg, *role.more)))
    return any(one is not None and _draws(run, one) for one in called)


def _draws(run: RunView, cell: v.Value) -> bool:
    if isinstance(cell, v.AnyOf):
        return any(_draws(run, one) for one in cell.values)
    if isinstance(cell, v.Items):
        return any(_draws(run, one) for one in cell.elts)
    if isinstance(cell, v.Obj):
        role = run.kb.role(cell.api, "draws-in-steps")
        if role is not None and all_hold(cell.args, role.when) is not False:
            return True
        role = run.kb.role(cell.api, "calls-in-steps")
        return role is not None and _draws_in_steps(run, cell.args, role)
    drawn = draws(run, cell) or ()
    return any(run.kb.generators[name].library == "tensorflow" for name in drawn if name in run.kb.generators)


class _Computations(Observer):
    """The calls of ops that compute something of their arguments and nothing else, and of what works once, when the
    graph is built; and the functions of the program that make them."""

    def __init__(self, run: RunView) -> None:
        super().__init__(run)
        self.seen: set[Site] = set()
        """Such calls, and those of functions that were followed."""
        self.functions: dict[tuple[str, int], v.Func] = {}
        self._outside = len(run.stack())

    @on(CallEvent)
    def called(self, call: CallEvent) -> None:
        """An op is made, or something else is called."""
        works_once = self.run.kb.role(call.api, "works-when-built") is not None
        if works_once or computes(self.run.kb, call.api):
            self.seen.add(self.run.here(call.node))
        for frame in self.run.stack()[self._outside :]:
            if frame.call_site is not None:
                self.seen.add(frame.call_site)
            if frame.func is not None:
                self.functions[frame.func.key] = frame.func


def _only_computes(run: RunView, function: v.Value | None) -> bool:
    """Whether all that a function calls are ops that compute something of their arguments and nothing else, and what works
    once, when the graph is built."""
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
