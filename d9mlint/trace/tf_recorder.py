"""Records every operation of a TensorFlow program. Runs in traced processes: it needs TensorFlow.

Eager operations arrive one by one through TensorFlow's own callbacks. The call of a ``tf.function`` is one
operation: what it returns and the variables that it was given are digested; ``--level full`` finds the line in
further runs in which functions are executed eagerly.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from d9mlint.trace import journal, tf_names
from d9mlint.trace.digest_bytes import combine, digest_bytes
from d9mlint.trace.journal import BACKWARD, COMPILED, DRAWS
from d9mlint.trace.sites import Sites
from d9mlint.trace.tables import Tables
from d9mlint.trace.watch import Watch

GENERATOR = "TensorFlow generator"
PENDING = 4096
KNOWN = 1 << 18
"""Tensors whose origin is kept; an older one counts as new data."""
_FUNCTION = re.compile(r"^(?:__inference_|__forward_|__backward_)(.*?)_\d+(?:_\d+)*$")
_LEFT_OUT = frozenset(
    ("T", "Tidx", "Tshape", "dtype", "config_proto", "executor_type", "metadata", "name", "output_types",
     "output_shapes", "shared_name", "container", "f", "allowed_devices", "debug_name")
)  # fmt: skip
_NEXT = ("IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional", "OptionalGetValue")
"""Operations that hand out data of a tf.data pipeline."""
_SEED_INPUTS = {
    "ShuffleDatasetV2": 1,
    "ShuffleDatasetV3": 1,
    "ShuffleAndRepeatDatasetV2": 1,
    "RandomDatasetV2": 0,
}
"""Operations of tf.data whose seeds are inputs: the place of the first of the two among the scalars."""
_MEMORY = frozenset(("Empty", "EmptyTensorList", "VarHandleOp", "MutexV2"))


class Target(NamedTuple):
    """A record that a further run looks at."""

    ordinal: int
    name: str


class Recorder:
    """Everything that is recorded in this process. TensorFlow calls back in the thread that executes."""

    def __init__(self, path: str, header: dict[str, Any], level: str, sites: Sites, steps: int = 0) -> None:
        self.level, self.sites = level, sites
        self._steps = steps
        self._lock = threading.RLock()
        self._tables = Tables(sites.texts)
        self._writer = journal.Writer(path, header, self._tables)
        self._pending: list[tuple[int, ...]] = []
        self._eager = tf_names.eager_tensor()
        self._made: dict[int, int] = {}
        self._lines: dict[int, int] = {}
        self._reads: dict[tuple[str, int, int], list[int]] = {}
        self._training: set[str] = set()
        self._optimizers: list[weakref.ref[Any]] = []
        self._last_taken = 0
        self._step_due = False
        self._forward = 0
        self._backward = False
        self._count = 0
        self._busy = False
        self._process = os.getpid()
        self.step = 0
        self.on = True
        self.rearm: Callable[[], None] | None = None
        self.look: Callable[[], None] | None = None
        self.target: Target | None = None
        self.at_target: Callable[..., None] | None = None
        self._main = self._tables.streams.number("main")
        atexit.register(self.finish)

    # Records

    def add(
        self,
        kind: int,
        name: str,
        *,
        path: int | None = None,
        flags: int = 0,
        forward: int = 0,
        shape: int = 0,
        args: str = "",
        inputs: int = 0,
        value: int = 0,
    ) -> int:
        """Add a record and return its place."""
        with self._lock:
            if path is None:
                path = self.sites.here(2)
            ordinal = self._count
            if kind != journal.NOTE:
                self._count += 1
            self._pending.append(
                (
                    kind,
                    flags,
                    self._main,
                    self._tables.names.number(name),
                    path,
                    forward,
                    shape,
                    self._tables.args.number(args),
                    inputs & journal.MASK,
                    value & journal.MASK,
                )
            )
            if len(self._pending) >= PENDING:
                self.flush()
            return ordinal

    def flush(self) -> None:
        """Write what is known."""
        try:
            self._flush()
        except Exception as error:
            self.failed(error)

    def _flush(self) -> None:
        with self._lock:
            pending, self._pending = self._pending, []
            if os.getpid() != self._process or not (pending or self._writer.open):
                return
            self._writer.records(b"".join([journal.RECORD.pack(*record) for record in pending]))

    def finish(self, **how: Any) -> None:
        """The process ends on its own."""
        if os.getpid() != self._process or not self.on:
            return
        with self._lock:
            self.flush()
            self.on = False
            if self._writer.open:
                self._writer.json(b"E", {"steps": self.step, **how})
                self._writer.close()

    def leave(self, why: str) -> None:
        """End the program here."""
        self.finish(ended=why)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    def failed(self, error: Exception) -> None:
        """A mistake of the tracer must not become one of the program: stop, and say so in the journal."""
        self.on = False
        with contextlib.suppress(Exception), self._lock:
            self._writer.failed(error)

    # Operations

    def operation(
        self, name: Any, inputs: Any, attrs: Any, outputs: Any, op_name: Any = None, graph: Any = None
    ) -> None:
        """An operation was executed, or was added to a graph."""
        if not self.on or self._busy or os.getpid() != self._process:
            return
        self._busy = True
        try:
            kind = _kind(name)
            if graph is not None:
                self._in_graph(kind, attrs)
            else:
                self._executed(kind, tuple(inputs), attrs, list(outputs or ()))
        except Exception as error:
            self.failed(error)
        finally:
            self._busy = False
        if self._step_due:
            self._step_due = False
            self.stepped()

    def _taken(self) -> int:
        """How many steps the optimizers say that they have taken, in graphs too."""
        total = 0
        for reference in self._optimizers:
            optimizer = reference()
            variable = getattr(optimizer, "iterations", None)
            handle = getattr(getattr(variable, "value", variable), "handle", None)
            value = tf_names.variable_value(handle) if handle is not None else None
            total += int(value.numpy()) if value is not None else self._count
        return total

    def _in_graph(self, kind: str, attrs: Any) -> None:
        """What a graph draws without a seed differs whenever it runs."""
        values = _pairs(attrs)
        if "seed" in values and "seed2" in values and not (values["seed"] or values["seed2"]):
            self.add(journal.NOTE, journal.UNSEEDED, path=self.sites.here(3), args=kind)

    def _executed(self, kind: str, inputs: tuple[Any, ...], attrs: Any, outputs: list[Any]) -> None:
        function = _FUNCTION.match(kind)
        if self.level != "full" and not function and kind not in _NEXT:
            return
        path = self.sites.here(3)
        name = f"tf.function {function[1]}" if function else f"tf.{kind}"
        flags = COMPILED if function else 0
        if self._backward:
            flags |= BACKWARD
        values = _pairs(attrs)
        self._draws(kind, values, inputs, path)
        read = [self._read(tensor, n, name, path) for n, tensor in enumerate(inputs)]
        written = [t for t in outputs if _has_value(t)]
        variables = [t for t in inputs if _is_resource(t)] if function or _writes(kind) else []
        contents = [v for v in map(tf_names.variable_value, variables) if v is not None]
        if not self._backward:
            self._note_reads(kind, inputs, path)
        if kind in _MEMORY or not (written or contents):
            # A handle, or nothing that has content.
            return
        if "seed" in values and "seed2" in values:
            flags |= DRAWS
        digest = combine([_digest(t) for t in (*written, *contents)])
        shown = {k: v for k, v in values.items() if k not in _LEFT_OUT and not k.startswith("_")}
        if self.target is not None and self._count == self.target.ordinal and name == self.target.name:
            assert self.at_target is not None
            self.at_target(kind, inputs, attrs, outputs, contents)
        ordinal = self.add(
            journal.BATCH if kind in _NEXT else journal.OP,
            name,
            path=path,
            flags=flags,
            forward=self._forward,
            shape=self._tables.shapes.number(_shapes(written or contents)),
            args="" if function else ", ".join(f"{k}={_shown(v)}" for k, v in shown.items()),
            inputs=hash(tuple(read)),
            value=digest,
        )
        for tensor in outputs:
            self._remember(tensor, ordinal + 1, self._forward or path)
        if function and function[1] in self._training:
            # Evaluation may run in a function of the same name.
            taken = self._taken()
            self._step_due = taken != self._last_taken
            self._last_taken = taken
        if self.rearm is not None:
            self.rearm()

    def _draws(self, kind: str, values: dict[str, Any], inputs: tuple[Any, ...], path: int) -> None:
        """The seeds of a random operation: without one, its generator starts anywhere."""
        if "seed" in values and "seed2" in values:
            seeds = [values["seed"], values["seed2"]]
        elif kind in _SEED_INPUTS:
            scalars = [t for t in inputs if _has_value(t) and t.dtype.is_integer and not t.shape.rank]
            seeds = [int(t.numpy()) for t in scalars[_SEED_INPUTS[kind] :][:2]]
        elif kind == "NonDeterministicInts":
            seeds = [0]
        else:
            return
        state = digest_bytes(repr(seeds).encode() if any(seeds) else os.urandom(8))
        self.add(journal.RNG, GENERATOR, path=path, forward=self._forward, args=kind, value=state)

    def _read(self, tensor: Any, position: int, name: str, path: int) -> int:
        """Which record made what an operation reads; what no record made is digested now."""
        if not _has_value(tensor):
            return 0
        made = self._made.get(tensor._id)
        if made is None:
            if self.look is not None:
                self.look()
            made = 1 + self.add(
                journal.INPUT,
                f"{name} input {position}",
                path=path,
                forward=self._forward,
                shape=self._tables.shapes.number(_shapes([tensor])),
                value=_digest(tensor),
            )
            self._remember(tensor, made, path)
        return made

    def _remember(self, tensor: Any, made: int, path: int) -> None:
        if not isinstance(tensor, self._eager):
            return
        self._made[tensor._id] = made
        self._lines[tensor._id] = path
        if len(self._made) > KNOWN:
            for table in (self._made, self._lines):
                for old in list(table)[: KNOWN // 2]:
                    del table[old]

    def _note_reads(self, kind: str, inputs: tuple[Any, ...], path: int) -> None:
        """Where an operation reads its inputs: its gradient function may be given nothing else of it."""
        for position, tensor in enumerate(inputs):
            if isinstance(tensor, self._eager):
                self._reads.setdefault((kind, position, tensor._id), []).append(path)
        if len(self._reads) > KNOWN:
            for old in list(self._reads)[: KNOWN // 2]:
                del self._reads[old]

    def _line_of(self, kind: str, inputs: Any, outputs: Any) -> int:
        """The line of an operation whose gradient function is given these tensors; 0 where it is not known. TensorFlow
        keeps only those that the function needs."""
        for tensor in outputs or ():
            if isinstance(tensor, self._eager) and tensor._id in self._lines:
                return self._lines[tensor._id]
        for position, tensor in enumerate(inputs or ()):
            if isinstance(tensor, self._eager):
                lines = self._reads.get((kind, position, tensor._id))
                if lines:
                    # Backward in reverse order.
                    return lines.pop() if len(lines) > 1 else lines[0]
        return 0

    def gradient(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """The gradient function of an operation runs: its operations belong to the forward line."""
        before = self._forward, self._backward
        kind, inputs, outputs = arguments[0], arguments[3], arguments[4]
        self._forward, self._backward = self._line_of(_kind(kind), inputs, outputs), True
        try:
            return function(*arguments)
        finally:
            self._forward, self._backward = before

    # Steps

    def applied(self, optimizer: Any) -> None:
        """An optimizer applies gradients: now, or in the graph that is built."""
        import tensorflow

        if not self.on or os.getpid() != self._process:
            return
        if tensorflow.executing_eagerly():
            self.stepped(type(optimizer).__name__)
            return
        if not any(reference() is optimizer for reference in self._optimizers):
            self._optimizers.append(weakref.ref(optimizer))
        graph = tensorflow.compat.v1.get_default_graph()
        while graph is not None:
            self._training.add(str(getattr(graph, "name", "")))
            graph = getattr(graph, "outer_graph", None)

    def stepped(self, optimizer: str = "tf.function") -> None:
        """A training step is over."""
        if not self.on or os.getpid() != self._process:
            return
        self.step += 1
        self.add(journal.STEP, f"{optimizer}.step", args=str(self.step))
        self.flush()
        if self._steps and self.step >= self._steps:
            self.leave("steps")

    def compiled(self, inputs: Any, outputs: Any, kind: str) -> None:
        """Functions that torch has compiled are recorded by the recorder of torch."""


def begin(path: str, header: dict[str, Any], settings: dict[str, Any], sites: Sites, watch: Watch) -> None:
    """Record from now on."""
    import tensorflow

    recorder = Recorder(path, header, settings["level"], sites, int(settings.get("steps") or 0))
    target = settings.get("target")
    if target and target["process"] == header["key"]:
        from d9mlint.trace.tf_confirm import Confirmation

        recorder.target = Target(target["ordinal"], target["name"])
        recorder.at_target = Confirmation(settings["confirmation"], recorder.leave)
    watch.tensorflow(recorder)
    tf_names.add_op_callback(recorder.operation)
    tf_names.around_gradients(recorder.gradient)
    if settings.get("eager"):
        tensorflow.config.run_functions_eagerly(True)
    watch.applied = recorder.applied


def _kind(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


def _pairs(attrs: Any) -> dict[str, Any]:
    items = list(attrs or ())
    return {str(k): v for k, v in zip(items[::2], items[1::2], strict=False)}


def _shown(value: Any) -> str:
    return (value.decode("utf-8", "replace") if isinstance(value, bytes) else repr(value))[:100]


def _has_value(tensor: Any) -> bool:
    dtype = getattr(tensor, "dtype", None)
    return (
        dtype is not None
        and hasattr(tensor, "_id")
        and hasattr(tensor, "numpy")
        and dtype.name not in ("resource", "variant")
    )


def _is_resource(tensor: Any) -> bool:
    return getattr(getattr(tensor, "dtype", None), "name", "") == "resource"


def _writes(kind: str) -> bool:
    """Whether an operation writes to a variable."""
    return kind.startswith(("Assign", "Resource")) and kind not in ("ResourceGather", "ResourceGatherNd")


def _digest(tensor: Any) -> int:
    value = tensor.numpy()
    if isinstance(value, bytes):
        return digest_bytes(b"s" + value)
    array = numpy.asarray(value)
    if array.dtype == object:
        data = b"\0".join(v if isinstance(v, bytes) else str(v).encode() for v in array.ravel().tolist())
        return digest_bytes(b"o" + data)
    return digest_bytes(f"{array.dtype}{array.shape}".encode() + numpy.ascontiguousarray(array).tobytes())


def _shapes(tensors: list[Any]) -> str:
    return ", ".join(f"{t.dtype.name}{list(t.shape)}" for t in tensors[:8])
