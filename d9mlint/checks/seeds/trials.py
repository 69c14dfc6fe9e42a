"""Whether a program trains for more rounds than it takes to see that a model can be trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.checks.base import argument_node
from d9mlint.checks.checkpoints.states import optimizes
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, Loop
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

_FEW = 2
"""Rounds, or epochs, that show that a model can be trained."""


def trains_on(run: RunView, call: CallEvent) -> bool:
    """Whether a call trains, and goes on doing so: an optimizer takes a step in each of several rounds, or a model is
    trained for several epochs."""
    role = run.kb.role(call.api, "trains-in-epochs")
    if role is not None:
        epochs = call.args.get(role.arg)
        given = epochs is not None or argument_node(call.node, role.arg) is not None
        return given and not (isinstance(epochs, v.Lit) and _is_few(epochs.value))
    given_to = (call.owner, *call.args.pos)
    if not any(isinstance(one, v.Obj) and optimizes(one) for one in given_to):
        return False
    counts = [_rounds(one) for one in run.loops]
    if sum(one is None or one > 1 for one in counts) > 1:
        return True
    return any(count is None or count > _FEW for count in counts) and not any(map(_may_stop, run.loops))


def _is_few(epochs: object) -> bool:
    return isinstance(epochs, int) and epochs <= _FEW


def _rounds(loop: Loop) -> int | None:
    """How many rounds a loop has, where that is known."""
    if any(
        isinstance(one, (m.Return, m.Raise)) or (isinstance(one, m.Jump) and one.kind == "break")
        for one in loop.stmt.body
    ):
        return 1
    over = loop.over
    if isinstance(over, v.Items) and not over.open:
        return len(over.elts)
    if isinstance(over, v.Obj) and over.api == "builtins.range":
        limits = [one.value if isinstance(one, v.Lit) else None for one in over.args.pos]
        whole = [one for one in limits if isinstance(one, int)]
        if whole and len(whole) == len(limits) and 0 not in whole[2:]:
            return len(range(*whole))
    return None


def _may_stop(loop: Loop) -> bool:
    """Whether something in a loop may break it off."""
    return any(isinstance(one, m.Jump) and one.kind == "break" for one in nodes(loop.stmt.body))
