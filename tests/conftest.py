"""What all tests share: the command line as a user runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run, and as much time for each as a busy machine takes.
settings.register_profile(
    "tests", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tests")

if threading.current_thread() is threading.main_thread():
    # A shell, or nohup, starts what runs in the background so, and programs that the tests interrupt would inherit it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("SIGHUP", "SIGQUIT"):
        other = getattr(signal, name, None)
        if other is not None and signal.getsignal(other) is signal.SIG_IGN:
            signal.signal(other, signal.SIG_DFL)


class Ran(NamedTuple):
    """What a run of the program printed, and its exit code."""

    code: int
    out: str
    err: str


LONG = (
    *(
        "test_verify",
        "test_packaging",
        "test_contributing",
        "test_fix_builders",
        "test_verify_cli",
        "test_cli",
    ),
    *(
        "test_verify_tensorflow",
        "test_report",
        "test_untrusted_data",
        "test_verify_collectives",
        "test_recipes",
    ),
    *("test_verify_settings", "test_recipe_races", "test_no_code_runs", "test_programs", "test_purity"),
    *("test_server", "test_fixed_programs", "test_commands", "test_executors", "test_determinism"),
)
"""Modules that take long, roughly in the order of their time."""


def pytest_configure(config: pytest.Config) -> None:
    """Where workers are given whole files, these come in our order: xdist would begin with those of the most tests,
    and end with one worker on files of few tests that take minutes, while the others have nothing to do."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long comes first."""
    place = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.path.stem, len(LONG)))


@pytest.fixture(scope="session", autouse=True)
def _own_caches(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests neither read nor write the caches of the person who runs them, no colours are wanted, and the package
    is compiled once."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    # Without bytecode each of the many processes that tests start compiles the whole package again.
    for name in ("FORCE_COLOR", "NO_COLOR", "PYTHONDONTWRITEBYTECODE"):
        os.environ.pop(name, None)


@pytest.fixture
def run() -> Callable[..., Ran]:
    """Runs ``d9mlint`` in a process of its own, in which ``before`` is called first."""

    def run(
        *arguments: str | Path,
        cwd: Path | str | None = None,
        stdin: bytes | None = None,
        env: dict[str, str] | None = None,
        before: Callable[[], None] | None = None,
    ) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "d9mlint", *map(str, arguments)],
            cwd=cwd,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            env={**os.environ, **(env or {})},
            timeout=600,
            preexec_fn=before,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def project(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """Writes files below a directory that is marked as a project's root."""

    def project(files: dict[str, str]) -> Path:
        for name, text in {"pyproject.toml": "", **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        return tmp_path

    return project
