"""Items that a program makes to ask them for their form: what is drawn for them does not matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.naming import needs_form_only, running
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import own_names
from d9mlint.ir.traversal import nodes, parents, statements, variables

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView


def is_asked_for_form(run: RunView, node: Any, owner: v.Inst, method: v.Func) -> bool:
    """Whether the program asks an item for nothing but its form, and making that changes nothing."""
    function = running(run)
    if function is None or not needs_form_only(run, node):
        return False
    kept = parents(function).get(id(node))
    while isinstance(kept, m.Subscript):
        kept = parents(function).get(id(kept))
    if isinstance(kept, m.Assign):
        if function.name == "<module>" and run.frame.file.path in run.imported_files:
            # Other files may read what a module keeps.
            return False
    return changes_own_only(owner.cls, method)


def changes_own_only(cls: v.Cls, method: v.Func) -> bool:
    """Whether a method, and those of its object that it may call, change nothing but their own variables."""
    return all(map(_changes_own_only, _reached(cls, method)))


def _reached(cls: v.Cls, method: v.Func) -> list[v.Func]:
    """A method, and those of its object that it may call."""
    found = {method.key: method}
    left = [method]
    while left:
        fn = left.pop().fn
        own = fn.params[0].name if fn.params else ""
        for name in variables(fn).get(own, ()):
            other = cls.find(name.id.split(".")[1]) if "." in name.id else None
            if isinstance(other, v.Func) and other.key not in found:
                found[other.key] = other
                left.append(other)
    return list(found.values())


def _changes_own_only(function: v.Func) -> bool:
    """Whether a function changes nothing but what its own variables hold, as far as its statements say."""
    fn = function.fn
    own = own_names(fn) - {one.name for one in fn.params}
    for stmt in statements(fn.body):
        if isinstance(stmt, m.ExprStmt):
            if not _changes_arguments_only(function, stmt.value, own):
                return False
        elif isinstance(stmt, (m.ScopeDecl, m.Delete)):
            return False
        elif isinstance(stmt, (m.Assign, m.AugAssign, m.For)):
            for one in stmt.targets if isinstance(stmt, m.Assign) else [stmt.target]:
                if not all(map(own.__contains__, _changed(one))):
                    return False
    return True


def _changes_arguments_only(function: v.Func, call: m.Expr, own: frozenset[str]) -> bool:
    """Whether a statement calls a method of something of the function's own, or a function of a library for that."""
    if not isinstance(call, m.Call) or not isinstance(call.func, m.Name):
        return False
    root, _, method = call.func.id.partition(".")
    if method and root in own:
        return True
    called = function.mod.env.vars.get(root)
    given = [one for one in nodes([*call.args, *call.keywords]) if isinstance(one, m.Name)]
    return (called is None or isinstance(called, v.Ext)) and all(_root(one) in own for one in given)


def _changed(target: m.Expr) -> list[str]:
    """The variables a part of which an assignment changes."""
    if isinstance(target, m.Seq):
        return [name for one in target.elts for name in _changed(one)]
    if isinstance(target, m.Star):
        return _changed(target.value)
    if isinstance(target, m.Name) and "." not in target.id:
        return []
    while isinstance(target, (m.Subscript, m.Attr)):
        target = target.value
    return [_root(target) if isinstance(target, m.Name) else ""]


def _root(name: m.Name) -> str:
    return name.id.partition(".")[0]
