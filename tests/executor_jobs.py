"""Jobs for the tests of executors: workers of a cluster import this module."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from d9mlint.base.errors import UsageError


class Doubling:
    """Doubles numbers. The first worker that comes to 3 is killed; with ``always``, every one."""

    opener = "executor_jobs:open_doubling"

    def __init__(self, mark: str, owner: int, always: bool) -> None:
        self.mark, self.owner, self.always = mark, owner, always

    def run(self, task: int) -> int:
        if task == 3 and os.getpid() != self.owner:
            mark = Path(self.mark)
            if self.always or not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return task * 2

    def packed(self) -> bytes:
        return f"{self.mark}\0{self.owner}\0{int(self.always)}".encode()


class Sleeping(Doubling):
    """Notes the process in the directory ``mark``, and sleeps for as many seconds as a number says."""

    def run(self, task: int) -> int:
        Path(self.mark, str(os.getpid())).touch()
        time.sleep(task)
        return task


class Noting(Doubling):
    """Notes the process in the directory ``mark``, and works for as many seconds as a number says."""

    def run(self, task: int) -> int:
        Path(self.mark, str(os.getpid())).touch()
        end = time.monotonic() + task
        while time.monotonic() < end:
            pass
        return task


class Waiting(Doubling):
    """The first task waits until the file ``mark`` is there, for two minutes at most; a result is 1 where it is."""

    def run(self, task: int) -> int:
        end = time.monotonic() + 120
        while task == 0 and not Path(self.mark).exists() and time.monotonic() < end:
            time.sleep(0.05)
        return int(Path(self.mark).exists())


def open_doubling(data: bytes) -> Doubling:
    mark, owner, always = data.decode().split("\0")
    return Doubling(mark, int(owner), always == "1")


class Unfit(Doubling):
    """A job that no worker can open."""

    opener = "executor_jobs:open_unfit"


def open_unfit(data: bytes) -> Doubling:
    raise UsageError("/data/project is missing there.")
