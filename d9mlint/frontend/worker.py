"""The other end of the pool: a process that reads texts from standard input and answers with facts.

A message is two lengths (8 bytes, little-endian: digest, text) and the two; an answer is the same of the packed
facts and the CPU seconds that they took. Before all that the process says that it is ready. It ends when its
input does.
"""

from __future__ import annotations

import gc
import signal
import sys
import time
from typing import IO

COLLECT_EVERY = 4_000_000
"""Characters after which whatever cycles the parser's errors have left behind are collected."""


CPU_LIMIT = 40.0
"""Seconds of CPU time that one text may take: several times what the largest one that ``guard`` admits takes."""

READY = b"ready"


def send(stream: IO[bytes], *parts: bytes) -> None:
    """Write one message."""
    stream.write(b"".join([*(len(part).to_bytes(8, "little") for part in parts), *parts]))
    stream.flush()


def receive(stream: IO[bytes], count: int) -> list[bytes] | None:
    """Read one message of ``count`` parts; None where the other end has gone."""
    head = stream.read(8 * count)
    if len(head) < 8 * count:
        return None
    parts = []
    for k in range(count):
        size = int.from_bytes(head[8 * k : 8 * k + 8], "little")
        part = stream.read(size)
        if len(part) < size:
            return None
        parts.append(part)
    return parts


def main() -> None:
    """Serve until the input ends."""
    from d9mlint.frontend.extract import extract
    from d9mlint.ir.codec import pack

    answers = sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing but answers may be written to the pipe
    gc.disable()
    send(answers, READY)
    read = 0
    while (message := receive(sys.stdin.buffer, 2)) is not None:
        text = message[1].decode("utf-8", "surrogatepass")
        _limit(CPU_LIMIT)
        began = time.process_time()
        packed = pack(text, extract(text, message[0].decode()))
        _limit(0)
        send(answers, packed, b"%.3f" % (time.process_time() - began))
        read += len(text)
        if read > COLLECT_EVERY:
            read = 0
            gc.collect()


def _limit(seconds: float) -> None:
    """End this process, wherever it is, when it has used so much CPU time from now on; 0: no limit.

    Not every system has such timers; there the pool's limit of elapsed time is the only one.
    """
    if sys.platform != "win32":
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)


def exceeded_limit(returncode: int | None) -> bool:
    """Whether the exit status of a process says that it was ended by its limit of CPU time."""
    return sys.platform != "win32" and returncode == -signal.SIGPROF
