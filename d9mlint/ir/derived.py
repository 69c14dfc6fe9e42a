"""Names of a function that are computed from what stands at some places: by syntax alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from d9mlint.ir import nodes as m
from d9mlint.ir.forms import only_form
from d9mlint.ir.traversal import called_name, children, nodes, statements

Looks = Callable[[str], Literal["method", "function", ""]]
"""Whether a call of this name looks at no element of its receiver (``method``), or of its first argument
(``function``)."""


def derived_names(function: m.Function, places: Sequence[int], looks: Looks) -> set[str]:
    """The variables of a function that hold something computed from an expression at one of these places."""
    found: set[str] = set()
    before = -1
    while len(found) > before:
        before = len(found)
        for stmt in statements(function.body):
            value, targets = _parts(stmt)
            if value is not None and (
                _holds(value, places) or any(name in found for name in elements(value, looks))
            ):
                found.update(
                    one.id.partition(".")[0]
                    for one in nodes(targets)
                    if isinstance(one, m.Name) and one.id != "_"
                )
    return found


def elements(expr: Any, looks: Looks) -> Iterator[str]:
    """The variables of whose elements an expression is computed, not only of their form."""
    stack: list[Any] = [expr]
    while stack:
        node = stack.pop()
        if only_form(node):
            continue
        if isinstance(node, m.Call) and (kind := looks(called_name(node))):
            stack += node.args if kind == "method" else [node.func, *node.args[1:]]
            stack += [one.value for one in node.keywords]
            continue
        if isinstance(node, m.Name):
            yield node.id.partition(".")[0]
        stack.extend(children(node))


def _parts(stmt: m.Stmt) -> tuple[Any, list[Any]]:
    """What a statement computes, and what that is stored in."""
    if isinstance(stmt, m.Assign):
        return stmt.value, list(stmt.targets)
    if isinstance(stmt, (m.AnnAssign, m.AugAssign)):
        return stmt.value, [stmt.target]
    if isinstance(stmt, m.For):
        return stmt.iter, [stmt.target]
    if (
        isinstance(stmt, m.ExprStmt)
        and isinstance(stmt.value, m.Call)
        and isinstance(stmt.value.func, m.Name)
    ):
        # `x.normal_()` fills what it is called on.
        return stmt.value, [stmt.value.func] if "." in stmt.value.func.id else []
    return None, []


def _holds(expr: Any, places: Sequence[int]) -> bool:
    return any(getattr(one, "start", -1) in places for one in nodes([expr]))
