"""What a branch of a function leaves in variables, by syntax alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import bound_by
from d9mlint.ir.traversal import nodes, parents


def left_by_branch(function: m.Function, made: m.Expr) -> dict[str, bool]:
    """The truth values that a branch of an ``if`` leaves in variables: the one in which a function assigns what an
    expression gives. Nothing is known of branches in loops."""
    above = parents(function)
    stmt: Any = above.get(id(made))
    parent = above.get(id(stmt))
    if not isinstance(stmt, m.Assign) or not isinstance(parent, m.If):
        return {}
    body = parent.body if any(one is stmt for one in parent.body) else parent.orelse
    outer: Any = parent
    while (around := above.get(id(outer))) is not None:
        if isinstance(around, (m.For, m.While)):
            return {}
        outer = around
    left = {
        target.id: one.value.value
        for one in body
        if isinstance(one, m.Assign) and isinstance(one.value, m.Const) and isinstance(one.value.value, bool)
        for target in one.targets
        if isinstance(target, m.Name) and "." not in target.id
    }
    within, parts, own = ({id(one) for one in found} for found in (nodes([outer]), nodes(body), body))
    changed: set[str] = set()
    for one in nodes(function.body):
        if isinstance(one, (m.ScopeDecl, m.Walrus)):
            bound_by(one, changed)
        elif isinstance(one, (m.Assign, m.AnnAssign, m.AugAssign, m.For)):
            # Behind the branch, or in a part of it.
            inner = id(one) in parts and not (isinstance(one, m.Assign) and id(one) in own)
            if inner or (one.start > outer.start and id(one) not in within):
                bound_by(one, changed)
    return {name: value for name, value in left.items() if name not in changed}


def truth_in(node: m.Expr, constants: Mapping[str, bool]) -> bool | None:
    """Whether an expression is true where variables have these values; None where that does not decide it."""
    if isinstance(node, m.Const):
        return node.value if isinstance(node.value, bool) else None
    if isinstance(node, m.Name):
        return constants.get(node.id)
    if isinstance(node, m.Unary) and node.op == "not":
        known = truth_in(node.operand, constants)
        return None if known is None else not known
    if isinstance(node, m.IfExp):
        test = truth_in(node.test, constants)
        return None if test is None else truth_in(node.body if test else node.orelse, constants)
    return None
