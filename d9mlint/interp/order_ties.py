"""Sorts by what several elements may have alike, such as a length or a count: they leave those elements in the order in
which they were, and of several that are the largest the first one is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.order_kinds import TEXT, kind_of_elements
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memo
from d9mlint.ir.traversal import called_name, nodes, receiver, statements

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_LOOK_UPS = frozenset({"get", "__getitem__"})
"""Methods of a dict that give what is there for a key."""
PAIRS = "items"
"""The method of a dict that gives its keys, each with what is there for it."""
_counts: dict[int, tuple[object, frozenset[str]]] = memo()


def ties(interp: Interp, given: v.Value) -> bool:
    """Whether several elements may give the same key: a length, or how often they occur."""
    if isinstance(given, v.Member):
        return _attribute_ties(interp, given.name)
    if not isinstance(given, v.Obj):
        return False
    entry = interp.kb.order(given.api, given.owner is not None) or interp.kb.order(given.api)
    return entry is not None and entry.ties


def _attribute_ties(interp: Interp, name: str) -> bool:
    entry = interp.kb.order(f"?.{name}", True)
    return entry is not None and entry.ties


def keeps_ties(interp: Interp, key: v.Value, written: m.Expr | None, given: v.Value, source: m.Expr) -> bool:
    """Whether a function that is given as a key is one of which several elements may give the same. ``written`` is how the
    program names it, ``given`` are the elements, and ``source`` how the program names these."""
    if isinstance(key, v.Member) and key.name in _LOOK_UPS and isinstance(key.owner, v.Mapping):
        table = written.id.rpartition(".")[0] if isinstance(written, m.Name) else ""
        return _has_ties(interp, key.owner) or _counts_in(interp, table)
    if isinstance(key, v.Member):
        owner = key.owner.type if isinstance(key.owner, v.Obj) else ""
        entry = interp.kb.order(f"{owner}.{key.name}", True)
        return entry is not None and entry.ties
    if isinstance(key, v.Ext):
        entry = interp.kb.order(interp.kb.canonical(key.name))
        return entry is not None and entry.ties
    if isinstance(key, v.Obj) and interp.kb.role(key.api, "takes-item") is not None:
        at = key.args.pos[0] if len(key.args.pos) == 1 else None
        return isinstance(at, v.Lit) and _item_ties(interp, at.value, given, source)
    if isinstance(key, v.Func) and isinstance(written, m.Lambda) and len(key.fn.params) == 1:
        if _gives_ties(interp, _returned(key.fn), key.fn.params[0].name, given, source):
            return True
    return isinstance(key, v.Func) and _gives_few(interp, key, given, source)


def _gives_few(interp: Interp, key: v.Func, given: v.Value, source: m.Expr) -> bool:
    """Whether a function gives one of a few values for each element: constants, answers to tests, one character."""
    if not key.fn.params:
        return False
    name = key.fn.params[-1].name
    found = [one.value for one in statements(interp.body(key)) if isinstance(one, m.Return)]
    return bool(found) and all(
        one is not None and _is_one_of_few(interp, one, name, given, source) for one in found
    )


def _is_one_of_few(interp: Interp, node: m.Expr, name: str, given: v.Value, source: m.Expr) -> bool:
    """The same for an expression, in which the element has a name."""
    if isinstance(node, m.Const | m.Compare):
        return True
    parts: list[m.Expr]
    if isinstance(node, m.Unary):
        parts = [node.operand]
    elif isinstance(node, m.IfExp):
        parts = [node.body, node.orelse]
    elif isinstance(node, m.BoolOp | m.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, m.Seq):
        parts = node.elts
    elif isinstance(node, m.Subscript):
        at = node.index.value if isinstance(node.index, m.Const) else None
        return _is(node.value, name) and _item_ties(interp, at, given, source)
    elif isinstance(node, m.Call):
        called = called_name(node)
        entry = interp.kb.order(f"builtins.{called}") or interp.kb.order(f"?.{called}", True)
        return entry is not None and entry.ties
    else:
        return False
    return bool(parts) and all(_is_one_of_few(interp, one, name, given, source) for one in parts)


def _returned(fn: m.Function) -> Any:
    """What a lambda gives, without its sign."""
    given: Any = fn.body[0].value if fn.body and isinstance(fn.body[0], m.Return) else None
    return given.operand if isinstance(given, m.Unary) and given.op == "-" else given


def _gives_ties(interp: Interp, asked: Any, name: str, given: v.Value, source: m.Expr) -> bool:
    """Whether what is looked up for an element, ``sizes[x]``, or what stands at one place in it, ``x[1]``, may be the same
    for several elements."""
    if isinstance(asked, m.Call) and called_name(asked) in _LOOK_UPS and asked.args:
        return _is(asked.args[0], name) and _in_table(interp, receiver(asked))
    if isinstance(asked, m.Attr):
        return _attribute_ties(interp, asked.name)
    if not isinstance(asked, m.Subscript) or not isinstance(asked.value, m.Name):
        return False
    if _is(asked.index, name):
        return _in_table(interp, asked.value.id)
    return (
        asked.value.id == name
        and isinstance(asked.index, m.Const)
        and _item_ties(interp, asked.index.value, given, source)
    )


def _item_ties(interp: Interp, at: object, given: v.Value, source: m.Expr) -> bool:
    """Whether several elements may have the same at a place: what a dictionary has counted, or a character of a text."""
    if not isinstance(at, int):
        return False
    if isinstance(source, m.Call) and called_name(source) == PAIRS and not source.args:
        return at in (1, -1) and _in_table(interp, receiver(source))
    one = v.join(given.elts) if isinstance(given, v.Items) and given.elts else None
    if isinstance(one, v.Items) and one.kind == "t" and -len(one.elts) <= at < len(one.elts):
        return ties(interp, one.elts[at])
    return kind_of_elements(interp, given, source) == TEXT


def _is(node: m.Expr, name: str) -> bool:
    return isinstance(node, m.Name) and node.id == name


def _in_table(interp: Interp, name: str) -> bool:
    """Whether several keys of a dictionary may hold the same."""
    if not name:
        return False
    held = interp.eval(m.Name(name, 0, 0))
    if isinstance(held, v.Obj):
        return any(
            (entry := interp.kb.order(f"{held.type}.{method}", True)) is not None and entry.ties
            for method in _LOOK_UPS
        )
    return _has_ties(interp, held) or _counts_in(interp, name)


def _has_ties(interp: Interp, table: v.Value) -> bool:
    return isinstance(table, v.Mapping) and any(ties(interp, one) for one in table.items.values())


def _counts_in(interp: Interp, table: str) -> bool:
    """Whether the running function counts in a dictionary: ``seen[name] += 1``, ``seen[name] = seen.get(name, 0) + 1``."""
    fn = interp.frame.function
    known = _counts.get(id(fn))
    if known is None or known[0] is not fn:
        known = _counts[id(fn)] = (fn, frozenset(filter(None, map(_counted, nodes(fn.body)))))
    return table in known[1]


def _counted(stmt: Any) -> str:
    """The dictionary in which a statement counts one more."""
    if isinstance(stmt, m.AugAssign):
        target: Any = stmt.target
        counts = stmt.op in ("+", "+=") and _is_number(stmt.value)
    elif isinstance(stmt, m.Assign) and len(stmt.targets) == 1 and isinstance(stmt.value, m.BinOp):
        target, added = stmt.targets[0], stmt.value
        sides = (added.left, added.right)
        counts = added.op == "+" and any(map(_is_number, sides)) and any(_reads(one, target) for one in sides)
    else:
        return ""
    named = counts and isinstance(target, m.Subscript) and isinstance(target.value, m.Name)
    return target.value.id if named else ""


def _is_number(node: m.Expr) -> bool:
    return isinstance(node, m.Const) and type(node.value) is int


def _reads(node: m.Expr, target: Any) -> bool:
    """Whether an expression is what a dictionary holds, of which the target is an item."""
    if not isinstance(target, m.Subscript) or not isinstance(target.value, m.Name):
        return False
    if isinstance(node, m.Call):
        return called_name(node) in _LOOK_UPS and receiver(node) == target.value.id
    return isinstance(node, m.Subscript) and _is(node.value, target.value.id)
