"""The entry points that the configuration names."""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from d9mlint.config.projects import Part


class NamedEntry(NamedTuple):
    """A file that is an entry point, and the function that is called in it; empty for the module itself."""

    path: str
    function: str


class HasWords(Protocol):
    """The facts of a file, as far as its names go."""

    @property
    def words(self) -> Sequence[str]: ...


def named_entries(parts: Sequence[Part], files: Mapping[str, HasWords]) -> tuple[list[NamedEntry], list[str]]:
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
            matches = matches or _module(base, pattern, files)
            having = [path for path in matches if function.partition(".")[0] in ("", *files[path].words)]
            found.update(dict.fromkeys(NamedEntry(path, function) for path in having))
            if not having:
                place = part.settings.origins.get("entry-points", "entry-points")
                lack = f"and it has no {function}" if matches else "which is no file of the project"
                unknown.append(f"{place}: entry-points names {written}, {lack}.")
    return list(found), unknown


def _module(base: str, name: str, files: Mapping[str, HasWords]) -> list[str]:
    """The file of a module that is named as Python imports it: ``package.train``."""
    if "/" in name or name.endswith(".py"):
        return []
    parts = name.split(".")
    for root in (base, posixpath.join(base, "src")):
        for path in (posixpath.join(root, *parts) + ".py", posixpath.join(root, *parts, "__main__.py")):
            if path in files:
                return [path]
    return []
