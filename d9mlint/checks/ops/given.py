"""From which parameter of a function a tensor comes: by syntax, where nothing is known of its value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp.tensors import TENSOR
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import bound_by
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView


def receiver_node(call: m.Call) -> m.Expr | None:
    """What a method is called on: a variable, or an expression."""
    if isinstance(call.func, m.Attr):
        return call.func.value if "." not in call.func.name else None
    if not isinstance(call.func, m.Name) or "." not in call.func.id:
        return None
    return m.Name(call.func.id.rpartition(".")[0], call.func.start, call.func.end)


def parameter_behind(
    run: RunView,
    function: m.Function,
    node: m.Expr | None,
    seen: frozenset[str] = frozenset(),
    same_type: bool = False,
) -> str:
    """The parameter of a function that an expression gives, moved or cast at most (with ``same_type``, moved only);
    empty where that is not known."""
    if isinstance(node, m.Call):
        name = _method(node)
        known = run.kb.tensor(f"{TENSOR}.{name}") if name else None
        if known is None or known.grad != "first" or (same_type and known.dtype != "input"):
            return ""
        return parameter_behind(run, function, receiver_node(node), seen, same_type)
    if not isinstance(node, m.Name) or "." in node.id:
        return ""
    own = {one.name for one in function.params if one.kind in ("p", "a", "k")}
    if node.id in seen:
        # What is computed of itself adds nothing.
        return node.id if node.id in own else ""
    found = {node.id} if node.id in own else set[str]()
    bound: set[str] = set()
    repeated = _in_loop(function, node.start)
    for stmt in nodes(function.body):
        if isinstance(stmt, m.Assign) and any(_is(one, node.id) for one in stmt.targets):
            if not repeated and getattr(stmt.value, "end", 0) >= node.end:
                # It is assigned afterwards.
                continue
            found.add(parameter_behind(run, function, stmt.value, seen | {node.id}, same_type))
        else:
            bound_by(stmt, bound)
    if node.id in bound:
        return ""
    return found.pop() if len(found) == 1 else ""


def _in_loop(function: m.Function, at: int) -> bool:
    loops = (one for one in nodes(function.body) if isinstance(one, (m.For, m.While)))
    return any(getattr(node, "start", -1) == at for one in loops for node in nodes([*one.body, *one.orelse]))


def _is(target: m.Expr, name: str) -> bool:
    return isinstance(target, m.Name) and target.id == name


def _method(call: m.Call) -> str:
    if isinstance(call.func, m.Attr):
        return call.func.name if "." not in call.func.name else ""
    return call.func.id.rpartition(".")[2] if isinstance(call.func, m.Name) and "." in call.func.id else ""
