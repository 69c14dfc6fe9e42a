"""Versions and version ranges as the knowledge base writes them: ``>=1.7,<2.10``, ``torch>=1.13``, ``any``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

_CLAUSE = re.compile(r"^\s*([A-Za-z_][\w.-]*)?\s*(>=|<=|==|!=|~=|>|<)\s*v?([\w.!+*-]+)\s*$")


DIGITS = 30
"""No part of a version has more; Python refuses to read a number of thousands of digits."""


@lru_cache(maxsize=4096)
def parse(version: str) -> tuple[int, ...]:
    """The release part of a version as numbers: ``2.13.0+cu126`` is (2, 13, 0); empty when there is none."""
    found = re.match(r"\s*v?(?:\d+!)?(\d+(?:\.\d+)*)", version)
    return tuple(int(part[:DIGITS]) for part in found.group(1).split(".")) if found else ()


def compare(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """-1, 0 or 1; missing parts count as zero."""
    width = max(len(a), len(b))
    left, right = a + (0,) * (width - len(a)), b + (0,) * (width - len(b))
    return (left > right) - (left < right)


def keep_oldest(known: dict[str, str], new: Mapping[str, str]) -> None:
    """Add releases by library; of two of one library the older one stays, of two lower bounds the newer one."""
    for library, version in new.items():
        order = compare(parse(version), parse(known[library])) if library in known else -1
        if library not in known or (order > 0 if is_lower_bound(library) else order < 0):
            known[library] = version


def at_least(library: str) -> str:
    """What stands in place of a library's name where a release is the oldest one that a program can use."""
    return f"{library}>="


def is_lower_bound(name: str) -> bool:
    """Whether it is such a name."""
    return name.endswith(">=")


def at_most(library: str) -> str:
    """What stands in place of a library's name where a release is the newest one with which a program can have run."""
    return f"{library}<="


def is_upper_bound(name: str) -> bool:
    """Whether it is such a name."""
    return name.endswith("<=")


def _first(version: tuple[int, ...], number: int) -> tuple[int, ...]:
    """The first parts of a version; missing parts count as zero."""
    return version[:number] + (0,) * (number - len(version))


@lru_cache(maxsize=4096)
def split(spec: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """A range as (library named in it or ``""``, clauses of operator and version).

    Raises ValueError for text that is no range.
    """
    text = spec.strip()
    if text in ("", "any", "*"):
        return "", ()
    library = ""
    clauses: list[tuple[str, str]] = []
    for part in text.split(","):
        found = _CLAUSE.match(part)
        if found is None:
            raise ValueError(f"not a version range: {spec!r}")
        library = library or (found.group(1) or "")
        clauses.append((found.group(2), found.group(3)))
    return library, tuple(clauses)


@lru_cache(maxsize=16384)
def matches(spec: str, version: str) -> bool:
    """Whether a version lies in a range; a library name in the range is not looked at."""
    have = parse(version)
    for operator, wanted in split(spec)[1]:
        want = parse(wanted)
        if operator in ("==", "!=") and wanted.endswith(".*"):
            equal = _first(have, len(want)) == want
        else:
            equal = compare(have, want) == 0
        order = compare(have, want)
        if operator == "~=":
            holds = order >= 0 and _first(have, len(want) - 1) == want[:-1]
        else:
            holds = {
                ">=": order >= 0,
                "<=": order <= 0,
                ">": order > 0,
                "<": order < 0,
                "==": equal,
                "!=": not equal,
            }[operator]
        if not holds:
            return False
    return True
