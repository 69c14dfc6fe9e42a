"""Which files a program writes, and what was there before. Runs in traced processes; standard library only.

The second run must find what the first one found, and must not write over what the first one has written. So
before a file is first opened for writing, moved or removed, its content is copied aside.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import stat
import sys
from collections.abc import Callable
from typing import Any

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Outputs:
    """Notes into a directory, as lines of JSON, one file for each process."""

    def __init__(self, directory: str) -> None:
        self._directory = os.path.abspath(directory)
        self._seen: set[str] = set()
        self._busy = False
        self._count = 0

    def watch(self) -> None:
        """Watch from now on; Python has no way to stop."""
        os.makedirs(self._directory, exist_ok=True)
        sys.addaudithook(self._audit)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            name, mode, flags = args
            writes = bool(flags & WRITING) if isinstance(flags, int) else False
            if writes or (isinstance(mode, str) and any(c in mode for c in "wax+")):
                self.changes(name)
        elif event == "os.rename":
            self.changes(args[0])
            self.changes(args[1])
        elif event in ("os.remove", "os.mkdir", "os.rmdir", "os.truncate"):
            self.changes(args[0])
        elif event in ("os.link", "os.symlink"):
            self.changes(args[1])

    def torch(self, torch: Any) -> None:
        """Watch ``torch.save`` and ``torch.jit.save``, which open a path in C++."""
        for owners in ((torch, torch.serialization), (torch.jit,)):
            wrapper = self._saving(owners[0].save)
            for owner in owners:
                owner.save = wrapper

    def _saving(self, save: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(save)
        def saving(*args: Any, **kwargs: Any) -> Any:
            file = args[1] if len(args) > 1 else kwargs.get("f")
            if isinstance(file, (str, bytes, os.PathLike)):
                self.changes(file)
            return save(*args, **kwargs)

        return saving

    def changes(self, name: Any) -> None:
        """A path is about to be written."""
        if self._busy or isinstance(name, int) or name is None:
            return
        self._busy = True
        try:
            with contextlib.suppress(OSError, TypeError, ValueError):
                path = os.path.abspath(os.fsdecode(name))
                if path not in self._seen and not path.startswith((self._directory, "/dev/", "/proc/")):
                    self._seen.add(path)
                    self._note(path)
        finally:
            self._busy = False

    def _note(self, path: str) -> None:
        entry: dict[str, Any] = {"path": path, "before": None}
        try:
            found = os.lstat(path)
        except OSError:
            found = None
        if found is not None:
            entry["before"] = "other"
            if stat.S_ISDIR(found.st_mode):
                entry["before"] = "directory"
            elif stat.S_ISREG(found.st_mode):
                self._count += 1
                copy = os.path.join(self._directory, f"{os.getpid()}-{self._count}.before")
                shutil.copy2(path, copy)
                entry["before"], entry["copy"] = "file", copy
        with open(os.path.join(self._directory, f"{os.getpid()}.jsonl"), "a", encoding="utf-8") as stream:
            stream.write(json.dumps(entry) + "\n")
