"""What loops put into another order in place, in each of their rounds: its order is a state, which no RNG state brings
back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.text import written
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import assigned_names

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView


def reordered(run: RunView, shuffled: m.Expr) -> Iterator[tuple[str, str]]:
    """The name of what is shuffled, with each running loop that began when there was that."""
    if not isinstance(shuffled, m.Name):
        return
    value = run.value_of(shuffled)
    if not isinstance(value, (v.Items, v.Obj)):
        return
    for loop in run.loops:
        again = loop.frame is run.frame and shuffled.id.partition(".")[0] in assigned_names(loop.stmt)
        if value.birth < loop.start and not again:
            yield written(shuffled), loop.key
