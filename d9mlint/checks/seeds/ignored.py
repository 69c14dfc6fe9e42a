"""Generators that are handed only to functions of the program which make no use of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.ir import liveness
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView


def is_ignored(run: RunView, made: Any) -> bool:
    """Whether what the running statement makes is given to such functions alone, at once or by a variable of the running
    function."""
    stmt = run.statement
    if run.frame.is_class or stmt is None:
        return False
    for call in nodes([stmt]):
        if isinstance(call, m.Call) and any(one is made for one in _arguments(call)):
            return _ignores(run, call, made)
    func = run.frame.func
    if func is None or not isinstance(stmt, m.Assign) or stmt.value is not made or len(stmt.targets) != 1:
        # Other files may use the variables of a module.
        return False
    target = stmt.targets[0]
    if not isinstance(target, m.Name) or "." in target.id:
        return False
    body = func.fn.body
    if liveness.may_be_shared(run.whole(func.file), func.fn, {target.id}) or liveness.declares(
        func.fn, {target.id}
    ):
        return False
    given = {
        id(arg)
        for call in nodes(body)
        if isinstance(call, m.Call)
        for arg in _arguments(call)
        if isinstance(arg, m.Name) and arg.id == target.id and _ignores(run, call, arg)
    }
    uses = [one for one in nodes(body) if isinstance(one, m.Name) and one is not target]
    uses = [one for one in uses if one.id.partition(".")[0] == target.id]
    return bool(uses) and all(id(one) in given for one in uses)


def _arguments(call: m.Call) -> list[m.Expr]:
    return [*call.args, *(one.value for one in call.keywords)]


def _ignores(run: RunView, call: m.Call, given: m.Expr) -> bool:
    """Whether what is called is a function of the program that does not name the parameter of an argument."""
    # Only what is named is looked up: nothing is called again.
    func: v.Value | None = run.value_of(call.func) if isinstance(call.func, m.Name) else None
    bound = isinstance(func, v.Func) and func.receiver is not None
    if isinstance(func, v.Cls) and not func.decorated and set(func.external_bases()) <= {"object"}:
        func, bound = func.find("__init__"), True
    if not isinstance(func, v.Func) or func.decorated:
        return False
    params = func.fn.params[bound:]
    name = next((one.name for one in call.keywords if one.value is given), "")
    if not name:
        before = [one for one in call.args if one is given or isinstance(one, m.Star)]
        if before[0] is not given or call.args.index(given) >= len(params):
            return False
        param = params[call.args.index(given)]
    else:
        named = [one for one in params if one.name == name and one.kind in "ak"]
        if not named:
            return False
        param = named[0]
    if param.kind not in "pak" or liveness.may_be_shared(run.whole(func.file), func.fn, {param.name}):
        return False
    return not liveness.names(func.fn, param.name)
