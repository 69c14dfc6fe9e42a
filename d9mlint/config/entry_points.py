"""The entry points that the configuration names."""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from d9mlint.config.projects import Part


class NamedEntry(NamedTuple):
    """A file that is an entry point, and the function that is called in it; empty for the module itself."""

    path: str
    function: str


def named_entries(parts: Sequence[Part], files: Iterable[str]) -> tuple[list[NamedEntry], list[str]]:
    """What ``entry-points`` of the projects name among the files, and a message for each that names nothing."""
    paths = sorted(files)
    found: dict[NamedEntry, None] = {}
    unknown: list[str] = []
    for part in parts:
        base = part.settings.base or part.directory
        for written in part.settings.entry_points:
            pattern, _, function = written.partition(":")
            whole = posixpath.normpath(posixpath.join(base, pattern))
            matches = [path for path in paths if path == whole or fnmatch.fnmatchcase(path, whole)]
            found.update(dict.fromkeys(NamedEntry(path, function) for path in matches))
            if not matches:
                place = part.settings.origins.get("entry-points", "entry-points")
                unknown.append(f"{place}: entry-points names {written}, which is no file of the project.")
    return list(found), unknown
