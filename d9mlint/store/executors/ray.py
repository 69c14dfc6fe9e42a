"""Analysis runs on a Ray cluster: one that exists, or one that is started on this machine."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Sequence
from typing import Any

from d9mlint.base.errors import UsageError
from d9mlint.store.executors.cluster import (
    Cluster,
    Outcome,
    check_address,
    inside,
    missing_extra,
    one_line,
)
from d9mlint.store.executors.remote import Shared, run_part

RETRIES = 3
"""How often a part whose worker is lost is run again."""


class Ray(Cluster):
    """A Ray cluster."""

    name = "ray"

    def __init__(self, address: str, jobs: int) -> None:
        super().__init__(address, jobs)
        self._ray: Any = None

    def connect(self) -> int:
        """Connect to the cluster, or start one; how many tasks it runs at a time."""
        # Nothing is sent to the makers of Ray, and a cluster that this process starts is for it alone.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            import ray
        except ImportError as error:
            raise missing_extra(self.name, error) from None
        if self._ray is None:
            if self.address not in ("", "auto"):
                check_address(self)
            options: dict[str, Any] = (
                {} if self.address else {"num_cpus": self.jobs, "include_dashboard": False}
            )
            try:
                with inside(self.directory()):
                    ray.init(
                        address=self.address or "local",
                        log_to_driver=False,
                        logging_level=logging.CRITICAL,
                        **options,
                    )
            except (OSError, RuntimeError, ValueError) as error:
                if not self.address:
                    raise UsageError(
                        f"--executor ray: no cluster could be started on this machine ({one_line(error)})."
                    ) from None
                raise self.unreachable(one_line(error)) from None
            self._ray = ray
        cores = int(ray.cluster_resources().get("CPU", 0))
        if not cores:
            raise UsageError(f"--executor ray: the cluster at {self.address} has no CPUs.")
        return cores

    def compute(self, shared: Shared, parts: Sequence[bytes]) -> Outcome:
        """Run the parts."""
        ray = self._ray
        from ray.exceptions import RayError, RayTaskError

        outcome = Outcome({})
        refs: list[Any] = []
        try:
            data = ray.put(shared)
            task = ray.remote(run_part).options(max_retries=RETRIES, num_cpus=1)
            refs = [task.remote(data, part) for part in parts]
            for index, ref in enumerate(refs):
                try:
                    outcome.done[index] = ray.get(ref)
                except RayTaskError:
                    raise
                except RayError as error:
                    outcome = outcome._replace(lost=one_line(error))
        except (OSError, RayError) as error:
            if isinstance(error, RayTaskError):
                raise
            outcome = outcome._replace(lost=one_line(error))
        except BaseException:
            for ref in refs:
                with contextlib.suppress(Exception):
                    ray.cancel(ref, force=True)
            raise
        return outcome

    def close(self) -> None:
        """Leave the cluster; end it where it was started here."""
        ray, self._ray = self._ray, None
        if ray is not None:
            with contextlib.suppress(Exception):
                ray.shutdown()
        super().close()
