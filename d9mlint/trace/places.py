"""The lines of a program that a difference is about. No framework is imported here."""

from __future__ import annotations

import linecache

from d9mlint.trace.compare import Difference, Frame


def places(difference: Difference) -> list[Frame]:
    side = difference.side
    cause = difference.cause.path if difference.cause is not None else ()
    return list(dict.fromkeys([*cause, *side.forward, *side.path]))


def source_lines(difference: Difference) -> dict[str, str]:
    """The lines of source that the report shows."""
    found = {}
    for frame in places(difference):
        text = linecache.getline(frame.filename, frame.row).rstrip()
        if text:
            found[f"{frame.filename}:{frame.row}"] = text
    return found
