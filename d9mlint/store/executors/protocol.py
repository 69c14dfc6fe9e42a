"""What an executor is.

A job is what all tasks of a run have in common: the facts of the project and the rules. An executor runs tasks of
a job, here or in other processes, and returns their results in the order of the tasks, whatever the order in
which they were made. Tasks and results are plain data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

Task = TypeVar("Task", contravariant=True)
Output = TypeVar("Output", covariant=True)
T = TypeVar("T")
R = TypeVar("R")

Finished = Callable[[int, Sequence[R]], None]
"""Gets the place of the first of some tasks that follow each other, and their results, as soon as they are there.
Each task comes once before the end of the run, in any order."""

SHARE = 2
"""A part is this share of what would be left for each worker if all got the same."""

MOST = 16
"""So many tasks are in a part at most: what a run that is ended by hand has not yet sent back is lost."""


class Job(Protocol[Task, Output]):
    """What the tasks of a run have in common."""

    opener: str
    """The ``module:function`` that makes an equal job of what ``packed`` returns."""

    def run(self, task: Task) -> Output:
        """The result of a task."""

    def packed(self) -> bytes:
        """The job as bytes, for processes that do not inherit it."""


class Executor(Protocol):
    """Runs tasks."""

    few: int
    """So few tasks are not worth the start of other processes."""
    inherits: bool
    """Whether what this process has done before is there in the others, too."""

    def map(self, job: Job[T, R], tasks: Sequence[T], finished: Finished[R] | None = None) -> list[R]:
        """The result of each task, in order. Raises UsageError where the tasks cannot be run as asked."""

    def warnings(self) -> list[str]:
        """What went wrong since this was last asked, without harm to the results."""


class Serial:
    """Everything in this process."""

    few = 0
    inherits = True

    def map(self, job: Job[T, R], tasks: Sequence[T], finished: Finished[R] | None = None) -> list[R]:
        """The result of each task, in order."""
        results: list[R] = []
        for index, task in enumerate(tasks):
            results.append(job.run(task))
            if finished is not None:
                finished(index, results[index:])
        return results

    def warnings(self) -> list[str]:
        """None."""
        return []


def parts_of(tasks: Sequence[T], workers: int) -> list[Sequence[T]]:
    """The tasks in parts to hand out, large ones first. Neighbors stay together: they often import the same modules,
    which a process then analyzes once. Small parts at the end keep all workers busy until then."""
    parts: list[Sequence[T]] = []
    begin = 0
    while begin < len(tasks):
        size = min(MOST, max(1, (len(tasks) - begin) // (workers * SHARE)))
        parts.append(tasks[begin : begin + size])
        begin += size
    return parts


def place_of(parts: Sequence[Sequence[T]], index: int) -> int:
    """The place of the first task of a part among all tasks."""
    return sum(map(len, parts[:index]))


def in_order(
    job: Job[T, R],
    parts: Sequence[Sequence[T]],
    results: dict[int, list[R]],
    finished: Finished[R] | None = None,
) -> list[R]:
    """The results of all parts in order; a part that has none is run here, which ``finished`` gets."""
    for index, part in enumerate(parts):
        if index not in results:
            results[index] = [job.run(task) for task in part]
            if finished is not None:
                finished(place_of(parts, index), results[index])
    return [result for index in range(len(parts)) for result in results[index]]
