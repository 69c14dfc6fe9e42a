"""On which of its variables it depends what a function returns: by syntax alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import own_names
from d9mlint.ir.traversal import children, nodes

_UNFOLLOWED = (m.FunctionDef, m.ClassDef, m.ScopeDecl, m.Match, m.Try, m.Walrus)
"""What may have a result depend on more than what is computed for it, and where."""


def read_by_result(function: m.Function, part: int | None = None) -> set[str] | None:
    """The variables of a function from which is computed what it returns, or the item of the number ``part`` of it, and
    those that decide what is returned; None where that is not followed."""
    if any(isinstance(one, _UNFOLLOWED) for one in nodes(function.body)):
        return None
    own = own_names(function)
    read: set[str] = set()
    before = -1
    while len(read) > before:
        before = len(read)
        _read(function.body, read, own, part)
    return read


def returned(value: m.Expr | None, part: int | None) -> m.Expr | None:
    """What a ``return`` statement gives under a number: the whole where its elements are not written out."""
    if part is None or not isinstance(value, m.Seq) or any(isinstance(one, m.Star) for one in value.elts):
        return value
    return value.elts[part] if -len(value.elts) <= part < len(value.elts) else value


def _read(body: Iterable[m.Stmt], read: set[str], own: frozenset[str], part: int | None) -> bool:
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
            if not read.isdisjoint(_roots(targets)):
                found = [stmt.value, *targets]
        elif isinstance(stmt, m.ExprStmt):
            # A call may change what it is given.
            if not read.isdisjoint(_roots(_handed(stmt.value))):
                found = [stmt.value]
        elif isinstance(stmt, (m.If, m.While)):
            inside = _read(stmt.body, read, own, part)
            if _read(stmt.orelse, read, own, part) or inside:
                found = [stmt.test]
        elif isinstance(stmt, m.For):
            inside = _read(stmt.body, read, own, part)
            if _read(stmt.orelse, read, own, part) or inside or not read.isdisjoint(_roots([stmt.target])):
                found = [stmt.iter]
        elif isinstance(stmt, m.With):
            inside = _read(stmt.body, read, own, part)
            if inside or not read.isdisjoint(_roots([one.target for one in stmt.items])):
                found = [one.context for one in stmt.items]
        if found:
            matters = True
            # A call changes none of the modules and functions that it names.
            read |= _roots(found) & own
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


def _roots(expressions: Iterable[Any]) -> set[str]:
    given = [one for one in expressions if one is not None]
    return {one.id.partition(".")[0] for one in nodes(given) if isinstance(one, m.Name)}
