"""Weights that an optimizer is given and that nothing computes with: no gradient reaches them, and no step changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.naming import running
from d9mlint.ir import liveness
from d9mlint.ir import nodes as m
from d9mlint.ir.forms import only_form
from d9mlint.ir.traversal import nodes, parents

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

_PARAMETERS = frozenset({"parameters", "named_parameters"})
"""Methods of modules that give an optimizer the weights."""
_KEY = "params"
"""Under this name an optimizer gives them back."""


def is_only_optimized(run: RunView, node: Any) -> bool:
    """Whether the running statement keeps a module in a variable, and all that is done with that is to give its parameters
    to optimizers, or to ask them for their form."""
    stmt, frame, function = run.statement, run.frame, running(run)
    if function is None or frame.keeps_locals or not isinstance(stmt, m.Assign) or stmt.value is not node:
        return False
    names = liveness.stored_names(stmt)
    if len(names) != 1 or any(isinstance(one, m.Const) and one.value == _KEY for one in nodes(function.body)):
        return False
    above = parents(function)
    asked = [
        one.func
        for one in nodes(function.body)
        if isinstance(one, m.Call) and isinstance(one.func, m.Name) and _is_given(run, above, one)
    ]
    passed = {id(one) for one in asked if one.id.partition(".")[0] in names}
    others = run.entry is not frame.file or frame.file.path in run.imported_files
    if not passed or not liveness.is_dead_besides(function, stmt, passed, others):
        return False
    return not liveness.may_be_shared(run.whole(frame.file), function, names)


def _is_given(run: RunView, above: dict[int, Any], call: m.Call) -> bool:
    """Whether a call asks for parameters that go to an optimizer alone, or are asked for their form alone."""
    if not isinstance(call.func, m.Name) or call.func.id.partition(".")[2] not in _PARAMETERS:
        return False
    taker: Any = above.get(id(call))
    if isinstance(taker, m.Generator):
        rounds = above.get(id(taker))
        return isinstance(rounds, m.Comp) and only_form(rounds.elt) and not taker.ifs
    if isinstance(taker, m.Keyword):
        taker = above.get(id(taker))
    if not isinstance(taker, m.Call) or taker.func is call:
        return False
    return _is_optimizer(run, run.value_of(taker.func))


def _is_optimizer(run: RunView, called: v.Value) -> bool:
    """Whether what is called makes an optimizer, also one of several, or with some arguments given before."""
    if isinstance(called, v.Partial):
        return _is_optimizer(run, called.func)
    if isinstance(called, v.AnyOf):
        return all(_is_optimizer(run, one) for one in called.values)
    if not isinstance(called, v.Ext):
        return False
    return run.kb.role(run.kb.canonical(called.name), "trains-parameters") is not None
