"""Elements and slices of listings that are only looked at: printed, logged, drawn on the screen, counted.

Which entries a person sees depends on the order; what the program computes, keeps or writes does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.attribute_kinds import value_of
from d9mlint.interp.library_modules import is_module
from d9mlint.interp.order_kinds import FLOAT
from d9mlint.interp.places import running
from d9mlint.interp.tensors import TENSOR
from d9mlint.ir import nodes as m
from d9mlint.ir.forms import FORM
from d9mlint.ir.liveness import may_be_shared
from d9mlint.ir.scopes import target_names
from d9mlint.ir.traversal import alike, called_name, nodes, parents, receiver, variables

if TYPE_CHECKING:
    from collections.abc import Iterable

    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import OrderEntry

_GIVES = frozenset({"carry", "type", "pair", "argsort"})
"""Roles of what gives a value and does nothing else."""
_ALIKE = frozenset({"views", "copies"})
"""Roles of methods that give a tensor of the same elements."""
_PARTS = m.FString | m.Seq | m.Star | m.BinOp | m.BoolOp | m.Unary | m.IfExp | m.Slice | m.Compare | m.Dict
"""What an expression may be a part of and decide the value of."""


def is_only_shown(interp: Interp, node: m.Expr, fn: m.Function | None) -> bool:
    """Whether what an expression gives, and what is made from it, is only shown to a person."""
    if fn is None or _is_of_split(node, fn):
        return False
    return _Look(interp, fn, node).shown(node)


def takes_no_element(interp: Interp, stmt: m.For, counted: bool) -> bool:
    """Whether the rounds of a loop do nothing with the elements of what it goes through: each does the same whatever the
    order. Where they are ``counted``, the first of two variables is the number of the round."""
    fn, given, frame = running(interp), stmt.target, interp.frame
    if fn is None or frame.keeps_locals or frame.is_class:
        return False
    if counted:
        if not isinstance(given, m.Seq) or len(given.elts) != 2:
            return False
        given = given.elts[1]
    if not isinstance(given, m.Name) or len(variables(fn).get(given.id, ())) != 1:
        return False
    if may_be_shared(interp.whole(frame.file), fn, {given.id}):
        return False
    inside = {one.id for one in nodes(stmt.body) if isinstance(one, m.Name)}
    through = [one for one in nodes([stmt.iter]) if isinstance(one, m.Name) and one.id in inside]
    return all(interp.orders.of(interp.value_of(one)) is None for one in through)


def is_only_raised(interp: Interp, node: m.Expr, fn: m.Function | None) -> bool:
    """Whether what an expression gives, and what is made from it, only stands in the text of an exception."""
    return fn is not None and _Look(interp, fn, node, raised=True).shown(node)


def is_only_viewed(interp: Interp, node: m.Expr, fn: m.Function | None) -> bool:
    """Whether what an expression draws, and what is chosen by it, is only shown to a person on a screen or on a page: in no
    line of text that is printed or logged."""
    if fn is None:
        return False
    look = _Look(interp, fn, node, views=True)
    return look.shown(node) and look.is_viewed


def _is_of_split(node: m.Expr, fn: m.Function) -> bool:
    """Whether a function also takes the part that begins where this one ends, or ends where it begins: which elements
    are in which part is decided, whatever is done with them."""
    if not isinstance(node, m.Subscript) or not isinstance(node.index, m.Slice):
        return False
    lower, upper = node.index.lower, node.index.upper
    for one in nodes(fn.body):
        if isinstance(one, m.Subscript) and isinstance(one.index, m.Slice) and alike(one.value, node.value):
            meets = upper is not None and one.index.lower is not None and alike(upper, one.index.lower)
            if meets or (lower is not None and one.index.upper is not None and alike(lower, one.index.upper)):
                return True
    return False


class _Look:
    """One question, about an element or slice: ``asked`` are variables that have been looked at already, ``parts`` those
    that hold the slice itself. ``within`` is whether it is asked in a function that gets it. With ``views``, text that is
    printed or logged is no look, and ``is_viewed`` is whether anything is seen otherwise. With ``raised``, only what an
    exception says is one."""

    def __init__(
        self,
        interp: Interp,
        fn: m.Function,
        part: m.Expr,
        within: bool = False,
        views: bool = False,
        raised: bool = False,
    ) -> None:
        self.interp = interp
        self.within = within
        self.views = views
        self.raised = raised
        self.is_viewed = False
        self.part = part
        self.parts: set[str] = set()
        self.fn = fn
        self.above = parents(fn)
        self.asked: set[str] = set()

    def shown(self, node: Any) -> bool:
        """Whether an expression is used for nothing but to be looked at."""
        below = node
        while True:
            user = self.above.get(id(node))
            if isinstance(user, m.Attr) and not FORM.isdisjoint(user.name.split(".")):
                # That of one element is taken to be that of all.
                return True
            if isinstance(user, m.Assert | m.Raise):
                return True
            if isinstance(user, m.ExprStmt):
                return not self.raised
            if isinstance(user, m.If):
                # The number of a round tells how far a loop is.
                counted = isinstance(self.part, m.Name) and user.test is node
                return counted and all(map(self._shows, (*user.body, *user.orelse)))
            if isinstance(user, m.Assign):
                if node is self.part:
                    self.parts |= {one.id for one in user.targets if isinstance(one, m.Name)}
                return all(map(self._named, user.targets))
            if isinstance(user, m.For):
                return user.iter is node and self._named(_element(user.target, node, below))
            if isinstance(user, m.WithItem):
                return user.target is None or self._named(user.target)
            if isinstance(user, m.Generator):
                whole = self.above.get(id(user))
                if not isinstance(whole, m.Comp):
                    return False
                if user.iter is node and not self._within(_element(user.target, node, below), whole):
                    return False
                user = whole
            elif isinstance(user, m.Keyword):
                call = self.above.get(id(user))
                answer = self._given(call, node) if isinstance(call, m.Call) else False
                if answer is not None:
                    return answer
                user = call
            elif isinstance(user, m.Call) and called_name(user) == "len" and self._is_part(node):
                # So many are taken in any order.
                return True
            elif isinstance(user, m.Call):
                answer = self._taken(user) if user.func is node else self._given(user, node)
                if answer is not None:
                    return answer
            elif not isinstance(user, _PARTS | m.Attr | m.Subscript | m.Comp):
                return False
            below, node = node, user

    def _shows(self, stmt: m.Stmt) -> bool:
        """Whether a statement does nothing but show something."""
        if self.raised or self.views or not isinstance(stmt, m.ExprStmt):
            return False
        if isinstance(stmt.value, m.Const):
            return True
        called = stmt.value.func if isinstance(stmt.value, m.Call) else None
        name = value_of(self.interp, called) if isinstance(called, m.Name) else v.UNKNOWN
        known = (
            self.interp.kb.canonical(name.name) if isinstance(name, v.Ext) else f"?.{called_name(stmt.value)}"
        )
        entry = self.interp.kb.order(known, not isinstance(name, v.Ext))
        return entry is not None and (entry.role == "show" or entry.shows)

    def _named(self, target: m.Expr) -> bool:
        """Whether variables that are given something are only looked at in the function, and nowhere else."""
        names: set[str] = set()
        target_names(target, names)
        plain = [one for one in nodes([target]) if not isinstance(one, m.Seq | m.Star)]
        if not names or not all(isinstance(one, m.Name) and "." not in one.id for one in plain):
            return False
        names -= self.asked
        self.asked |= names
        # What is read elsewhere in the file is asked last: the answer is then one about the whole file.
        return all(self._read(one) for name in names for one in variables(self.fn).get(name, ())) and not (
            names and may_be_shared(self.interp.whole(self.interp.frame.file), self.fn, names)
        )

    def _within(self, target: m.Expr, comp: m.Comp) -> bool:
        """Whether what a comprehension gives these names is only looked at, up to what it makes itself."""
        names: set[str] = set()
        target_names(target, names)
        return all(
            self._read(one)
            for one in nodes([comp])
            if isinstance(one, m.Name) and one.id.partition(".")[0] in names
        )

    def _read(self, name: Any) -> bool:
        if isinstance(name, m.Name) and not FORM.isdisjoint(name.id.split(".")[1:]):
            return True
        user = self.above.get(id(name))
        while isinstance(user, m.Seq | m.Star):
            name, user = user, self.above.get(id(user))
        if isinstance(user, m.Assign) and any(one is name for one in user.targets):
            return True
        if isinstance(user, m.For | m.Generator | m.WithItem) and user.target is name:
            return True
        return self.shown(name)

    def _is_part(self, node: Any) -> bool:
        """Whether an expression is a slice, or a variable that holds it."""
        if isinstance(node, m.Subscript):
            return node is self.part and isinstance(node.index, m.Slice)
        return isinstance(node, m.Name) and node.id in self.parts

    def _is_chosen(self) -> bool:
        """Whether the element is one whose position is computed."""
        index = self.part.index if isinstance(self.part, m.Subscript) else None
        return not isinstance(index, m.Const | m.Slice | m.Unary | None)

    def _taken(self, call: m.Call) -> bool | None:
        """The same for the receiver of a method; None where what that gives has to be asked."""
        entry = self.interp.kb.order(f"?.{called_name(call)}", True)
        if entry is not None and (entry.reduces or entry.value == FLOAT):
            # A number that is computed from what the entry holds is a result, also where it is printed.
            return self._is_unread(call)
        if entry is None:
            gives = not _ALIKE.isdisjoint(self.interp.kb.by_role(f"{TENSOR}.{called_name(call)}"))
        else:
            gives = entry.role == "end" or self._only_gives(entry, call)
        return None if gives or called_name(call) in self.interp.kb.table_methods else False

    def _given(self, call: m.Call, node: Any) -> bool | None:
        """The same for an argument."""
        if isinstance(self.above.get(id(call)), m.Raise):
            return True
        called = value_of(self.interp, call.func) if isinstance(call.func, m.Name) else v.UNKNOWN
        if isinstance(called, v.Ext):
            entry = self.interp.kb.order(self.interp.kb.canonical(called.name))
        elif isinstance(called, v.Func):
            return self._shown_by(called, call, node)
        elif isinstance(called, v.Obj) and is_module(self.interp, called):
            return self._evaluates(call) and self._is_unread(call)
        elif isinstance(called, v.Cls | v.Partial | v.Inst | v.AnyOf):
            return False
        else:
            entry = self.interp.kb.order(f"?.{called_name(call)}", True)
            if entry is not None and not entry.shows and entry.role not in _GIVES:
                return False
        if entry is None:
            return False
        if entry.answers and self._is_chosen():
            # A page names what a model has found by its position in the listing.
            return False
        if entry.role == "show" or entry.shows:
            if self.raised or (self.views and (entry.as_data or not entry.shows)):
                return False
            self.is_viewed = True
            return not any(self._keeps_figure(one) for one in self._calls())
        return None if self._only_gives(entry, call) else False

    def _is_unread(self, call: m.Call) -> bool:
        """Whether nothing reads what a call gives, as where it is only timed."""
        user = self.above.get(id(call))
        if isinstance(user, m.ExprStmt):
            return True
        if not isinstance(user, m.Assign):
            return False
        stored = {id(one) for one in user.targets}
        names = {one.id for one in user.targets if isinstance(one, m.Name) and "." not in one.id}
        if len(names) != len(stored):
            return False
        read = (one for name in names for one in variables(self.fn).get(name, ()) if id(one) not in stored)
        return not any(read) and not may_be_shared(self.interp.whole(self.interp.frame.file), self.fn, names)

    def _evaluates(self, call: m.Call) -> bool:
        """Whether the function puts the module that it calls into evaluation mode: then a call changes nothing in it."""
        name = call.func.id if isinstance(call.func, m.Name) else ""
        return any(called_name(one) == "eval" and receiver(one) == name for one in self._calls())

    def _shown_by(self, called: v.Func, call: m.Call, given: Any) -> bool:
        """Whether a function of the same file only shows what it gets as an argument."""
        place = next((place for place, one in enumerate(call.args) if one is given), None)
        if place is None or place >= len(called.fn.params) or called.receiver is not None or self.within:
            return False
        if called.file is not self.interp.frame.file or any(isinstance(one, m.Star) for one in call.args):
            return False
        self.interp.whole(called.file)
        param = called.fn.params[place]
        if param.kind not in "pa" or called.decorated:
            return False
        look = _Look(self.interp, called.fn, self.part, True, self.views, self.raised)
        only = not may_be_shared(called.file.facts, called.fn, {param.name}) and all(
            map(look._read, variables(called.fn).get(param.name, ()))
        )
        self.is_viewed |= look.is_viewed
        return only

    def _only_gives(self, entry: OrderEntry, call: m.Call) -> bool:
        """Whether a call gives a value and does nothing else, and no number that it computes."""
        if entry.reduces or entry.role == "sum":
            return called_name(call) == "len"
        if entry.role in _GIVES or entry.until_sorted or (entry.role == "source" and entry.sortable):
            return True
        if entry.role == "sink" and entry.when:
            # A file that is opened to be read.
            given = [self.interp.eval(one) if isinstance(one, m.Const) else v.UNKNOWN for one in call.args]
            named = {
                one.name: self.interp.eval(one.value) if isinstance(one.value, m.Const) else v.UNKNOWN
                for one in call.keywords
                if one.name is not None
            }
            return all_hold(v.Args(given, named), entry.when) is False
        return False

    def _keeps_figure(self, call: m.Call) -> bool:
        return self.interp.kb.role(f"?.{called_name(call)}", "keeps-figure") is not None

    def _calls(self) -> Iterable[Any]:
        return (one for one in nodes(self.fn.body) if isinstance(one, m.Call))


def _element(target: m.Expr, given: m.Expr, below: m.Expr) -> m.Expr:
    """The part of the target of a loop that is given what comes from ``below``: not the number of the round, nor what
    other sequences give beside it."""
    if not isinstance(target, m.Seq) or not isinstance(given, m.Call):
        return target
    if called_name(given) == "enumerate" and len(target.elts) == 2:
        return target.elts[1]
    if called_name(given) == "zip" and len(target.elts) == len(given.args):
        return next((one for one, arg in zip(target.elts, given.args, strict=True) if arg is below), target)
    return target
