"""Runs programs of rule pages, each in its own process, and prints digests of what they computed; started by
``prove_pages.py``.

    python page_runner.py MODULE...

It imports the modules, which have drawn nothing then, and forks for each request on standard input: a line of JSON
with ``cwd``, ``program``, ``code``, ``env`` and ``timeout``. The answer is a line with ``status``, ``out`` and
``error``. A forked process takes new random states from the operating system, as one that has just been started.

``PROVE_RUN`` numbers the process. It decides what may be different in another run on the same machine: the order in
which directories are listed, the clock and, where a rule is about them, what the program drew earlier (DET201, DET202),
whether it is interrupted and goes on from a checkpoint (DET601, DET603), the random states that a process has when it
loads one (DET602), how long threads take (DET208) and which of two
processes comes first to a collective (DET502). For rules about other machines it also decides the number of processors
(DET803) and of processes, of which the last is observed (DET804).

What is observed: what is printed, files that are written, losses, outputs and weights of models, batches of loaders.
``PROVE_WEAK`` adds what the program's functions return and its global variables: used for hazards that print nothing.

Exit status 77: a file or directory was missing and has been made, run the program again.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import io
import json
import os
import pickle
import random
import re
import runpy
import signal
import socket
import struct
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

RUN = 1
HERE = ""
AGAIN = 77
SUFFIXES = (".txt", ".png", ".jpg", ".npy", ".csv", ".json", ".wav", ".pt")
CLAIM = "PROVE-CLAIM "
MADE = ".made"
"""The end of the name of a list of the files that the program lacked, beside its directory."""


def png(value: int) -> bytes:
    """A gray image of 8 by 8 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\x00" + bytes([value * 20 + i for i in range(8)]) for _ in range(8))
    head = struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def make_file(path: Path, number: int = 0) -> None:
    """A small file of the kind that its suffix names."""
    with contextlib.suppress(OSError), open(HERE + MADE, "a", encoding="utf-8") as made:
        made.write(f"{path.name}\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in (".png", ".jpg"):
        path.write_bytes(png(number))
    elif path.suffix == ".npy":
        import numpy

        numpy.save(path, numpy.arange(4.0) + number)
    elif path.suffix == ".pt":
        import torch

        torch.save({"item": torch.arange(4.0) + number}, path)
    elif path.suffix == ".csv":
        path.write_text("a,b\n" + "".join(f"{number},{row}\n" for row in range(8)))
    elif path.suffix == ".json":
        path.write_text(json.dumps({"number": number, "words": ["a", "b"]}))
    else:
        path.write_text(f"item {number}\nline two\n")


def make_missing(name: str) -> None:
    """A file, or a directory with files of several kinds, where the program looks for one."""
    path = Path(name)
    if path.suffix:
        make_file(path)
        return
    for number in range(5):
        for suffix in SUFFIXES[:6]:
            make_file(path / f"item{number}{suffix}", number)
        make_file(path / f"class{number}" / f"item{number}.png", number)


# ------------------------------------------------------------------------------------------ perturbation


def within(path: Any) -> bool:
    """Whether a listed directory belongs to the program."""
    return isinstance(path, (str, os.PathLike)) and os.path.abspath(path).startswith(HERE)


class Entries:
    """What ``os.scandir`` gives, in an order of this run."""

    def __init__(self, entries: list[Any]) -> None:
        self.entries = iter(entries)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self.entries)

    def __enter__(self) -> Entries:
        return self

    def __exit__(self, *_: object) -> None: ...

    def close(self) -> None: ...


def shuffle_listings() -> None:
    """List the program's directories in an order of this run, and make those that do not exist."""
    order = random.Random(RUN)
    listdir, scandir = os.listdir, os.scandir

    def ready(path: Any) -> None:
        if not os.path.exists(path) and not Path(path).suffix:
            make_missing(os.fspath(path))

    def new_listdir(path: Any = ".") -> list[str]:
        if not within(path):
            return list(listdir(path))
        ready(path)
        names = sorted(listdir(path))
        order.shuffle(names)
        return names

    def new_scandir(path: Any = ".") -> Any:
        if not within(path):
            return scandir(path)
        ready(path)
        with scandir(path) as found:
            entries = sorted(found, key=lambda entry: str(entry.name))
        order.shuffle(entries)
        return Entries(entries)

    os.listdir, os.scandir = new_listdir, new_scandir  # type: ignore[assignment]


def shift_clock() -> None:
    """Another start time, and completion in another order."""
    now, shift = time.time, 1000.0 * RUN
    time.time = lambda: now() + shift
    import concurrent.futures

    completed = concurrent.futures.as_completed

    def as_completed(futures: Any, timeout: float | None = None) -> Any:
        done = list(completed(list(futures), timeout))
        done.sort(key=lambda future: str(future.result()))
        random.Random(RUN).shuffle(done)
        return iter(done)

    concurrent.futures.as_completed = as_completed  # type: ignore[assignment]
    wait = concurrent.futures.wait

    def first(futures: Any, timeout: float | None = None, return_when: str = "ALL_COMPLETED") -> Any:
        done, others = wait(futures, timeout)
        if return_when != "FIRST_COMPLETED":
            return done, others
        one = random.Random(RUN).choice(sorted(done, key=lambda future: str(future.result())))
        return {one}, (done | others) - {one}

    concurrent.futures.wait = first  # type: ignore[assignment]


def uneven_tasks() -> None:
    """Of the tasks of Ray that have ended, others are the first in each run."""
    import ray

    wait, order = ray.wait, random.Random(RUN)

    def other(refs: list[Any], **options: Any) -> Any:
        ray.get(refs)
        return wait(order.sample(refs, len(refs)), **options)

    ray.wait = other


def uneven_threads() -> None:
    """Drawing from NumPy's global generator takes times of this run: threads that share it come in another order."""
    import numpy

    times, draw = random.Random(RUN), numpy.random.rand

    def rand(*sizes: int) -> Any:
        time.sleep(times.random() * 0.02)
        return draw(*sizes)

    numpy.random.rand = rand


def other_processors() -> None:
    """A machine with another number of processors and devices."""
    import multiprocessing

    def count() -> int:
        return RUN + 1

    os.cpu_count = count
    multiprocessing.cpu_count = count  # type: ignore[method-assign]
    with contextlib.suppress(ImportError):
        import torch

        torch.cuda.device_count = count


def start_ranks(program: str, world: int, observed: int) -> None:
    """Fork a process for each rank but the observed one, which this process is; all run the program."""
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port.getsockname()[1])}
    os.environ.update(address, WORLD_SIZE=str(world), RANK=str(observed), LOCAL_RANK=str(observed))
    for rank in range(world):
        if rank == observed or os.fork():
            continue
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
        status = 1
        try:
            uneven_collectives(rank)
            with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
                runpy.run_path(program, run_name="__main__")
            status = 0
        finally:
            os._exit(status)
    uneven_collectives(observed)


def uneven_collectives(rank: int) -> None:
    """In odd runs the first rank goes on late after it has started a collective, in even runs the others start late."""
    import torch.distributed as dist

    def late(call: Callable[..., Any]) -> Callable[..., Any]:
        def started(*args: Any, **kwargs: Any) -> Any:
            if rank and RUN % 2 == 0:
                time.sleep(0.5)
            done = call(*args, **kwargs)
            if not rank and RUN % 2:
                time.sleep(1.0)
            return done

        return started

    for name in ("all_reduce", "broadcast", "irecv", "isend"):
        changed = late(getattr(dist, name))
        setattr(dist, name, changed)
        setattr(dist.distributed_c10d, name, changed)


# ------------------------------------------------------------------------------------------- observation


class Observed:
    """A digest of values, in the order in which they came."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.count = 0
        self.claims: list[str] = []

    def add(self, value: Any, depth: int = 0) -> None:
        """Take a value into account: numbers, text, arrays, tensors, models, and containers of them."""
        if depth > 4:
            return
        name = type(value).__module__.partition(".")[0]
        if value is None or isinstance(value, (bool, int, float, str, bytes, complex)):
            self.put(re.sub(r"0x[0-9a-f]{6,}", "", repr(value)).encode())
        elif isinstance(value, (list, tuple)):
            self.put(f"[{len(value)}".encode())
            for item in value[:200]:
                self.add(item, depth + 1)
        elif isinstance(value, dict):
            for key, item in list(value.items())[:200]:
                self.add(key, depth + 1)
                self.add(item, depth + 1)
        elif name == "torch" and hasattr(value, "state_dict"):
            self.add(dict(value.state_dict()), depth + 1)
        elif name == "torch" and hasattr(value, "detach"):
            with contextlib.suppress(Exception):
                plain = value.detach().cpu()
                self.put(str(plain.dtype).encode() + plain.contiguous().reshape(-1).numpy().tobytes())
        elif hasattr(value, "tobytes"):
            self.put(value.tobytes())
        elif name in ("tensorflow", "keras") and hasattr(value, "numpy"):
            with contextlib.suppress(Exception):
                self.put(value.numpy().tobytes())
        elif name == "pandas":
            self.put(str(value).encode())

    def put(self, data: bytes) -> None:
        """Take bytes into account."""
        self.count += 1
        self.hash.update(len(data).to_bytes(8, "little") + data)


SEEN = Observed()


def watch_torch(code: str, resumes: bool) -> None:
    """Observe losses, steps, outputs and batches of PyTorch programs, and what is in checkpoints of those that write
    some."""
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook
    from torch.utils.data import dataloader

    backward = torch.Tensor.backward

    def new_backward(self: Any, *args: Any, **kwargs: Any) -> Any:
        SEEN.add(self)
        return backward(self, *args, **kwargs)

    torch.Tensor.backward = new_backward  # type: ignore[method-assign]

    def stepped(optimizer: Any, *_: Any) -> None:
        for group in optimizer.param_groups:
            SEEN.add(list(group["params"]))

    register_optimizer_step_post_hook(stepped)
    torch.nn.modules.module.register_module_forward_hook(lambda module, given, result: SEEN.add(result))
    for kind in (dataloader._BaseDataLoaderIter,):
        following = kind.__next__

        def new_next(self: Any, following: Callable[[Any], Any] = following) -> Any:
            batch = following(self)
            SEEN.add(batch)
            return batch

        kind.__next__ = new_next  # type: ignore[method-assign]
    if code in ("DET201", "DET202"):
        draw_before_loaders(torch, dataloader)
    if code == "DET602":
        other_state_at_load(torch)
    if code in ("DET601", "DET603") and resumes:
        interrupt_once(torch, register_optimizer_step_post_hook)
    elif code == "DET601":
        complete_checkpoints(torch)


def draw_before_loaders(torch: Any, dataloader: Any) -> None:
    """Each run draws another count of numbers before the first loader starts, as a change elsewhere in a program does."""
    begin = dataloader.DataLoader.__iter__

    def new_iter(self: Any) -> Any:
        torch.rand(RUN)
        return begin(self)

    dataloader.DataLoader.__iter__ = new_iter


def random_states() -> dict[str, Any]:
    """The global random states of this process."""
    import numpy
    import torch

    kind, keys, position, *_ = numpy.random.get_state()
    return {
        "torch": torch.get_rng_state().numpy().tobytes(),
        "numpy": (str(kind), bytes(keys.tobytes()), int(position)),
        "random": random.getstate(),
    }


def states_in(payload: Any, depth: int = 0) -> set[str]:
    """Which random states a checkpoint holds."""
    found: set[str] = set()
    if depth > 4:
        return found
    if hasattr(payload, "dtype") and str(payload.dtype) == "torch.uint8" and payload.numel() > 2000:
        found.add("torch")
    elif isinstance(payload, tuple) and len(payload) == 5 and payload[0] == "MT19937":
        found.add("numpy")
    elif (
        isinstance(payload, tuple)
        and len(payload) == 3
        and isinstance(payload[1], tuple)
        and len(payload[1]) == 625
    ):
        found.add("random")
    elif isinstance(payload, dict):
        for item in payload.values():
            found |= states_in(item, depth + 1)
    elif isinstance(payload, (list, tuple)):
        for item in payload:
            found |= states_in(item, depth + 1)
    return found


LOADED: set[str] = set()


def other_state_at_load(torch: Any) -> None:
    """A process that loads a checkpoint has drawn other numbers than the one that saved it."""
    load = torch.load

    def new_load(*args: Any, **kwargs: Any) -> Any:
        import numpy

        payload = load(*args, **kwargs)
        kinds = states_in(payload)
        if kinds:
            LOADED.update(kinds)
            torch.manual_seed(RUN)
            numpy.random.seed(RUN)
            random.seed(RUN)
        return payload

    torch.load = new_load


def complete_checkpoints(torch: Any) -> None:
    """Say of the first checkpoint which state that the program has is not in it."""
    save = torch.save
    seeded = random_states()
    import numpy

    def noting(call: Callable[..., Any]) -> Callable[..., Any]:
        def note(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            seeded.update(random_states())
            return result

        return note

    for owner, name in ((torch, "manual_seed"), (random, "seed"), (numpy.random, "seed")):
        setattr(owner, name, noting(getattr(owner, name)))

    def new_save(payload: Any, *args: Any, **kwargs: Any) -> Any:
        result = save(payload, *args, **kwargs)
        # A file that is an optimizer's state alone is one of several.
        alone = isinstance(payload, dict) and "param_groups" in payload
        if "param_groups" in repr(payload) and not alone and not SEEN.claims:
            now = random_states()
            lacks = {kind for kind in now if now[kind] != seeded[kind]} - states_in(payload)
            schedulers = [
                one for one in gc.get_objects() if isinstance(one, torch.optim.lr_scheduler.LRScheduler)
            ]
            if any("_step_count" not in repr(payload) for _ in schedulers):
                lacks.add("scheduler")
            SEEN.claims.append("lacks: " + " ".join(sorted(lacks)))
        return result

    torch.save = new_save


STEPPED: dict[int, Any] = {}
"""The optimizers of a program that resumes, in the order of their first steps."""


def interrupt_once(torch: Any, after_steps: Callable[[Any], Any]) -> None:
    """End all processes but the first one at the step that follows their first checkpoint, and start them again. What
    they have at the end is compared, not the way that leads there."""
    save = torch.save
    mark = Path(HERE) / "interrupted"
    saved: list[bool] = []

    def new_save(*args: Any, **kwargs: Any) -> Any:
        save(*args, **kwargs)
        saved.append(True)

    def stepped(optimizer: Any, *_: Any) -> None:
        STEPPED.setdefault(id(optimizer), optimizer)
        if RUN > 1 and saved and not mark.exists():
            mark.touch()
            os._exit(AGAIN)

    torch.save = new_save
    after_steps(stepped)


def watch_keras() -> None:
    """Observe the weights after each ``fit``."""
    import keras

    fit = keras.Model.fit

    def new_fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        # A progress bar shows times.
        kwargs.setdefault("verbose", 0)
        result = fit(self, *args, **kwargs)
        SEEN.add(list(self.get_weights()))
        SEEN.add(result.history.get("loss"))
        return result

    keras.Model.fit = new_fit


def watch_environments() -> None:
    """Observe what environments give."""
    import gymnasium

    for kind in (gymnasium.core.Wrapper, gymnasium.vector.VectorEnv):
        for name in ("reset", "step"):
            call = getattr(kind, name)

            def observed(self: Any, *args: Any, call: Callable[..., Any] = call, **kwargs: Any) -> Any:
                result = call(self, *args, **kwargs)
                SEEN.add(result[0])
                return result

            setattr(kind, name, observed)


def watch_returns(weak: bool) -> None:
    """Observe what functions of the program return."""

    def profile(frame: Any, event: str, value: Any) -> None:
        if (
            event == "return"
            and frame.f_code.co_filename.startswith(HERE)
            and frame.f_code.co_name != "<module>"
        ):
            SEEN.add(value)

    if weak:
        sys.setprofile(profile)


def run_program(program: str, code: str) -> int:
    """Run the program, and print the digest."""
    weak = bool(os.environ.get("PROVE_WEAK"))
    texts = "".join(path.read_text() for path in Path(HERE).rglob("*.py"))
    sys.path.insert(0, HERE)
    before = {path: path.stat().st_mtime_ns for path in Path(HERE).rglob("*")}
    settings_first = code in ("DET308", "DET305", "DET307")
    if (
        re.search(r"\b(torch\w*|lightning|transformers|accelerate|monai|diffusers)\b", texts)
        and not settings_first
    ):
        # A program that looks for a checkpoint and loads it goes on from there.
        watch_torch(code, "torch.load(" in texts and "exists(" in texts)
    if re.search(r"\b(tensorflow|keras)\b", texts) and not settings_first:
        watch_keras()
    if "gymnasium" in texts:
        watch_environments()
    if code == "DET208":
        uneven_threads()
    if re.search(r"\bimport ray\b", texts):
        uneven_tasks()
    if code == "DET803":
        other_processors()
    if code in ("DET502", "DET804") and ("init_process_group" in texts or "RANK" in texts):
        world = RUN if code == "DET804" else 2
        start_ranks(program, world, world - 1 if code == "DET804" else 0)
    shuffle_listings()
    shift_clock()
    printed = io.StringIO()
    sys.argv = [program, *os.environ.get("PROVE_ARGUMENTS", "").split()]
    missing = ""
    with contextlib.redirect_stdout(printed):
        watch_returns(weak)
        try:
            values = runpy.run_path(program, run_name="__main__")
        except FileNotFoundError as error:
            missing = str(error.filename or "")
            if not missing or (os.path.isabs(missing) and not missing.startswith(HERE)):
                raise
        except SystemExit as stop:
            values = {}
            if stop.code not in (None, 0):
                raise
        finally:
            sys.setprofile(None)
    if missing:
        make_missing(missing)
        return AGAIN
    if STEPPED:
        SEEN.__init__()  # type: ignore[misc]
        printed.truncate(0)
        groups = [group for one in STEPPED.values() for group in one.param_groups]
        SEEN.add(list({id(one): one for group in groups for one in group["params"]}.values()))
    # Addresses, and what progress bars say of time and speed.
    times = r"\d+(\.\d+)?(it/s|m?s(/step)?)\b|\d+:\d\d:\d\d • [-\d]+:[-\d]+:[-\d]+"
    text = re.sub(rf"0x[0-9a-f]{{6,}}|{times}|" + re.escape(HERE), "", printed.getvalue())
    if text.strip():
        SEEN.put(text.encode())
    sys.stderr.write(text[-2000:])
    if weak:
        for name, value in values.items():
            if not name.startswith("__"):
                SEEN.add(value)
    for path in sorted(Path(HERE).rglob("*")):
        # Checkpoints are compared by what they hold: an archive has times in it.
        if path.is_file() and "__pycache__" not in path.parts and before.get(path) != path.stat().st_mtime_ns:
            if path.suffix in (".txt", ".json", ".csv", ".npy", ".npz", ".pkl", ".bin"):
                SEEN.put(path.read_bytes())
    if LOADED:
        now = random_states()
        SEEN.put(pickle.dumps([now[kind] for kind in sorted(LOADED)]))
    for claim in SEEN.claims:
        print(CLAIM + claim)
    print(f"PROVE {SEEN.count} {SEEN.hash.hexdigest()}")
    sys.stdout.flush()
    return 0


def fresh_states() -> None:
    """Random states as a new process has them."""
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].seed()


def child(request: dict[str, Any], output: str) -> None:
    """The forked process: it ends here."""
    global RUN, HERE
    status = 1
    try:
        for number, suffix in ((1, ".out"), (2, ".err")):
            file = os.open(output + suffix, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.setsid()
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        RUN, HERE = int(os.environ["PROVE_RUN"]), os.getcwd()
        fresh_states()
        status = run_program(request["program"], request["code"])
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # Threads and servers of libraries do not delay the next run.
        os._exit(status)


def serve() -> None:
    """Answer requests until standard input ends."""
    for name in sys.argv[1:]:
        with contextlib.suppress(ImportError):
            __import__(name)
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        request = json.loads(line)
        with tempfile.TemporaryDirectory(prefix="prove-out-") as directory:
            output = os.path.join(directory, "text")
            process = os.fork()
            if not process:
                child(request, output)
            deadline = time.monotonic() + request["timeout"]
            done, status = os.waitpid(process, os.WNOHANG)
            while not done and time.monotonic() < deadline:
                time.sleep(0.02)
                done, status = os.waitpid(process, os.WNOHANG)
            if not done:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process, signal.SIGKILL)
                os.waitpid(process, 0)
            answer = {
                "status": os.waitstatus_to_exitcode(status) if done else "timeout",
                "out": Path(output + ".out").read_text(errors="replace"),
                "error": Path(output + ".err").read_text(errors="replace"),
            }
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve()
