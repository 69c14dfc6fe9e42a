"""Records every operation of a training program. Runs in traced processes: it needs torch.

The tracer reads; it never draws a random number, never writes to a tensor of the program and never leaves a
mode of torch switched on.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import multiprocessing.util
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from d9mlint.trace import journal, names, unmarked
from d9mlint.trace.hashing import Digester, Value
from d9mlint.trace.journal import BACKWARD, COLLECTIVE, DRAWS, UNINITIALIZED
from d9mlint.trace.sites import Sites
from d9mlint.trace.tables import Interner, Tables
from d9mlint.trace.weights import MASK

FULL = "full"
PENDING = 4096
"""Records that are kept before they are written."""
WORKER_PENDING = 64
"""The same in a worker, which may be ended at any time."""
SWEEP = 32
"""Storages that may have gone before their identities are given back, or an eighth of those that are known, where
that is more. Each pins a few bytes between the large blocks of the allocator, which cannot be joined around it:
hundreds of them raise the peak of the program's memory by several percent."""
FORWARD_SITES = 1 << 17
"""Forward operations whose lines are kept for the backward pass."""

_EMPTY = (
    "empty",
    "empty_like",
    "empty_strided",
    "empty_permuted",
    "empty_quantized",
    "new_empty",
    "new_empty_strided",
    "_empty_affine_quantized",
    "_empty_per_channel_affine_quantized",
)
_OVERWRITES = (
    "fill_",
    "zero_",
    "copy_",
    "uniform_",
    "normal_",
    "random_",
    "exponential_",
    "log_normal_",
    "cauchy_",
    "geometric_",
    "bernoulli_",
    "_foreach_copy_",
    "_foreach_zero_",
)
"""Operations that write all of their first argument and read nothing of it."""


class Plan(NamedTuple):
    """What the schema of an operation says: which arguments are tensors, which are written, what it returns."""

    name: str
    kind: str
    tensors: tuple[tuple[int, str, bool, bool], ...]
    """Position, name, whether it is written, whether it is read before."""
    others: tuple[tuple[int, str], ...]
    fresh: bool
    draws: bool
    collective: bool
    known: bool
    """Whether the schema says what is written: that of torch's own operations does."""
    opaque: frozenset[int] = frozenset()
    """Places of results that are no results, among all that is returned."""
    scratch: bool = False
    """Whether it writes memory that holds no result, such as that of a library between two passes."""
    lags: bool = False
    """Whether it may return before memory of the host is written: a copy from a device with ``non_blocking=True``."""


VIEW, EMPTY, LIFT, RESIZE, RUN = "view", "empty", "lift", "resize", "run"
_LAGS = "non_blocking"
SCALAR = "_local_scalar_dense"
"""The operation behind ``item()``."""


def plan_of(func: Any) -> Plan:
    """The plan of an operation."""
    schema = func._schema
    namespace, _, base = schema.name.partition("::")
    overload = schema.overload_name
    name = f"{namespace}.{base}" + (f".{overload}" if overload else "")
    tensors, others = [], []
    draws = torch.Tag.nondeterministic_seeded in func.tags
    written = scratch = False
    for position, argument in enumerate(schema.arguments):
        kind = str(argument.type)
        if "Tensor" in kind:
            alias = argument.alias_info
            writes = bool(alias is not None and alias.is_write)
            holds = unmarked.BY_ARGUMENT.get((base, argument.name)) if namespace == "aten" else None
            writes, scratch = writes or holds is True, scratch or holds is False
            written = written or writes
            reads = not (writes and (argument.is_out or (position == 0 and base in _OVERWRITES)))
            tensors.append((position, argument.name, writes, reads))
        elif "Generator" in kind:
            draws = True
        elif not kind.startswith("__torch__"):
            others.append((position, argument.name))
    returned = [r.alias_info for r in schema.returns if "Tensor" in str(r.type)]
    fresh = any(alias is None for alias in returned)
    kind = RUN
    if namespace == "c10d" or namespace.startswith("_c10d") or namespace == "symm_mem":
        return Plan(name, RUN, tuple(tensors), tuple(others), fresh, False, True, True)
    if base in ("lift_fresh", "lift") and namespace == "aten":
        kind = LIFT
    elif base in _EMPTY:
        kind = EMPTY
    elif base in ("resize_", "_resize_output_", "resize_as_"):
        kind = RESIZE
    elif base == "set_" or (not written and not fresh and base != SCALAR):
        # A view, or nothing that has content.
        kind = VIEW
    opaque = frozenset(
        place
        for place, returned in enumerate(schema.returns)
        if returned.name in unmarked.NAMES or (base, place) in unmarked.PLACES
    )
    known = namespace == "aten"
    lags = any(argument.name == _LAGS for argument in schema.arguments)
    return Plan(name, kind, tuple(tensors), tuple(others), fresh, draws, False, known, opaque, scratch, lags)


def wait_for_copy(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
    """Let a copy into memory of the host come to its end: the host reads that memory for a digest."""
    given = dict(plan.others)
    position = next((place for place, name in given.items() if name == _LAGS), len(args))
    if not (args[position] if position < len(args) else kwargs.get(_LAGS)):
        return
    found: list[torch.Tensor] = []
    flatten(result, found)
    read: list[torch.Tensor] = []
    for place, name, _, _ in plan.tensors:
        flatten(args[place] if place < len(args) else kwargs.get(name), read)
    if any(tensor.is_cpu for tensor in found):
        for device in dict.fromkeys(tensor.device for tensor in read if not tensor.is_cpu):
            names.synchronize(device)


class Stream:
    """What one thread does: its own order of operations and its own copies of small tensors."""

    __slots__ = ("boundary", "busy", "count", "digester", "last_sequence", "number", "ready")

    def __init__(self, number: int) -> None:
        self.number = number
        self.count = 0
        self.ready = False
        """Whether there is a digester: another thread may look before that."""
        self.digester: Digester
        self.last_sequence = names.sequence_number()
        self.busy = True
        self.boundary = False


Open = tuple[int, int, int, int, int, int, int, int, int, Any]


class Target(NamedTuple):
    """A record that a further run looks at: the n-th of a stream, and what it is."""

    stream: str
    ordinal: int
    name: str


class Recorder:
    """Everything that is recorded in this process."""

    def __init__(self, path: str, header: dict[str, Any], level: str, sites: Sites, steps: int = 0) -> None:
        self.level = level
        self.sites = sites
        sites.engine(names.RUNS_BACKWARD)
        self._steps = steps
        self._lock = threading.RLock()
        self._tables = Tables(sites.texts)
        self._writer = journal.Writer(path, header, self._tables)
        self._pending: list[Open] = []
        self._plans: dict[Any, Plan] = {}
        self._threads: dict[int, Stream] = {}
        self._thread_keys: dict[int, str] = {threading.get_ident(): "main"}
        self._thread_counts: dict[str, Iterator[int]] = {}
        self._made: dict[int, int] = {}
        self._weak: dict[int, int] = {}
        self._sweep_at = SWEEP
        self._raw: dict[int, int] = {}
        self._waiting: set[int] = set()
        self._forward: dict[int, int] = {}
        self.step = 0
        self.on = True
        self.capturing = 0
        """Captures of CUDA graphs that are in progress: operations are noted by CUDA and not executed, so they have no
        results, and to wait for the device is an error of the program."""
        self.stepped: list[Callable[[Any], None]] = []
        self.ending: list[Callable[[], dict[str, Any]]] = []
        self.replay: Callable[..., Any] | None = None
        self.target: Target | None = None
        self.at_target: Callable[..., Any] | None = None
        self.rearm: Callable[[], None] | None = None
        self.look: Callable[[], None] | None = None
        self.numpy_generators: Callable[[], list[Any]] = list
        self.mode = _Mode(self)
        self._process = os.getpid()
        self._worker = False
        os.register_at_fork(after_in_child=self._after_fork)
        self._forks = itertools.count()
        self._next_fork = 0
        os.register_at_fork(before=self._before_fork)
        atexit.register(self.finish)
        # Workers of multiprocessing leave without atexit; what is registered before their start is forgotten.
        multiprocessing.util.register_after_fork(self, Recorder._in_worker)

    # Threads and processes

    def stream(self) -> Stream:
        """The stream of the running thread."""
        identity = threading.get_ident()
        found = self._threads.get(identity)
        if found is None:
            key = self._thread_keys.get(identity)
            if key is None:
                # A thread of the autograd engine: the thread that called backward() waits for it.
                key = f"autograd {len(self._threads)}"
            found = self._threads[identity] = Stream(self._tables.streams.number(key))
            # Busy until here: making the buffers is no operation of the program.
            found.digester = Digester()
            found.ready = True
            found.busy = False
        return found

    def thread_started(self, key: str) -> None:
        """Name the running thread; its identity may be that of a thread that has ended."""
        identity = threading.get_ident()
        self._thread_keys[identity] = key
        if identity in self._threads:
            # Its digests are completed while they are known.
            self.flush()
            del self._threads[identity]

    def thread_key(self) -> str:
        """A name for a thread that the running thread starts: the same in every run."""
        parent = self._thread_keys.get(threading.get_ident(), "main")
        counter = self._thread_counts.setdefault(parent, itertools.count(1))
        return f"{parent}/{next(counter)}"

    def _before_fork(self) -> None:
        self._next_fork = next(self._forks)

    def _after_fork(self) -> None:
        """A forked process, such as a worker of a DataLoader, writes its own journal."""
        path, header = self._writer.path, self._writer.header
        # What exists now is what the parent had: equal where the parent's records are. Its threads are gone.
        self._tables.streams = Interner()
        self._writer = journal.Writer(
            path.removesuffix(".journal") + f".{self._next_fork}-{os.getpid()}.journal",
            {
                **header,
                "key": f"{header['key']}/fork {self._next_fork}",
                "worker": True,
                "pid": os.getpid(),
            },
            self._tables,
        )
        self._process = os.getpid()
        self._worker = True
        self._lock = threading.RLock()
        self._pending = []
        self._threads = {}
        self._thread_keys = {threading.get_ident(): "main"}
        self._thread_counts = {}
        self._forks = itertools.count()
        self._steps = 0
        self.target = None

    def _in_worker(self) -> None:
        multiprocessing.util.Finalize(None, self.finish, exitpriority=10)

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
        value: Value | int = 0,
        stream: Stream | None = None,
    ) -> int:
        """Add a record and return its place in its stream."""
        stream = stream or self.stream()
        if path is None:
            path = self.sites.here(2)
        ordinal = stream.count
        if kind != journal.NOTE:
            # Notes are not the same in every run.
            stream.count = ordinal + 1
        self._pending.append(
            (
                kind,
                flags,
                stream.number,
                self._tables.names.number(name),
                path,
                forward,
                shape,
                self._tables.args.number(args),
                inputs,
                value,
            )
        )
        return ordinal

    def flush(self) -> None:
        """Write what is known."""
        try:
            self._flush()
        except Exception as error:
            self.failed(error)

    def _flush(self) -> None:
        if self.capturing:
            return
        with self._lock:
            own = self._threads.get(threading.get_ident())
            busy = own is not None and own.busy
            if own is not None:
                # The tracer's own arithmetic passes through the mode.
                own.busy = True
            try:
                for stream in list(self._threads.values()):
                    if stream.ready:
                        stream.digester.flush()
            finally:
                if own is not None:
                    own.busy = busy
            packed = []
            for record in self._pending:
                value = record[9]
                digest = value.result if isinstance(value, Value) else value & MASK
                if digest is None:
                    # Another thread has added it in the meantime.
                    break
                packed.append(journal.RECORD.pack(*record[:9], digest))
            # Not a new list: another thread may be adding to this one.
            del self._pending[: len(packed)]
            if packed or self._writer.open:
                self._writer.records(b"".join(packed))
                self._sweep()

    def hand_over(self) -> None:
        """Something is about to leave the process for another one. What made it is written first: the other
        process may end this one as soon as it has it."""
        if self.on and multiprocessing.parent_process() is not None and os.getpid() == self._process:
            self.flush()

    def shape(self, tensors: Sequence[torch.Tensor]) -> int:
        """The number of the shapes and dtypes of some tensors."""
        return self._tables.shapes.number(tuple([(t.shape, t.dtype) for t in tensors]), _shape_text)

    def event(self, value: dict[str, Any]) -> None:
        """Write an event, after all records before it."""
        with self._lock:
            self.flush()
            self._writer.json(b"J", value)

    def finish(self, **how: Any) -> None:
        """The process ends on its own."""
        if os.getpid() != self._process or not self.on:
            return
        with self._lock:
            self.flush()
            for call in self.ending:
                self.event(call())
            self.on = False
            if self._writer.open:
                self._writer.json(b"E", {"steps": self.step, **how})
                self._writer.close()

    def _sweep(self) -> None:
        """Forget storages that are gone."""
        # A list: another thread may add to the table meanwhile. The identity is given back last: from then on a new
        # storage may have it.
        gone = [key for key, pointer in list(self._weak.items()) if names.expired(pointer)]
        for key in gone:
            self._made.pop(key, None)
            self._raw.pop(key, None)
            self._waiting.discard(key)
            names.free_weak_reference(self._weak.pop(key))
        self._sweep_at = len(self._weak) + max(SWEEP, len(self._weak) >> 3)

    # Operations

    def dispatch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operation and record it."""
        plan = self._plans.get(func)
        if plan is None:
            plan = self._plans[func] = plan_of(func)
        if plan.kind is VIEW or not self.on or self.capturing:
            return func(*args, **kwargs)
        stream = self.stream()
        if stream.busy:
            return func(*args, **kwargs)
        stream.busy = True
        try:
            if plan.kind is EMPTY:
                return self._empty(func, args, kwargs)
            if plan.kind is RESIZE:
                return self._resize(func, args, kwargs)
            if plan.kind is LIFT:
                return self._lift(func, args, kwargs, stream)
            return self._run(plan, func, args, kwargs, stream)
        finally:
            stream.busy = False

    def _empty(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = func(*args, **kwargs)
        key = self._storage(result)
        if key and result.numel():
            self._made[key] = 0
            self._raw[key] = self.sites.here(2)
        return result

    def _resize(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        tensor = args[0]
        size = tensor.untyped_storage().nbytes()
        result = func(*args, **kwargs)
        if tensor.untyped_storage().nbytes() > size:
            self._raw[self._storage(tensor)] = self.sites.here(2)
        return result

    def _lift(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], stream: Stream) -> Any:
        """Data of Python, of NumPy or of a file becomes a tensor."""
        result = func(*args, **kwargs)
        if isinstance(result, torch.Tensor) and self._made.get(self._storage(result)) is None:
            path = self.sites.here(2)
            self._input(stream, result, "new tensor", path, self._forward_path(stream, path)[0], 0)
        if self.rearm is not None:
            self.rearm()
        return result

    def _run(
        self, plan: Plan, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], stream: Stream
    ) -> Any:
        try:
            with names.no_torch_function():
                path = self.sites.here(2)
                forward, flags = self._forward_path(stream, path)
                numbers: list[tuple[str, Any]] = []
                inputs = self._inputs(plan, args, kwargs, stream, path, forward, numbers)
                others = self._others(plan, args, kwargs, numbers)
                before = self._state(args, kwargs) if plan.draws else None
                found = self.target is not None and self._is_target(stream, plan, before)
        except Exception as error:
            self.failed(error)
            return func(*args, **kwargs)
        if found:
            assert self.at_target is not None
            self.at_target(func, args, kwargs, plan)
        if self.replay is not None and not plan.collective:
            result = self.replay(plan, func, args, kwargs, path, forward, self.step)
        else:
            result = func(*args, **kwargs)
        try:
            with names.no_torch_function():
                if plan.lags:
                    wait_for_copy(plan, args, kwargs, result)
                if before is not None:
                    flags |= DRAWS
                    self._drawn(before, stream, path, forward)
                self._outputs(plan, args, kwargs, result, stream, path, forward, flags, inputs, others)
            if self.rearm is not None:
                self.rearm()
            if len(self._pending) >= (WORKER_PENDING if self._worker else PENDING):
                self.flush()
            elif len(self._weak) > self._sweep_at:
                with self._lock:
                    self._sweep()
        except Exception as error:
            self.failed(error)
        return result

    def failed(self, error: Exception) -> None:
        """A mistake of the tracer must not become one of the program: stop, and say so in the journal."""
        self.on = False
        with contextlib.suppress(Exception), self._lock:
            self._writer.failed(error)

    def _is_target(self, stream: Stream, plan: Plan, before: Any) -> bool:
        target = self.target
        assert target is not None
        # A draw adds a record before its own.
        return (
            0 <= target.ordinal - stream.count <= (before is not None)
            and plan.name == target.name
            and self._tables.streams.texts[stream.number] == target.stream
        )

    def _forward_path(self, stream: Stream, path: int) -> tuple[int, int]:
        """In a backward pass, the path of the forward operation. In a forward pass, note the path for later."""
        node = names.current_node()
        number = names.sequence_number()
        forward, flags = 0, 0
        if node is not None:
            flags = BACKWARD
            # A line of a compiled backward graph says itself which line it is of; so does the user's own code that a
            # backward pass calls: a function's backward(), a hook, a forward pass that is repeated.
            if not path or path in self.sites.of_engine:
                forward = self._forward.get(names.node_number(node), 0)
        last = stream.last_sequence
        if number > last:
            for new in range(max(last, number - 64), number):
                self._forward[new] = forward or path
            if len(self._forward) > FORWARD_SITES:
                for old in list(itertools.islice(self._forward, FORWARD_SITES // 2)):
                    del self._forward[old]
        stream.last_sequence = number
        return forward, flags

    def _storage(self, tensor: Any) -> int:
        """The identity of a tensor's storage; 0 for what has none. It is not reused while it is known here."""
        try:
            key = names.storage_id(tensor)
        except (RuntimeError, TypeError):
            return 0
        if key not in self._weak:
            try:
                self._weak[key] = names.weak_reference(tensor)
            except (RuntimeError, NotImplementedError):
                return 0
        return key

    def _inputs(
        self,
        plan: Plan,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        stream: Stream,
        path: int,
        forward: int,
        numbers: list[tuple[str, Any]],
    ) -> int:
        """What an operation reads: which records made it. What no record made is digested now. ``numbers`` gets
        the Python numbers that stand in the place of tensors."""
        read: list[int] = []
        count = len(args)
        made_by, raw, waiting, storage_id = self._made, self._raw, self._waiting, names.storage_id
        for position, name, _, reads in plan.tensors:
            value = args[position] if position < count else kwargs.get(name)
            if value is None or not reads:
                continue
            if isinstance(value, torch.Tensor):
                value = (value,)
            elif not isinstance(value, (list, tuple)):
                numbers.append((name, value))
                continue
            for tensor in value:
                if not isinstance(tensor, torch.Tensor):
                    continue
                try:
                    key = storage_id(tensor)
                except (RuntimeError, TypeError):
                    continue
                made = made_by.get(key)
                if not made or key in raw or key in waiting or plan.collective:
                    if isinstance(tensor, _LAZY):
                        continue
                    made = self._read(tensor, key, plan, name, stream, path, forward)
                read.append(made)
                read.append(tensor.storage_offset())
        return hash(tuple(read)) & MASK

    def _read(
        self, tensor: torch.Tensor, key: int, plan: Plan, name: str, stream: Stream, path: int, forward: int
    ) -> int:
        """The record that made what is read, where that is not known at once."""
        made = self._made.get(key)
        if plan.collective:
            # Buffers to receive into are listed beside what is sent.
            made = made or 0
        elif key in self._waiting:
            self._waiting.discard(key)
            made = self._input(stream, tensor, f"{plan.name} {name}", path, forward, COLLECTIVE)
        elif key in self._raw and not plan.known:
            # It may be there to be written: libraries do not always say so in a schema.
            made = 0
        elif key in self._raw:
            # The line that has allocated it says more than that of a backward operation.
            allocated = self._raw[key]
            made = self._input(stream, tensor, f"{plan.name} {name}", path, allocated, UNINITIALIZED)
        elif made is None:
            made = self._input(stream, tensor, f"{plan.name} {name}", path, forward, 0)
        return made

    def _input(
        self, stream: Stream, tensor: torch.Tensor, name: str, path: int, forward: int, flags: int
    ) -> int:
        if not flags and self.look is not None:
            self.look()
        value = stream.digester.add(tensor)
        ordinal = stream.count
        stream.count = ordinal + 1
        self._pending.append(
            (
                journal.INPUT,
                flags,
                stream.number,
                self._tables.names.number(name),
                path,
                forward,
                self._tables.shapes.number(((tensor.shape, tensor.dtype),), _shape_text),
                0,
                0,
                value,
            )
        )
        key = self._storage(tensor)
        made = (stream.number << 40) + ordinal + 1
        if key:
            if flags & UNINITIALIZED:
                # The rest of the memory is still unknown: the next read is digested too.
                return made
            self._made[key] = made
        return made

    def _others(
        self, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], found: list[tuple[str, Any]]
    ) -> int:
        """The arguments that are no tensors; some are known already."""
        count = len(args)
        for position, name in plan.others:
            if position < count:
                value = args[position]
            elif name in kwargs:
                value = kwargs[name]
            else:
                continue
            found.append((name, tuple(value) if isinstance(value, list) else value))
        if not found:
            return 0
        known = len(self._tables.args.texts)
        try:
            number = self._tables.args.number(tuple(found), _args_text)
        except TypeError:
            number = self._tables.args.number(_args_text(tuple(found)))
        if number >= known and self.look is not None:
            # A number that has not been here before may come from a generator.
            self.look()
        return number

    def _generator(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Generator | None:
        """The generator that a drawing operation uses."""
        for value in (*args, *kwargs.values()):
            # Not isinstance(): its metaclass is written in Python, and torch.compile looks at that.
            if type(value) is torch.Generator:
                return value
        device = kwargs.get("device")
        if device is None:
            for value in args:
                value = value[0] if isinstance(value, (list, tuple)) and value else value
                if isinstance(value, torch.Tensor):
                    device = value.device
                    break
        device = torch.device(device) if device is not None else torch.device("cpu")
        if device.type == "cpu":
            return torch.default_generator
        if device.type == "cuda" and torch.cuda.is_initialized():
            index = device.index if device.index is not None else torch.cuda.current_device()
            generator: torch.Generator = torch.cuda.default_generators[index]
            return generator
        return None

    def _state(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        generator = self._generator(args, kwargs)
        if generator is None:
            return None
        try:
            return generator, generator.get_state()
        except RuntimeError:
            # A CUDA graph is being captured.
            return None

    def _drawn(self, before: Any, stream: Stream, path: int, forward: int) -> None:
        """Record the state that a draw began with, where there was one."""
        generator, state = before
        if torch.equal(generator.get_state(), state):
            return
        if generator is torch.default_generator:
            name = "torch CPU generator"
        elif any(generator is one for one in getattr(torch.cuda, "default_generators", ())):
            name = f"torch generator of {generator.device}"
        else:
            name = "torch.Generator"
        self.add(
            journal.RNG,
            name,
            path=path,
            forward=forward,
            value=stream.digester.add(state),
            stream=stream,
        )

    def _outputs(
        self,
        plan: Plan,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: Any,
        stream: Stream,
        path: int,
        forward: int,
        flags: int,
        inputs: int,
        others: int,
    ) -> None:
        written: list[torch.Tensor] = []
        given: list[torch.Tensor] = []
        kept: set[int] = set()
        count = len(args)
        for position, name, writes, reads in plan.tensors:
            if writes or plan.collective:
                value = args[position] if position < count else kwargs.get(name)
                already = len(written)
                if isinstance(value, torch.Tensor):
                    written.append(value)
                elif value is not None:
                    flatten(value, written)
                if reads and self._raw and not plan.collective:
                    # What it has not written is still what nothing has written.
                    kept.update(self._raw.keys() & {self._storage(t) for t in written[already:]})
            elif not plan.known:
                flatten(args[position] if position < count else kwargs.get(name), given)
        workspaces: list[torch.Tensor] = []
        if plan.fresh and not written and plan.known and args and _same_memory(args[0], result):
            # A view, although the schema does not say so: nothing has been computed.
            return
        if plan.fresh:
            written += results(plan, result, workspaces)
        if not plan.known:
            # A library may fill only its own part of a buffer, as FSDP does before a collective.
            partly = {id(t) for t in written if self._storage(t) in self._raw}
            self._perhaps_written([*given, *written])
            written = [t for t in written if id(t) not in partly]
        ordinal = stream.count
        stream.count = ordinal + 1
        made = (stream.number << 40) + ordinal + 1
        if plan.collective:
            # It may still be running: what it has written is digested at the next read.
            digest: Value | int = 0
            flags |= COLLECTIVE
        else:
            digest = stream.digester.add(*written)
            if kept:
                flags |= UNINITIALIZED
        made_by, raw, weak, storage_id = self._made, self._raw, self._weak, names.storage_id
        for tensor in (*written, *workspaces):
            try:
                key = storage_id(tensor)
            except (RuntimeError, TypeError):
                continue
            if key not in weak and not self._storage(tensor):
                continue
            if plan.collective:
                self._waiting.add(key)
            if key in raw:
                if key in kept:
                    continue
                if not plan.collective and tensor.nbytes < tensor.untyped_storage().nbytes():
                    continue
                del raw[key]
            made_by[key] = made
        if plan.name == "aten._local_scalar_dense":
            others = self._tables.args.number(repr(result))
        shape = self.shape(written)
        self._pending.append(
            (
                journal.OP,
                flags,
                stream.number,
                self._tables.names.number(plan.name),
                path,
                forward,
                shape,
                others,
                inputs,
                digest,
            )
        )

    def compiled(self, inputs: Any, outputs: Any, kind: str) -> None:
        """A compiled function has run: no operation inside of it arrives here."""
        if not self.on or self.capturing or os.getpid() != self._process:
            return
        stream = self.stream()
        if stream.busy:
            return
        stream.busy = True
        try:
            with names.no_torch_function():
                path = self.sites.here(1)
                forward, flags = self._forward_path(stream, path)
                found: list[torch.Tensor] = []
                flatten(outputs, found)
                tensors = [t for t in found if type(t) in _PLAIN]
                read: list[torch.Tensor] = []
                flatten(inputs, read)
                made = hash(tuple(self._made.get(self._storage(t), 0) for t in read if type(t) in _PLAIN))
                ordinal = stream.count
                stream.count = ordinal + 1
                for tensor in tensors:
                    key = self._storage(tensor)
                    if key:
                        self._raw.pop(key, None)
                        self._made[key] = (stream.number << 40) + ordinal + 1
                self._pending.append(
                    (
                        journal.OP,
                        flags | journal.COMPILED,
                        stream.number,
                        self._tables.names.number(kind),
                        path,
                        forward,
                        self.shape(tensors),
                        0,
                        made & MASK,
                        stream.digester.add(*tensors),
                    )
                )
        except Exception as error:
            self.failed(error)
        finally:
            stream.busy = False

    def graph_replayed(self) -> None:
        """A CUDA graph has run, and has written to memory that is not known: all is digested at its next read."""
        with self._lock:
            self._made.clear()
            self._raw.clear()

    def _perhaps_written(self, value: Any) -> None:
        """Fresh memory that an operation of a library was given: its next read is that of new data."""
        found: list[torch.Tensor] = []
        flatten(value, found)
        for tensor in found:
            key = self._storage(tensor)
            if self._raw.pop(key, None) is not None:
                self._made.pop(key, None)

    # Steps

    def optimizer_step(self, optimizer: Any) -> None:
        """An optimizer has taken a step."""
        for call in self.stepped:
            call(optimizer)
        self.step += 1
        self.add(journal.STEP, f"{type(optimizer).__name__}.step", args=str(self.step))
        self.flush()
        if self._steps and self.step >= self._steps:
            self.leave("steps")

    def leave(self, why: str) -> None:
        """End the program here."""
        self.finish(ended=why)
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0)

    def batch(self, data: Any, name: str) -> None:
        """A DataLoader has handed out a batch."""
        if not self.on or self.capturing or os.getpid() != self._process:
            return
        stream = self.stream()
        tensors: list[torch.Tensor] = []
        rest: list[str] = []
        _walk(data, tensors, rest)
        path = self.sites.here(1)
        busy, stream.busy = stream.busy, True
        try:
            with names.no_torch_function():
                value = stream.digester.add(*tensors)
        finally:
            stream.busy = busy
        ordinal = self.add(
            journal.BATCH,
            name,
            path=path,
            shape=self.shape(tensors),
            args=" ".join(rest)[:200],
            value=value,
            stream=stream,
        )
        for tensor in tensors:
            key = self._storage(tensor)
            if key and self._made.get(key) is None:
                self._made[key] = (stream.number << 40) + ordinal + 1
        if self.rearm is not None:
            self.rearm()

    def mode_for_thread(self) -> Any:
        """A mode for the running thread: the main thread's is not inherited."""
        return _Mode(self)


def flatten(value: Any, found: list[torch.Tensor]) -> None:
    """Gather the tensors of a result or an argument, in order."""
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            flatten(item, found)


def _same_memory(one: Any, other: Any) -> bool:
    if type(one) not in _PLAIN or type(other) not in _PLAIN:
        return False
    try:
        return names.storage_id(one) == names.storage_id(other)
    except RuntimeError:
        return False


def results(plan: Plan, result: Any, workspaces: list[torch.Tensor] | None = None) -> list[torch.Tensor]:
    """The tensors of a result that hold values. What a library keeps for its backward pass, bytes beside numbers and
    what the schema calls so, has padding that nobody writes: it goes to ``workspaces``. What depends on it is
    seen in the results of the backward operation."""
    found: list[torch.Tensor] = []
    flatten(result, found)
    if len(found) == 1 or not plan.known:
        return found
    dtypes = {t.dtype for t in found}
    if not plan.opaque and torch.uint8 not in dtypes:
        return found
    if not any(dtype.is_floating_point or dtype.is_complex for dtype in dtypes):
        return found
    kept: list[torch.Tensor] = []
    rest = workspaces if workspaces is not None else []
    # By what is returned: a tensor that is not defined is None, and stands in no list of tensors.
    for place, one in enumerate(result):
        of_place: list[torch.Tensor] = []
        flatten(one, of_place)
        for tensor in of_place:
            (rest if tensor.dtype is torch.uint8 or place in plan.opaque else kept).append(tensor)
    return kept


def written_by(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> list[torch.Tensor]:
    """The tensors that an operation has written or made."""
    found: list[torch.Tensor] = []
    for position, name, writes, _ in plan.tensors:
        if writes:
            flatten(args[position] if position < len(args) else kwargs.get(name), found)
    return [*found, *results(plan, result)] if plan.fresh else found


def _walk(value: Any, tensors: list[torch.Tensor], rest: list[str], depth: int = 0) -> None:
    """The tensors of a batch, and what else is in it, in order."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
    elif isinstance(value, dict) or hasattr(value, "keys"):
        for key in value.keys():  # noqa: SIM118
            rest.append(str(key))
            _walk(value[key], tensors, rest, depth + 1)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _walk(item, tensors, rest, depth + 1)
    elif isinstance(value, (int, float, str, bool, bytes)) or value is None:
        rest.append(repr(value))
    elif type(value).__module__ == "numpy":
        with contextlib.suppress(TypeError, ValueError):
            tensors.append(torch.from_numpy(value))
    elif depth < 4 and hasattr(value, "__dict__"):
        _walk(vars(value), tensors, rest, depth + 1)


def _shape_text(key: tuple[tuple[torch.Size, torch.dtype], ...]) -> str:
    shown = [f"{str(dtype).removeprefix('torch.')}{list(shape)}" for shape, dtype in key[:8]]
    if len(key) > 8:
        # All of them decide, not only those that are shown.
        shown.append(f"... {len(key)} tensors, {hash(tuple(tuple(s) for s, _ in key)) & 0xFFFFFFFF:x}")
    return ", ".join(shown)


def _args_text(key: tuple[tuple[str, Any], ...]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in key)


_PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))
_SYMBOLIC = ("FakeTensor", "FunctionalTensor")
"""Tensors without content, of compilers."""
_LAZY: type = torch.nn.parameter.UninitializedTensorMixin
"""Parameters of lazy modules, which have no content before the first call."""


class _Mode(TorchDispatchMode):  # type: ignore[misc]
    """Hands every operation to the recorder."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # The decorator that this asks for imports the compiler; our code objects are excluded one by one.
        return False

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Compilation goes on as without the tracer; compiled code runs under the mode."""
        return True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if types and not _PLAIN.issuperset(types):
            if any(kind.__name__ in _SYMBOLIC or issubclass(kind, _LAZY) for kind in types):
                return func(*args, **(kwargs or {}))
            if any(kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__ for kind in types):
                # A subclass takes the operation apart; the operations inside arrive here.
                return NotImplemented
        return self._recorder.dispatch(func, args, kwargs or {})


def exclude_from_dynamo() -> None:
    """Have torch.compile leave the functions of the tracer alone: where it gives up on a function of the program, it
    compiles what that function calls, and the tracer runs inside of operations."""
    package = __name__.partition(".")[0]
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == package:
            for value in vars(module).values():
                members = [value, *vars(value).values()] if isinstance(value, type) else [value]
                for member in members:
                    function = getattr(member, "fget", None) or getattr(member, "__func__", member)
                    if isinstance(function, FunctionType) and function.__module__ == name:
                        _exclude(function.__code__)


def _exclude(code: CodeType) -> None:
    names.skip_in_dynamo(code)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            # Generators, comprehensions and functions in functions.
            _exclude(inner)
