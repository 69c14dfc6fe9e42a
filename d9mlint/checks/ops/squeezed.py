"""Whether what is taken along a dimension is one entry, as its caller says: ``q.gather(1, actions).squeeze(1)`` removes a
dimension of one entry, which the index has."""

from __future__ import annotations

from d9mlint.checks.base import argument_node
from d9mlint.interp.events import CallEvent
from d9mlint.interp.shapes import form, is_single
from d9mlint.interp.tensors import TENSOR
from d9mlint.interp.view import RunView
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes
from d9mlint.knowledge.schema import RoleEntry


def takes_one(run: RunView, call: CallEvent) -> bool:
    """Whether a call takes elements at an index, and the dimension in which it takes them is removed from the result."""
    role = run.kb.role(call.api, "shaped-as-index")
    if role is None or run.statement is None or not isinstance(call.node, m.Call):
        return False
    taken = _dimension(call.node, role)
    index = call.args.get("index", None if role.pos is None else role.pos + 1)
    if index is not None and is_single(form(index), taken) is False:
        return False
    return any(
        _removes(run, one, call.node, taken) for one in nodes([run.statement]) if isinstance(one, m.Call)
    )


def _removes(run: RunView, node: m.Call, taken: m.Call, dimension: object) -> bool:
    """Whether a call removes a dimension, or all that have one entry, from what another call gives."""
    if isinstance(node.func, m.Attr) and node.func.value is taken:
        role = run.kb.role(f"{TENSOR}.{called_name(node)}", "removes-single")
    elif isinstance(node.func, m.Name) and node.args and node.args[0] is taken:
        role = run.kb.role(run.kb.canonical(node.func.id), "removes-single")
    else:
        return False
    if role is None:
        return False
    given = _dimension(node, role)
    return given is None or (isinstance(given, int) and given == dimension)


def _dimension(node: m.Call, role: RoleEntry) -> object:
    """The number that a call names as its dimension, None where it names none, and a text where it is not written there."""
    given = argument_node(node, role.arg, role.pos)
    if given is None:
        return "computed" if any(isinstance(one, m.Star) for one in node.args) else None
    return given.value if isinstance(given, m.Const) and isinstance(given.value, int) else "computed"
