"""Reading files that a project names: only regular ones, only so much of them, and only inside a boundary."""

from __future__ import annotations

import errno
import os
import stat

from d9mlint.base.files import is_below

LARGEST = 1_000_000
"""Bytes of the largest configuration file that is read; larger ones are data."""

_OTHER_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a directory",
}


class TooLarge(OSError):
    """The file has more bytes than are read."""


def is_inside(path: str, directory: str) -> bool:
    """Whether a path is a directory or inside of it once all links are resolved, compared by components."""
    return is_below(_resolved(path), _resolved(directory))


def _resolved(path: str) -> str:
    real = os.path.realpath(path)
    return real if os.sep == "/" else real.replace(os.sep, "/")


def read_limited(path: str, limit: int = LARGEST) -> bytes:
    """The content of a regular file of at most ``limit`` bytes.

    Raises OSError for any other file, TooLarge among them. A FIFO, a socket or a device is never opened, so
    that nobody waits for it, and a file that is replaced by one in between is not read either.
    """
    _must_be_regular(path, os.stat(path).st_mode)
    flags = (
        os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOCTTY", 0)
    )
    with open(os.open(path, flags), "rb") as stream:
        _must_be_regular(path, os.fstat(stream.fileno()).st_mode)
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise TooLarge(errno.EFBIG, "the file is too large", path)
    return data


def _must_be_regular(path: str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = _OTHER_KINDS.get(stat.S_IFMT(mode), "not a regular file")
        raise OSError(errno.EINVAL, f"it is {kind}", path)
