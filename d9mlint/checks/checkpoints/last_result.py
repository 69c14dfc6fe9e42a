"""DET603: loops that go on from results which were loaded, and compute the last of them once more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from d9mlint.checks.base import Rule
from d9mlint.interp.events import CallEvent, LoopEvent
from d9mlint.interp.listening import on, on_call_if
from d9mlint.interp.memory import remembered
from d9mlint.interp.named_sizes import assignments
from d9mlint.interp.naming import running
from d9mlint.interp.state import Site
from d9mlint.interp.tensors import LOADING
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView


class LastResult(Rule):
    """DET603: loops that begin with the last item of a list that was loaded, and append its result to it again."""

    codes = ("DET603",)
    loaded = remembered(set[Site])
    """Where something is loaded."""

    @on_call_if(lambda rule, api: api in LOADING or rule.run.kb.role(api, "reads-data") is not None)
    def load(self, call: CallEvent) -> None:
        """Data is read from a file, or a checkpoint is."""
        self.loaded.add(self.run.here(call.node))

    @on(LoopEvent)
    def loop(self, event: LoopEvent) -> None:
        """A loop begins, or ends."""
        stmt = event.loop.stmt
        if not event.begins or not self.loaded or not isinstance(stmt, m.For):
            return
        over = stmt.iter
        if isinstance(over, m.Call) and over.args and called_name(over.args[0]) == "range":
            # A progress bar is put around it.
            over = over.args[0]
        bounds = over.args if isinstance(over, m.Call) and called_name(over) == "range" else []
        for first in _written(self.run, bounds[0]) if len(bounds) > 1 else ():
            name = _all_but_one(first)
            if name and _grows(stmt, name) and not _shrinks(self.run, name) and self._is_loaded(name):
                self.report(
                    "DET603",
                    stmt,
                    f"the loop begins with the last item of `{name}`, which was loaded, and appends its result once more: "
                    "a resumed run counts it twice",
                    f"begin with `len({name})`",
                    subject=name,
                )
                return

    def _is_loaded(self, name: str) -> bool:
        """Whether a list is empty at first, or what the program has loaded, or a part of that."""
        values = list(assignments(self.run, name))
        return any(map(_is_empty, values)) and any(
            isinstance(one, m.Call) and self.run.here(one) in self.loaded
            for value in values
            for one in _written(self.run, _whole(value))
        )


def _written(run: RunView, value: m.Expr) -> Iterator[m.Expr]:
    """An expression, and what the running function assigns to the name that it is."""
    yield value
    if isinstance(value, m.Name):
        yield from (_whole(one) for one in assignments(run, value.id))


def _is_empty(value: m.Expr) -> bool:
    """Whether an expression is an empty list."""
    if isinstance(value, m.Seq):
        return not value.elts
    return called_name(value) == "list" and isinstance(value, m.Call) and not value.args


def _whole(value: m.Expr) -> m.Expr:
    """``data`` of ``data[0]``."""
    while isinstance(value, m.Subscript):
        value = value.value
    return value


def _all_but_one(first: m.Expr) -> str:
    """``done`` of ``len(done) - 1``; empty for anything else."""
    if not isinstance(first, m.BinOp) or first.op != "-" or called_name(first.left) != "len":
        return ""
    counted = first.left.args if isinstance(first.left, m.Call) else []
    one = isinstance(first.right, m.Const) and first.right.value == 1
    return counted[0].id if one and len(counted) == 1 and isinstance(counted[0], m.Name) else ""


def _grows(loop: m.For, name: str) -> bool:
    """Whether a loop appends to a list."""
    return any(isinstance(one, m.Call) and _method(one, name) == "append" for one in nodes(loop.body))


def _shrinks(run: RunView, name: str) -> bool:
    """Whether the running function takes something out of a list, or keeps a part of it."""
    function = running(run)
    for one in nodes(function.body) if function is not None else ():
        if isinstance(one, m.Call) and _method(one, name) not in ("", "append", "extend"):
            return True
        parts = one.targets if isinstance(one, m.Delete | m.Assign) else []
        if any(isinstance(part, m.Subscript) and _is_name(part.value, name) for part in parts):
            return True
        if (
            isinstance(one, m.Assign)
            and isinstance(one.value, m.Subscript)
            and _is_name(one.value.value, name)
        ):
            return True
    return False


def _method(call: m.Call, name: str) -> str:
    """The method of an object that is called."""
    owner, _, method = call.func.id.rpartition(".") if isinstance(call.func, m.Name) else ("", "", "")
    return method if owner == name else ""


def _is_name(value: m.Expr, name: str) -> bool:
    return isinstance(value, m.Name) and value.id == name
