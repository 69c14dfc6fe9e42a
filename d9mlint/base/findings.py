"""Findings: what a check reports, where, and what to write instead. Plain frozen data."""

from __future__ import annotations

import enum
import hashlib
from typing import Any

import msgspec

from d9mlint.base.known_calls import KnownCall

WARNS = "warns"
"""Stands in ``remedy`` where the help is to enable deterministic mode, and that can only warn of what raises in it."""
RAISES = "raises"
"""Stands there where ops have to be replaced before the mode can be switched on."""
SWITCHED = "switched"
"""Stands in ``remedy`` of an op whose remedy is the switch that another finding asks each program for."""
VARIABLE = "variable"
"""Stands there where the remedy sets the variable that gives cuBLAS its workspace, alone or with something else."""
RECURRENT = "recurrent"
"""Stands there where it has to be the value that the program's recurrent layers need too."""
UNCOVERED = "uncovered"
"""Stands there where a variable of an old release of TensorFlow covers no op of the program."""
RENAMED = "renamed"
"""Stands there before the name that was meant."""
CALLED = "called"
"""Stands there before the arguments with which a function is to be called that is named alone."""
REPEATED = "repeated"
"""Stands there where the call runs in each round of a loop: a generator made for it, or one seed, would draw the same in
each."""
NUMBER = "number"
"""Stands there where the place of the finding is a seed that differs between runs: a number stands in for it."""
BY_METHOD = "by-method"
"""Stands there where the method ``seed`` of an environment seeds it,"""
BY_RESET = "by-reset"
"""or its method ``reset``."""
ALSO = "also"
"""Stands there before two RNGs, of which both are to be seeded."""
NO_GENERATOR = "no-generator"
"""Stands there where the call takes no generator in the release that it is judged for."""
WARNED = "warned"
"""Stands in ``remedy`` where the mode only warns: as what is wrong, or as what to do."""
ITEM_OF = "item of "
"""Stands in ``remedy`` before the argument of a trainer that takes its switch in a dictionary, with the item: the call has
that argument already, or is given it."""
LOADED_AT = "loaded at "
"""Stands in ``remedy`` before where the program loads a checkpoint in the file of the finding."""


class Severity(str, enum.Enum):
    """How bad it is; ``error``: the bits differ as written, or the program will raise."""

    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"

    @property
    def rank(self) -> int:
        """2 for error, 1 for warning, 0 for advice."""
        return _SEVERITY_RANK[self]


class Confidence(str, enum.Enum):
    """How sure the tool is; low confidence is off by default."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        """2 for high, 1 for medium, 0 for low."""
        return _CONFIDENCE_RANK[self]


_SEVERITY_RANK = {Severity.ERROR: 2, Severity.WARNING: 1, Severity.ADVICE: 0}
_CONFIDENCE_RANK = {Confidence.HIGH: 2, Confidence.MEDIUM: 1, Confidence.LOW: 0}


class Applicability(str, enum.Enum):
    """``safe``: the edit only makes results deterministic and cannot raise; ``display``: never applied."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"


class Edit(msgspec.Struct, frozen=True, order=True):
    """Replace the characters from ``start`` to ``end`` (offsets into ``Source.text``) by ``content``."""

    start: int
    end: int
    content: str


class Fix(msgspec.Struct, frozen=True):
    """A set of edits of one file that together fix a finding.

    ``path`` is that file where it is not the finding's own: a seed is set in the entry point, whichever module
    draws.
    """

    applicability: Applicability
    message: str
    edits: tuple[Edit, ...]
    path: str = ""


class Step(msgspec.Struct, frozen=True, order=True):
    """One step of a flow: from the entry point, call by call, to the place of the finding. What is only ``beside`` does
    not lead there: it says more of the finding."""

    path: str
    start: int
    end: int
    message: str
    beside: bool = False


OF_OPS = "of its ops only"
"""Begins what a message says of the ops of a program, where it stands on few of them."""


class Finding(msgspec.Struct, frozen=True):
    """One finding, as a check makes it.

    ``path`` is the file as discovery named it (absolute, with ``/``); ``start`` and ``end`` are offsets
    into that file's ``Source.text``. ``subject`` is what the finding is about in a stable word (the API
    or RNG): it feeds the fingerprint, which must not depend on line numbers. ``scope`` is the qualified
    name of the function around it. ``targets`` are the library versions the answer depends on, such as
    ``("torch 2.4", "pinned in requirements.txt:3")``, empty when it does not. ``op`` is the id of the
    knowledge entry of an op, by which measurements are joined; ``call`` is what is known of its call. ``remedy``
    holds words for the builder of the rule's fix, such as the argument that is missing. ``unless`` is what all programs of
    the project together may show (see ``base.entry_report``), or what is in its files, so that there is nothing to report.
    ``idle`` says that it is advice because no program calls the function that it is in.
    Where the remedy is PyTorch's deterministic mode, ``raising`` are the reported ops of the program that raise in it, and
    ``spared`` those that raise in it but are deterministic without it, with what can be used instead; ``unchanged`` are
    the reported ones that differ in it as they do without it.
    """

    code: str
    path: str
    start: int
    end: int
    message: str
    help: str
    severity: Severity
    confidence: Confidence = Confidence.HIGH
    subject: str = ""
    scope: str = ""
    entry_point: str | None = None
    flow: tuple[Step, ...] = ()
    fix: Fix | None = None
    targets: tuple[str, ...] = ()
    op: str = ""
    call: KnownCall | None = None
    evidence: dict[str, Any] | None = None
    remedy: tuple[str, ...] = ()
    unless: str = ""
    idle: bool = False
    raising: tuple[str, ...] = ()
    spared: tuple[tuple[str, str], ...] = ()
    unchanged: tuple[str, ...] = ()

    @property
    def fixed_path(self) -> str:
        """The file that the fix changes."""
        return self.fix.path or self.path if self.fix is not None else self.path

    @property
    def sort_key(self) -> tuple[str, int, int, str, str, str]:
        """Total order: path, place, code, then text, so that output never depends on discovery order."""
        return (self.path, self.start, self.end, self.code, self.subject, self.message)


def fingerprint(code: str, relative_path: str, scope: str, subject: str, occurrence: int) -> str:
    """A stable identity free of line numbers; ``occurrence`` counts equal ones from 0 in file order."""
    key = "\0".join((code, relative_path, scope, subject, str(occurrence)))
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
