"""``match`` statements and their patterns."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from d9mlint.frontend.cursor import STMT, Cursor, Node
from d9mlint.frontend.lower_def import block
from d9mlint.frontend.lower_expr import lower
from d9mlint.ir.nodes import Case, Const, Expr, Match, Name, Stmt

# A pattern's function takes its tokens, adds the names it binds, and returns the values it stands for
# (none for patterns that are not made of values).
_PATTERN: dict[type, Callable[[Cursor, Node, list[str]], list[Expr]]] = {}
_VALUES = frozenset({cst.MatchValue, cst.MatchSingleton})


def _match(c: Cursor, node: Node, out: list[Stmt]) -> None:
    first = c.word("match")
    subject = lower(c, node.subject)
    start, end = c.starts[first], c.ends[c.i - 1]
    c.extent(start, end)
    out.append(Match(subject, [_case(c, n) for n in node.cases], start, end))


def _case(c: Cursor, node: Node) -> Case:
    first = c.word("case")
    binds: list[str] = []
    values = _pattern(c, node.pattern, binds)
    guard = None
    if node.guard is not None:
        c.word("if")
        guard = lower(c, node.guard)
    c.extent(c.starts[first], c.ends[c.i - 1])
    catches_all = node.pattern.__class__ is cst.MatchAs and node.pattern.pattern is None
    return Case(values, binds, catches_all and guard is None, guard, block(c, node.body))


def _pattern(c: Cursor, node: Node, binds: list[str]) -> list[Expr]:
    if node.__class__ in _VALUES:
        # Its parentheses are those of its value, which takes them.
        return _value(c, node)
    c.i += len(getattr(node, "lpar", ()))
    values = _PATTERN[node.__class__](c, node, binds)
    c.i += len(getattr(node, "rpar", ()))
    return values


def _bind(c: Cursor, name: Node | None, binds: list[str]) -> None:
    if name is None:
        c.word("_")
    else:
        binds.append(name.value)
        c.i += len(name.lpar)
        c.word(name.value)
        c.i += len(name.rpar)


def _value(c: Cursor, node: Node) -> list[Expr]:
    value = lower(c, node.value)
    return [value] if isinstance(value, (Const, Name)) else []


def _sequence(c: Cursor, node: Node, binds: list[str]) -> list[Expr]:
    bracketed = getattr(node, "lbracket", None) is not None
    if bracketed:
        c.word("[")
    for element in node.patterns:
        _star(c, element, binds) if element.__class__ is cst.MatchStar else _pattern(c, element.value, binds)
    if bracketed:
        c.word("]")
    return []


def _star(c: Cursor, node: Node, binds: list[str]) -> list[Expr]:
    _bind(c, node.name, binds)
    return []


def _mapping(c: Cursor, node: Node, binds: list[str]) -> list[Expr]:
    c.word("{")
    for element in node.elements:
        lower(c, element.key)
        _pattern(c, element.pattern, binds)
    if node.rest is not None:
        _bind(c, node.rest, binds)
    c.word("}")
    return []


def _class(c: Cursor, node: Node, binds: list[str]) -> list[Expr]:
    lower(c, node.cls)
    c.word("(")
    for element in node.patterns:
        _pattern(c, element.value, binds)
    for element in node.kwds:
        c.word(element.key.value)
        _pattern(c, element.pattern, binds)
    c.word(")")
    return []


def _as(c: Cursor, node: Node, binds: list[str]) -> list[Expr]:
    if node.pattern is None:
        _bind(c, node.name, binds)
        return []
    values = _pattern(c, node.pattern, binds)
    if node.name is not None:
        c.word("as")
        _bind(c, node.name, binds)
    return values


def _or(c: Cursor, node: Node, binds: list[str]) -> list[Expr]:
    """All alternatives' values, or none where one of them is more than a value."""
    values: list[Expr] = []
    complete = True
    for element in node.patterns:
        found = _pattern(c, element.pattern, binds)
        complete = complete and bool(found)
        values.extend(found)
    return values if complete else []


_PATTERN.update(
    {
        cst.MatchList: _sequence,
        cst.MatchTuple: _sequence,
        cst.MatchMapping: _mapping,
        cst.MatchClass: _class,
        cst.MatchAs: _as,
        cst.MatchOr: _or,
    }
)
STMT[cst.Match] = _match
