"""What the analysis of an entry point followed, and what it did not."""

from __future__ import annotations

from typing import Literal

import msgspec

GapKind = Literal[
    "dynamic-call",
    "project-import",
    "library-call",
    "left-to-library",
    "failing-call",
    "failing-subscript",
    "undefined-name",
    "device",
    "constant",
    "budget",
]

BY_CONFIGURATION = "is decided by the configuration"
"""Part of the text of a call that is decided at run time, where a configuration names what it makes."""
BY_ATTRIBUTE = "is decided at run time by the name of an attribute"
"""The same, where a function that is called is an attribute of an object or a library's module."""


class Gap(msgspec.Struct, frozen=True, order=True):
    """Something that a run did not follow and that may matter: a call whose target is not known, an import that
    no project file answers, a library function that nothing is known of and that receives a model, loss, loader,
    optimizer, or a dataset or environment of the program, code that only a library is seen to use, a call or subscript
    that raises TypeError, a device that could not be determined, a branch that a constant in the code leaves out, or
    what was cut by a budget. ``text`` says which."""

    path: str
    start: int
    end: int
    kind: GapKind
    text: str


class Coverage(msgspec.Struct, frozen=True):
    """What was followed from one entry point: its file and, for a console script, its function. Statements are
    those of the project files that it runs; not followed are those in functions that it was not seen to call."""

    entry: str
    function: str
    files: int
    followed: int
    not_followed: int
    gaps: tuple[Gap, ...]


class Cut(msgspec.Struct, frozen=True, order=True):
    """Where a run was cut off: why, and the place."""

    reason: str
    path: str
    start: int
    end: int
