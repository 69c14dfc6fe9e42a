"""The parent's side of the child processes: jobs with a time limit, and no process left behind."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from types import TracebackType
from typing import Any, NamedTuple

from d9mlint.verify.server import kill_group, python

START = 300.0
"""Seconds that importing a framework, or starting a device for the first time, may take."""
KILL = 30.0
"""Seconds that a killed job may take to end: one that waits inside of a driver may never do."""
GONE = "the process that starts ops is gone"
TAIL = 1 << 16
"""Bytes of a log that are looked at: a failed assertion on a GPU prints a line for each thread."""


class CannotStart(Exception):
    """A framework cannot be imported here; the text says why."""


class End(NamedTuple):
    """How a job ended: the lines that it printed, and why it ended early (empty when it did not)."""

    lines: list[dict[str, Any]]
    trouble: str


class Server:
    """A process that has imported one framework and forks for each job. Use as a context manager."""

    def __init__(self, library: str, directory: str) -> None:
        self._library = library
        self._directory = directory
        self._answers = -1
        self._pending = b""
        self._job = 0
        self._count = 0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self) -> subprocess.Popen[bytes]:
        """Start the process. Raises CannotStart."""
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        if not hasattr(os, "fork"):
            raise CannotStart("running ops requires a system with fork(), such as Linux or macOS")
        own, theirs = os.pipe()
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        # The working directory is the linted project's: its random.py must not become the standard library's.
        code = (
            "import sys; sys.path[:1] = [p for p in sys.path[:1] if p]; sys.path.append(sys.argv.pop(1)); "
            "from d9mlint.verify.server import main; main()"
        )
        try:
            self._process = subprocess.Popen(
                python(code, package, self._library, str(theirs)),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs,),
                # Frameworks and compilers leave files in the temporary directory: let it be the session's.
                env={**os.environ, "TMPDIR": self._directory},
                # Ctrl-C in the terminal reaches the parent alone, which then ends the others.
                start_new_session=True,
            )
        finally:
            os.close(theirs)
        self._answers, self._pending = own, b""
        try:
            answer = self._answer(START) or {"failed": f"no answer within {START:g} s"}
        except EOFError:
            answer = {"failed": _how_it_ended(self._process.wait())}
        if "failed" in answer:
            self.close()
            said = answer["failed"]
            remedy = f"install it with: pip install {self._library}"
            raise CannotStart(f"{self._library} cannot be imported ({said}); {remedy}")
        return self._process

    def run(self, job: dict[str, Any], timeout: float) -> End:
        """Run a job in a process of its own for at most ``timeout`` seconds. Raises CannotStart."""
        process = self._start()
        self._count += 1
        out = os.path.join(self._directory, f"{self._library}-{self._count}.jsonl")
        log = os.path.join(self._directory, f"{self._library}-{self._count}.log")
        assert process.stdin is not None
        try:
            process.stdin.write(
                json.dumps({**job, "library": self._library, "out": out, "log": log}).encode() + b"\n"
            )
            process.stdin.flush()
            trouble = self._wait(timeout, log)
        except (OSError, EOFError):
            self.close()
            trouble = GONE
        return End(_lines(out), trouble)

    def _wait(self, timeout: float, log: str) -> str:
        """Wait for the end of the running job and say what went wrong, if anything did. Raises EOFError."""
        began = self._answer(START)
        if began is None:
            raise EOFError
        self._job = int(began["pid"])
        ended = self._answer(timeout)
        if ended is None:
            kill_group(self._job)
            if self._answer(KILL) is None:
                self.close()
            self._job = 0
            return f"no answer within {timeout:g} s"
        self._job = 0
        code = os.waitstatus_to_exitcode(int(ended["status"]))
        return f"{_how_it_ended(code)}{f': {_last_line(log)}' if code > 0 else ''}" if code else ""

    def _answer(self, timeout: float) -> dict[str, Any] | None:
        """The next message of the server; None when none comes in time. Raises EOFError when it is gone."""
        limit = time.monotonic() + timeout
        while b"\n" not in self._pending:
            left = limit - time.monotonic()
            if left <= 0 or not select.select([self._answers], [], [], left)[0]:
                return None
            chunk = os.read(self._answers, 1 << 16)
            if not chunk:
                raise EOFError
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def close(self) -> None:
        """End the running job and the server."""
        if self._job:
            kill_group(self._job)
            self._job = 0
        if self._process is not None:
            if self._process.stdin is not None:
                with contextlib.suppress(OSError):
                    self._process.stdin.close()
            kill_group(self._process.pid)
            self._process.wait()
            self._process = None
        if self._answers >= 0:
            os.close(self._answers)
            self._answers = -1


def _how_it_ended(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    return f"killed by {name}" + (" (the system may be out of memory)" if name == "SIGKILL" else "")


def _lines(path: str) -> list[dict[str, Any]]:
    """The whole lines that a job has written, up to one that was cut short, as on a full disk."""
    found = []
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            for line in stream.read().split("\n")[:-1]:
                found.append(json.loads(line))
    except (OSError, json.JSONDecodeError):
        pass
    return found


def _last_line(path: str) -> str:
    try:
        with open(path, "rb") as stream:
            stream.seek(max(0, os.path.getsize(path) - TAIL))
            text = stream.read().decode("utf-8", "replace")
    except OSError:
        text = ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
