"""What an edit changed in a file: which functions, and where the code of the others stands now.

Code is compared by what it says, not by where it stands: a line more above a function leaves the function as it was.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from d9mlint.ir import nodes as m

SMALL_BODY = 3
"""Statements of a function that is so small that a call of it is followed where larger ones are not."""

_PLACES = frozenset({"start", "end", "end_of_body"})
_OF_BODY = frozenset({"packed", "statements", "imports"})


class Edited(NamedTuple):
    """An edit of a file. ``changed`` are the functions (0 for the module itself) that say something else now;
    ``starts`` and ``ends`` give, for each place where a node of the others started or ended, its place now."""

    changed: frozenset[int]
    starts: dict[int, int]
    ends: dict[int, int]


def edited(old: m.FileFacts, new: m.FileFacts) -> Edited | None:
    """What changed between two states of a file; None where functions or classes came or went, or say something
    else to those who do not run them."""
    if len(old.functions) != len(new.functions) or len(old.classes) != len(new.classes):
        return None
    if old.problem is not None or new.problem is not None:
        return None
    changed: set[int] = set()
    result = Edited(frozenset(), {}, {})
    for then, now in zip(old.functions, new.functions, strict=True):
        if _is_small(then) != _is_small(now) or not _same(then, now, result):
            return None
    for index, (then, now) in enumerate(zip(old.functions, new.functions, strict=True)):
        if not _same(then.body, now.body, result):
            changed.add(index)
    for before, after in zip(old.classes, new.classes, strict=True):
        # The body of a class runs where the class is defined.
        if not (_same(before, after, result) and _same(before.body, after.body, result)):
            changed.add(max(before.parent, 0))
    return result._replace(changed=frozenset(changed))


def _is_small(function: m.Function) -> bool:
    return len(function.body) <= SMALL_BODY


def _same(old: Any, new: Any, places: Edited) -> bool:
    """Whether two nodes, or lists of them, say the same; their places are added where they do."""
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    stack = [(old, new)]
    while stack:
        then, now = stack.pop()
        kind = type(then)
        if kind is not type(now):
            return False
        if kind is list:
            if len(then) != len(now):
                return False
            stack.extend(zip(then, now, strict=True))
        elif isinstance(then, msgspec.Struct):
            for name in then.__struct_fields__:
                if name == "start":
                    starts[then.start] = now.start  # type: ignore[attr-defined]
                elif name == "end":
                    ends[then.end] = now.end  # type: ignore[attr-defined]
                elif name in _PLACES or name in _OF_BODY:
                    continue
                else:
                    stack.append((getattr(then, name), getattr(now, name)))
            if kind is m.Attr:
                # A call in a chain is meant by the place of the method's name.
                last = len(then.name.rpartition(".")[2])  # type: ignore[attr-defined]
                starts[then.end - last] = now.end - last  # type: ignore[attr-defined]
        elif then != now or (kind is float and repr(then) != repr(now)):
            return False
    places.starts.update(starts)
    places.ends.update(ends)
    return True


class Lost(Exception):
    """The new place of something is not known."""


def moved_start(places: Edited, offset: int) -> int:
    """Where what started at an offset starts now. Raises Lost."""
    found = places.starts.get(offset, places.ends.get(offset))
    if found is None:
        raise Lost
    return found


def moved_end(places: Edited, offset: int) -> int:
    """Where what ended at an offset ends now. Raises Lost."""
    found = places.ends.get(offset, places.starts.get(offset))
    if found is None:
        raise Lost
    return found


def moved_point(places: Edited, offset: int) -> int:
    """Where a place between nodes is now; it moves with the node that ends there or starts there. Raises Lost where
    they have come apart."""
    found = {places.starts.get(offset), places.ends.get(offset)} - {None}
    if len(found) != 1:
        raise Lost
    (one,) = found
    assert one is not None
    return one
