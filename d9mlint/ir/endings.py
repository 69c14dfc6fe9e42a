"""Which statements never run, because one before them in the same block always leaves it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any

from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memoized
from d9mlint.ir.traversal import children, nodes, statements

Evaluated = m.Name | m.Call | m.Comp | m.Subscript
_EXITS = frozenset({"exit", "quit", "sys.exit", "os._exit"})
"""Calls that end the program."""


def never_run(
    body: Sequence[m.Stmt], failing: Container[tuple[int, int]] = (), own: Container[str] = ()
) -> Iterator[m.Stmt]:
    """The statements of a block, and of the blocks in it, behind one that returns, raises, jumps or ends the program.
    ``failing`` are the places of expressions that are known to raise, ``own`` the names that the file defines itself."""
    blocks = [body]
    while blocks:
        block = blocks.pop()
        for at, stmt in enumerate(block):
            if leaves(stmt, failing, own):
                if isinstance(stmt, (m.With, m.For)):
                    # What it evaluates first raises.
                    yield from stmt.body
                yield from block[at + 1 :]
                break
            blocks.extend(blocks_within(stmt))


def leaves(stmt: m.Stmt, failing: Container[tuple[int, int]] = (), own: Container[str] = ()) -> bool:
    """Whether nothing behind a statement runs after it."""
    if isinstance(stmt, (m.Return, m.Raise, m.Jump)):
        return True
    if isinstance(stmt, m.If):
        return all(any(leaves(one, failing, own) for one in branch) for branch in (stmt.body, stmt.orelse))
    if failing and any((one.start, one.end) in failing for one in _evaluated_first(stmt)):
        return True
    if not isinstance(stmt, (m.ExprStmt, m.Assign)):
        return False
    value = stmt.value
    called = value.func if isinstance(value, m.Call) else None
    return isinstance(called, m.Name) and called.id in _EXITS and called.id not in own


def ends_program(function: m.Function) -> bool:
    """Whether a function does nothing last but to end the program, and returns nowhere."""
    last = function.body[-1] if function.body else None
    return (
        isinstance(last, m.ExprStmt)
        and leaves(last)
        and not any(isinstance(one, m.Return) for one in statements(function.body))
    )


def _evaluated_first(stmt: m.Stmt) -> Iterator[Evaluated]:
    """What a statement evaluates in all cases before anything else of it runs."""
    if isinstance(stmt, (m.ExprStmt, m.Assign)):
        return evaluated(stmt.value)
    if isinstance(stmt, m.With):
        return evaluated(stmt.items[0].context)
    return evaluated(stmt.iter) if isinstance(stmt, m.For) else iter(())


def evaluated(node: m.Expr) -> Iterator[Evaluated]:
    """The names in an expression that are read, and the calls, subscripts and comprehensions in it, whenever it is
    evaluated."""
    parts: list[Any] = [node]
    while parts:
        one = parts.pop()
        if isinstance(one, (m.Name, m.Call, m.Comp, m.Subscript)):
            yield one
        if isinstance(one, m.Name):
            continue
        if isinstance(one, m.BoolOp):
            parts.append(one.left)
        elif isinstance(one, m.IfExp):
            parts.append(one.test)
        elif isinstance(one, m.Comp):
            parts.append(one.generators[0].iter)
        elif isinstance(one, m.Compare):
            parts += [one.left, one.comparators[0]]
        elif not isinstance(one, m.Lambda):
            parts += children(one)


def ends_after(loop: m.For | m.While, place: int) -> bool:
    """Whether what stands at a place in a loop's body runs in one round at most: all that follows it leaves the loop."""
    end = max(one.end for one in statements(loop.body))
    return loop.body[0].start <= place < end and _is_left(loop.body, place) is True


def _is_left(body: Sequence[m.Stmt], place: int = -1) -> bool | None:
    """Whether the loop around a block always ends in it, behind a place in it; None where what follows decides."""
    at = max((k for k, one in enumerate(body) if one.start <= place), default=-1)
    if at >= 0:
        inner = _is_left_within(body[at], place)
        if inner is not None:
            return inner
    for stmt in body[at + 1 :]:
        if _goes_on(stmt):
            return False
        if leaves(stmt) or (isinstance(stmt, m.With) and _is_left(stmt.body)):
            return True
    return None


def _is_left_within(stmt: m.Stmt, place: int) -> bool | None:
    """The same for the block of a statement that holds the place. A jump of another loop, or a statement of which an
    exception may be caught, decides nothing."""
    if not isinstance(stmt, (m.If, m.With, m.Match)):
        return False if _goes_on(stmt) else None
    held = [block for block in blocks_within(stmt) if block and block[0].start <= place]
    return _is_left(held[-1], place) if held else None


def _goes_on(stmt: m.Stmt) -> bool:
    """Whether a statement may begin the next round of the loop around it."""
    if isinstance(stmt, m.Jump):
        return stmt.kind == "continue"
    blocks = [stmt.orelse] if isinstance(stmt, (m.For, m.While)) else blocks_within(stmt)
    return any(_goes_on(one) for block in blocks for one in block)


@memoized
def calls_before_failing(function: m.Function) -> tuple[m.Call, ...]:
    """The calls that are statements of handlers behind which the program always fails: it raises, or exits with a status
    that is not zero."""
    return tuple(
        inner.value
        for stmt in statements(function.body)
        if isinstance(stmt, m.Try)
        for handler in stmt.handlers
        if fails(handler.body)
        for inner in statements(handler.body)
        if isinstance(inner, m.ExprStmt) and isinstance(inner.value, m.Call)
    )


def fails(body: Sequence[m.Stmt]) -> bool:
    """Whether a block always ends in an exception that it raises, or ends the program with a status that is not zero."""
    if any(isinstance(one, (m.Return, m.Jump)) for one in nodes(body)):
        return False
    last = body[-1] if body else None
    if isinstance(last, m.If):
        return fails(last.body) and fails(last.orelse)
    if isinstance(last, m.Raise):
        raised = last.exc
        return not (isinstance(raised, m.Call) and _succeeds(raised))
    call = last.value if isinstance(last, m.ExprStmt) else None
    return last is not None and isinstance(call, m.Call) and leaves(last) and not _succeeds(call)


def _succeeds(call: m.Call) -> bool:
    """Whether a call that ends the program, or makes an exception that does, gives it the status zero."""
    if not isinstance(call.func, m.Name) or call.func.id not in (*_EXITS, "SystemExit"):
        return False
    status = call.args[0] if call.args else None
    return status is None or (isinstance(status, m.Const) and not status.value)


def blocks_within(stmt: m.Stmt) -> Iterator[Sequence[m.Stmt]]:
    """The blocks of a statement."""
    if isinstance(stmt, (m.If, m.For, m.While)):
        yield from (stmt.body, stmt.orelse)
    elif isinstance(stmt, m.With):
        yield stmt.body
    elif isinstance(stmt, m.Try):
        yield from (stmt.body, *(one.body for one in stmt.handlers), stmt.orelse, stmt.final)
    elif isinstance(stmt, m.Match):
        yield from (one.body for one in stmt.cases)
