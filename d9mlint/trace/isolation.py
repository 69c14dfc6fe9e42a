"""Where the second run works, so that it finds what the first one found and overwrites nothing of it. No
framework is imported here.

On Linux an overlay file system keeps every path as it is (``enter``). Elsewhere the second run works in its own
directory, in which what the first run has not touched is a link.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any, NamedTuple

from d9mlint.trace import enter

SCANNED = 100_000
"""Files of the working directory whose times are compared; more are not looked at."""
_SKIPPED = {".git", "__pycache__", ".venv", "node_modules"}


class Change(NamedTuple):
    """A path that the first run changed: what was there before (None for nothing) and a copy of it."""

    path: str
    before: str | None
    copy: str = ""


class View(NamedTuple):
    """How to start a program in isolation: a prefix for its command, its working directory, and pairs of a
    directory and the one that stands for it (none where paths stay as they are), the working directory first."""

    prefix: tuple[str, ...]
    cwd: str
    redirected: tuple[tuple[str, str], ...] = ()


def snapshot(directory: str) -> dict[str, tuple[int, int]]:
    """Time and size of the files of a directory tree."""
    found: dict[str, tuple[int, int]] = {}
    for top, directories, files in os.walk(directory):
        directories[:] = [name for name in directories if name not in _SKIPPED]
        for name in files:
            path = os.path.join(top, name)
            with contextlib.suppress(OSError):
                status = os.lstat(path)
                found[path] = (status.st_mtime_ns, status.st_size)
        if len(found) > SCANNED:
            break
    return found


def changes(
    noted: str, before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]], own: str
) -> list[Change]:
    """What the first run changed: what its processes noted, and new files that libraries wrote themselves.
    What is below ``own`` is the tracer's."""
    found: dict[str, Change] = {}
    if os.path.isdir(noted):
        for name in sorted(os.listdir(noted)):
            if name.endswith(".jsonl"):
                with open(os.path.join(noted, name), encoding="utf-8") as stream:
                    for line in stream:
                        with contextlib.suppress(json.JSONDecodeError):
                            entry = json.loads(line)
                            change = Change(entry["path"], entry["before"], entry.get("copy", ""))
                            found.setdefault(change.path, change)
    for path in after:
        if path not in before and path not in found:
            found[path] = Change(path, None)
    tops = [own.rstrip("/") + "/"] if own else []
    return [c for c in found.values() if _matters(c) and not any(c.path.startswith(top) for top in tops)]


def _matters(change: Change) -> bool:
    """Whether a change is of the program's results, and not of a cache or of temporary files."""
    if "__pycache__" in change.path or change.path.endswith(".pyc"):
        return False
    if change.before is None and not os.path.lexists(change.path):
        return False
    return not any(change.path.startswith(top) for top in _caches())


def _caches() -> list[str]:
    names = ("XDG_CACHE_HOME", "HF_HOME", "TORCH_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
    found = [os.environ[name] for name in names if os.environ.get(name)]
    found += [os.path.expanduser("~/.cache"), os.path.expanduser("~/.triton")]
    found.append(os.path.join(tempfile.gettempdir(), "torchinductor_"))
    found.append(os.path.join(tempfile.gettempdir(), "pymp-"))
    return found


def view(cwd: str, found: Sequence[Change], scratch: str, visible: Sequence[str]) -> View:
    """A place for one more run. ``visible`` are directories that are shared with it. Raises OSError."""
    overlaid = _overlay(cwd, found, scratch, visible)
    return overlaid if overlaid is not None else own_directory(cwd, found, scratch)


def _overlay(cwd: str, found: Sequence[Change], scratch: str, visible: Sequence[str]) -> View | None:
    """A view through overlays; None where the system does not allow one."""
    if not sys.platform.startswith("linux"):
        return None
    directories = _tops([cwd, *(os.path.dirname(change.path) for change in found)])
    if any(c in path for path in directories for c in ":,\\") or "/" in directories:
        return None
    for probe in (True, False):
        here = tempfile.mkdtemp(prefix="overlay-", dir=scratch)
        settings = {
            "directories": directories,
            "scratch": here,
            "visible": list(visible),
            "changes": [change._asdict() for change in found],
            "cwd": cwd,
        }
        path = os.path.join(here, "enter.json")
        with open(path, "w", encoding="utf-8") as stream:
            json.dump(settings, stream)
        prefix = (sys.executable, "-I", "-S", enter.__file__, path)
        if probe and subprocess.run(prefix, stderr=subprocess.DEVNULL).returncode:
            return None
    return View(prefix, cwd)


def again(found: View) -> View:
    """The same view for one more program, which finds in it what the last one has left."""
    if not found.prefix:
        return found
    path = found.prefix[-1]
    with open(path, encoding="utf-8") as stream:
        settings = json.load(stream)
    next_path = f"{path}.again"
    with open(next_path, "w", encoding="utf-8") as stream:
        json.dump({**settings, "changes": []}, stream)
    return found._replace(prefix=(*found.prefix[:-1], next_path))


def _tops(paths: Sequence[str]) -> list[str]:
    """Existing directories that hold all paths, none inside of another."""
    tops: list[str] = []
    for path in sorted({os.path.realpath(p) for p in paths}):
        while not os.path.isdir(path):
            path = os.path.dirname(path)
        if not any(path == top or path.startswith(top.rstrip("/") + "/") for top in tops):
            tops.append(path)
    return tops


def own_directory(cwd: str, found: Sequence[Change], scratch: str) -> View:
    """Directories of the second run's own, for the working directory and each other one that the first run has
    written to: links to what the first run left alone, copies of what was there before of the rest."""
    outside = [c for c in found if not _inside(c.path, cwd)]
    tops = [cwd, *(top for top in _tops([os.path.dirname(c.path) for c in outside]) if top != "/")]
    redirected = []
    for top in tops:
        own = tempfile.mkdtemp(prefix="work-", dir=scratch)
        inside = {c.path: c for c in found if _inside(c.path, top)}
        _links(top, own, inside, scratch)
        for change in inside.values():
            if change.before == "file":
                target = os.path.join(own, os.path.relpath(change.path, top))
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copy2(change.copy, target)
        redirected.append((top, own))
    return View((), redirected[0][1], tuple(redirected))


def _inside(path: str, top: str) -> bool:
    return path.startswith(top.rstrip("/") + "/")


def _links(source: str, target: str, changed: dict[str, Change], scratch: str) -> None:
    for entry in sorted(os.listdir(source)):
        path, link = os.path.join(source, entry), os.path.join(target, entry)
        if path == scratch:
            continue
        change = changed.get(path)
        if change is not None and change.before != "directory":
            continue
        if any(p.startswith(path + "/") for p in changed) and stat.S_ISDIR(os.lstat(path).st_mode):
            os.mkdir(link)
            _links(path, link, changed, scratch)
        else:
            os.symlink(path, link)


def settings_of(value: View) -> dict[str, Any]:
    """What traced processes must know of it."""
    return {"redirected": [list(pair) for pair in value.redirected]} if value.redirected else {}
