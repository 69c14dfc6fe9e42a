"""What is recorded beside operations: seeds, draws from Python's and NumPy's generators, batches, optimizer
steps, threads. Runs in traced processes.

Functions are wrapped where a program finds them: the wrappers call what they wrap and note where they were
called. Draws of Python and NumPy are notes: not every draw has an influence on the training, so they are not
compared by themselves; they explain a tensor that differs.
"""

from __future__ import annotations

import functools
import hashlib
import multiprocessing.connection
import multiprocessing.queues
import random
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from d9mlint.trace import journal
from d9mlint.trace.sites import Sites

GENERATORS = 8
"""NumPy generators, the newest, whose states are watched."""

_PYTHON_DRAWS = (
    "betavariate",
    "binomialvariate",
    "choice",
    "choices",
    "expovariate",
    "gammavariate",
    "gauss",
    "getrandbits",
    "lognormvariate",
    "normalvariate",
    "paretovariate",
    "randbytes",
    "randint",
    "random",
    "randrange",
    "sample",
    "shuffle",
    "triangular",
    "uniform",
    "vonmisesvariate",
    "weibullvariate",
)


def number(data: bytes) -> int:
    """A 64-bit number for bytes."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def python_state() -> int:
    """A digest of the state of Python's generator."""
    return number(repr(random.getstate()).encode())


def numpy_state(generator: Any = None) -> int:
    """A digest of the state of NumPy's global generator, or of one of its generators."""
    import numpy

    if generator is None:
        state = numpy.random.get_state(legacy=False)
        assert isinstance(state, dict)
        inner = state["state"]
        rest = (state.get("has_gauss"), state.get("gauss"), inner["pos"])
        return number(inner["key"].tobytes() + repr(rest).encode())
    with numpy.printoptions(threshold=sys.maxsize):
        return number(repr(generator.bit_generator.state).encode())


class Watch:
    """The wrappers and what they know. A recorder is added when its framework has been imported."""

    def __init__(self, sites: Sites) -> None:
        self.recorders: list[Any] = []
        self.applied: Callable[[Any], None] | None = None
        self._sites = sites
        # The draws that have been noted since the last operation: generator, thread, and whether at import.
        self._drawn: set[tuple[str, int, bool]] = set()
        self._early: list[tuple[str, int, str, int]] = []
        self._generators: deque[list[Any]] = deque(maxlen=GENERATORS)
        self._made = 0
        self._undo: list[tuple[Any, str, Any]] = []

    # Wrapping

    def replace(self, owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
        """Put a wrapper in the place of a function."""
        original = getattr(owner, name)
        functools.update_wrapper(wrapper, original)
        self._undo.append((owner, name, original))
        setattr(owner, name, wrapper)

    def python(self) -> None:
        """Watch Python's global generator."""
        for name in _PYTHON_DRAWS:
            if hasattr(random, name):
                self.replace(random, name, self._draw(getattr(random, name), "python", python_state))
        self.replace(random, "seed", self._seed(random.seed, "random.seed", python_state))
        self.replace(random, "setstate", self._seed(random.setstate, "random.setstate", python_state))

    def numpy(self, module: Any) -> None:
        """Watch NumPy's global generator, and generators that are made of fresh entropy."""
        owner = getattr(module.mtrand, "_rand", None)
        for name in module.__all__:
            function = getattr(module, name, None)
            if getattr(function, "__self__", None) is not owner or owner is None:
                continue
            if name in ("seed", "set_state"):
                wrapper = self._seed(function, f"numpy.random.{name}", numpy_state)
            elif name == "get_state":
                continue
            else:
                wrapper = self._draw(function, "numpy", numpy_state)
            self.replace(module, name, wrapper)
        made = module.default_rng

        def default_rng(*args: Any, **kwargs: Any) -> Any:
            generator = made(*args, **kwargs)
            self._generator_made(generator)
            return generator

        self.replace(module, "default_rng", default_rng)

    def _draw(self, function: Any, kind: str, state: Callable[[], int]) -> Callable[..., Any]:
        drawn, thread = self._drawn, threading.get_ident

        def draw(*args: Any, **kwargs: Any) -> Any:
            # Once in a thread between two operations is enough to explain what the next one reads.
            if (kind, thread(), False) not in drawn:
                of_import = self._sites.importing(2)
                key = (kind, thread(), of_import)
                if key not in drawn:
                    drawn.add(key)
                    what = journal.AT_IMPORT if of_import else f"{kind}.random draw"
                    self._note(f"{kind} generator", what, state())
            return function(*args, **kwargs)

        return draw

    def _seed(
        self, function: Any, name: str, state: Callable[[], int] | None, value: bool = True
    ) -> Callable[..., Any]:
        def seed(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            shown = ", ".join([*map(_short, args), *(f"{k}={_short(v)}" for k, v in kwargs.items())])
            self._note(f"seed {name}", shown, state() if state is not None else number(shown.encode()))
            return result

        return seed

    def _note(self, name: str, args: str, digest: int) -> None:
        self._add(name, self._sites.here(1), args, digest)

    def _add(self, name: str, path: int, args: str, digest: int) -> None:
        if not self.recorders or name.startswith("seed "):
            # A framework that is imported later has to know of it.
            self._early.append((name, path, args, digest))
        for recorder in self.recorders:
            if recorder.on:
                recorder.add(journal.NOTE, name, path=path, args=args, value=digest)

    def listed(self, name: str, path: int) -> None:
        """A directory has been listed."""
        self._add(name, path, "", 0)

    def _generator_made(self, generator: Any) -> None:
        path = self._sites.here(1)
        if path:
            self._made += 1
            name = f"numpy Generator {self._made}"
            state = numpy_state(generator)
            self._add(f"made {name}", path, "", state)
            self._generators.append([generator, state, name, path])

    def rearm(self) -> None:
        """After an operation: the next draw is noted again."""
        self._drawn.clear()

    def generators(self) -> None:
        """Note the generators that have moved since the last look."""
        for entry in self._generators:
            state = numpy_state(entry[0])
            if state != entry[1]:
                for recorder in self.recorders:
                    recorder.add(journal.NOTE, f"drew {entry[2]}", path=entry[3], value=entry[1])
                entry[1] = state

    def attach(self, recorder: Any) -> None:
        """Tell a recorder from now on, and what has been noted before."""
        recorder.rearm = self.rearm
        recorder.look = self.generators
        for name, path, args, digest in self._early:
            recorder.add(journal.NOTE, name, path=path, args=args, value=digest)
        self.recorders.append(recorder)

    # torch

    def torch(self, recorder: Any) -> None:
        """Watch torch, which has just been imported."""
        import torch

        self.attach(recorder)

        def state() -> int:
            return number(torch.default_generator.get_state().numpy().tobytes())

        recorder.numpy_generators = lambda: [entry[0] for entry in self._generators]
        seeds = [(torch.random, name) for name in ("manual_seed", "seed", "set_rng_state")]
        seeds += [(torch.cuda, name) for name in ("manual_seed", "manual_seed_all", "seed", "set_rng_state")]
        for owner, name in seeds:
            function = getattr(owner, name, None)
            if function is None:
                continue
            full = f"{owner.__name__.removesuffix('.random')}.{name}"
            wrapper = self._seed(function, full, state if owner is torch.random else None)
            if getattr(torch, name, None) is function:
                self.replace(torch, name, wrapper)
            self.replace(owner, name, wrapper)
        self._loaders(recorder)
        self._optimizers(recorder)
        self._threads(recorder)
        self._handing_over(recorder)
        self.graphs(recorder, torch.cuda.CUDAGraph)
        if recorder.level == "full":
            from d9mlint.trace import composite

            self.replace(torch, "ctc_loss", composite.ctc_loss(torch.ctc_loss))

    def tensorflow(self, recorder: Any) -> None:
        """Watch TensorFlow, which has just been imported."""
        import tensorflow

        self.attach(recorder)
        wrapper = self._seed(tensorflow.random.set_seed, "tensorflow.random.set_seed", None)
        self.replace(tensorflow.random, "set_seed", wrapper)

    def keras(self, module: Any) -> None:
        """Watch the optimizers of Keras. They may be imported before TensorFlow is."""
        owner = module.BaseOptimizer
        apply = owner.apply
        inside = threading.local()

        def applied(this: Any, *args: Any, **kwargs: Any) -> Any:
            # An optimizer that scales the loss calls another one.
            outer = not getattr(inside, "on", False)
            inside.on = True
            try:
                result = apply(this, *args, **kwargs)
            finally:
                if outer:
                    inside.on = False
            if outer and self.applied is not None:
                self.applied(this)
            return result

        self.replace(owner, "apply", applied)

    def inductor(self, module: Any) -> None:
        """Watch the functions that Inductor has compiled."""
        owner = getattr(module, "CompiledFxGraph", None)
        if owner is None:
            return
        call = owner.__call__

        def __call__(this: Any, inputs: Any) -> Any:
            # Compiled code empties the list of its inputs.
            given = list(inputs)
            outputs = call(this, inputs)
            for recorder in self.recorders:
                recorder.compiled(given, outputs, "compiled function")
            return outputs

        self.replace(owner, "__call__", __call__)

    def graphs(self, recorder: Any, owner: Any) -> None:
        """Watch CUDA graphs: those of the program, and those that torch.compile makes."""
        begin, end, replay = owner.capture_begin, owner.capture_end, owner.replay

        def capture_begin(this: Any, *args: Any, **kwargs: Any) -> Any:
            recorder.capturing += 1
            try:
                return begin(this, *args, **kwargs)
            except BaseException:
                recorder.capturing -= 1
                raise

        def capture_end(this: Any) -> Any:
            try:
                return end(this)
            finally:
                recorder.capturing -= 1

        def replayed(this: Any) -> Any:
            result = replay(this)
            recorder.graph_replayed()
            return result

        for name, wrapper in (
            ("capture_begin", capture_begin),
            ("capture_end", capture_end),
            ("replay", replayed),
        ):
            self.replace(owner, name, wrapper)

    def _loaders(self, recorder: Any) -> None:
        from d9mlint.trace import names

        iterator = names.loader_iterator()
        step = iterator.__next__

        def __next__(this: Any) -> Any:
            data = step(this)
            if recorder.on:
                self.generators()
                recorder.batch(data, "DataLoader batch")
            return data

        self.replace(iterator, "__next__", __next__)

    def _handing_over(self, recorder: Any) -> None:
        """Processes give each other values through queues and pipes."""
        owners: list[tuple[Any, str]] = [
            (multiprocessing.queues.Queue, "put"),
            (multiprocessing.queues.SimpleQueue, "put"),
            (multiprocessing.connection.Connection, "send"),
        ]
        for owner, name in owners:
            self.replace(owner, name, _after(recorder.hand_over, getattr(owner, name)))

    def _optimizers(self, recorder: Any) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        def after(optimizer: Any, args: Any, kwargs: Any) -> None:
            if recorder.on:
                recorder.optimizer_step(optimizer)

        register_optimizer_step_post_hook(after)

    def _threads(self, recorder: Any) -> None:
        """Threads do not inherit modes."""
        original_start = threading.Thread.start
        original_run = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

        def start(this: threading.Thread) -> None:
            this.__dict__["_d9mlint_key"] = recorder.thread_key()
            original_start(this)

        def _bootstrap_inner(this: threading.Thread) -> None:
            key = this.__dict__.pop("_d9mlint_key", None)
            if key is None or not recorder.on or recorder.level != "full":
                original_run(this)
                return
            recorder.thread_started(key)
            with recorder.mode_for_thread():
                original_run(this)

        self.replace(threading.Thread, "start", start)
        self.replace(threading.Thread, "_bootstrap_inner", _bootstrap_inner)


def _after(first: Callable[[], None], function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls another one before it does its work."""

    def call(*args: Any, **kwargs: Any) -> Any:
        first()
        return function(*args, **kwargs)

    return call


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
