"""Objects and numbers of the program that say when a loop ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memo
from d9mlint.ir.traversal import called_name, nodes, statements

if TYPE_CHECKING:
    from d9mlint.interp.events import Loop
    from d9mlint.interp.view import RunView

_CALLED = "__call__"
_counting: dict[int, tuple[m.For | m.While, tuple[str, ...]]] = memo()
_known: dict[int, tuple[m.For | m.While, tuple[str, ...]]] = memo()


def stoppers(run: RunView, loop: Loop) -> Iterator[tuple[v.Inst, list[str]]]:
    """The objects that a loop asks whether it ends, with the methods of them that it calls."""
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
        yield one, [method for method in dict.fromkeys(called) if "." not in method]


def _names(loop: m.For | m.While) -> tuple[str, ...]:
    """What ``_asked`` gives; memoised while the loop lives."""
    known = _known.get(id(loop))
    if known is None or known[0] is not loop:
        known = _known[id(loop)] = (loop, tuple(dict.fromkeys(_asked(loop))))
    return known[1]


def _asked(loop: m.For | m.While) -> Iterator[str]:
    """The names in the tests that end a loop, and in what gives the variables there their values."""
    held = list(_own(loop.body))
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


def ends_by(loop: Loop) -> tuple[str, ...]:
    """The variables by which a loop says when to end, and which begin with a number: it counts one of them, sets that
    anew in some rounds, and compares others to know in which."""
    known = _counting.get(id(loop.stmt))
    if known is None or known[0] is not loop.stmt:
        names = sorted(_counters(loop.frame.function, loop.stmt))
        known = _counting[id(loop.stmt)] = (loop.stmt, tuple(names))
    return known[1]


def _counters(function: m.Function, loop: m.For | m.While) -> set[str]:
    held = list(_own(loop.body))
    counted = {
        one.target.id
        for one in held
        if isinstance(one, m.AugAssign) and isinstance(one.target, m.Name) and isinstance(one.value, m.Const)
    }
    asked = _variables([one.test for one in held if isinstance(one, m.If) and any(map(_ends, one.body))])
    for one in held:
        if isinstance(one, m.If) and any(_sets_flag(stmt) in asked for stmt in one.body):
            asked |= _variables([one.test])
    found = set[str]()
    for one in held if counted & asked else ():
        if isinstance(one, m.If):
            for block in (one.body, one.orelse):
                numbers = {name for stmt in block for name in set_to_number(stmt)} & counted & asked
                compared = _variables([one.test]) & {name for stmt in block for name in _stored(stmt)}
                found |= numbers | (compared if numbers else set())
    return begun(function, loop, found)


def best_of(run: RunView, loop: Loop, call: Any) -> set[str]:
    """The variables that a loop compares to know whether to save something, which begin with a number and which it gives
    another one where it saves: the best score so far. ``call`` saves it, or what runs in that place does."""
    at: int | None = call.start
    for frame in run.stack():
        if frame.caller is loop.frame and frame.call_site is not None:
            at = frame.call_site.start
    found = set[str]()
    for one in _own(loop.stmt.body):
        if isinstance(one, m.If) and any(
            isinstance(part, m.Call) and part.start == at for part in nodes(one.body)
        ):
            if _compares(one.test):
                found |= _variables([one.test]) & {name for stmt in one.body for name in _stored(stmt)}
            elif isinstance(one.test, m.Name):
                found |= _compared_for(one, one.test.id, loop.stmt.body)
    return begun(loop.frame.function, loop.stmt, found) if found else found


def _compared_for(flag: m.If, name: str, body: Iterable[m.Stmt]) -> set[str]:
    """The variables that a loop compares to set a flag, and assigns where that is set, or from what they were:
    ``is_best = loss < best; best = min(loss, best)``."""
    given = [stmt for stmt in _own(body) if isinstance(stmt, m.Assign)]
    tests = [stmt.value for stmt in given if name in _stored(stmt) and _compares(stmt.value)]
    kept = {one for stmt in given for one in _stored(stmt) if one in _variables([stmt.value])}
    kept |= {one for stmt in flag.body for one in _stored(stmt)}
    return _variables(tests) & kept


def _compares(test: m.Expr) -> bool:
    """Whether a test is that one number is greater than another."""
    return any(isinstance(one, m.Compare) and not _ORDERING.isdisjoint(one.ops) for one in nodes([test]))


_ORDERING = frozenset({"<", ">", "<=", ">="})


def begun(function: m.Function, loop: m.For | m.While, found: set[str]) -> set[str]:
    """Those of some variables that a function begins with numbers before a loop, and with nothing else."""
    inside = {id(stmt) for stmt in statements([loop])}
    repeated = {
        id(part)
        for stmt in statements(function.body)
        if isinstance(stmt, (m.For, m.While))
        for part in statements([stmt])
    }
    first = set[str]()
    for stmt in statements(function.body):
        if id(stmt) not in inside:
            stored = set(_stored(stmt))
            first |= stored
            # What something else begins it with may be what was saved.
            found -= stored - (set[str]() if id(stmt) in repeated else {*set_to_number(stmt)})
    return found & first


def _variables(parts: Iterable[Any]) -> set[str]:
    return {one.id for one in nodes(parts) if isinstance(one, m.Name) and "." not in one.id}


def _stored(stmt: m.Stmt) -> Iterator[str]:
    """The variables that a statement assigns."""
    targets = stmt.targets if isinstance(stmt, m.Assign) else []
    if isinstance(stmt, (m.AnnAssign, m.AugAssign)):
        targets = [stmt.target]
    for one in targets:
        yield from _variables([one])


def set_to_number(stmt: m.Stmt) -> Iterator[str]:
    """The variables that an assignment sets to numbers that are written there, also as ``float("inf")`` and ``np.inf``."""
    if not isinstance(stmt, m.Assign):
        return
    for target in stmt.targets:
        pairs: list[tuple[m.Expr, m.Expr]] = [(target, stmt.value)]
        if isinstance(target, m.Seq) and isinstance(stmt.value, m.Seq):
            pairs = list(zip(target.elts, stmt.value.elts, strict=False))
        for one, value in pairs:
            if isinstance(one, m.Name) and _is_number(value):
                yield one.id


def _is_number(value: Any) -> bool:
    if isinstance(value, m.Unary):
        value = value.operand
    if isinstance(value, m.Call):
        return called_name(value) == "float" and all(isinstance(one, m.Const) for one in value.args)
    if isinstance(value, m.Name):
        return value.id.rpartition(".")[2] == "inf"
    return isinstance(value, m.Const) and type(value.value) in (int, float)


def _sets_flag(stmt: m.Stmt) -> str:
    """The variable that a statement sets to true."""
    target = stmt.targets[0] if isinstance(stmt, m.Assign) and len(stmt.targets) == 1 else None
    true = isinstance(stmt, m.Assign) and isinstance(stmt.value, m.Const) and stmt.value.value is True
    return target.id if true and isinstance(target, m.Name) else ""


def _own(body: Iterable[m.Stmt]) -> Iterator[m.Stmt]:
    """The statements of a loop, without those of loops in it."""
    for stmt in body:
        yield stmt
        if not isinstance(stmt, (m.For, m.While)):
            for name in ("body", "orelse", "final"):
                yield from _own(getattr(stmt, name, ()))


def _ends(stmt: m.Stmt) -> bool:
    return isinstance(stmt, m.Return) or (isinstance(stmt, m.Jump) and stmt.kind == "break")
