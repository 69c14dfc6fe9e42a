"""DET314: training that stops, or checkpoints that are saved, when a time has passed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from d9mlint.checks.base import Rule
from d9mlint.checks.derivation import derives
from d9mlint.interp import values as v
from d9mlint.interp.events import (
    AnyDrawEvent,
    CallEvent,
    EndEvent,
    LoopEvent,
    RepeatedEvent,
    ReturnEvent,
    TestEvent,
)
from d9mlint.interp.listening import on, on_call_if
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.places import Where, running
from d9mlint.interp.state import Site
from d9mlint.interp.text import written
from d9mlint.ir import nodes as m
from d9mlint.ir.derived import derived_names, elements, holds
from d9mlint.ir.forms import only_form
from d9mlint.ir.growing import GROWING
from d9mlint.ir.scopes import heads
from d9mlint.ir.traversal import called_name, nodes, parents, statements

if TYPE_CHECKING:
    from d9mlint.interp.events import Loop
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import RoleEntry


_STEPS = "limit the number of steps or epochs, and let a scheduler of jobs enforce times"
_TRAINS = "training stops when a time has passed: the number of steps differs between runs"
_ROUNDS = "limit the number of rounds"
_DRAWS = "this loop draws random numbers until a time has passed: how many, and what it keeps of them, differs between runs"
_ENTROPY = "entropy"
"""What the clock is read from, too."""
_MOST_DRAWS = 32
"""So many places are remembered at which something is drawn in a loop."""
_DRAWN = "drawn by the clock"


class Clock(Rule):
    """DET314: training that stops, or checkpoints that are saved, when a time has passed."""

    codes = ("DET314",)
    training = remembered_table(str, bool)
    """Running loops in which a training step was seen."""
    drawing = remembered_table(str, tuple[Site, ...])
    """Where random numbers are drawn while a loop runs, and the calls that lead there."""
    by_the_clock = remembered_table(Site, tuple[Where, frozenset[str]])
    """Where checkpoints are saved when a time has passed, and the names of the files."""
    otherwise = remembered(set[str])
    """The names of files that are written at other times too."""

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "trains") is not None)
    def call(self, call: CallEvent) -> None:
        """A step of a training."""
        if self.run.loops:
            for loop in self.run.loops:
                self.training[loop.key] = True

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "saves-checkpoint") is not None)
    def saved(self, call: CallEvent) -> None:
        """A checkpoint is written."""
        node = call.node
        if not isinstance(node, m.Call):
            return
        names = {
            one.value for one in call.args.values() if isinstance(one, v.Lit) and isinstance(one.value, str)
        }
        names |= {written(one) for one in node.args[1:] if isinstance(one, (m.Name, m.Attr))}
        if any(self.training.get(loop.key) for loop in self.run.loops) and self._waits_for_time(node):
            place = Where(self.run, node, "clock")
            self.by_the_clock[place.site] = place, frozenset(names)
        else:
            self.otherwise.update(names)

    def _waits_for_time(self, node: m.Call) -> bool:
        """Whether a test of the clock leads to a call in the running function, which goes on then."""
        function = running(self.run)
        above = parents(function) if function is not None else {}
        child: Any = node
        while (user := above.get(id(child))) is not None:
            if isinstance(user, m.If) and any(one is child for one in user.body):
                if not any(map(_leaves, user.body)) and derives(self.run, user.test, "clock"):
                    return True
            child = user
        return False

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What else is written is known."""
        for site in self.by_the_clock.known():
            place, names = self.by_the_clock[site]
            if self.otherwise.isdisjoint(names):
                self.report(
                    "DET314",
                    place,
                    "the clock decides after which steps this checkpoint is saved: the files that are left, and the "
                    "weights in them, differ between runs",
                    "save after a fixed number of steps or epochs",
                    subject="clock",
                )

    @on(LoopEvent)
    def loop(self, event: LoopEvent) -> None:
        """A loop begins or ends."""
        loop, begins = event
        if begins:
            if self.training.get(loop.key):
                self.training[loop.key] = False
            if self.drawing.get(loop.key):
                self.drawing[loop.key] = ()
            return
        trains = self.training.get(loop.key)
        if not (trains or self.drawing.get(loop.key)) or loop.frame.env is not self.run.frame.env:
            return
        stmt = loop.stmt
        ends: list[m.If | m.While] = [
            one for one in _leaving(stmt.body) if derives(self.run, one.test, "clock")
        ]
        if isinstance(stmt, m.While) and derives(self.run, stmt.test, "clock"):
            ends.insert(0, stmt)
        if ends and (trains or self._keeps_drawn(loop)):
            for one in ends:
                self._late(one, *((_TRAINS, _STEPS) if trains else (_DRAWS, _ROUNDS)))

    @on(AnyDrawEvent)
    def drawn(self, event: AnyDrawEvent) -> None:
        """Random numbers are drawn, perhaps by a function that a loop calls."""
        if event.rng != _ENTROPY:
            self._draws(event.node)

    @on_call_if(lambda rule, api: api.rpartition(".")[0] in rule.run.kb.generator_classes)
    def called(self, call: CallEvent) -> None:
        """A method of a generator object draws."""
        self._draws(call.node)

    @on(RepeatedEvent)
    def drawn_again(self, event: RepeatedEvent) -> None:
        """A call that draws is taken over from an earlier one."""
        if _DRAWN in event.names:
            self._draws(self.run.statement)

    def _draws(self, node: Any) -> None:
        keys = self.run.loops.marked(_DRAWN)
        if not keys:
            return
        found = [one.call_site for one in self.run.stack() if one.call_site is not None]
        found.append(self.run.here(node))
        for key in keys:
            known = self.drawing.get(key) or ()
            more = [one for one in found if one not in known]
            if more and len(known) < _MOST_DRAWS:
                self.drawing[key] = (*known, *more)

    def _places(self, loop: Loop) -> tuple[int, ...]:
        """Where in a loop something is called that draws."""
        sites = [one for one in self.drawing.get(loop.key) or () if one.path == loop.path]
        return tuple(
            node.start
            for node in nodes([loop.stmt])
            if isinstance(node, m.Call) and any(one.start <= node.start < one.end for one in sites)
        )

    def _keeps_drawn(self, loop: Loop) -> bool:
        """Whether a loop keeps something that is computed from what it draws, and its function reads that afterwards."""
        function, places = running(self.run), self._places(loop)
        if function is None or not places:
            return False
        drawn = derived_names(function, places, lambda name: "")
        end = max(getattr(one, "end", 0) for one in nodes([loop.stmt]))
        kept = {name for stmt in statements(loop.stmt.body) for name in _kept(stmt, drawn, places)} & drawn
        kept |= {name for stmt in statements(loop.stmt.body) for name in _kept_at(stmt, drawn, places)}
        above = parents(function)
        uses: dict[str, m.Name] = {}
        for one in nodes(function.body):
            if isinstance(one, m.Name) and one.start >= end:
                name = one.id.partition(".")[0]
                if name in kept and (name not in uses or one.start < uses[name].start):
                    uses[name] = one
        return any(not only_form(one) and not _is_stored(one, above) for one in uses.values())

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

    def _late(self, stmt: Any, message: str = _TRAINS, help: str = _STEPS) -> None:
        self.report("DET314", stmt, message, help, subject="clock")


def _kept(stmt: m.Stmt, drawn: set[str], places: tuple[int, ...]) -> Iterator[str]:
    """The variables in which a statement keeps something that is drawn."""
    if isinstance(stmt, (m.Assign, m.AnnAssign, m.AugAssign)):
        targets: list[Any] = stmt.targets if isinstance(stmt, m.Assign) else [stmt.target]
    elif isinstance(stmt, m.ExprStmt) and called_name(stmt.value) in GROWING:
        targets = [stmt.value.func] if isinstance(stmt.value, m.Call) else []
    else:
        return
    value = stmt.value
    if value is not None and (holds(value, places) or not drawn.isdisjoint(elements(value, lambda name: ""))):
        yield from (one.id.partition(".")[0] for one in nodes(targets) if isinstance(one, m.Name))


def _kept_at(stmt: m.Stmt, drawn: set[str], places: tuple[int, ...]) -> Iterator[str]:
    """The variables to whose elements a statement writes where something drawn says: ``visits[action] += 1``."""
    if not isinstance(stmt, (m.Assign, m.AugAssign)):
        return
    for target in stmt.targets if isinstance(stmt, m.Assign) else [stmt.target]:
        while isinstance(target, m.Subscript):
            if holds(target.index, places) or not drawn.isdisjoint(elements(target.index, lambda name: "")):
                yield from heads([target.value])
            target = target.value


def _is_stored(node: m.Name, above: dict[int, Any]) -> bool:
    """Whether something is assigned to a variable where it stands."""
    user = above.get(id(node))
    while isinstance(user, m.Seq):
        node, user = user, above.get(id(user))  # type: ignore[assignment]
    if isinstance(user, m.Assign):
        return any(one is node for one in user.targets)
    return isinstance(user, m.For) and user.target is node


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
