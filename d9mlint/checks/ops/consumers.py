"""What becomes of the result of an op in the function that calls it: whether a gradient can come back to it.

The backward pass of an op runs where the gradient of something that its result went into is taken. There is none
behind element types that have no gradient, comparisons, positions, functions that end it (``tf.stop_gradient``) or whose
gradient is zero (``torch.round``), and what leaves PyTorch, as what is printed or written into a text:
``F.interpolate(x).long()`` never runs the backward pass of the interpolation, whoever calls the function. By syntax alone;
what is not seen here keeps the gradient. Functions of the program that are given it are followed. What a function returns
goes on in its callers (``d9mlint.checks.callers``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from d9mlint.interp import values as v
from d9mlint.interp.methods import BINDING
from d9mlint.interp.places import running
from d9mlint.interp.shapes import is_dtype
from d9mlint.interp.switches import DETERMINISTIC
from d9mlint.interp.view import RunView
from d9mlint.ir import liveness
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import library_name, times_stored
from d9mlint.ir.traversal import nodes, parents, variables
from d9mlint.knowledge import Knowledge

MAX_NAMES = 8
"""From name to name a result is followed at most so often."""
_CAST = frozenset({"to", "type"})
"""Methods whose argument may be an element type."""
_LOOPS = (m.For, m.While)
WHOLE = -1
"""The place of what a function returns alone; others are those in a tuple that it returns."""


def returned_places(run: RunView, call: Any, kind: str, part: int | None = None) -> set[int] | None:
    """Where the running function returns what a call gives: places in a tuple, or ``WHOLE``. A gradient can come back to
    it from there alone, and from nowhere if there is no such place; None where it may be taken before that. ``kind`` is
    the class of its tensors whose attributes and methods are known, empty for none. Of a tuple that a statement takes
    apart it is the ``part`` that has a gradient."""
    function = running(run)
    if function is None:
        return None
    file = run.frame.file
    consumers = Consumers(run.kb, lambda: run.whole(file), function, kind, file.path in run.imported_files)
    consumers.called = lambda node: _called(run, function, node, kind)
    # The backward pass runs for a gradient of zeros too: deterministic mode raises there.
    consumers.zeros_end = not run.mode(DETERMINISTIC).value
    ends = consumers.all_end(call) or (part is not None and consumers.part_ends(call, part))
    return consumers.returned if ends else None


def stops_gradient(run: RunView, node: Any) -> bool:
    """Whether an expression is given to a function behind which there is no gradient."""
    function = running(run)
    if function is None:
        return False
    parent = parents(function).get(id(node))
    if not isinstance(parent, m.Call) or not isinstance(parent.func, m.Name):
        return False
    name = library_name(run.whole(run.frame.file), function, parent.func.id)
    role = run.kb.role(run.kb.canonical(name), "no-variable")
    return role is not None and any(one is node for one in parent.args)


_BACKWARD = "backward"
"""The method that takes the gradient itself, whatever is done with what it gives."""


class Consumers:
    """What is done with values in a function. ``returned`` are the places of those that it returns; where other files
    import its module, they may read what that leaves in its variables. With ``zeros_end`` a gradient of nothing but zeros
    counts as none. ``called`` gives the same for a function of the program that a call names, where that is known."""

    def __init__(
        self, kb: Knowledge, facts: Callable[[], m.FileFacts], function: m.Function, kind: str, imported: bool
    ) -> None:
        self._kb = kb
        self._facts = facts
        self._kind = kind
        self._imported = imported
        self._function = function
        self._above = parents(function)
        self.returned: set[int] = set()
        self.zeros_end = False
        self.bound = 0
        self.called: Callable[[m.Expr], Consumers | None] = lambda node: None

    def all_end(self, node: Any, names: int = 0) -> bool:
        """Whether all that is done with the value of an expression here is without a gradient."""
        parent = self._above.get(id(node))
        if isinstance(parent, m.Attr):
            return self._attribute(parent, parent.name, names)
        if isinstance(parent, m.Compare | m.FString):
            return True
        if isinstance(parent, m.Unary):
            return parent.op == "not" or self.all_end(parent, names)
        if isinstance(parent, m.Subscript):
            # An index has no gradient.
            return parent.index is node or self.all_end(parent, names)
        if isinstance(parent, m.Seq) and _is_formatted(parent, self._above.get(id(parent))):
            return True
        if isinstance(parent, m.BinOp):
            return _is_formatted(node, parent) or self.all_end(parent, names)
        if isinstance(parent, m.Call) and any(one is node for one in parent.args):
            return self._argument(parent, node, names)
        if isinstance(parent, m.Keyword):
            return self._handed_on(self._above[id(parent)], parent, names)
        if isinstance(parent, m.Assign) and parent.value is node and len(parent.targets) == 1:
            target = parent.targets[0]
            parts = target.elts if isinstance(target, m.Seq) else [target]
            return all(
                isinstance(one, m.Name) and "." not in one.id and self._stored(parent, one, names)
                for one in parts
            )
        return self._is_returned(node, parent)

    def part_ends(self, node: Any, place: int) -> bool:
        """The same of a part of the tuple that an expression gives, which a statement takes apart."""
        parent = self._above.get(id(node))
        if not isinstance(parent, m.Assign) or parent.value is not node or len(parent.targets) != 1:
            return False
        target = parent.targets[0]
        if not isinstance(target, m.Seq) or any(isinstance(one, m.Star) for one in target.elts):
            return False
        part = target.elts[place] if place < len(target.elts) else None
        return isinstance(part, m.Name) and "." not in part.id and self._stored(parent, part, 0)

    def _is_returned(self, node: Any, parent: Any) -> bool:
        """Whether the function returns a value, which is noted."""
        place = WHOLE
        if isinstance(parent, m.Seq) and parent.kind == "t":
            if any(isinstance(one, m.Star) for one in parent.elts):
                return False
            place = next(at for at, one in enumerate(parent.elts) if one is node)
            parent = self._above.get(id(parent))
        if not isinstance(parent, m.Return):
            return False
        self.returned.add(place)
        return True

    def _attribute(self, node: m.Attr | m.Name, name: str, names: int) -> bool:
        """What is done with an attribute of a tensor: of a method, with its result."""
        call = self._above.get(id(node))
        if not self._kind or name == _BACKWARD:
            return False
        if not (isinstance(call, m.Call) and call.func is node):
            return self._without_gradient(f"{self._kind}.{name}") or self.all_end(node, names)
        return (
            self._without_gradient(f"{self._kind}.{name}")
            or (name in _CAST and any(map(_is_integer, _given(call))))
            or self.all_end(call, names)
        )

    def parameter_ends(self, name: str, names: int = 0) -> bool:
        """Whether all that is done with what a parameter is given is without a gradient."""
        if names >= MAX_NAMES or liveness.may_be_shared(self._facts(), self._function, {name}):
            return False
        return self._uses_end(name, 0, self._next_store(self._function.body, name), names)

    def _handed_on(self, call: m.Call, given: Any, names: int) -> bool:
        """The same of an argument that a function of the program is given, and of what that returns."""
        within = self.called(call.func)
        name = within.parameter(call, given) if within is not None else ""
        if within is None or not name:
            return False
        within.zeros_end = self.zeros_end
        return within.parameter_ends(name, names + 1) and all(
            self.all_end(call, names) if place == WHOLE else self.part_ends(call, place)
            for place in within.returned
        )

    def parameter(self, call: m.Call, given: Any) -> str:
        """The name of the parameter that is given an argument or a keyword of a call; empty where that is not sure."""
        if isinstance(given, m.Keyword):
            return next((one.name for one in self._function.params if one.name == given.name), "")
        if any(isinstance(one, m.Star) for one in call.args):
            return ""
        places = [one.name for one in self._function.params if one.kind in "pa"][self.bound :]
        return next((name for name, one in zip(places, call.args, strict=False) if one is given), "")

    def _argument(self, call: m.Call, node: Any, names: int) -> bool:
        """What is done with the result of a function that is given a tensor."""
        if not isinstance(call.func, m.Name):
            return isinstance(call.func, m.Attr) and call.func.name == "format" and _is_text(call.func.value)
        api = self._kb.canonical(library_name(self._facts(), self._function, call.func.id))
        if self._without_gradient(api) or self._leaves_tensors(api):
            return True
        known = self._kb.tensor(api)
        if known is None:
            return self._handed_on(call, node, names)
        cast = known.dtype == "argument" and any(map(_is_integer, _given(call, 1)))
        return cast or self.all_end(call, names)

    def _leaves_tensors(self, api: str) -> bool:
        """Whether a function prints what it is given, or gives a text or a number of Python."""
        full = api if not api or "." in api else f"builtins.{api}"
        return self._kb.call_is("tells", full) or any(
            self._kb.role(full, role) is not None for role in ("makes-text", "gives-number")
        )

    def _without_gradient(self, api: str) -> bool:
        known = self._kb.tensor(api)
        if known is not None and known.grad == "none":
            return True
        return self.zeros_end and self._kb.role(api, "zero-gradient") is not None

    def _stored(self, stmt: m.Assign, target: m.Name, names: int) -> bool:
        """What is done with a variable, as long as it holds what a statement stores there."""
        facts = self._facts()
        if names >= MAX_NAMES or (self._imported and self._function is facts.functions[0]):
            return False
        if liveness.may_be_shared(facts, self._function, {target.id}):
            return False
        start, end = stmt.end, self._replaced(stmt, target.id)
        loop = self._above.get(id(stmt))
        while end is None and loop is not None:
            if isinstance(loop, _LOOPS):
                start = loop.start
            loop = self._above.get(id(loop))
        return self._uses_end(target.id, start, end, names)

    def _uses_end(self, name: str, start: int, end: int | None, names: int) -> bool:
        """What is done with a variable between two places; ``end`` None for all that follows."""
        for one in variables(self._function).get(name, ()):
            if one.start < start:
                continue
            if (end is not None and one.start >= end) or self._is_target(one):
                continue
            first, *further = one.id.split(".")[1:] or [""]
            if further:
                # An attribute of an attribute, as in `x.data.sigmoid()`.
                ends = bool(self._kind) and self._without_gradient(f"{self._kind}.{first}")
            else:
                ends = self._attribute(one, first, names + 1) if first else self.all_end(one, names + 1)
            if not ends:
                return False
        return True

    def _replaced(self, stmt: m.Assign, name: str) -> int | None:
        """Where the next statement ends that stores something else in a variable, of the same block or of the one around a
        branch that goes on to there; None for nowhere."""
        one: m.Stmt = stmt
        while True:
            block = self._block(one)
            rest = block[next(k for k, other in enumerate(block) if other is one) + 1 :]
            end = self._next_store(rest, name)
            above = self._above.get(id(one))
            leaves = any(isinstance(node, m.Jump) for node in nodes(rest))
            if end is not None or leaves or not isinstance(above, (m.If, m.With)):
                return end
            one = above

    def _next_store(self, block: list[m.Stmt], name: str) -> int | None:
        """Where the first statement of a block ends that stores something in a variable; None for nowhere."""
        for one in block:
            if any(isinstance(node, m.Jump) for node in nodes([one])):
                return None
            if isinstance(one, m.Assign) and name in liveness.stored_names(one):
                return one.end
        return None

    def _block(self, stmt: m.Stmt) -> list[m.Stmt]:
        above = self._above.get(id(stmt))
        blocks = (
            [self._function.body]
            if above is None
            else [getattr(above, name) for name in ("body", "orelse", "final") if hasattr(above, name)]
        )
        return next((block for block in blocks if any(one is stmt for one in block)), [stmt])

    def _is_target(self, node: m.Name) -> bool:
        target: Any = node
        while isinstance(parent := self._above.get(id(target)), (m.Seq, m.Star)):
            target = parent
        return (
            isinstance(parent, m.Assign)
            and "." not in node.id
            and any(one is target for one in parent.targets)
        )


def by_name(known: Knowledge, facts: m.FileFacts, kind: str) -> Callable[[m.Expr], Consumers | None]:
    """Gives what is done with values in a function that a file defines once, by the name that a call in another function of
    the file has for it."""

    def called(node: m.Expr) -> Consumers | None:
        name = node.id if isinstance(node, m.Name) else ""
        found = [one for one in facts.functions if one.name == name]
        if len(found) != 1 or found[0].parent != 0 or found[0].cls >= 0 or found[0].decorators:
            return None
        if (
            any(times_stored(one, name) for one in facts.functions)
            or found[0].is_generator
            or found[0].is_async
        ):
            return None
        within = Consumers(known, lambda: facts, found[0], kind, False)
        within.called = called
        return within

    return called


def _called(run: RunView, function: m.Function, node: m.Expr, kind: str) -> Consumers | None:
    """What is done with values in the function that a call in the running one names, if it is one of the program."""
    if not isinstance(node, m.Name):
        return None
    first = node.id.partition(".")[0]
    is_parameter = any(one.name == first for one in function.params)
    if times_stored(function, first) != is_parameter:
        return None
    return _within(run, run.value_of(node), kind)


def _within(run: RunView, func: v.Value, kind: str) -> Consumers | None:
    """What is done with values in a function that does not run yet."""
    if not isinstance(func, v.Func) or not all(map(_keeps_body, func.decorated)):
        return None
    if func.fn.is_generator or func.fn.is_async:
        return None
    file, env, module = func.file, func.env, func.mod.env
    consumers = Consumers(run.kb, lambda: run.whole(file), func.fn, kind, False)
    consumers.bound = int(func.receiver is not None)

    def called(node: m.Expr) -> Consumers | None:
        if not isinstance(node, m.Name) or "." in node.id or times_stored(func.fn, node.id):
            return None
        return _within(run, env.vars.get(node.id) or module.read(node.id) or v.UNKNOWN, kind)

    consumers.called = called
    return consumers


def _keeps_body(decorator: v.Value) -> bool:
    """Whether a decorator says no more than what a method is called with."""
    return isinstance(decorator, v.Ext) and decorator.name in BINDING


def _given(call: m.Call, first: int = 0) -> list[m.Expr]:
    """What may say the element type of the result: the first argument of a method, the second one of a function."""
    return [*call.args[first : first + 1], *(one.value for one in call.keywords if one.name == "dtype")]


def _is_text(node: Any) -> bool:
    return isinstance(node, m.FString) or (isinstance(node, m.Const) and isinstance(node.value, str))


def _is_formatted(node: Any, parent: Any) -> bool:
    """Whether a value is written into a text: `"%.3f" % loss`."""
    return isinstance(parent, m.BinOp) and parent.op == "%" and parent.right is node and _is_text(parent.left)


def _is_integer(node: m.Expr) -> bool:
    """Whether an expression names an element type that has no gradient."""
    name = node.id.rpartition(".")[2] if isinstance(node, m.Name) else ""
    return name in ("bool", "long", "short") or is_dtype(name, "integer")
