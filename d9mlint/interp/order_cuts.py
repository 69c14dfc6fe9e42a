"""Loops that end after so many rounds, ``if index == 10: break``, or with the first element that a table has: which elements
they deal with depends on the order. So does which elements go where in a loop that asks for the number of its round:
``if index < 80: train.append(name)``, and otherwise ``test.append(name)``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.order_kinds import is_text
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memo, memoized
from d9mlint.ir.growing import GROWING
from d9mlint.ir.scopes import conjuncts, target_names
from d9mlint.ir.traversal import alike, called_name, nodes, receiver, statements

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.orders import Loop

_LIMITS = frozenset({"==", ">=", ">"})
_ADDING = frozenset({"append", "add"})
_known: dict[int, tuple[object, frozenset[int]]] = memo()


def left(interp: Interp, stmt: m.Jump | m.Return) -> None:
    """A loop is left. One that an option ends early counts when the option is given."""
    loop = interp.orders.loops[-1] if interp.orders.loops else None
    if (
        loop is not None
        and loop.env is interp.frame.env
        and not interp.state.aside
        and (stmt.start in loop.cuts or _is_first_match(interp, loop, stmt))
    ):
        interp.orders.decide(loop.order)


def _is_first_match(interp: Interp, loop: Loop, stmt: m.Jump | m.Return) -> bool:
    """Whether a loop ends with the first element that a table has, which may have several of them."""
    test = _first_matches(loop.stmt).get(stmt.start) if loop.stmt is not None else None
    if test is None or loop.stmt is None:
        return False
    used = _names([stmt.value]) if isinstance(stmt, m.Return) else _kept(interp, loop.stmt, stmt)
    element, table = test.left, test.comparators[0]
    if not used & loop.taken or not _names([element]) & loop.taken or _names([table]) & loop.assigned:
        return False
    value = interp.eval(table) if isinstance(table, m.Name) else v.UNKNOWN
    if isinstance(value, v.Items) and not value.open and len(value.elts) < _SEVERAL:
        return False
    if value is v.UNKNOWN or (isinstance(value, v.Obj) and value.api.startswith("?")):
        # In a text, which may be a name, one of several words is looked for.
        return any(
            isinstance(one, m.Subscript) and alike(one.value, table) and alike(one.index, element)
            for one in nodes(loop.stmt.body)
        )
    return not is_text(interp, value, table)


_SEVERAL = 2


def shares_out(interp: Interp, test: m.Compare, number: m.Expr) -> bool:
    """Whether the elements of a loop go to different places, or some of them to one, as a test of the number of its round
    says."""
    stmt = interp.statement
    if not isinstance(stmt, m.If) or not _asks_for_share(test, number):
        return False
    if not any(one is test for one in nodes([stmt.test])):
        return False
    names: set[str] = set()
    for loop in interp.orders.loops:
        if loop.stmt is not None and loop.env is interp.frame.env:
            names |= loop.taken
            target_names(loop.stmt.target, names)
    here, there = (_placed(interp, body, names) for body in (stmt.body, stmt.orelse))
    if any(called_name(x) == called_name(y) and not alike(x, y) for x in here for y in there):
        return True
    counted = _names([number])
    return any(
        _names([*one.args]) & names - counted and not any(alike(one, x) for x in there) for one in here
    )


def _asks_for_share(test: m.Compare, number: m.Expr) -> bool:
    """Whether a test of a number holds for some of the rounds: not for the first one alone, or all but that."""
    if len(test.ops) != 1:
        return False
    limit = test.comparators[0] if test.left is number else test.left
    if isinstance(number, m.BinOp) and number.op == "%":
        return True
    first = isinstance(limit, m.Const) and limit.value in (0, 1)
    return test.ops[0] in _SIZES and not first


_SIZES = frozenset({"<", "<=", ">", ">="})


def _placed(interp: Interp, body: list[m.Stmt], names: set[str]) -> list[m.Call]:
    """The calls in some statements that put something made of an element into a container, or that copy its file."""
    return [
        one
        for one in nodes(body)
        if isinstance(one, m.Call)
        and _names([*one.args]) & names
        and (called_name(one) in GROWING or _is_sink(interp, one))
    ]


def _is_sink(interp: Interp, call: m.Call) -> bool:
    called = interp.eval(call.func) if isinstance(call.func, m.Name) else None
    entry = interp.kb.order(interp.kb.canonical(called.name)) if isinstance(called, v.Ext) else None
    return entry is not None and entry.role == "sink"


def _names(parts: list[m.Expr | None]) -> set[str]:
    return {one.id.partition(".")[0] for one in nodes([x for x in parts if x]) if isinstance(one, m.Name)}


def _kept(interp: Interp, loop: m.For, stmt: m.Jump) -> set[str]:
    """The names that something keeps when a loop is broken off: what is assigned before that, from them, and those that are
    read behind the loop."""
    function = interp.frame.func
    body = function.fn.body if function is not None else interp.frame.file.facts.functions[0].body
    last = max(one.end for one in statements(loop.body))
    kept = {one.id.partition(".")[0] for one in nodes(body) if isinstance(one, m.Name) and one.start > last}
    for one in nodes(loop.body):
        if isinstance(one, m.Assign) and one.start < stmt.start and _assigned(one) & kept:
            kept |= _names([one.value])
    return kept


def _assigned(stmt: m.Assign) -> set[str]:
    names: set[str] = set()
    for target in stmt.targets:
        target_names(target, names)
    return names


@memoized
def _first_matches(stmt: m.For) -> dict[int, m.Compare]:
    """Where the statements start that end a loop once an element is in a collection, with that test."""
    return dict(_matches(stmt.body, None))


def _matches(body: list[m.Stmt], passed: m.Compare | None) -> Iterator[tuple[int, m.Compare]]:
    for one in body:
        if isinstance(one, (m.Return, m.Jump)):
            if passed is not None and not (isinstance(one, m.Jump) and one.kind == "continue"):
                yield one.start, passed
            return
        if not isinstance(one, m.If):
            continue
        tests = conjuncts(one.test)
        if any(isinstance(x, m.Compare) and "==" in x.ops for x in tests):
            # There may be one such element only.
            yield from _matches(one.orelse, passed)
            continue
        yield from _matches(one.body, _member(tests, "in") or passed)
        yield from _matches(one.orelse, _member([one.test], "not in") or passed)
        if one.body and isinstance(one.body[-1], m.Jump) and one.body[-1].kind == "continue":
            passed = _member([one.test], "not in") or passed


def _member(tests: list[m.Expr], op: str) -> m.Compare | None:
    return next((one for one in tests if isinstance(one, m.Compare) and one.ops == [op]), None)


def cuts(stmt: m.For, enumerated: bool) -> frozenset[int]:
    """Where the statements start that end a loop after so many rounds, or with so many elements taken. ``enumerated`` is
    whether the first variable of the loop counts its rounds."""
    known = _known.get(id(stmt))
    if known is None or known[0] is not stmt:
        known = _known[id(stmt)] = (stmt, frozenset(_found(stmt, enumerated)))
    return known[1]


def _found(stmt: m.For, enumerated: bool) -> Iterator[int]:
    target = stmt.target
    elements: set[str] = set()
    target_names(target, elements)
    indexes: set[str] = set()
    if enumerated and isinstance(target, m.Seq) and target.elts and isinstance(target.elts[0], m.Name):
        indexes.add(target.elts[0].id)
    elements -= indexes
    if not any(isinstance(one, m.Name) and one.id in elements for one in nodes(stmt.body)):
        return
    rounds: set[str] = set()
    if not any(isinstance(one, m.Jump) and one.kind == "continue" for one in nodes(stmt.body)):
        # Each round adds one.
        rounds.update(
            one.target.id
            for one in stmt.body
            if isinstance(one, m.AugAssign)
            and one.op == "+"
            and isinstance(one.target, m.Name)
            and isinstance(one.value, m.Const)
            and isinstance(one.value.value, int)
        )
    grown = {
        receiver(one) for one in nodes(stmt.body) if isinstance(one, m.Call) and called_name(one) in _ADDING
    }
    for test, body in _tests(stmt.body):
        if _limits(test, indexes, rounds, grown):
            for one in body:
                if isinstance(one, m.Return) or (isinstance(one, m.Jump) and one.kind == "break"):
                    yield one.start


def _tests(body: list[m.Stmt]) -> Iterator[tuple[m.Expr, list[m.Stmt]]]:
    """The tests in the body of a loop, not those of inner loops, with what runs where they hold."""
    for one in body:
        if isinstance(one, m.If):
            yield one.test, one.body
            yield from _tests(one.body)
            yield from _tests(one.orelse)
        elif isinstance(one, m.With):
            yield from _tests(one.body)


def _limits(test: m.Expr, indexes: set[str], rounds: set[str], grown: set[str]) -> bool:
    """Whether a test asks if so many rounds are over, or so many elements kept. A number of elements may be that of all,
    unless it is a literal; an index never gets so far."""
    if not isinstance(test, m.Compare) or len(test.ops) != 1 or test.ops[0] not in _LIMITS:
        return False
    limit = test.comparators[0]
    if isinstance(test.left, m.Name):
        known = test.left.id in rounds and isinstance(limit, m.Const)
        return known or (test.left.id in indexes and isinstance(limit, (m.Const, m.Name, m.Attr)))
    return (
        isinstance(limit, m.Const)
        and isinstance(test.left, m.Call)
        and called_name(test.left) == "len"
        and len(test.left.args) == 1
        and isinstance(test.left.args[0], m.Name)
        and test.left.args[0].id in grown
    )
