"""Random values of which a program only looks at the form, or at whether two models agree about them.

A model is traced with an example, and may be called with it: where nothing reads what it gives, or only an assert does that
compares it with what another model gives, all examples are as good.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.calls import owner_types
from d9mlint.interp.dummies import is_unchanged, trains, uses_of
from d9mlint.interp.kinds import ARRAY
from d9mlint.interp.naming import called_in_library, is_private, running
from d9mlint.interp.order_reductions import FORM
from d9mlint.interp.tensors import TENSOR
from d9mlint.ir import liveness
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes, parents, variables

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

_MOST_VARIABLES = 4
"""A value is followed through so many variables."""
_EVALUATES = "eval"
"""The method that puts a model into the mode of evaluation."""
_KEEPING = frozenset({"views", "copies", "looks-only"})
"""Roles of methods that only give a tensor in another form."""
_SAME_ELEMENTS = frozenset({"views", "copies", "holds", "same-elements"})
"""Roles of functions that only give their first argument in another form."""


def traced_only(run: RunView, node: Any) -> bool:
    """Whether what an expression of the running function gives is an example that a model is traced with, and beside that
    only given to models whose results nothing reads."""
    function, stmt = running(run), run.statement
    if function is None:
        return False
    followed = _Followed(run, function)
    if followed.is_example(node) or _Followed(run, function).warms_up(node):
        return True
    if not isinstance(stmt, m.Assign) or len(stmt.targets) != 1:
        return False
    target, above = stmt.targets[0], parents(function)
    child = node
    while child is not stmt.value:
        parent = above.get(id(child))
        # `torch.rand(3) if image is None else image`
        chosen = isinstance(parent, m.IfExp) and parent.test is not child
        if not (chosen or isinstance(parent, m.Attr) or followed.is_same(child, parent)):
            return False
        child = parent
    if not isinstance(target, m.Name) or "." in target.id:
        return False
    found: list[m.Name] = []
    for one in nodes(function.body):
        if not isinstance(one, m.Name) or one is target or one.id.partition(".")[0] != target.id:
            continue
        if not _stands_before(function, stmt, one):
            found.append(one)
    rest = [one for one in found if not followed.is_example(one)]
    followed.traced = len(rest) < len(found)
    return (
        bool(found)
        and all(followed.comes_to_nothing(one) for one in rest)
        and (followed.traced or followed.given)
        and is_private(run, function, {target.id})
    )


def _stands_before(function: m.Function, stmt: m.Assign, node: m.Name) -> bool:
    """Whether a statement of a function that runs once reads a variable there before it assigns that."""
    if all(node is not one for one in nodes([stmt.value])):
        return False
    above = parents(function)
    around = above.get(id(stmt))
    while around is not None:
        if isinstance(around, (m.For, m.While)):
            return False
        around = above.get(id(around))
    return True


class _Followed:
    """Follows a value of a function to where it is used, by syntax."""

    def __init__(self, run: RunView, function: m.Function) -> None:
        self._run, self._function, self._above = run, function, parents(function)
        self.traced = False
        """Whether a model is traced with it."""
        self.given = False
        """Whether it is given to a model, or to what asserts something: one that nothing is asked of is an example of how
        to draw."""

    def is_example(self, node: m.Expr) -> bool:
        """Whether a model is traced with a variable, or with what an expression gives, or with an array of that."""
        if isinstance(node, m.Name) and "." in node.id:
            return False
        child: Any = node
        while (user := self._above.get(id(child))) is not None:
            if isinstance(user, m.Call) and user.func is not child:
                if self._is_example_of(child, user):
                    return True
            elif isinstance(user, m.Attr):
                call = self._above.get(id(user))
                if not isinstance(call, m.Call) or call.func is not user or not self._keeps(user.name):
                    return False
            if not isinstance(user, (m.Attr, m.Keyword)) and not self.is_same(child, user):
                return False
            child = user
        return False

    def is_same(self, node: Any, user: Any) -> bool:
        """Whether what an expression around another one gives has the elements of that, or some of them."""
        if isinstance(user, m.Subscript):
            return user.value is node
        if not isinstance(user, m.Call):
            return isinstance(user, m.Seq)
        if user.func is node:
            return True
        roles = self._run.kb.by_role(called_in_library(self._run, user))
        return not _SAME_ELEMENTS.isdisjoint(roles) and any(one is node for one in user.args[:1])

    def _is_example_of(self, argument: Any, call: m.Call) -> bool:
        """Whether a call traces a model with an argument of it."""
        role = next(
            (
                role
                for api in (called_in_library(self._run, call), *self._methods(call))
                if (role := self._run.kb.role(api, "form-only")) is not None
            ),
            None,
        )
        if role is None:
            return False
        if isinstance(argument, m.Keyword):
            return argument.name == role.arg or bool(role.more)
        if role.pos is None:
            return False
        last = None if role.more else role.pos + 1
        return any(one is argument for one in call.args[role.pos : last])

    def _methods(self, call: m.Call) -> list[str]:
        """The canonical names of the library's methods that a call may be of."""
        run, func = self._run, call.func
        if isinstance(func, m.Attr) and isinstance(func.value, m.Call):
            return [f"{kind}.{func.name}" for kind in self._made_by(func.value)]
        if not isinstance(func, m.Name) or "." not in func.id:
            return []
        found = run.value_of(func)
        if isinstance(found, v.Member):
            return [f"{kind}.{found.name}" for kind in owner_types(run, found.owner)]
        # What has the method may be made later.
        owner, _, name = func.id.rpartition(".")
        made = [
            self._made_by(one.value) if isinstance(one.value, m.Call) else []
            for one in nodes(self._function.body)
            if isinstance(one, m.Assign) and owner in liveness.stored_names(one)
        ]
        return [f"{kind}.{name}" for kind in made[0]] if len(made) == 1 else []

    def _made_by(self, call: m.Call) -> list[str]:
        """The canonical names of the library classes of the object that a call makes."""
        made = self._run.value_of(call.func) if isinstance(call.func, m.Name) else None
        return (
            owner_types(self._run, made) if isinstance(made, v.Cls) else [called_in_library(self._run, call)]
        )

    def warms_up(self, node: m.Expr) -> bool:
        """Whether what an expression gives is only given to models whose results nothing reads: `model(torch.rand(3))`."""
        return not isinstance(node, m.Name) and self.comes_to_nothing(node) and self.given

    def comes_to_nothing(self, node: m.Expr, depth: int = 0) -> bool:
        """Whether what a variable holds, or an expression gives, is only given to models, and nothing but an assert reads
        what these give."""
        child: Any = node
        name = node.id.partition(".")[2] if isinstance(node, m.Name) else ""
        user = self._above.get(id(child))
        if name:
            if name in FORM:
                return True
            if not isinstance(user, m.Call) or user.func is not node or not self._keeps(name):
                return False
            child = user
        while (user := self._above.get(id(child))) is not None:
            if isinstance(user, m.Assert):
                self.given = True
                return True
            if isinstance(user, m.ExprStmt):
                # A notebook shows the value of the last line of a cell.
                return child is not node and not self._run.frame.file.path.endswith(".ipynb")
            if isinstance(user, m.Attr):
                if user.name in FORM:
                    return True
                call = self._above.get(id(user))
                if not isinstance(call, m.Call) or call.func is not user:
                    return False
                if not self._keeps(user.name) and not self._is_asserted(call):
                    return False
                child = call
                continue
            if isinstance(user, m.Assign):
                return user.value is child and depth < _MOST_VARIABLES and self._is_unread(user, depth)
            if isinstance(user, m.Call):
                name = called_in_library(self._run, user)
                if self._run.kb.role(name, "asserts") is not None:
                    self.given = True
                    return True
                computes = name and (self._run.kb.tensor(name) is not None or self._is_asserted(user))
                if not computes:
                    if not self._is_model(user.func) or (not self.traced and any(map(trains, user.keywords))):
                        return False
                    self.given = True
            elif isinstance(user, m.Subscript):
                if user.value is not child:
                    return False
            elif isinstance(user, m.Keyword):
                if user.name == "out":
                    return False
            elif not isinstance(user, (m.Seq, m.Dict, m.BinOp, m.Unary, m.Compare, m.BoolOp)):
                return False
            child = user
        return False

    def _keeps(self, name: str) -> bool:
        """Whether a method of a tensor or array gives it in another form, and changes nothing."""
        return any(not _KEEPING.isdisjoint(self._run.kb.by_role(f"{one}.{name}")) for one in (TENSOR, ARRAY))

    def _is_asserted(self, node: Any) -> bool:
        """Whether an expression is a part of what a statement asserts."""
        while node is not None and not isinstance(node, m.Assert):
            node = self._above.get(id(node))
        return node is not None

    def _is_unread(self, stmt: m.Assign, depth: int) -> bool:
        """Whether nothing but an assert reads what a statement stores."""
        run, function, frame = self._run, self._function, self._run.frame
        if function is frame.file.facts.functions[0] and (
            run.entry is not frame.file or frame.file.path in run.imported_files or frame.file.facts.unread
        ):
            # Another file, or a cell that does not parse, may read it.
            return False
        names = liveness.stored_names(stmt)
        if not liveness.is_dead_besides(function, stmt, frozenset(), kept=False):
            reads = uses_of(stmt, function)
            if reads is None or not all(self.comes_to_nothing(one, depth + 1) for one in reads):
                return False
        return bool(names) and is_private(run, function, names)

    def _is_model(self, node: m.Expr) -> bool:
        """Whether a call of something runs a model, which it does not change."""
        if isinstance(node, m.Attr) and isinstance(node.value, m.Call):
            made_by = called_in_library(self._run, node.value)
            return bool(made_by) and self._is_unchanged(f"{made_by}.{node.name}")
        if not isinstance(node, m.Name):
            return False
        model = self._run.value_of(node)
        if isinstance(model, v.Member):
            kinds = owner_types(self._run, model.owner)
            return bool(kinds) and all(self._is_unchanged(f"{kind}.{model.name}") for kind in kinds)
        if isinstance(model, (v.Inst, v.Obj)):
            return self.traced or self._is_evaluated(node) or is_unchanged(self._run, model)
        # It is made later.
        name, _, method = node.id.partition(".")
        made = {
            called_in_library(self._run, one.value) if isinstance(one.value, m.Call) else ""
            for one in nodes(self._function.body)
            if isinstance(one, m.Assign) and name in liveness.stored_names(one)
        }
        if method:
            return bool(made) and all(self._is_unchanged(f"{api}.{method}") for api in made)
        kb = self._run.kb
        return bool(made) and all(
            self._is_unchanged(f"{api.rpartition('.')[0]}.Module")
            and (self._is_evaluated(node) or kb.role(api, "keeps-statistics") is None)
            for api in made
        )

    def _is_unchanged(self, api: str) -> bool:
        return self._run.kb.role(api, "unchanged-by-call") is not None

    def _is_evaluated(self, node: m.Name) -> bool:
        """Whether the function has put a model into the mode of evaluation before it calls it, also where it makes it."""
        name = node.id.partition(".")[0]
        uses = [one for one in variables(self._function).get(name, ()) if one.start < node.start]
        if any(one.id == f"{node.id}.{_EVALUATES}" for one in uses):
            return True
        made = [
            one.value
            for one in nodes(self._function.body)
            if isinstance(one, m.Assign) and node.id in liveness.stored_names(one)
        ]
        return bool(made) and all(called_name(one) == _EVALUATES for one in made)
