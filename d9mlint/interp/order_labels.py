"""Columns and tables whose elements have labels, of which the program takes nothing but elements by their labels, or all
of them sorted by these: a column that is made of a dictionary, and counts of how often each value is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.naming import called_in_library
from d9mlint.interp.number_uses import gives_number, is_number
from d9mlint.interp.order_reductions import named_uses, rows_of
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, parents, variables

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_TEXTS = "str"
"""The attribute of a column with the methods of each text in it."""
_DEEPEST = 8


def is_taken_by_label(interp: Interp, node: Any, args: v.Args, fn: m.Function | None) -> bool:
    """Whether the elements of what a call makes of a mapping are only taken by labels."""
    if fn is None or not isinstance(node, m.Call):
        return False
    role = interp.kb.role(called_in_library(interp, node), "labels-elements")
    if role is None or not isinstance(args.get(role.arg, role.pos), v.Mapping):
        return False
    return _Labels(interp, fn, role.apis[0], False).free(node)


def is_counted_by_label(interp: Interp, node: Any, fn: m.Function | None, depth: int = 0) -> bool:
    """Whether a call, or one for what another call makes of each of the elements, counts how often each value is there,
    and these counts are only taken by the values."""
    if fn is None or depth > _DEEPEST:
        return False
    uses: list[Any] = [node]
    if isinstance(node, m.Call | m.Subscript):
        uses = named_uses(interp, interp.frame.file, fn, node) or uses
    return all(_is_counted(interp, one, fn, depth) for one in uses)


def _is_counted(interp: Interp, node: Any, fn: m.Function, depth: int) -> bool:
    node, names, user = _attributes(node, fn)
    if names[:1] == [_TEXTS]:
        # A part of each text, or what a method gives for each.
        if isinstance(user, m.Subscript) and user.value is node and len(names) == 1:
            return is_counted_by_label(interp, user, fn, depth + 1)
        called = isinstance(user, m.Call) and user.func is node and len(names) == 2
        return called and is_counted_by_label(interp, user, fn, depth + 1)
    if len(names) != 1 or not isinstance(user, m.Call) or user.func is not node:
        return False
    if rows_of(interp, user) == "receiver":
        return is_counted_by_label(interp, user, fn, depth + 1)
    return are_by_label(interp, user, fn)


def are_by_label(interp: Interp, call: m.Call, fn: m.Function) -> bool:
    """Whether a method counts how often each value is there, and its counts are only taken by the values."""
    role = interp.kb.role(f"?.{called_name(call)}", "counts-by-label")
    return role is not None and _Labels(interp, fn, role.apis[0].rpartition(".")[0], True).free(call)


def _attributes(node: Any, fn: m.Function) -> tuple[Any, list[str], Any]:
    """The outermost expression that takes nothing but attributes of a node, their names, and what it stands in."""
    above = parents(fn)
    names = node.id.split(".")[1:] if isinstance(node, m.Name) else []
    user = above.get(id(node))
    while isinstance(user, m.Attr):
        names += user.name.split(".")
        node, user = user, above.get(id(user))
    return node, names, user


class _Labels:
    """One question, about something of a class with labels; ``whole`` is whether its elements are whole numbers."""

    def __init__(self, interp: Interp, fn: m.Function, of: str, whole: bool) -> None:
        self.interp = interp
        self.fn = fn
        self.of = of
        self.whole = whole

    def free(self, node: Any, depth: int = 0) -> bool:
        """Whether all uses of an expression that gives it take elements by label."""
        if depth > _DEEPEST:
            return False
        uses = named_uses(self.interp, self.interp.frame.file, self.fn, node)
        return all(self._is_free(one, depth) for one in uses or [node])

    def _is_free(self, node: Any, depth: int) -> bool:
        node, names, user = _attributes(node, self.fn)
        if len(names) > 1:
            return False
        if not names:
            if isinstance(user, m.Compare):
                return user.comparators == [node] and user.ops[0] in ("in", "not in")
            if isinstance(user, m.Subscript):
                # Numbers may be positions.
                return (
                    user.value is node
                    and names_elements(self.fn, user.index)
                    and not self._counts(user.index)
                )
            if not isinstance(user, m.Call) or user.args != [node]:
                return False
            return self._reduces(user, called_in_library(self.interp, user), False)
        if self.interp.kb.role(f"{self.of}.{names[0]}", "by-label") is None:
            return (
                isinstance(user, m.Call) and user.func is node and self._reduces(user, f"?.{names[0]}", True)
            )
        if isinstance(user, m.Subscript):
            return user.value is node and names_elements(self.fn, user.index)
        if not isinstance(user, m.Call) or user.func is not node or user.keywords:
            return False
        if user.args:
            return names_elements(self.fn, user.args[0])
        entry = self.interp.kb.order(f"?.{names[0]}", True)
        return (entry is not None and entry.sorts) or self.free(user, depth + 1)

    def _reduces(self, call: m.Call, api: str, method: bool) -> bool:
        """Whether a call gives what is the same in any order, such as the largest element."""
        if call.keywords or (method and call.args):
            return False
        entry = self.interp.kb.order(api, method)
        return entry is not None and (entry.reduces == "any" or (entry.reduces == "whole" and self.whole))

    def _counts(self, index: m.Expr) -> bool:
        """Whether an index is a number, or one of several."""
        if isinstance(index, m.Seq):
            return any(map(self._counts, index.elts))
        return is_number(index) or gives_number(self.interp.frame.body, index)


def names_elements(fn: m.Function, index: m.Expr) -> bool:
    """Whether an index names elements, and is no mask of them: a text or number, an element of something, or a list."""
    if isinstance(index, m.Seq):
        return bool(index.elts) and names_elements(fn, index.elts[0])
    if isinstance(index, m.Subscript):
        # A part of an element: ``frame.loc[row["id"]]``.
        return isinstance(index.value, m.Name) and names_elements(fn, index.value)
    if isinstance(index, m.Call):
        # ``line.strip()``, ``str(line)``
        owner = receiver_of(index)
        function = isinstance(owner, m.Name) and owner.id not in variables(fn)
        given = index.args if function else [owner, *index.args]
        return bool(given) and all(names_elements(fn, one) for one in given)
    if not isinstance(index, m.Name) or "." in index.id:
        return isinstance(index, m.Const | m.FString | m.Comp)
    for one in variables(fn).get(index.id, ()):
        user = parents(fn).get(id(one))
        target = user if isinstance(user, m.Seq) else one
        rounds = parents(fn).get(id(target))
        if isinstance(rounds, m.For | m.Generator) and rounds.target is target:
            return True
        if isinstance(user, m.Assign) and isinstance(user.value, m.Comp | m.Seq):
            return True
    return any(one.name == index.id for one in fn.params)


def receiver_of(call: m.Call) -> m.Expr:
    """What a method is called of."""
    if isinstance(call.func, m.Name):
        return m.Name(call.func.id.rpartition(".")[0], call.start, call.end)
    return call.func.value if isinstance(call.func, m.Attr) else call.func
