"""Whether a function asks only for the form of a value, such as its shape or its length: by syntax alone."""

from __future__ import annotations

from typing import Any

from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memoized
from d9mlint.ir.traversal import called_name, is_none, nodes, parents, variables

FORM = frozenset({"shape", "ndim", "dtype", "size", "dim", "numel", "device", "requires_grad"})
"""Attributes of arrays that say nothing of their elements."""
_OF_FORM = frozenset({"len", "type", "isinstance"})


def asked_for_form(function: m.Function, node: Any) -> set[str] | None:
    """The variables in which a function keeps what an expression gives, if all that it does with that, or with items of
    it, is to ask for its form; None if it does more. What other functions do with the variables is not looked at."""
    above = parents(function)
    node = _whole(node, above)
    parent = above.get(id(node))
    if _asks(parent, node):
        return set()
    if not (isinstance(parent, m.Assign) and parent.value is node):
        return None
    targets = [part for one in parent.targets for part in (one.elts if isinstance(one, m.Seq) else [one])]
    if not all(isinstance(one, m.Name) and "." not in one.id for one in targets):
        return None
    names = {one.id for one in targets if isinstance(one, m.Name)} - {"_"}
    found = 0
    for one in nodes(function.body):
        if isinstance(one, (m.ScopeDecl, m.Lambda)):
            return None
        if isinstance(one, m.Name) and one.id.partition(".")[0] in names and one not in targets:
            found += 1
            item = _whole(one, above)
            if not (one.id.partition(".")[2].partition(".")[0] in FORM or _asks(above.get(id(item)), item)):
                return None
    return names if found else None


@memoized
def _shares_names(function: m.Function) -> bool:
    """Whether lambdas in a function may use its variables, or it uses those of others; memoised while it lives."""
    return any(isinstance(one, (m.ScopeDecl, m.Lambda)) for one in nodes(function.body))


def rounds_ask_for_form(function: m.Function, loop: m.For, numbered: bool) -> set[str] | None:
    """The variables of the elements that a loop goes through and of their parts, if all that a function does with them is
    to ask for their form, and it does ask; None if it does more. With ``numbered`` each comes with its number first."""
    above = parents(function)
    target: Any = loop.target
    if numbered:
        if not isinstance(target, m.Seq) or len(target.elts) != 2:
            return None
        target = target.elts[1]
    bound = target.elts if isinstance(target, m.Seq) else [target]
    if _shares_names(function):
        return None
    names, left, asked = set[str](), [bound], 0
    stored = set[int]()
    for targets in left:
        new = set[str]()
        for one in targets:
            if not isinstance(one, m.Name) or "." in one.id:
                return None
            new.add(one.id)
            stored.add(id(one))
        new -= names
        names |= new
        if len(names) > _MOST_NAMES:
            return None
        for use in (one for name in sorted(new) for one in variables(function).get(name, ())):
            if id(use) in stored:
                continue
            item = _whole(use, above)
            if use.id.partition(".")[2].partition(".")[0] in FORM or _asks(above.get(id(item)), item):
                asked += 1
                continue
            given = targets_of(item, above) if "." not in use.id else None
            if given is None:
                return None
            stored.add(id(use))
            left.append(given)
    return names if asked else None


_MOST_NAMES = 16


def targets_of(node: Any, above: dict[int, Any]) -> list[Any] | None:
    """The targets to which an expression, or its parts, are assigned; None where it is used in another way."""
    parent = above.get(id(node))
    if isinstance(parent, m.Seq):
        stmt = above.get(id(parent))
        if isinstance(stmt, m.Assign) and stmt.value is parent and len(stmt.targets) == 1:
            target = stmt.targets[0]
            if isinstance(target, m.Seq) and len(target.elts) == len(parent.elts):
                return [x for x, given in zip(target.elts, parent.elts, strict=True) if given is node]
        return None
    if not isinstance(parent, m.Assign) or parent.value is not node:
        return None
    return [part for one in parent.targets for part in (one.elts if isinstance(one, m.Seq) else [one])]


def _whole(node: Any, above: dict[int, Any]) -> Any:
    """The item of an item of what an expression gives: ``x[0]["image"]`` of ``x``."""
    parent = above.get(id(node))
    while isinstance(parent, m.Subscript) and parent.value is node:
        node, parent = parent, above.get(id(parent))
    return node


def only_form(node: Any) -> bool:
    """Whether an expression is the form of something: ``x.shape``, ``x.size(0)``, ``len(x)``."""
    if isinstance(node, m.Name):
        return any(part in FORM for part in node.id.split(".")[1:])
    if isinstance(node, m.Attr):
        return any(part in FORM for part in node.name.split("."))
    return isinstance(node, m.Call) and (called_name(node) in _OF_FORM or only_form(node.func))


def asked_if_none(test: Any) -> m.Expr | None:
    """What a comparison asks of nothing but whether it is None; None for any other expression."""
    if isinstance(test, m.Compare) and len(test.ops) == 1 and test.ops[0] in ("is", "is not"):
        return test.left if is_none(test.comparators[0]) else None
    return None


def tests_form_only(function: m.Function) -> bool:
    """Whether a function is a test that asserts nothing but the form of what it computes: shapes, lengths, types, the keys
    that a mapping has, and whether something is None."""
    if not function.qualname.rpartition(".")[2].startswith("test"):
        return False
    tests = 0
    for one in nodes(function.body):
        if isinstance(one, m.Assert):
            tests += 1
            if not _is_form(one.test):
                return False
        elif isinstance(one, m.Call) and "assert" in called_name(one).lower():
            return False
    return tests > 0


def _is_form(test: m.Expr) -> bool:
    if isinstance(test, m.BoolOp):
        return _is_form(test.left) and _is_form(test.right)
    if isinstance(test, m.Unary):
        return test.op == "not" and _is_form(test.operand)
    if isinstance(test, m.Compare):
        sides = [test.left, *test.comparators]
        if len(test.ops) == 1 and test.ops[0] in ("in", "not in"):
            return isinstance(test.left, m.Const) and isinstance(test.left.value, str)
        if len(test.ops) == 1 and test.ops[0] in ("is", "is not"):
            return asked_if_none(test) is not None
        return any(map(_of_form, sides)) and all(_of_form(one) or _is_fixed(one) for one in sides)
    return isinstance(test, m.Call) and only_form(test)


def _of_form(node: m.Expr) -> bool:
    """Whether an expression is the form of something, or an item of it."""
    return _of_form(node.value) if isinstance(node, m.Subscript) else only_form(node)


def _is_fixed(node: m.Expr) -> bool:
    """Whether an expression is made of literals, names, which most stand for the sizes that were asked for, and forms."""
    if isinstance(node, m.Seq):
        return all(_is_fixed(one) or _of_form(one) for one in node.elts)
    if isinstance(node, m.BinOp):
        return all(_is_fixed(one) or _of_form(one) for one in (node.left, node.right))
    return isinstance(node, (m.Const, m.Name))


def _asks(parent: Any, node: Any) -> bool:
    if isinstance(parent, m.Attr):
        return parent.value is node and parent.name.partition(".")[0] in FORM
    return isinstance(parent, m.Call) and called_name(parent) in _OF_FORM and node in parent.args
