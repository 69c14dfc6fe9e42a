"""On which of its variables it depends what a function returns: by syntax alone."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any, NamedTuple

from d9mlint.ir import nodes as m
from d9mlint.ir.forms import asked_if_none
from d9mlint.ir.scopes import own_names
from d9mlint.ir.traversal import children, nodes

_UNFOLLOWED = (m.FunctionDef, m.ClassDef, m.ScopeDecl, m.Match, m.Try, m.Walrus)
"""What may have a result depend on more than what is computed for it, and where."""


class Read(NamedTuple):
    """On which variables a result depends: on what they hold, or only on whether that is None."""

    held: set[str]
    if_none: set[str]


def read_by_result(function: m.Function, part: int | None = None) -> Read | None:
    """The variables of a function from which is computed what it returns, or the item of the number ``part`` of it, and
    those that decide what is returned; None where that is not followed."""
    if any(isinstance(one, _UNFOLLOWED) for one in nodes(function.body)):
        return None
    own = own_names(function)
    read = Read(set(), set())
    before = -1
    while len(read.held) > before:
        before = len(read.held)
        _read(function.body, read, own, part)
    return Read(read.held, read.if_none - read.held)


def returned(value: m.Expr | None, part: int | None) -> m.Expr | None:
    """What a ``return`` statement gives under a number: the whole where its elements are not written out."""
    if part is None or not isinstance(value, m.Seq) or any(isinstance(one, m.Star) for one in value.elts):
        return value
    return value.elts[part] if -len(value.elts) <= part < len(value.elts) else value


def _read(body: Iterable[m.Stmt], read: Read, own: frozenset[str], part: int | None) -> bool:
    """Add what statements read for the result; whether it depends on any of them."""
    matters = False
    for stmt in body:
        found: list[Any] = []
        if isinstance(stmt, m.Return):
            found = [returned(stmt.value, part)]
            matters = True
        elif isinstance(stmt, (m.Jump, m.Raise)):
            matters = True
        elif isinstance(stmt, (m.Assign, m.AnnAssign, m.AugAssign)):
            targets = stmt.targets if isinstance(stmt, m.Assign) else [stmt.target]
            if not read.held.isdisjoint(_roots(targets)):
                found = [stmt.value, *targets]
        elif isinstance(stmt, m.ExprStmt):
            # A call may change what it is given.
            if not read.held.isdisjoint(_roots(_handed(stmt.value))):
                found = [stmt.value]
        elif isinstance(stmt, (m.If, m.While)):
            inside = _read(stmt.body, read, own, part)
            if _read(stmt.orelse, read, own, part) or inside:
                found = [stmt.test]
        elif isinstance(stmt, m.For):
            inside = _read(stmt.body, read, own, part)
            if (
                _read(stmt.orelse, read, own, part)
                or inside
                or not read.held.isdisjoint(_roots([stmt.target]))
            ):
                found = [stmt.iter]
        elif isinstance(stmt, m.With):
            inside = _read(stmt.body, read, own, part)
            if inside or not read.held.isdisjoint(_roots([one.target for one in stmt.items])):
                found = [one.context for one in stmt.items]
        if found:
            matters = True
            # A call changes none of the modules and functions that it names.
            given = [one for one in found if one is not None]
            tested = {id(one) for test in nodes(given) if (one := asked_if_none(test)) is not None}
            read.held.update(_roots(found, tested) & own)
            read.if_none.update(_roots(found) & own)
    return matters


def _handed(expr: Any) -> Iterator[Any]:
    """The names in an expression that stand for what a call in it may change: what an operator or a text is computed from
    is not handed on."""
    stack: list[Any] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, m.Name):
            yield node
        elif not isinstance(node, (m.BinOp, m.Unary, m.Compare, m.FString)):
            stack.extend(children(node))


def _roots(expressions: Iterable[Any], without: Container[int] = ()) -> set[str]:
    """The variables in expressions, but for variables ``without``, by the ids of their nodes."""
    given = [one for one in expressions if one is not None]
    names = (one for one in nodes(given) if isinstance(one, m.Name) and id(one) not in without)
    return {one.id.partition(".")[0] for one in names}
