"""The process that holds a Dask cluster of this machine. It ends when its standard input does."""

from __future__ import annotations

import sys


def main(jobs: int, directory: str) -> None:
    """Start a cluster with workers of one thread, print its address, and wait."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=jobs,
        threads_per_worker=1,
        processes=True,
        memory_limit=0,
        host="127.0.0.1",
        dashboard_address=None,
        local_directory=directory,
        silence_logs=50,
    ) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
