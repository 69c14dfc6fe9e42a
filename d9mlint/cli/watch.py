"""``d9mlint --watch``: lint again whenever a file of the project changes, until Ctrl-C."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec

from d9mlint.base.errors import UsageError
from d9mlint.base.paths import absolute, common_directory, find_root, is_huge, relative_to
from d9mlint.base.terminal import say

MISSING = "--watch needs watchfiles. Install it with: pip install 'd9mlint[watch]'"
CLEAR = "\x1b[2J\x1b[3J\x1b[H"
SUFFIXES = (".py", ".ipynb", ".toml", ".cfg", ".txt", ".lock", ".yaml", ".yml", ".json")
"""Files that bear on what is found: code, configuration, pinned versions, and what programs read as options."""
SKIPPED = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", "site-packages", ".d9mlint_cache"}
    | {".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".nox", ".idea", ".vscode"}
)
INTERRUPTED = 130


def watch(arguments: Sequence[str], paths: Sequence[str], output: str | None) -> int:
    """Run the command with ``arguments`` now and after every change around ``paths``; ``output`` is a file that it
    writes itself. Returns the exit status of the last run that ended, when the user interrupts the waiting; 130 when
    the user interrupts a run. Each run is a process of its own: it starts from the caches on disk."""
    if find_spec("watchfiles") is None:
        raise UsageError(MISSING)
    changes: queue.Queue[list[str]] = queue.Queue()
    stop = threading.Event()
    skipped = {absolute(output)} if output else set()
    roots = list(_roots(paths))
    # It listens before the first run reads anything: no change falls between a run and the waiting for the next.
    listener = threading.Thread(target=_listen, args=(roots, skipped, changes, stop), daemon=True)
    listener.start()
    status = 0
    try:
        while True:
            if sys.stdout.isatty():
                sys.stdout.write(CLEAR)
                sys.stdout.flush()
            status = _run(arguments)
            if status in (INTERRUPTED, -2):
                return INTERRUPTED
            say("Watching for changes. Press Ctrl-C to stop.")
            try:
                changed = _next(changes, listener)
            except KeyboardInterrupt:
                return status
            here = absolute(".")
            more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            say(f"{relative_to(changed[0], here)}{more} changed.")
    finally:
        stop.set()


def _roots(paths: Sequence[str]) -> Iterator[str]:
    """What is watched: the whole project, because all of it is analyzed."""
    root = find_root(common_directory([absolute(path) for path in paths]))
    if is_huge(root):
        yield from sorted({absolute(path) for path in paths})
    else:
        yield root


def _run(arguments: Sequence[str]) -> int:
    """One run. It finds modules where this process does, and not in the working directory, whose code is not to run."""
    boot = f"import sys; sys.path[:] = {sys.path!r}; from d9mlint.__main__ import main; main()"
    process = subprocess.Popen([sys.executable, "-I", "-c", boot, *arguments])
    try:
        return process.wait()
    except KeyboardInterrupt:
        # The process is interrupted too, and says so.
        process.wait()
        return INTERRUPTED


def _next(changes: queue.Queue[list[str]], listener: threading.Thread) -> list[str]:
    """Wait for changes, and take all that have come in."""
    found: dict[str, None] = {}
    while not found:
        try:
            found.update(dict.fromkeys(changes.get(timeout=1.0)))
        except queue.Empty:
            if not listener.is_alive():
                raise UsageError("The files of the project cannot be watched any more.") from None
    while not changes.empty():
        found.update(dict.fromkeys(changes.get()))
    return list(found)


def _listen(
    roots: Sequence[str], skipped: set[str], changes: queue.Queue[list[str]], stop: threading.Event
) -> None:
    import watchfiles

    def relevant(change: watchfiles.Change, path: str) -> bool:
        return path.endswith(SUFFIXES) and path not in skipped and SKIPPED.isdisjoint(path.split(os.sep))

    try:
        for batch in watchfiles.watch(
            *roots, watch_filter=relevant, debounce=300, step=50, stop_event=stop, raise_interrupt=False
        ):
            changes.put(sorted(path.replace(os.sep, "/") for _, path in batch))
    except OSError as error:
        say(f"error: {error.strerror or error}")


def without_watch(arguments: Iterable[str]) -> list[str]:
    """The arguments of each run."""
    return [one for one in arguments if one != "--watch"]
