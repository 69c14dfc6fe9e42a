"""Arrays of which the program reads nothing but what is the same whatever the order of their elements: the largest one, or
whether one is there; and those whose elements it takes one after the other, as of the list that they were."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.naming import called_in_library
from d9mlint.ir import nodes as m
from d9mlint.ir.forms import targets_of
from d9mlint.ir.liveness import may_be_shared
from d9mlint.ir.traversal import parents, variables

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import OrderEntry
    from d9mlint.project.modules import ModuleFile

FORM = frozenset({"shape", "dtype", "size", "ndim"})
"""Attributes of arrays that say nothing of the order of their elements."""
_COUNTING = frozenset({"builtins.int", "builtins.len", "builtins.ord"})
"""What gives whole numbers."""
_DEEPEST = 4
"""From an array to what is predicted for its rows, and on from there, the search goes at most so often."""
REDUCED, PASSED_THROUGH = "reduced", "passed through"


def use_of_array(
    interp: Interp, node: Any, given: v.Value | None, fn: m.Function | None, depth: int = 0
) -> str:
    """``REDUCED`` where the function that makes an array of something asks only for such values of it, as
    ``np.array(sizes).max()`` does; ``PASSED_THROUGH`` where it also goes through its elements, or
    counts them in pairs with others, or what is predicted for each of them; else nothing."""
    if fn is None or not isinstance(node, m.Call) or depth > _DEEPEST:
        return ""
    whole = _are_whole(given)
    use = _use(interp, node, fn, whole, depth)
    if use:
        return use
    found = {_use(interp, one, fn, whole, depth) for one in named_uses(interp, interp.frame.file, fn, node)}
    if not found or "" in found:
        return ""
    return REDUCED if found == {REDUCED} else PASSED_THROUGH


def is_only_returned(interp: Interp, file: ModuleFile, fn: m.Function, node: Any) -> bool:
    """Whether a function does nothing with an array that it makes here but return it and ask for its form."""
    above = parents(fn)
    if id(node) not in above:
        return False
    uses = [node] if isinstance(above[id(node)], m.Return) else named_uses(interp, file, fn, node)
    return any(isinstance(above.get(id(one)), m.Return) for one in uses) and all(
        isinstance(above.get(id(one)), m.Return) or one.id.partition(".")[2] in FORM for one in uses
    )


def named_uses(interp: RunView, file: ModuleFile, fn: m.Function, node: Any) -> list[m.Name]:
    """Where a function uses the variable in which it keeps this; nothing where others may use it."""
    above = parents(fn)
    kept = targets_of(node, above) or []
    target = kept[0] if len(kept) == 1 else None
    if not isinstance(target, m.Name) or "." in target.id:
        return []
    stmt = next(one for one in _around(node, above) if isinstance(one, m.Assign))
    if stmt.value is node and stmt.targets[0] is not target:
        # It is taken apart: `(name,) = array`.
        return []
    # What stands before it reads what the variable was before, unless a loop comes back to that.
    repeated = any(isinstance(one, (m.For, m.While)) for one in _around(stmt, above))
    named = variables(fn).get(target.id, ())
    uses = [one for one in named if one is not target and (repeated or one.start >= stmt.end)]
    return [] if uses and may_be_shared(interp.whole(file), fn, {target.id}) else uses


def _around(node: Any, above: dict[int, Any]) -> Iterator[Any]:
    """What a node stands in, from the inside to the outside."""
    while (node := above.get(id(node))) is not None:
        yield node


def _are_whole(given: v.Value | None) -> bool:
    """Whether these are whole numbers, whose sum is exact."""
    return isinstance(given, v.Items) and bool(given.elts) and all(map(_is_whole, given.elts))


def _is_whole(one: v.Value) -> bool:
    if isinstance(one, v.Lit):
        return type(one.value) is int
    return isinstance(one, v.Obj) and one.api in _COUNTING


def _use(interp: Interp, node: m.Name | m.Call, fn: m.Function, whole: bool, depth: int) -> str:
    """How an expression that is an array, or names something of one, is used."""
    above = parents(fn)
    if isinstance(node, m.Call) or "." not in node.id:
        user = above.get(id(node))
        if isinstance(user, (m.For, m.Generator)) and user.iter is node:
            return PASSED_THROUGH
        if isinstance(user, m.Compare) and user.comparators == [node] and user.ops[0] in ("in", "not in"):
            return REDUCED
        call = above.get(id(user)) if isinstance(user, m.Keyword) else user
        if isinstance(call, m.Call) and _keeps_pairs(interp, node, call, fn, depth):
            return PASSED_THROUGH
    return REDUCED if _is_reduced(interp, node, above, whole) else ""


def _keeps_pairs(interp: Interp, node: m.Expr, call: m.Call, fn: m.Function, depth: int) -> bool:
    """Whether a call counts the pairs of this and another sequence, or gives a row for each of its rows that is used so."""
    called = called_in_library(interp, call)
    if called:
        return _is_tallied(interp.kb.order(called), node, call)
    rows = bool(call.args) and call.args[0] is node and _gives_rows(interp, call)
    return rows and bool(use_of_array(interp, call, None, fn, depth + 1))


def _gives_rows(interp: Interp, call: m.Call) -> bool:
    """Whether a method gives a row for each row of its first argument: ``model.predict(rows)``."""
    name = call.func.id if isinstance(call.func, m.Name) and "." in call.func.id else ""
    entry = interp.kb.order(f"?.{name.rpartition('.')[2]}", True) if name else None
    return entry is not None and entry.role == "carry"


def _is_tallied(entry: OrderEntry | None, node: m.Expr, call: m.Call) -> bool:
    """Whether a call counts the pairs of this and another sequence: the order is nothing to it where both have the same."""
    if entry is None or entry.role != "tally":
        return False
    weights = {test.arg for test in entry.unless}
    return not any(one.name in weights or not one.name for one in call.keywords) and (
        any(one is node for one in call.args) or any(one.value is node for one in call.keywords)
    )


def _is_reduced(interp: Interp, node: m.Expr, above: dict[int, Any], whole: bool) -> bool:
    """Whether an expression that is an array, or names something of one, is used for such a value only. What an array of
    tests is used for counts in its place: ``(sizes > 3).any()``, ``np.all(np.isfinite(sizes))``."""
    func: m.Expr = node
    user = above.get(id(node))
    name = node.id.partition(".")[2] if isinstance(node, m.Name) else ""
    if not name and isinstance(user, m.Attr):
        func, name = user, user.name
        user = above.get(id(user))
    if name in FORM:
        return True
    if not name and isinstance(user, m.Compare):
        sides = [one for one in (user.left, *user.comparators) if one is not node]
        return len(sides) == 1 and isinstance(sides[0], m.Const) and _is_reduced(interp, user, above, True)
    if not isinstance(user, m.Call) or user.keywords:
        return False
    if name:
        called = user.func is func and not user.args
        entry = interp.kb.order(f"?.{name}", True) if called else None
    else:
        if len(user.args) != 1 or user.args[0] is not node or not isinstance(user.func, m.Name):
            return False
        function = interp.eval(user.func)
        entry = interp.kb.order(interp.kb.canonical(function.name)) if isinstance(function, v.Ext) else None
    if entry is not None and entry.elementwise:
        return _is_reduced(interp, user, above, True)
    return entry is not None and (entry.reduces == "any" or (entry.reduces == "whole" and whole))
