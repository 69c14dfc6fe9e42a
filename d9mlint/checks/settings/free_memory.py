"""DET315: batches that are made to fit into the free memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.checks.base import Rule, argument_node
from d9mlint.checks.derivation import derives
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, DecoratorEvent, HandlerEvent, Loop, LoopEvent
from d9mlint.interp.library.loaders import LOADER
from d9mlint.interp.listening import on, on_call
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes, tries

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView


_FIXED = "use a fixed batch size that fits"
_BATCH = (
    "batch_size",
    "bs",
    "batchsize",
    "micro_batch",
    "microbatch",
    "batch",
    "chunk",
    "chunk_size",
    "chunksize",
)
_SMALLER = ("//", "/", "-", ">>")
_WITHOUT_EFFECT = (
    "int",
    "float",
    "round",
    "max",
    "min",
    "str",
    "format",
    "print",
    "info",
    "warning",
    "warn",
    "error",
    "exception",
    "debug",
    "critical",
    "log",
    "write",
)
"""Functions that only convert or print what they are given."""


class FreeMemory(Rule):
    """DET315: batches that are made to fit into the free memory."""

    codes = ("DET315",)

    @on(LoopEvent)
    def loop(self, event: LoopEvent) -> None:
        """A loop begins or ends."""
        if not event.begins:
            _retries(self, event.loop)

    @on(HandlerEvent)
    def handled(self, event: HandlerEvent) -> None:
        """What is done when something is raised."""
        _tries_again(self, event.handler)

    @on_call(LOADER)
    def loader(self, call: CallEvent) -> None:
        """A loader is made."""
        source = derives(self.run, argument_node(call.node, "batch_size", 1), "free-memory")
        if source:
            self.report(
                "DET315",
                call.node,
                f"the batch size is computed from `{source}`: it depends on the memory that is free in this run",
                _FIXED,
                subject=call.api,
            )

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
    """A loop that makes the batch smaller when the memory is used up."""
    if loop.frame.env is not rule.run.frame.env:
        return
    for stmt in tries(loop.stmt):
        for handler in stmt.handlers:
            shrinking = next((one for one in nodes(list(handler.body)) if _shrinks(one)), None)
            if shrinking is not None and _out_of_memory(rule.run, handler):
                rule.report(
                    "DET315",
                    shrinking,
                    "the batch is made smaller when memory runs out: its size depends on the free memory",
                    _FIXED,
                    subject="out of memory",
                )


def _tries_again(rule: Rule, handler: m.Handler) -> None:
    """A handler that calls what has failed, or something else, with a smaller batch."""
    body = list(handler.body)
    again = next((one for one in nodes(body) if isinstance(one, m.Call) and _gives_less(one)), None)
    if again is not None and _out_of_memory(rule.run, handler):
        rule.report(
            "DET315",
            again,
            "the call is repeated with a smaller batch when memory runs out: its size depends on the free memory",
            _FIXED,
            subject="out of memory",
        )


def _gives_less(call: m.Call) -> bool:
    if called_name(call) in _WITHOUT_EFFECT:
        return False
    given = [*call.args, *(one.value for one in call.keywords)]
    return any(
        isinstance(one, m.BinOp) and one.op in _SMALLER and _is_batch(one.left) for one in nodes(given)
    )


def _shrinks(node: Any) -> bool:
    if isinstance(node, m.AugAssign):
        return node.op in ("//", "/", "-", ">>", "*") and _is_batch(node.target)
    return isinstance(node, m.Assign) and any(_is_batch(one) for one in node.targets)


def _is_batch(target: Any) -> bool:
    name = target.id if isinstance(target, m.Name) else target.name if isinstance(target, m.Attr) else ""
    return name.rpartition(".")[2].lower().endswith(_BATCH)


def _out_of_memory(interp: RunView, handler: m.Handler) -> bool:
    types: list[Any] = handler.type.elts if isinstance(handler.type, m.Seq) else [handler.type]
    for one in types:
        value = interp.eval(one) if one is not None else None
        if isinstance(value, v.Ext) and interp.kb.role(value.name, "out-of-memory") is not None:
            return True
    return any(
        isinstance(node, m.Const) and isinstance(node.value, str) and "out of memory" in node.value.lower()
        for node in nodes(list(handler.body))
    )
