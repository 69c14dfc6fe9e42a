"""DET314 and DET315: loops that train until a time has passed, batch sizes that are made to fit into the memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from d9mlint.checks.base import Reporter, argument_node
from d9mlint.checks.derivation import derives
from d9mlint.interp import values as v
from d9mlint.interp.library.loaders import LOADER
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.hooks import CallEvent, Hooks, Loop
    from d9mlint.interp.interpreter import Interp

_STEPS = "limit the number of steps or epochs, and let a scheduler of jobs enforce times"
_FIXED = "use a fixed batch size that fits"
_BATCH = ("batch_size", "bs", "batchsize", "micro_batch", "microbatch", "batch")


def register(hooks: Hooks, reporter: Reporter) -> None:
    """Listen to loops, tests and decorators."""
    if reporter.on("DET314"):
        clock = _Clock(reporter)
        hooks.any_call.append(clock.call)
        hooks.loops.append(clock.loop)
        hooks.tests.append(clock.test)
    if reporter.on("DET315"):
        hooks.loops.append(lambda interp, loop, begins: None if begins else _retries(interp, reporter, loop))

        @hooks.on_call(LOADER)
        def loader(interp: Interp, call: CallEvent) -> None:
            source = derives(interp, argument_node(call.node, "batch_size", 1), "free-memory")
            if source:
                reporter.report(
                    interp,
                    "DET315",
                    call.node,
                    f"the batch size is computed from `{source}`: it depends on the memory that is free in this run",
                    _FIXED,
                    subject=call.api,
                )

        @hooks.on_call("@decorator")
        def decorator(interp: Interp, call: CallEvent) -> None:
            used = call.args.pos[0]
            if not isinstance(used, v.Ext):
                return
            for entry in interp.kb.hazards_of(interp.kb.canonical(used.name)):
                if entry.rule == "DET315":
                    name = used.name.rpartition(".")[2]
                    reporter.report(
                        interp,
                        "DET315",
                        call.node,
                        entry.message.format(call=name),
                        entry.help,
                        subject=used.name,
                    )


class _Clock:
    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        # Keys of running loops in which a training step was seen.
        self.training: set[str] = set()

    def call(self, interp: Interp, call: CallEvent) -> None:
        if interp.loops and interp.kb.role(call.api, "trains") is not None:
            self.training.update(loop.key for loop in interp.loops)

    def loop(self, interp: Interp, loop: Loop, begins: bool) -> None:
        if begins:
            self.training.discard(loop.key)
            return
        if loop.key not in self.training or loop.frame.env is not interp.frame.env:
            return
        stmt = loop.stmt
        if isinstance(stmt, m.While) and derives(interp, stmt.test, "clock"):
            self._report(interp, stmt)
        for branch in _leaving(stmt.body):
            if derives(interp, branch.test, "clock"):
                self._report(interp, branch)

    def test(self, interp: Interp, stmt: m.If | m.While) -> None:
        """``if clock: trainer.should_stop = True``."""
        if not isinstance(stmt, m.If) or not any(_stops(interp, one) for one in stmt.body):
            return
        if derives(interp, stmt.test, "clock"):
            self._report(interp, stmt)

    def _report(self, interp: Interp, stmt: Any) -> None:
        self.reporter.report(
            interp,
            "DET314",
            stmt,
            "training stops when a time has passed: the number of steps differs between runs",
            _STEPS,
            subject="clock",
        )


def _stops(interp: Interp, stmt: m.Stmt) -> bool:
    """Whether a statement sets an attribute that ends training."""
    if not isinstance(stmt, m.Assign) or not isinstance(stmt.value, m.Const) or stmt.value.value is not True:
        return False
    for target in stmt.targets:
        name = target.id if isinstance(target, m.Name) else target.name if isinstance(target, m.Attr) else ""
        if "." in name or isinstance(target, m.Attr):
            if interp.kb.role(name.rpartition(".")[2], "sets-stop") is not None:
                return True
    return False


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


def _retries(interp: Interp, reporter: Reporter, loop: Loop) -> None:
    """A loop that makes the batch smaller when the memory is used up."""
    if loop.frame.env is not interp.frame.env:
        return
    for stmt in nodes(list(loop.stmt.body)):
        if not isinstance(stmt, m.Try):
            continue
        for handler in stmt.handlers:
            shrinking = next((one for one in nodes(list(handler.body)) if _shrinks(one)), None)
            if shrinking is not None and _out_of_memory(interp, handler):
                reporter.report(
                    interp,
                    "DET315",
                    shrinking,
                    "the batch is made smaller when memory runs out: its size depends on the free memory",
                    _FIXED,
                    subject="out of memory",
                )


def _shrinks(node: Any) -> bool:
    if isinstance(node, m.AugAssign):
        return node.op in ("//", "/", "-", ">>", "*") and _is_batch(node.target)
    return isinstance(node, m.Assign) and any(_is_batch(one) for one in node.targets)


def _is_batch(target: Any) -> bool:
    name = target.id if isinstance(target, m.Name) else target.name if isinstance(target, m.Attr) else ""
    return name.rpartition(".")[2].lower().endswith(_BATCH)


def _out_of_memory(interp: Interp, handler: m.Handler) -> bool:
    types: list[Any] = handler.type.elts if isinstance(handler.type, m.Seq) else [handler.type]
    for one in types:
        value = interp.eval(one) if one is not None else None
        if isinstance(value, v.Ext) and interp.kb.role(value.name, "out-of-memory") is not None:
            return True
    return any(
        isinstance(node, m.Const) and isinstance(node.value, str) and "out of memory" in node.value.lower()
        for node in nodes(list(handler.body))
    )
