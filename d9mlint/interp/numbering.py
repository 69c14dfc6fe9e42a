"""Elements by numbers: of thousands of remembered imports each holds thousands of functions and names, and they have most
in common. As a number an element takes four bytes, and as a bit of a number an eighth of one."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Numbering(Generic[T]):
    """Which number stands for which element."""

    __slots__ = ("_numbers", "elements")

    def __init__(self) -> None:
        self._numbers: dict[T, int] = {}
        self.elements: list[T] = []
        """All elements by their numbers."""

    def number(self, element: T) -> int:
        """The number that stands for an element."""
        number = self._numbers.get(element)
        if number is None:
            number = self._numbers[element] = len(self.elements)
            self.elements.append(element)
        return number

    def known(self, element: T) -> int:
        """The number that stands for an element, -1 where none does yet."""
        return self._numbers.get(element, -1)

    def bits(self, elements: Iterable[T]) -> int:
        """The number whose bits stand for a set of elements."""
        places = [self.number(one) for one in elements]
        held = bytearray(max(places, default=0) // 8 + 1)
        for place in places:
            held[place // 8] |= 1 << place % 8
        return int.from_bytes(held, "little")

    def holds(self, bits: int, element: T) -> bool:
        """Whether an element is in the set that the bits of a number stand for."""
        place = self._numbers.get(element)
        return place is not None and bool(bits >> place & 1)


def numbers(some: Iterable[int]) -> array[int]:
    """Numbers of elements, to be kept."""
    return array("I", some)
