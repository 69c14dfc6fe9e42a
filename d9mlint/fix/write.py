"""Writing a changed source file: whole or not at all, and only where nothing else is changed by it."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat

from d9mlint.base.files import is_below


class NotWritten(Exception):
    """A file that stays as it is; the text says why. ``failed`` where the system does not let it be written,
    and not where d9mlint leaves it alone."""

    def __init__(self, reason: str, failed: bool) -> None:
        super().__init__(reason)
        self.failed = failed


def check_writable(path: str, top: str) -> os.stat_result:
    """The status of the file that ``path`` leads to, which may be rewritten. Raises NotWritten.

    ``top`` is the directory outside of which nothing that is reached by a link is rewritten.
    """
    target = os.path.realpath(path)
    if not is_below(target, os.path.realpath(top)):
        raise NotWritten("it is a link to a file outside of the project", failed=False)
    try:
        status = os.stat(target)
    except OSError as error:
        raise NotWritten(_said(error), failed=True) from error
    if not stat.S_ISREG(status.st_mode):
        raise NotWritten("it is not a regular file", failed=False)
    if status.st_nlink > 1:
        raise NotWritten(f"it has {status.st_nlink} hard links", failed=False)
    # The superuser may write everything, and still respects a file that is marked as read-only.
    if not status.st_mode & 0o222 or not os.access(target, os.W_OK):
        raise NotWritten("it is read-only", failed=True)
    if not os.access(os.path.dirname(target), os.W_OK | os.X_OK):
        raise NotWritten("its directory is read-only", failed=True)
    return status


def write_source(path: str, data: bytes, expected: bytes, top: str) -> None:
    """Replace a file's content at once; its mode, its owner and its extended attributes stay. Links are followed.

    Raises NotWritten, with nothing changed, where ``check_writable`` does, where the file was changed since it was
    read, and where the new file cannot be written or be given to the old one's owner.
    """
    status = check_writable(path, top)
    target = os.path.realpath(path)
    temporary = ""
    try:
        with open(target, "rb") as stream:
            if stream.read() != expected:
                raise NotWritten("it was changed while it was being linted", failed=True)
        name = os.path.join(os.path.dirname(target), f".d9mlint-{os.urandom(8).hex()}.new")
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        temporary = name
        with open(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            made = os.fstat(handle)
            if (made.st_uid, made.st_gid) != (status.st_uid, status.st_gid) and hasattr(os, "fchown"):
                os.fchown(handle, status.st_uid, status.st_gid)
            os.fsync(handle)
        # After the owner, whose change takes special bits of the mode away.
        shutil.copystat(target, temporary)
        os.chmod(temporary, stat.S_IMODE(status.st_mode))
        os.utime(temporary)
        os.replace(temporary, target)
        temporary = ""
    except OSError as error:
        raise NotWritten(_said(error), failed=True) from error
    finally:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _said(error: OSError) -> str:
    return error.strerror or str(error)
