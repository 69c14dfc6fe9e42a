"""Where analysis runs happen: in this process, in several, or on a cluster.

``serial`` and ``processes`` are for one machine and need nothing else. ``dask`` and ``ray`` start a cluster on this
machine, or use the one at an address that follows the name: ``dask:tcp://10.0.0.1:8786``, ``ray:10.0.0.1:6379``.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
from typing import TYPE_CHECKING

from d9mlint.store.executors.processes import Processes
from d9mlint.store.executors.protocol import Executor, Job, Serial

if TYPE_CHECKING:
    from d9mlint.store.executors.cluster import Cluster

__all__ = ["Executor", "Job", "Processes", "Serial", "executor_for"]

_open: dict[tuple[int, str, int], Cluster] = {}
"""Clusters that are kept for the next run of this process (a round of fixes, an editor), and whose they are."""


def executor_for(jobs: int, executor: str = "") -> Executor:
    """The executor of a name as ``--executor`` takes it; by default processes where there may be several and the
    system can fork, else this process alone."""
    name, _, address = executor.partition(":")
    if name in ("dask", "ray"):
        return _cluster(name, address, jobs)
    if name != "serial" and jobs > 1 and "fork" in multiprocessing.get_all_start_methods():
        return Processes(jobs)
    return Serial()


def _cluster(name: str, address: str, jobs: int) -> Cluster:
    key = (os.getpid(), f"{name}:{address}", jobs)
    if key not in _open:
        if name == "dask":
            from d9mlint.store.executors.dask import Dask

            _open[key] = Dask(address, jobs)
        else:
            from d9mlint.store.executors.ray import Ray

            _open[key] = Ray(address, jobs)
    return _open[key]


@atexit.register
def close_clusters() -> None:
    """End the clusters that were started, and leave the others."""
    while _open:
        (owner, _, _), cluster = _open.popitem()
        if owner == os.getpid():
            cluster.close()
