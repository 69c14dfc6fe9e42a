"""Which files git tracks. They are part of a project whatever ``.gitignore`` says: its patterns are about other files.

The index is read as a file, and git is not run: a repository can make git run other commands."""

from __future__ import annotations

import os
import struct
from bisect import bisect_left

from d9mlint.base.paths import read_limited

_LARGEST = 200_000_000
_ENTRY = 62
"""Bytes of an entry before its name: times, numbers, size, digest, flags."""
_EXTENDED = 0x4000


class Tracked:
    """The files of a repository that git tracks, read when they are first asked for. ``root`` is the directory that holds
    ``.git``. Where the index is missing or cannot be read, nothing is tracked."""

    def __init__(self, root: str) -> None:
        self._base = root.rstrip("/") + "/"
        self._names: list[str] | None = None

    def holds(self, path: str, is_directory: bool) -> bool:
        """Whether a file is tracked, or one that is somewhere in a directory."""
        if not path.startswith(self._base):
            return False
        if self._names is None:
            self._names = sorted(_read(self._base))
        name = path.removeprefix(self._base) + ("/" if is_directory else "")
        at = bisect_left(self._names, name)
        if at == len(self._names):
            return False
        return self._names[at].startswith(name) if is_directory else self._names[at] == name


def _read(base: str) -> list[str]:
    directory = f"{base}.git"
    try:
        if os.path.isfile(directory):
            # Of a work tree or a submodule: the file says where the rest is.
            text = read_limited(directory).decode("utf-8", "replace").strip()
            directory = os.path.join(base, text.removeprefix("gitdir:").strip())
        return _names(read_limited(os.path.join(directory, "index"), _LARGEST))
    except (OSError, ValueError, struct.error, IndexError):
        return []


def _names(data: bytes) -> list[str]:
    """The names in an index of version 2, 3 or 4. Raises ValueError for anything else."""
    signature, version, count = struct.unpack_from(">4sII", data)
    if signature != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("no index of git")
    found = []
    at, name = 12, b""
    for _ in range(count):
        (flags,) = struct.unpack_from(">H", data, at + _ENTRY - 2)
        start = at + _ENTRY + (2 if version > 2 and flags & _EXTENDED else 0)
        if version == 4:
            dropped, start = _number(data, start)
            end = data.index(b"\0", start)
            name = name[: len(name) - dropped] + data[start:end]
            at = end + 1
        else:
            end = data.index(b"\0", start)
            name = data[start:end]
            # Names end with one to eight zeros, up to the next multiple of eight.
            at += (end - at + 8) // 8 * 8
        found.append(os.fsdecode(name))
    return found


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and the place behind it."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = (value + 1 << 7) | (byte & 0x7F)
    return value, at + 1
