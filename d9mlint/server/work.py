"""The thread that analyzes: what editors report goes in, findings of files come out.

One thread serves all projects. What comes in while it works ends the run that it is making: the text that the run
is about is not the text any more. It begins when nothing has come in for a moment.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from d9mlint.base.errors import UsageError
from d9mlint.base.paths import absolute, is_huge
from d9mlint.server.engine import Cancelled, Engine

if TYPE_CHECKING:
    from d9mlint.base.coverage import Coverage
    from d9mlint.base.source import Source
    from d9mlint.pipeline import Item

DEBOUNCE = 0.15
"""Seconds without an edit before the answer for the edited file is worked out."""
CALM = 0.6
"""Seconds without an edit before all other files are."""
STACK = 512 * 1024 * 1024
"""Bytes of address space for the thread's stack: calls of programs nest deep. Only what is used is taken."""

Publish = Callable[[str, "tuple[Item, ...]", "Engine"], None]


class Worker:
    """Analyzes projects in the background. ``publish`` takes the findings of a file, ``say`` a message for the
    user, ``settled`` is called when everything is known; all of them are called from the thread."""

    def __init__(self, publish: Publish, say: Callable[[str], None], settled: Callable[[], None]) -> None:
        self._publish = publish
        self._say = say
        self._settled = settled
        self.settings: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._ended = False
        self._folders: list[str] = []
        # The texts of open files; None stands for one that has been closed: what is on disk counts again.
        self._open: dict[str, bytes] = {}
        self._edited: dict[str, None] = {}
        self._reload: set[str] = set()
        self._touched: set[str] = set()
        self._last = 0.0
        self.engines: dict[str, Engine] = {}
        self._due: set[str] = set()
        self._shown: dict[str, str] = {}
        self._items: dict[str, tuple[Item, ...]] = {}
        self._refused: dict[str, str] = {}
        self._thread = threading.Thread(target=self._run, name="analysis", daemon=True)

    # -------------------------------------------------------------------------------- from the editor

    def start(self) -> None:
        """Begin to work."""
        before = threading.stack_size(STACK) if sys.maxsize > 2**32 else 0
        try:
            self._thread.start()
        finally:
            if sys.maxsize > 2**32:
                threading.stack_size(before)

    def end(self) -> None:
        """Stop as soon as possible."""
        self._ended = True
        self._wake.set()

    def folders(self, added: list[str], removed: list[str]) -> None:
        """The folders of the workspace have changed."""
        with self._lock:
            self._folders = [f for f in self._folders if f not in removed] + [
                f for f in map(absolute, added) if f not in self._folders
            ]
            self._reload.update(added)
            self._reload.update(removed)
        self._stir()

    def opened(self, path: str, data: bytes) -> None:
        """A file has this text in the editor now."""
        with self._lock:
            self._open[path] = data
            self._edited[path] = None
        self._stir()

    def closed(self, path: str) -> None:
        """A file has been closed: what is on disk counts."""
        with self._lock:
            self._open.pop(path, None)
            self._edited[path] = None
        self._stir()

    def changed_on_disk(self, paths: list[str]) -> None:
        """Files were created, changed or deleted."""
        with self._lock:
            self._touched.update(path for path in paths if path not in self._open or not os.path.exists(path))
        self._stir()

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Settings of the client, which go before those of configuration files."""
        with self._lock:
            self.settings = dict(settings)
            self._reload.update(self.engines)
            self._reload.update(self._folders)
        self._stir()

    def _stir(self) -> None:
        self._last = time.monotonic()
        self._wake.set()

    # ---------------------------------------------------------------------------------------- answers

    def items(self, path: str) -> tuple[Item, ...]:
        """The findings of a file that were shown last; none where its text is newer."""
        return self._items.get(path, ()) if self.is_current(path) else ()

    def is_current(self, path: str) -> bool:
        """Whether the text that was analyzed last is the one that is open."""
        source = self.source(path)
        return source is not None and self._open.get(path, source.data) == source.data

    def source(self, path: str) -> Source | None:
        """The text of a file as it was analyzed."""
        engine = self.engine_of(path)
        return engine.source(path) if engine is not None else None

    def coverage(self, path: str) -> list[Coverage]:
        """What was followed from the entry points of a file."""
        engine = self.engine_of(path)
        if engine is None or engine.result is None:
            return []
        return [one for one in engine.result.coverage if one.entry == path]

    def engine_of(self, path: str) -> Engine | None:
        """The project that answers for a file."""
        anchor = self._anchor(path)
        return self.engines.get(anchor)

    def _anchor(self, path: str) -> str:
        """The folder of the workspace around a file, innermost first; the file itself outside of all."""
        inside = [f for f in self._folders if path.startswith(f.rstrip("/") + "/") and not is_huge(f)]
        return max(inside, key=len, default=path)

    # ------------------------------------------------------------------------------------- the thread

    def _run(self) -> None:
        while True:
            self._wake.wait()
            if self._ended:
                return
            self._rest(DEBOUNCE)
            if self._ended:
                return
            try:
                self._work()
            except Cancelled:
                continue
            except Exception as error:
                # A defect of ours must not end the server; it is said.
                traceback.print_exc(file=sys.stderr)
                self._say(f"d9mlint: internal error: {type(error).__name__}: {error}")

    def _rest(self, seconds: float) -> None:
        """Wait until nothing has come in for this long."""
        while not self._ended and (left := self._last + seconds - time.monotonic()) > 0:
            time.sleep(left)

    def _stop(self) -> bool:
        return self._wake.is_set()

    def _work(self) -> None:
        with self._lock:
            self._wake.clear()
            edited, self._edited = list(self._edited), {}
            reload, self._reload = self._reload, set()
            touched, self._touched = self._touched, set()
        self._take_disk(touched, reload, edited)
        for anchor in sorted(reload):
            self._drop(anchor)
        with self._lock:
            wanted = {*(f for f in self._folders if not is_huge(f)), *(self._anchor(p) for p in self._open)}
        for anchor in sorted(set(self.engines) - wanted):
            self._drop(anchor)
        for anchor in sorted(wanted - set(self.engines)):
            self._open_project(anchor)
        quick: list[tuple[Engine, str]] = []
        for path in edited:
            anchor = self._anchor(path)
            engine = self.engines.get(anchor)
            if engine is None:
                continue
            if not engine.knows(path) or (path not in self._open and not os.path.exists(path)):
                self._drop(anchor, keep=True)
                self._open_project(anchor)
            elif engine.edit(path, self._open.get(path)):
                self._due.add(anchor)
                if engine.result is not None:
                    quick.append((engine, path))
        for engine, path in quick:
            items = engine.quick(path, self._stop)
            if items is not None:
                self._show(engine, path, items)
        if not self._due:
            return
        # All other files can wait until the typing pauses.
        while (left := self._last + CALM - time.monotonic()) > 0:
            if self._wake.wait(left):
                raise Cancelled
        for anchor in sorted(self._due):
            engine = self.engines.get(anchor)
            if engine is not None:
                self._complete(engine)
            self._due.discard(anchor)
        self._settled()

    def _take_disk(self, touched: set[str], reload: set[str], edited: list[str]) -> None:
        """Sort what has changed on disk: texts that are analyzed, files that programs open, and all else, after
        which the project is read anew."""
        for path in sorted(touched):
            for anchor, engine in self.engines.items():
                inside = path.startswith(engine.root.rstrip("/") + "/")
                if path.endswith((".py", ".ipynb")) and engine.knows(path) and os.path.isfile(path):
                    edited.append(path)
                elif path in engine.config_files and os.path.isfile(path):
                    engine.forget_readers(path)
                    self._due.add(anchor)
                elif inside or path.startswith(anchor.rstrip("/") + "/"):
                    reload.add(anchor)

    def _drop(self, anchor: str, keep: bool = False) -> None:
        """Forget a project; its findings disappear from the editor unless it is read anew at once."""
        engine = self.engines.pop(anchor, None)
        self._due.discard(anchor)
        if engine is None or keep:
            return
        if anchor not in self._folders and anchor not in self._open:
            for path in [p for p, owner in self._shown.items() if owner == anchor]:
                self._hide(path, engine)

    def _open_project(self, anchor: str) -> None:
        try:
            engine = Engine(anchor, self.settings, dict(self._open))
        except UsageError as error:
            message = str(error)
            if self._refused.get(anchor) != message:
                self._refused[anchor] = message
                self._say(f"d9mlint: {message}")
            return
        self._refused.pop(anchor, None)
        self.engines[anchor] = engine
        self._due.add(anchor)

    def _complete(self, engine: Engine) -> None:
        enabled = gc.isenabled()
        # Looking for garbage among the facts again and again costs a sixth of a run.
        gc.disable()
        try:
            result = engine.complete(self._stop)
        finally:
            if enabled:
                gc.enable()
        by_path: dict[str, list[Item]] = {}
        for item in result.items:
            by_path.setdefault(item.finding.path, []).append(item)
        for path in sorted({*by_path, *(p for p, owner in self._shown.items() if owner == engine.anchor)}):
            self._show(engine, path, tuple(by_path.get(path, ())))

    def _show(self, engine: Engine, path: str, items: tuple[Item, ...]) -> None:
        if items:
            self._shown[path] = engine.anchor
        else:
            self._shown.pop(path, None)
        self._items[path] = items
        self._publish(path, items, engine)

    def _hide(self, path: str, engine: Engine) -> None:
        self._show(engine, path, ())
