"""Whether what is taken along a dimension is one entry, as its caller says: ``q.gather(1, actions).squeeze(1)`` removes a
dimension of one entry, which the index has, and who writes ``.view(-1)`` there wants one number for each row."""

from __future__ import annotations

from collections.abc import Iterator

from d9mlint.checks.base import argument_node, called_api
from d9mlint.interp.events import CallEvent
from d9mlint.interp.naming import running
from d9mlint.interp.shapes import form, is_single
from d9mlint.interp.tensors import TENSOR
from d9mlint.interp.view import RunView
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import names_assigned
from d9mlint.ir.traversal import called_name, nodes, receiver, statements, whole_number
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
    written = [one for one in nodes([run.statement]) if isinstance(one, m.Call)]
    return any(_removes(run, one, call.node, taken) for one in written) or any(
        _removes(run, one, name, taken) for one, name in _later(run, call.node)
    )


def _later(run: RunView, taken: m.Call) -> Iterator[tuple[m.Call, str]]:
    """The calls of the running function in which the variable is used that what is taken has been assigned to."""
    function, statement = running(run), run.statement
    if function is None or not isinstance(statement, m.Assign) or statement.value is not taken:
        return
    names = [target.id for target in statement.targets if isinstance(target, m.Name)]
    for name in names if len(names) == len(statement.targets) == 1 else ():
        following = [one for one in statements(function.body) if one.start > statement.start]
        end = min((one.end for one in following if name in names_assigned([one])), default=None)
        for one in nodes(function.body):
            if isinstance(one, m.Call) and one.start > statement.end and (end is None or one.end <= end):
                yield one, name


def _removes(run: RunView, node: m.Call, taken: m.Call | str, dimension: object) -> bool:
    """Whether a call removes a dimension, or all that have one entry, from what another call gives, or joins its rows; or
    from what a variable holds."""
    if _flattens(run, node, taken):
        return dimension in (1, -1)
    if _is_method(node, taken):
        role = run.kb.role(f"{TENSOR}.{called_name(node)}", "removes-single")
    elif isinstance(node.func, m.Name) and node.args and _is(node.args[0], taken):
        role = run.kb.role(called_api(run, node), "removes-single")
    else:
        return False
    if role is None:
        return False
    given = _dimension(node, role)
    return given is None or (isinstance(given, int) and given == dimension)


def _is(node: m.Expr, taken: m.Call | str) -> bool:
    return node is taken or (isinstance(node, m.Name) and node.id == taken)


def _is_method(node: m.Call, taken: m.Call | str) -> bool:
    """Whether what is called is a method of what another call gives, or of a variable."""
    if isinstance(taken, str):
        return receiver(node) == taken
    return isinstance(node.func, m.Attr) and node.func.value is taken


def _flattens(run: RunView, node: m.Call, taken: m.Call | str) -> bool:
    """Whether a call makes one dimension of all that another call gives."""
    if not _is_method(node, taken) or node.keywords:
        return False
    role = run.kb.role(f"{TENSOR}.{called_name(node)}", "flattens")
    if role is None:
        return False
    shape = argument_node(node, role.arg, role.pos) if role.arg else None
    if isinstance(shape, m.Seq) and len(shape.elts) == 1:
        (shape,) = shape.elts
    return len(node.args) == bool(role.arg) and (not role.arg or whole_number(shape) == -1)


def _dimension(node: m.Call, role: RoleEntry) -> object:
    """The number that a call names as its dimension, None where it names none, and a text where it is not written there."""
    given = argument_node(node, role.arg, role.pos)
    if given is None:
        return "computed" if any(isinstance(one, m.Star) for one in node.args) else None
    return given.value if isinstance(given, m.Const) and isinstance(given.value, int) else "computed"
