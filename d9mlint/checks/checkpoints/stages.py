"""What tests around two places say of one variable or option: where that excludes each other, no run comes to both, and what
one writes, the other reads in another stage: pretraining and fine-tuning, training and evaluation."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.library.options import NAMESPACE
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memo
from d9mlint.ir.endings import leaves
from d9mlint.ir.scopes import assignments
from d9mlint.ir.traversal import nodes, statements

if TYPE_CHECKING:
    from d9mlint.interp.frames import Frame
    from d9mlint.interp.view import RunView

_tests: dict[tuple[int, int], tuple[list[m.Stmt], tuple[_Holding, ...]]] = memo()
_in_loops: dict[tuple[int, int], tuple[list[m.Stmt], bool]] = memo()
_EQUAL = {"==": True, "is": True, "!=": False, "is not": False}


class Test(NamedTuple):
    """What is tested, or the place of the statement that does it, and whether that is equal to a value, or, without
    ``compared``, whether it is true."""

    what: Hashable
    compared: bool
    value: Hashable
    holds: bool

    def excludes(self, other: Test) -> bool:
        """Whether two tests of the same variable or option never hold in one run."""
        if self.what != other.what or self.compared is not other.compared:
            return False
        if self.value == other.value:
            return self.holds is not other.holds
        return self.holds and other.holds


class _Holding(NamedTuple):
    """A test of a function, or None for whether the body of a ``try`` raises, with its outcome, and where its statement
    begins; None where that runs in each round of a loop."""

    test: m.Expr | None
    outcome: bool
    place: int | None


def exclude(some: frozenset[Test], others: frozenset[Test]) -> bool:
    """Whether tests around one place, and those around another, never all hold in one run."""
    return any(one.excludes(other) for one in some for other in others)


def tests_around(run: RunView, node: Any, alone: bool = False) -> frozenset[Test]:
    """What holds where a call is made, by the tests around it in its function and in those that call it, and, but for
    the tests ``alone``, in which branches of statements it stands that run once."""
    found: set[Test] = set()
    branches: set[Test] = set()
    frame: Frame | None = run.frame
    offset = node.start
    while frame is not None:
        body = frame.body
        if is_in_loop(body, offset):
            # Each round may take another branch.
            branches.clear()
        for test, outcome, place in _tests_of(body, offset):
            if test is not None:
                found.update(_asked(frame, body, test, outcome))
            if place is not None:
                branches.add(Test((frame.file.path, place), False, None, outcome))
        offset = frame.call_site.start if frame.call_site is not None else 0
        frame = frame.caller if frame.call_site is not None else None
    return frozenset(found if alone else found | branches)


def _tests_of(body: list[m.Stmt], offset: int) -> tuple[_Holding, ...]:
    """As ``_holding``; memoised while the body lives."""
    known = _tests.get((id(body), offset))
    if known is None or known[0] is not body:
        known = _tests[id(body), offset] = (body, tuple(_holding(body, offset)))
    return known[1]


def is_in_loop(body: list[m.Stmt], offset: int) -> bool:
    """Whether a call in a body is made in each round of a loop; memoised while the body lives."""
    known = _in_loops.get((id(body), offset))
    if known is None or known[0] is not body:
        loops = (one for one in statements(body) if isinstance(one, (m.For, m.While)))
        found = any(holds_call(one.body, offset) for one in loops)
        known = _in_loops[id(body), offset] = (body, found)
    return known[1]


def _holding(block: Sequence[m.Stmt], offset: int) -> Iterator[_Holding]:
    """The tests of a function that are decided where a call in it is made."""
    in_loop = False
    while block:
        inner = next((one for one in _around(block, offset) if holds_call([one], offset)), None)
        for one in block:
            if one is inner:
                break
            # Behind a branch that always leaves, its test is not true.
            if isinstance(one, m.If) and not one.orelse and any(leaves(stmt) for stmt in one.body):
                yield _Holding(one.test, False, None if in_loop else one.start)
        if isinstance(inner, m.If):
            block = next((part for part in (inner.body, inner.orelse) if holds_call(part, offset)), [])
            if block:
                yield _Holding(inner.test, block is inner.body, None if in_loop else inner.start)
            continue
        if isinstance(inner, m.Try) and not in_loop:
            # What ends the body has not raised.
            if any(holds_call(one.body, offset) for one in inner.handlers):
                yield _Holding(None, True, inner.start)
            elif holds_call([*inner.body[-1:], *inner.orelse], offset):
                yield _Holding(None, False, inner.start)
        in_loop = in_loop or isinstance(inner, (m.For, m.While))
        parts = [getattr(inner, name, None) or [] for name in ("body", "orelse", "final")]
        parts += [one.body for name in ("handlers", "cases") for one in getattr(inner, name, ())]
        block = next((part for part in parts if holds_call(part, offset)), [])


def holds_call(block: Sequence[m.Stmt], offset: int) -> bool:
    """Whether a call that begins at a place is in a block."""
    return any(isinstance(one, m.Call) and one.start == offset for one in nodes(_around(block, offset)))


def _around(block: Sequence[m.Stmt], offset: int) -> Sequence[m.Stmt]:
    """The statements of a block that may hold a call that begins at a place: of those in source order the last that begins
    before; a decorator stands before its definition."""
    after = next((i for i, one in enumerate(block) if one.start > offset), len(block))
    around = block[max(after - 1, 0) : after]
    if after < len(block) and isinstance(block[after], (m.FunctionDef, m.ClassDef)):
        return [*around, block[after]]
    return around


def _asked(frame: Frame, body: list[m.Stmt], test: m.Expr, outcome: bool) -> Iterator[Test]:
    """What holds where a test has an outcome."""
    if isinstance(test, m.Unary) and test.op == "not":
        yield from _asked(frame, body, test.operand, not outcome)
    elif isinstance(test, m.BoolOp):
        if (test.op == "and") == outcome:
            yield from _asked(frame, body, test.left, outcome)
            yield from _asked(frame, body, test.right, outcome)
    elif isinstance(test, m.Compare):
        equal = _EQUAL.get(test.ops[0]) if len(test.ops) == 1 else None
        value = test.comparators[0]
        what = _what(frame, body, test.left) if equal is not None and isinstance(value, m.Const) else None
        if what is not None and isinstance(value, m.Const):
            yield Test(what, True, repr(value.value), equal is outcome)
    else:
        what = _what(frame, body, test)
        if what is not None:
            yield Test(what, False, None, outcome)


def _what(frame: Frame, body: list[m.Stmt], node: m.Expr) -> Hashable | None:
    """What an expression reads: a part of an object that some call made, or a variable that is assigned once."""
    parts: list[Hashable] = []
    while isinstance(node, m.Subscript):
        if not isinstance(node.index, m.Const):
            return None
        parts.insert(0, repr(node.index.value))
        node = node.value
    if not isinstance(node, m.Name):
        return None
    root, *names = node.id.split(".")
    parts = [*names, *parts]
    value = _value(frame, root)
    while isinstance(value, v.Inst) and parts:
        value = value.attrs.get(str(parts.pop(0)))
    if isinstance(value, v.Lit) and value.option and not parts:
        return value.option
    if isinstance(value, v.Obj) and parts:
        # A program has its options once, wherever they are read.
        made = value.type if value.type == NAMESPACE else made_at(value)
        if made is not None:
            return made, *parts
    if names or any(one.name == root for one in (frame.func.fn.params if frame.func is not None else ())):
        return None
    if root not in frame.env.vars or assignments(body, root) != 1:
        return None
    start = body[0].start if body else 0
    return Site(frame.file.path, start, start), root, *parts


def _value(frame: Frame, name: str) -> v.Value | None:
    """A variable that the code of an activation sees."""
    env: v.Env | None = frame.env
    while env is not None:
        if name in env.vars:
            return env.vars[name]
        env = env.parent
    return frame.mod.env.vars.get(name)
