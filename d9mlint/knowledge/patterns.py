"""Names with ``*`` that stand for many APIs, such as ``diffusers.*Pipeline``."""

from __future__ import annotations

import re
from typing import Generic, TypeVar

T = TypeVar("T")


class Patterns(Generic[T]):
    """Values by patterns of dotted names; a ``*`` stands for any characters. They are looked at by the first
    part of a name, so that most names are compared with none."""

    def __init__(self) -> None:
        self._by_library: dict[str, list[tuple[re.Pattern[str], T]]] = {}

    def add(self, pattern: str, value: T) -> None:
        """A value for all names that a pattern matches."""
        library = pattern.partition(".")[0]
        regex = re.compile(".*".join(re.escape(part) for part in pattern.split("*")), re.DOTALL)
        self._by_library.setdefault("" if "*" in library else library, []).append((regex, value))

    def of(self, name: str) -> tuple[T, ...]:
        """The values of all patterns that match a name, in the order in which they were added."""
        library = name.partition(".")[0]
        candidates = (*self._by_library.get(library, ()), *self._by_library.get("", ()))
        return tuple(value for regex, value in candidates if regex.fullmatch(name))
