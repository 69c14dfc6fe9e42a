"""What the executors on clusters have in common."""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import socket
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from d9mlint.base.errors import UsageError
from d9mlint.store.executors.protocol import Finished, Job, R, T, in_order, parts_of, place_of
from d9mlint.store.executors.remote import Done, Shared, share

CONNECT = 10.0
"""Seconds that a cluster has to answer."""


class Outcome(NamedTuple):
    """What became of the parts: what the workers that finished theirs returned, and why others did not."""

    done: dict[int, Done]
    lost: str = ""


class Cluster:
    """Runs tasks on the workers of a cluster. The job is sent once; parts of the tasks follow.

    What a lost worker had not finished is run by others or, where that fails, in this process, which is said.
    """

    few = 0
    inherits = False
    name = ""

    def __init__(self, address: str, jobs: int) -> None:
        self.address = address
        self.jobs = jobs
        self._warnings: list[str] = []
        self._directory = ""

    def map(self, job: Job[T, R], tasks: Sequence[T], finished: Finished[R] | None = None) -> list[R]:
        """The result of each task, in order. Raises UsageError where there is no cluster to run them on, or its
        workers are not fit for it."""
        parts = parts_of(tasks, self.connect())
        try:
            outcome = self.compute(share(job), [pickle.dumps(list(part)) for part in parts])
        except Exception as error:
            if not any("No module named 'd9mlint" in str(one) for one in (error, error.__cause__)):
                raise
            raise UsageError(f"--executor {self.name}: d9mlint is not installed on the workers.") from None
        for done in outcome.done.values():
            if done.problem:
                raise UsageError(f"{done.problem} All of its workers must have the same d9mlint and Python.")
        results: dict[int, list[R]] = {index: done.results for index, done in outcome.done.items()}
        if finished is not None:
            for index in results:
                finished(place_of(parts, index), results[index])
        missing = len(parts) - len(outcome.done)
        if missing:
            self._warnings.append(
                f"{missing} of {len(parts)} parts of the analysis were not finished on the {self.name} cluster "
                f"({outcome.lost}); they were run in the main process."
            )
        return in_order(job, parts, results, finished)

    def warnings(self) -> list[str]:
        """What went wrong since this was last asked."""
        said, self._warnings = self._warnings, []
        return said

    def connect(self) -> int:
        """Connect to the cluster, or start one where no address is given; how many tasks it runs at a time."""
        raise NotImplementedError

    def compute(self, shared: Shared, parts: Sequence[bytes]) -> Outcome:
        """Run the parts."""
        raise NotImplementedError

    def close(self) -> None:
        """Leave the cluster; end it where it was started here."""
        shutil.rmtree(self._directory, ignore_errors=True)

    def directory(self) -> str:
        """An empty directory for the processes of a cluster that is started here. Some look for modules in their
        working directory, and what is linted is not to be imported."""
        if not os.path.isdir(self._directory):
            self._directory = tempfile.mkdtemp(prefix="d9mlint-")
        return self._directory

    def unreachable(self, why: object = "") -> UsageError:
        """The error of a cluster that does not answer."""
        reason = f": {' '.join(str(why).split())[:200]}" if str(why) else ""
        return UsageError(f"--executor {self.name}: there is no cluster at {self.address}{reason}.")


def check_address(cluster: Cluster) -> None:
    """Raises UsageError where nothing listens at the address of a cluster. The clients of Dask and Ray would try for
    much longer, and say more than one line."""
    text = cluster.address
    parts = urlsplit(text if "://" in text else f"tcp://{text}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise cluster.unreachable(error) from None
    if not host or port is None:
        raise cluster.unreachable("a host and a port are expected, as in 10.0.0.1:8786")
    try:
        socket.create_connection((host, port), CONNECT).close()
    except OSError as error:
        raise cluster.unreachable(error.strerror or error) from None


def missing_extra(name: str, error: ImportError) -> UsageError:
    """The error of an executor whose library is not installed."""
    package = {"dask": "'dask[distributed]'"}.get(name, name)
    return UsageError(f"--executor {name} needs its library: pip install {package} ({error}).")


@contextlib.contextmanager
def inside(directory: str) -> Iterator[None]:
    """Work in another directory."""
    before = os.getcwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)


def one_line(error: Any) -> str:
    """An error in a line."""
    text = str(error).strip().split("\n")[0]
    return f"{type(error).__name__}: {text}"[:160] if text else type(error).__name__
