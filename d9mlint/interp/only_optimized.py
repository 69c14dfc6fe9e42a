"""Weights that an optimizer is given and that nothing computes with: no gradient reaches them, and no step changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.containers import CONTAINERS
from d9mlint.interp.naming import called_in_library, running
from d9mlint.ir import liveness
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memoized
from d9mlint.ir.forms import only_form
from d9mlint.ir.traversal import nodes, parents

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

_PARAMETERS = frozenset({"parameters", "named_parameters"})
"""Methods of modules that give an optimizer the weights."""
_KEY = "params"
"""Under this name an optimizer gives them back."""


def is_only_optimized(run: RunView, node: Any) -> bool:
    """Whether the running statement keeps a module in a variable, alone or in a container of modules, and all that is done
    with that is to give its parameters to optimizers, or to ask them for their form; in a function, whether nothing is."""
    stmt, frame, function = run.statement, run.frame, running(run)
    if function is None or frame.keeps_locals or not isinstance(stmt, m.Assign):
        return False
    names = liveness.stored_names(stmt)
    if len(names) != 1 or not _is_kept(run, function, stmt, node):
        return False
    calls = _asking_for_parameters(function)
    if calls is None:
        return False
    above = parents(function)
    asked = [one.func for one in calls if isinstance(one.func, m.Name) and _is_given(run, above, one)]
    passed = {id(one) for one in asked if one.id.partition(".")[0] in names}
    others = run.entry is not frame.file or frame.file.path in run.imported_files
    if not passed and (
        frame.func is None or not isinstance(stmt.value, m.Call) or isinstance(stmt.value.func, m.Attr)
    ):
        return False
    if not liveness.is_dead_besides(function, stmt, passed, others):
        return False
    return not liveness.may_be_shared(run.whole(frame.file), function, names)


@memoized
def _asking_for_parameters(function: m.Function) -> list[m.Call] | None:
    """The calls in a function that ask variables for their parameters; None where it asks an optimizer for its own.
    Memoised while the function lives."""
    found: list[m.Call] = []
    for one in nodes(function.body):
        if isinstance(one, m.Const) and one.value == _KEY:
            return None
        if isinstance(one, m.Call) and isinstance(one.func, m.Name):
            if one.func.id.partition(".")[2] in _PARAMETERS:
                found.append(one)
    return found


def _is_kept(run: RunView, function: m.Function, stmt: m.Assign, node: Any) -> bool:
    """Whether an assignment keeps a module that it makes, or the container of modules, or what a method of these gives:
    ``nn.Sequential(nn.Linear(4, 4)).cuda()``."""
    above, child = parents(function), node
    while child is not None and child is not stmt.value:
        child, given = above.get(id(child)), child
        if (
            isinstance(child, m.Call)
            and child.func is not given
            and called_in_library(run, child) not in CONTAINERS
        ):
            return False
        if not isinstance(child, (m.Call, m.Seq, m.Attr)):
            return False
    return child is stmt.value


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
