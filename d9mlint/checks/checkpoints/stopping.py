"""Objects and numbers of the program that say when a loop ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from d9mlint.checks.checkpoints.first_numbers import (
    begun,
    begun_outside,
    name_of,
    names_in,
    set_to_number,
    stored_names,
)
from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memo, memoized
from d9mlint.ir.traversal import called_name, nodes

if TYPE_CHECKING:
    from d9mlint.interp.events import Loop
    from d9mlint.interp.view import RunView

_CALLED = "__call__"
_counting: dict[int, tuple[m.For | m.While, frozenset[str]]] = memo()


def stoppers(run: RunView, loop: Loop) -> Iterator[tuple[str, v.Inst, list[str]]]:
    """The objects that a loop asks whether it ends, with their names and the methods of them that it calls."""
    found: dict[str, v.Inst] = {}
    for name in _names(loop.stmt):
        while name and name not in found:
            value = run.value_of(m.Name(name, loop.stmt.start, loop.stmt.end))
            if isinstance(value, v.Inst):
                found[name] = value
            name = name.rpartition(".")[0]
    for name, one in found.items():
        called = [
            _CALLED if part.func.id == name else part.func.id.removeprefix(name + ".")
            for part in nodes(loop.stmt.body)
            if isinstance(part, m.Call)
            and isinstance(part.func, m.Name)
            and f"{part.func.id}.".startswith(name + ".")
        ]
        yield name, one, [method for method in dict.fromkeys(called) if "." not in method]


@memoized
def _names(loop: m.For | m.While) -> tuple[str, ...]:
    """What ``_asked`` gives; memoised while the loop lives."""
    return tuple(dict.fromkeys(_asked(loop)))


def _asked(loop: m.For | m.While) -> Iterator[str]:
    """The names in the tests that end a loop, and in what gives the variables there their values."""
    held = list(own_statements(loop.body))
    tests = [one.test for one in held if isinstance(one, m.If) and any(map(_ends, one.body))]
    if isinstance(loop, m.While):
        tests.append(loop.test)
    names = [one.id for one in nodes(tests) if isinstance(one, m.Name)]
    yield from names
    for stmt in held:
        if isinstance(stmt, m.Assign) and isinstance(stmt.value, m.Call):
            targets = [one.id for one in nodes(stmt.targets) if isinstance(one, m.Name)]
            if isinstance(stmt.value.func, m.Name) and not set(names).isdisjoint(targets):
                yield stmt.value.func.id


def ends_by(run: RunView, loop: Loop) -> tuple[str, ...]:
    """The variables by which a loop says when to end, and which begin with a number: it counts one of them, sets that
    anew in some rounds, and compares others to know in which."""
    known = _counting.get(id(loop.stmt))
    if known is None or known[0] is not loop.stmt:
        known = _counting[id(loop.stmt)] = (loop.stmt, frozenset(_counters(loop.stmt)))
    return tuple(sorted(_begun(run, loop, set(known[1])))) if known[1] else ()


def _counters(loop: m.For | m.While) -> set[str]:
    held = list(own_statements(loop.body))
    counted = {name for one in held for name in _steps(one)}
    asked = names_in([one.test for one in held if isinstance(one, m.If) and any(map(_ends, one.body))])
    for one in held:
        if isinstance(one, m.If) and any(_sets_flag(stmt) in asked for stmt in one.body):
            asked |= names_in([one.test])
    found = set[str]()
    for one in held if counted & asked else ():
        if isinstance(one, m.If):
            for block in (one.body, one.orelse):
                numbers = {name for stmt in block for name in set_to_number(stmt)} & counted & asked
                compared = names_in([one.test]) & {name for stmt in block for name in stored_names(stmt)}
                found |= numbers | (compared if numbers else set())
            found |= _bad_rounds(one, counted & asked, held)
    return found


def _bad_rounds(test: m.If, counted: set[str], held: list[m.Stmt]) -> set[str]:
    """What a loop counts in the rounds that are no better than the best one, and that one: ``if loss < best: best = loss``,
    ``else: bad += 1``; the comparison may be kept in a variable."""
    blocks = [*test.body, *test.orelse]
    steps = {name for stmt in blocks for name in _steps(stmt)} & counted
    if not steps:
        return steps
    flag = name_of(test.test.operand if isinstance(test.test, m.Unary) else test.test)
    kept = (one.value for one in held if flag and isinstance(one, m.Assign) and flag in stored_names(one))
    compared = names_in([one for one in (test.test, *kept) if compares(one)])
    compared &= {name for stmt in blocks for name in stored_names(stmt)} - steps
    return steps | compared if compared else compared


def _steps(stmt: m.Stmt) -> set[str]:
    """What a statement counts in steps of a number that is written there: ``n += 1``, ``n = n + 1``."""
    if isinstance(stmt, m.AugAssign):
        return stored_names(stmt) if isinstance(stmt.value, m.Const) else set()
    value = stmt.value if isinstance(stmt, m.Assign) else None
    if isinstance(value, m.BinOp) and value.op in ("+", "-") and isinstance(value.right, m.Const):
        return stored_names(stmt) & {name_of(value.left)}
    return set()


def _begun(run: RunView, loop: Loop, found: set[str]) -> set[str]:
    """Those of what a loop names that begins with numbers."""
    own = {one for one in found if one.isidentifier()}
    return begun(run, loop, own) | begun_outside(run, loop, found - own)


def best_of(run: RunView, loop: Loop, call: Any) -> set[str]:
    """The variables that a loop compares to know whether to save something, which begin with a number and which it gives
    another one where it saves: the best score so far. ``call`` saves it, or what runs in that place does."""
    at, frame, found = call.start, run.frame, set[str]()
    while frame is not loop.frame:
        shared = {name for one in frame.body if isinstance(one, m.ScopeDecl) for name in one.names}
        names = _best_in(frame.body, at)
        found |= {name for name in names if not name.isidentifier() or name in shared}
        if frame.caller is None or frame.call_site is None:
            return set()
        at, frame = frame.call_site.start, frame.caller
    elsewhere = begun_outside(run, loop, found) if found else found
    return elsewhere | _begun(run, loop, _best_in(loop.stmt.body, at))


def _best_in(body: list[m.Stmt], at: int | None) -> set[str]:
    """What a block compares to know whether to do the call at a place, and assigns where it does."""
    found = set[str]()
    for one in own_statements(body):
        if isinstance(one, m.If) and any(
            isinstance(part, m.Call) and part.start == at for part in nodes(one.body)
        ):
            if compares(one.test):
                stored = {name for stmt in one.body for name in stored_names(stmt)}
                found |= names_in([one.test]) & (stored | _replaced_by_better(one, body))
            elif isinstance(one.test, m.Name):
                found |= _compared_for(one, one.test.id, body)
    return found


def _compared_for(flag: m.If, name: str, body: Iterable[m.Stmt]) -> set[str]:
    """The variables that a loop compares to set a flag, and assigns where that is set, or from what they were:
    ``is_best = loss < best; best = min(loss, best)``."""
    given = [stmt for stmt in own_statements(body) if isinstance(stmt, m.Assign)]
    tests = [stmt.value for stmt in given if name in stored_names(stmt) and compares(stmt.value)]
    kept = {one for stmt in given for one in stored_names(stmt) if one in names_in([stmt.value])}
    kept |= {one for stmt in flag.body for one in stored_names(stmt)}
    return names_in(tests) & kept


def _replaced_by_better(test: m.If, body: Iterable[m.Stmt]) -> set[str]:
    """The variables of a test that a loop assigns elsewhere by the same comparison: ``best = max(best, score)``."""
    names, found = names_in([test.test]), set[str]()
    for stmt in own_statements(body):
        if isinstance(stmt, m.Assign):
            value = stmt.value
            chooses = isinstance(value, m.Call) and called_name(value) in _CHOOSING
            chooses = chooses or (isinstance(value, m.IfExp) and compares(value.test))
            if chooses and names <= names_in([value]):
                found |= set(stored_names(stmt))
        elif isinstance(stmt, m.If) and stmt is not test and compares(stmt.test):
            if names_in([stmt.test]) == names:
                found |= {name for part in stmt.body for name in stored_names(part)}
    return found


_CHOOSING = frozenset({"max", "min"})


def compares(test: m.Expr) -> bool:
    """Whether a test is that one number is greater than another."""
    return any(isinstance(one, m.Compare) and not _ORDERING.isdisjoint(one.ops) for one in nodes([test]))


_ORDERING = frozenset({"<", ">", "<=", ">="})


def _sets_flag(stmt: m.Stmt) -> str:
    """The variable that a statement sets to true."""
    target = stmt.targets[0] if isinstance(stmt, m.Assign) and len(stmt.targets) == 1 else None
    true = isinstance(stmt, m.Assign) and isinstance(stmt.value, m.Const) and stmt.value.value is True
    return target.id if true and isinstance(target, m.Name) else ""


def own_statements(body: Iterable[m.Stmt]) -> Iterator[m.Stmt]:
    """The statements of a loop, without those of loops in it."""
    for stmt in body:
        yield stmt
        if not isinstance(stmt, (m.For, m.While)):
            for name in ("body", "orelse", "final"):
                yield from own_statements(getattr(stmt, name, ()))


def _ends(stmt: m.Stmt) -> bool:
    return isinstance(stmt, m.Return) or (isinstance(stmt, m.Jump) and stmt.kind == "break")
