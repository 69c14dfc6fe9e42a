"""What the annotations of parameters say of values, and of the elements of what the function makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.attribute_kinds import NUMBER, TEXT, of_annotation
from d9mlint.interp.named_sizes import assignments
from d9mlint.ir import nodes as m
from d9mlint.ir import scopes
from d9mlint.ir.traversal import called_name, nodes, receiver

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_NUMBER_NAMES = frozenset({"int", "float", "bool", "long", "int32", "int64", "LongTensor", "ndarray"})
_TEXT_NAMES = frozenset({"str", "bytes", "AnyStr", "Text", "Path", "PathLike"})
_CONTAINERS = frozenset({"list", "set", "tuple", "frozenset", "sorted", "reversed"})
"""Functions that give the elements of what they are given."""
_ADDING = frozenset({"append", "extend", "insert", "add", "update"})
"""Methods that put other elements into a container."""


def of_elements(interp: Interp, node: m.Expr | None, within: frozenset[str] = frozenset()) -> str:
    """What the elements of an expression are, ``""`` for unknown: those of both lists of a sum, and of all that a variable
    of the running function is assigned. ``within`` are the variables that are looked at already."""
    if isinstance(node, m.Call):
        return of_elements(interp, node.args[0], within) if _gives_elements(node) else ""
    if isinstance(node, m.BinOp) and node.op in ("+", "|"):
        return _of_all(interp, [node.left, node.right], within)
    if isinstance(node, m.BinOp) and node.op in ("-", "&"):
        return of_elements(interp, node.left, within)
    if isinstance(node, m.IfExp):
        return _of_all(interp, [node.body, node.orelse], within)
    if isinstance(node, m.BoolOp) and node.op == "or":
        return _of_all(interp, [node.left, node.right], within)
    if isinstance(node, m.Comp) and node.kind != "d" and len(node.generators) == 1:
        target = node.generators[0].target
        same = isinstance(target, m.Name) and isinstance(node.elt, m.Name) and node.elt.id == target.id
        return of_elements(interp, node.generators[0].iter, within) if same else ""
    if isinstance(node, m.Seq):
        return _of_constants(node.elts)
    if not isinstance(node, m.Name):
        return ""
    return of_parameter(interp, node, inside=True) or _of_variable(interp, node.id, within)


def of_parameter(interp: Interp, node: m.Expr, inside: bool) -> str:
    """What the annotation of a parameter says of it, or of its elements."""
    while isinstance(node, m.Call) and node.args:
        node = node.args[0]
    annotation = _annotation(interp, node)
    if annotation is None:
        return ""
    names = {one.id.rpartition(".")[2] for one in nodes([annotation]) if isinstance(one, m.Name)}
    names |= _quoted(annotation)
    if inside and isinstance(annotation, m.Name) and names & {"str", "bytes"}:
        return TEXT
    if names & _TEXT_NAMES:
        return TEXT if inside == (not isinstance(annotation, m.Name)) else ""
    return NUMBER if inside and names & _NUMBER_NAMES else ""


def taken_as_numbers(func: v.Func, call: m.Call) -> Iterator[str]:
    """The variables that a call of the project gives to parameters which are numbers, as their annotations say."""
    params = func.fn.params if func.receiver is None else func.fn.params[1:]
    pos = [one for one in params if one.kind in "pa"]
    named = {one.name: one for one in params if one.kind in "ak"}
    given = list(zip(pos, takewhile(lambda one: not isinstance(one, m.Star), call.args), strict=False))
    given += [(named[one.name], one.value) for one in call.keywords if one.name in named]
    for param, one in given:
        if isinstance(one, m.Name) and param.annotation is not None:
            if of_annotation(param.annotation) == NUMBER:
                yield one.id


def _annotation(interp: Interp, node: m.Expr) -> m.Expr | None:
    frame = interp.frame
    while frame.func is None and frame.caller is not None and frame.caller.env is frame.env.parent:
        frame = frame.caller
    params = frame.func.fn.params if frame.func is not None and isinstance(node, m.Name) else []
    return next((one.annotation for one in params if isinstance(node, m.Name) and one.name == node.id), None)


def _gives_elements(call: m.Call) -> bool:
    return isinstance(call.func, m.Name) and call.func.id in _CONTAINERS and len(call.args) == 1


def _of_all(interp: Interp, parts: list[m.Expr], within: frozenset[str]) -> str:
    """What the elements of several expressions are together: those of empty lists, and of variables that are looked at
    already, are none."""
    kinds = [
        of_elements(interp, one, within)
        for one in parts
        if not (isinstance(one, m.Seq) and not one.elts) and not _is_of(one, within)
    ]
    if TEXT in kinds:
        return TEXT
    return NUMBER if kinds and all(kind == NUMBER for kind in kinds) else ""


def _of_constants(parts: list[m.Expr]) -> str:
    values = [one.value for one in parts if isinstance(one, m.Const)]
    if any(isinstance(one, str) for one in values):
        return TEXT
    numbers = all(isinstance(one, (int, float)) for one in values)
    return NUMBER if values and numbers and len(values) == len(parts) else ""


def _is_of(node: m.Expr, names: frozenset[str]) -> bool:
    while isinstance(node, m.Call) and _gives_elements(node):
        node = node.args[0]
    return isinstance(node, m.Name) and node.id in names


def _of_variable(interp: Interp, name: str, within: frozenset[str]) -> str:
    body = interp.frame.body
    if interp.frame.func is None or "." in name or name in within or _is_added_to(body, name):
        return ""
    given = list(assignments(interp, name))
    if not given or len(given) != scopes.assignments(body, name):
        # A loop goes through its values, or it gets a part of something.
        return ""
    return _of_all(interp, given, within | {name})


def _is_added_to(body: list[m.Stmt], name: str) -> bool:
    return any(
        isinstance(one, m.Call) and called_name(one) in _ADDING and receiver(one) == name
        for one in nodes(body)
    )


def _quoted(node: m.Expr) -> set[str]:
    if not isinstance(node, m.Const) or not isinstance(node.value, str):
        return set()
    text = "".join(c if c.isalnum() or c == "_" else " " for c in node.value)
    return set(text.split())
