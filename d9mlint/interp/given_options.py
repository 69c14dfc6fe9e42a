"""What stands in objects where an option has the value that a test asks for: ``if mode == "predict": model.head = Beam()``.

The paths of the option's values meet behind the test, and what was written there is one of several values. In a branch of
a later test that asks for another value of the same option, what stood there before stands there again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.heap import HEAP, Access, at
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_MOST_PLACES = 20
_MOST_BRANCHES = 20
EQUAL = {"==": True, "is": True, "!=": False, "is not": False}
"""Comparisons by value, and what they give where both sides are equal."""


class Written(NamedTuple):
    """A place that was written where options have some values: what stood there before, and what stands there behind the
    branch."""

    asked: dict[str, Any]
    place: Access
    met: Any


class Asked(NamedTuple):
    """A branch that is taken where options have some values: these, and when it was run."""

    asked: dict[str, Any]
    began: int
    ended: int


def writing(interp: Interp, test: m.Expr, outcome: bool, run: Callable[[], None]) -> Callable[[], None]:
    """A branch that is taken where options have other values than by default: what it writes is noted. Gives what is to
    be called where the paths have met."""
    asked = {name: value for name, value, usual in _asked(interp, test, outcome) if value != usual}
    if not asked:
        run()
        return lambda: None
    HEAP.clock += 1
    born = HEAP.clock
    noted = HEAP.note_overwritten()
    run()
    HEAP.stop_noting(noted)
    written = [
        place
        for place in noted.values()
        if place[0].birth < born
        and isinstance(place[4], (v.Inst, v.Obj, v.Func))
        and isinstance(place[3], str)
    ]
    frame = interp.frame

    def met() -> None:
        if len(written) <= _MOST_PLACES:
            frame.written += [Written(asked, place, at(*place[:4])) for place in written]

    return met


def within(interp: Interp, test: m.Expr, outcome: bool, run: Callable[[], None]) -> None:
    """Run a branch where nothing is written that only other values of its options bring."""
    asked = values(interp, test, outcome)
    known, interp.asked = interp.asked, {**interp.asked, **asked}
    put: list[Written] = []
    for one in interp.frame.written if asked else ():
        excluded = any(name in asked and asked[name] != value for name, value in one.asked.items())
        if excluded and at(*one.place[:4]) is one.met and one.met is not one.place[4]:
            HEAP.put(one.place, one.place[4])
            put.append(one)
    began = HEAP.clock
    HEAP.clock += bool(asked)
    run()
    interp.asked = known
    if asked and not interp.importing:
        _separate(interp, Asked(asked, began, HEAP.clock))
    for one in put:
        if at(*one.place[:4]) is one.place[4]:
            HEAP.put(one.place, one.met)


def _separate(interp: Interp, branch: Asked) -> None:
    """A branch has ended that a run does not take which took an earlier one for another value of the same option."""
    before = interp.frame.asked_then
    for one in before:
        if any(name in branch.asked and branch.asked[name] != value for name, value in one.asked.items()):
            interp.partings.separate(((one.began, one.ended, 0), (branch.began, branch.ended, 1)))
    if len(before) < _MOST_BRANCHES:
        before.append(branch)


def values(interp: Interp, test: m.Expr, outcome: bool) -> dict[str, Any]:
    """The options that have one value where a test has this outcome, with that value."""
    return {name: value for name, value, _ in _asked(interp, test, outcome)}


def _asked(interp: Interp, test: m.Expr, outcome: bool) -> list[tuple[str, Any, Any]]:
    """The options that have one value where a test has this outcome, with it and the one by default."""
    if isinstance(test, m.Unary) and test.op == "not":
        return _asked(interp, test.operand, not outcome)
    if isinstance(test, m.BoolOp):
        if (test.op == "and") != outcome:
            return []
        return _asked(interp, test.left, outcome) + _asked(interp, test.right, outcome)
    if isinstance(test, m.Name):
        known = interp.eval(test)
        if isinstance(known, v.Lit) and known.option and type(known.value) is bool:
            return [(known.option, outcome, known.value)]
        return []
    if not isinstance(test, m.Compare) or len(test.ops) != 1 or EQUAL.get(test.ops[0]) is not outcome:
        return []
    other = test.comparators[0]
    if not isinstance(test.left, (m.Name, m.Subscript)) or not isinstance(other, m.Const):
        return []
    known = interp.eval(test.left)
    if not isinstance(known, v.Lit) or not known.option or not isinstance(other.value, (str, int)):
        return []
    return [(known.option, other.value, known.value)]
