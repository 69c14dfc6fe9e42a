"""What module bodies seeded and set: a process that the program spawns imports the modules again and so begins with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp.heap import ABSENT
from d9mlint.interp.state import MODE, RNG, Rng, Setting

if TYPE_CHECKING:
    from collections.abc import Iterable

IMPORTED = "imported rng"
"""The kind of what modules seeded that the program's script imports: a process that does not run the script again has only
that."""

Left = tuple[str, str, Any]
"""The kind and name of what a module body set, and what it stands for afterwards: ``ABSENT`` for nothing."""


class ProcessStart(NamedTuple):
    """The seeds and modes with which a spawned process begins, and the seeds without those of the program's script."""

    rng: dict[str, Rng]
    imported_rng: dict[str, Rng]
    modes: dict[str, Setting]

    @staticmethod
    def new() -> ProcessStart:
        """With nothing seeded or set."""
        return ProcessStart({}, {}, {})

    def copy(self) -> ProcessStart:
        """An independent copy."""
        return ProcessStart(dict(self.rng), dict(self.imported_rng), dict(self.modes))

    def redo(self, left: Iterable[Left]) -> None:
        """A module body has set these."""
        tables: dict[str, dict[str, Any]] = {RNG: self.rng, IMPORTED: self.imported_rng, MODE: self.modes}
        for kind, name, value in left:
            if value is ABSENT:
                tables[kind].pop(name, None)
            else:
                tables[kind][name] = value


__all__ = ["IMPORTED", "Left", "ProcessStart"]
