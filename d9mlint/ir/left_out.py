"""Branches of a function, or of a module's body, that never run because a variable holds one constant: by syntax alone.

The variable is assigned once, a constant, before the test and in the block in which the test stands or in one around that:
``MODE = "test"``, and then ``if MODE == "train":``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memoized
from d9mlint.ir.liveness import declares
from d9mlint.ir.scopes import bound_by, own_names
from d9mlint.ir.traversal import nodes

_EQUAL = {"==": True, "!=": False}
_AMONG = {"in": True, "not in": False}


@memoized
def left_out(function: m.Function) -> Mapping[int, str]:
    """What stands in such branches, by id, with the variable that leaves it out."""
    branches = [one for one in nodes(function.body) if isinstance(one, m.If)]
    found: dict[int, str] = {}
    if branches:
        once = _bound_once(function)
        for block in (function.body, *(one.body for one in branches)):
            known: dict[str, m.Const] = {}
            for stmt in block:
                found.update(_never_run([stmt], known))
                known.update(_constants(stmt, once))
    return found


def left_out_by_module(module: m.Function, function: m.Function) -> Mapping[int, str]:
    """The same of a function whose module assigns the variable, at the top of its body."""
    known = _of_module(module)
    if not known:
        return {}
    own = own_names(function)
    return _never_run(function.body, {name: held for name, held in known.items() if name not in own})


@memoized
def _of_module(module: m.Function) -> Mapping[str, m.Const]:
    once = _bound_once(module)
    return {name: held for stmt in module.body for name, held in _constants(stmt, once)}


def _bound_once(function: m.Function) -> frozenset[str]:
    """The variables that a function assigns in one place, and shares with nobody."""
    times = Counter(param.name for param in function.params)
    for node in nodes(function.body):
        bound: set[str] = set()
        bound_by(node, bound)
        times.update(bound)
    return frozenset(x for x, count in times.items() if count == 1 and not declares(function, {x}))


def _constants(stmt: m.Stmt, once: frozenset[str]) -> Iterator[tuple[str, m.Const]]:
    if isinstance(stmt, m.Assign) and isinstance(stmt.value, m.Const):
        for target in stmt.targets:
            if isinstance(target, m.Name) and target.id in once:
                yield target.id, stmt.value


def _never_run(body: list[m.Stmt], known: Mapping[str, m.Const]) -> dict[int, str]:
    found: dict[int, str] = {}
    for one in nodes(body) if known else ():
        if isinstance(one, m.If) and (decided := _decided(one.test, known)) is not None:
            name, outcome = decided
            found.update((id(x), name) for x in nodes(one.orelse if outcome else one.body))
    return found


def _decided(test: m.Expr, known: Mapping[str, m.Const]) -> tuple[str, bool] | None:
    """The variable that a test is about, and what it gives; None for tests of something else."""
    if isinstance(test, m.Unary) and test.op == "not":
        inner = _decided(test.operand, known)
        return None if inner is None else (inner[0], not inner[1])
    if isinstance(test, m.Name):
        return (test.id, bool(known[test.id].value)) if test.id in known else None
    if not isinstance(test, m.Compare) or len(test.ops) != 1:
        return None
    left, right, op = test.left, test.comparators[0], test.ops[0]
    if isinstance(left, m.Const) and op in _EQUAL:
        left, right = right, left
    if not isinstance(left, m.Name) or left.id not in known:
        return None
    if op in _AMONG:
        others = right.elts if isinstance(right, m.Seq) else None
    else:
        others = [right] if op in _EQUAL else None
    if others is None or not all(isinstance(one, m.Const) for one in others):
        return None
    equal = any(isinstance(one, m.Const) and one.value == known[left.id].value for one in others)
    return left.id, equal == {**_EQUAL, **_AMONG}[op]
