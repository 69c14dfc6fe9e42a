"""What rules remember during one run.

Each run has its own notes, so that what one entry point does is never known to another. While an import is
recorded, the notes say which of them it read and whether it changed any: an import that changes notes is not
taken over by another run, and one that read notes only where they are the same. What an import reports is
reported again by the run that takes it over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

DEPENDS: Any = object()
"""The remembered value of a note that cannot be compared: it is never the same."""


class NoteLog:
    """What happened to the notes during an import."""

    __slots__ = ("quiet", "reads", "reports")

    def __init__(self) -> None:
        self.quiet = True
        # What was reported, as functions of the run that takes the import over, and of the module's
        # name and the length of the flow into it, which the flow of a place begins with.
        self.reports: list[Callable[[Interp, str, int], None]] = []
        self.reads: dict[Any, Any] = {}


class Notes(dict[Any, Any]):
    """The notes of a run."""

    def __init__(self, items: Any = ()) -> None:
        super().__init__(items)
        self._logs: list[NoteLog] = []

    @contextmanager
    def recorded(self) -> Iterator[NoteLog]:
        """What happens to the notes meanwhile."""
        log = NoteLog()
        self._logs.append(log)
        try:
            yield log
        finally:
            self._logs.pop()
            if self._logs:
                outer = self._logs[-1]
                outer.quiet = outer.quiet and log.quiet
                outer.reports += log.reports
                for key, value in log.reads.items():
                    outer.reads.setdefault(key, value)

    def changed(self) -> None:
        """Something that a run's outcome depends on was noted."""
        for log in self._logs:
            log.quiet = False

    def reported(self, again: Callable[[Interp, str, int], None]) -> None:
        """Something is reported; ``again`` reports it in another run."""
        if self._logs:
            self._logs[-1].reports.append(again)

    def agree(self, log: NoteLog) -> bool:
        """Whether the notes that an import read are the same here."""
        return all(value is not DEPENDS and self._plain(key) == value for key, value in log.reads.items())

    def take_over(self, log: NoteLog) -> None:
        """An import that read these notes was taken over."""
        if self._logs:
            for key, value in log.reads.items():
                self._logs[-1].reads.setdefault(key, value)

    def _plain(self, key: Any) -> Any:
        if not dict.__contains__(self, key):
            return (False, None)
        value = dict.__getitem__(self, key)
        return (True, value) if isinstance(value, (str, int, bool, type(None))) else DEPENDS

    def _read(self, key: Any) -> None:
        if self._logs:
            value = self._plain(key)
            self._logs[-1].reads.setdefault(key, value)
            if value is DEPENDS:
                # Whoever holds a list or a set may add to it.
                self.changed()

    def get(self, key: Any, default: Any = None) -> Any:
        self._read(key)
        return super().get(key, default)

    def __getitem__(self, key: Any) -> Any:
        self._read(key)
        return super().__getitem__(key)

    def __contains__(self, key: Any) -> bool:
        self._read(key)
        return super().__contains__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.changed()
        super().__setitem__(key, value)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        self._read(key)
        if not dict.__contains__(self, key):
            self.changed()
        return super().setdefault(key, default)

    def pop(self, key: Any, *default: Any) -> Any:
        self._read(key)
        if dict.__contains__(self, key):
            self.changed()
        return super().pop(key, *default)

    def __delitem__(self, key: Any) -> None:
        self.changed()
        super().__delitem__(key)
