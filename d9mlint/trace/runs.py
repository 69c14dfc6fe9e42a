"""The runs of a traced program: each in fresh processes, the further ones in their own view of the files. No framework
is imported here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from d9mlint.trace import isolation
from d9mlint.trace.journal import NOTE, Journal
from d9mlint.trace.model import Report, RunInfo
from d9mlint.trace.program import NONE, Perturbation, Program, environment, with_absolute_script
from d9mlint.trace.runner import Ended, run

TAIL = 4096
"""Bytes of a run's output that go into the report."""


class Options(NamedTuple):
    """What the command line asks for."""

    level: str = "full"
    steps: int = 0
    perturb: bool = True
    confirm: bool = True
    resume_at: int = 0
    resume_args: tuple[str, ...] = ()
    picture: bool = False
    """Let the second run go on after the first difference, to see how it grows."""


class Session:
    """The directories and runs of one call."""

    def __init__(self, program: Program, options: Options, scratch: str, progress: Callable[[str], None]):
        self.program = program
        self.options = options
        self.scratch = scratch
        self.progress = progress
        self.cwd = os.getcwd()
        self.seconds = 0.0
        """How long the first run took."""
        self._before: dict[str, tuple[int, int]] = {}
        self._changes: list[isolation.Change] = []
        self._count = 0

    def directory(self, name: str) -> str:
        """A new directory of this session."""
        path = os.path.join(self.scratch, name)
        os.makedirs(path)
        return path

    def report(self, outcome: str, runs: Sequence[RunInfo], reason: str = "", **more: Any) -> Report:
        """The report of this call."""
        program = self.program
        return Report(
            outcome, program.command, self.options.level, reason, tuple(runs), source=program.source, **more
        )

    def settings(self, directory: str, **more: Any) -> dict[str, Any]:
        """The settings of a run that records into a directory."""
        source = self.program.source
        roots = [os.path.dirname(source) + os.sep] if source and "site-packages" in source else []
        return {
            "directory": directory,
            "level": self.options.level,
            "steps": self.options.steps,
            "roots": roots,
            **more,
        }

    def first(self, directory: str, **more: Any) -> Ended:
        """The first run: as the user would start it."""
        noted = self.directory("outputs")
        self._before = isolation.snapshot(self.cwd)
        settings = self.settings(directory, outputs=noted, **more)
        env = environment(settings, os.path.join(self.scratch, "first.json"), NONE, os.environ)
        began = time.monotonic()
        ended = run(self.program.command, env=env, cwd=self.cwd, left_alone=True)
        self.seconds = time.monotonic() - began
        after = isolation.snapshot(self.cwd)
        self._changes = isolation.changes(noted, self._before, after, self.scratch)
        return ended

    def view(self) -> isolation.View:
        """A view of the files as they were before the first run, for one more."""
        return isolation.view(self.cwd, self._changes, self.scratch, [self.scratch])

    def further(
        self,
        directory: str,
        perturbation: Perturbation,
        until: Callable[[], bool] | None = None,
        extra: Sequence[str] = (),
        env: Mapping[str, str] = MappingProxyType({}),
        view: isolation.View | None = None,
        **more: Any,
    ) -> tuple[Ended, str]:
        """A further run, on its own view of the file system, and the end of what it printed."""
        self._count += 1
        view = view or self.view()
        settings = self.settings(directory, **isolation.settings_of(view), **more)
        path = os.path.join(self.scratch, f"further{self._count}.json")
        full = environment(settings, path, perturbation, {**os.environ, **env})
        program = with_absolute_script(self.program) if view.redirected else self.program
        log = os.path.join(self.scratch, f"further{self._count}.log")
        with open(log, "wb") as stream, open(os.devnull, "rb") as nothing:
            ended = run(
                (*view.prefix, *program.command, *extra),
                env=full,
                cwd=view.cwd,
                stdin=nothing.fileno(),
                stdout=stream,
                stderr=stream,
                stop=until,
                bound=True,
                same_addresses=perturbation.addresses,
            )
        return ended, tail(log)


def unusable(directory: str, found: Sequence[Journal], ended: Ended, which: str) -> str:
    """Why a run proves nothing; empty where it does."""
    path = os.path.join(directory, "unsupported")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as stream:
            return stream.read()
    failed = [event["failed"] for j in found for event in j.events if "failed" in event]
    if failed:
        return f"the tracer failed in the {which} run ({failed[0]}); this is a bug, please report it"
    if ended.code:
        how = f"was killed by signal {-ended.code}" if ended.code < 0 else f"exited with status {ended.code}"
        return f"the {which} run {how}"
    if not any(r.kind != NOTE for j in found for r in j.records):
        return f"the {which} run executed no operation of PyTorch or TensorFlow that could be recorded"
    cut = [j for j in found if j.end is None and not j.header.get("worker")]
    if cut:
        return f"a process of the {which} run ended without completing its recording"
    return ""


def versions(found: Sequence[Journal]) -> dict[str, str]:
    """The releases of the frameworks that a run has used."""
    frameworks = ("torch", "tensorflow")
    return {
        name: str(j.header[name]).partition("+")[0] for j in found for name in frameworks if name in j.header
    }


def info(ended: Ended, found: Sequence[Journal], printed: str = "") -> RunInfo:
    """A run in numbers."""
    records = [r for j in found for r in j.records]
    steps = max((j.steps for j in found), default=0)
    count = sum(1 for r in records if r.kind != NOTE)
    return RunInfo(None if ended.stopped else ended.code, ended.stopped, steps, count, printed)


def tail(path: str) -> str:
    """The end of a file of output."""
    with open(path, "rb") as stream:
        stream.seek(max(0, os.path.getsize(path) - TAIL))
        return stream.read().decode("utf-8", "replace")
