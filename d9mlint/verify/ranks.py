"""The ranks of a torchrun job: which backend they use, and how they agree on what happened.

What the ranks tell each other goes through torchrun's key-value store and not through the collectives that
are being measured: a collective that failed on one rank only leaves the others out of step with it.
"""

from __future__ import annotations

import os
import secrets
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import msgspec
import torch
import torch.distributed as dist

from d9mlint.verify.presence import Presence

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
        self._presence = Presence()
        self._meet()
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

    def _meet(self) -> None:
        """Connect the ranks to rank 0, so that the end of one of them is noticed at once. Raises Lost."""
        token = secrets.token_hex(16)
        said = f"{self._presence.listen(token)} {token}" if self.rank == 0 else ""
        port, _, token = self.exchange(said)[0].partition(" ")
        if self.rank and port != "0":
            self._presence.join(os.environ["MASTER_ADDR"], int(port), token, self.rank)

    def exchange(self, value: T, spent: float = 0.0) -> list[T]:
        """The values of all ranks, in their order; anything of one type that JSON holds. Raises Lost where a
        rank stays away; ``spent`` are the seconds already used up by what is reported."""
        limit = max(self.grace, self.timeout + 2 * self.grace - spent)
        self._exchanged += 1
        keys = {rank: f"{self._exchanged}/{rank}" for rank in range(self.world)}
        try:
            self._store.set(keys[self.rank], msgspec.json.encode(value))
            if not self._appear(keys, limit):
                missing = self._missing(keys)
                if ended := missing & self._presence.gone:
                    raise Lost(f"{_named(ended)} ended")
                raise Lost(f"{_named(missing)} did not answer in {spent + limit:.0f} s")
            return [msgspec.json.decode(self._store.get(key), type=type(value)) for key in keys.values()]
        except RuntimeError as error:
            raise Lost(f"the store of the ranks is gone: {first_line(error)}") from error

    def _missing(self, keys: Mapping[int, str]) -> set[int]:
        """The ranks whose keys are not in the store."""
        return {rank for rank, key in keys.items() if not self._store.check([key])}

    def _appear(self, keys: Mapping[int, str], limit: float) -> bool:
        """Whether the keys of these ranks are all in the store before the limit, and before one of these ranks
        ends without its key. A wait inside the store would hold back signals."""
        end, pause = time.monotonic() + limit, 0.0002
        while True:
            # What a rank said before it ended is in the store by the time its end is known.
            gone = self._presence.gone & keys.keys()
            if self._store.check(list(keys.values())):
                return True
            if time.monotonic() > end or (gone and self._missing({rank: keys[rank] for rank in gone})):
                return False
            time.sleep(pause)
            pause = min(2 * pause, 0.02)

    def finish(self, work: Any) -> None:
        """Wait for a collective that was started. Raises NoAnswer when time is up or a rank has ended, and what the
        backend raises."""
        if self.backend == "nccl":
            end = time.monotonic() + self.timeout
            while not work.is_completed():
                if time.monotonic() > end:
                    raise NoAnswer(f"no answer in {self.timeout:g} s")
                self._all_there()
                time.sleep(0.0005)
            work.wait()
            return
        # gloo raises by itself when time is up, and some of its collectives are done only in ``wait``: in a thread,
        # which leaves this one to signals and to the end of another rank.
        result: Future[None] = Future()

        def wait() -> None:
            try:
                work.wait()
                result.set_result(None)
            except Exception as error:
                result.set_exception(error)

        threading.Thread(target=wait, daemon=True).start()
        while not wait_for([result], timeout=0.05).done:
            self._all_there()
        result.result()

    def _all_there(self) -> None:
        """Raises NoAnswer where a rank has ended."""
        if self._presence.gone:
            raise NoAnswer(f"{_named(self._presence.gone)} ended")

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
        back = threading.Event()

        def give_up() -> None:
            end = time.monotonic() + limit
            while time.monotonic() < end and not self._presence.gone:
                if back.wait(min(0.1, limit)):
                    return
            # What can be reported of the end of a rank is left to the call.
            if back.wait(2.0):
                return
            gone = self._presence.gone
            why = f"{_named(gone)} ended" if gone else f"{what} did not return in {limit:g} s"
            print(f"Rank {self.rank}: {why}.", file=sys.stderr, flush=True)
            os._exit(2)

        threading.Thread(target=give_up, daemon=True).start()
        try:
            yield
        finally:
            back.set()

    def leave(self, code: int) -> int:
        """The exit code of rank 0 on all ranks. No rank may end before rank 0 has reported what it knows: torchrun
        stops all of them when one fails."""
        try:
            if self.rank == 0:
                self._store.set("exit", str(code))
                return code
            if self._appear({0: "exit"}, self.timeout + self.grace):
                return int(self._store.get("exit"))
        except RuntimeError:
            pass  # The store went with rank 0.
        word = "ended" if 0 in self._presence.gone else "did not answer"
        print(f"Rank {self.rank}: rank 0 {word}.", file=sys.stderr, flush=True)
        return 2


def _named(ranks: set[int]) -> str:
    return f"rank {', '.join(map(str, sorted(ranks)))}" if ranks else "a rank"


def first_line(error: BaseException) -> str:
    """An error in one line: its type and the first line of its message."""
    text = str(error).strip().partition("\n")[0].strip()
    if isinstance(error, NoAnswer):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
