"""Analysis runs on a Dask cluster: one that exists, or one that is started on this machine."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from d9mlint.base.errors import UsageError
from d9mlint.store.executors.cluster import CONNECT, Cluster, Outcome, check_address, missing_extra, one_line
from d9mlint.store.executors.remote import Shared, run_part

NO_WORKERS = 30.0
"""Seconds that a cluster may be without workers."""
POLL = 2.0

_BOOT = "import sys; sys.path[:] = {path!r}; from d9mlint.store.executors.dask_host import main; main({jobs}, {directory!r})"


class Dask(Cluster):
    """A Dask cluster."""

    name = "dask"

    def __init__(self, address: str, jobs: int) -> None:
        super().__init__(address, jobs)
        self._client: Any = None
        self._host: subprocess.Popen[str] | None = None

    def connect(self) -> int:
        """Connect to the cluster, or start one; how many tasks it runs at a time."""
        try:
            import distributed
        except ImportError as error:
            raise missing_extra(self.name, error) from None
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        if self._client is not None and self._client.status != "running":
            self.close()
        if self._client is None:
            address = self.address or self._start()
            if self.address:
                check_address(self)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self._client = distributed.Client(address, timeout=CONNECT, set_as_default=False)
            except (OSError, ValueError, TypeError) as error:
                raise self.unreachable(one_line(error)) from None
        try:
            self._client.wait_for_workers(1, timeout=NO_WORKERS)
        except TimeoutError:
            raise UsageError(f"--executor dask: the cluster at {self.address} has no workers.") from None
        return max(1, len(self._client.ncores()))

    def _start(self) -> str:
        """Start a cluster on this machine, in another process that ends with this one; its address."""
        package = os.path.dirname(
            os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        )
        path = [*(entry for entry in sys.path if os.path.isabs(entry)), package]
        directory = self.directory()
        boot = _BOOT.format(path=path, jobs=self.jobs, directory=directory)
        self._host = subprocess.Popen(
            [sys.executable, "-I", "-c", boot],
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._host.stdout is not None
        address = self._host.stdout.readline().strip()
        if not address:
            self.close()
            raise UsageError("--executor dask: no cluster could be started on this machine.")
        return address

    def compute(self, shared: Shared, parts: Sequence[bytes]) -> Outcome:
        """Run the parts."""
        from distributed import wait

        client = self._client
        futures: list[Any] = []
        lost = ""
        try:
            (data,) = client.scatter([shared], broadcast=True, hash=False)
            futures = [client.submit(run_part, data, part, pure=False) for part in parts]
            alone = 0.0
            while alone < NO_WORKERS and client.status == "running":
                try:
                    with client.as_current():
                        wait(futures, timeout=POLL)
                    break
                except TimeoutError:
                    alone = 0.0 if client.ncores() else alone + POLL
        except BaseException as error:
            with contextlib.suppress(Exception):
                client.cancel(futures)
            if not _is_lost(error):
                raise
            lost = one_line(error)
        outcome = Outcome({}, lost)
        for index, future in enumerate(futures):
            if not future.done():
                outcome = outcome._replace(lost=lost or "it has no workers left")
                continue
            try:
                outcome.done[index] = future.result(timeout=CONNECT)
            except Exception as error:
                if not _is_lost(error):
                    raise
                outcome = outcome._replace(lost=one_line(error))
        with contextlib.suppress(Exception):
            client.cancel(futures)
        return outcome

    def close(self) -> None:
        """Leave the cluster; end it where it was started here."""
        client, host, self._client, self._host = self._client, self._host, None, None
        if client is not None:
            with contextlib.suppress(Exception):
                client.close(timeout=2)
        if host is not None:
            assert host.stdin is not None and host.stdout is not None
            with contextlib.suppress(OSError):
                host.stdin.close()
            try:
                host.wait(CONNECT)
            except subprocess.TimeoutExpired:
                host.kill()
                host.wait()
            host.stdout.close()
        super().close()


def _is_lost(error: BaseException) -> bool:
    """Whether an error is about the cluster and not about what was run on it."""
    from concurrent.futures import CancelledError

    from distributed.comm.core import CommClosedError
    from distributed.scheduler import KilledWorker

    # What a task raises carries the frames of the worker, but the types of the cluster's own errors are these.
    return isinstance(error, (KilledWorker, CancelledError, CommClosedError, TimeoutError, OSError))
