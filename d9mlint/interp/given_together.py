"""What options have in common that decide branches: who comes into one that an option leads to has also taken an earlier one
that the same option leads to. ``if args.fixed: seed()`` seeds what ``if args.fixed and args.sample:`` draws."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from d9mlint.base.options import all_of, both
from d9mlint.interp import values as v
from d9mlint.interp.given_options import EQUAL
from d9mlint.interp.heap import HEAP
from d9mlint.interp.state import LED, SEEDED, UNSEEDED, Part, Rng, Ways
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.conditions import Outcome
    from d9mlint.interp.interpreter import Interp

GIVEN = ("is given",)
"""Stands for a value that is not the default of an option."""
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ALWAYS: Ways = (frozenset(),)
_MOST = 8
"""So many ways into a branch are distinguished."""


def within(interp: Interp, test: m.Expr, outcome: bool, run: Callable[[], None]) -> None:
    """Run a branch to which options lead that are not left out: what the same options have seeded is seeded there."""
    ways = _ways(interp, test, outcome, partly=True)
    if ways is None:
        run()
        return
    interp.given.append(ways)
    seeded: dict[str, Rng] = {}
    for name, level in interp.state.rng.held.items():
        if level.level == UNSEEDED and level.needs:
            HEAP.act.asked.add(LED)
            if _implies(interp.given, interp.state.level(name).needs):
                seeded[name] = Rng(SEEDED, "", level.site)
    interp.state.rng.update(seeded)
    run()
    interp.given.pop()


def note(interp: Interp, stmt: m.If, test: Outcome, before: dict[str, Rng]) -> None:
    """Behind an ``if`` that the default of an option decides, note what has to be given for the other branch to be taken,
    which has seeded something."""
    new = {
        name: level
        for name, level in interp.state.rng.held.items()
        if test.option in all_of(level.option) and before.get(name) != level
    }
    ways = _ways(interp, stmt.test, not test.answer, partly=False) if new else None
    for name, level in new.items():
        needs = (None if ways is None else _both(ways, level.needs or _ALWAYS)) or ()
        option = functools.reduce(both, needed([needs]), level.option)
        interp.state.rng[name] = level._replace(option=option, needs=needs)


def needed(branches: Sequence[Ways]) -> list[str]:
    """The options that have to have other values than by default to come into these branches, whichever way is taken."""
    in_all = [frozenset.intersection(*ways) for ways in branches if ways]
    return sorted({part.option for parts in in_all for part in parts if not part.usual})


def _ways(interp: Interp, test: m.Expr, outcome: bool, partly: bool) -> Ways | None:
    """What has to hold of options for a test to have an outcome: one of these. None where that is not known; ``partly``
    leaves out what is not."""
    if isinstance(test, m.Unary) and test.op == "not":
        return _ways(interp, test.operand, not outcome, partly)
    if isinstance(test, m.BoolOp):
        left, right = (_ways(interp, one, outcome, partly) for one in (test.left, test.right))
        if (test.op == "and") != outcome:
            return None if left is None or right is None else _few((*left, *right))
        if left is None or right is None:
            return (right if left is None else left) if partly else None
        return _both(left, right)
    if isinstance(test, m.Name):
        known = interp.eval(test)
        if not isinstance(known, v.Lit):
            return None
        if not known.option:
            return _ALWAYS if bool(known.value) is outcome else ()
        usual = bool(known.value) is outcome
        value = outcome if type(known.value) is bool or usual else GIVEN
        return (frozenset({Part(known.option, value, usual)}),)
    part = _compared(interp, test, outcome) if isinstance(test, m.Compare) and len(test.ops) == 1 else None
    return None if part is None else (frozenset({part}),)


def _compared(interp: Interp, test: m.Compare, outcome: bool) -> Part | None:
    """What a comparison of an option with a value asks for."""
    op, other = test.ops[0], test.comparators[0]
    known = interp.eval(test.left) if isinstance(test.left, m.Name | m.Subscript) else None
    if not isinstance(known, v.Lit) or not known.option or not isinstance(other, m.Const):
        return None
    if op in EQUAL:
        equal = known.value == other.value
        if EQUAL[op] is outcome:
            return Part(known.option, other.value, equal)
        return Part(known.option, GIVEN if equal else (op, outcome, other.value), not equal)
    try:
        usual = _ORDERS[op](known.value, other.value) is outcome
    except (KeyError, TypeError):
        return None
    return Part(known.option, (op, outcome, other.value), usual)


def _both(one: Ways, other: Ways) -> Ways | None:
    return _few(tuple(first | second for first, second in itertools.product(one, other)))


def _few(ways: Ways) -> Ways | None:
    return ways if len(ways) <= _MOST else None


def _implies(given: list[Ways], needs: Ways) -> bool:
    """Whether who comes here, which takes one of the ways into each of these branches, has what is needed."""
    known = _ALWAYS
    for ways in given:
        known = _both(known, ways) or known
    return all(any(all(_holds(part, way) for part in needed) for needed in needs) for way in known)


def _holds(part: Part, given: frozenset[Part]) -> bool:
    """Whether something holds where these do."""
    of_option = [one for one in given if one.option == part.option]
    if part in of_option:
        return True
    if part.usual:
        return all(one.usual for one in of_option)
    return part.value == GIVEN and any(not one.usual for one in of_option)
