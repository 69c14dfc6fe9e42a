"""The temporary directory of a session, and the signals that end one.

Everything that a session and its child processes write lies in one directory, which is removed however the session
ends. Only SIGKILL cannot be handled: what it leaves is removed by the next session.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from types import FrameType

from d9mlint.base.errors import UsageError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows, where verify does not run
    fcntl = None  # type: ignore[assignment]

PREFIX = "d9mlint-verify-"
LOCK = "lock"
FREE = 64 << 20
"""Bytes that must be free for logs and compiled kernels."""
NEW = 60.0
"""Seconds after which a directory without a lock is a leftover, and not one that is just being made."""
ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)
)
"""Signals that end a session: what was measured by then is kept."""


@contextlib.contextmanager
def workspace(prefix: str = PREFIX) -> Iterator[str]:
    """A directory for the time of a session. Raises UsageError where there is no place for it."""
    try:
        parent = tempfile.gettempdir()
        _remove_leftovers(parent, prefix)
        free = shutil.disk_usage(parent).free
        if free < FREE:
            raise UsageError(
                f"no space left in {parent} ({free >> 20} MiB free, {FREE >> 20} needed): set TMPDIR to another directory."
            )
        directory = tempfile.mkdtemp(prefix=prefix, dir=parent)
    except OSError as error:
        raise UsageError(
            f"no temporary directory can be created ({error.strerror or error}): set TMPDIR to a writable directory."
        ) from error
    try:
        with open(os.path.join(directory, LOCK), "w", encoding="utf-8") as lock:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield directory
    finally:
        _remove(directory)


def _remove_leftovers(parent: str, prefix: str) -> None:
    """Remove the directories of sessions that were killed: nothing holds their locks."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        for entry in os.scandir(parent):
            with contextlib.suppress(OSError):
                if entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False):
                    about = entry.stat(follow_symlinks=False)
                    if about.st_uid == os.getuid() and _is_left(entry.path, about.st_mtime):
                        _remove(entry.path)


def _is_left(directory: str, changed: float) -> bool:
    try:
        with open(os.path.join(directory, LOCK), "r+", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except BlockingIOError:
        return False
    except OSError:
        return time.time() - changed > NEW


def _remove(directory: str) -> None:
    # A compiler's worker that is being killed may still write while the directory is removed.
    for _ in range(20):
        _make_readable(directory)
        shutil.rmtree(directory, ignore_errors=True)
        if not os.path.exists(directory):
            return
        time.sleep(0.05)


def _make_readable(directory: str) -> None:
    """Overlay file systems leave directories that nobody may read."""
    for top, names, _ in os.walk(directory):
        for name in names:
            path = os.path.join(top, name)
            if not os.path.islink(path) and not os.access(path, os.R_OK | os.W_OK | os.X_OK):
                with contextlib.suppress(OSError):
                    os.chmod(path, 0o700)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Have every signal that ends a program end a session as Ctrl-C does, once: what follows while the session
    cleans up is ignored. A signal that is ignored already, as under nohup, stays ignored."""
    before = {number: signal.getsignal(number) for number in ENDING}
    handled = [number for number, handler in before.items() if handler is not signal.SIG_IGN]

    def end(number: int, frame: FrameType | None) -> None:
        for one in handled:
            signal.signal(one, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in handled:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, before[number])
