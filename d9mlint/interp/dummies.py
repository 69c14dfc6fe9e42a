"""Draws whose values do not matter: a model is called with them to build it, or to see the sizes of what it gives."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from d9mlint.interp import shapes
from d9mlint.interp import values as v
from d9mlint.interp.naming import called_in_library
from d9mlint.interp.order_reductions import FORM
from d9mlint.ir import nodes as m
from d9mlint.ir.liveness import may_be_shared
from d9mlint.ir.traversal import nodes, parents, variables

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.view import RunView

_MOST_NESTED = 10
_LOADING = "load_weights"
"""The method of a model that loads a file over everything that its layers keep."""
_CALLED = ("__call__", "call", "forward", "build")
"""Methods that a call of a model runs."""
_BASES = ("Module", "Layer", "Initializer")
"""Base classes of layers and what these are made with, which stand in the same module as the classes derived from them."""


def is_dummy(interp: Interp, node: Any, fn: m.Function | None) -> bool | None:
    """Whether all that is drawn at a node goes into calls of models, which it does not change, and of what they give
    nothing but the form is looked at; None where it goes elsewhere whatever is called."""
    if fn is None or not isinstance(node, m.Call):
        return None
    above = parents(fn)
    # It may be converted first.
    while (user := _converted(interp, node, above)) is not node:
        if user is None:
            return None
        node = user
    stmt = above.get(id(node))
    uses: list[Any] | None = [node]
    if isinstance(stmt, m.Assign):
        uses = uses_of(stmt, fn)
    if not uses:
        return None
    calls = [_called_with(interp, one, fn, above) for one in uses if one is node or not _is_form(one)]
    models = [one for one in calls if one is not None]
    if len(models) < len(calls) or (isinstance(stmt, m.Assign) and _are_shared(interp, stmt, fn)):
        return None
    return all(
        is_unchanged(interp, interp.eval(one), layers=_is_loaded_next(one, fn, above)) for one in models
    )


def _converted(interp: Interp, node: Any, above: dict[int, Any]) -> Any:
    """The expression that makes another array of the one at a node, the node itself where there is none, and None where
    something else is made of it."""
    user = above.get(id(node))
    if isinstance(user, m.Attr) and user.name not in FORM:
        call = above.get(id(user))
        return call if isinstance(call, m.Call) and call.func is user else None
    if isinstance(user, (m.BinOp, m.Unary)):
        return user
    call = above.get(id(user)) if isinstance(user, m.Keyword) else user
    if isinstance(call, m.Call) and call.func is not node:
        # What a tensor function gives depends on its arguments alone.
        return call if interp.kb.tensor(called_in_library(interp, call)) is not None else node
    return node


def _is_loaded_next(model: m.Name, fn: m.Function, above: dict[int, Any]) -> bool:
    """Whether the statement behind the one that calls a model loads a file over all that its layers keep."""
    stmt: Any = above.get(id(model))
    while stmt is not None and not isinstance(stmt, (m.Assign, m.ExprStmt)):
        stmt = above.get(id(stmt))
    holder = above.get(id(stmt)) or fn
    blocks = [getattr(holder, name, ()) for name in ("body", "orelse", "final")]
    behind = [after for block in blocks for one, after in pairwise(block) if one is stmt]
    load = behind[0].value if behind and isinstance(behind[0], m.ExprStmt) else None
    return (
        isinstance(load, m.Call)
        and isinstance(load.func, m.Name)
        and load.func.id == f"{model.id}.{_LOADING}"
        and len(load.args) == 1
        and not load.keywords
    )


def _is_form(node: m.Name) -> bool:
    return node.id.partition(".")[2] in FORM


def uses_of(stmt: m.Assign, fn: m.Function) -> list[m.Name] | None:
    """Where a function reads the variables that a statement of it assigns, each the only one that does; None where that is
    not known."""
    targets = [one for one in nodes(stmt.targets) if not isinstance(one, m.Seq)]
    if len(stmt.targets) != 1 or not all(isinstance(one, m.Name) and "." not in one.id for one in targets):
        return None
    names, above = {one.id for one in targets}, parents(fn)
    own = {id(one) for one in targets}
    reads = [one for name in sorted(names) for one in variables(fn).get(name, ()) if id(one) not in own]
    return None if any(_is_assigned(one, above) for one in reads) else reads


def _are_shared(interp: Interp, stmt: m.Assign, fn: m.Function) -> bool:
    """Whether other code may read the variables that a statement assigns: asked last, as the whole file is read for it."""
    names = {one.id for one in nodes(stmt.targets) if isinstance(one, m.Name)}
    return may_be_shared(interp.whole(interp.frame.file), fn, names)


def _is_assigned(node: Any, above: dict[int, Any]) -> bool:
    """Whether an expression stands where something is assigned to it."""
    user = above.get(id(node))
    while isinstance(user, (m.Seq, m.Star)):
        node, user = user, above.get(id(user))
    if isinstance(user, m.Assign):
        return user.value is not node
    return getattr(user, "target", None) is node


def _called_with(interp: Interp, node: Any, fn: m.Function, above: dict[int, Any]) -> m.Name | None:
    """The name of what an expression is given to, if of the result only the form is looked at."""
    call = above.get(id(node))
    while isinstance(call, m.Seq):
        node, call = call, above.get(id(call))
    if (
        not isinstance(call, m.Call)
        or not all(isinstance(one.value, m.Const) and not trains(one) for one in call.keywords)
        or not isinstance(call.func, m.Name)
        or node is call.func
    ):
        return None
    user = above.get(id(call))
    if isinstance(user, m.Assign):
        uses = uses_of(user, fn)
        if uses is None or not all(map(_is_form, uses)) or _are_shared(interp, user, fn):
            return None
    elif not isinstance(user, m.ExprStmt) and not (isinstance(user, m.Attr) and user.name in FORM):
        return None
    return call.func


def trains(keyword: m.Keyword) -> bool:
    """Whether an argument asks a layer to learn from its input."""
    return keyword.name is None or (isinstance(keyword.value, m.Const) and keyword.value.value is True)


def is_unchanged(interp: RunView, model: v.Value, depth: int = 0, layers: bool = False) -> bool:
    """Whether a call of a model changes nothing in it; with ``layers``, other than in layers of libraries."""
    if depth > _MOST_NESTED:
        return False
    if depth and shapes.is_whole_number(model):
        return True
    if isinstance(model, v.Inst):
        bases = model.cls.external_bases()
        if not bases or any(interp.kb.role(base, "unchanged-by-call") is None for base in bases):
            return False
        if not all(_does_nothing_else(one.fn) for one in _methods(model.cls)):
            return False
        held = list(model.attrs.values())
    elif isinstance(model, v.Obj) and depth and layers:
        held = [*model.args.values(), *model.attrs.values()]
    elif isinstance(model, v.Obj):
        own = interp.kb.role(model.api, "unchanged-by-call")
        if own is not None and "whole" in own.more:
            # It has nothing that could change, whatever it was made with.
            return True
        module = model.api.rpartition(".")[0]
        names = (model.api, model.type, *(f"{module}.{base}" for base in _BASES))
        if all(interp.kb.role(name, "unchanged-by-call") is None for name in names):
            return False
        if interp.kb.role(model.api, "keeps-statistics") is not None or model.args.star or model.args.dstar:
            return False
        held = [*model.args.values(), *model.attrs.values()]
    elif depth and isinstance(model, v.Items):
        held = list(model.elts)
    elif depth and isinstance(model, v.Mapping):
        held = list(model.items.values())
    elif depth and isinstance(model, v.AnyOf):
        held = list(model.values)
    else:
        # What initializes weights may be a function.
        harmless = isinstance(model, v.Func) and _does_nothing_else(model.fn)
        return depth > 0 and (harmless or isinstance(model, v.Lit | v.Ext))
    return all(is_unchanged(interp, one, depth + 1, layers) for one in held)


def _methods(cls: v.Cls) -> list[v.Func]:
    """The methods that a call of an instance may run."""
    own = {name: one for name, one in cls.env.vars.items() if isinstance(one, v.Func)}
    reached = [name for name in _CALLED if name in own]
    if not reached:
        return [one for name, one in own.items() if name != "__init__"]
    for name in reached:
        for one in nodes(own[name].fn.body):
            text = one.id if isinstance(one, m.Name) else one.name if isinstance(one, m.Attr) else ""
            reached += [part for part in text.split(".") if part in own and part not in reached]
    return [own[name] for name in reached]


def _does_nothing_else(fn: m.Function) -> bool:
    """Whether a method changes only its own variables, and calls nothing for its effect."""
    for one in nodes(fn.body):
        if isinstance(one, (m.ExprStmt, m.Delete, m.ScopeDecl)):
            return False
        if isinstance(one, (m.Assign, m.AugAssign)):
            parts = nodes(one.targets if isinstance(one, m.Assign) else [one.target])
            if any(
                isinstance(x, (m.Attr, m.Subscript)) or (isinstance(x, m.Name) and "." in x.id) for x in parts
            ):
                return False
    return True
