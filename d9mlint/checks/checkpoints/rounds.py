"""In which rounds of a loop something is done, as far as the tests around it tell."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.checks.checkpoints.stages import holds_call
from d9mlint.interp import values as v
from d9mlint.interp.emptiness import RANGES
from d9mlint.interp.passed_on import PASS_THROUGH
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import alike, called_name, nodes, statements

if TYPE_CHECKING:
    from d9mlint.interp.events import Loop
    from d9mlint.interp.frames import Frame
    from d9mlint.interp.view import RunView

_MOST_ROUNDS = 10_000
_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def is_never(run: RunView, node: Any) -> bool:
    """Whether a call in loops over known ranges is in no round of one of them."""
    return any(_has_no_round(run, loop, node) for loop in run.loops if isinstance(loop.stmt, m.For))


def is_last(run: RunView, loop: Loop, node: Any) -> bool:
    """Whether a call in a loop over batches is in its last round alone."""
    return any(_ends(loop, part) for test in _tests(run, loop, node) for part in _parts(test))


def _has_no_round(run: RunView, loop: Loop, node: Any) -> bool:
    target = loop.stmt.target
    over = loop.over
    while (
        isinstance(over, v.Obj)
        and over.api in PASS_THROUGH
        and over.api != "builtins.enumerate"
        and over.args.pos
    ):
        over = over.args.pos[0]
    if not isinstance(target, m.Name) or not isinstance(over, v.Obj) or over.api not in RANGES:
        return False
    stop = over.args.pos[0 if len(over.args.pos) == 1 else 1] if len(over.args.pos) in (1, 2) else None
    if not isinstance(stop, v.Lit) or stop.option or type(stop.value) is not int or stop.value > _MOST_ROUNDS:
        return False
    first = over.args.pos[0] if len(over.args.pos) == 2 else v.Lit(0)
    begin = first.value if isinstance(first, v.Lit) and type(first.value) is int else 0
    # What an option sets, or a file holds, begins no earlier than a new run.
    tests = [test for test in _tests(run, loop, node) if any(_is(target, one) for one in nodes([test]))]
    return any(
        all(_value(part, target.id, number) is False for number in range(min(begin, 0), stop.value))
        for test in tests
        for part in _parts(test)
    )


def _is(target: m.Name, node: Any) -> bool:
    return isinstance(node, m.Name) and node.id == target.id


def _tests(run: RunView, loop: Loop, node: Any) -> Iterator[m.Expr]:
    """The tests in the body of a loop that are all true where a call is made, in its function or one that it calls."""
    frame, offset = run.frame, node.start
    while not _runs_in(frame, loop.frame):
        site = frame.call_site
        if frame.caller is None or site is None:
            return
        frame, offset = frame.caller, site.start
    body = loop.stmt.body
    while body:
        inner = next(
            (one for one in body if any(x.start == offset for x in nodes([one]) if isinstance(x, m.Call))),
            None,
        )
        if isinstance(inner, m.If):
            chosen = next((part for part in (inner.body, inner.orelse) if holds_call(part, offset)), None)
            if chosen is inner.body:
                yield inner.test
            body = chosen or []
        else:
            blocks = [getattr(inner, name, None) or [] for name in ("body", "orelse", "final")]
            body = next((block for block in blocks if holds_call(block, offset)), [])


def _parts(test: m.Expr) -> Iterator[m.Expr]:
    """What is true where a test is."""
    if isinstance(test, m.BoolOp) and test.op == "and":
        yield from _parts(test.left)
        yield from _parts(test.right)
    yield test


def _value(node: m.Expr, name: str, number: int) -> int | bool | None:
    """What an expression gives where a variable is a number; None where that is not known."""
    if isinstance(node, m.Const):
        return node.value if isinstance(node.value, int) else None
    if isinstance(node, m.Name):
        return number if node.id == name else None
    if isinstance(node, m.Unary) and node.op == "not":
        inner = _value(node.operand, name, number)
        return None if inner is None else not inner
    if isinstance(node, m.BoolOp):
        left, right = _value(node.left, name, number), _value(node.right, name, number)
        decides = node.op == "or"
        if any(one is not None and bool(one) is decides for one in (left, right)):
            return decides
        return None if left is None or right is None else not decides
    if isinstance(node, m.BinOp) and node.op in _OPERATIONS:
        left, right = _value(node.left, name, number), _value(node.right, name, number)
        if left is None or right is None or (node.op in ("//", "%") and right == 0):
            return None
        return _OPERATIONS[node.op](left, right)
    if isinstance(node, m.Compare) and len(node.ops) == 1 and node.ops[0] in _COMPARISONS:
        left, right = _value(node.left, name, number), _value(node.comparators[0], name, number)
        return None if left is None or right is None else _COMPARISONS[node.ops[0]](left, right)
    return None


def _ends(loop: Loop, test: m.Expr) -> bool:
    """Whether a test is true in the last round of a loop over batches alone, by the number of its batches."""
    if isinstance(test, m.Name):
        assigned = _assigned(loop.stmt.body, test.id)
        return len(assigned) == 1 and _ends(loop, assigned[0])
    if not isinstance(test, m.Compare) or test.ops != ["=="]:
        return False
    for one, other in ((test.left, test.comparators[0]), (test.comparators[0], test.left)):
        if isinstance(other, m.Const) and other.value == 0 and isinstance(one, m.BinOp) and one.op == "%":
            # In the first round, the number of an `enumerate` is 0 too.
            return (
                not isinstance(one.left, m.Name | m.Const) or _is_counted(loop, one.left)
                if _is_length(loop, one.right)
                else False
            )
        if (
            isinstance(one, m.BinOp)
            and one.op == "-"
            and isinstance(one.right, m.Const)
            and one.right.value == 1
        ):
            one = one.left
        if _is_length(loop, one):
            return True
    return False


def _is_counted(loop: Loop, name: Any) -> bool:
    """Whether a loop adds to a variable."""
    return isinstance(name, m.Name) and any(
        isinstance(one, m.AugAssign) and isinstance(one.target, m.Name) and one.target.id == name.id
        for one in statements(loop.stmt.body)
    )


def _is_length(loop: Loop, node: Any) -> bool:
    """Whether an expression is the number of the batches of a loop, or of several of its passes."""
    if isinstance(node, m.BinOp) and node.op == "*":
        return _is_length(loop, node.left) or _is_length(loop, node.right)
    if isinstance(node, m.Name):
        assigned = _assigned(loop.frame.body, node.id)
        return len(assigned) == 1 and not isinstance(assigned[0], m.Name) and _is_length(loop, assigned[0])
    if not isinstance(node, m.Call) or called_name(node) != "len" or len(node.args) != 1:
        return False
    return any(alike(node.args[0], one) for one in nodes([loop.stmt.iter]))


def _assigned(body: list[Any], name: str) -> list[m.Expr]:
    """What statements assign to a name."""
    return [
        one.value
        for one in statements(body)
        if isinstance(one, m.Assign) and any(isinstance(x, m.Name) and x.id == name for x in one.targets)
    ]


class InRound(NamedTuple):
    """Where in the body of a loop something is done, and in which branches of its tests."""

    loop: str
    offset: int
    branches: frozenset[tuple[int, bool]]

    def follows(self, other: InRound) -> bool:
        """Whether it is done after something else in the same round."""
        apart = any((test, not outcome) in other.branches for test, outcome in self.branches)
        return self.loop == other.loop and self.offset > other.offset and not apart


def in_round(run: RunView, loop: Loop, node: Any) -> InRound | None:
    """Where a call is made in the body of a loop, if it is made in its function or one that it calls."""
    offset = offset_in(run, loop, node)
    return InRound(loop.key, offset, frozenset(_branches(loop, offset))) if offset is not None else None


def offset_in(run: RunView, loop: Loop, node: Any) -> int | None:
    """Where a call is made in the code of a loop, in its function or one that it calls."""
    frame, offset = run.frame, node.start
    while not _runs_in(frame, loop.frame):
        site = frame.call_site
        if frame.caller is None or site is None:
            return None
        frame, offset = frame.caller, site.start
    return int(offset)


def _runs_in(frame: Frame, other: Frame) -> bool:
    """Whether an activation is a different one, or that of a comprehension in it."""
    env: v.Env | None = frame.env if frame.func is other.func else None
    while env is not None and env is not other.env:
        env = env.parent
    return env is not None


def _branches(loop: Loop, offset: int) -> Iterator[tuple[int, bool]]:
    """The tests in the body of a loop in whose branches a call is made, by their place, and in which."""
    for one in statements(loop.stmt.body):
        if isinstance(one, m.If):
            for outcome, block in ((True, one.body), (False, one.orelse)):
                if holds_call(block, offset):
                    yield one.start, outcome
