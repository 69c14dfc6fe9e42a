"""DET603: loops that count from a number which was copied before the checkpoint with the right one was loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from d9mlint.checks.base import Rule
from d9mlint.checks.checkpoints.continued import start_of
from d9mlint.interp import values as v
from d9mlint.interp.events import Loop, LoopEvent
from d9mlint.interp.listening import on
from d9mlint.interp.named_sizes import assignments
from d9mlint.interp.places import Where
from d9mlint.interp.tensors import key_before, loaded_as
from d9mlint.interp.text import written
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import assigned_names
from d9mlint.ir.traversal import called_name, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from d9mlint.interp.view import RunView

_MOST_COPIES = 4


class Copy(NamedTuple):
    """A number from which a loop counts: the expression that it is a copy of, and the key under which that was loaded."""

    source: m.Expr
    key: object


class CopiedEarly(Rule):
    """DET603: numbers that were copied before what they are copies of was loaded."""

    codes = ("DET603",)

    @on(LoopEvent)
    def loop(self, event: LoopEvent) -> None:
        """A loop begins, or ends."""
        loop, begins = event
        if not begins or self.run.entry is None:
            return
        start = start_of(self.run, loop)
        if start is not None and not start.option:
            return
        copies = (_copied(self.run, name, loop) for name in _counted_from(loop))
        copy = next((one for one in copies if one is not None), None)
        if copy is not None:
            place, source = Where(self.run, copy.source, "number"), written(copy.source)
            self.run.later(lambda: self._judge(loop, place, source, copy.key))

    def _judge(self, loop: Loop, place: Where, source: str, key: object) -> None:
        """The program has ended: the loop matters if it trained."""
        if loop.key not in self.run.training_loops:
            return
        self.report(
            "DET603",
            place,
            f"the loop counts from the value that `{source}` has before it is set to what the checkpoint holds as `{key}`: "
            "a resumed run begins with the first round again",
            f"read `{source}` after the checkpoint is loaded",
        )


def _counted_from(loop: Loop) -> Iterator[m.Name]:
    """The variables whose values say where a loop begins: those in the first argument of a range, and those of the test of
    a ``while`` loop that its body counts."""
    if isinstance(loop.stmt, m.For):
        for one in nodes([loop.stmt.iter]):
            if isinstance(one, m.Call) and called_name(one) == "range" and len(one.args) > 1:
                yield from (part for part in nodes([one.args[0]]) if isinstance(part, m.Name))
    elif isinstance(loop.stmt, m.While):
        counted = assigned_names(loop.stmt)
        yield from (one for one in nodes([loop.stmt.test]) if isinstance(one, m.Name) and one.id in counted)


def _copied(run: RunView, name: m.Name, loop: Loop) -> Copy | None:
    """What a variable is a copy of which has been loaded since: the variable is still what was written there before."""
    if not isinstance(run.value_of(name), v.Lit):
        return None
    source: m.Expr = name
    for _ in range(_MOST_COPIES):
        if not isinstance(source, m.Name):
            return None
        # What the loop itself assigns is nothing that it begins with.
        given = [one for one in assignments(run, source.id) if getattr(one, "start", 0) < loop.stmt.start]
        if len(given) != 1 or not isinstance(given[0], m.Name | m.Attr | m.Subscript):
            return None
        source = given[0]
        value = run.value_of(source)
        key = loaded_as(value) or key_before(value)
        if isinstance(key, v.Lit) and not key.option:
            return Copy(source, key.value)
    return None
