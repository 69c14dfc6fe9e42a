"""A fix together with what was read to build it: it is the same again where all of that reads the same."""

from __future__ import annotations

from typing import Literal

import msgspec

from d9mlint.base.findings import Fix

ReadKind = Literal["file", "entry", "place", "others", "own", "version", "versions"]


class FixRead(msgspec.Struct, frozen=True, array_like=True):
    """Something that was read for a fix, and a digest of what it was: the content of a ``file``; the findings whose
    ``entry`` point, or whose ``place``, is a file; whether files other than one contain some text (``others``);
    whether a file is judged by a ``version`` in a range, or all files are (``versions``)."""

    kind: ReadKind
    name: str
    answer: str


class KnownFix(msgspec.Struct, frozen=True, array_like=True):
    """The fix of a finding, None where none could be built, and what that depends on beside the finding."""

    reads: tuple[FixRead, ...]
    fix: Fix | None
