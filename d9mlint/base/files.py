"""Files that d9mlint itself writes: whole or not at all, and recognizable when they are damaged."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Iterable

TEMPORARY = re.compile(r"\.d9mlint-[0-9a-f]{16}\.new")
"""Names of files that are being written; one is left behind only where the process was killed."""

_DIGEST = 16


def is_below(path: str, directory: str) -> bool:
    """Whether a path is a directory or inside of it; compares components, and resolves no links."""
    top = directory.rstrip("/")
    return path == (top or "/") or path.startswith(f"{top}/")


LARGEST_KEPT = 2 << 30
"""Bytes of the largest file that is read back: another one is damaged."""


def read_regular(path: str) -> bytes | None:
    """The content of a regular file that d9mlint has written; None where there is none, or a link, a FIFO, a device or more
    than fits into memory instead."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        handle = os.open(path, flags | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError):
        return None
    try:
        with open(handle, "rb") as stream:
            about = os.fstat(handle)
            return stream.read() if stat.S_ISREG(about.st_mode) and about.st_size <= LARGEST_KEPT else None
    except (OSError, MemoryError):
        return None


def replace_file(
    target: str,
    pieces: Iterable[bytes | memoryview],
    like: os.stat_result | None = None,
    *,
    sync: bool = False,
) -> None:
    """Write a file beside ``target`` and rename it into place: readers see the old content or the new one.

    ``like`` gives the mode, and where the system permits the owner, of the new file. Raises OSError, and leaves
    nothing behind then.
    """
    temporary = os.path.join(os.path.dirname(target), f".d9mlint-{os.urandom(8).hex()}.new")
    # O_EXCL follows no link that somebody has put in the way.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(temporary, flags, 0o666 if like is None else 0o600)
    try:
        with open(handle, "wb") as stream:
            stream.writelines(pieces)
            stream.flush()
            if like is not None:
                if hasattr(os, "fchown"):
                    with contextlib.suppress(OSError):
                        os.fchown(handle, like.st_uid, like.st_gid)
                os.chmod(temporary, stat.S_IMODE(like.st_mode))
            if sync:
                os.fsync(handle)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def write_output(path: str, data: bytes) -> None:
    """Write a file that the user named, such as a report or a baseline: all of it, or the old one stays.

    Links are followed. A device or a pipe (``/dev/stdout``) is written to and not replaced. Raises OSError.
    """
    target = os.path.realpath(path)
    try:
        there: os.stat_result | None = os.stat(target)
    except FileNotFoundError:
        there = None
        os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
    if there is not None and not stat.S_ISREG(there.st_mode):
        with open(target, "wb") as stream:
            stream.write(data)
        return
    replace_file(target, [data], there, sync=True)


def seal(kind: str, body: bytes) -> bytes:
    """A body behind a header that names its kind and holds its digest."""
    return _magic(kind) + _digest(kind, body) + body


def unseal(kind: str, data: bytes) -> memoryview | None:
    """The body of what ``seal`` made; None for anything else, and for anything that was changed since."""
    head = len(_magic(kind)) + _DIGEST
    body = memoryview(data)[head:]
    if data[: head - _DIGEST] != _magic(kind) or data[head - _DIGEST : head] != _digest(kind, body):
        return None
    return body


def _magic(kind: str) -> bytes:
    return f"d9mlint {kind} 1\n".encode()


def _digest(kind: str, body: bytes | memoryview) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST, person=kind.encode()[:16]).digest()
