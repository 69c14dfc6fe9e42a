"""DET314: training that stops when a time has passed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from d9mlint.checks.base import Rule
from d9mlint.checks.derivation import derives
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, LoopEvent, ReturnEvent, TestEvent
from d9mlint.interp.listening import on, on_call_if
from d9mlint.interp.memory import remembered_table
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import RoleEntry


_STEPS = "limit the number of steps or epochs, and let a scheduler of jobs enforce times"


class Clock(Rule):
    """DET314: training that stops when a time has passed."""

    codes = ("DET314",)
    training = remembered_table(str, bool)
    """Running loops in which a training step was seen."""

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "trains") is not None)
    def call(self, call: CallEvent) -> None:
        """A step of a training."""
        if self.run.loops:
            for loop in self.run.loops:
                self.training[loop.key] = True

    @on(LoopEvent)
    def loop(self, event: LoopEvent) -> None:
        """A loop begins or ends."""
        loop, begins = event
        if begins:
            self.training.pop(loop.key)
            return
        if loop.key not in self.training or loop.frame.env is not self.run.frame.env:
            return
        stmt = loop.stmt
        if isinstance(stmt, m.While) and derives(self.run, stmt.test, "clock"):
            self._late(stmt)
        for branch in _leaving(stmt.body):
            if derives(self.run, branch.test, "clock"):
                self._late(branch)

    @on(TestEvent)
    def test(self, event: TestEvent) -> None:
        """``if clock: trainer.should_stop = True``, or a ``return`` that ends training."""
        stmt = event.stmt
        if not isinstance(stmt, m.If):
            return
        if not any(_stops(self.run, one) or _returns_stop(self.run, one) for one in stmt.body):
            return
        if derives(self.run, stmt.test, "clock"):
            self._late(stmt)

    @on(ReturnEvent)
    def returned(self, event: ReturnEvent) -> None:
        """``return clock < end`` in a method whose result says whether training goes on."""
        if _asked(self.run) is not None and derives(self.run, event.stmt.value, "clock"):
            self._late(event.stmt)

    def _late(self, stmt: Any) -> None:
        self.report(
            "DET314",
            stmt,
            "training stops when a time has passed: the number of steps differs between runs",
            _STEPS,
            subject="clock",
        )


def _stops(interp: RunView, stmt: m.Stmt) -> bool:
    """Whether a statement sets an attribute that ends training."""
    if not isinstance(stmt, m.Assign) or not isinstance(stmt.value, m.Const) or stmt.value.value is not True:
        return False
    for target in stmt.targets:
        name = target.id if isinstance(target, m.Name) else target.name if isinstance(target, m.Attr) else ""
        if "." in name or isinstance(target, m.Attr):
            if interp.kb.role(name.rpartition(".")[2], "sets-stop") is not None:
                return True
    return False


def _returns_stop(interp: RunView, stmt: m.Stmt) -> bool:
    """Whether a statement returns what ends training."""
    if not isinstance(stmt, m.Return) or not isinstance(stmt.value, m.Const):
        return False
    asked = _asked(interp)
    return asked is not None and stmt.value.value is (asked.arg == "true")


def _asked(interp: RunView) -> RoleEntry | None:
    """The method of a library that runs here, as a class of the program defines it, whose result may end training."""
    func = interp.frame.func
    if func is None or not isinstance(func.receiver, v.Inst):
        return None
    kb = interp.kb
    bases = (kb.canonical(one) for one in func.receiver.cls.external_bases())
    return next(
        (role for one in bases if (role := kb.role(f"{one}.{func.fn.name}", "stops-by-return"))), None
    )


def _leaving(body: list[m.Stmt]) -> Iterator[m.If]:
    """The ``if`` statements of a loop's body that leave it."""
    for stmt in body:
        if isinstance(stmt, m.If):
            if any(_leaves(one) for one in stmt.body):
                yield stmt
            yield from _leaving(stmt.body)
            yield from _leaving(stmt.orelse)
        elif isinstance(stmt, (m.With, m.Try)):
            yield from _leaving(stmt.body)


def _leaves(stmt: m.Stmt) -> bool:
    return isinstance(stmt, m.Return) or (isinstance(stmt, m.Jump) and stmt.kind == "break")
