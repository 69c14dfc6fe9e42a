"""Variables that a loop computes anew from what they were in the round before, and on which its training depends: the weight
of a loss that decays, or the number of all steps from which it is computed."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

from d9mlint.checks.checkpoints.first_numbers import begun, begun_outside, name_of
from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memo
from d9mlint.ir.traversal import called_name, nodes, receiver, statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from d9mlint.interp.events import Loop
    from d9mlint.interp.view import RunView

_known: dict[int, tuple[m.For | m.While, frozenset[str]]] = memo()


def carried_on(run: RunView, loop: Loop) -> frozenset[str]:
    """The variables with which a loop goes on from round to round, that begin with numbers, and on which the losses depend
    whose gradients it computes, whether it does, or the settings of an optimizer."""
    known = _known.get(id(loop.stmt))
    if known is None or known[0] is not loop.stmt:
        found = _updated(loop.stmt)
        own = {one for one in found if one.isidentifier()}
        outside = begun_outside(run, loop, found - own)
        found = begun(loop.frame.function, loop.stmt, own) | outside if found else found
        if found:
            found &= _Slice(run, loop.stmt).names()
        known = _known[id(loop.stmt)] = (loop.stmt, frozenset(found))
    return known[1]


def stored_with(facts: m.FileFacts, keys: Iterable[str]) -> set[str]:
    """What dictionaries hold under some keys in a file, and what has the methods that give that."""
    keys, found = set(keys), set[str]()
    for function in facts.functions:
        for one in nodes(function.body):
            if isinstance(one, m.Dict):
                pairs = zip(one.keys, one.values, strict=False)
                found.update(*(saved_in([value]) for key, value in pairs if _is_key(key, keys)))
            elif isinstance(one, m.Assign):
                if any(isinstance(t, m.Subscript) and _is_key(t.index, keys) for t in one.targets):
                    found |= saved_in([one.value])
    return found


def saved_in(parts: Iterable[Any]) -> set[str]:
    """The variables, attributes and items that some expressions read, and what has the methods that they call."""
    found = set[str]()
    for one in nodes(parts):
        if isinstance(one, m.Call):
            found.add(receiver(one))
        found.add(name_of(one).removesuffix(".__dict__"))
    return found - {""}


def _is_key(key: Any, keys: set[str]) -> bool:
    return isinstance(key, m.Const) and key.value in keys


def _updated(loop: m.For | m.While) -> set[str]:
    """The variables that the body of a loop only computes from what they were."""
    updated, other = set[str](), set[str]()
    for stmt in statements(loop.body):
        for name, value in _assigned(stmt):
            (updated if value is not None and name in _names([value]) else other).add(name)
    if isinstance(loop, m.While):
        # The number of its round.
        other |= _names([loop.test])
    return updated - other


def _assigned(stmt: m.Stmt) -> Iterator[tuple[str, m.Expr | None]]:
    """The variables that a statement assigns, with what; for ``x += 1`` that is computed from ``x``."""
    if isinstance(stmt, m.AugAssign) and (name := name_of(stmt.target)):
        yield name, m.BinOp(stmt.op, stmt.target, stmt.value, stmt.start, stmt.end)
        return
    targets = stmt.targets if isinstance(stmt, m.Assign) else [getattr(stmt, "target", None)]
    single = isinstance(stmt, m.Assign) and all(map(name_of, targets))
    held = {name for one in nodes(filter(None, targets)) if (name := name_of(one))}
    # Of ``x["key"] = 1``, it is not the dictionary that is assigned.
    held -= {name_of(one.value) for one in nodes(filter(None, targets)) if isinstance(one, m.Subscript)}
    for name in sorted(held):
        yield name, stmt.value if isinstance(stmt, m.Assign) and single else None


class _Slice:
    """What the training in a loop depends on, by the variables of its body alone."""

    def __init__(self, run: RunView, loop: m.For | m.While) -> None:
        self.run = run
        self.loop = loop
        func = run.frame.func
        self.own = func.fn.params[0].name if func is not None and func.receiver is not None else ""
        self.tests: dict[int, tuple[m.Expr, ...]] = {}
        self._note_tests(loop.body, ())
        self.found = set[str]()
        self.open: list[str] = []

    def names(self) -> set[str]:
        """All variables on which the training depends."""
        held = list(statements(self.loop.body))
        for stmt in held:
            for one in nodes([stmt]):
                if isinstance(one, m.Call) and called_name(one) == "backward":
                    self._need([one], stmt)
            if isinstance(stmt, m.For) and _is_groups(stmt.iter):
                groups = _names([stmt.target])
                for inner in statements(stmt.body):
                    if isinstance(inner, m.Assign | m.AugAssign) and _sets_part(inner, groups):
                        self._need([inner.value], inner)
        while self.open:
            name = self.open.pop()
            for stmt in held:
                self._follow(name, stmt)
        return self.found

    def _follow(self, name: str, stmt: m.Stmt) -> None:
        """What a variable on which the training depends is made of in a statement."""
        if isinstance(stmt, m.For):
            if name in _stored([stmt.target]):
                self._need([stmt.iter], stmt)
        elif isinstance(stmt, m.Assign | m.AugAssign):
            targets = stmt.targets if isinstance(stmt, m.Assign) else [stmt.target]
            if name in _stored(targets):
                self._need([stmt.value], stmt)
        elif isinstance(stmt, m.ExprStmt) and isinstance(stmt.value, m.Call):
            call = stmt.value
            if receiver(call) == name and name != self.own and self._is_own(name):
                self._need([*call.args, *call.keywords], stmt)

    def _is_own(self, name: str) -> bool:
        """Whether a method may put what it is given into an object: that is a collection, or of a class of the program."""
        value = self.run.value_of(m.Name(name, self.loop.start, self.loop.start))
        return isinstance(value, v.Inst | v.Items | v.Mapping)

    def _need(self, parts: list[Any], stmt: m.Stmt) -> None:
        """The training depends on some expressions, and on the tests around them."""
        names = _names([*parts, *self.tests.get(id(stmt), ())])
        self.open += sorted(names - self.found)
        self.found |= names

    def _note_tests(self, body: Iterable[m.Stmt], tests: tuple[m.Expr, ...]) -> None:
        for stmt in body:
            self.tests[id(stmt)] = tests
            inner = (*tests, stmt.test) if isinstance(stmt, m.If) else tests
            for block in ("body", "orelse", "final"):
                self._note_tests(getattr(stmt, block, None) or (), inner)


def _is_groups(over: m.Expr) -> bool:
    """Whether a loop goes over the groups of parameters of an optimizer."""
    names = (
        one.id if isinstance(one, m.Name) else f".{one.name}"
        for one in nodes([over])
        if isinstance(one, m.Name | m.Attr)
    )
    return any(name.endswith(".param_groups") for name in names)


def _sets_part(stmt: m.Assign | m.AugAssign, names: set[str]) -> bool:
    """Whether a statement sets an item of one of some variables."""
    targets = stmt.targets if isinstance(stmt, m.Assign) else [stmt.target]
    return any(isinstance(one, m.Subscript) and not names.isdisjoint(_names([one.value])) for one in targets)


def _names(parts: Iterable[Any]) -> set[str]:
    """The variables, attributes and items that are read in some expressions, of ``x.y`` also ``x``."""
    found = set[str]()
    for one in nodes(parts):
        if isinstance(one, m.Name):
            found.update(accumulate(one.id.split("."), "{}.{}".format))
        elif name := name_of(one):
            found.add(name)
    return found


def _stored(targets: Iterable[Any]) -> set[str]:
    """The variables, attributes and items that are assigned as some targets, and what an item is one of."""
    return {name for one in nodes(targets) if (name := name_of(one))}
