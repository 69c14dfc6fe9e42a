"""``--replay``: every operation is executed twice, and those whose results differ are listed. Runs in traced
processes. The program goes on with the first result, and its generators are as after the first execution.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from d9mlint.trace import names
from d9mlint.trace.confirm import Generator, copy_tensors, generators_of, of_numpy, put
from d9mlint.trace.digest import digest
from d9mlint.trace.recorder import Plan, Recorder, wait_for_copy, written_by
from d9mlint.trace.sites import without_columns

_LEFT_OUT = ("fsdp.", "symm_mem.", "profiler.", "streams.", "inductor.")
"""Libraries whose operations act on more than their arguments."""


class Site(NamedTuple):
    """An operation at a line."""

    name: str
    path: int
    forward: int


class Replay:
    """Executes operations twice and counts those that differ by line."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._differing: dict[Site, list[int]] = {}
        self._count = 0

    def __call__(
        self, plan: Plan, func: Any, args: Any, kwargs: Any, path: int, forward: int, step: int
    ) -> Any:
        """Execute an operation and return its first result."""
        writes = plan.scratch or any(written for _, _, written, _ in plan.tensors)
        if not (writes or plan.fresh) or plan.name.startswith(_LEFT_OUT):
            return func(*args, **kwargs)
        with names.no_torch_function():
            try:
                again_args, again_kwargs = copy_tensors((args, kwargs), {}) if writes else (args, kwargs)
            except RuntimeError:
                # No memory is left for copies: the program itself may need none.
                return func(*args, **kwargs)
            generators = self._generators(plan, args, kwargs)
            before = [generator.get() for generator in generators]
        result = func(*args, **kwargs)
        with names.no_torch_function():
            if plan.lags:
                wait_for_copy(plan, args, kwargs, result)
            first = written_by(plan, args, kwargs, result)
            after = [generator.get() for generator in generators]
            put(generators, before)
            try:
                again = func(*again_args, **again_kwargs)
                if plan.lags:
                    wait_for_copy(plan, again_args, again_kwargs, again)
                second = written_by(plan, again_args, again_kwargs, again)
                differs = any(digest(one) != digest(other) for one, other in zip(first, second, strict=True))
            except RuntimeError:
                return result
            finally:
                put(generators, after)
            self._count += 1
            if differs:
                site = Site(plan.name, path, forward)
                self._differing.setdefault(site, []).append(step + 1)
        return result

    def _generators(self, plan: Plan, args: Any, kwargs: Any) -> list[Generator]:
        """The generators that an operation may draw from."""
        if plan.known:
            return generators_of(plan, args, kwargs) if plan.draws else []
        return [*generators_of(plan, args, kwargs), *map(of_numpy, self._recorder.numpy_generators())]

    def summary(self) -> dict[str, Any]:
        """The operations that differed, with their call paths as text."""
        texts = self._recorder.sites.texts
        lines: dict[tuple[str, str, str], list[int]] = {}
        for site, steps in self._differing.items():
            key = (site.name, without_columns(texts[site.path]), without_columns(texts[site.forward]))
            lines.setdefault(key, []).extend(steps)
        return {
            "replayed": self._count,
            "flaky": [
                {
                    "name": name,
                    "path": path,
                    "forward": forward,
                    "count": len(steps),
                    "first_step": min(steps),
                }
                for (name, path, forward), steps in lines.items()
            ],
        }
