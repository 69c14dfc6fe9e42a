"""DET211: what a training loop does depends on how full a queue is that another thread or process fills or empties."""

from __future__ import annotations

from typing import Any

from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, EndEvent
from d9mlint.interp.library.queues import filled_by_several
from d9mlint.interp.listening import on, on_call_if
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.places import Where, running
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.text import node_text
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes, parents, receiver

_LEVELS = frozenset({"empty", "full", "qsize"})
_UNLESS = frozenset({"get_nowait", "put_nowait"})
_TAKES = frozenset({"get", "get_nowait"})


class FillLevels(Rule):
    """DET211: tests of how full a queue is."""

    codes = ("DET211",)
    sides = remembered(set[tuple[Site, str]])
    """The threads and processes that use queues; empty for the main one."""
    taken_in = remembered(set[tuple[Site, str]])
    """The loops in which items of queues are taken."""
    training = remembered_table(str, bool)
    """Loops in which a training step was seen."""
    tested = remembered_table(Site, tuple[Site, Where, str])
    """Where something depends on a level: of which queue, and what tells it."""
    shared = remembered(set[Site])
    """The queues that several workers fill."""

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "trains") is not None)
    def trains(self, call: CallEvent) -> None:
        """A step of a training."""
        for loop in self.run.loops:
            self.training[loop.key] = True

    @on_call_if(lambda rule, api: rule.run.kb.role(api.rpartition(".")[0], "queue") is not None)
    def used(self, call: CallEvent) -> None:
        """A method of a queue is called."""
        queue = made_at(call.owner) if isinstance(call.owner, v.Obj) else None
        if queue is None:
            return
        name = call.api.rpartition(".")[2]
        self.sides.add((queue, self.run.worker))
        if filled_by_several(call.owner):
            self.shared.add(queue)
        if name in _TAKES:
            self.taken_in.update((queue, loop.key) for loop in self.run.loops)
        decides = self._is_decided(call.node) if name in _LEVELS else self._may_raise(call, name)
        if decides:
            place = Where(self.run, call.node, call.api)
            self.tested[place.site] = (queue, place, node_text(call.node, call.api))

    def _is_decided(self, node: Any) -> bool:
        """Whether more than a wait, or what is shown, depends on a level."""
        stmt = self.run.statement
        if isinstance(stmt, m.For):
            return _has(stmt.iter, node)
        if isinstance(stmt, m.While) and _has(stmt.test, node):
            return any(receiver(one) == receiver(node) for one in nodes(stmt.body) if isinstance(one, m.Call))
        if isinstance(stmt, m.If) and _has(stmt.test, node):
            if self._polls(stmt, node):
                return False
            return not all(self._waits(branch) for branch in (stmt.body, stmt.orelse) if branch)
        return False

    def _polls(self, stmt: m.If, node: m.Call) -> bool:
        """Whether a loop does nothing but test the level again and again, until there is an item to take."""
        loop = self.run.loops[-1].stmt if self.run.loops else None
        if not isinstance(loop, m.While) or not all(one is stmt or self._tells(one) for one in loop.body):
            return False
        asked = stmt.test.operand if isinstance(stmt.test, m.Unary) else stmt.test
        return asked is node and (not stmt.orelse or self._waits(stmt.orelse))

    def _may_raise(self, call: CallEvent, name: str) -> bool:
        """Whether a method raises at once, or after some time, where the queue is empty or full, and the program goes on."""
        if name not in _UNLESS:
            first = 0 if name == "get" else 1
            block, timeout = call.args.get("block", first), call.args.get("timeout", first + 1)
            if (
                not (isinstance(block, v.Lit) and block.value is False)
                and v.is_none(timeout or v.NONE) is True
            ):
                return False
        function = running(self.run)
        above = parents(function) if function is not None else {}
        node: Any = call.node
        while (user := above.get(id(node))) is not None:
            if isinstance(user, m.Try) and any(one is node for one in user.body):
                return bool(user.handlers) and not all(self._waits(one.body) for one in user.handlers)
            node = user
        return False

    def _waits(self, body: list[m.Stmt]) -> bool:
        """Whether a branch only tries again, fails, or tells somebody."""
        if not body:
            # `pass`: the program goes on without an item.
            return False
        last = body[-1]
        if isinstance(last, m.Raise):
            return True
        again = isinstance(last, m.Jump) and last.kind == "continue"
        if again and not (self.run.loops and isinstance(self.run.loops[-1].stmt, m.While)):
            return False
        return all(map(self._tells, body[:-1] if again else body))

    def _tells(self, stmt: m.Stmt) -> bool:
        if not isinstance(stmt, m.ExprStmt) or not isinstance(stmt.value, m.Call):
            return False
        func = self.run.value_of(stmt.value.func)
        api = self.run.kb.canonical(func.name) if isinstance(func, v.Ext) else ""
        order = self.run.kb.order(api)
        return self.run.kb.role(api, "delays") is not None or (order is not None and order.role == "show")

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        trained = {queue for queue, loop in self.taken_in if loop in self.training}
        for site in self.tested.known():
            queue, place, text = self.tested[site]
            if queue in trained and len({side for one, side in self.sides if one == queue}) > 1:
                self.report(
                    "DET211",
                    place,
                    f"`{text}()` decides what is trained: how full a queue is differs between runs with the timing of the "
                    "threads or processes that use it",
                    "wait for a fixed number of items of each worker with `get()`, and order them by worker"
                    if queue in self.shared
                    else "wait for each item with `get()`, and put a last item that ends the loop",
                )


def _has(part: m.Expr, node: Any) -> bool:
    return any(one is node for one in nodes([part]))
