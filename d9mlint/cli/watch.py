"""``d9mlint --watch``: lint again whenever a file of the project changes, until Ctrl-C."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.base.errors import UsageError
from d9mlint.base.paths import absolute, boundary, common_directory, find_root, is_huge, parents, relative_to
from d9mlint.base.terminal import say
from d9mlint.cli.options import settings_for
from d9mlint.config.discover import CODE_SUFFIXES, CONFIG_SUFFIXES, DEFAULT_EXCLUDE, Walker
from d9mlint.config.gitignore import make_ignore
from d9mlint.config.settings import CONFIG_NAMES, configuration_files

if TYPE_CHECKING:
    from d9mlint.cli.check import CheckOptions

MISSING = "--watch needs watchfiles. Install it with: pip install watchfiles"
CLEAR = "\x1b[2J\x1b[3J\x1b[H"
IGNORE_FILE = ".gitignore"
SUFFIXES = (*CODE_SUFFIXES, *CONFIG_SUFFIXES, IGNORE_FILE)
"""Files that bear on what is found: code, configuration, pinned versions, and what programs read as options."""
INTERRUPTED = 130
AT_ONCE = 2.0
"""Seconds after a run in which changes of files are taken for those that it has made."""


class Watched(NamedTuple):
    """What to listen to: ``trees`` with all that is below them, in which ``walker`` says what is excluded, and single
    ``files``, by the directories that hold them. A file that is watched itself would be lost when an editor replaces it.
    With ``fixes`` the runs themselves change files."""

    trees: tuple[str, ...]
    files: frozenset[str]
    walker: Walker
    fixes: bool = False

    @property
    def directories(self) -> tuple[str, ...]:
        """The directories of single files outside of the trees."""
        around = {os.path.dirname(file) for file in self.files if not self._in_tree(file)}
        return tuple(directory for directory in sorted(around) if os.path.isdir(directory))

    def is_relevant(self, path: str) -> bool:
        """Whether a change of this file may change the findings."""
        if path in self.files:
            return True
        if not path.endswith(SUFFIXES) or not self._in_tree(path):
            return False
        if path.endswith(CODE_SUFFIXES):
            return not self.walker.excluded(path)
        # What git ignores may configure all the same, but nothing in an excluded directory does.
        return not self.walker.excluded(os.path.dirname(path), is_directory=True)

    def _in_tree(self, path: str) -> bool:
        return any(path.startswith(tree.rstrip("/") + "/") for tree in self.trees)


def watch(arguments: Sequence[str], request: CheckOptions, options: Mapping[str, Any]) -> int:
    """Run the command with ``arguments`` now and after every change of what its findings depend on: what it was asked
    for is ``request``, and ``options`` are settings of the command line.
    Returns the exit status of the last run that ended, when the user interrupts the waiting; 130 when
    the user interrupts a run. Each run is a process of its own: it starts from the caches on disk."""
    if find_spec("watchfiles") is None:
        raise UsageError(MISSING)
    tell = (lambda message: None) if request.quiet else say
    listener = _Listener(absolute(request.output_file) if request.output_file else "")
    status = 0
    follows = False
    try:
        while True:
            # It listens before a run reads anything: no change falls between a run and the waiting for the next.
            what = watched(request, options)
            listener.follow(what)
            if sys.stdout.isatty() and not follows:
                sys.stdout.write(CLEAR)
                sys.stdout.flush()
            status = _run(arguments)
            if status in (INTERRUPTED, -2):
                return INTERRUPTED
            ended = time.monotonic()
            try:
                tell("Watching for changes. Press Ctrl-C to stop.")
                changed = listener.wait()
            except KeyboardInterrupt:
                return status
            # What comes at once is what the run itself has fixed: its report stays on the screen.
            follows = what.fixes and time.monotonic() - ended < AT_ONCE
            here = absolute(".")
            more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            tell(f"{relative_to(changed[0], here)}{more} changed.")
    finally:
        listener.stop()


def watched(request: CheckOptions, options: Mapping[str, Any]) -> Watched:
    """What the findings depend on: the whole project, because all of it is analyzed, and what the configuration
    names outside of it."""
    named = [absolute(path) for path in request.paths]
    common = common_directory(named)
    root = find_root(common)
    exclude: Iterable[str] = DEFAULT_EXCLUDE
    base = root
    ignores = True
    fixes = request.fix_only
    files = {path for path in named if not os.path.isdir(path)}
    above = [d for d in parents(root)[1:] if d.startswith(boundary(root))]
    files |= {f"{d.rstrip('/')}/{name}" for d in above for name in (*CONFIG_NAMES, IGNORE_FILE)}
    if request.evidence:
        files.add(absolute(request.evidence))
    if not options.get("isolated"):
        files |= set(configuration_files(common, options.get("config")))
    try:
        settings = settings_for(request.paths, options)
    except UsageError:
        pass  # The run says so.
    else:
        files |= {file for file in (settings.baseline, *settings.knowledge, *settings.evidence) if file}
        fixes |= settings.fix
        exclude = (*settings.exclude, *settings.extend_exclude)
        base, ignores = settings.base or root, settings.respect_gitignore
    trees: tuple[str, ...] = (root,)
    if is_huge(root):
        trees = tuple(sorted(path for path in named if os.path.isdir(path)))
    return Watched(trees, frozenset(files), Walker(root, make_ignore(base, exclude), ignores), fixes)


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


class _Listener:
    """Threads that put changes into a queue. ``skipped`` is the file that each run writes."""

    def __init__(self, skipped: str) -> None:
        self._skipped = skipped
        self._changes: queue.Queue[list[str]] = queue.Queue()
        self._watched: Watched | None = None
        self._threads: list[tuple[threading.Thread, threading.Event]] = []

    def follow(self, what: Watched) -> None:
        """Listen to this from now on."""
        old, self._watched = self._watched, what
        if old is None or (old.trees, old.directories) != (what.trees, what.directories):
            # The new threads listen before the old ones end.
            ended = self._threads
            self._threads = [
                self._start(places, recursive)
                for places, recursive in ((what.trees, True), (what.directories, False))
                if places
            ]
            _stop(ended)

    def _start(self, places: Sequence[str], recursive: bool) -> tuple[threading.Thread, threading.Event]:
        stop = threading.Event()
        thread = threading.Thread(target=self._listen, args=(places, recursive, stop), daemon=True)
        thread.start()
        return thread, stop

    def _listen(self, places: Sequence[str], recursive: bool, stop: threading.Event) -> None:
        import watchfiles

        def relevant(change: watchfiles.Change, path: str) -> bool:
            path = path.replace(os.sep, "/")
            return path != self._skipped and self._watched is not None and self._watched.is_relevant(path)

        try:
            for batch in watchfiles.watch(
                *places,
                watch_filter=relevant,
                debounce=300,
                step=50,
                stop_event=stop,
                raise_interrupt=False,
                recursive=recursive,
                ignore_permission_denied=True,
            ):
                self._changes.put(sorted({path.replace(os.sep, "/") for _, path in batch}))
        except OSError as error:
            say(f"error: {error.strerror or error}")

    def wait(self) -> list[str]:
        """Wait for changes, and take all that have come in."""
        found: dict[str, None] = {}
        while not found:
            try:
                found.update(dict.fromkeys(self._changes.get(timeout=1.0)))
            except queue.Empty:
                if not all(thread.is_alive() for thread, _ in self._threads):
                    raise UsageError("The files of the project cannot be watched any more.") from None
        while not self._changes.empty():
            found.update(dict.fromkeys(self._changes.get()))
        return list(found)

    def stop(self) -> None:
        """Listen to nothing any more."""
        _stop(self._threads)


def _stop(threads: Iterable[tuple[threading.Thread, threading.Event]]) -> None:
    for _, stop in threads:
        stop.set()


def without_watch(arguments: Iterable[str]) -> list[str]:
    """The arguments of each run."""
    return [one for one in arguments if one != "--watch"]
