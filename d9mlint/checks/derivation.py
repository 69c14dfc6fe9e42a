"""Whether an expression is computed from what calls of some role give, such as the clock or the free memory.

It is followed by names through the assignments of the running function and the bodies of small project functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.named_sizes import assignments_in_parts
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import children, nodes

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import Role, RoleEntry

_DEPTH = 4


def derives(interp: RunView, expr: Any, role: Role, depth: int = 0) -> str:
    """The canonical name of a call of this role that an expression depends on; empty when there is none."""
    if depth > _DEPTH or expr is None:
        return ""
    for node in _parts(interp, expr, role):
        found = ""
        if isinstance(node, m.Call):
            found = _called(interp, interp.eval(node.func), role, depth)
        elif isinstance(node, m.Name):
            found = _held(interp, interp.eval(node), role)
            if not found:
                found = _assigned(interp, node.id, role, depth)
        elif isinstance(node, m.Subscript):
            found = _variable(interp, node, role)
        if found:
            return found
    return ""


def _parts(interp: RunView, expr: Any, role: Role) -> Iterator[Any]:
    """An expression and all parts of it, without those that take from a result what the role is not about."""
    stack: list[Any] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, (m.Attr, m.Subscript)) and isinstance(node.value, m.Call):
            entry = _entry(interp, node.value, role)
            part = node.name if isinstance(node, m.Attr) else node.index
            if entry is not None and (
                part == entry.arg if isinstance(part, str) else _is_number(part, entry.pos)
            ):
                continue
        yield node
        stack.extend(children(node))


def _is_number(node: Any, number: int | None) -> bool:
    return number is not None and isinstance(node, m.Const) and node.value == number


def _entry(interp: RunView, call: m.Call, role: Role) -> RoleEntry | None:
    func = interp.eval(call.func)
    return interp.kb.role(interp.kb.canonical(func.name), role) if isinstance(func, v.Ext) else None


def _held(interp: RunView, value: v.Value, role: Role) -> str:
    for one in v.alternatives(value):
        if isinstance(one, v.Obj) and interp.kb.role(one.api, role) is not None:
            return one.api
    return ""


def _called(interp: RunView, func: v.Value, role: Role, depth: int) -> str:
    if isinstance(func, v.Ext):
        name = interp.kb.canonical(func.name)
        return name if interp.kb.role(name, role) is not None else ""
    if isinstance(func, v.Member) and isinstance(func.owner, v.Obj):
        name = f"{func.owner.type}.{func.name}"
        return name if interp.kb.role(name, role) is not None else ""
    if isinstance(func, v.Func) and len(interp.body(func)) <= 3:
        for node in nodes(list(func.fn.body)):
            if isinstance(node, m.Call) and isinstance(node.func, m.Name):
                head, *rest = node.func.id.split(".")
                value = func.env.vars.get(head) or func.mod.env.read(head)
                if isinstance(value, v.Ext):
                    name = interp.kb.canonical(".".join([value.name, *rest]))
                    if interp.kb.role(name, role) is not None:
                        return name
    return ""


def _variable(interp: RunView, node: m.Subscript, role: Role) -> str:
    """``os.environ["RANK"]``: variables that launchers set are known by their names."""
    if isinstance(node.index, m.Const) and isinstance(node.value, m.Name):
        owner = interp.eval(node.value)
        if isinstance(owner, v.Ext) and owner.name == "os.environ":
            name = f"env:{node.index.value}"
            return name if interp.kb.role(name, role) is not None else ""
    return ""


def _assigned(interp: RunView, name: str, role: Role, depth: int) -> str:
    for value, position in assignments_in_parts(interp, name):
        entry = _entry(interp, value, role) if position is not None and isinstance(value, m.Call) else None
        if entry is not None and position == entry.pos:
            continue
        inside: list[Any] = [value]
        if not any(isinstance(one, m.Name) and one.id == name for one in nodes(inside)):
            found = derives(interp, value, role, depth + 1)
            if found:
                return found
    return ""


def default(interp: RunView, expr: m.Expr | None) -> Any:
    """The literal that a name stands for where nobody gives another one: the default of a parameter of the running
    function or, for an attribute of ``self``, of the parameter of the constructor that it keeps. None for anything
    else."""
    func = interp.frame.func
    if func is None or not isinstance(expr, m.Name):
        return None
    head, _, attribute = expr.id.partition(".")
    if attribute:
        first = func.fn.params[0].name if func.fn.params else ""
        made = func.cls.find("__init__") if func.cls is not None and head == first else None
        if not isinstance(made, v.Func):
            return None
        kept = [
            one.value
            for one in nodes(list(made.fn.body))
            if isinstance(one, m.Assign)
            and any(isinstance(target, m.Name) and target.id == expr.id for target in one.targets)
        ]
        if len(kept) != 1 or not isinstance(kept[0], m.Name):
            return None
        func, head = made, kept[0].id
    known = next((one.default for one in func.fn.params if one.name == head), None)
    return known.value if isinstance(known, m.Const) else None
