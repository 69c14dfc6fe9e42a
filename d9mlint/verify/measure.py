"""One job in a child process: the cases of a recipe, each run several times, written line by line as JSON.

What was measured before a crash is kept, because every line is written when it is known.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import statistics
import time
from collections.abc import Callable
from typing import Any, Protocol

from d9mlint.verify.compare import Array, Tally

CHANCE = 1e-4
"""A cause is named only where coincidence has a smaller probability than this."""
MAX_PAIRS = 24
"""Batches with and without a remedy, at most."""
MESSAGE = 400
"""Characters of an error's message that are kept."""
OTHER_OUTPUTS = "the recipe returned different outputs than in its first run"


class Program(Protocol):
    """A recipe with its inputs built. ``on_device``: False where the results of the last run all lay on another
    device than the inputs: a framework without a kernel for a GPU may run an op on the CPU without a word."""

    sizes: dict[str, tuple[int, ...]]
    dtypes: dict[str, str]
    addends: int | None
    on_device: bool

    def run(self) -> tuple[float, dict[str, Array]]:
        """Run once on copies of the inputs: seconds, and the bytes of every output and gradient by name."""


class Backend(Protocol):
    """A framework as the measurement sees it. ``fills_memory``: whether deterministic mode can fill
    uninitialised memory."""

    fills_memory: bool

    def describe(self) -> dict[str, Any]:
        """The fields of ``evidence.Machine``, and ``device``, the name of the device in jobs."""

    def program(self, recipe: dict[str, Any], dtype: str, scale: float, seed: int) -> Program:
        """Build the inputs of a recipe."""

    def restore(self, seed: int) -> None:
        """Seed every generator of the process."""

    def random_state(self) -> str | None:
        """Something that changes when a generator of the process is drawn from; None where it cannot be seen."""

    def use_deterministic_mode(self, fill: bool) -> None:
        """Switch deterministic mode on; ``fill``: with uninitialised memory filled, where that is a choice."""

    def refuses(self, error: BaseException) -> bool:
        """Whether an error says that deterministic mode has no way to run an op."""

    def limit_memory(self, extra: int) -> None:
        """Let this process take so many bytes more than it has, where that can be said."""

    def out_of_memory(self, error: BaseException) -> bool:
        """Whether an error is a want of memory."""

    def lost(self, error: BaseException) -> bool:
        """Whether the device cannot be used any more in this process."""


def backend(library: str, device: str) -> Backend:
    """The backend of a library on ``auto`` (a GPU where there is one), ``cpu``, ``cuda`` or ``cuda:N``.

    Imports the framework. Raises LookupError where there is no such device.
    """
    found: Backend
    if library == "torch":
        from d9mlint.verify.torch_backend import TorchBackend

        found = TorchBackend(device)
    else:
        from d9mlint.verify.tensorflow_backend import TensorFlowBackend

        found = TensorFlowBackend(device)
    return found


def work(job: dict[str, Any]) -> None:
    """Carry out a job and write its lines to ``job["out"]``."""
    with open(job["out"], "a", encoding="utf-8") as stream:

        def tell(line: dict[str, Any]) -> None:
            stream.write(json.dumps(line) + "\n")
            stream.flush()

        os.environ.update(job.get("environment", {}))
        if job["mode"] == "describe":
            try:
                tell({"machine": backend(job["library"], job["device"]).describe()})
            except LookupError as error:
                tell({"machine": {"unavailable": str(error.args[0])}})
            return
        if job["mode"] == "setting":
            tell(setting(job))
            return
        framework = backend(job["library"], job["device"])
        if "memory" in job:
            framework.limit_memory(job["memory"])
        for number, case in job["cases"]:
            tell({"case": number, "started": True})
            try:
                tell({"case": number, **_measure(framework, job, case)})
            except Exception as error:
                tell({"case": number, "error": explain(framework, error)})
                if framework.lost(error):
                    return


def setting(job: dict[str, Any]) -> dict[str, Any]:
    """Run the program of a setting once: digests, seconds, and the peak of memory in bytes."""
    import importlib
    import resource

    programs = importlib.import_module(f"d9mlint.verify.{job['library']}_settings")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    try:
        state, reference = programs.run(job["setting"], job["remedy"], job["device"])
    except programs.NotRun as error:
        return {"not_run": str(error)}
    except Exception as error:
        return {"not_run": f"{type(error).__name__}: {' '.join(str(error).split())[:MESSAGE]}"}
    seconds = time.perf_counter() - began
    device = programs.peak_memory(job["device"])
    # Ranks and resumed runs are processes of their own; kilobytes on Linux.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss - before
    return {
        "digest": hashlib.sha256(programs.digest(state)).hexdigest(),
        "reference": None if reference is None else hashlib.sha256(programs.digest(reference)).hexdigest(),
        "seconds": seconds,
        "memory": device if device is not None else max(peak, children, 0) * 1024,
    }


def explain(framework: Backend, error: Exception) -> dict[str, Any]:
    """An error as data: a name, one line of message, and what kind of trouble it is."""
    # What is no text, as in the name of a file, could not be written as evidence.
    text = str(error).encode("utf-8", "replace").decode()
    return {
        "type": type(error).__name__,
        "message": " ".join(line.strip() for line in text.splitlines() if line.strip())[:MESSAGE],
        "refused": framework.refuses(error),
        "memory": framework.out_of_memory(error) or isinstance(error, MemoryError),
    }


def _measure(framework: Backend, job: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    """Run one case in the job's mode, and what it takes to tell the cause of a difference."""
    deterministic = job["mode"] == "deterministic"
    if deterministic:
        framework.use_deterministic_mode(fill=False)
    framework.restore(job["seed"])
    program = framework.program(job["recipe"], case["dtype"], case["scale"], job["seed"])
    reference = Reference(job["reference"], case) if job.get("reference") else None
    state = framework.random_state()
    tallies, times = repeat(program, job["runs"], reference=reference)
    drawn = state is None or framework.random_state() != state
    found: dict[str, Any] = {
        "sizes": {name: list(shape) for name, shape in program.sizes.items()},
        "dtypes": dict(program.dtypes),
        "outputs": [tally.summary(name) for name, tally in tallies.items()],
        "seconds": statistics.median(times),
        "times": times,
        "on_device": program.on_device,
        "addends": program.addends,
    }
    if all(len(tally.digests) == 1 for tally in tallies.values()):
        return found
    runs, seed = job["runs"], job["seed"]
    # Two runs show a difference that every run shows.
    batch = 2 if any(len(tally.digests) == runs for tally in tallies.values()) else runs
    limit = time.monotonic() + job.get("cause_seconds", 20.0)

    def differs(before: Callable[[], None] | None = None) -> bool:
        again, _ = repeat(program, batch, before=before, warm_up=False)
        return any(len(tally.digests) > 1 for tally in again.values())

    if deterministic and framework.fills_memory:

        def filled(fill: bool) -> bool:
            framework.use_deterministic_mode(fill=fill)
            return differs()

        found["filled"] = alternate(lambda: filled(True), lambda: filled(False), limit)
        framework.use_deterministic_mode(fill=False)
    elif not deterministic and drawn:
        found["restored"] = alternate(lambda: differs(lambda: framework.restore(seed)), differs, limit)
    return found


def alternate(with_remedy: Callable[[], bool], without: Callable[[], bool], limit: float) -> str:
    """Whether a remedy removes a difference: ``yes``, ``no``, or ``undetermined``.

    Both callables run a batch and return whether its runs differ. A race that strikes now and then is equal by
    chance in some batches, so the two are alternated until the answer is chance with a probability below CHANCE
    (one-sided Fisher exact test), the remedy fails, or ``limit`` (of ``time.monotonic``) or MAX_PAIRS is reached.
    """
    differing = 0
    for pairs in range(1, MAX_PAIRS + 1):
        if with_remedy():
            return "no"
        differing += without()
        if math.comb(pairs, differing) / math.comb(2 * pairs, differing) < CHANCE:
            return "yes"
        if time.monotonic() > limit:
            break
    return "undetermined"


def repeat(
    program: Program,
    runs: int,
    *,
    before: Callable[[], None] | None = None,
    reference: Reference | None = None,
    warm_up: bool = True,
) -> tuple[dict[str, Tally], list[float]]:
    """Run a program ``runs`` times: a tally for each output, and the seconds of each run (without the first,
    which warms up, where there are more)."""
    tallies: dict[str, Tally] = {}
    times: list[float] = []
    for _ in range(runs):
        if before is not None:
            before()
        seconds, arrays = program.run()
        times.append(seconds)
        if not arrays:
            raise ValueError("the recipe returned no tensor")
        if not tallies:
            tallies = {name: Tally(array) for name, array in arrays.items()}
            if reference is not None:
                reference.compare(tallies)
            continue
        if arrays.keys() != tallies.keys():
            raise ValueError(OTHER_OUTPUTS)
        for name, array in arrays.items():
            tallies[name].add(array)
    return tallies, (times[1:] if warm_up else times) or times


class Reference:
    """The result of the first process of several, kept in a file for the others to measure their distance."""

    def __init__(self, path: str, case: dict[str, Any]) -> None:
        self._path = f"{path}.{case['dtype']}.{case['scale']}"

    def compare(self, tallies: dict[str, Tally]) -> None:
        """Keep the results where they are the first; else add the distance from the first to the tallies."""
        import pickle

        if not os.path.exists(self._path):
            part = f"{self._path}.part"
            with open(part, "wb") as stream:
                pickle.dump({name: tuple(tally.first) for name, tally in tallies.items()}, stream)
            os.replace(part, self._path)
            return
        with open(self._path, "rb") as stream:
            first = {name: Array(*fields) for name, fields in pickle.load(stream).items()}
        if first.keys() != tallies.keys():
            raise ValueError(OTHER_OUTPUTS)
        for name, tally in tallies.items():
            own, tally.first = tally.first, first[name]
            tally.add(own)
            tally.digests = {own.digest: None}
