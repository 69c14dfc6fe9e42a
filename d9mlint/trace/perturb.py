"""What is changed on purpose in the second run: the order of directory listings and the clock; the hash seed is changed
through the environment. And what is fixed in runs that look for a cause: the clock, and the random bytes of the
operating system. Runs in traced processes; standard library only.

A program whose results depend on one of these differs between machines, file systems and days.
"""

from __future__ import annotations

import functools
import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from d9mlint.trace.sites import Sites

Noted = Callable[[str, int], None]


def _reader(sites: Sites) -> int:
    """The call path of who calls a replaced function; 0 while a module is being imported: what imports read is
    theirs."""
    return 0 if _importing() else sites.here(2)


def _importing() -> bool:
    frame = sys._getframe(3)
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
        path = _reader(sites)
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
        path = _reader(sites)
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


START = 1_900_000_000.0
"""What a clock that is fixed shows at first: later than the files of the program."""
TICK = 1e-6
"""Seconds by which it goes on when it is read, and with every sleep by that: loops that wait come to an end."""


def still_clock(sites: Sites, noted: Noted) -> None:
    """Let the clock show the same in every run, and note who reads it."""
    sleep = time.sleep
    state = [START]

    def reader(original: Callable[[], Any], scale: int) -> Callable[[], Any]:
        @functools.wraps(original)
        def read() -> Any:
            path = _reader(sites)
            if path:
                noted("clock", path)
            state[0] += TICK
            return int(state[0] * scale) if scale > 1 else state[0]

        return read

    def slept(seconds: float, /) -> None:
        sleep(seconds)
        state[0] += seconds

    for name, scale in (("time", 1), ("time_ns", 10**9), ("perf_counter", 1), ("perf_counter_ns", 10**9)):
        setattr(time, name, reader(getattr(time, name), scale))
    functools.update_wrapper(slept, sleep)
    time.sleep = slept  # type: ignore[assignment]


def entropy(sites: Sites, noted: Noted) -> None:
    """Let the operating system hand out the same random bytes in every run, and note who asks for them."""
    # Of another seed than any that a program would choose: nothing but this is made of it.
    source = random.Random("d9mlint trace")

    @functools.wraps(os.urandom)
    def urandom(size: int, /) -> bytes:
        path = _reader(sites)
        if path:
            noted("entropy", path)
        return source.randbytes(size)

    seed = random.Random.seed

    @functools.wraps(seed)
    def seeded(self: random.Random, a: Any = None, version: int = 2) -> None:
        seed(self, int.from_bytes(urandom(32), "little") if a is None else a, version)

    os.urandom = urandom
    # SystemRandom, and with it `secrets` and the seeds of NumPy, use the name that the module has imported.
    random._urandom = urandom  # type: ignore[attr-defined]
    random.Random.seed = seeded  # type: ignore[method-assign]
    # The function of the module was bound to the generator before.
    random.seed = random._inst.seed
    random.seed()
