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

from d9mlint.cli.check import CheckOptions
from d9mlint.cli.watch import AT_ONCE, Watched, watched

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
        """Press Ctrl-C while it waits: a file that is written can be two changes, of which the second one starts a run."""
        limit = time.monotonic() + PATIENCE
        text = ""
        while text != self.text or not self.text.rstrip().endswith("to stop."):
            assert time.monotonic() < limit, f"it did not wait: {self.text}"
            text = self.text
            time.sleep(1.5)
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


def test_what_was_fixed_stays_on_the_screen(project: Project) -> None:
    root = project({"train.py": "import os\nimport torch\n\ntorch.save(list(os.listdir('d')), 'x.pt')\n"})
    with watching(root, "--fix", "--select", "DET209", "--color", "never", terminal=True) as watcher:
        watcher.until("Fixed 1 finding.")
        watcher.until("train.py changed.")
        watcher.until("Watching for changes", 2)
        assert "\x1b[2J" not in watcher.text.partition("Fixed 1 finding.")[2]
        assert "sorted(os.listdir('d'))" in (root / "train.py").read_text()
        time.sleep(AT_ONCE + 0.5)
        (root / "train.py").write_text(CLEAN)
        watcher.until("Watching for changes", 3)
        assert "\x1b[2J" in watcher.text.partition("Fixed 1 finding.")[2]


def what(*paths: Path, evidence: str | None = None, **options: Any) -> Watched:
    return watched(CheckOptions(tuple(map(str, paths)), evidence=evidence), options)


def test_a_directory_above_the_project_may_have_any_name(project: Project) -> None:
    root = project({"venv/build/app/pyproject.toml": "", "venv/build/app/train.py": CLEAN})
    app = root / "venv" / "build" / "app"
    seen = what(app)
    assert seen.trees == (str(app),) and seen.is_relevant(f"{app}/train.py")
    assert not seen.is_relevant(f"{app}/venv/lib/x.py") and not seen.is_relevant(f"{app}/build/train.py")


def test_what_the_configuration_excludes_is_not_watched_and_what_it_names_is(project: Project) -> None:
    root = project(
        {
            ".git/HEAD": "",
            ".gitignore": "runs/\nlocal.*\n",
            "base.toml": "no-such-key = 1\n",
            "middle.toml": 'extend = "base.toml"\n',
            "facts/own.yml": "rng: []\n",
            "app/d9mlint.toml": 'extend-exclude = ["old"]\nextend = "../middle.toml"\nknowledge = ["../facts/own.yml"]\n',
            "app/train.py": CLEAN,
        }
    )
    app = root / "app"
    relevant = {
        name: what(app).is_relevant(f"{app}/{name}") for name in ("x.py", "Pipfile", "opt.ini", "notes.md")
    }
    assert relevant == {"x.py": True, "Pipfile": True, "opt.ini": True, "notes.md": False}
    # Git ignores it, and it is read all the same.
    assert what(app).is_relevant(f"{app}/local.toml") and not what(app).is_relevant(f"{app}/local.py")
    assert not what(app).is_relevant(f"{app}/runs/1/result.json")
    # A configuration with a mistake is watched too: that is where it is corrected.
    for name in ("base.toml", "middle.toml", ".gitignore", "pyproject.toml"):
        assert what(app).is_relevant(f"{root}/{name}"), name
    assert not what(app).is_relevant(f"{root}/other.toml")
    (root / "base.toml").write_text("ignore = []\n")
    assert what(app).is_relevant(f"{root}/facts/own.yml") and not what(app).is_relevant(f"{app}/old/x.py")
    seen = what(app, config=str(root / "ci.toml"), evidence=str(root / "seen.json"))
    assert seen.is_relevant(f"{root}/ci.toml") and seen.is_relevant(f"{root}/seen.json")


def test_a_file_that_is_replaced_and_a_configuration_above_are_noticed(project: Project) -> None:
    root = project({"d9mlint.toml": "", "app/setup.py": "", "app/train.py": CLEAN})
    app = root / "app"
    with watching(app, "train.py") as watcher:
        watcher.until("Watching for changes")
        # As many editors save.
        for count, text in ((2, NOISY), (3, CLEAN), (4, NOISY)):
            (root / "new").write_text(text)
            (root / "new").replace(app / "train.py")
            watcher.until("Watching for changes", count)
        assert watcher.text.count("DET103 ") == 2 and watcher.text.count("changed") == 3
        (root / "d9mlint.toml").write_text('ignore = ["DET103"]\n')
        watcher.until("d9mlint.toml changed")
        watcher.until("No findings", 3)
        watcher.until("Watching for changes", 5)
        assert watcher.interrupt() == 0


def test_quiet_prints_reports_only(project: Project) -> None:
    root = project({"train.py": NOISY})
    with watching(root, "--quiet", "--select", "DET103") as watcher:
        watcher.until("Found 1 finding")
        # A change before it waits would do as well.
        (root / "train.py").write_text(NOISY + "print(1)\n")
        watcher.until("Found 1 finding", 2)
        assert "Watching" not in watcher.text and "changed" not in watcher.text


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
    assert "pip install watchfiles" in capfd.readouterr().err
