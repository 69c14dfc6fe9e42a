"""Generators of the program that have been made and not yet been asked for anything: they have drawn nothing so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.ir import nodes as m
from d9mlint.ir.liveness import may_be_shared
from d9mlint.ir.traversal import nodes, parents, variables

if TYPE_CHECKING:
    from d9mlint.interp.frames import Frame
    from d9mlint.interp.view import RunView


class Call(NamedTuple):
    """A call of a generator function: the file and the start of the function that calls, and where the call begins."""

    path: str
    function: str
    start: int


NO_CALL = Call("", "", 0)


def running_in(run: RunView) -> Call:
    """The call of the generator function that is running, or that runs what does; ``NO_CALL`` where none is."""
    caller: Frame | None = None
    for frame in run.stack():
        if frame.func is not None and frame.func.fn.is_generator and frame.call_site is not None:
            return Call(caller.file.path, caller.label, frame.call_site.start) if caller else NO_CALL
        caller = frame
    return NO_CALL


def is_waiting(run: RunView, call: Call, node: Any) -> bool:
    """Whether what a call of a generator function has given was only kept in a variable, which nothing has read up to this
    call."""
    stack = list(run.stack())
    for index, frame in enumerate(stack):
        if (frame.file.path, frame.label) != (call.path, call.function):
            continue
        place = stack[index + 1].call_site if index + 1 < len(stack) else node
        return place is not None and _is_kept(run, frame, call.start, place.start)
    return False


def _is_kept(run: RunView, frame: Frame, start: int, end: int) -> bool:
    function = frame.function
    kept = (one for one in nodes(function.body) if isinstance(one, m.Assign) and _starts(one.value, start))
    made = next(kept, None)
    target = made.targets[0] if made is not None and len(made.targets) == 1 else None
    if made is None or not isinstance(target, m.Name) or "." in target.id:
        return False
    above = parents(function)
    around: Any = made
    while (around := above.get(id(around))) is not None:
        if isinstance(around, (m.For, m.While, m.Try)):
            return False
    if may_be_shared(run.whole(frame.file), function, {target.id}):
        return False
    return made.end <= end and all(
        one is target or not made.end <= one.start < end for one in variables(function).get(target.id, ())
    )


def _starts(value: Any, start: int) -> bool:
    return isinstance(value, m.Call) and value.start == start
