"""Functions, classes and their bodies: bytes until somebody looks at them, and bytes again when there are too many.

A body takes nine times as much memory when it is decoded, what is known of a function beside it three times as much, and
of a large project a run looks at a part.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from d9mlint.ir import nodes as m

MOST_KEPT = 6_000_000
"""Bytes of bodies that stay decoded from one run to the next, beside those that must."""
MOST_OPENED = 12_000_000
"""The same for the functions and classes of files, with their bodies."""

N = TypeVar("N")
T = TypeVar("T")

_ENCODER = msgspec.msgpack.Encoder()
_memos: list[dict[Any, Any]] = []
_kept = [0, 0]
"""How many of the bodies and of the files that are decoded were kept when the others were let go."""


def survey(body: Sequence[m.Stmt]) -> tuple[int, bool]:
    """How many statements a body has, with those in its blocks, and whether any of them is an import."""
    count, imports = 0, False
    blocks: list[Sequence[m.Stmt]] = [body]
    while blocks:
        block = blocks.pop()
        count += len(block)
        for stmt in block:
            if isinstance(stmt, (m.Import, m.ImportFrom)):
                imports = True
            elif isinstance(stmt, (m.If, m.For, m.While, m.With, m.Try, m.Match)):
                blocks += (getattr(stmt, name, ()) for name in ("body", "orelse", "final"))
                blocks += (one.body for name in ("handlers", "cases") for one in getattr(stmt, name, ()))
    return count, imports


def function(
    name: str,
    qualname: str,
    params: list[m.Param],
    decorators: list[m.Expr],
    body: list[m.Stmt],
    start: int,
    end: int,
    end_of_body: int,
    parent: int,
    cls: int,
    is_async: bool,
    is_generator: bool,
) -> m.Function:
    """The function with these statements. Raises what encoding them raises."""
    place = (start, end, end_of_body, parent, cls)
    return m.Function(
        name, qualname, params, decorators, packed(body), *place, is_async, is_generator, *survey(body)
    )


def module_body(body: list[m.Stmt], end: int) -> m.Function:
    """The body of a module, which ends there. Raises what encoding it raises."""
    return function("<module>", "", [], [], body, 0, 0, end, -1, -1, False, False)


def packed(body: Sequence[m.Stmt]) -> msgspec.Raw:
    """Statements as functions and classes keep them. Raises what encoding them raises."""
    return msgspec.Raw(_ENCODER.encode(body))


def definitions(functions: Sequence[m.Function], classes: Sequence[m.Class]) -> msgspec.Raw:
    """Functions and classes as facts keep them. Raises what encoding them raises."""
    return msgspec.Raw(_ENCODER.encode((functions, classes)))


def with_body(function: m.Function, body: Sequence[m.Stmt]) -> m.Function:
    """The function with another body."""
    statements, imports = survey(body)
    return msgspec.structs.replace(function, packed=packed(body), statements=statements, imports=imports)


def body_that_holds(function: m.Function, *texts: str) -> Sequence[m.Stmt]:
    """The statements of a function, or none where no name and no text in them holds one of some texts: that is seen
    without decoding them."""
    raw = bytes(function.packed)
    return function.body if any(text.encode() in raw for text in texts) else ()


def memo() -> dict[Any, Any]:
    """A memo of facts about nodes by their ids, with the nodes; it is emptied when nodes are forgotten."""
    made: dict[Any, Any] = {}
    _memos.append(made)
    return made


def memoized(ask: Callable[[N], T]) -> Callable[[N], T]:
    """A function of a node, or of a list of nodes, that keeps what it has found as long as they live."""
    known: dict[int, tuple[N, T]] = memo()

    @functools.wraps(ask)
    def answer(node: N) -> T:
        found = known.get(id(node))
        if found is None or found[0] is not node:
            found = known[id(node)] = (node, ask(node))
        return found[1]

    return answer


def forget() -> None:
    """Forget what is remembered of nodes: some of them live no longer. Bodies that are decoded now stay so as long as
    their functions and classes live."""
    for one in _memos:
        one.clear()
    m.DECODED.clear()
    m.OPENED.clear()
    _kept[:] = 0, 0


def let_go(kept: Callable[[], Collection[int]]) -> None:
    """Where too much is decoded, forget all but the functions and classes, with their bodies, of the files whose facts
    have their ids among ``kept``, and of these files the bodies of all functions and classes that are not among them.
    Nobody may hold on to nodes of the others: when they are decoded again they are other objects."""
    decoded, opened = list(m.DECODED), list(m.OPENED)
    # Those that were kept the last time are looked at again when as many others have come.
    if (
        sum(len(one.packed) for one in decoded[_kept[0] :]) <= MOST_KEPT
        and sum(len(one.packed) for one in opened[_kept[1] :]) <= MOST_OPENED
    ):
        return
    forget()
    ids = kept()
    for one in decoded:
        if id(one) in ids:
            m.DECODED.append(one)
        else:
            del one.__dict__["body"]
    for facts in opened:
        if id(facts) in ids:
            m.OPENED.append(facts)
        else:
            _close(facts)
    _kept[:] = len(m.DECODED), len(m.OPENED)


def _close(facts: m.FileFacts) -> None:
    facts.__dict__.clear()


def passing(some: Iterable[T]) -> Iterator[T]:
    """Files or facts, one after another: what is decoded while one is looked at is let go before the next."""
    for one in some:
        with at_once():
            yield one


@contextmanager
def at_once() -> Iterator[None]:
    """What is decoded inside is let go at the end. Nobody may hold on to nodes of it."""
    decoded, opened = len(m.DECODED), len(m.OPENED)
    try:
        yield
    finally:
        if len(m.DECODED) > decoded or len(m.OPENED) > opened:
            for made in _memos:
                made.clear()
        for one in m.DECODED[decoded:]:
            del one.__dict__["body"]
        for facts in m.OPENED[opened:]:
            _close(facts)
        del m.DECODED[decoded:], m.OPENED[opened:]
