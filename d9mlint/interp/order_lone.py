"""Rounds that come once: ``for name in os.listdir(folder): if name == "labels.csv"``. The entries of a folder and the
elements of a set are all different, so that one round at most passes such a test, and what it does has no order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.order_single import all_differ, differ, differ_by_name, is_joined
from d9mlint.interp.order_ties import PAIRS
from d9mlint.interp.passed_on import ENUMERATE, inside, passed_on
from d9mlint.interp.places import running
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memoized
from d9mlint.ir.scopes import assigned_names
from d9mlint.ir.traversal import called_name, nodes, receiver

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.orders import Loop

_NAME = "name"
"""The attribute of a path, or of an entry of a folder, that is its last part."""
_BASENAME = "os.path.basename"
_LISTS = frozenset({"builtins.list", "builtins.tuple", "builtins.set"})


class Change(NamedTuple):
    """A place in a loop that may change what a variable holds: the variable, with the attributes and items of it."""

    path: tuple[str, ...]
    start: int


class Entry(NamedTuple):
    """The variable of a loop that stands for a different element in each round; ``by_name`` is whether the last parts of
    the paths that it stands for are different, too."""

    variable: str
    by_name: bool


class Lone(NamedTuple):
    """A loop of which one round alone comes to what is running now; ``place`` is where it stands among the loops."""

    loop: Loop
    place: int
    test: m.Expr


def entry(interp: Interp, iterated: v.Value, stmt: m.For) -> Entry | None:
    """The variable of a loop that stands for a different element in each round."""
    target: m.Expr = stmt.target
    written: m.Expr = stmt.iter
    iterated = passed_on(iterated)
    if isinstance(iterated, v.Obj) and iterated.api == ENUMERATE and isinstance(target, m.Seq):
        if len(target.elts) != 2 or (inner := inside(iterated)) is None:
            return None
        target, iterated = target.elts[1], passed_on(inner)
        written = written.args[0] if isinstance(written, m.Call) and written.args else written
    if isinstance(target, m.Seq) and _gives_pairs(interp, stmt.iter):
        return Entry(target.elts[0].id, False) if isinstance(target.elts[0], m.Name) else None
    while isinstance(iterated, v.Obj) and iterated.api in _LISTS and iterated.args.pos:
        iterated = passed_on(iterated.args.pos[0])
    if not isinstance(target, m.Name) or target.id in assigned_names(stmt):
        return None
    by_name = differ_by_name(interp, iterated)
    different = by_name or differ(interp, iterated) or all_differ(interp, written, running(interp))
    return Entry(target.id, by_name) if different else None


def _gives_pairs(interp: Interp, node: m.Expr) -> bool:
    """Whether an expression gives the keys of a mapping, each with what is there for it."""
    if not isinstance(node, m.Call) or called_name(node) != PAIRS or node.args:
        return False
    held = (
        interp.eval(node.func.value)
        if isinstance(node.func, m.Attr)
        else interp.eval(m.Name(receiver(node), 0, 0))
    )
    return isinstance(held, v.Mapping)


def within(interp: Interp, test: m.Expr, outcome: bool, body: list[m.Stmt], run: Callable[[], None]) -> None:
    """Run the branch of a test: loops of which one round alone comes to it do not count there."""
    kept = len(interp.orders.lone)
    if interp.orders.loops and body:
        _hide(interp, test, outcome, body[0].start, body[-1].end)
    run()
    come_back(interp, kept)


def narrow(interp: Interp, stmt: m.If, outcome: bool) -> None:
    """What follows an ``if`` that leaves the round unless its test gives ``outcome``."""
    for loop in interp.orders.loops[-1:]:
        if loop.stmt is not None:
            _hide(interp, stmt.test, outcome, stmt.end, loop.stmt.end)


def come_back(interp: Interp, kept: int) -> None:
    """Loops count again that did not since there were ``kept`` such loops."""
    orders = interp.orders
    while len(orders.lone) > kept:
        one = orders.lone.pop()
        orders.loops.insert(one.place, one.loop)


def _hide(interp: Interp, test: m.Expr, outcome: bool, start: int, end: int) -> None:
    """Loops of which one round alone comes to what stands between two places do not count from here on."""
    orders = interp.orders
    for place in reversed(range(len(orders.loops))):
        loop = orders.loops[place]
        if loop.entry is None or loop.stmt is None or loop.env is not interp.frame.env:
            continue
        fixed = assigned_names(loop.stmt)
        if _names_one(interp, test, outcome, loop.entry, fixed) and not _is_shared(
            interp, loop.stmt, start, end
        ):
            orders.lone.append(Lone(loop, place, test))
            del orders.loops[place]


def _names_one(interp: Interp, test: m.Expr, outcome: bool, entry: Entry, assigned: frozenset[str]) -> bool:
    """Whether a test gives ``outcome`` for one element of a loop at most."""
    if isinstance(test, m.Unary) and test.op == "not":
        return _names_one(interp, test.operand, not outcome, entry, assigned)
    if isinstance(test, m.BoolOp):
        return test.op == ("and" if outcome else "or") and any(
            _names_one(interp, one, outcome, entry, assigned) for one in (test.left, test.right)
        )
    if not isinstance(test, m.Compare) or len(test.ops) != 1:
        return False
    other = test.comparators[0]
    if test.ops[0] in ("in", "not in"):
        if not isinstance(other, m.Seq) or len(other.elts) != 1:
            return False
        other = other.elts[0]
    if test.ops[0] not in (("==", "in") if outcome else ("!=", "not in")):
        return False
    sides = (test.left, other)
    return any(
        is_entry(interp, side, entry) and _is_fixed(interp, rest, {*assigned, entry.variable})
        for side, rest in (sides, sides[::-1])
    )


def is_entry(interp: Interp, node: m.Expr, entry: Entry) -> bool:
    """Whether an expression is different in each round: the element itself, or the last part of its path."""
    if isinstance(node, m.Name):
        return node.id == entry.variable or (entry.by_name and node.id == f"{entry.variable}.{_NAME}")
    if not entry.by_name or not isinstance(node, m.Call) or len(node.args) != 1:
        return False
    called = interp.eval(node.func) if isinstance(node.func, m.Name) else None
    return (
        isinstance(called, v.Ext)
        and interp.kb.canonical(called.name) == _BASENAME
        and isinstance(node.args[0], m.Name)
        and node.args[0].id == entry.variable
    )


def _is_fixed(interp: Interp, node: m.Expr, assigned: set[str]) -> bool:
    """Whether an expression is the same in each round of a loop that assigns these names: a path that is joined, a text."""
    for one in nodes([node]):
        if isinstance(one, m.Name) and one.id.partition(".")[0] in assigned:
            return False
        if isinstance(one, m.Call) and not is_joined(interp, one):
            return False
    return True


def _is_shared(interp: Interp, stmt: m.For, start: int, end: int) -> bool:
    """Whether a loop also changes elsewhere what it changes between two places: then it matters which comes first."""
    fresh = _fresh(stmt)
    here, elsewhere = list[tuple[str, ...]](), list[tuple[str, ...]]()
    for path, place in _changed(stmt):
        if path[0] not in fresh and _is_changeable(interp, path[0]):
            (here if start <= place < end else elsewhere).append(_kept(interp, path))
    return any(one[: len(other)] == other[: len(one)] for one in here for other in elsewhere)


def _fresh(stmt: m.For) -> frozenset[str]:
    """Names that a loop gives something new in each round, and does not add to."""
    added = {
        one.target.id
        for one in nodes(stmt.body)
        if isinstance(one, m.AugAssign) and isinstance(one.target, m.Name)
    }
    again = {
        target.id
        for one in nodes(stmt.body)
        if isinstance(one, m.Assign)
        for target in one.targets
        if isinstance(target, m.Name) and _reads(one.value, target.id)
    }
    return assigned_names(stmt) - added - again


@memoized
def _changed(stmt: m.For) -> tuple[Change, ...]:
    """The places in a loop that may change what a variable holds."""
    return tuple(_found(stmt))


def _found(stmt: m.For) -> Iterator[Change]:
    for node in nodes(stmt.body):
        changed: list[Any] = []
        if isinstance(node, m.Call):
            if isinstance(node.func, m.Name) and "." in node.func.id:
                yield Change(tuple(node.func.id.split(".")[:-1]), node.start)
            elif isinstance(node.func, m.Attr):
                changed = [node.func.value]
        elif isinstance(node, m.ExprStmt) and isinstance(node.value, m.Call):
            changed = node.value.args
        elif isinstance(node, m.AugAssign):
            changed = [node.target]
        elif isinstance(node, m.Assign):
            for target in node.targets:
                if isinstance(target, m.Subscript):
                    changed.append(target.value)
                elif isinstance(target, m.Name) and _reads(node.value, target.id):
                    changed.append(target)
        for one in changed:
            if path := _path(one):
                yield Change(path, one.start)


def _reads(node: m.Expr, name: str) -> bool:
    return any(isinstance(one, m.Name) and one.id == name for one in nodes([node]))


def _path(node: Any) -> tuple[str, ...]:
    """A variable, with the attributes and items that are taken of it as far as these are known."""
    if isinstance(node, m.Name):
        return tuple(node.id.split("."))
    if isinstance(node, m.Attr):
        return (*path, node.name) if (path := _path(node.value)) else ()
    if isinstance(node, m.Subscript):
        path = _path(node.value)
        return (*path, f"[{node.index.value!r}]") if path and isinstance(node.index, m.Const) else path
    if isinstance(node, m.Call):
        # `table.setdefault(key, []).append(x)`
        func = node.func
        return _path(func.value) if isinstance(func, m.Attr) else _path(func)[:-1]
    return ()


def _is_changeable(interp: Interp, name: str) -> bool:
    """Whether a variable holds what a method may change, and no module or function."""
    return not isinstance(interp.lookup(name), v.Ext | v.Mod | v.Func | v.Cls)


def _kept(interp: Interp, path: tuple[str, ...]) -> tuple[str, ...]:
    """What a place changes: a mapping that makes its items when they are asked for is changed by taking one."""
    held = interp.lookup(path[0])
    return path[:1] if isinstance(held, v.Mapping) and held.factory is not None else path
