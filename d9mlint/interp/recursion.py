"""Recursion: a function that calls itself is run once more within its own call, from what its later calls may be given.

What the first call is given may decide a test, such as whether an index is past the end of a list, that a later call
answers otherwise. Without a second run that branch would be passed over without a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from d9mlint.interp import memo
from d9mlint.interp import values as v


def again(name: tuple[str, int]) -> tuple[str, int]:
    """The key among the active calls of the second run of a function."""
    return (name[0], -1 - name[1])


MAX_INSIDE = 4
"""So many calls inside of one another are followed as they are that go into a container, element by element."""
_APART = 10_000_000


def inside(name: tuple[str, int], depth: int) -> tuple[str, int]:
    """The key among the active calls of the run of a function for an element of what the run before is given."""
    return (name[0], -1 - name[1] - depth * _APART)


def level_inside(
    name: tuple[str, int], args: v.Args, active: Mapping[tuple[str, int], v.Args]
) -> tuple[str, int] | None:
    """The key for the run of a call that is given an element of a container of which the innermost running call of the
    function is given all: such calls come to an end, as what is nested does. None for any other."""
    depth = 0
    while inside(name, depth + 1) in active:
        depth += 1
    if depth == MAX_INSIDE or again(name) in active:
        return None
    outer = active[inside(name, depth) if depth else name]
    before = outer.pos[1:]
    pairs = [
        *zip(args.pos, before, strict=False),
        *((value, outer.kw[key]) for key, value in args.kw.items() if key in outer.kw),
    ]
    return inside(name, depth + 1) if any(_is_inside(value, whole) for value, whole in pairs) else None


def _is_inside(value: v.Value, whole: v.Value) -> bool:
    if isinstance(whole, v.Items):
        held: Iterable[v.Value] = whole.elts
    elif isinstance(whole, v.Mapping) and whole.cls is None:
        held = whole.items.values()
    else:
        return False
    return not isinstance(value, v.Lit) and value is not v.UNKNOWN and any(value is one for one in held)


def other_arguments(receiver: v.Value | None, args: v.Args, outer: v.Args) -> v.Args | None:
    """The arguments of all calls that come after the first, whose receiver and arguments are ``outer``; None if the
    second call is given the same."""
    first, *before = outer.pos
    differs = receiver is not None and receiver is not first
    pos: list[v.Value] = []
    for index, value in enumerate(args.pos):
        known = before[index] if index < len(before) else None
        later = _later(value, known)
        differs = differs or later is not None
        pos.append(value if later is None else later)
    kw: dict[str, v.Value] = {}
    for name, value in args.kw.items():
        later = _later(value, outer.kw.get(name))
        differs = differs or later is not None
        kw[name] = value if later is None else later
    return v.Args(pos, kw, args.star, args.dstar) if differs else None


def closed(result: v.Value, since: int, later: bool) -> v.Value:
    """What a function gives that calls itself, where what its later calls give was left out. These are taken to give for the
    elements of the containers that it has made ``since`` what it gives where it makes none: a helper that moves the
    tensors in nested dictionaries to a device is such a function. Nothing is kept of containers that only one of the
    ``later`` calls makes."""
    several = v.alternatives(result)
    others = [one for one in several if not isinstance(one, (v.Items, v.Mapping))]
    if not others or len(others) == len(several) or any(one is v.UNKNOWN for one in others):
        return result
    element = v.join(others)
    filled = [_filled(one, element, since) for one in several]
    return v.join([one for one, old in zip(filled, several, strict=True) if one is old or not later])


def _filled(one: v.Value, element: v.Value, since: int) -> v.Value:
    """A container that was made ``since``, with an element in each place of which nothing is known."""
    if isinstance(one, v.Mapping) and one.birth >= since and one.cls is None and one.factory is None:
        if any(value is v.UNKNOWN for value in one.items.values()):
            held = {key: element if value is v.UNKNOWN else value for key, value in one.items.items()}
            mapping = v.Mapping(held, one.open, one.attributes)
            mapping.order = one.order
            return mapping
    elif isinstance(one, v.Items) and one.birth >= since and any(value is v.UNKNOWN for value in one.elts):
        items = v.Items(one.kind, [element if value is v.UNKNOWN else value for value in one.elts], one.open)
        items.order, items.maker = one.order, one.maker
        return items
    return one


def _later(value: v.Value, before: v.Value | None) -> v.Value | None:
    """What an argument may be in any later call; None if it is what it was."""
    if value is before:
        return None
    if isinstance(value, v.Lit):
        if isinstance(before, v.Lit) and memo.shape(value) == memo.shape(before):
            return None
        # A switch is what it says, as is `None`; numbers and texts go on changing.
        return value if value.value is None or isinstance(value.value, bool) else v.UNKNOWN
    if isinstance(value, v.Items):
        return v.join((value, v.Items(value.kind, [])))
    return None if before is not None and memo.shape(value) == memo.shape(before) else value
