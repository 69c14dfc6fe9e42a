"""Sets that are made of other sets: a dictionary of their elements has no other order than those have."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeGuard

from d9mlint.interp import values as v
from d9mlint.interp.named_sizes import assignments
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes, receiver, statements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from d9mlint.interp.interpreter import Interp

_REDUCING = frozenset(
    {"difference", "intersection", "symmetric_difference", "reduce", "or_", "and_", "sub", "xor"}
)
"""Methods of sets for which dictionaries have nothing, and functions that combine sets."""
_CLASSES = frozenset({"set", "frozenset"})


def is_reduced(interp: Interp, node: Any) -> bool:
    """Whether an expression is, or names, what a set has in common with something, or has not, or what it holds together
    with something: a dictionary of the elements of a set that has a name has them in the order of that set. So is a set
    that is filled from sets, also one that a function of the project returns; and one with a name that stands beside an
    operator of sets, which dictionaries do not have."""
    if isinstance(node, m.BinOp):
        return node.op != "|" or not all(map(_makes_set, (node.left, node.right)))
    if isinstance(node, m.Name) and "." not in node.id:
        given = assignments(interp, node.id)
        return any(not isinstance(one, m.Name) and is_reduced(interp, one) for one in given) or any(
            _is_operated(body, node.id) or any(_may_be_set(interp, one) for one in _added(body, node.id))
            for body in _bodies(interp)
        )
    if isinstance(node, m.Comp):
        return node.kind == "s" and any(_holds_sets(interp, one) for one in _gone_through(node))
    if not isinstance(node, m.Call):
        return False
    name = called_name(node)
    if name in _REDUCING:
        return True
    if name == "union":
        return bool(receiver(node)) or any(_may_be_set(interp, one) for one in node.args)
    if name in _CLASSES and not receiver(node):
        return any(_is_chain(one) and _holds_sets(interp, one.args[0]) for one in node.args)
    found = interp.lookup(node.func.id) if isinstance(node.func, m.Name) and not receiver(node) else None
    return isinstance(found, v.Func) and _returns_reduced(found.fn)


def _bodies(interp: Interp) -> list[list[m.Stmt]]:
    """The body of the running function, and that of its module."""
    module = interp.frame.file.facts.functions[0]
    return [one.body for one in {id(f): f for f in (interp.frame.function, module) if f is not None}.values()]


def _is_operated(body: list[m.Stmt], name: str) -> bool:
    """Whether a variable stands on a side of an operator of sets. Two dictionaries have a union, which other sets have no
    part in."""
    return any(
        isinstance(one, m.BinOp)
        and one.op in ("|", "&", "-", "^")
        and any(isinstance(side, m.Name) and side.id == name for side in (one.left, one.right))
        for one in nodes(body)
    )


def _added(body: list[m.Stmt], name: str) -> Iterator[m.Expr]:
    """What a body adds to a set of some name all at once."""
    for node in nodes(body):
        if isinstance(node, m.AugAssign) and node.op == "|":
            if isinstance(node.target, m.Name) and node.target.id == name:
                yield node.value
        elif isinstance(node, m.Call) and called_name(node) == "update" and receiver(node) == name:
            yield from node.args


def _may_be_set(interp: Interp, node: m.Expr) -> bool:
    """Whether an expression gives a set that is not made there, or may do so, since nothing is known of a variable."""
    if isinstance(node, m.Star):
        return _holds_sets(interp, node) or interp.value_of(node.value) is v.UNKNOWN
    if _makes_set(node):
        return False
    given = interp.value_of(node)
    if given is v.UNKNOWN:
        return isinstance(node, m.Name) or is_reduced(interp, node)
    return any(map(_is_set, v.alternatives(given)))


def _is_set(value: v.Value) -> bool:
    return isinstance(value, v.Items) and value.kind == "s"


def _holds_sets(interp: Interp, node: m.Expr) -> bool:
    """Whether the elements of a sequence, which may be taken apart, are seen to be sets."""
    given = interp.value_of(node.value if isinstance(node, m.Star) else node)
    return isinstance(given, v.Items) and any(map(_is_set, given.elts))


def _is_chain(node: Any) -> TypeGuard[m.Call]:
    """Whether an expression puts sequences one after the other: ``chain(*parts)``, ``chain.from_iterable(parts)``."""
    return isinstance(node, m.Call) and called_name(node) in ("chain", "from_iterable") and bool(node.args)


def _gone_through(node: m.Comp) -> Iterator[m.Expr]:
    """What a comprehension goes through to go through each of its elements: ``{x for part in parts for x in part}``."""
    for outer, inner in pairwise(node.generators):
        if isinstance(outer.target, m.Name) and isinstance(inner.iter, m.Name):
            if outer.target.id == inner.iter.id:
                yield outer.iter


def _returns_reduced(fn: m.Function) -> bool:
    """Whether a function returns a set that it fills from variables that it does not make itself: parameters, or what a
    loop goes through."""
    returned = {
        one.value.id
        for one in statements(fn.body)
        if isinstance(one, m.Return) and isinstance(one.value, m.Name)
    }
    made = {
        target.id
        for one in statements(fn.body)
        if isinstance(one, m.Assign)
        for target in one.targets
        if isinstance(target, m.Name)
    }
    return any(
        isinstance(one, m.Name) and one.id not in made for name in returned for one in _added(fn.body, name)
    )


def _makes_set(node: m.Expr) -> bool:
    """Whether an expression makes a set of something, which a dictionary may be made of instead."""
    if isinstance(node, m.BinOp) and node.op == "|":
        return _makes_set(node.left) and _makes_set(node.right)
    if isinstance(node, m.Call):
        return called_name(node) in _CLASSES and not receiver(node)
    return isinstance(node, m.Comp | m.Seq) and node.kind == "s"
