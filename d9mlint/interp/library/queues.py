"""Queues that workers put something into: with several of them, who comes first is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import statements

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

PRODUCERS = "@producers"
"""Attribute of a queue: the workers that put something into it, as far as that is seen."""
ENDLESS = "@endless"
"""Attribute of a queue into which a worker puts something that never ends."""
SEVERAL = 2
"""So many workers, or more, are made at one place."""


class Workers(NamedTuple):
    """Workers that run what is running: how many, what names them, the time at which the loop began that makes them (0
    for no loop), and what each of them is given as its own."""

    number: int
    place: str
    begun: int
    own: tuple[v.Value, ...]

    def share(self, queue: v.Obj) -> bool:
        """Whether all of them are given this queue: it is older than the loop, and not one of several."""
        return (not self.begun or queue.birth < self.begun) and all(one is not queue for one in self.own)


def _put(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``queue.put(x)`` in a worker."""
    if interp.workers is not None and isinstance(owner, v.Obj):
        workers = interp.workers
        count, place = workers.number if workers.share(owner) else 1, workers.place
        held = owner.attrs.get(PRODUCERS)
        known: tuple[str, ...] = held.value if isinstance(held, v.Lit) else ()
        if place not in known:
            owner.attrs[PRODUCERS] = v.Lit((*known, *([place] * count)))
        if any(_never_ends(loop.stmt) for loop in interp.loops):
            owner.attrs[ENDLESS] = v.TRUE
    return None


def _never_ends(stmt: Any) -> bool:
    """Whether a loop is ``while True:``, and no statement in it leaves it."""
    if not isinstance(stmt, m.While) or not isinstance(stmt.test, m.Const) or not stmt.test.value:
        return False
    return not any(
        isinstance(one, m.Return) or (isinstance(one, m.Jump) and one.kind == "break")
        for one in statements(stmt.body)
    )


def is_endless(queue: v.Value | None) -> bool:
    """Whether a worker never ends to put something into a queue."""
    return isinstance(queue, v.Obj) and ENDLESS in queue.attrs


def filled_by_several(queue: v.Value | None) -> bool:
    """Whether several workers put something into a queue."""
    held = queue.attrs.get(PRODUCERS) if isinstance(queue, v.Obj) else None
    return isinstance(held, v.Lit) and len(held.value) >= SEVERAL


QUEUE_METHODS = {
    f"{queue}.{name}": _put
    for queue in (
        "queue.Queue",
        "queue.SimpleQueue",
        "multiprocessing.Queue",
        "multiprocessing.SimpleQueue",
        "multiprocessing.JoinableQueue",
        "torch.multiprocessing.Queue",
        "torch.multiprocessing.SimpleQueue",
    )
    for name in ("put", "put_nowait")
}
