"""``--watch``: runs again after changes, in a process as a user starts it."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

Project = Callable[[dict[str, str]], Path]
Run = Callable[..., Any]
PATIENCE = 300
CLEAN = "print(1)\n"
NOISY = "import random\n\nprint(random.random())\n"


class Watcher:
    """A watching process, and what it has printed."""

    def __init__(self, process: subprocess.Popen[bytes], reading: int) -> None:
        self.process = process
        self.text = ""
        self._reading = reading
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._reading, 4096)
            except OSError:
                return
            if not data:
                return
            self.text += data.decode()

    def until(self, text: str, count: int = 1) -> None:
        limit = time.monotonic() + PATIENCE
        while self.text.count(text) < count:
            assert time.monotonic() < limit, f"{text!r} did not come: {self.text}"
            time.sleep(0.02)

    def interrupt(self) -> int:
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(PATIENCE)


@contextmanager
def watching(root: Path, *arguments: str, terminal: bool = False) -> Iterator[Watcher]:
    if terminal:
        reading, writing = pty.openpty()
    else:
        reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "d9mlint", "--watch", "--output-format", "concise", *arguments],
        cwd=root,
        stdout=writing,
        stderr=writing,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(writing)
    try:
        yield Watcher(process, reading)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        os.close(reading)


def test_it_runs_again_after_each_change_and_ends_with_the_last_status(project: Project) -> None:
    root = project({"train.py": CLEAN})
    with watching(root, "--select", "DET103") as watcher:
        watcher.until("Watching for changes")
        assert "DET103" not in watcher.text
        (root / "train.py").write_text(NOISY)
        watcher.until("train.py changed")
        watcher.until("DET103 ")
        watcher.until("Watching for changes", 2)
        # A configuration that is wrong is said, and does not end it.
        (root / "d9mlint.toml").write_text("no-such-key = 1\n")
        watcher.until("no-such-key")
        watcher.until("Watching for changes", 3)
        (root / "d9mlint.toml").unlink()
        watcher.until("Watching for changes", 4)
        assert "\x1b[2J" not in watcher.text
        assert watcher.interrupt() == 1


@pytest.mark.full
def test_a_terminal_is_cleared_and_unrelated_files_change_nothing(project: Project) -> None:
    root = project({"train.py": CLEAN})
    with watching(root, "--color", "never", terminal=True) as watcher:
        watcher.until("Watching for changes")
        assert "\x1b[2J" in watcher.text
        (root / "notes.md").write_text("nothing\n")
        (root / ".git").mkdir()
        (root / ".git" / "config.txt").write_text("nothing\n")
        (root / "new.py").write_text(CLEAN)
        watcher.until("Watching for changes", 2)
        assert "new.py changed" in watcher.text and "notes.md" not in watcher.text
        assert watcher.interrupt() == 0


def test_what_cannot_be_watched_is_an_error(run: Run, project: Project) -> None:
    root = project({"train.py": CLEAN})
    for option in ("--update-baseline", "--show-files", "--verify"):
        got = run("--watch", option, cwd=root)
        assert got.code == 2 and "--watch cannot be combined with" in got.err and option in got.err
    assert run("--watch", "-", cwd=root, stdin=b"").code == 2
    assert run("--watch", "missing.py", cwd=root).code == 2


def test_without_watchfiles_it_says_what_to_install(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, project: Project
) -> None:
    from d9mlint.cli import watch
    from d9mlint.cli.app import run

    monkeypatch.setattr(watch, "find_spec", lambda name: None)
    assert run(["check", "--watch", str(project({"a.py": CLEAN}))]) == 2
    assert "pip install 'd9mlint[watch]'" in capfd.readouterr().err
