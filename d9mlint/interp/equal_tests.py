"""Tests that are written twice: a variable that one branch of the first ``if`` assigned has its value in the same branch of
the second one, where neither it nor what is tested has been assigned since."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.heap import Tracked
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import assignments

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

Variables = dict[str, v.Value]
_OPPOSITES = {"!=": "==", "is not": "is", "not in": "in"}


class Chosen(NamedTuple):
    """What a test chose: what it read, with its version, and for each variable what it is where the branches have met,
    where the test is true and where it is false."""

    read: v.Value | None
    version: int
    variables: dict[str, tuple[v.Value, v.Value, v.Value]]


def _key(test: m.Expr) -> tuple[str, str, bool] | None:
    """The name that a test reads first, its text, and whether it asks for the text or the opposite; None for tests that
    are not followed."""
    if isinstance(test, m.Unary) and test.op == "not":
        inner = _key(test.operand)
        return None if inner is None else (inner[0], inner[1], not inner[2])
    if isinstance(test, m.Name):
        return test.id.partition(".")[0], test.id, True
    if isinstance(test, m.Subscript):
        inner = _key(test.value)
        if inner is None or not inner[2] or not isinstance(test.index, m.Const):
            return None
        return inner[0], f"{inner[1]}[{test.index.value!r}]", True
    if isinstance(test, m.Compare) and len(test.ops) == 1 and isinstance(test.comparators[0], m.Const):
        inner = _key(test.left)
        if inner is None or not inner[2]:
            return None
        op = test.ops[0]
        return (
            inner[0],
            f"{inner[1]} {_OPPOSITES.get(op, op)} {test.comparators[0].value!r}",
            op not in _OPPOSITES,
        )
    return None


def remember(interp: Interp, test: m.Expr, true: Variables, false: Variables) -> None:
    """The branches of an ``if`` have met: they left these variables."""
    key = _key(test)
    if key is None:
        return
    root, text, wanted = key
    if not wanted:
        true, false = false, true
    now = interp.frame.env.vars
    variables: dict[str, tuple[v.Value, v.Value, v.Value]] = {}
    for name, value in true.items():
        other = false.get(name)
        if other is not None and other is not value and name in now and not isinstance(value, v.Lit):
            variables[name] = (now[name], value, other)
    read = interp.lookup(root)
    if variables:
        interp.frame.chosen[text] = Chosen(read, _version(read), variables)


def within(interp: Interp, test: m.Expr, outcome: bool, run: Callable[[], None]) -> None:
    """Run a branch where variables are what an equal test has chosen."""
    key = _key(test) if interp.frame.chosen else None
    known = interp.frame.chosen.get(key[1]) if key is not None else None
    if key is None or known is None:
        run()
        return
    read = interp.lookup(key[0])
    if read is not known.read or _version(read) != known.version or _reassigned(interp, key[0], read):
        del interp.frame.chosen[key[1]]
        run()
        return
    frame = interp.frame
    chosen: dict[str, tuple[v.Value, v.Value]] = {}
    for name, (met, true, false) in known.variables.items():
        if frame.env.vars.get(name) is met:
            here = true if outcome is key[2] else false
            frame.env.vars[name] = here
            chosen[name] = (met, here)
    run()
    for name, (met, here) in chosen.items():
        if frame.env.vars.get(name) is here:
            frame.env.vars[name] = met


def _reassigned(interp: Interp, name: str, value: v.Value | None) -> bool:
    """Whether a name of which only a plain value is known, or nothing, may have had another one."""
    if isinstance(value, Tracked):
        return False
    func = interp.frame.func
    params = 0 if func is None else sum(param.name == name for param in func.fn.params)
    return assignments(interp.frame.body, name) + params > 1


def _version(value: v.Value | None) -> int:
    return value.version if isinstance(value, Tracked) else 0
