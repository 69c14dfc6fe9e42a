"""Whether what an op adds to a graph of TensorFlow 1 takes part in a loss that the graph is trained with.

It is followed by names: through the assignments of the running function and, for attributes of ``self``, through the
methods of its class. Whatever leaves them may be part of a loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, children, nodes, statements

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView
    from d9mlint.project.modules import ModuleFile

STEPS = ("minimize", "compute_gradients")
"""The methods of optimizers that add the gradients of a loss to a graph."""
GRADIENTS = (*STEPS, "gradients")
FETCHES = ("run", "eval")
"""The methods that compute parts of a graph: what they are given has no further part in it."""
LOSSES = "losses"
"""The module whose functions collect what they give for the loss."""


def beside_losses(run: RunView, call: Any) -> bool:
    """Whether the function or class that adds an op to a graph adds its gradients too, and what the op gives is no
    part of what the gradients are of."""
    frame = run.frame
    function = frame.function
    scope = [(frame.file, function)]
    cls = frame.func.cls if frame.func is not None else None
    if cls is not None:
        for one in cls.mro():
            number = one.file.facts.classes.index(one.cls)
            scope.extend((one.file, fn) for fn in one.file.facts.functions if fn.cls == number)
    if not any(called_name(node) in GRADIENTS for _, fn in scope for node in nodes(fn.body)):
        return False
    made = run.statement
    if not isinstance(made, (m.Assign, m.AnnAssign)) or made.value is None:
        return False
    return any(node is call for node in nodes([made.value])) and _Slice(scope).stays(function, made)


class _Slice:
    """The names that hold what is computed from one op."""

    def __init__(self, scope: list[tuple[ModuleFile, m.Function]]) -> None:
        self.scope = scope
        self.names: set[tuple[int, str]] = set()

    def stays(self, function: m.Function, made: m.Assign | m.AnnAssign) -> bool:
        """Whether nothing that is computed from the op is given to what takes gradients, or out of sight."""
        if not self._bind(function, made):
            return False
        before = -1
        while before != len(self.names):
            before = len(self.names)
            for file, fn in self.scope:
                if any(not self._passes(fn, statement) for statement in statements(fn.body)):
                    return False
                inner = (one for one in file.facts.functions if _within(file, one, fn))
                if any(self._holds(fn, node) for one in inner for node in one.body):
                    return False
        return True

    def _passes(self, fn: m.Function, statement: m.Stmt) -> bool:
        """Take the targets of a statement that binds what is computed from the op; False where it gives it away."""
        parts = [part for part in children(statement) if not isinstance(part, (m.Stmt, m.Handler, m.Case))]
        if any(self._given(fn, node) for node in nodes(parts)):
            return False
        match statement:
            case m.Assign() | m.AnnAssign() | m.AugAssign():
                if statement.value is not None and self._holds(fn, statement.value):
                    return self._bind(fn, statement)
            case m.For():
                if self._holds(fn, statement.iter):
                    return self._take(fn, statement.target)
            case m.With():
                for item in statement.items:
                    if item.target is not None and self._holds(fn, item.context):
                        self._take(fn, item.target)
            case m.Return() | m.ExprStmt():
                return statement.value is None or not self._holds(fn, statement.value)
        return True

    def _given(self, fn: m.Function, node: Any) -> bool:
        """Whether a call takes gradients of what is computed from the op, or may make it part of a loss."""
        if isinstance(node, (m.Wait, m.Walrus)):
            return self._holds(fn, node.value)
        if not isinstance(node, m.Call):
            return False
        name = node.func.id if isinstance(node.func, m.Name) else ""
        parts = name.split(".")
        own = fn.cls != -1 and bool(fn.params) and parts[0] == fn.params[0].name and len(parts) == 2
        takes = called_name(node) in GRADIENTS or LOSSES in parts or own
        given = (*node.args, *(keyword.value for keyword in node.keywords))
        return takes and any(self._holds(fn, one) for one in given)

    def _bind(self, fn: m.Function, statement: m.Assign | m.AnnAssign | m.AugAssign) -> bool:
        targets = statement.targets if isinstance(statement, m.Assign) else [statement.target]
        return all(self._take(fn, target) for target in targets)

    def _take(self, fn: m.Function, target: Any) -> bool:
        match target:
            case m.Seq():
                return all(self._take(fn, one) for one in target.elts)
            case m.Subscript() | m.Star():
                return self._take(fn, target.value)
            case m.Name():
                key = _key(fn, target.id)
                self.names.add(key)
                # An attribute of anything but `self` may be read wherever that is known.
                return key[0] == 0 or "." not in target.id
        return False

    def _holds(self, fn: m.Function, node: Any) -> bool:
        """Whether an expression is computed from the op, in the graph."""
        return any(isinstance(one, m.Name) and _key(fn, one.id) in self.names for one in _in_graph(node))


def _in_graph(node: Any) -> Iterator[Any]:
    """An expression and its parts, without what a session computes."""
    stack: list[Any] = [node]
    while stack:
        one = stack.pop()
        if called_name(one) in FETCHES:
            continue
        yield one
        stack.extend(children(one))


def _key(fn: m.Function, name: str) -> tuple[int, str]:
    """What a name stands for: an attribute of ``self``, or a variable of the function."""
    head, _, rest = name.partition(".")
    if rest and fn.cls != -1 and fn.params and head == fn.params[0].name:
        return 0, rest.partition(".")[0]
    return id(fn), head


def _within(file: ModuleFile, inner: m.Function, outer: m.Function) -> bool:
    """Whether a function stands in another one."""
    while inner.parent > 0:
        inner = file.facts.functions[inner.parent]
        if inner is outer:
            return True
    return False
