"""Names with ``*`` that stand for many APIs, such as ``diffusers.*Pipeline``.

A star at the end stands for functions and classes, also of modules below, not for the methods of those classes:
``imblearn.over_sampling.*`` is ``SMOTE``, not ``SMOTE.fit_resample``. Behind a class it stands for its methods.
``torch.[a-z]*`` stands for what is directly in a module and written in lower case: its functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Generic, TypeVar

T = TypeVar("T")
_BELOW = r"(?:(?![A-Z])[^.]+\.)*[^.]+"
"""A name below a module: nothing before its last part is a class."""
_FUNCTION = "[a-z]*"


def _regex(pattern: str) -> re.Pattern[str]:
    if "*" not in pattern:
        return re.compile(re.escape(pattern))
    if pattern.endswith(_FUNCTION):
        return re.compile(re.escape(pattern.removesuffix(_FUNCTION)) + r"[a-z0-9_]+")
    *before, last = (re.escape(part) for part in pattern.split("*"))
    text = ".*".join(before)
    if last:
        return re.compile(f"{text}.*{last}", re.DOTALL)
    head, _, name = pattern[:-1].rpartition(".")
    of_class = any(letter.isupper() for letter in head.rpartition(".")[2])
    if name[:1].isupper():
        tail = "[^.]*"
    else:
        tail = ".*" if name or of_class else _BELOW
    return re.compile(text + tail, re.DOTALL)


class Patterns(Generic[T]):
    """Values by patterns of dotted names; a ``*`` stands for any characters. The patterns are looked at by the first
    part of a name, so that most names are compared with none."""

    def __init__(self) -> None:
        self._by_library: dict[str, list[tuple[re.Pattern[str], tuple[re.Pattern[str], ...], T]]] = {}

    def add(self, pattern: str, value: T, others: Iterable[str] = ()) -> None:
        """A value for all names that a pattern matches, but not for those that one of ``others`` matches too."""
        library = pattern.partition(".")[0]
        entry = (_regex(pattern), tuple(_regex(one) for one in others), value)
        self._by_library.setdefault("" if "*" in library else library, []).append(entry)

    def of(self, name: str) -> tuple[T, ...]:
        """The values of all patterns that match a name, in the order in which they were added."""
        library = name.partition(".")[0]
        candidates = (*self._by_library.get(library, ()), *self._by_library.get("", ()))
        return tuple(
            value
            for regex, others, value in candidates
            if regex.fullmatch(name) and not any(one.fullmatch(name) for one in others)
        )
