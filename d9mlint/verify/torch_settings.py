"""Short training runs of PyTorch, each with a setting that it is about. Run in child processes only.

A program gets whether the remedy is applied and the device, and returns the tensors that must agree; a program
about resuming returns those of the uninterrupted run too.
"""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
import traceback
from collections.abc import Callable
from typing import Any

import numpy
import torch

STEPS = 4
ROWS, WIDTH = 1 << 11, 16
LOOKUPS = 1 << 18
"""Rows that are looked up in a step: on a CPU the race of their gradients needs some 100,000."""
State = list[torch.Tensor]


class NotRun(Exception):
    """The program cannot run here; the text says why."""


def run(name: str, remedy: bool, device: str) -> tuple[State, State | None]:
    """Run a program: the tensors that must agree between runs, and those of a reference run or None."""
    torch.set_num_threads(max(2, torch.get_num_threads()))
    if name.startswith("resume_"):
        return resume(name.removeprefix("resume_"), remedy, device)
    return PROGRAMS[name](remedy, device), None


def seed_all() -> None:
    """Seed every global generator."""
    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)


def _state(model: torch.nn.Module) -> State:
    return [p.detach().cpu() for p in model.parameters()]


def _fit(model: torch.nn.Module, batch: Callable[[int], torch.Tensor], lr: float = 0.1) -> State:
    """Train for a few steps."""
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for step in range(STEPS):
        optimizer.zero_grad()
        model(batch(step)).square().mean().backward()
        optimizer.step()
    return _state(model)


class Lookup(torch.nn.Module):  # type: ignore[misc]  # torch has no types here
    """A table whose rows are indexed: their gradients are added in the order of arrival."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(ROWS, WIDTH))
        self.register_buffer("weight", 10 ** (torch.rand(LOOKUPS, 1) * 4 - 2))

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        """The rows, with weights of different magnitude. Which form of the lookup has a race depends on the device."""
        rows = self.table[index] if index.device.type == "cpu" else torch.index_select(self.table, 0, index)
        found: torch.Tensor = rows * self.weight
        return found


def _lookups(device: str) -> Callable[[int], torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return lambda step: torch.randint(0, ROWS, (LOOKUPS,), generator=generator).to(device)


def deterministic_mode(remedy: bool, device: str) -> State:
    seed_all()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(remedy)
    model = Lookup().to(device)
    # The sum over all elements would hide the order in which one row was added up.
    return _fit(model, _lookups(device), lr=1.0)


def _small(device: str) -> torch.nn.Module:
    layers = (torch.nn.Linear(WIDTH, 32), torch.nn.Dropout(0.5), torch.nn.Linear(32, 4))
    return torch.nn.Sequential(*layers).to(device)


def torch_seed(remedy: bool, device: str) -> State:
    if remedy:
        torch.manual_seed(0)
    return _fit(_small(device), lambda step: torch.ones(8, WIDTH, device=device))


def numpy_seed(remedy: bool, device: str) -> State:
    torch.manual_seed(0)
    if remedy:
        numpy.random.seed(0)
    return _fit(
        _small(device),
        lambda step: torch.tensor(numpy.random.rand(8, WIDTH), dtype=torch.float32, device=device),
    )


def python_seed(remedy: bool, device: str) -> State:
    torch.manual_seed(0)
    if remedy:
        random.seed(0)
    return _fit(_small(device), lambda step: torch.ones(8, WIDTH, device=device) * random.random())


class _Noisy(torch.utils.data.Dataset):  # type: ignore[misc]
    def __len__(self) -> int:
        return 64

    def __getitem__(self, item: int) -> torch.Tensor:
        return torch.full((WIDTH,), item / 64) + torch.tensor(numpy.random.rand(WIDTH), dtype=torch.float32)


def dataloader_workers(remedy: bool, device: str) -> State:
    generator = torch.Generator().manual_seed(0) if remedy else None
    loader = torch.utils.data.DataLoader(
        _Noisy(),
        batch_size=8,
        shuffle=True,
        num_workers=2,
        generator=generator,
        multiprocessing_context="fork",
    )
    batches = list(loader)
    torch.manual_seed(0)
    return _fit(_small(device), lambda step: batches[step].to(device))


def _convolutions(device: str) -> State:
    layers = (torch.nn.Conv2d(8, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(32, 8, 3, padding=1))
    model = torch.nn.Sequential(*layers).to(device)
    return _fit(model, lambda step: torch.randn(16, 8, 32 + 8 * step, 32, device=device))


def cudnn_benchmark(remedy: bool, device: str) -> State:
    seed_all()
    torch.backends.cudnn.benchmark = not remedy
    return _convolutions(device)


def cudnn_deterministic(remedy: bool, device: str) -> State:
    seed_all()
    torch.backends.cudnn.deterministic = remedy
    # The first layer of a network for images: on an H100 cuDNN takes an algorithm with atomics for its gradients.
    layers = (torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(32, 8, 3, padding=1))
    return _fit(
        torch.nn.Sequential(*layers).to(device), lambda step: torch.randn(32, 3, 60, 60, device=device)
    )


def cublas_workspace(remedy: bool, device: str) -> State:
    if remedy:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    else:
        os.environ.pop("CUBLAS_WORKSPACE_CONFIG", None)
    seed_all()
    weight = torch.randn(1024, 1024, device=device)
    streams = [torch.cuda.Stream() for _ in range(4)]
    for _ in range(STEPS):
        parts = []
        for stream in streams:
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                parts.append(weight @ weight.t())
        torch.cuda.synchronize()
        weight = torch.stack(parts).mean(0) / 1024
    return [weight.cpu()]


def compile_autotune(remedy: bool, device: str) -> State:
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
        seed_all()
        model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 64)).to(
            device
        )
        fast = torch.compile(model) if remedy else torch.compile(model, mode="max-autotune-no-cudagraphs")
        _fit(fast, lambda step: torch.randn(512, 256, device=device))
        return _state(model)


def _ranks(work: Callable[[int, str, str], State], backend: str) -> State:
    """The state of rank 0 after training on two ranks, each a process of its own. Raises NotRun where the ranks
    do not agree on being able to run, and RuntimeError where one failed."""
    import torch.distributed as dist

    directory = tempfile.mkdtemp()
    children = []
    for rank in range(2):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                dist.init_process_group(
                    backend, init_method=f"file://{directory}/store", rank=rank, world_size=2
                )
                torch.save(work(rank, directory, backend), os.path.join(directory, f"rank{rank}"))
                dist.destroy_process_group()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        children.append(child)
    failed = [rank for rank, child in enumerate(children) if os.waitpid(child, 0)[1]]
    if failed:
        raise RuntimeError(f"rank {failed[0]} failed; its traceback is in the log")
    states = [torch.load(os.path.join(directory, f"rank{rank}")) for rank in range(2)]
    return [tensor for state in states for tensor in state]


def _distributed(wrap: Callable[[torch.nn.Module], torch.nn.Module], remedy: bool, backend: str) -> State:
    def work(rank: int, directory: str, backend: str) -> State:
        torch.set_num_threads(2)
        device = f"cuda:{rank}" if backend == "nccl" else "cpu"
        seed_all()
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(remedy)
        wrapped = wrap(Lookup().to(device))
        _fit(wrapped, _lookups(device), lr=1.0)
        return [getattr(p, "full_tensor", lambda p=p: p)().detach().cpu() for p in wrapped.parameters()]

    return _ranks(work, backend)


def _ddp(model: torch.nn.Module) -> torch.nn.Module:
    return torch.nn.parallel.DistributedDataParallel(model)


def _fsdp(model: torch.nn.Module) -> torch.nn.Module:
    try:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
    except ImportError as error:
        raise NotRun(f"this torch has no fully_shard ({error})") from error
    fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
    return model


def ddp(remedy: bool, device: str) -> State:
    return _distributed(_ddp, remedy, "gloo")


def fsdp(remedy: bool, device: str) -> State:
    return _distributed(_fsdp, remedy, "gloo")


def ddp_nccl(remedy: bool, device: str) -> State:
    return _distributed(_ddp, remedy, "nccl")


class Training:
    """A training run with every kind of state that a checkpoint must hold."""

    def __init__(self, device: str) -> None:
        seed_all()
        self.device = device
        self.model = _small(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: 0.5**step)
        self.order = torch.Generator().manual_seed(2)
        self.data = torch.randn(64, WIDTH)

    def step(self) -> None:
        """One step, which draws from every generator."""
        rows = torch.randint(0, 64, (8,), generator=self.order)
        noise = torch.tensor(numpy.random.rand(8, WIDTH), dtype=torch.float32)
        batch = ((self.data[rows] + noise) * (0.5 + random.random())).to(self.device)
        self.optimizer.zero_grad()
        self.model(batch).square().mean().backward()
        self.optimizer.step()
        self.scheduler.step()

    def checkpoint(self, without: str) -> dict[str, Any]:
        """All of the state but one part."""
        states: dict[str, Any] = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "loader_rng": self.order.get_state(),
            "torch_rng": torch.get_rng_state(),
            "numpy_rng": numpy.random.get_state(),
            "python_rng": random.getstate(),
        }
        if self.device != "cpu":
            states["cuda_rng"] = torch.cuda.get_rng_state()
        states.pop(without, None)
        if without == "torch_rng":
            # Dropout on a GPU draws there.
            states.pop("cuda_rng", None)
        return states

    def restore(self, states: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        own = {
            "model": self.model.load_state_dict,
            "optimizer": self.optimizer.load_state_dict,
            "scheduler": self.scheduler.load_state_dict,
            "loader_rng": self.order.set_state,
            "torch_rng": torch.set_rng_state,
            "numpy_rng": numpy.random.set_state,
            "python_rng": random.setstate,
            "cuda_rng": torch.cuda.set_rng_state,
        }
        for name, state in states.items():
            own[name](state)


def resume(missing: str, remedy: bool, device: str) -> tuple[State, State]:
    """A run that is interrupted half-way and resumed in a new process, and an uninterrupted one."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "checkpoint")

        def whole() -> State:
            training = Training(device)
            for _ in range(STEPS):
                training.step()
            return _state(training.model)

        def first() -> State:
            training = Training(device)
            for _ in range(STEPS // 2):
                training.step()
            torch.save(training.checkpoint("" if remedy else missing), path)
            return []

        def second() -> State:
            training = Training(device)
            training.restore(torch.load(path, weights_only=False))
            for _ in range(STEPS - STEPS // 2):
                training.step()
            return _state(training.model)

        reference = _forked(whole, directory)
        _forked(first, directory)
        return _forked(second, directory), reference


def _forked(work: Callable[[], State], directory: str) -> State:
    """The result of a function in a process of its own."""
    path = os.path.join(directory, "result")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            torch.save(work(), path)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    if os.waitpid(child, 0)[1]:
        raise RuntimeError("a process of the program failed; its traceback is in the log")
    found: State = torch.load(path)
    return found


def digest(state: State) -> bytes:
    """All bytes of a state."""
    return b"".join(
        str((t.dtype, tuple(t.shape))).encode()
        + t.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        for t in state
    )


def peak_memory(device: str) -> int | None:
    """Bytes of the device's memory in use at the peak; None on a CPU."""
    with contextlib.suppress(RuntimeError):
        if device != "cpu":
            return int(torch.cuda.max_memory_allocated())
    return None


PROGRAMS: dict[str, Callable[[bool, str], State]] = {
    f.__name__: f
    for f in (
        deterministic_mode,
        torch_seed,
        numpy_seed,
        python_seed,
        dataloader_workers,
        cudnn_benchmark,
        cudnn_deterministic,
        cublas_workspace,
        compile_autotune,
        ddp,
        fsdp,
        ddp_nccl,
    )
}
