"""Loops over epochs or steps that go on from a number that was loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.data import RANGES
from d9mlint.interp.passed_on import PASS_THROUGH
from d9mlint.interp.tensors import key_before, loaded_as, loaded_before, loaded_by
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.events import Loop
    from d9mlint.interp.view import RunView


class Start(NamedTuple):
    """Where a loop goes on: the key under which its first number was loaded, or the option with which one is."""

    key: object
    option: str

    def is_kept(self, run: RunView, keys: set[object]) -> bool:
        """Whether one of some keys is the one under which the number was loaded."""
        if self.option:
            return any(
                flag(self.option, key) in run.marks for key in keys for flag in (loaded_by, loaded_before)
            )
        return self.key in keys


def start_of(run: RunView, loop: Loop) -> Start | None:
    """The loaded number that a loop goes on from, if there is one."""
    firsts: list[v.Value] = []
    if isinstance(loop.stmt, m.For):
        for over in v.alternatives(loop.over or v.UNKNOWN):
            while isinstance(over, v.Obj) and over.api in PASS_THROUGH and over.args.pos:
                over = over.args.pos[0]
            if isinstance(over, v.Obj) and over.api in RANGES and len(over.args.pos) > 1:
                firsts.append(over.args.pos[0])
    elif isinstance(loop.stmt, m.While):
        firsts = [run.eval(one) for one in nodes([loop.stmt.test]) if isinstance(one, m.Name)]
    for first in firsts:
        key = loaded_as(first) or key_before(first)
        if isinstance(key, v.Lit):
            return Start(key.value, "")
        option = next(
            (one.option for one in v.alternatives(first) if isinstance(one, v.Lit) and one.option), ""
        )
        if option:
            return Start(None, option)
    return None
