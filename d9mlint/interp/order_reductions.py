"""Arrays of which the program reads nothing but what is the same whatever the order of their elements: the largest one, or
whether one is there; and those whose elements it takes one after the other, as of the list that they were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.naming import called_in_library, called_method
from d9mlint.ir import nodes as m
from d9mlint.ir.endings import blocks_within
from d9mlint.ir.forms import targets_of
from d9mlint.ir.liveness import may_be_shared
from d9mlint.ir.traversal import called_name, nodes, parents, variables

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
    uses = [one for one in _reached(fn, stmt, target.id, above) if one is not target]
    return [] if uses and may_be_shared(interp.whole(file), fn, {target.id}) else uses


def _reached(fn: m.Function, stmt: m.Assign, name: str, above: dict[int, Any]) -> list[m.Name]:
    """Where a function names what a statement gives a variable: up to where the same block gives it something else."""
    named = variables(fn).get(name, [])
    around = list(_around(stmt, above))
    block = _block_of(fn, stmt, around)
    place = next((at for at, one in enumerate(block) if one is stmt), len(block))
    following = next((at for at, one in enumerate(block[place + 1 :], place + 1) if _stores(one, name)), None)
    if following is not None and not any(isinstance(one, m.Try) for one in around):
        last = block[following]
        if not any(isinstance(one, m.Jump) for one in nodes(block[place:following])):
            stored = _stores(last, name)
            return [one for one in named if stmt.end <= one.start < last.end and id(one) not in stored]
    rounds = [one for one in around if isinstance(one, (m.For, m.While))]
    if not rounds:
        # What stands before it reads what the variable was before.
        return [one for one in named if one.start >= stmt.end]
    first = next((one for one in block[:place] if _stores(one, name)), None)
    if first is None:
        return named
    # Each round gives the variable something else first.
    begin, stored = rounds[-1].start, _stores(first, name)
    return [
        one
        for one in named
        if one.start >= stmt.end or (begin <= one.start < first.end and id(one) not in stored)
    ]


def _block_of(fn: m.Function, stmt: m.Stmt, around: list[Any]) -> Sequence[m.Stmt]:
    """The statements among which a statement stands, as far as they are seen to follow each other."""
    blocks = blocks_within(around[0]) if around else [fn.body]
    return next((block for block in blocks if any(one is stmt for one in block)), [])


def _stores(stmt: m.Stmt, name: str) -> set[int]:
    """Where an assignment stores into a variable, by the ids of the nodes."""
    if not isinstance(stmt, m.Assign):
        return set()
    parts = [part for one in stmt.targets for part in (one.elts if isinstance(one, m.Seq) else [one])]
    return {id(one) for one in parts if isinstance(one, m.Name) and one.id == name}


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
    call = _call_of(node, above)
    if isinstance(node, m.Call) or "." not in node.id or call is not None:
        user = above.get(id(node))
        if isinstance(user, (m.For, m.Generator)) and user.iter is node:
            return PASSED_THROUGH
        if isinstance(user, m.Compare) and user.comparators == [node] and user.ops[0] in ("in", "not in"):
            return REDUCED
        if call is not None and _keeps_pairs(interp, node, call, fn, depth):
            return PASSED_THROUGH
    return REDUCED if _is_reduced(interp, node, above, whole) else ""


def _call_of(node: m.Name | m.Call, above: dict[int, Any]) -> m.Call | None:
    """The call that an expression is an argument or the receiver of."""
    user = above.get(id(node))
    if isinstance(user, m.Keyword) or (isinstance(user, m.Attr) and user.value is node):
        inner, user = user, above.get(id(user))
        if isinstance(inner, m.Attr) and (not isinstance(user, m.Call) or user.func is not inner):
            return None
    if not isinstance(user, m.Call):
        return None
    return user if user.func is node or isinstance(node, m.Call) or "." not in node.id else None


def _keeps_pairs(interp: Interp, node: m.Expr, call: m.Call, fn: m.Function, depth: int) -> bool:
    """Whether a call counts the pairs of this and another sequence, or gives a row for each of its rows that is used so."""
    entry = _entry_of(interp, call)
    if entry is None:
        return False
    if entry.role == "tally":
        return _is_tallied(entry, node, call)
    # `model.predict(rows)`, `normalize(rows)`, `rows.astype(float)`
    given = any(one is node for one in call.args[:1]) or any(one is node for one in nodes([call.func]))
    return entry.role == "carry" and given and bool(use_of_array(interp, call, None, fn, depth + 1))


def _entry_of(interp: Interp, call: m.Call) -> OrderEntry | None:
    """What a function of a library, or a method of whatever object, has to do with the order of elements."""
    called = called_in_library(interp, call)
    if called:
        return interp.kb.order(called)
    if isinstance(call.func, m.Name) and "." not in call.func.id:
        return None
    return interp.kb.order(called_method(interp, call) or f"?.{called_name(call)}", True)


def _is_tallied(entry: OrderEntry, node: m.Expr, call: m.Call) -> bool:
    """Whether a call counts the pairs of this and another sequence: the order is nothing to it where both have the same."""
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
