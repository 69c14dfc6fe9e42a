"""Lists that are shuffled where nothing reads their order any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.naming import called_in_library, running
from d9mlint.ir import liveness
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import own_names
from d9mlint.ir.traversal import called_name, nodes, parents, variables

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

_NEW = frozenset({"builtins.list", "builtins.sorted"})
"""What makes a list that nothing else holds, whatever it is given."""
_AT_ONCE = frozenset(
    f"builtins.{name}"
    for name in ("len", "sum", "min", "max", "sorted", "list", "tuple", "set", "any", "all", "print", "str")
)
"""What keeps nothing of what it reads."""
_NUMBERS = frozenset({"len", "range", "int"})


def is_unread(run: RunView, node: Any) -> bool:
    """Whether a call that is a statement puts what a variable holds into another order, where nothing else holds that and
    nothing reads the order any more."""
    stmt, function = run.statement, running(run)
    if (
        function is None
        or run.frame.keeps_locals
        or not isinstance(stmt, m.ExprStmt)
        or stmt.value is not node
    ):
        return False
    changed = node.args[0] if isinstance(node, m.Call) and node.args else None
    if not isinstance(changed, m.Name) or "." in changed.id:
        return False
    name = changed.id
    if name not in own_names(function) or any(one.name == name for one in function.params):
        return False
    file, uses = run.frame.file, variables(function)[name]
    # What a module leaves may be read by others, and who shuffles and does nothing else tries that out.
    kept = function.name == "<module>" and (
        file.path in run.imported_files or all(one.start < stmt.end for one in uses)
    )
    if not liveness.unread_change(function, stmt, name, kept):
        return False
    above = parents(function)
    if not all(_holds_alone(run, one, above) for one in uses if one is not changed):
        return False
    if liveness.declares(function, {name}):
        return False
    return not liveness.may_be_shared(run.whole(file), function, {name})


def _holds_alone(run: RunView, one: m.Name, above: dict[int, Any]) -> bool:
    """Whether a variable is assigned something new where it is named, or no part of what it holds is kept there."""
    parent = above.get(id(one))
    if isinstance(parent, m.Assign) and parent.value is not one:
        return len(parent.targets) == 1 and parent.targets[0] is one and _is_new(run, parent.value)
    if isinstance(parent, m.Call) and parent.func is not one:
        return called_in_library(run, parent) in _AT_ONCE
    if isinstance(parent, m.Subscript):
        return parent.value is one and not isinstance(parent.index, m.Slice | m.Seq)
    if isinstance(parent, m.Call):
        return one.id.count(".") == 1
    return isinstance(parent, m.Compare | m.FString) or (isinstance(parent, m.For) and parent.iter is one)


def _is_new(run: RunView, value: m.Expr) -> bool:
    """Whether an expression makes something that nothing else holds."""
    if isinstance(value, m.Seq):
        return value.kind == "l"
    if isinstance(value, m.Call):
        name = called_in_library(run, value)
        return name in _NEW or (bool(name) and all(_is_number(run, one) for one in value.args))
    return isinstance(value, m.Comp | m.BinOp)


def _is_number(run: RunView, given: m.Expr) -> bool:
    """Whether an argument is no array, of which what is made of it could be a part."""
    if isinstance(given, m.Call):
        return called_name(given) in _NUMBERS
    return all(
        isinstance(one, m.Const | m.BinOp)
        or (isinstance(one, m.Name) and isinstance(run.value_of(one), v.Lit))
        for one in nodes([given])
    )
