"""The directory of the cache: the one place that knows where it is, what is in it, and what may be removed.

Everything is in a directory of its own, ``.d9mlint_cache``, that holds a marker (``CACHEDIR.TAG``) and is left
alone by git and by backups. A directory of that name that somebody else has filled is neither read nor written;
no other directory is ever marked, ignored or removed. File names are ``KIND-HEX.bin``.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

import msgspec

from d9mlint.base.files import TEMPORARY, read_regular, replace_file, seal, unseal

T = TypeVar("T")

NAME = ".d9mlint_cache"
KINDS = ("entries", "facts", "fixes", "run")
"""What the names of cached files begin with."""

MARKER = "CACHEDIR.TAG"
IGNORE = ".gitignore"
_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55\n"
_MARKED = {
    MARKER: _SIGNATURE + b"# This directory is a cache made by d9mlint. It may be deleted at any time.\n",
    IGNORE: b"*\n",
}
_FILE = re.compile(rf"(?:{'|'.join(KINDS)})-[0-9a-f]{{4,64}}\.bin")


def own_directory(cache_dir: str, root: str) -> str:
    """Where the cache is: inside of the directory that was asked for, else inside of the project's root.

    A directory that is itself called ``.d9mlint_cache`` is taken as it is.
    """
    base = (cache_dir or root).rstrip("/")
    return base if os.path.basename(base) == NAME else f"{base}/{NAME}"


class Cleared(NamedTuple):
    """How many files were removed, and the names of those that are not ours and stay."""

    removed: int
    left: tuple[str, ...]


class CacheDir:
    """The cache at ``path``, which need not exist. Nothing is made before the first ``write``."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._marked = False

    def problem(self) -> str:
        """Why this directory is not used as a cache; empty where it is, or can be made."""
        try:
            mode = os.lstat(self.path).st_mode
            if stat.S_ISLNK(mode):
                return "it is a link"
            if not stat.S_ISDIR(mode):
                return "it is not a directory"
            if self._is_marked():
                return ""
            foreign = sorted(name for name in os.listdir(self.path) if not _is_ours(name))
        except FileNotFoundError:
            return ""
        except (OSError, ValueError) as error:
            return getattr(error, "strerror", None) or str(error)
        return f"it holds files that d9mlint did not write ({foreign[0]})" if foreign else ""

    def read(self, name: str) -> bytes | None:
        """The content of a file of the cache; None where there is none."""
        return read_regular(self._file(name)) if self._is_marked() else None

    def write(self, name: str, pieces: Iterable[bytes | memoryview]) -> None:
        """Replace a file at once. Raises OSError."""
        self._prepare()
        replace_file(self._file(name), pieces)

    def read_sealed(self, name: str) -> memoryview | None:
        """The body of a file that ``write_sealed`` wrote; None for a missing, damaged or foreign one."""
        data = self.read(name)
        return None if data is None else unseal(name, data)

    def write_sealed(self, name: str, body: bytes) -> None:
        """Replace a file, with a digest of its name and its content. Raises OSError."""
        self.write(name, [seal(name, body)])

    def read_typed(self, name: str, type_: type[T]) -> T | None:
        """What ``write_typed`` has kept under a name; None for a missing, damaged or foreign file."""
        body = self.read_sealed(name)
        if body is None:
            return None
        try:
            return msgspec.msgpack.decode(body, type=type_)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None

    def write_typed(self, name: str, content: msgspec.Struct, most: int) -> None:
        """Keep a struct, and at most ``most`` files of its kind. A cache that cannot be written is no reason to
        fail."""
        try:
            self.write_sealed(name, msgspec.msgpack.encode(content))
        except (OSError, TypeError, ValueError):
            return
        for _, old in self.files(name.partition("-")[0])[:-most]:
            self.remove(old)

    def touch(self, name: str) -> None:
        """Note that a file was used."""
        with contextlib.suppress(OSError):
            os.utime(self._file(name))

    def files(self, kind: str) -> list[tuple[int, str]]:
        """The files of one kind as (time of the last use in ns, name), oldest first."""
        found = []
        with contextlib.suppress(OSError), os.scandir(self.path) as entries:
            for entry in entries:
                if _FILE.fullmatch(entry.name) and entry.name.startswith(f"{kind}-"):
                    with contextlib.suppress(OSError):
                        if entry.is_file(follow_symlinks=False):
                            found.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.name))
        return sorted(found)

    def remove(self, name: str) -> None:
        """Remove a file of the cache."""
        with contextlib.suppress(OSError):
            os.unlink(self._file(name))

    def clear(self) -> Cleared:
        """Remove what d9mlint has written, and the directory when nothing else is in it. Raises OSError."""
        removed = 0
        left: list[str] = []
        for entry in sorted(os.scandir(self.path), key=lambda e: e.name):
            if entry.name == MARKER or (entry.name == IGNORE and self._has(IGNORE)):
                continue
            if entry.is_file(follow_symlinks=False) and (
                _FILE.fullmatch(entry.name) or TEMPORARY.fullmatch(entry.name)
            ):
                os.unlink(entry.path)
                removed += 1
            else:
                left.append(entry.name)
        if not left:
            # The marker goes last: without it the directory would not be known as ours.
            for name in (IGNORE, MARKER):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.path, name))
            os.rmdir(self.path)
        return Cleared(removed, tuple(left))

    def _file(self, name: str) -> str:
        if not _FILE.fullmatch(name):
            raise ValueError(f"{name} is no name of a cached file")
        return os.path.join(self.path, name)

    def _is_marked(self) -> bool:
        self._marked = self._marked or (not os.path.islink(self.path) and self._has(MARKER))
        return self._marked

    def _has(self, name: str) -> bool:
        return read_regular(os.path.join(self.path, name)) == _MARKED[name]

    def _prepare(self) -> None:
        if self._is_marked():
            return
        problem = self.problem()
        if problem:
            raise OSError(f"{self.path}: {problem}")
        os.makedirs(self.path, exist_ok=True)
        # Ignored by git before anything else is in it; the marker says that all is in place.
        if not os.path.lexists(os.path.join(self.path, IGNORE)):
            replace_file(os.path.join(self.path, IGNORE), [_MARKED[IGNORE]])
        replace_file(os.path.join(self.path, MARKER), [_MARKED[MARKER]])


def _is_ours(name: str) -> bool:
    return name in _MARKED or bool(_FILE.fullmatch(name) or TEMPORARY.fullmatch(name))
