"""Variables that a loop computes anew from what they were in the round before, and on which its training depends: the weight
of a loss that decays, or the number of all steps from which it is computed."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.checks.checkpoints.first_numbers import (
    begun,
    begun_outside,
    buffers,
    last_of,
    name_of,
    names_in,
    owner_of,
    set_to_number,
)
from d9mlint.checks.checkpoints.own_states import called_methods, deciding_on_weights, updated_by
from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memo
from d9mlint.ir.traversal import called_name, nodes, receiver, statements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from d9mlint.interp.events import Loop
    from d9mlint.interp.view import RunView

_known: dict[int, tuple[m.For | m.While, frozenset[str]]] = memo()


class Carried(NamedTuple):
    """Numbers with which a loop goes on: variables, attributes and items, and attributes of models, with the classes of
    these and whether they are a part of their state; and those by which objects that are made before it, at these times,
    decide what they do with weights."""

    names: set[str]
    of_models: set[tuple[str, v.Cls, bool]]
    on_weights: set[tuple[str, int]]


def carried_on(run: RunView, loop: Loop) -> Carried:
    """What a loop goes on with from round to round that begins with numbers, and on which the losses depend whose gradients
    it computes, whether it does, or the settings of an optimizer."""
    known = _known.get(id(loop.stmt))
    if known is None or known[0] is not loop.stmt:
        known = _known[id(loop.stmt)] = (loop.stmt, frozenset(_updated(loop.stmt)))
    needed = _of_loop(run, loop)
    updated = known[1] & needed
    own = {one for one in updated if one.isidentifier()}
    found = begun(run, loop, own) if own else own
    found |= begun_outside(run, loop, set(updated - own))
    of_models = set[tuple[str, v.Cls, bool]]()
    for name in sorted(needed):
        value = run.value_of(m.Name(name, loop.stmt.start, loop.stmt.end))
        if isinstance(value, v.Func) and value.receiver is None:
            found |= begun_outside(run, loop, _counted_by(value), [value.fn.name], value.file)
        elif isinstance(value, v.Inst) and value.birth < loop.start:
            read = {one.removeprefix(f"{name}.") for one in needed if one.startswith(f"{name}.")}
            methods = methods_called(loop.stmt.body, name, value.cls)
            states = {f"{name}.{one}" for one in counted_in(run, value.cls, methods, read)}
            # What the loop itself sets is set in each round.
            states -= {one for stmt in statements(loop.stmt.body) for one, _ in _assigned(stmt)}
            states = begun_outside(run, loop, states, methods)
            if value.cls.find(_FORWARD) is not None:
                bodies = [made.fn.body for cls in value.cls.mro() if (made := _own_method(cls, "__init__"))]
                held = {one for body in bodies for one, kept in buffers(nodes(body)) if kept}
                of_models.update((one, value.cls, last_of(one) in held) for one in states)
            else:
                found |= states
    return Carried(found, of_models, _on_weights(run, loop))


def _on_weights(run: RunView, loop: Loop) -> set[tuple[str, int]]:
    """The numbers by which objects of the program decide what their methods do with weights in a loop, as one that keeps
    an average of the weights waits for some rounds, and when the objects were made."""
    calls = {
        (receiver(one), called_name(one))
        for one in nodes(loop.stmt.body)
        if isinstance(one, m.Call) and receiver(one)
    }
    found = set[tuple[str, int]]()
    for name, method in sorted(calls):
        for one in v.alternatives(run.value_of(m.Name(name, loop.stmt.start, loop.stmt.end))):
            if isinstance(one, v.Inst) and one.birth < loop.start and one.cls.find(_FORWARD) is None:
                deciding = deciding_on_weights(run, one.cls, method)
                found |= {(f"{name}.{part}", one.birth) for part in deciding & _begun_by(one.cls)}
    return found


def _begun_by(cls: v.Cls) -> set[str]:
    """The attributes that the constructor of a class sets to numbers that are written there."""
    makers = [made for one in cls.mro() if (made := _own_method(one, "__init__")) is not None]
    return {
        last_of(name)
        for made in makers
        for stmt in statements(made.fn.body)
        for name in set_to_number(stmt)
        if owner_of(name) == made.fn.params[0].name
    }


_FORWARD = "forward"


def _own_method(cls: v.Cls, name: str) -> v.Func | None:
    found = cls.env.vars.get(name)
    return found if isinstance(found, v.Func) else None


def methods_called(body: list[m.Stmt], name: str, cls: v.Cls) -> list[str]:
    """The methods of an object that statements call."""
    found = dict[str, None]()
    for one in nodes(body):
        if isinstance(one, m.Call) and isinstance(one.func, m.Name):
            if one.func.id == name:
                found["__call__" if cls.find("__call__") is not None else _FORWARD] = None
            elif receiver(one) == name:
                found[called_name(one)] = None
    return list(found)


def _counted_by(function: v.Func) -> set[str]:
    """The variables of others, or of its module, that a function computes from what they were, and on which what it
    returns depends."""
    body = function.fn.body
    others = {name for one in statements(body) if isinstance(one, m.ScopeDecl) for name in one.names}
    if not others:
        return others
    part = _Slice(body, lambda name: False)
    for stmt in statements(body):
        if isinstance(stmt, m.Return) and stmt.value is not None:
            part.need([stmt.value], stmt)
    return others & _updated_in(body) & part.names()


def counted_in(run: RunView, cls: v.Cls, methods: list[str], read: set[str]) -> set[str]:
    """The attributes that methods of a class compute from what they were, and on which what they return depends, or one
    of the attributes that are read elsewhere."""
    updated = updated_by(run, cls, methods)
    if not updated:
        return set()
    passes = called_methods(cls, methods)
    me = passes[0].fn.params[0].name
    body = [stmt for one in passes for stmt in one.fn.body]
    part = _Slice(body, lambda name: False)
    for stmt in statements(body):
        if isinstance(stmt, m.Return) and stmt.value is not None:
            part.need([stmt.value], stmt)
    part.need([m.Name(f"{me}.{one}", 0, 0) for one in sorted(read)], None)
    return {one for one in updated if f"{me}.{one}" in part.names()}


def _of_loop(run: RunView, loop: Loop) -> set[str]:
    """The names on which the training in a loop depends."""
    func = run.frame.func
    own = func.fn.params[0].name if func is not None and func.receiver is not None else ""

    def takes(name: str) -> bool:
        """Whether a method may put what it is given into an object: that is a collection, or of a class of the program."""
        value = run.value_of(m.Name(name, loop.stmt.start, loop.stmt.start))
        return name != own and isinstance(value, v.Inst | v.Items | v.Mapping)

    part = _Slice(loop.stmt.body, takes)
    for stmt in statements(loop.stmt.body):
        for one in nodes([stmt]):
            if isinstance(one, m.Call) and called_name(one) == "backward":
                part.need([one], stmt)
        if isinstance(stmt, m.For) and _is_groups(stmt.iter):
            groups = _names([stmt.target])
            for inner in statements(stmt.body):
                if isinstance(inner, m.Assign | m.AugAssign) and _sets_part(inner, groups):
                    part.need([inner.value], inner)
    return part.names()


_UPDATES = ("dict", "update")
"""Functions and methods that give a dictionary what their keyword arguments name."""


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
            elif isinstance(one, m.Call) and called_name(one) in _UPDATES:
                found.update(*(saved_in([part.value]) for part in one.keywords if part.name in keys))
    return found


def saved_in(parts: Iterable[Any]) -> set[str]:
    """The variables, attributes and items that some expressions read, and what has the methods that they call."""
    held = list(nodes(parts))
    lengths = [one for one in held if isinstance(one, m.Call) and called_name(one) == "len"]
    # The length of something says nothing about its state.
    measured = {id(one) for length in lengths for one in nodes(length.args)}
    found = set[str]()
    for one in held:
        if id(one) in measured:
            continue
        if isinstance(one, m.Call):
            found.add(receiver(one))
        found.add(name_of(one).removesuffix(".__dict__"))
    return found - {""}


def _is_key(key: Any, keys: set[str]) -> bool:
    return isinstance(key, m.Const) and key.value in keys


def _updated(loop: m.For | m.While) -> set[str]:
    """The variables that the body of a loop only computes from what they were."""
    # What a ``while`` loop tests is the number of its round.
    found = _updated_in(loop.body) - (_names([loop.test]) if isinstance(loop, m.While) else set())
    return found | _filled_in(loop.body)


def _filled_in(body: list[m.Stmt]) -> set[str]:
    """The variables of which each round of a loop sets another item, and keeps the rest: not those that an inner loop goes
    through."""
    held = list(statements(body))
    inner = [one.target for one in held if isinstance(one, m.For)]
    within = {id(part) for one in held if isinstance(one, m.For | m.While) for part in statements(one.body)}
    found, whole = set[str](), set[str]()
    for stmt in held:
        whole.update(name for name, _ in _assigned(stmt))
        for one in stmt.targets if isinstance(stmt, m.Assign) else ():
            if isinstance(one, m.Subscript) and not isinstance(one.index, m.Const | m.Slice):
                name = name_of(one.value)
                if name and id(stmt) not in within and names_in([one.index]).isdisjoint(names_in(inner)):
                    found.add(name)
    return found - whole - {""}


def _updated_in(body: list[m.Stmt]) -> set[str]:
    """The variables that some statements only compute from what they were."""
    updated, other = set[str](), set[str]()
    for stmt in statements(body):
        for name, value in _assigned(stmt):
            (updated if value is not None and name in _names([value]) else other).add(name)
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
    """What something depends on in a block, by the variables of that alone."""

    def __init__(self, body: list[m.Stmt], takes: Callable[[str], bool]) -> None:
        self.held = list(statements(body))
        self.takes = takes
        self.tests: dict[int, tuple[m.Expr, ...]] = {}
        self._note_tests(body, ())
        self.found = set[str]()
        self.open: list[str] = []

    def names(self) -> set[str]:
        """All variables on which that depends which is needed."""
        while self.open:
            name = self.open.pop()
            for stmt in self.held:
                self._follow(name, stmt)
        return self.found

    def _follow(self, name: str, stmt: m.Stmt) -> None:
        """What a variable on which the training depends is made of in a statement."""
        if isinstance(stmt, m.For):
            if name in names_in([stmt.target]):
                self.need([stmt.iter], stmt)
        elif isinstance(stmt, m.Assign | m.AugAssign):
            targets = stmt.targets if isinstance(stmt, m.Assign) else [stmt.target]
            if name in names_in(targets):
                self.need([stmt.value], stmt)
        elif isinstance(stmt, m.ExprStmt) and isinstance(stmt.value, m.Call):
            call = stmt.value
            if receiver(call) == name and self.takes(name):
                self.need([*call.args, *call.keywords], stmt)

    def need(self, parts: list[Any], stmt: m.Stmt | None) -> None:
        """Some expressions are needed, and the tests around their statement."""
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
