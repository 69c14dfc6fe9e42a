"""Numbers for the strings of a journal. Standard library only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Interner:
    """Numbers for values, in the order of their first use; ``texts`` holds what they look like."""

    def __init__(self) -> None:
        self.texts: list[str] = [""]
        self._by_key: dict[Any, int] = {}
        self._by_text: dict[str, int] = {"": 0}

    def number(self, key: Any, text: Callable[[Any], str] = str) -> int:
        """The number of a hashable value."""
        found = self._by_key.get(key)
        if found is None:
            written = text(key)
            found = self._by_text.get(written)
            if found is None:
                found = self._by_text[written] = len(self.texts)
                self.texts.append(written)
            self._by_key[key] = found
        return found


class Tables:
    """The string tables of one journal. ``paths`` is the list of a recorder's sites, which grows by itself."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths
        self.streams, self.names, self.shapes, self.args = Interner(), Interner(), Interner(), Interner()

    def texts(self) -> dict[str, list[str]]:
        """The entries of every table as they are now, under its name in the journal."""
        return {
            "stream": self.streams.texts,
            "name": self.names.texts,
            "path": self.paths,
            "shape": self.shapes.texts,
            "args": self.args.texts,
        }
