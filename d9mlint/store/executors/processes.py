"""Analysis runs in several processes of this machine."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from typing import Any

from d9mlint.store.executors.protocol import Finished, Job, R, T, in_order, parts_of, place_of

WATCHED = 1.0
"""Seconds after which a worker looks again whether there is still somebody to work for."""


class Processes:
    """Several processes, made by fork: they have what this process has, and send back results only.

    Where a process dies (memory), what it had not finished is done in this process.
    """

    few = 4
    inherits = True

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._warnings: list[str] = []

    def map(self, job: Job[T, R], tasks: Sequence[T], finished: Finished[R] | None = None) -> list[R]:
        """The result of each task, in order."""
        parts = parts_of(tasks, self.jobs)
        results: dict[int, list[R]] = {}
        _Shared.job = job
        others = set(multiprocessing.active_children())
        try:
            fork = multiprocessing.get_context("fork")
            with ProcessPoolExecutor(self.jobs, fork, _follow, (os.getpid(),)) as pool, _ended(others):
                try:
                    # A worker may die while the last parts are handed out.
                    places = {pool.submit(_run_part, part): index for index, part in enumerate(parts)}
                    for future in as_completed(places):
                        index = places[future]
                        results[index] = future.result()
                        if finished is not None:
                            finished(place_of(parts, index), results[index])
                except BrokenProcessPool:
                    self._warnings.append(
                        "A worker process died; what it had not finished was analyzed in the main process."
                    )
        except OSError:
            # No process can be started here: this one does the work.
            pass
        finally:
            _Shared.job = None
        return in_order(job, parts, results, finished)

    def warnings(self) -> list[str]:
        """What went wrong since this was last asked."""
        said, self._warnings = self._warnings, []
        return said


@contextlib.contextmanager
def _ended(others: set[BaseProcess]) -> Iterator[None]:
    """End the processes of a pool, all children but ``others``, where a signal or an error ends the work: leaving
    the pool waits for what they do."""
    try:
        yield
    except BaseException:
        for process in set(multiprocessing.active_children()) - others:
            process.kill()
        raise


def _follow(parent: int) -> None:
    """Let this process end soon after its parent was killed, whatever it does."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCHED)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class _Shared:
    """What forked processes inherit: a job need not be sent."""

    job: Job[Any, Any] | None = None


def _run_part(part: Sequence[Any]) -> list[Any]:
    job = _Shared.job
    assert job is not None
    return [job.run(task) for task in part]
