"""Tensors that a loop computes from one another: which of them require no grad in any round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.tensors import TENSOR
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import assigned_names, target_names
from d9mlint.ir.traversal import children, nodes, statements

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_PARTS = (m.BinOp, m.Unary, m.Compare, m.IfExp, m.Subscript, m.Seq, m.Slice, m.Star, m.Keyword)
_REQUIRES = "requires_grad"


def without_gradient(interp: Interp, stmt: m.For | m.While) -> set[str]:
    """The variables that hold tensors without a gradient before a loop, or plain values, and to which its rounds assign
    nothing else: what functions of libraries compute from them, and from what has no gradient either."""
    assigned = assigned_names(stmt)
    scope = interp.frame.env.vars
    if not any(_has_none(scope.get(name)) for name in assigned):
        return set()
    left = {name for name in assigned if name not in scope or _is_plain(scope[name])}
    sources: list[tuple[str, m.Expr]] = []
    for one in statements([stmt]):
        names: set[str] = set()
        if isinstance(one, m.Assign):
            for target in one.targets:
                if isinstance(target, m.Name) and target.id in left:
                    sources.append((target.id, one.value))
                elif isinstance(target, m.Subscript) and isinstance(target.value, m.Name):
                    sources.append((target.value.id, one.value))
                else:
                    target_names(target, names)
        elif isinstance(one, m.AugAssign):
            held = one.target.value if isinstance(one.target, m.Subscript) else one.target
            if isinstance(held, m.Name):
                sources.append((held.id, one.value))
        elif isinstance(one, m.For | m.AnnAssign):
            target_names(one.target, names)
        elif isinstance(one, m.With):
            for item in one.items:
                if item.target is not None:
                    target_names(item.target, names)
        elif isinstance(one, m.Match):
            names.update(name for case in one.cases for name in case.binds)
        left -= names
    for one in nodes(stmt.body):
        if isinstance(one, m.Walrus):
            left.discard(one.target)
        elif isinstance(one, m.Name) and (one.id.endswith("_") or f".{_REQUIRES}" in one.id):
            # It is changed in place.
            left.discard(one.id.partition(".")[0])
    while True:
        lost = {
            name for name, value in sources if name in left and not _is_free(interp, value, left, assigned)
        }
        if not lost:
            return left
        left -= lost


def _has_none(value: v.Value | None) -> bool:
    return (
        isinstance(value, v.Obj)
        and value.type == TENSOR
        and value.form is not None
        and value.form.grad is False
    )


def _is_plain(value: v.Value) -> bool:
    return all(isinstance(one, v.Lit) or _has_none(one) for one in v.alternatives(value))


def _is_free(interp: Interp, node: Any, left: set[str], assigned: frozenset[str]) -> bool:
    """Whether an expression has no gradient where none of these variables has one."""
    if isinstance(node, m.Const):
        return True
    if isinstance(node, m.Name):
        head, dot, _ = node.id.partition(".")
        if head in left:
            return True
        value = None if dot or head in assigned else interp.lookup(head)
        return value is not None and _is_plain(value)
    if isinstance(node, m.Call):
        given = [*node.args, *(one.value for one in node.keywords)]
        if any(one.name in (_REQUIRES, "out", None) for one in node.keywords):
            return False
        if not all(_is_free(interp, one, left, assigned) for one in given):
            return False
        if isinstance(node.func, m.Attr):
            return not node.func.name.endswith("_") and _is_free(interp, node.func.value, left, assigned)
        if not isinstance(node.func, m.Name):
            return False
        head, dot, name = node.func.id.partition(".")
        if dot and head not in assigned and _keeps_free(interp, interp.lookup(head), name):
            return True
        computes = not node.func.id.rpartition(".")[2][:1].isupper() and not node.func.id.endswith("_")
        return computes and (head in left or isinstance(interp.lookup(head), v.Ext))
    return isinstance(node, _PARTS) and all(_is_free(interp, one, left, assigned) for one in children(node))


def _keeps_free(interp: Interp, owner: v.Value | None, name: str) -> bool:
    """Whether an attribute is a layer that has no weights: what it gives requires grad only where its input does."""
    layer = owner.attrs.get(name) if isinstance(owner, v.Inst) else None
    tensor = interp.kb.tensor(layer.api) if isinstance(layer, v.Obj) and layer.type == layer.api else None
    return tensor is not None and tensor.grad not in (None, "weights")
