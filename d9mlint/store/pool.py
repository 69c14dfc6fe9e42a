"""Processes that parse, and what happens when one of them dies.

Not ``concurrent.futures``: there one killed process breaks the whole pool and does not say which file it
was at, and importing it takes as long as parsing 700 lines.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence

from d9mlint.frontend.worker import READY, receive, send
from d9mlint.ir.codec import pack
from d9mlint.ir.failure import CRASHED, TOO_SLOW, failed

TIME_LIMIT = 60.0
"""Seconds that one file may take."""

ATTEMPTS = 2
"""A process may have been killed for a reason that is not its file's: each file has a second chance."""

_BOOT = "import sys; sys.path[:] = {path!r}; from d9mlint.frontend.worker import main; main()"


class NoProcesses(Exception):
    """This Python cannot start itself again (it is part of another program, say)."""


class Pool:
    """Parses texts in ``workers`` processes, each fed by a thread of its own."""

    def __init__(self, workers: int, time_limit: float = TIME_LIMIT) -> None:
        self._workers = workers
        self._limit = time_limit
        self._tasks: deque[tuple[str, str]] = deque()
        self._results: dict[str, tuple[bytes, bool]] = {}
        self._lock = threading.Lock()
        self._busy: dict[subprocess.Popen[bytes], float] = {}
        self._late: set[subprocess.Popen[bytes]] = set()
        self._errors: list[BaseException] = []
        self._stop = False

    def run(self, tasks: Sequence[tuple[str, str]]) -> dict[str, tuple[bytes, bool]]:
        """Packed facts by digest for (digest, text) pairs, in whose order the work begins; and whether
        the facts would come out the same again, which a crash might not."""
        self._tasks.extend(tasks)
        threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(self._workers)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.25)
                    self._kill_late()
        finally:
            self._stop = True
            with self._lock:
                for process in self._busy:
                    process.kill()
        if self._errors:
            raise self._errors[0]
        return self._results

    def _kill_late(self) -> None:
        now = time.monotonic()
        with self._lock:
            for process, since in self._busy.items():
                if now - since > self._limit:
                    self._late.add(process)
                    process.kill()

    def _serve(self) -> None:
        """Work off the tasks with one process, replaced when it dies."""
        process: subprocess.Popen[bytes] | None = None
        try:
            while not self._stop:
                try:
                    digest, text = self._tasks.popleft()
                except IndexError:
                    return
                for _ in range(ATTEMPTS):
                    process = process or _start()
                    answer = self._ask(process, digest, text)
                    if answer is not None:
                        self._results[digest] = (answer, True)
                        break
                    late = process in self._late
                    _end(process)
                    process = None
                    if late or self._stop:
                        break
                if answer is None:
                    reason = TOO_SLOW if late else CRASHED
                    self._results[digest] = (pack(text, failed(text, digest, reason)), False)
        except BaseException as error:
            self._errors.append(error)
            self._stop = True
        finally:
            if process is not None:
                _end(process)

    def _ask(self, process: subprocess.Popen[bytes], digest: str, text: str) -> bytes | None:
        """The packed facts of a text; None where the process died over it."""
        assert process.stdin is not None and process.stdout is not None
        with self._lock:
            self._busy[process] = time.monotonic()
        try:
            send(process.stdin, digest.encode(), text.encode("utf-8", "surrogatepass"))
            answer = receive(process.stdout, 1)
        except OSError:
            return None
        finally:
            with self._lock:
                del self._busy[process]
        return None if answer is None else answer[0]


def _start() -> subprocess.Popen[bytes]:
    """A process that is ready; raises NoProcesses where there is no way to have one."""
    path = [os.path.abspath(entry) for entry in sys.path]
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", _BOOT.format(path=path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, ValueError) as error:
        raise NoProcesses from error
    assert process.stdout is not None
    if receive(process.stdout, 1) != [READY]:
        _end(process)
        raise NoProcesses
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    process.wait()
