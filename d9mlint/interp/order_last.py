"""What a loop over an arbitrary order leaves in its variables: the last element depends on the order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memo
from d9mlint.ir.forms import FORM, only_form
from d9mlint.ir.scopes import assigned_names
from d9mlint.ir.traversal import alike, called_name, nodes, receiver

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.orders import Loop

_ALIKE = FORM | {"columns", "close"}
"""Attributes that files of one kind have alike."""
_known: dict[int, tuple[object, frozenset[str]]] = memo()


def left(interp: Interp, stmt: m.For, loop: Loop) -> None:
    """A loop has ended: its variables have what its last round gave them."""
    variables = interp.frame.env.vars
    for name in _of_last_round(stmt, interp.frame.function, loop.numbers is not None):
        value = variables.get(name)
        if isinstance(value, v.AnyOf) and _are_of_one_class(value.values):
            value = value.values[-1]
        if isinstance(value, v.Obj) and not value._attrs:
            # The object itself may be an element of a list that is sorted.
            last = v.Obj(value.api, value.type, value.args, value.node)
            last.file, last.owner, last.data, last.form = value.file, value.owner, value.data, value.form
            last.order = value.order
            variables[name] = interp.orders.carried(last, loop.order)
        elif value is v.UNKNOWN or isinstance(value, (v.Lit, v.AnyOf)):
            variables[name] = interp.orders.carried(v.UNKNOWN, loop.order)


def _are_of_one_class(values: Sequence[v.Value]) -> bool:
    return len({one.type for one in values if isinstance(one, v.Obj)}) == 1 and all(
        isinstance(one, v.Obj) for one in values
    )


def _of_last_round(stmt: m.For, function: m.Function, numbers: bool) -> frozenset[str]:
    """The variables that hold the last element of a loop, or what is read or computed from it, whatever the element is.
    A loop that is broken off, or keeps an element that passes a test, searches for one: there may be only one. Those are
    left out that are asked for their form later, which may be the same for all elements. ``numbers`` is whether the loop
    goes through the numbers of its elements."""
    known = _known.get(id(stmt))
    if known is None or known[0] is not stmt:
        found = _found(stmt, numbers)
        for one in nodes(function.body) if found else ():
            if isinstance(one, m.Name) and one.start > stmt.end:
                name, _, rest = one.id.partition(".")
                if rest.partition(".")[0] in _ALIKE:
                    found.discard(name)
        known = _known[id(stmt)] = (stmt, frozenset(found))
    return known[1]


def _found(stmt: m.For, numbers: bool) -> set[str]:
    target = stmt.target
    if isinstance(target, m.Seq) and len(target.elts) == 2 and isinstance(stmt.iter, m.Call):
        target = target.elts[1] if called_name(stmt.iter) == "enumerate" else target
    leaves = any(isinstance(one, m.Jump) and one.kind in ("break", "continue") for one in nodes(stmt.body))
    if not isinstance(target, m.Name) or leaves or stmt.orelse:
        return set()
    found = set() if target.id in assigned_names(stmt) else {target.id}
    counts: dict[str, int] = {}
    for one in nodes(stmt.body):
        if isinstance(one, m.Assign):
            for written in one.targets:
                for part in nodes([written]):
                    if isinstance(part, m.Name):
                        counts[part.id] = counts.get(part.id, 0) + 1
        elif isinstance(one, m.AugAssign) and isinstance(one.target, m.Name):
            counts[one.target.id] = 2
    for one in _run_for_each(stmt):
        if not isinstance(one, m.Assign) or len(one.targets) != 1 or not isinstance(one.targets[0], m.Name):
            continue
        name = one.targets[0].id
        taken = numbers and isinstance(one.value, m.Subscript) and alike(one.value.index, target)
        if counts[name] == 1 and "." not in name and (taken or _is_of(one.value, found, name)):
            found.add(name)
    return found - {target.id} if numbers else found


def _run_for_each(stmt: m.For) -> Iterator[m.Stmt]:
    """What runs for each element, or for each that passes a test and is collected: there is more than one of these."""
    of_round = assigned_names(stmt)
    for one in stmt.body:
        yield one
        tested = one
        while isinstance(tested, m.If) and tested.body and not tested.orelse:
            if _collects(tested.body, of_round):
                yield from tested.body
            tested = tested.body[0]


def _collects(body: list[m.Stmt], of_round: frozenset[str]) -> bool:
    """Whether statements add something to a list that the loop does not begin anew."""
    return any(
        isinstance(one, m.ExprStmt)
        and isinstance(one.value, m.Call)
        and called_name(one.value) == "append"
        and (name := receiver(one.value).partition(".")[0]) != ""
        and name not in of_round
        for one in body
    )


def _is_of(value: m.Expr, elements: set[str], name: str) -> bool:
    """Whether a call is given the element: not what only has its form, or keeps what earlier rounds gave."""
    read = {one.id.partition(".")[0] for one in nodes([value]) if isinstance(one, m.Name)}
    if isinstance(value, m.Name):
        return value.id in elements
    if isinstance(value, m.BinOp) and name not in read:
        return any(_is_of(side, elements, name) for side in (value.left, value.right))
    if name in read or only_form(value):
        return False
    call: m.Expr = value
    while isinstance(call, (m.Attr, m.Subscript)):
        call = call.value
    while isinstance(call, m.Call):
        if isinstance(call.func, m.Attr) and call.func.name in FORM:
            return False
        if any(
            isinstance(part, m.Name) and part.id in elements for one in call.args for part in nodes([one])
        ):
            return True
        call = call.func.value if isinstance(call.func, m.Attr) else call.func
    return False
