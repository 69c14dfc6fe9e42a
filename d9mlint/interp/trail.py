"""Whose code a run has read: every function that it ran, also where it took over what an earlier call or import did.

A trail lists what was run below a call, in order: functions, trails of calls (which are shared where an outcome is
taken over), and the functions of imports.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from d9mlint.interp.numbering import Numbering

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
    number = FUNCTIONS.number
    while stack:
        for part in stack.pop():
            if type(part) is tuple:
                found.add(number(part))
            elif type(part) is array:
                found.update(part)
            elif id(part) not in seen:
                seen.add(id(part))
                if type(part) is list:
                    stack.append(part)
                elif shared is not None:
                    shared.append(part)
                else:
                    found.update(part.entered)
                    stack.append(part.inner)
    return Functions(found)
