"""What is changed on purpose in the second run: the order of directory listings and the clock. Runs in traced
processes; standard library only. The hash seed is changed through the environment.

A program whose results depend on one of these differs between machines, file systems and days.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from d9mlint.trace.sites import Sites

Noted = Callable[[str, int], None]


def _importing() -> bool:
    """Whether a module is being imported: what imports list is theirs."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def listings(sites: Sites, noted: Noted, change: bool) -> None:
    """Note who lists directories; with ``change``, hand out the entries in another order."""
    listdir, scandir = os.listdir, os.scandir

    def reordered(entries: Iterable[Any], key: Callable[[Any], Any]) -> list[Any]:
        # Reversed and rotated: neither the sorted order nor that of the first run.
        found = sorted(entries, key=key, reverse=True)
        middle = len(found) // 3
        return found[middle:] + found[:middle]

    @functools.wraps(listdir)
    def changed_listdir(*args: Any, **kwargs: Any) -> Any:
        found = listdir(*args, **kwargs)
        path = 0 if _importing() else sites.here(1)
        if path:
            noted("os.listdir", path)
        return reordered(found, lambda name: name) if change and path else found

    class Scan:
        """What ``os.scandir`` returns: an iterator and a context manager."""

        def __init__(self, entries: Any) -> None:
            self._entries = entries
            self._iterator = iter(reordered(entries, lambda e: e.name))

        def __iter__(self) -> Iterator[Any]:
            return self

        def __next__(self) -> Any:
            return next(self._iterator)

        def __enter__(self) -> Scan:
            return self

        def __exit__(self, *error: Any) -> None:
            self.close()

        def close(self) -> None:
            self._entries.close()

    @functools.wraps(scandir)
    def changed_scandir(*args: Any, **kwargs: Any) -> Any:
        found = scandir(*args, **kwargs)
        path = 0 if _importing() else sites.here(1)
        if path:
            noted("os.scandir", path)
        return Scan(found) if change and path else found

    for changed, original in ((changed_listdir, listdir), (changed_scandir, scandir)):
        if original in os.supports_fd:
            os.supports_fd.add(changed)
    os.listdir, os.scandir = changed_listdir, changed_scandir


def clock(offset: int) -> None:
    """Let the clock of this process be ``offset`` seconds later."""
    now, now_ns = time.time, time.time_ns

    def later() -> float:
        return now() + offset

    def later_ns() -> int:
        return now_ns() + offset * 10**9

    time.time = functools.wraps(now)(later)
    time.time_ns = functools.wraps(now_ns)(later_ns)
