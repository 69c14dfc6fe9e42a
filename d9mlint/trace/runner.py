"""Starts the traced program, passes signals on, and leaves no process behind. No framework is imported here."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import IO, NamedTuple

FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT")
ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)
)
POLL = 0.1
GRACE = 10.0
"""Seconds that a program has to end after it was asked to."""
_FROM_TERMINAL = 128
"""``si_code`` of a signal that the kernel sent, as for Ctrl-C: the terminal sends it to the program too."""


_NO_RANDOM_ADDRESSES = 0x0040000
"""``ADDR_NO_RANDOMIZE`` of Linux."""


class Interrupted(Exception):
    """A signal asked d9mlint to end; its number is the argument. The program has ended."""


class Ended(NamedTuple):
    """How a program ended: its exit code (minus the signal's number where a signal killed it), and whether it
    was stopped from here."""

    code: int
    stopped: bool = False


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    stdin: int | None = None,
    stdout: IO[bytes] | None = None,
    stderr: IO[bytes] | None = None,
    stop: Callable[[], bool] | None = None,
    left_alone: bool = False,
    bound: bool = False,
    same_addresses: bool = False,
) -> Ended:
    """Run a program to its end, or until ``stop`` says so. Processes that it leaves are ended, unless it ended
    well and they are to be ``left_alone``. ``bound``: end it where this process is killed (Linux).
    ``same_addresses``: objects get the same addresses in every such run, where the system allows that (Linux). Raises
    Interrupted, OSError."""
    signals = {getattr(signal, name) for name in FORWARDED if hasattr(signal, name)}
    adopts = _adopt_orphans()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signals | {signal.SIGCHLD})
    caught = 0
    try:
        before = set(_children())
        process = subprocess.Popen(
            command,
            env=dict(env),
            cwd=cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            preexec_fn=lambda: _in_child(mask, bound, same_addresses),
        )
        stopped = False
        next_look = time.monotonic() + POLL
        while process.poll() is None:
            info = _wait(signals | {signal.SIGCHLD}, POLL)
            if info is not None and info[0] != signal.SIGCHLD:
                caught = info[0]
                if info[1] != _FROM_TERMINAL:
                    process.send_signal(caught)
            now = time.monotonic()
            if stop is not None and not stopped and now >= next_look:
                next_look = now + POLL
                if stop():
                    stopped = True
                    process.kill()
        code = process.returncode
        if adopts and not (left_alone and code == 0 and not caught):
            _end_orphans(before)
    finally:
        if caught in ENDING:
            _ignore_more()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if caught in ENDING:
        raise Interrupted(int(caught))
    return Ended(code, stopped)


def _in_child(mask: set[signal.Signals] | set[int], bound: bool, same_addresses: bool) -> None:
    if bound and sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    if same_addresses and sys.platform.startswith("linux"):
        ctypes.CDLL(None).personality(_NO_RANDOM_ADDRESSES)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Have the signals that end a program raise Interrupted, between runs too: what was made is removed."""

    def end(number: int, frame: FrameType | None) -> None:
        _ignore_more()
        raise Interrupted(number)

    before = {number: signal.getsignal(number) for number in ENDING}
    handled = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in handled:
        signal.signal(number, end)
    _handled.extend(handled)
    try:
        yield
    finally:
        _handled.clear()
        for number in handled:
            signal.signal(number, before[number])


_handled: list[signal.Signals] = []


def _ignore_more() -> None:
    """One signal is enough: what follows must not stop what cleans up."""
    for number in _handled:
        signal.signal(number, signal.SIG_IGN)


def _wait(signals: set[signal.Signals], seconds: float) -> tuple[int, int] | None:
    """The next of some blocked signals and where it comes from."""
    if hasattr(signal, "sigtimedwait"):
        info = signal.sigtimedwait(signals, seconds)
        # Where this process was stopped (Ctrl-Z) until the time was over, Python returns what was in memory.
        return (info.si_signo, info.si_code) if info is not None and info.si_signo in signals else None
    time.sleep(seconds)
    pending = signal.sigpending() & signals
    for one in pending:
        number = signal.sigwait({one})
        # Which of them a terminal has sent cannot be seen here: those of the keyboard are taken for its own.
        return int(number), _FROM_TERMINAL if number in (signal.SIGINT, signal.SIGQUIT) else 0
    return None


def _adopt_orphans() -> bool:
    """Become the parent of processes whose own parent ends (Linux), so that they can be found."""
    if not sys.platform.startswith("linux"):
        return False
    with contextlib.suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0)
    return False


def _children() -> list[int]:
    """The processes whose parent this one is."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/children", encoding="ascii") as stream:
                found += map(int, stream.read().split())
    return found


def _end_orphans(before: set[int]) -> None:
    """End what the program has left: first with a request, then without."""
    limit = time.monotonic() + GRACE
    asked: set[int] = set()
    while True:
        left = [pid for pid in _children() if pid not in before]
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if pid not in asked:
                    os.kill(pid, signal.SIGTERM)
                    asked.add(pid)
                elif time.monotonic() > limit - GRACE + 1:
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > limit:
            return
        time.sleep(0.02)
