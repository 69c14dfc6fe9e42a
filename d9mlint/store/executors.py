"""Where analysis runs happen: in this process, or in several.

An executor maps a task over its inputs. The task is a function of plain data, given what all tasks have in common;
results come back in the order of the inputs, whatever the order in which they were made.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Protocol, TypeVar

Input = TypeVar("Input")
Output = TypeVar("Output")

PARTS_PER_WORKER = 4
"""Work is handed out in so many parts for each worker, so that a slow part does not keep the others waiting."""


class Executor(Protocol):
    """Maps a task over inputs."""

    def map(self, task: Callable[[Input], Output], inputs: Sequence[Input]) -> list[Output]:
        """The task's result for each input, in order."""


class Serial:
    """Everything in this process."""

    def map(self, task: Callable[[Input], Output], inputs: Sequence[Input]) -> list[Output]:
        """The task's result for each input, in order."""
        return [task(one) for one in inputs]


class Processes:
    """Several processes, made by fork: they have what this process has, and send back results only.

    Where a process dies (memory), what it had not finished is done in this process.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def map(self, task: Callable[[Input], Output], inputs: Sequence[Input]) -> list[Output]:
        """The task's result for each input, in order."""
        size = max(1, len(inputs) // (self.jobs * PARTS_PER_WORKER))
        parts = [inputs[i : i + size] for i in range(0, len(inputs), size)]
        results: dict[int, list[Output]] = {}
        _Shared.task = task
        try:
            with ProcessPoolExecutor(self.jobs, multiprocessing.get_context("fork")) as pool:
                futures = [pool.submit(_run_part, part) for part in parts]
                for index, future in enumerate(futures):
                    try:
                        results[index] = future.result()
                    except BrokenProcessPool:
                        break
        except OSError:
            # No process can be started here: this one does the work.
            pass
        finally:
            _Shared.task = None
        for index, part in enumerate(parts):
            if index not in results:
                results[index] = [task(one) for one in part]
        return [result for index in range(len(parts)) for result in results[index]]


class _Shared:
    """What forked processes inherit: a task need not be sent."""

    task: Callable[[Any], Any] | None = None


def _run_part(part: Sequence[Any]) -> list[Any]:
    task = _Shared.task
    assert task is not None
    return [task(one) for one in part]


def executor_for(jobs: int) -> Executor:
    """Processes where there may be several and the system can fork, else this process alone."""
    if jobs > 1 and "fork" in multiprocessing.get_all_start_methods():
        return Processes(jobs)
    return Serial()
