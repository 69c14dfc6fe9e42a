"""What ``trace`` reports. Plain frozen data; the reports and the tests read it."""

from __future__ import annotations

from typing import Any, NamedTuple

from d9mlint.trace.compare import Difference, Frame
from d9mlint.trace.curve import Lane
from d9mlint.trace.resume import Resume

EQUAL, DIVERGED, UNKNOWN = "equal", "diverged", "unknown"
CODES = {EQUAL: 0, DIVERGED: 1, UNKNOWN: 2}
"""Exit codes of ``trace`` by outcome."""


class StaticFinding(NamedTuple):
    """What the static analysis says at the place of a difference."""

    code: str
    name: str
    filename: str
    row: int
    message: str
    help: str
    fix: str


class RunInfo(NamedTuple):
    """A run: its exit code (None where it was stopped from here) and the end of what it printed."""

    exit_code: int | None
    stopped: bool
    steps: int
    operations: int
    output_tail: str = ""


class Report(NamedTuple):
    """The result of a session. ``reason`` says why the outcome is unknown; ``confirmation`` is what replays
    of the operation gave; ``lanes`` says how the difference grows."""

    outcome: str
    command: tuple[str, ...]
    level: str
    reason: str
    runs: tuple[RunInfo, ...]
    difference: Difference | None = None
    confirmation: dict[str, Any] | None = None
    finding: StaticFinding | None = None
    eager: Difference | None = None
    """What two runs without torch.compile diverge at, where a compiled function does."""
    resume: Resume | None = None
    lanes: tuple[Lane, ...] = ()
    notes: tuple[str, ...] = ()
    sources: dict[str, str] = {}  # noqa: RUF012
    """Lines of source by ``file:row``."""
    source: str = ""
    """The file of the program, for the static analysis; empty where it is not known."""
    known: bool = False
    """Whether the linter has facts about the call that has diverged."""
    advice: str = ""
    """What the facts about the operation that has diverged say to do, where no finding does."""
    versions: dict[str, str] = {}  # noqa: RUF012
    """Releases of the frameworks in the traced environment."""


class FlakySite(NamedTuple):
    """An operation whose result differed when it was executed again on the same inputs."""

    name: str
    path: tuple[Frame, ...]
    forward: tuple[Frame, ...]
    process: str
    times: int
    first_step: int


class Replayed(NamedTuple):
    """What executing every operation twice found. ``reason`` says why it is incomplete, if it is."""

    exit_code: int
    operations: int
    sites: tuple[FlakySite, ...]
    reason: str
