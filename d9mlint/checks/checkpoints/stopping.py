"""Objects of the program that say when a loop ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memo
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.events import Loop
    from d9mlint.interp.view import RunView

_CALLED = "__call__"
_known: dict[int, tuple[m.For | m.While, tuple[str, ...]]] = memo()


def stoppers(run: RunView, loop: Loop) -> Iterator[tuple[v.Inst, list[str]]]:
    """The objects that a loop asks whether it ends, with the methods of them that it calls."""
    found: dict[str, v.Inst] = {}
    for name in _names(loop.stmt):
        while name and name not in found:
            value = run.value_of(m.Name(name, loop.stmt.start, loop.stmt.end))
            if isinstance(value, v.Inst):
                found[name] = value
            name = name.rpartition(".")[0]
    for name, one in found.items():
        called = [
            _CALLED if part.func.id == name else part.func.id.removeprefix(name + ".")
            for part in nodes(loop.stmt.body)
            if isinstance(part, m.Call)
            and isinstance(part.func, m.Name)
            and f"{part.func.id}.".startswith(name + ".")
        ]
        yield one, [method for method in dict.fromkeys(called) if "." not in method]


def _names(loop: m.For | m.While) -> tuple[str, ...]:
    """What ``_asked`` gives; memoised while the loop lives."""
    known = _known.get(id(loop))
    if known is None or known[0] is not loop:
        known = _known[id(loop)] = (loop, tuple(dict.fromkeys(_asked(loop))))
    return known[1]


def _asked(loop: m.For | m.While) -> Iterator[str]:
    """The names in the tests that end a loop, and in what gives the variables there their values."""
    held = list(_own(loop.body))
    tests = [one.test for one in held if isinstance(one, m.If) and any(map(_ends, one.body))]
    if isinstance(loop, m.While):
        tests.append(loop.test)
    names = [one.id for one in nodes(tests) if isinstance(one, m.Name)]
    yield from names
    for stmt in held:
        if isinstance(stmt, m.Assign) and isinstance(stmt.value, m.Call):
            targets = [one.id for one in nodes(stmt.targets) if isinstance(one, m.Name)]
            if isinstance(stmt.value.func, m.Name) and not set(names).isdisjoint(targets):
                yield stmt.value.func.id


def _own(body: Iterable[m.Stmt]) -> Iterator[m.Stmt]:
    """The statements of a loop, without those of loops in it."""
    for stmt in body:
        yield stmt
        if not isinstance(stmt, (m.For, m.While)):
            for name in ("body", "orelse", "final"):
                yield from _own(getattr(stmt, name, ()))


def _ends(stmt: m.Stmt) -> bool:
    return isinstance(stmt, m.Return) or (isinstance(stmt, m.Jump) and stmt.kind == "break")
