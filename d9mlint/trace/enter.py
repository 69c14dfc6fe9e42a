"""Start a program on a view of the file system in which what it writes stays apart. Linux only; standard library
only; runs as a script: ``enter.py SETTINGS COMMAND...``.

Every path reads as it was before the first run: an overlay is mounted over each directory that the first run
has written to, in a mount namespace of this process alone, and what the first run changed is put back in the
overlay. Exit code 125: the system does not allow it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import sys
from typing import Any

REFUSED = 125
_NEWNS, _NEWUSER = 0x20000, 0x10000000
_REC, _PRIVATE, _BIND = 0x4000, 1 << 18, 4096


def enter(settings: dict[str, Any]) -> None:
    """Mount the overlays. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(_NEWNS | _NEWUSER):
        raise OSError(ctypes.get_errno(), "unshare")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{uid} {uid} 1")
    _write("/proc/self/gid_map", f"{gid} {gid} 1")

    def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
        text = [part.encode() if part is not None else None for part in (source, target, kind)]
        if libc.mount(*text, ctypes.c_ulong(flags), data.encode() if data is not None else None):
            raise OSError(ctypes.get_errno(), f"mount {target}")

    mount("none", "/", None, _REC | _PRIVATE)
    visible = [(path, os.open(path, os.O_RDONLY)) for path in settings["visible"]]
    for number, directory in enumerate(settings["directories"]):
        upper, work = (os.path.join(settings["scratch"], f"{name}{number}") for name in ("upper", "work"))
        os.makedirs(upper, exist_ok=True)
        os.makedirs(work, exist_ok=True)
        options = f"lowerdir={directory},upperdir={upper},workdir={work},userxattr"
        mount("overlay", directory, "overlay", 0, options)
    for path, descriptor in visible:
        mount(f"/proc/self/fd/{descriptor}", path, None, _BIND)
        os.close(descriptor)
    put_back(settings["changes"])
    os.chdir(settings["cwd"])


def put_back(changes: list[dict[str, Any]]) -> None:
    """Undo, in this view, what the first run has changed; the deepest paths first."""
    for change in sorted(changes, key=lambda c: str(c["path"]), reverse=True):
        path = change["path"]
        with contextlib.suppress(OSError):
            if change["before"] is None:
                if os.path.isdir(path) and not os.path.islink(path):
                    shutil.rmtree(path)
                else:
                    os.remove(path)
    for change in changes:
        with contextlib.suppress(OSError):
            if change["before"] == "file":
                os.makedirs(os.path.dirname(change["path"]), exist_ok=True)
                shutil.copy2(change["copy"], change["path"])
            elif change["before"] == "directory":
                os.makedirs(change["path"], exist_ok=True)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as stream:
        stream.write(text)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as _stream:
        _settings = json.load(_stream)
    try:
        enter(_settings)
    except OSError as _error:
        print(f"{_error.strerror or _error}", file=sys.stderr)
        sys.exit(REFUSED)
    if sys.argv[2:]:
        os.execvp(sys.argv[2], sys.argv[2:])
