"""Loops that end after so many rounds, ``if index == 10: break``: which elements they deal with depends on the order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memo
from d9mlint.ir.scopes import target_names
from d9mlint.ir.traversal import called_name, nodes, receiver

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_LIMITS = frozenset({"==", ">=", ">"})
_ADDING = frozenset({"append", "add"})
_known: dict[int, tuple[object, frozenset[int]]] = memo()


def left(interp: Interp, stmt: m.Jump | m.Return) -> None:
    """A loop is left. One that an option ends early counts when the option is given."""
    loop = interp.orders.loops[-1] if interp.orders.loops else None
    if (
        loop is not None
        and loop.env is interp.frame.env
        and stmt.start in loop.cuts
        and not interp.state.aside
    ):
        interp.orders.decide(loop.order)


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
