"""Imports without which a program goes on: those in a ``try`` that catches what a missing name raises."""

from __future__ import annotations

from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memoized
from d9mlint.ir.endings import fails
from d9mlint.ir.traversal import statements

_CATCHING = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


@memoized
def optional_imports(function: m.Function) -> frozenset[int]:
    """Where the imports of a function, or of a module's body, begin that may fail, and those that replace them."""
    return frozenset(
        stmt.start
        for outer in (statements(function.body) if function.imports else ())
        if isinstance(outer, m.Try)
        for stmt in _replaceable(outer)
    )


def _replaceable(stmt: m.Try) -> list[m.Import | m.ImportFrom]:
    handlers = [one for one in stmt.handlers if _catches(one.type)]
    if not handlers or all(fails(one.body) for one in handlers):
        return []
    blocks = [stmt.body, *(one.body for one in handlers)]
    return [one for block in blocks for one in statements(block) if isinstance(one, (m.Import, m.ImportFrom))]


def _catches(kind: m.Expr | None) -> bool:
    if isinstance(kind, m.Seq):
        return any(_catches(one) for one in kind.elts)
    return kind is None or (isinstance(kind, m.Name) and kind.id in _CATCHING)
