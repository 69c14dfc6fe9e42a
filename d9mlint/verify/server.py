"""A process that has imported a framework once and forks for each job.

Reads jobs as lines of JSON on standard input, forks, and answers with ``{"pid": n}`` and ``{"status": n}`` on a
pipe of its own (frameworks write to standard output). It never touches a device itself: a forked process
starts with no context on the GPU, so each job is a fresh process for the device. Where the import alone has
started CUDA, which no forked process survives, each job imports the framework anew. When the input ends, as it
does when the parent dies, the running job and this process end too.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
from typing import Any, NoReturn

POLL = 0.02
"""Seconds between two looks at a running job."""
_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve the library named on the command line, answering on the file descriptor named after it."""
    library, answers = sys.argv[1], int(sys.argv[2])
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # Whatever asks torch for a GPU while it is imported must not start CUDA, which no forked process survives.
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    try:
        __import__(library)
        # What the jobs will need is imported once, and not in each fork.
        __import__(f"d9mlint.verify.{library}_backend")
    except Exception as error:
        _tell(answers, {"failed": f"{type(error).__name__}: {error}"})
        return
    anew = cuda_started()
    _tell(answers, {"ready": True})
    pending = b""
    while True:
        chunk = os.read(0, 1 << 16)
        if not chunk:
            return
        pending += chunk
        while b"\n" in pending:
            line, _, pending = pending.partition(b"\n")
            job = json.loads(line)
            _serve(job, answers, anew or job.get("restart", False))


def _serve(job: dict[str, Any], answers: int, anew: bool) -> None:
    """Fork for a job and wait for its end."""
    server = os.getpid()
    child = os.fork()
    if child == 0:
        _child(job, answers, server, anew)
    # On both sides: the group is there when its number is printed, and before the job does anything.
    with contextlib.suppress(OSError):
        os.setpgid(child, child)
    _tell(answers, {"pid": child})
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        # Nothing is sent while a job runs: readable input is its end, and the parent is gone.
        if select.select([0], [], [], POLL)[0]:
            kill_group(child)
            os.waitpid(child, 0)
            os._exit(1)
    # What the job has started and left behind, such as a compiler's workers, goes with it.
    kill_group(child)
    _tell(answers, {"status": status})


def _child(job: dict[str, Any], answers: int, server: int, anew: bool) -> NoReturn:
    """The forked process: a group of its own, its output in a log, and never back into the server."""
    try:
        os.setpgid(0, 0)
        _die_with(server)
        os.close(answers)
        null = os.open(os.devnull, os.O_RDONLY)
        log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for source, target in ((null, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        import resource

        # A crash is a result: its core file, of gigabytes, would lie in the working directory.
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        if anew:
            os.execv(sys.executable, python(_ANEW, json.dumps(sys.path), json.dumps(job)))
    except BaseException:
        _leave_with_traceback()
    carry_out(job)


def python(code: str, *arguments: str) -> list[str]:
    """The command that runs code in a new process. The working directory, which may be the linted project's, is
    nowhere on the import path: from 3.13 on, Python imports a module before the first line of ``-c``."""
    safe = ["-P"] if sys.version_info >= (3, 11) else []
    return [sys.executable, *safe, "-c", code, *arguments]


_ANEW = (
    # The working directory, which may be the linted project's, goes before anything is imported.
    "import sys; sys.path[:1] = [p for p in sys.path[:1] if p]; "
    "import json; sys.path[:] = json.loads(sys.argv[1]); "
    "from d9mlint.verify.server import carry_out; carry_out(json.loads(sys.argv[2]))"
)


def carry_out(job: dict[str, Any]) -> NoReturn:
    """Do a job and end this process."""
    try:
        from d9mlint.verify.measure import work

        work(job)
    except BaseException:
        _leave_with_traceback()
    _leave(0)


def _leave_with_traceback() -> NoReturn:
    import traceback

    traceback.print_exc()
    _leave(1)


def _leave(code: int) -> NoReturn:
    """End without handlers of the framework at exit: they could wait for threads that a fork did not take along."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def cuda_started() -> bool:
    """Whether this process has started CUDA's driver interface, which itself is not started to find out."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    # It answers CUDA_ERROR_NOT_INITIALIZED before cuInit was called.
    return bool(cuda.cuDeviceGetCount(ctypes.byref(ctypes.c_int())) == 0)


def _die_with(server: int) -> None:
    """Have the kernel end this process when the server is killed (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != server:
            os._exit(1)


def kill_group(leader: int) -> None:
    """End a process and all that it has started in its group; nothing where they are gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _tell(answers: int, message: dict[str, Any]) -> None:
    os.write(answers, json.dumps(message).encode() + b"\n")
