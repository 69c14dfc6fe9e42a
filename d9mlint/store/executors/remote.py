"""The side of an executor that runs in a worker of a cluster.

A worker keeps the job that it has opened last: its facts are decoded once for all of its parts. Workers may be on
other machines. Each compares itself with the process that asks: results must not depend on where they are made.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import os
import pickle
import platform
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from d9mlint import __version__
from d9mlint.base.errors import UsageError
from d9mlint.store.executors.protocol import Job

STACK = 256 << 20
"""Bytes of stack for the thread in which a part is run; the system provides them as they are used."""


@dataclass(frozen=True)
class Shared:
    """What workers need: the job as bytes with its ``opener``, a ``digest`` of it, and the ``tool`` that asks."""

    opener: str
    data: bytes
    digest: str
    tool: Tool


class Tool(NamedTuple):
    """What results depend on beside the job: the release, its files, and the version of Python."""

    version: str
    python: str
    files: str


@dataclass(frozen=True)
class Done:
    """The results of a part, or why a worker cannot make them."""

    results: list[Any]
    problem: str = ""


def share(job: Job[Any, Any]) -> Shared:
    """A job for workers."""
    data = job.packed()
    return Shared(job.opener, data, hashlib.blake2b(data, digest_size=16).hexdigest(), this_tool())


@lru_cache(maxsize=1)
def this_tool() -> Tool:
    """The tool in this process, by the content of its files and rules."""
    from d9mlint.knowledge.loader import rule_files, rules_directory

    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    digest = hashlib.blake2b(digest_size=16)
    for directory, names, files in os.walk(package):
        names[:] = sorted(name for name in names if name not in ("__pycache__", "_rules"))
        for name in sorted(files):
            if name.endswith(".py"):
                path = os.path.join(directory, name)
                digest.update(os.path.relpath(path, package).encode() + b"\0")
                digest.update(_content(path))
    root = rules_directory()
    for rule in rule_files(root):
        digest.update(rule.relative_to(root).as_posix().encode() + b"\0" + _content(str(rule)))
    python = f"{platform.python_implementation()} {sys.version_info[0]}.{sys.version_info[1]}"
    return Tool(__version__, python, digest.hexdigest())


def _content(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read() + b"\0"


_lock = threading.Lock()
_opened: dict[str, Job[Any, Any]] = {}


def run_part(shared: Shared, part: bytes) -> Done:
    """Run the tasks of a pickled part in this worker. One part at a time: the analysis is not for several threads of
    a process."""
    where = f"worker on {platform.node()}"
    problem = _difference(shared.tool, this_tool())
    if problem:
        return Done([], f"A {where} {problem}.")
    tasks: Sequence[Any] = pickle.loads(part)
    try:
        with _lock:
            return _in_thread(lambda: Done([_opened_job(shared).run(task) for task in tasks]))
    except UsageError as error:
        return Done([], f"A {where}: {error}")


def _opened_job(shared: Shared) -> Job[Any, Any]:
    job = _opened.get(shared.digest)
    if job is None:
        module, _, name = shared.opener.partition(":")
        _opened.clear()
        gc.unfreeze()
        job = _opened[shared.digest] = getattr(importlib.import_module(module), name)(shared.data)
        # Facts stay as long as the job: they are not searched for garbage again and again.
        gc.collect()
        gc.freeze()
    return job


def _difference(asked: Tool, own: Tool) -> str:
    if asked.version != own.version:
        return f"has d9mlint {own.version}, and this is {asked.version}"
    if asked.python != own.python:
        return f"runs {own.python}, and this is {asked.python}"
    return "" if asked.files == own.files else "has other files of d9mlint or other rules"


def _in_thread(action: Callable[[], Done]) -> Done:
    """The result of an action in a thread of its own, with room for calls that are nested deeply."""
    results: list[Done] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            results.append(action())
        except BaseException as error:
            errors.append(error)

    before = threading.stack_size(STACK)
    try:
        thread = threading.Thread(target=target)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
