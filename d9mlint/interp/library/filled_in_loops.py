"""Weights that a loop writes over one by one: ``for p in model.parameters(): p.data.fill_(0.1)``.

Where it does so for each parameter of a module, the initial weights count as little as where others are loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import tensors
from d9mlint.interp import values as v
from d9mlint.interp.library.weights import is_loaded, set_all
from d9mlint.interp.passed_on import PASS_THROUGH, inside
from d9mlint.ir import nodes as m
from d9mlint.ir.forms import only_form
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_DATA = f"{tensors.TENSOR}.data"
_SOME = frozenset({"itertools.islice", "itertools.cycle"})
"""What may pass on some elements only, or some again and again."""
_GIVING = frozenset({"parameters", "named_parameters", "state_dict"})
_LEAVING = (m.Jump, m.Return, m.Raise, m.Assert)


def written(interp: Interp, target: v.Value) -> None:
    """A parameter is written over."""
    parameter = target
    if isinstance(target, v.Member) and target.name == "data":
        parameter = target.owner
    elif isinstance(target, v.Obj) and target.api == _DATA:
        parameter = target.args.pos[0]
    module = parameter.attrs.get(tensors.MODULE_OF) if isinstance(parameter, v.Obj) else None
    if not isinstance(module, (v.Inst, v.Obj)):
        return
    loop = interp.loops[-1] if interp.loops else None
    if loop is None or loop.frame is not interp.frame:
        return
    stmt = loop.stmt
    if not isinstance(stmt, m.For) or not _stands_in(interp.statement, stmt.body):
        return
    if any(isinstance(one, _LEAVING) for one in nodes(stmt.body)) or not _is_each(loop.over, module):
        return
    names = {
        one.id
        for one in nodes([stmt.target])
        if isinstance(one, m.Name) and interp.frame.env.vars.get(one.id) is parameter
    }
    if len(names) == 1 and not _reads(interp, names.pop()) and not _others(interp, module):
        set_all(interp, module)


def _stands_in(stmt: Any, body: list[m.Stmt]) -> bool:
    """Whether a statement is one of a body that are always run."""
    return any(one is stmt or (isinstance(one, m.With) and _stands_in(stmt, one.body)) for one in body)


def _is_each(over: v.Value | None, module: v.Value) -> bool:
    """Whether a loop goes through all parameters of a module, perhaps beside other things."""
    if not isinstance(over, v.Obj):
        return False
    if over.attrs.get(tensors.MODULE_OF) is module:
        return not over.args.pos and not over.args.kw
    if over.api in PASS_THROUGH - _SOME:
        return _is_each(inside(over), module)
    return over.api == "builtins.zip" and any(_is_each(one, module) for one in over.args.pos)


def _reads(interp: Interp, name: str) -> bool:
    """Whether the statement that writes over a parameter computes what it writes from it."""
    stmt = interp.statement
    if isinstance(stmt, m.Assign):
        read = [stmt.value]
    elif isinstance(stmt, m.ExprStmt) and isinstance(stmt.value, m.Call):
        call = stmt.value
        read = [*call.args, *(one.value for one in call.keywords)]
        if isinstance(call.func, m.Name) and call.func.id.partition(".")[0] != name:
            # `constant_(p, 0.1)`: the first is what is written over.
            read = read[1:]
    else:
        return True
    stack: list[Any] = list(read)
    while stack:
        node = stack.pop()
        if only_form(node) or _looks_only(interp, node):
            continue
        if isinstance(node, m.Name) and node.id.partition(".")[0] == name:
            return True
        stack += [one for one in nodes([node]) if one is not node]
    return False


def _looks_only(interp: Interp, node: Any) -> bool:
    """Whether a call makes something of the form of its argument: ``torch.zeros_like(p)``."""
    if not isinstance(node, m.Call) or not isinstance(node.func, m.Name) or len(node.args) != 1:
        return False
    called = interp.eval(node.func)
    return (
        isinstance(called, v.Ext)
        and interp.kb.role(interp.kb.canonical(called.name), "looks-only") is not None
    )


def _others(interp: Interp, module: v.Value) -> bool:
    """Whether the function takes weights of another module, which nobody has loaded: they may be what is written."""
    for one in nodes(interp.frame.body):
        if isinstance(one, m.Call) and isinstance(one.func, m.Name) and "." in one.func.id:
            owner, _, method = one.func.id.rpartition(".")
            if method in _GIVING:
                other = interp.eval(m.Name(owner, one.start, one.end))
                if other is not module and not is_loaded(other):
                    return True
    return False
