"""DET315: batches that are made to fit into the free memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from d9mlint.checks.base import Rule, argument_node, called_api
from d9mlint.checks.derivation import decided, derives
from d9mlint.interp import values as v
from d9mlint.interp.data import differing, origin
from d9mlint.interp.events import CallEvent, DecoratorEvent, HandlerEvent, Loop, LoopEvent
from d9mlint.interp.listening import on, on_call_if
from d9mlint.ir import nodes as m
from d9mlint.ir.endings import blocks_within, fails
from d9mlint.ir.scopes import target_names
from d9mlint.ir.traversal import alike, called_name, nodes, tries

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView


_FIXED = "use a fixed batch size that fits"
_SMALLER = ("//", "/", "-", ">>")
_CHANGED = (*_SMALLER, "*")
"""A size is made smaller, or a number of parts larger."""


class FreeMemory(Rule):
    """DET315: batches that are made to fit into the free memory."""

    codes = ("DET315",)

    @on(LoopEvent)
    def loop(self, event: LoopEvent) -> None:
        """A loop begins or ends."""
        if not event.begins:
            _retries(self, event.loop)
            _grows(self, event.loop)

    @on(HandlerEvent)
    def handled(self, event: HandlerEvent) -> None:
        """What is done when something is raised."""
        _tries_again(self, event)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "batch-size") is not None)
    def sized(self, call: CallEvent) -> None:
        """A call takes the number of examples of each step."""
        entry = self.run.kb.role(call.api, "batch-size")
        if entry is None:
            return
        number = argument_node(call.node, entry.arg, entry.pos)
        source = (
            self._memory(call.args.get(entry.arg, entry.pos))
            or derives(self.run, number, "free-memory")
            or decided(self.run, number, "free-memory")
        )
        if source:
            self.report(
                "DET315",
                call.node,
                f"the batch size is computed from `{source}`: it depends on the memory that is free in this run",
                _FIXED,
                subject=call.api,
            )

    def _memory(self, size: v.Value | None) -> str:
        """What asked for the free memory from which a number was computed; empty for any other number."""
        found = differing(size) if size is not None else None
        if found is None:
            return ""
        source = origin(found).api
        asks = any(
            self.run.kb.role(name, "free-memory") is not None for name in (source, f"entropy:{source}")
        )
        return source if asks else ""

    @on(DecoratorEvent)
    def decorator(self, event: DecoratorEvent) -> None:
        """A decorator is applied."""
        used = event.decorator
        if not isinstance(used, v.Ext):
            return
        for entry in self.run.kb.hazards_of(self.run.kb.canonical(used.name)):
            if entry.rule == "DET315":
                name = used.name.rpartition(".")[2]
                self.report(
                    "DET315",
                    event.node,
                    entry.message.format(call=name),
                    entry.help,
                    subject=used.name,
                )


def _retries(rule: Rule, loop: Loop) -> None:
    """A loop that makes a number smaller when the memory is used up, and tries again what is computed with it."""
    if loop.frame.env is not rule.run.frame.env:
        return
    for stmt in tries(loop.stmt):
        for handler in stmt.handlers:
            if fails(handler.body):
                continue
            changed = next((one for one in nodes(list(handler.body)) if _changes(one, stmt, loop.stmt)), None)
            if changed is not None and _out_of_memory(rule.run, handler):
                rule.report(
                    "DET315",
                    changed,
                    "the batch is made smaller when memory runs out: its size depends on the free memory",
                    _FIXED,
                    subject="out of memory",
                )


def _grows(rule: Rule, loop: Loop) -> None:
    """A loop that makes a number larger until the memory is used up, and keeps the last one with which the computation
    succeeded."""
    if loop.frame.env is not rule.run.frame.env:
        return
    grown = {name for one in nodes(loop.stmt.body) if (name := _grown(one))} | _steps(loop.stmt)
    for stmt in tries(loop.stmt) if grown else ():
        tried = {name for name in grown if _is_used(name, stmt, loop.stmt)}
        for handler in stmt.handlers if tried else ():
            # Who leaves the loop has found the size.
            left = next((one for one in nodes(list(handler.body)) if _leaves(one)), None)
            if left is None or fails(handler.body):
                continue
            if _is_kept(rule.run, tried, loop.stmt) and _out_of_memory(rule.run, handler):
                rule.report(
                    "DET315",
                    left,
                    "the batch is made larger until memory runs out: its size depends on the free memory",
                    _FIXED,
                    subject="out of memory",
                )


def _leaves(node: Any) -> bool:
    return isinstance(node, m.Return) or (isinstance(node, m.Jump) and node.kind == "break")


def _grown(node: Any) -> str:
    """The variable that a statement makes larger in a stride; one by one, it counts."""
    if isinstance(node, m.AugAssign):
        return _name(node.target) if _is_stride(node.op, node.value) else ""
    if not isinstance(node, m.Assign) or len(node.targets) != 1 or not isinstance(node.value, m.BinOp):
        return ""
    name = _name(node.targets[0])
    of = {_name(node.value.left)} | ({_name(node.value.right)} if node.value.op in ("*", "+") else set())
    given = node.value.right if _name(node.value.left) == name else node.value.left
    return name if name in of and _is_stride(node.value.op, given) else ""


def _is_stride(op: str, by: m.Expr) -> bool:
    return op in ("*", "<<") or (op == "+" and isinstance(by, m.Const) and by.value != 1)


def _steps(loop: m.For | m.While) -> set[str]:
    """The variable that stands for one written number after another in a loop."""
    if not isinstance(loop, m.For) or not isinstance(loop.iter, m.Seq) or not loop.iter.elts:
        return set()
    numbers = all(
        isinstance(one, m.Const) and isinstance(one.value, int) and not isinstance(one.value, bool)
        for one in loop.iter.elts
    )
    return {_name(loop.target)} - {""} if numbers else set()


def _is_kept(run: RunView, names: set[str], loop: m.For | m.While) -> bool:
    """Whether one of some variables, or what a loop computes from one, is given back, or read behind the loop by more
    than what shows it."""
    made = set(names)
    for one in nodes(loop.body):
        if isinstance(one, m.Assign) and any(_is_read(name, [one.value]) for name in names):
            for target in one.targets:
                target_names(target, made)
    given: list[Any] = [one.value for one in nodes(loop.body) if isinstance(one, m.Return) and one.value]
    func = run.frame.func
    body = run.body(func) if func is not None else run.whole(run.frame.file).functions[0].body
    pending = list(body)
    while pending:
        stmt = pending.pop()
        if stmt is loop or stmt.start < loop.start:
            inner = [] if stmt is loop else [one for block in blocks_within(stmt) for one in block]
            pending += inner if any(one is loop for one in nodes(inner)) else []
        elif isinstance(stmt, m.ExprStmt) and isinstance(stmt.value, m.Call):
            if not _shows(run, stmt.value):
                given.append(stmt.value)
        elif isinstance(stmt, (m.Assign, m.Return)):
            given += [stmt.value] if stmt.value is not None else []
        else:
            given.append(stmt)
    return any(_is_read(name, given) for name in made)


def _shows(run: RunView, call: m.Call) -> bool:
    """Whether a call prints what it is given, or writes it into a log."""
    api = called_api(run, call)
    entry = run.kb.order(api) if api else run.kb.order(f"?.{called_name(call)}", True)
    return entry is not None and (entry.role == "show" or entry.shows)


def _tries_again(rule: Rule, event: HandlerEvent) -> None:
    """A handler that calls what has failed, or something else, with a smaller batch, and goes on."""
    if fails(event.handler.body):
        return
    again = next(
        (
            one
            for one in nodes(list(event.handler.body))
            if isinstance(one, m.Call) and _gives_less(one, event.stmt) and _is_tried(rule, one, event.stmt)
        ),
        None,
    )
    if again is not None and _out_of_memory(rule.run, event.handler):
        rule.report(
            "DET315",
            again,
            "the call is repeated with a smaller batch when memory runs out: its size depends on the free memory",
            _FIXED,
            subject="out of memory",
        )


def _gives_less(call: m.Call, stmt: m.Try) -> bool:
    """Whether a call is given a part of a number that what has failed is computed with: one that was not tried."""
    given = [*call.args, *(one.value for one in call.keywords)]
    parts = (one for one in nodes(given) if isinstance(one, m.BinOp) and one.op in _SMALLER)
    return any(
        _is_read(_name(part.left), stmt.body) and not any(alike(part, tried) for tried in nodes(stmt.body))
        for part in parts
    )


def _is_tried(rule: Rule, call: m.Call, stmt: m.Try) -> bool:
    """Whether what is called computes something: it has failed before, or is a function of the program."""
    called = rule.run.value_of(call.func)
    return not isinstance(called, v.Ext | v.Member) or any(
        isinstance(one, m.Call) and alike(one.func, call.func) for one in nodes(stmt.body)
    )


def _changes(node: Any, stmt: m.Try, loop: m.For | m.While) -> bool:
    """Whether a statement computes from a number another one in its place, and the loop tries again with it."""
    if isinstance(node, m.AugAssign):
        return node.op in _CHANGED and _is_used(_name(node.target), stmt, loop)
    if not isinstance(node, m.Assign):
        return False
    less = {_name(one.left) for one in nodes([node.value]) if isinstance(one, m.BinOp) and one.op in _CHANGED}
    return any(_name(one) in less and _is_used(_name(one), stmt, loop) for one in node.targets)


def _is_used(name: str, stmt: m.Try, loop: m.For | m.While) -> bool:
    """Whether a ``try`` computes with a variable or attribute, or with what the loop around it makes of one."""
    if not name:
        return False
    if _is_read(name, stmt.body):
        return True
    owner = name.rpartition(".")[0]
    if owner and any(
        isinstance(one, m.Call) and _name(one.func).startswith(owner + ".") for one in nodes(stmt.body)
    ):
        # A method of the object may read it.
        return True
    made: set[str] = set()
    for one in nodes(loop.body):
        if isinstance(one, m.Assign) and _is_read(name, [one.value]):
            for target in one.targets:
                target_names(target, made)
    made.discard(name)
    return any(_is_read(one, stmt.body) for one in made)


def _is_read(name: str, body: Iterable[Any]) -> bool:
    return bool(name) and any(
        isinstance(one, m.Name) and (one.id == name or one.id.startswith(name + ".")) for one in nodes(body)
    )


def _name(target: Any) -> str:
    """A variable or a chain of attributes of one, as it is written; empty for anything else."""
    return target.id if isinstance(target, m.Name) else ""


def _out_of_memory(interp: RunView, handler: m.Handler) -> bool:
    types: list[Any] = handler.type.elts if isinstance(handler.type, m.Seq) else [handler.type]
    for one in types:
        value = interp.value_of(one) if one is not None else None
        if isinstance(value, v.Ext) and interp.kb.role(value.name, "out-of-memory") is not None:
            return True
    return any(
        isinstance(node, m.Const) and isinstance(node.value, str) and "out of memory" in node.value.lower()
        for node in nodes(list(handler.body))
    )
