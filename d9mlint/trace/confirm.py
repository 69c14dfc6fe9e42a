"""Repeats one operation on the inputs that it has just been given. Runs in traced processes.

This is the evidence for the verdict ``op``: the same inputs, in the same process, give distinct results.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from d9mlint.trace import names, unmarked
from d9mlint.trace.digest import digest
from d9mlint.trace.recorder import Plan, flatten, wait_for_copy, written_by
from d9mlint.verify.compare import Array, Tally

RUNS = 10
JUNK = 1 << 24
"""Bytes of other memory contents that are left for the next replay to find."""


class Confirmation:
    """Replays the operation of a target and writes what came of it; then ``leave`` ends the process."""

    def __init__(self, path: str, leave: Callable[[str], None]) -> None:
        self._path = path
        self._leave = leave

    def __call__(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], plan: Plan) -> None:
        """Replay, write, end."""
        with names.no_torch_function():
            result = confirm(func, args, kwargs, plan)
        with open(self._path + ".part", "w", encoding="utf-8") as stream:
            json.dump(result, stream)
        os.replace(self._path + ".part", self._path)
        self._leave("confirmed")


def confirm(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], plan: Plan, runs: int = RUNS
) -> dict[str, Any]:
    """How results differ over replays: as the program is set, and once more in deterministic mode."""
    tensors: list[tuple[str, torch.Tensor]] = []
    for position, name, _, _ in plan.tensors:
        if plan.known and name in unmarked.NAMES:
            # Memory that nobody has written all of differs without any cause.
            continue
        value = args[position] if position < len(args) else kwargs.get(name)
        found: list[torch.Tensor] = []
        flatten(value, found)
        tensors += [(name if len(found) == 1 else f"{name}[{n}]", t) for n, t in enumerate(found)]
    inputs = [
        {
            "name": name,
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "shape": list(tensor.shape),
            "device": tensor.device.type,
            "digest": f"{digest(tensor):016x}",
        }
        for name, tensor in tensors
    ]
    versions = {"torch": torch.__version__.partition("+")[0]}
    result: dict[str, Any] = {"op": plan.name, "runs": runs, "inputs": inputs, "versions": versions}
    result.update(_session(func, args, kwargs, plan, runs))
    was = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    result["deterministic_already"] = was[0]
    with _deterministic_mode():
        result["deterministic"] = _session(func, args, kwargs, plan, runs)
    torch.use_deterministic_algorithms(was[0], warn_only=was[1])
    return result


@contextlib.contextmanager
def _deterministic_mode() -> Iterator[None]:
    # What deterministic mode writes into uninitialized memory would hide its contents.
    utils = getattr(torch.utils, "deterministic", None)
    fill = utils.fill_uninitialized_memory if utils is not None else None
    torch.use_deterministic_algorithms(True)
    if utils is not None:
        utils.fill_uninitialized_memory = False
    try:
        yield
    finally:
        if utils is not None:
            utils.fill_uninitialized_memory = fill


def _session(func: Any, args: Any, kwargs: Any, plan: Plan, runs: int) -> dict[str, Any]:
    tallies: list[Tally] = []
    together: dict[tuple[str, ...], None] = {}
    values: dict[str, Any] | None = None
    try:
        for number in range(runs):
            results = _once(func, args, kwargs, plan, number)
            together[tuple(array.digest for array in results)] = None
            if not tallies:
                tallies = [Tally(array) for array in results]
                continue
            for tally, array in zip(tallies, results, strict=True):
                if values is None and array.data != tally.first.data:
                    values = first_difference(tally.first, array)
                tally.add(array)
    except RuntimeError as error:
        return {"distinct": 0, "outputs": [], "raises": str(error).splitlines()[0], "values": None}
    outputs = [tally.summary(f"out{n}") for n, tally in enumerate(tallies)]
    for output in outputs:
        output.pop("digests")
    return {"distinct": len(together), "outputs": outputs, "raises": None, "values": values}


def _once(func: Any, args: Any, kwargs: Any, plan: Plan, number: int) -> list[Array]:
    copies: dict[int, torch.Tensor] = {}
    copied_args, copied_kwargs = copy_tensors((args, kwargs), copies)
    _leave_junk(number, {tensor.device for tensor in copies.values()})
    generators = generators_of(plan, args, kwargs)
    states = [generator.get() for generator in generators]
    try:
        result = func(*copied_args, **copied_kwargs)
    finally:
        put(generators, states)
    if plan.lags:
        wait_for_copy(plan, copied_args, copied_kwargs, result)
    return [array(tensor) for tensor in written_by(plan, copied_args, copied_kwargs, result)]


class Generator(NamedTuple):
    """Access to the state of a random number generator."""

    get: Callable[[], Any]
    put: Callable[[Any], object]


def generators_of(plan: Plan, args: Any, kwargs: Any) -> list[Generator]:
    """The generators that an operation may draw from. One of a library may be written in Python and draw from any."""
    torchs = [torch.default_generator]
    if torch.cuda.is_initialized():
        torchs += list(torch.cuda.default_generators)
    torchs += [value for value in (*args, *kwargs.values()) if type(value) is torch.Generator]
    found = [Generator(one.get_state, one.set_state) for one in torchs]
    if plan.known:
        return found
    # Not the functions of the module: a call of those is a seed of the program.
    of_python = random._inst
    found.append(Generator(of_python.getstate, of_python.setstate))
    legacy = getattr(sys.modules.get("numpy.random.mtrand"), "_rand", None)
    if legacy is not None:
        found.append(Generator(functools.partial(legacy.get_state, legacy=False), legacy.set_state))
    return found


def of_numpy(generator: Any) -> Generator:
    """Access to the state of a generator of NumPy that is no global one."""
    bits = generator.bit_generator
    return Generator(lambda: bits.state, functools.partial(setattr, bits, "state"))


def put(generators: Sequence[Generator], states: Sequence[Any]) -> None:
    """Give generators their states back."""
    for generator, state in zip(generators, states, strict=True):
        generator.put(state)


def _leave_junk(number: int, devices: Iterable[torch.device]) -> None:
    """Freed memory with other contents than at the last replay, where the operation may find it."""
    with contextlib.suppress(RuntimeError):
        # A device may have no memory left.
        junk = [
            torch.full((size,), number % 100 + 1, dtype=torch.uint8, device=device)
            for device in (torch.device("cpu"), *devices)
            for size in (512, 1 << 16, JUNK)
        ]
        del junk


def copy_tensors(value: Any, copies: dict[int, torch.Tensor]) -> Any:
    """Copies of the tensors in arguments; the same tensor twice is the same copy twice, and what shares memory
    shares that of the copy."""
    found: list[torch.Tensor] = []
    _gather(value, found)
    owners: dict[int, list[torch.Tensor]] = {}
    for tensor in {id(one): one for one in found}.values():
        if id(tensor) not in copies and _is_view_like(tensor):
            owners.setdefault(names.storage_id(tensor), []).append(tensor)
    for sharing in owners.values():
        if len(sharing) > 1:
            memory = sharing[0].untyped_storage().clone()
            for tensor in sharing:
                own = torch.empty((0,), dtype=tensor.dtype, device=tensor.device)
                own.set_(memory, tensor.storage_offset(), tensor.size(), tensor.stride())
                copies[id(tensor)] = own
    return _copied(value, copies)


def _is_view_like(tensor: torch.Tensor) -> bool:
    plain = type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided
    return plain and not (tensor.is_quantized or tensor.is_nested or tensor.is_conj() or tensor.is_neg())


def _gather(value: Any, found: list[torch.Tensor]) -> None:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            _gather(item, found)
    elif isinstance(value, torch.Tensor):
        found.append(value)


def _copied(value: Any, copies: dict[int, torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        found = copies.get(id(value))
        if found is None:
            found = copies[id(value)] = value.detach().clone()
        return found
    if isinstance(value, (list, tuple)):
        return type(value)(_copied(item, copies) for item in value)
    if isinstance(value, dict):
        return {key: _copied(item, copies) for key, item in value.items()}
    return value


def array(tensor: torch.Tensor) -> Array:
    """A tensor's bytes on the host."""
    host = tensor.detach().cpu()
    if host.is_quantized:
        host = host.int_repr()
    if host.layout != torch.strided:
        host = host.to_dense()
    host = host.resolve_conj().resolve_neg().contiguous()
    data = bytes(host.reshape(-1).view(torch.uint8).numpy()) if host.numel() else b""
    return Array(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), data)


def first_difference(one: Array, other: Array) -> dict[str, Any] | None:
    """The first element that differs and its two values."""
    if (one.dtype, one.shape) != (other.dtype, other.shape) or not one.shape:
        return None if one.shape else {"index": [], "values": [_value(one, 0), _value(other, 0)]}
    total = 1
    for size in one.shape:
        total *= size
    width = len(one.data) // total
    left, right = memoryview(one.data), memoryview(other.data)
    step = 1 << 16
    for start in range(0, len(left), step):
        if left[start : start + step] != right[start : start + step]:
            byte = next(n for n in range(start, len(left)) if left[n] != right[n])
            place = byte // width
            return {
                "index": _index(place, one.shape),
                "values": [_value(one, place), _value(other, place)],
            }
    return None


def _index(place: int, shape: tuple[int, ...]) -> list[int]:
    found: list[int] = []
    for size in reversed(shape):
        place, index = divmod(place, size)
        found.append(index)
    return found[::-1]


def _value(one: Array, place: int) -> str:
    dtype = getattr(torch, one.dtype)
    width = torch.empty((), dtype=dtype, device="cpu").element_size()
    data = bytearray(one.data[place * width : (place + 1) * width])
    return repr(torch.frombuffer(data, dtype=torch.uint8).view(dtype)[0].item())
