"""Random values of which the program makes one use only: to wait, as between two attempts, or to seed generators. Results do
not depend on the first, and on the second only where something is drawn afterwards.

By syntax, with the names of what is called resolved as the program has them: through arithmetic and local variables, all
that a value comes to are arguments of calls that do that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.naming import running
from d9mlint.ir import liveness
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes, parents

if TYPE_CHECKING:
    from collections.abc import Callable

    from d9mlint.interp.view import RunView
    from d9mlint.knowledge import Knowledge


_MOST_VARIABLES = 3
"""A value is followed through so many variables."""
_NUMBERS = frozenset({f"builtins.{name}" for name in ("min", "max", "abs", "float", "int", "round")})


def delays_only(run: RunView, node: Any) -> bool:
    """Whether what an expression of the running function gives does nothing but make the program wait."""
    function = running(run)
    return function is not None and isinstance(node, m.Call) and _Followed(run, _delays).uses(function, node)


def seeds_only(run: RunView, node: Any) -> bool:
    """Whether what an expression of the running function gives does nothing but seed generators that libraries keep."""
    function = running(run)
    return function is not None and isinstance(node, m.Call) and _Followed(run, _seeds).uses(function, node)


def _delays(kb: Knowledge, name: str) -> bool:
    return kb.role(name, "delays") is not None


def _seeds(kb: Knowledge, name: str) -> bool:
    entries = kb.rng(name)
    return bool(entries) and all(
        one.kind == "seeder" and set(one.seeds) <= kb.generators.keys() for one in entries
    )


class _Followed:
    def __init__(self, run: RunView, is_use: Callable[[Knowledge, str], bool]) -> None:
        self._run = run
        self._is_use = is_use

    def uses(self, function: m.Function, node: Any, depth: int = 0) -> bool:
        """Whether all that the value of an expression comes to are arguments of calls that make this use of it."""
        above = parents(function)
        child, parent = node, above.get(id(node))
        while parent is not None:
            if isinstance(parent, m.Call):
                name = self._called(parent.func) if parent.func is not child else ""
                if name and self._is_use(self._run.kb, name):
                    return True
                if name not in _NUMBERS:
                    return False
            elif isinstance(parent, (m.Assign, m.AnnAssign)):
                targets = parent.targets if isinstance(parent, m.Assign) else [parent.target]
                return all(self._stored(function, target, depth) for target in targets)
            elif not isinstance(parent, (m.BinOp, m.Unary, m.IfExp, m.Keyword)):
                return False
            child, parent = parent, above.get(id(parent))
        return False

    def _called(self, func: m.Expr) -> str:
        found = self._run.value_of(func) if isinstance(func, m.Name) else None
        return self._run.kb.canonical(found.name) if isinstance(found, v.Ext) else ""

    def _stored(self, function: m.Function, target: m.Expr, depth: int) -> bool:
        """Whether the program makes this use of all that it reads from a local variable, or from an attribute of the
        object whose method runs."""
        if not isinstance(target, m.Name) or depth >= _MOST_VARIABLES:
            return False
        owner, _, attribute = target.id.partition(".")
        if not attribute:
            uses = self._reads(function, target.id, depth)
            return bool(uses) and all(uses) and not self._is_shared(function, target.id)
        if owner != "self" or "." in attribute or function.cls < 0:
            return False
        facts = self._run.whole(self._run.frame.file)
        methods = [one for one in facts.functions if one.cls == function.cls]
        uses = [used for one in methods for used in self._reads(one, target.id, depth)]
        return bool(uses) and all(uses)

    def _is_shared(self, function: m.Function, name: str) -> bool:
        return liveness.may_be_shared(self._run.whole(self._run.frame.file), function, {name})

    def _reads(self, function: m.Function, name: str, depth: int) -> list[bool]:
        """Whether each read of a variable makes this use of it."""
        above = parents(function)
        found: list[bool] = []
        for one in nodes(function.body):
            if not isinstance(one, m.Name) or f"{one.id}.".startswith(f"{name}.") is False:
                continue
            parent = above.get(id(one))
            if isinstance(parent, m.Assign) and any(x is one for x in parent.targets):
                continue
            found.append(self.uses(function, one, depth + 1))
        return found
