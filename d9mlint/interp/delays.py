"""Random values that only say how long the program waits, as between two attempts: results do not depend on them.

By syntax, with the names of what is called resolved as the program has them: through arithmetic and local variables, all
that a value comes to are arguments of calls that wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.naming import running
from d9mlint.ir import liveness
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes, parents

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView


_MOST_VARIABLES = 3
"""A value is followed through so many variables."""
_NUMBERS = frozenset({f"builtins.{name}" for name in ("min", "max", "abs", "float", "int", "round")})


def delays_only(run: RunView, node: Any) -> bool:
    """Whether what an expression of the running function gives does nothing but make the program wait."""
    function = running(run)
    return function is not None and isinstance(node, m.Call) and _delays(run, function, node, 0)


def _delays(run: RunView, function: m.Function, node: Any, depth: int) -> bool:
    above = parents(function)
    child, parent = node, above.get(id(node))
    while parent is not None:
        if isinstance(parent, m.Call):
            name = _called(run, parent.func) if parent.func is not child else ""
            if run.kb.role(name, "delays") is not None:
                return True
            if name not in _NUMBERS:
                return False
        elif isinstance(parent, (m.Assign, m.AnnAssign)):
            targets = parent.targets if isinstance(parent, m.Assign) else [parent.target]
            return all(_stored(run, function, target, depth) for target in targets)
        elif not isinstance(parent, (m.BinOp, m.Unary, m.IfExp, m.Keyword)):
            return False
        child, parent = parent, above.get(id(parent))
    return False


def _called(run: RunView, func: m.Expr) -> str:
    found = run.eval(func) if isinstance(func, m.Name) else None
    return run.kb.canonical(found.name) if isinstance(found, v.Ext) else ""


def _stored(run: RunView, function: m.Function, target: m.Expr, depth: int) -> bool:
    """Whether the program only waits with all that it reads from a local variable."""
    if not isinstance(target, m.Name) or "." in target.id or depth >= _MOST_VARIABLES:
        return False
    above, uses = parents(function), 0
    for one in nodes(function.body):
        if not isinstance(one, m.Name) or one.id.partition(".")[0] != target.id:
            continue
        parent = above.get(id(one))
        if isinstance(parent, m.Assign) and any(x is one for x in parent.targets):
            continue
        if not _delays(run, function, one, depth + 1):
            return False
        uses += 1
    return uses > 0 and not liveness.may_be_shared(run.whole(run.frame.file), function, {target.id})
