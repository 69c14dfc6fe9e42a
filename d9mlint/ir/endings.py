"""Which statements never run, because one before them in the same block always leaves it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from d9mlint.ir import nodes as m

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
                yield from block[at + 1 :]
                break
            blocks.extend(_within(stmt))


def leaves(stmt: m.Stmt, failing: Container[tuple[int, int]] = (), own: Container[str] = ()) -> bool:
    """Whether nothing behind a statement runs after it."""
    if isinstance(stmt, (m.Return, m.Raise, m.Jump)):
        return True
    if isinstance(stmt, m.If):
        return all(any(leaves(one, failing, own) for one in branch) for branch in (stmt.body, stmt.orelse))
    if not isinstance(stmt, (m.ExprStmt, m.Assign)):
        return False
    value = stmt.value
    if isinstance(value, (m.Name, m.Call)) and (value.start, value.end) in failing:
        return True
    called = value.func if isinstance(value, m.Call) else None
    return isinstance(called, m.Name) and called.id in _EXITS and called.id not in own


def _within(stmt: m.Stmt) -> Iterator[Sequence[m.Stmt]]:
    """The blocks of a statement."""
    if isinstance(stmt, (m.If, m.For, m.While)):
        yield from (stmt.body, stmt.orelse)
    elif isinstance(stmt, m.With):
        yield stmt.body
    elif isinstance(stmt, m.Try):
        yield from (stmt.body, *(one.body for one in stmt.handlers), stmt.orelse, stmt.final)
    elif isinstance(stmt, m.Match):
        yield from (one.body for one in stmt.cases)
