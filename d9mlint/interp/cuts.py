"""What an analysis run did not follow."""

from __future__ import annotations

import msgspec


class Cut(msgspec.Struct, frozen=True, order=True):
    """Something that a run did not follow: why, and where."""

    reason: str
    path: str
    start: int
    end: int
