"""How the value of an expression is used in the function it stands in: by syntax alone, for order rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

import msgspec

from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memoized

_SIMPLE = frozenset(
    [
        m.AnnAssign,
        m.Assert,
        m.Assign,
        m.AugAssign,
        m.ClassDef,
        m.Delete,
        m.ExprStmt,
        m.FunctionDef,
        m.Import,
        m.ImportFrom,
        m.Jump,
        m.Raise,
        m.Return,
        m.ScopeDecl,
    ]
)
"""Statements in which no others stand."""
_holding: dict[type[msgspec.Struct], tuple[str, ...]] = {}


def children(node: Any) -> Iterator[Any]:
    """The nodes directly below a node, in field order."""
    fields = _holding.get(type(node))
    for name in fields if fields is not None else _note_holding(type(node)):
        value = getattr(node, name)
        if isinstance(value, msgspec.Struct):
            yield value
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, msgspec.Struct):
                    yield item


def _note_holding(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """The fields of a kind of node that may hold others; most fields are names and places."""
    found = tuple(one.name for one in msgspec.structs.fields(kind) if _may_hold(one.type))
    _holding[kind] = found
    return found


def _may_hold(hint: Any) -> bool:
    if isinstance(hint, type) and not get_args(hint):
        return issubclass(hint, (msgspec.Struct, list))
    return any(_may_hold(one) for one in get_args(hint))


@memoized
def parents(function: m.Function) -> dict[int, Any]:
    """Parent of every node in a function's body, by id; memoised while the function lives."""
    found: dict[int, Any] = {}
    stack: list[Any] = list(function.body)
    while stack:
        node = stack.pop()
        for child in children(node):
            found[id(child)] = node
            stack.append(child)
    return found


@memoized
def variables(function: m.Function) -> dict[str, list[m.Name]]:
    """Where the body of a function names each variable, or something of it; memoised while the function lives."""
    found: dict[str, list[m.Name]] = {}
    for node in nodes(function.body):
        if isinstance(node, m.Name):
            found.setdefault(node.id.partition(".")[0], []).append(node)
    return found


@memoized
def tries(loop: m.For | m.While) -> tuple[m.Try, ...]:
    """The ``try`` statements in the body of a loop; memoised while the loop lives."""
    return tuple(node for node in nodes(loop.body) if isinstance(node, m.Try))


def loop_elements(target: m.Expr, over: m.Expr) -> Iterator[tuple[m.Name, m.Expr]]:
    """The variables that stand for the elements of something in a loop, with what these are elements of: of ``for k, (a, b)
    in enumerate(zip(x, y))`` those are ``a`` with ``x`` and ``b`` with ``y``."""
    called = over.func.id if isinstance(over, m.Call) and isinstance(over.func, m.Name) else ""
    given = over.args if isinstance(over, m.Call) else []
    if isinstance(target, m.Seq) and called == "enumerate" and len(target.elts) == 2 and given:
        yield from loop_elements(target.elts[1], given[0])
    elif isinstance(target, m.Seq) and called == "zip" and len(target.elts) == len(given):
        for part, one in zip(target.elts, given, strict=True):
            yield from loop_elements(part, one)
    elif isinstance(target, m.Name) and called not in ("enumerate", "zip"):
        yield target, over


def statements(body: Sequence[m.Stmt]) -> Iterator[m.Stmt]:
    """Some statements and all those in them, in source order within each block (not those of functions)."""
    for stmt in body:
        yield stmt
        if type(stmt) in _SIMPLE:
            continue
        for name in ("body", "orelse", "final"):
            yield from statements(getattr(stmt, name, ()))
        for name in ("handlers", "cases"):
            for part in getattr(stmt, name, ()):
                yield from statements(part.body)


def nodes(body: Iterable[Any]) -> Iterator[Any]:
    """Some nodes and all those below them, in no particular order."""
    stack: list[Any] = list(body)
    while stack:
        node = stack.pop()
        yield node
        # As `children` does, without a generator for each node.
        fields = _holding.get(type(node))
        for name in fields if fields is not None else _note_holding(type(node)):
            value = getattr(node, name)
            if isinstance(value, msgspec.Struct):
                stack.append(value)
            elif isinstance(value, list):
                stack += [item for item in value if isinstance(item, msgspec.Struct)]


def functions_around(functions: Sequence[m.Function], at: int) -> list[int]:
    """The functions and methods around a place of a file by their numbers, the outermost first; not the module's body."""
    around = [
        (one.start, index)
        for index, one in enumerate(functions)
        if index and one.start <= at < one.end_of_body
    ]
    return [index for _, index in sorted(around)]


def call_at(body: list[m.Stmt], start: int, end: int) -> m.Call | None:
    """The call among some statements that stands between two offsets."""
    return _calls(body).get((start, end))


@memoized
def _calls(body: list[m.Stmt]) -> dict[tuple[int, int], m.Call]:
    found: dict[tuple[int, int], m.Call] = {}
    for one in nodes(body):
        if isinstance(one, m.Call):
            found.setdefault((one.start, one.end), one)
    return found


@memoized
def conditionals(body: list[m.Stmt]) -> tuple[m.If, ...]:
    """The ``if`` statements among some statements; memoised while they live."""
    return tuple(one for one in nodes(body) if isinstance(one, m.If))


def alike(a: Any, b: Any) -> bool:
    """Whether two expressions are written with the same words, wherever they stand."""
    if type(a) is not type(b):
        return False
    if not isinstance(a, msgspec.Struct):
        return bool(a == b)
    for name in a.__struct_fields__:
        if name in ("start", "end"):
            continue
        left, right = getattr(a, name), getattr(b, name)
        if isinstance(left, list):
            if len(left) != len(right) or not all(alike(*pair) for pair in zip(left, right, strict=True)):
                return False
        elif not alike(left, right):
            return False
    return not isinstance(a, (m.Other, m.Bytes, m.Lambda))


def is_none(node: Any) -> bool:
    """Whether an expression is written as ``None``."""
    return isinstance(node, m.Const) and node.value is None


def whole_number(node: Any) -> int | None:
    """The whole number that an expression is written as; None where it is none."""
    return node.value if isinstance(node, m.Const) and type(node.value) is int else None


def called_name(node: Any) -> str:
    """Last component of the called name, empty when it has none."""
    if isinstance(node, m.Call):
        if isinstance(node.func, m.Name):
            return node.func.id.rpartition(".")[2]
        if isinstance(node.func, m.Attr):
            return node.func.name.rpartition(".")[2]
    return ""


def receiver(node: m.Call) -> str:
    """Dotted name that a method is called on (``files`` of ``files.sort()``), empty when there is none."""
    return node.func.id.rpartition(".")[0] if isinstance(node.func, m.Name) else ""
