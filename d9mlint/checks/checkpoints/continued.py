"""Loops over epochs or steps that go on from a number that was loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.emptiness import RANGES
from d9mlint.interp.passed_on import PASS_THROUGH
from d9mlint.interp.tensors import (
    by_call,
    computed_from,
    key_before,
    loaded_as,
    loaded_before,
    loaded_by,
    loaded_by_call,
)
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes, statements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from d9mlint.interp.events import Loop
    from d9mlint.interp.view import RunView


class Start(NamedTuple):
    """Where a loop goes on: the key under which its first number was loaded, or the option with which one is; whether it
    begins with the first round of all unless an option says otherwise; and the call that has loaded it, where that is
    known."""

    key: object
    option: str
    from_first: bool = True
    reader: str = ""

    def is_kept(self, run: RunView, keys: set[object], unless_by: str = "") -> bool:
        """Whether one of some keys is the one under which the number was loaded, unless a call is known to have done it."""
        if self.option:
            flags = [flag(self.option, key) for key in keys for flag in (loaded_by, loaded_before)]
            return any(
                flag in run.marks and not (unless_by and by_call(flag, unless_by) in run.marks)
                for flag in flags
            )
        return self.key in keys and not (unless_by and self.reader == unless_by)


def first_of(over: v.Value | None) -> v.Value | None:
    """The first number that a range is given, also inside of what passes its elements on; None for another value."""
    while isinstance(over, v.Obj) and over.api in PASS_THROUGH and over.args.pos:
        over = over.args.pos[0]
    given = isinstance(over, v.Obj) and over.api in RANGES and len(over.args.pos) > 1
    return over.args.pos[0] if isinstance(over, v.Obj) and given else None


def number_of(loop: Loop) -> v.Value | None:
    """What the variable of a ``for`` loop holds in its present round."""
    target = getattr(loop.stmt, "target", None)
    found: v.Value | None = loop.frame.env.vars.get(target.id) if isinstance(target, m.Name) else None
    return found


def start_of(run: RunView, loop: Loop) -> Start | None:
    """The loaded number that a loop goes on from, if there is one."""
    firsts: list[v.Value] = []
    if isinstance(loop.stmt, m.For):
        for over in v.alternatives(loop.over or v.UNKNOWN):
            first = first_of(over)
            if first is not None:
                firsts.append(first)
    elif isinstance(loop.stmt, m.While):
        for one in nodes([loop.stmt.test]):
            value = run.value_of(one) if isinstance(one, m.Name) else v.UNKNOWN
            # What an option sets, and nothing in the loop counts, is where it ends.
            if not (isinstance(value, v.Lit) and value.option and not _is_assigned(loop, one)):
                firsts.append(value)
    return _read(firsts)


def _is_assigned(loop: Loop, name: m.Name) -> bool:
    """Whether the body of a loop assigns a name of its test."""
    return any(
        isinstance(target, m.Name) and target.id == name.id
        for one in statements(loop.stmt.body)
        for target in (one.targets if isinstance(one, m.Assign) else [getattr(one, "target", None)])
    )


def counter_of(run: RunView, loop: Loop) -> Start | None:
    """The loaded number from which a loop over epochs or batches counts, in its own variable or by adding it, or up to
    which it does nothing."""
    counters = [*counted_in(loop), *(begin for _, begin in counted_from(loop)), *_left_out_to(loop)]
    return _read([run.value_of(one) for one in counters])


def _left_out_to(loop: Loop) -> Iterator[m.Expr]:
    """What a ``for`` loop over numbers compares its number with to leave out the smaller ones: ``if epoch <= last:
    continue``, also behind other tests."""
    target = loop.stmt.target if isinstance(loop.stmt, m.For) else None
    numbers = isinstance(loop.over, v.Obj) and loop.over.api in RANGES
    open_ends = list(loop.stmt.body) if isinstance(target, m.Name) and numbers else []
    while open_ends:
        stmt = open_ends.pop()
        if not isinstance(stmt, m.If) or not stmt.body:
            continue
        first = stmt.body[0]
        if not isinstance(first, m.Jump) or first.kind != "continue":
            open_ends.append(first)
            continue
        for one in nodes([stmt.test]):
            if not isinstance(one, m.Compare) or len(one.ops) != 1:
                continue
            smaller, larger = one.left, one.comparators[0]
            if one.ops[0] in (">", ">="):
                smaller, larger = larger, smaller
            elif one.ops[0] not in ("<", "<="):
                continue
            if isinstance(target, m.Name) and isinstance(smaller, m.Name) and smaller.id == target.id:
                yield larger


def counted_from(loop: Loop) -> Iterator[tuple[m.Name, m.Name]]:
    """The variables to which a ``for`` loop assigns its number and another one, ``step = i + first``, with that."""
    target = loop.stmt.target if isinstance(loop.stmt, m.For) else None
    if not isinstance(target, m.Name):
        return
    for one in loop.stmt.body:
        value = one.value if isinstance(one, m.Assign) else None
        if not isinstance(value, m.BinOp) or value.op != "+":
            continue
        sides = [side for side in (value.left, value.right) if isinstance(side, m.Name)]
        others = [side for side in sides if side.id != target.id]
        if len(sides) == 2 and len(others) == 1:
            yield from ((name, others[0]) for name in one.targets if isinstance(name, m.Name))


def counters_of(loop: Loop) -> list[v.Value]:
    """The numbers that a ``while`` loop counts in its own variables, in its present round."""
    names = [one.id for one in counted_in(loop)] if isinstance(loop.stmt, m.While) else []
    return [loop.frame.env.vars[name] for name in names if name in loop.frame.env.vars]


def counted_in(loop: Loop) -> list[m.Name]:
    """The variables that the body of a loop counts: in steps of a size that is written, or that it does not change."""
    counted = [
        one.target
        for one in statements(loop.stmt.body)
        if isinstance(one, m.AugAssign)
        and one.op == "+"
        and (
            isinstance(one.value, m.Const)
            or (isinstance(one.value, m.Name) and not _is_assigned(loop, one.value))
        )
    ]
    return [one for one in counted if isinstance(one, m.Name)]


def _read(firsts: list[v.Value]) -> Start | None:
    for first in firsts:
        key = loaded_as(first) or key_before(first) or computed_from(first)
        if isinstance(key, v.Lit) and not key.option:
            return Start(key.value, "", reader=loaded_by_call(first))
        held = [key] if key is not None else v.alternatives(first)
        given = next((one for one in held if isinstance(one, v.Lit) and one.option), None)
        if given is not None:
            return Start(None, given.option, _is_first(given.value))
    return None


def _is_first(number: object) -> bool:
    """Whether a number is that of the first round of all: people count from zero, or from one."""
    return not number or (type(number) is int and number == 1)
