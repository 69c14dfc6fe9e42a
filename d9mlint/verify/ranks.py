"""The ranks of a torchrun job: which backend they use, and how they agree on what happened.

What the ranks tell each other goes through torchrun's key-value store and not through the collectives that
are being measured: a collective that failed on one rank only leaves the others out of step with it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import msgspec
import torch
import torch.distributed as dist

T = TypeVar("T")


class Lost(Exception):
    """The ranks cannot go on together. Each of them gets the same message, or finds it out by itself."""


class NoAnswer(Exception):
    """A collective was not finished in time."""


class Ranks:
    """This rank and its connection to the others.

    ``device``: ``cuda`` (NCCL, where every machine has a device for each of its ranks) or ``cpu``.
    ``timeout``: seconds that a collective may take. Raises Lost where the ranks do not find each other.
    """

    def __init__(self, device: str, timeout: float) -> None:
        self.timeout = timeout
        self.grace = max(2.0, timeout / 10)
        self.local_world = int(os.environ.get("LOCAL_WORLD_SIZE", os.environ["WORLD_SIZE"]))
        self._exchanged = 0
        try:
            store, self.rank, self.world = next(dist.rendezvous("env://", timeout=timedelta(seconds=timeout)))
        except (RuntimeError, ValueError, OSError) as error:
            raise Lost(f"the ranks did not meet: {first_line(error)}") from error
        self._store = dist.PrefixStore("d9mlint", store)
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        counts = self.exchange(count if dist.is_nccl_available() else 0)
        self.devices = min(counts)
        usable = device == "cuda" and all(self.exchange(count >= self.local_world and self.devices > 0))
        self.backend = "nccl" if usable else "gloo"
        self.device = torch.device("cpu")
        if usable:
            self.device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
            torch.cuda.set_device(self.device)
        # NCCL's own watchdog ends the process where time is up: it must come after the answer given here.
        later = timeout if self.backend == "gloo" else 2 * timeout + 60
        self._patience = timedelta(seconds=later)
        try:
            with self.watch("making the process group"):
                dist.init_process_group(
                    self.backend, store=store, rank=self.rank, world_size=self.world, timeout=self._patience
                )
        except (RuntimeError, ValueError) as error:
            raise Lost(f"{self.backend} cannot be set up: {first_line(error)}") from error
        self.group: Any = dist.group.WORLD
        self._connect()

    def exchange(self, value: T, spent: float = 0.0) -> list[T]:
        """The values of all ranks, in their order; anything of one type that JSON holds. Raises Lost where a
        rank stays away; ``spent`` are the seconds already used up by what is reported."""
        limit = max(self.grace, self.timeout + 2 * self.grace - spent)
        self._exchanged += 1
        keys = [f"{self._exchanged}/{rank}" for rank in range(self.world)]
        try:
            self._store.set(keys[self.rank], msgspec.json.encode(value))
            if not self._appear(keys, limit):
                missing = [str(rank) for rank, key in enumerate(keys) if not self._store.check([key])]
                who = f"rank {', '.join(missing)}" if missing else "a rank"
                raise Lost(f"{who} did not answer in {spent + limit:.0f} s")
            return [msgspec.json.decode(self._store.get(key), type=type(value)) for key in keys]
        except RuntimeError as error:
            raise Lost(f"the store of the ranks is gone: {first_line(error)}") from error

    def _appear(self, keys: list[str], limit: float) -> bool:
        """Whether all keys are in the store before the limit. A wait inside the store would hold back signals."""
        end, pause = time.monotonic() + limit, 0.0002
        while not self._store.check(keys):
            if time.monotonic() > end:
                return False
            time.sleep(pause)
            pause = min(2 * pause, 0.02)
        return True

    def finish(self, work: Any) -> None:
        """Wait for a collective that was started. Raises NoAnswer when time is up, and what the backend raises."""
        # gloo raises by itself when time is up, and some of its collectives are done only in ``wait``.
        if self.backend == "nccl":
            end = time.monotonic() + self.timeout
            while not work.is_completed():
                if time.monotonic() > end:
                    raise NoAnswer(f"no answer in {self.timeout:g} s")
                time.sleep(0.0005)
        work.wait()

    def renew(self) -> None:
        """A new process group in the place of one whose ranks are out of step. Raises Lost."""
        try:
            with self.watch("making a new process group"):
                self.group = dist.new_group(backend=self.backend, timeout=self._patience)
        except (RuntimeError, ValueError) as error:
            raise Lost(f"no new process group: {first_line(error)}") from error
        self._connect()

    def _connect(self) -> None:
        """NCCL connects the ranks at the first collective: here, where no rank can have failed before it."""
        problem = ""
        with self.watch("the first collective"):
            try:
                probe = torch.ones(1, device=self.device)
                self.finish(dist.all_reduce(probe, group=self.group, async_op=True))
            except Exception as error:
                problem = first_line(error)
        problems = [p for p in self.exchange(problem) if p]
        if problems:
            raise Lost(f"{self.backend} does not connect the ranks: {problems[0]}")

    @contextmanager
    def watch(self, what: str) -> Iterator[None]:
        """End this process, with a message, where a call does not come back at all: the others have given up
        by then, and torchrun ends what is left."""
        limit = self.timeout + 3 * self.grace

        def give_up() -> None:
            print(f"Rank {self.rank}: {what} did not return in {limit:g} s.", file=sys.stderr, flush=True)
            os._exit(2)

        timer = threading.Timer(limit, give_up)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def leave(self, code: int) -> int:
        """The exit code of rank 0 on all ranks. No rank may end before rank 0 has reported what it knows: torchrun
        stops all of them when one fails."""
        try:
            if self.rank == 0:
                self._store.set("exit", str(code))
                return code
            if self._appear(["exit"], self.timeout + self.grace):
                return int(self._store.get("exit"))
        except RuntimeError:
            pass  # The store went with rank 0.
        print(f"Rank {self.rank}: rank 0 did not answer.", file=sys.stderr, flush=True)
        return 2


def first_line(error: BaseException) -> str:
    """An error in one line: its type and the first line of its message."""
    text = str(error).strip().partition("\n")[0].strip()
    if isinstance(error, NoAnswer):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
