"""Whether a function asks only for the form of a value, such as its shape or its length: by syntax alone."""

from __future__ import annotations

from typing import Any

from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes, parents

FORM = frozenset({"shape", "ndim", "dtype", "size", "dim", "numel", "device", "requires_grad"})
"""Attributes of arrays that say nothing of their elements."""
_OF_FORM = frozenset({"len", "type", "isinstance"})


def asked_for_form(function: m.Function, node: Any) -> bool:
    """Whether all that a function does with what an expression gives is to ask for its form."""
    above = parents(function)
    parent = above.get(id(node))
    if _asks(parent, node):
        return True
    if not (isinstance(parent, m.Assign) and parent.value is node):
        return False
    targets = [part for one in parent.targets for part in (one.elts if isinstance(one, m.Seq) else [one])]
    if not all(isinstance(one, m.Name) and "." not in one.id for one in targets):
        return False
    names = {one.id for one in targets if isinstance(one, m.Name)} - {"_"}
    found = 0
    for one in nodes(function.body):
        if isinstance(one, (m.ScopeDecl, m.Lambda, m.FunctionDef, m.ClassDef)):
            return False
        if isinstance(one, m.Name) and one.id.partition(".")[0] in names and one not in targets:
            found += 1
            if not (one.id.partition(".")[2].partition(".")[0] in FORM or _asks(above.get(id(one)), one)):
                return False
    return found > 0


def only_form(node: Any) -> bool:
    """Whether an expression is the form of something: ``x.shape``, ``x.size(0)``, ``len(x)``."""
    if isinstance(node, m.Name):
        return any(part in FORM for part in node.id.split(".")[1:])
    if isinstance(node, m.Attr):
        return node.name.partition(".")[0] in FORM
    return isinstance(node, m.Call) and (called_name(node) in _OF_FORM or only_form(node.func))


def _asks(parent: Any, node: Any) -> bool:
    if isinstance(parent, m.Attr):
        return parent.value is node and parent.name.partition(".")[0] in FORM
    return isinstance(parent, m.Call) and called_name(parent) in _OF_FORM and node in parent.args
