"""Coroutines of the program that run at the same time: what one does behind an ``await`` comes when what it waits for is
there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.library.processes import begun_for_several, files_since, turns
from d9mlint.interp.places import running
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes, parents, receiver

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_RUNS_ONE = frozenset({"run", "run_until_complete"})
"""Functions that run one coroutine to its end."""
_SLEEP = "sleep"
_HOLDERS = (v.Items, v.Mapping, v.Inst)


@contextmanager
def as_task(interp: Interp, node: Any) -> Iterator[None]:
    """A function is called that gives a coroutine: as one of several tasks, where a loop calls it and does not wait."""
    since = _since(interp, node)
    if not since:
        yield
        return
    outer = interp.tasks, interp.sharing, interp.sharing_files, interp.among_processes
    interp.tasks = since, files_since(interp, node)
    try:
        yield
    finally:
        interp.tasks, interp.sharing, interp.sharing_files, interp.among_processes = outer


def waited(interp: Interp, awaited: m.Expr) -> None:
    """A coroutine has waited: from now on others may have been faster."""
    if interp.tasks[0] and not _gives_way(awaited):
        interp.sharing, interp.sharing_files = interp.tasks
        interp.among_processes = False


def _gives_way(awaited: m.Expr) -> bool:
    """Whether ``asyncio.sleep(0)`` lets the others go on, each in its turn."""
    if not isinstance(awaited, m.Call) or called_name(awaited) != _SLEEP or len(awaited.args) != 1:
        return False
    return isinstance(awaited.args[0], m.Const) and awaited.args[0].value == 0


def _since(interp: Interp, node: Any) -> int:
    """The time at which the loop began that calls a coroutine without waiting for it; 0 where it waits, or where the round
    of the loop chooses what the coroutine may add to."""
    begun = begun_for_several(interp, node)
    if not begun or _is_waited_for(interp, node):
        return 0
    chosen, of_loops = receiver(node), turns(interp)
    if chosen.partition(".")[0] in of_loops:
        return 0
    for one in (*node.args, *(keyword.value for keyword in node.keywords)):
        by_round = isinstance(one, (m.Subscript, m.Attr, m.Call))
        by_round = by_round or (isinstance(one, m.Name) and one.id.partition(".")[0] in of_loops)
        if by_round and any(isinstance(held, _HOLDERS) for held in v.alternatives(interp.value_of(one))):
            return 0
    return begun


def _is_waited_for(interp: Interp, node: m.Call) -> bool:
    """Whether a loop runs a coroutine to its end, or waits for the task that it makes of it."""
    function = running(interp)
    above = parents(function) if function is not None else {}
    user: Any = above.get(id(node))
    names = set[str]()
    while user is not None and not isinstance(user, (m.For, m.While, m.Comp)):
        if isinstance(user, m.Call) and called_name(user) in _RUNS_ONE:
            return True
        if isinstance(user, m.Assign):
            names |= {one.id for one in user.targets if isinstance(one, m.Name)}
        user = above.get(id(user))
    return any(
        isinstance(one, m.Wait) and isinstance(one.value, m.Name) and one.value.id in names
        for one in (nodes(user.body) if isinstance(user, (m.For, m.While)) else ())
    )
