"""Compares a run with an earlier one while it goes on, so that it can be stopped. No framework is imported here."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from d9mlint.trace.compare import Difference, Unequal, first_difference, pair
from d9mlint.trace.journal import Journal

GROWTH_STEPS = 4
"""Optimizer steps for which the second run goes on after the first difference, for the picture."""
GROWTH_SECONDS = 60.0


class Watcher:
    """Compares the second run with the first while it runs."""

    def __init__(self, first: Sequence[Journal], directory: str, known: Difference | None = None) -> None:
        self._first = first
        self._known = known
        self._directory = directory
        self._second: dict[str, Journal] = {}
        self._found: Difference | None = None
        self._found_at = 0.0
        self._seen = 0

    def passed(self) -> bool:
        """Whether a difference, or the place of the known one, has been written by now."""
        known = self._known
        done = known is not None and any(
            j.header.get("key") == known.process and len(j.records) > known.position + 2000
            for j in self._second.values()
        )
        return self.diverged() or done

    def grown(self) -> bool:
        """Whether enough has been written after a difference to see how it grows."""
        if self._found is None and self.diverged():
            self._found_at = time.monotonic()
        if self._found is None:
            return False
        for one in self._second.values():
            one.update()
        waited = time.monotonic() - self._found_at
        return waited > GROWTH_SECONDS or any(
            j.steps >= self._found.step + GROWTH_STEPS for j in self._second.values()
        )

    def diverged(self) -> bool:
        """Whether a difference has been written by now."""
        names = [n for n in os.listdir(self._directory) if n.endswith(".journal")]
        for name in names:
            path = os.path.join(self._directory, name)
            self._second.setdefault(name, Journal(path)).update()
        second = list(self._second.values())
        count = sum(len(j.records) for j in second)
        if count == self._seen:
            return False
        self._seen = count
        try:
            pairs = pair(self._first, second)
        except Unequal:
            # Not every process has begun to write.
            return False
        self._found = first_difference(pairs, complete=False)
        return self._found is not None
