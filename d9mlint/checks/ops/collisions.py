"""Elements that are written to places of which several are one: which of them stays there is not determined.

``image[y, x] = depth`` with pixels that points were rounded to. What is written has to differ where the place is the same:
what is taken from the same places, or computed from them, does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from d9mlint.interp import values as v
from d9mlint.interp.places import running
from d9mlint.interp.shapes import form, has_one_element, is_number
from d9mlint.interp.view import RunView
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import heads
from d9mlint.ir.traversal import statements

_STEPS = 8
"""From variable to variable it is followed at most so often what is written."""


def collide(run: RunView, indices: Iterable[v.Value], target: Any, written: Iterable[m.Expr]) -> bool:
    """Whether several elements may well be written to one place, of which the values are not seen to be equal: each index is
    a tensor with equal elements, a number or a slice, and what is written is computed from none of them."""
    given = list(indices)
    places = [one for one in given if not (v.is_slice(one) or is_number(one))]
    if not places or not all(form(one).repeats and not has_one_element(form(one)) for one in places):
        return False
    function = running(run)
    if function is None:
        return False
    names = heads([target.index] if isinstance(target, m.Subscript) else [target])
    return (names & _variables(function)).isdisjoint(_behind(function, heads(written)))


def _variables(function: m.Function) -> set[str]:
    """The parameters of a function and what its statements assign."""
    stored = {one.name for one in function.params}
    for stmt in statements(function.body):
        if isinstance(stmt, m.Assign):
            stored |= heads(stmt.targets)
        elif isinstance(stmt, m.For):
            stored |= heads([stmt.target])
    return stored


def _behind(function: m.Function, names: set[str]) -> set[str]:
    """The variables of a function from which some of them are computed, and these."""
    found = set(names)
    for _ in range(_STEPS):
        before = len(found)
        for stmt in statements(function.body):
            if isinstance(stmt, m.Assign) and not found.isdisjoint(heads(stmt.targets)):
                found |= heads([stmt.value])
            elif isinstance(stmt, m.For) and not found.isdisjoint(heads([stmt.target])):
                found |= heads([stmt.iter])
        if len(found) == before:
            break
    return found
