"""DET206: stages of tf.data whose order or draws depend on scheduling."""

from __future__ import annotations

from typing import Any, Final

from d9mlint.checks.base import Rule
from d9mlint.checks.drawing import KEPT, item_draws
from d9mlint.checks.settings.tf_release import may_have_switch
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, EndEvent, IterationEvent, ObjectAttributeEvent
from d9mlint.interp.idle import is_dropped
from d9mlint.interp.listening import on, on_call, on_call_if, on_object_attribute
from d9mlint.interp.memory import remembered
from d9mlint.interp.places import Where

_BY_GRAPH = frozenset({"tensorflow", "tensorflow_generator", "keras"})
"""What the ops of a graph draw from. What else a function draws, it draws once, when the graph is made of it."""
_BY_PYTHON = frozenset({"numpy", "python", "other", "own", KEPT})
"""What functions of Python draw from that a graph calls for each element."""
_TAKING = frozenset({"calls-in-inference", "trains"})
"""Roles of what takes the elements of a dataset that it is given."""

_STAGE: Final = "parallel-stage"


def _given(args: v.Args, name: str, pos: int) -> v.Value | None:
    """An argument that is written, by its name or in its place."""
    return args.kw.get(name) or (args.pos[pos] if pos < len(args.pos) else None)


class ParallelMap(Rule):
    """DET206: stages of tf.data whose order or draws depend on scheduling."""

    codes = ("DET206",)
    stages = remembered(list[tuple[Where, str, str, str]])
    """Stages that no element has passed yet, with message, help and op: op determinism may still be enabled for them."""

    @on_call_if(lambda rule, api: rule.run.kb.role(api, _STAGE) is not None)
    def stage(self, call: CallEvent) -> None:
        """A stage is added."""
        role = self.run.kb.role(call.api, _STAGE)
        if self.run.switches.tf_on or role is None or role.pos is None:
            return
        if is_dropped(self.run, call.node, call.api):
            self.silent("DET206", call.node, "nothing takes an element of the dataset")
            return
        name = call.api.rpartition(".")[2]
        if role.arg and v.truth(_given(call.args, role.arg, role.pos) or v.FALSE) is True:
            self._vary(
                call.node,
                f"`{name}({role.arg}=True)` yields elements in completion order",
                "tf.data_map_parallel",
                f"leave `{role.arg}` out",
            )
            return
        order = None if role.arg else _given(call.args, "deterministic", role.pos + 1)
        if isinstance(order, v.Lit) and order.value is False:
            self._vary(
                call.node,
                f"`{name}(deterministic=False)` yields elements in completion order",
                "tf.data_map_parallel",
                "pass `deterministic=True`, or leave the argument out",
            )
            return
        place = len(call.args.pos) if role.arg else role.pos
        calls = _given(call.args, "num_parallel_calls", place)
        serial = (1,) if role.more else (1, None)
        if (calls is None and not role.more) or (isinstance(calls, v.Lit) and calls.value in serial):
            return
        func = call.args.get("map_func", 0)
        draws = item_draws(self.run, [func])
        by_ops = bool(draws.drawn & _BY_GRAPH) or draws.op_seeds
        if by_ops or draws.by_python & _BY_PYTHON:
            self._vary(
                call.node,
                f"parallel `{name}` over a function that draws random numbers: draw order depends on thread scheduling",
                "tf.data_stateful_map",
                self._remedy(by_ops, bool(role.more)),
            )

    def _remedy(self, by_ops: bool, always: bool) -> str:
        """What makes each element draw the same; functions of Python have no stateless ops. A stage that is ``always``
        parallel is so where no number of calls is given."""
        first = "use stateless random ops with a seed per element" if by_ops else ""
        one = "pass `num_parallel_calls=1`" if always else "leave out `num_parallel_calls`"
        serial = "enable op determinism" if may_have_switch(self.run) else one
        return f"{first}, or {serial}" if first else serial

    def _vary(self, node: Any, message: str, op: str, help: str) -> None:
        self.stages.append((Where(self.run, node), message, help, op))

    @on_call("tf.config.experimental.enable_op_determinism")
    def enabled(self, call: CallEvent) -> None:
        """It holds for the iterators that are made from now on, also of stages that were added before."""
        for place, *_ in self._taken():
            self.silent("DET206", place, "op determinism is enabled before an element is taken")

    @on(IterationEvent)
    def iterated(self, event: IterationEvent) -> None:
        """Elements are taken."""
        if isinstance(event.value, v.Obj) and event.value.api.startswith("tf."):
            self._report()

    @on_call_if(lambda rule, api: not rule.run.kb.by_role(api).keys().isdisjoint(_TAKING))
    def trains(self, call: CallEvent) -> None:
        """A model is trained or evaluated with what it is given."""
        self._report()

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What is left is handed on."""
        self._report()

    def _report(self) -> None:
        for place, message, help, op in self._taken():
            self.report("DET206", place, message, help, subject="tf.data", op=op)

    def _taken(self) -> list[tuple[Where, str, str, str]]:
        stages = list(self.stages)
        self.stages.clear()
        return stages

    @on_object_attribute("deterministic", "experimental_deterministic")
    def options(self, event: ObjectAttributeEvent) -> None:
        """An option of a pipeline is set."""
        owner, name, value, _ = event
        if not isinstance(owner, v.Obj) or self.run.switches.tf_on:
            return
        if owner.api in ("tf.data.Options", "tf.data.experimental.Options"):
            if isinstance(value, v.Lit) and value.value is False:
                self._vary(
                    self.run.statement,
                    f"`options.{name} = False` yields elements in completion order",
                    "tf.data_map_parallel",
                    f"set `{name}` to True, or leave it unset",
                )
