"""Functions that return the names in a listing, or texts made of them, and nothing that is found out about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp.naming import called_in_library
from d9mlint.interp.order_single import is_joined
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import target_names
from d9mlint.ir.traversal import called_name, nodes, parents, receiver, statements, variables

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_COPIES = frozenset({"builtins.list", "builtins.tuple"})


def returns_names(interp: Interp, node: Any, fn: m.Function | None) -> bool:
    """Whether the running function, which lists something here, returns nothing else of it than its names, or texts made
    of them one by one."""
    return fn is not None and id(node) in parents(fn) and _Names(interp, fn, node).are_returned(node)


class _Names:
    """One question; ``asked`` are the variables that have been looked at, ``texts`` those that hold a name or a text made of
    one, ``grown`` is where a list gets such a text, and ``other`` the statements that run instead of the listing."""

    def __init__(self, interp: Interp, fn: m.Function, node: Any) -> None:
        self.interp = interp
        self.fn = fn
        self.above = parents(fn)
        self.asked: set[str] = set()
        self.texts: set[str] = set()
        self.grown: set[int] = set()
        self.other = self._instead_of(node)

    def _instead_of(self, node: Any) -> list[m.Stmt]:
        """The statements in the other branches of the tests that decide whether an expression is reached."""
        found: list[m.Stmt] = []
        user = self.above.get(id(node))
        while user is not None and not isinstance(user, (m.For, m.While)):
            above = self.above.get(id(user))
            if isinstance(above, m.If):
                found += above.orelse if any(one is user for one in above.body) else above.body
            user = above
        return [] if user is not None else found

    def are_returned(self, node: Any) -> bool:
        """Whether an expression that gives names is returned, or names made of it are."""
        user = self.above.get(id(node))
        if isinstance(user, m.Return):
            return True
        if isinstance(user, m.AugAssign):
            grows = user.op == "+" and user.value is node and isinstance(user.target, m.Name)
            return grows and isinstance(user.target, m.Name) and self._variable(user.target.id)
        if isinstance(user, m.BinOp):
            return user.op == "+" and self.are_returned(user)
        if isinstance(user, m.Assign):
            target = user.targets[0]
            plain = user.value is node and len(user.targets) == 1 and isinstance(target, m.Name)
            return plain and isinstance(target, m.Name) and self._variable(target.id)
        if isinstance(user, m.Subscript):
            return user.value is node and self.are_returned(user)
        if isinstance(user, m.Call) and called_name(user) == "extend" and user.args == [node]:
            self.grown.add(id(user.func))
            alone = isinstance(self.above.get(id(user)), m.ExprStmt) and isinstance(user.func, m.Name)
            return alone and self._variable(receiver(user))
        if isinstance(user, m.Call):
            copied = [node] == user.args and called_in_library(self.interp, user) in _COPIES
            return copied and self.are_returned(user)
        if isinstance(user, m.Generator) and user.iter is node:
            made = self.above.get(id(user))
            target_names(user.target, self.texts)
            return (
                isinstance(made, m.Comp)
                and made.value is None
                and self._is_name(made.elt)
                and self.are_returned(made)
            )
        return isinstance(user, m.For) and user.iter is node and self._are_collected(user)

    def _are_collected(self, loop: m.For) -> bool:
        """Whether a loop only collects the names that it is given, or texts made of them, in lists that are returned."""
        target_names(loop.target, self.texts)
        lists: list[str] = []
        for one in statements(loop.body):
            call = one.value if isinstance(one, m.ExprStmt) else None
            if isinstance(one, m.For):
                target_names(one.target, self.texts)
            elif isinstance(one, m.Assign) and self._is_name(one.value):
                for target in one.targets:
                    target_names(target, self.texts)
            elif isinstance(call, m.Call) and called_name(call) == "append" and len(call.args) == 1:
                if not isinstance(call.func, m.Name) or not self._is_name(call.args[0]):
                    return False
                self.grown.add(id(call.func))
                lists.append(receiver(call))
            elif not isinstance(one, (m.If, m.Jump)):
                return False
        return bool(lists) and all(map(self._variable, lists))

    def _variable(self, name: str) -> bool:
        """Whether a function does nothing else with a variable than to return names of it, to add to it, or to ask for their
        number."""
        if "." in name or name in self.asked:
            return "." not in name
        self.asked.add(name)
        uses = [
            one
            for one in variables(self.fn).get(name, ())
            if not (self._is_target(one) or any(x.start <= one.start < x.end for x in self.other))
        ]
        return all(self._is_counted(one) or self.are_returned(one) for one in uses)

    def _is_target(self, node: m.Name) -> bool:
        user = self.above.get(id(node))
        return (
            id(node) in self.grown
            or (isinstance(user, m.Assign) and any(one is node for one in user.targets))
            or (isinstance(user, m.AugAssign) and user.target is node and user.op == "+")
        )

    def _is_counted(self, node: m.Name) -> bool:
        user = self.above.get(id(node))
        if isinstance(user, m.Unary) or (isinstance(user, (m.If, m.Assert)) and user.test is node):
            # Whether there is any.
            return True
        return isinstance(user, m.Call) and called_in_library(self.interp, user) == "builtins.len"

    def _is_name(self, node: m.Expr) -> bool:
        """Whether an expression is a name, or a text that is made of it."""
        if isinstance(node, m.Name):
            return node.id in self.texts
        if isinstance(node, (m.FString, m.BinOp, m.Subscript)):
            calls = [one for one in nodes([node]) if isinstance(one, m.Call)]
            return all(self._makes_text(one) for one in calls)
        return isinstance(node, m.Call) and self._makes_text(node)

    def _makes_text(self, call: m.Call) -> bool:
        """Whether a call, and those in what it is given, join texts or change one."""
        inner = [one for one in nodes([*call.args, call.func]) if isinstance(one, m.Call)]
        kb, called = self.interp.kb, called_in_library(self.interp, call)
        role = kb.role(called or f"?.{called_name(call)}", "makes-text")
        return (is_joined(self.interp, call) or role is not None) and all(map(self._makes_text, inner))
