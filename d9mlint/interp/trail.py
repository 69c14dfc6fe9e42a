"""Whose code a run has read: every function that it ran, also where it took over what an earlier call or import did.

A trail lists what was run below a call, in order: functions by their numbers, trails of calls (which are shared where an
outcome is taken over), and the functions of imports and of files that were looked at as a whole.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from d9mlint.interp.numbering import Numbering, numbers

FunctionKey = tuple[str, int]
"""A function by the path of its file and its place among the functions of the file."""
Trail = list[Any]

FUNCTIONS: Numbering[FunctionKey] = Numbering()


class Functions:
    """A set of functions, by their numbers."""

    __slots__ = ("numbers",)

    def __init__(self, numbers: set[int]) -> None:
        self.numbers = numbers

    def __contains__(self, function: FunctionKey) -> bool:
        return FUNCTIONS.known(function) in self.numbers

    def __iter__(self) -> Iterator[FunctionKey]:
        return map(FUNCTIONS.elements.__getitem__, self.numbers)


_EVERY: dict[tuple[str, int], array[int]] = {}


def every_function(path: str, count: int) -> array[int]:
    """All functions of a file that has so many. The same object each time: whoever looks at a file as a whole does so
    again and again."""
    found = _EVERY.get((path, count))
    if found is None:
        found = _EVERY[path, count] = numbers(FUNCTIONS.number((path, index)) for index in range(count))
    return found


class Shared(Protocol):
    """An import that many runs take over as it is, with those that it took over itself."""

    @property
    def entered(self) -> array[int]: ...
    @property
    def inner(self) -> Sequence[Shared]: ...


def functions(trail: Trail, shared: list[Shared] | None = None) -> Functions:
    """All functions of a trail. Imports that are ``shared`` are added to that list, where one is given, and their functions
    are left out."""
    found: set[int] = set()
    seen = {id(trail)}
    stack: list[Any] = [trail]
    while stack:
        for part in stack.pop():
            if type(part) is int:
                found.add(part)
            elif id(part) not in seen:
                seen.add(id(part))
                if type(part) is list:
                    stack.append(part)
                elif type(part) is array:
                    found.update(part)
                elif shared is not None:
                    shared.append(part)
                else:
                    found.update(part.entered)
                    stack.append(part.inner)
    return Functions(found)
