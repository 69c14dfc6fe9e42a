"""Processes that parse, and what happens when one of them dies.

Every text is parsed in another process, whatever its size: native code that recurses too deeply ends a
process without an exception, and no exception stops native code that runs without end.

Not ``concurrent.futures``: there one killed process breaks the whole pool and does not say which file it
was at, and importing it takes as long as parsing 700 lines.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from d9mlint.frontend.worker import CPU_LIMIT, READY, exceeded_limit, receive, send
from d9mlint.ir.codec import pack
from d9mlint.ir.failure import CRASHED, TOO_SLOW, failed

TIME_LIMIT = 600.0 if sys.platform != "win32" else 60.0
"""Seconds that one file may take by the clock. Where CPU time is limited, only a process that is stopped or
starved comes this far."""

ATTEMPTS = 2
"""A process may have been killed for a reason that is not its file's: each file has a second chance."""

_BOOT = "import sys; sys.path[:] = {path!r}; from d9mlint.frontend.worker import main; main()"

Process = subprocess.Popen[bytes]

_idle: list[tuple[int, Process]] = []
"""A process that is ready for the next run of this program (an editor, a test), and whose child it is."""


class Text(Protocol):
    """A text and the digest that names it. The text may be made when it is asked for."""

    @property
    def text(self) -> str: ...
    @property
    def digest(self) -> str: ...


class NoProcesses(Exception):
    """No process can be started: this Python is part of another program, or the system refuses."""


class Pool:
    """Parses texts in ``workers`` processes, each fed by its own thread."""

    def __init__(self, workers: int, time_limit: float = TIME_LIMIT) -> None:
        self._workers = workers
        self._limit = time_limit
        self._tasks: deque[Text] = deque()
        self._results: dict[str, tuple[bytes, bool]] = {}
        self._lock = threading.Lock()
        self._busy: dict[Process, float] = {}
        self._late: set[Process] = set()
        self._errors: list[BaseException] = []
        self._stop = False
        self.spent: dict[str, float] = {}
        """CPU seconds that each text took, by digest."""

    def run(
        self, tasks: Sequence[Text], progress: Callable[[int], None] | None = None
    ) -> dict[str, tuple[bytes, bool]]:
        """Packed facts by digest for texts, in whose order the work begins; and whether
        the facts would come out the same again, which a crash might not. ``progress`` gets the number of texts
        that are done, a few times a second and at the end.

        Texts for which no process could be started are missing in the result.
        """
        self._tasks.extend(tasks)
        threads: list[threading.Thread] = []
        for _ in range(self._workers):
            thread = threading.Thread(target=self._serve, daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system has no more threads
                break
            threads.append(thread)
        if not threads:
            self._serve()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.25)
                    self._kill_late()
                    if progress is not None:
                        progress(len(self._results))
            if progress is not None:
                # A thread may have ended before anybody looked.
                progress(len(self._results))
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
        process: Process | None = None
        try:
            while not self._stop:
                try:
                    task = self._tasks.popleft()
                except IndexError:
                    break
                digest, text = task.digest, task.text
                reason = CRASHED
                for _ in range(ATTEMPTS):
                    process = process or _start()
                    answer = self._ask(process, digest, text)
                    if answer is not None:
                        self._results[digest] = (answer, True)
                        break
                    late = process in self._late
                    status = _end(process, grace=1.0)
                    process = None
                    if exceeded_limit(status):
                        self.spent[digest] = CPU_LIMIT
                        reason = f"{TOO_SLOW} after {CPU_LIMIT:.0f} seconds of CPU time"
                        break
                    if late or self._stop:
                        reason = TOO_SLOW
                        break
                if answer is None:
                    self._results[digest] = (pack(text, failed(text, digest, reason)), False)
            if process is not None and not self._stop:
                _keep(process)
                process = None
        except NoProcesses:
            # Another thread may have a process; if none has, the text stays without a result.
            self._tasks.append(task)
        except BaseException as error:
            self._errors.append(error)
            self._stop = True
        finally:
            if process is not None:
                _end(process)

    def _ask(self, process: Process, digest: str, text: str) -> bytes | None:
        """The packed facts of a text; None where the process died over it."""
        assert process.stdin is not None and process.stdout is not None
        with self._lock:
            self._busy[process] = time.monotonic()
        try:
            send(process.stdin, digest.encode(), text.encode("utf-8", "surrogatepass"))
            answer = receive(process.stdout, 2)
        except OSError:
            return None
        finally:
            with self._lock:
                del self._busy[process]
        if answer is None:
            return None
        self.spent[digest] = float(answer[1])
        return answer[0]


def _start() -> Process:
    """A process that is ready; raises NoProcesses where there is no way to have one."""
    while _idle:
        with contextlib.suppress(IndexError):
            owner, process = _idle.pop()
            if owner == os.getpid() and process.poll() is None:
                return process
    return _new()


def _new() -> Process:
    # Not the working directory, where what is linted may be; and this package last, wherever it came from.
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    path = [*(entry for entry in sys.path if os.path.isabs(entry)), package]
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


def _keep(process: Process) -> None:
    """Keep one process for the next run; end any other."""
    if _idle:
        _end(process)
    else:
        _idle.append((os.getpid(), process))


@atexit.register
def end_idle() -> None:
    """End the process that waits for the next run."""
    while _idle:
        owner, process = _idle.pop()
        if owner == os.getpid():
            _end(process)


def _end(process: Process, grace: float = 0.0) -> int:
    """End a process, which has ``grace`` seconds to say how it died; its exit status."""
    if grace:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace)
    process.kill()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    return process.wait()
