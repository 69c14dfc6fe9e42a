"""PyTorch as the measurement sees it. Runs in child processes only."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import random
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy
import torch
import torch.nn.functional as functional

with contextlib.suppress(ImportError):
    # Deterministic mode imports it; here it is imported once for all jobs.
    import torch._inductor.config

from d9mlint.verify.clock import timed
from d9mlint.verify.compare import Array
from d9mlint.verify.hardware import driver, limit_memory, processor
from d9mlint.verify.recipes import function
from d9mlint.verify.scope import along, asked, sizes, spread
from d9mlint.verify.torch_addresses import contention

VARIABLES = (
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_LAUNCH_BLOCKING",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
)
"""Environment variables that bear on the bits: recorded with the machine where they are set."""
NO_MEMORY = ("can't allocate memory", "CUDA error: out of memory", "STATUS_ALLOC_FAILED")
"""What the CPU's allocator, CUDA itself and its libraries say where torch's own allocator was not asked."""


class TorchBackend:
    """One device of PyTorch: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``. Raises LookupError."""

    fills_memory = hasattr(torch.utils, "deterministic")

    def __init__(self, device: str) -> None:
        self.device = torch.device(_resolved(device))
        # Races between threads need two of them.
        torch.set_num_threads(max(2, torch.get_num_threads()))
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)

    def describe(self) -> dict[str, Any]:
        """The fields of ``evidence.Machine``, and ``device``, the name of the device in jobs."""
        versions = {"torch": torch.__version__, "python": platform.python_version()}
        name = "CPU"
        if self.device.type == "cuda":
            name = torch.cuda.get_device_name(self.device)
            versions["cuda"] = str(torch.version.cuda or torch.version.hip)
            versions["cudnn"] = str(torch.backends.cudnn.version())
            versions["driver"] = driver()
            versions["gpus"] = str(torch.cuda.device_count())
        else:
            versions["cpu"] = processor()
        versions |= {f"env {v}": os.environ[v] for v in VARIABLES if v in os.environ}
        return {
            "device": str(self.device),
            "library": "torch",
            "kind": self.device.type,
            "name": name,
            "versions": versions,
            "threads": torch.get_num_threads(),
        }

    def program(self, recipe: dict[str, Any], dtype: str, scale: float, seed: int) -> TorchProgram:
        """Build the inputs of a recipe; a recipe with ``op_db`` is an op of torch's own operator database."""
        if "op_db" in recipe:
            from d9mlint.verify.opdb import samples

            inputs, grad, run = samples(recipe["op_db"], self.device, getattr(torch, dtype))

            def drawn_anew(copies: dict[str, Any]) -> Any:
                # Samples of attention or pooling draw random numbers: that is not the race that is looked for.
                self.restore(seed)
                return run(copies)

            return TorchProgram(self, inputs, grad, drawn_anew, seed)
        scope = self._scope(getattr(torch, dtype), scale, seed, recipe.get("given", {}))
        exec(function("make", "", recipe["make"]), scope)
        exec(function("fn", "i", recipe["fn"]), scope)
        made: dict[str, Any] = scope["make"]()
        call = scope["fn"]
        # An optional input that a call leaves out has no gradient, nor have numbers without a fraction.
        grad = tuple(name for name in recipe["grad"] if _varies(made[name]))
        found = TorchProgram(self, made, grad, lambda copies: call(types.SimpleNamespace(**copies)), seed)
        race = recipe.get("race") or {}
        if race.get("addends") and recipe.get("given"):
            # Of a call that the arithmetic does not fit, nothing is said; it is run all the same.
            with contextlib.suppress(Exception):
                found.addends = contention(race, _on_cpu(made), call)["most"]
        return found

    def _scope(self, dtype: torch.dtype, scale: float, seed: int, given: Mapping[str, Any]) -> dict[str, Any]:
        """The names that recipes use."""
        device = self.device
        generator = torch.Generator().manual_seed(seed)
        count = None
        if device.type == "cuda":
            count = torch.cuda.get_device_properties(device).multi_processor_count

        def normal(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=generator).to(dtype).to(device)

        def mixed(*shape: int) -> torch.Tensor:
            magnitude = 10 ** (torch.rand(*shape, generator=generator) * 6 - 3)
            return (torch.randn(*shape, generator=generator) * magnitude).to(dtype).to(device)

        def integers(high: int, *shape: int) -> torch.Tensor:
            return torch.randint(0, high, shape, generator=generator).to(device)

        def tensor(values: Any, dtype: str) -> torch.Tensor:
            return torch.as_tensor(values, device=device, dtype=getattr(torch, dtype) if dtype else None)

        return {
            "torch": torch,
            "F": functional,
            "dev": device,
            "dtype": dtype,
            "g": generator,
            **sizes(scale, count),
            "rn": normal,
            "rmix": mixed,
            "ri": integers,
            **asked(given, normal, integers, tensor),
            "along": along,
            "spread": spread,
            "COMPILE": _Compiled(),
        }

    def restore(self, seed: int) -> None:
        """Seed every generator of the process."""
        random.seed(seed)
        numpy.random.seed(seed % 2**32)
        torch.manual_seed(seed)

    def random_state(self) -> str | None:
        """A digest of the states of all generators of the process."""
        states = [repr(random.getstate()).encode(), repr(numpy.random.get_state()).encode()]
        states.append(torch.get_rng_state().numpy().tobytes())
        if self.device.type == "cuda":
            states.append(torch.cuda.get_rng_state(self.device).numpy().tobytes())
        return hashlib.sha256(b"".join(states)).hexdigest()

    def use_deterministic_mode(self, fill: bool) -> None:
        """Switch deterministic mode on; ``fill``: with uninitialised memory filled."""
        torch.use_deterministic_algorithms(True)
        if self.fills_memory:
            torch.utils.deterministic.fill_uninitialized_memory = fill

    def refuses(self, error: BaseException) -> bool:
        """Whether an error says that deterministic mode has no way to run an op: the op itself, or attention to
        which the mode leaves no kernel of those allowed."""
        text = str(error).lower()
        return isinstance(error, RuntimeError) and ("determinis" in text or "no available kernel" in text)

    def limit_memory(self, extra: int) -> None:
        """Let this process take so many bytes more of its device."""
        if self.device.type == "cuda":
            whole = torch.cuda.get_device_properties(self.device).total_memory
            torch.cuda.set_per_process_memory_fraction(min(1.0, extra / whole), self.device)
        else:
            limit_memory(extra)

    def out_of_memory(self, error: BaseException) -> bool:
        """Whether an error is a want of memory."""
        return isinstance(error, torch.cuda.OutOfMemoryError) or any(text in str(error) for text in NO_MEMORY)

    def lost(self, error: BaseException) -> bool:
        """Whether the device cannot be used any more in this process, as after a failed assertion in a kernel:
        CUDA says so at every call from then on, whatever the library that met the error first has made of it."""
        try:
            self.wait()
        except RuntimeError:
            return True
        return False

    def wait(self) -> None:
        """Wait until the device has done its work."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def _on_cpu(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: t.cpu() if isinstance(t, torch.Tensor) else t for name, t in inputs.items()}


class Room(NamedTuple):
    """What a tensor takes of a device's memory."""

    shape: torch.Size
    dtype: torch.dtype
    device: torch.device


def dirty(rooms: Iterable[Room], number: int) -> None:
    """Leave other bytes in memory that the next run may be given: what it reads uninitialised differs then."""
    junk = [torch.full(shape, number % 100, dtype=dtype, device=device) for shape, dtype, device in rooms]
    del junk


class TorchProgram:
    """Inputs, and what is run on copies of them."""

    def __init__(
        self,
        framework: TorchBackend,
        inputs: dict[str, Any],
        grad: tuple[str, ...],
        call: Callable[[dict[str, Any]], Any],
        seed: int,
    ) -> None:
        self._framework = framework
        self._inputs = inputs
        self._grad = grad
        self._call = call
        self._generator = torch.Generator().manual_seed(seed + 1)
        self._upstream: list[torch.Tensor] = []
        self._rooms: list[Room] = []
        self._runs = 0
        self.addends: int | None = None
        # torch copies nothing from device to device by itself.
        self.on_device = True
        self.sizes = {name: tuple(t.shape) for name, t in inputs.items() if isinstance(t, torch.Tensor)}
        self.dtypes = {
            name: str(t.dtype).removeprefix("torch.")
            for name, t in inputs.items()
            if isinstance(t, torch.Tensor)
        }

    def run(self) -> tuple[float, dict[str, Array]]:
        """Run once on copies of the inputs: seconds, and the bytes of every output and gradient by name."""
        self._runs += 1
        copies = {name: _copy(value) for name, value in self._inputs.items()}
        for name in self._grad:
            copies[name].requires_grad_()
            for parameter in _leaves(copies[name]).values():
                parameter.grad = None
        # After the copies: they would take the memory that results of the same size are to be given.
        dirty(self._rooms, self._runs)
        seconds, outputs = timed(lambda: self._once(copies), self._framework.wait)
        results = {f"out{n}": tensor for n, tensor in enumerate(outputs)}
        for name in self._grad:
            for suffix, leaf in _leaves(copies[name]).items():
                if leaf.grad is not None:
                    results[f"grad:{name}{suffix}"] = leaf.grad
        dense = [tensor for tensor in results.values() if tensor.layout == torch.strided]
        self._rooms = [Room(tensor.shape, tensor.dtype, tensor.device) for tensor in dense]
        return seconds, {name: _array(tensor) for name, tensor in results.items()}

    def _once(self, copies: dict[str, Any]) -> list[torch.Tensor]:
        """Forward, and backward with a random upstream gradient: one of ones hides the order of sums."""
        outputs = tensors(self._call(copies))
        ends = [out for out in outputs if out.requires_grad] if self._grad else []
        if ends:
            while len(self._upstream) < len(ends):
                end = ends[len(self._upstream)]
                dtype = torch.float64 if end.dtype == torch.float64 else torch.float32
                noise = torch.randn(end.shape, generator=self._generator, dtype=dtype)
                self._upstream.append(noise.to(end.dtype).to(end.device))
            torch.autograd.backward(ends, self._upstream[: len(ends)])
        return outputs


def _resolved(device: str) -> str:
    """The device's full name. Raises LookupError where torch does not see it."""
    count = torch.cuda.device_count() if device != "cpu" else 0
    if device == "cpu" or (device == "auto" and not count):
        return "cpu"
    name = "cuda:0" if device in ("auto", "cuda") else device
    if int(name.partition(":")[2]) >= count:
        raise LookupError(f"torch sees no {name} here" + (f" ({count} GPUs)" if count else " (no GPU)"))
    return name


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in a result, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [found for item in value for found in tensors(item)]
    return []


def _copy(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _varies(value: Any) -> bool:
    """Whether gradients can be taken of an input."""
    return isinstance(value, torch.nn.Module) or (
        isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
    )


def _leaves(value: Any) -> dict[str, torch.Tensor]:
    """What gets gradients, by what its name ends in: a tensor itself, a module's parameters."""
    if isinstance(value, torch.nn.Module):
        return {f".{name}": parameter for name, parameter in value.named_parameters()}
    return {"": value}


def _array(tensor: torch.Tensor) -> Array:
    host = tensor.detach().cpu()
    if host.layout != torch.strided:
        # On the host: a GPU adds up the values of one place in any order.
        host = host.to_dense()
    host = host.resolve_conj().resolve_neg().contiguous()
    data = host.reshape(-1).view(torch.uint8).numpy().tobytes() if host.numel() else b""
    return Array(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), data)


class _Compiled:
    """``torch.compile`` for recipes, compiled once for each piece of code and not in every run."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def __call__(self, call: Callable[..., Any], **options: Any) -> Any:
        key = call.__code__
        if key not in self._known:
            self._known[key] = torch.compile(call, **options)
        return self._known[key]
