"""Rows of a table that are put into a random order of which nothing that the program reads depends: it counts how often
columns agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp.naming import called_in_library, running
from d9mlint.interp.order_reductions import FORM, named_uses
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import parents

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import RngEntry

_COUNTED = frozenset({"any", "whole"})
"""How the order may be reduced of what holds yes and no."""


def is_counted(run: RunView, entry: RngEntry, node: Any) -> bool:
    """Whether a call gives all rows in a random order, and is kept in a variable of which the program only counts rows."""
    fn = running(run)
    if fn is None or run.frame.keeps_locals or not _is_whole(entry, node):
        return False
    uses = named_uses(run, run.frame.file, fn, node)
    if not uses:
        return False
    above = parents(fn)
    names = {one.id.partition(".")[0] for one in uses}
    return all(_counts(run, one, names, above) for one in uses)


def _is_whole(entry: RngEntry, node: Any) -> bool:
    """Whether a call draws each row once: it is asked for a share of one, and for nothing else that matters."""
    if not entry.permutes or not isinstance(node, m.Call) or node.args:
        return False
    given = {one.name: one.value for one in node.keywords}
    share = given.get(entry.permutes[0])
    return isinstance(share, m.Const) and share.value == 1 and given.keys() <= set(entry.permutes)


def _counts(run: RunView, use: m.Name, names: set[str], above: dict[int, Any]) -> bool:
    """Whether a use of a table gives what is the same whatever the order of its rows."""
    user = above.get(id(use))
    if use.id.partition(".")[2] in FORM:
        return True
    if isinstance(user, m.Call) and called_in_library(run, user) == "builtins.len":
        return True
    column: Any = use if "." in use.id else user
    if not _is_column(column, names):
        return False
    user = above.get(id(column))
    if isinstance(user, m.Compare):
        sides = [user.left, *user.comparators]
        return all(_is_of(one, names) for one in sides) and _is_reduced(run, user, above)
    if not isinstance(user, m.Call) or not all(_is_of(one, names) for one in user.args):
        return False
    entry = run.kb.order(called_in_library(run, user))
    if entry is None or entry.role != "tally":
        return False
    weights = {test.arg for test in entry.unless}
    return all(one.name and one.name not in weights for one in user.keywords)


def _is_column(node: Any, names: set[str]) -> bool:
    """Whether an expression is a column of one of these tables."""
    if isinstance(node, m.Name):
        return node.id.count(".") == 1 and node.id.partition(".")[0] in names
    return (
        isinstance(node, m.Subscript)
        and isinstance(node.value, m.Name)
        and node.value.id in names
        and isinstance(node.index, m.Const)
        and isinstance(node.index.value, str)
    )


def _is_of(node: Any, names: set[str]) -> bool:
    return isinstance(node, m.Const) or _is_column(node, names)


def _is_reduced(run: RunView, node: m.Compare, above: dict[int, Any]) -> bool:
    """Whether it is only counted where a comparison holds."""
    user = above.get(id(node))
    if isinstance(user, m.Attr):
        called = above.get(id(user))
        if not isinstance(called, m.Call) or called.func is not user or called.args or called.keywords:
            return False
        entry = run.kb.order(f"?.{user.name}", True)
    elif isinstance(user, m.Call) and user.args == [node] and not user.keywords:
        entry = run.kb.order(called_in_library(run, user))
    else:
        return False
    return entry is not None and entry.reduces in _COUNTED
