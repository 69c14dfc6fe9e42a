"""What holds while trees and facts are built, whoever asks for them."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

MOST_YOUNG = 400_000
"""New objects after which Python looks for garbage while a run goes on."""


@contextmanager
def collector_off() -> Iterator[None]:
    """No cyclic garbage collection: trees and facts have no cycles, and looking for them costs as much
    as a quarter of the parse and five times the reading of cached facts."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def collector_seldom() -> Iterator[None]:
    """Cyclic garbage collection, hardly ever: what a run makes lasts as long as it does, and is garbage when it has ended
    (see ``collect_young``). With the usual thresholds the collector takes a tenth of its time."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], MOST_YOUNG) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def collect_young() -> None:
    """Free what a run has made, as far as nothing remembers it. Python looks at most of that only when it has become a
    quarter of all that lives: of a program that would be its garbage many times over."""
    gc.collect(1)


@contextmanager
def frames(count: int) -> Iterator[None]:
    """Leave room for ``count`` frames below the caller, so that what is too deep does not depend on who
    calls."""
    depth = 0
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        depth += 1
        frame = frame.f_back
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + count)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


_SLOTS = 525_000
"""What one frame asks for, in slots of 8 bytes: a little more than half of 8 MB."""


def _run(run: Callable[[], T]) -> T:
    return run()


# Frames lie in blocks of 16 KB, which Python takes from the system and gives back whenever calls cross the border of
# two of them: a run that goes back and forth over such a border spends a tenth of its time there. A frame that needs
# more gets a block of the next power of two in bytes, and the frames behind it have the rest of that. Of what it asks
# for nothing is touched, so it takes no memory.
_run.__code__ = _run.__code__.replace(co_stacksize=_SLOTS)


def with_deep_stack(run: Callable[[], T]) -> T:
    """What a function gives that calls many others deep inside one another: all their frames lie in one block of memory."""
    return _run(run)
