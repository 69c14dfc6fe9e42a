"""Ignore patterns in the language of ``.gitignore``.

A matcher of its own because a warm run has some hundred milliseconds in all, and importing a general
library takes forty of them. The tests compare it with ``git check-ignore``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import count
from typing import NamedTuple

from d9mlint.base.paths import read_limited

LONGEST = 5000
"""Characters of the longest pattern; no path is as long."""


class Pattern(NamedTuple):
    """One line of an ignore file; ``regex`` is matched against the path below the file's directory."""

    regex: re.Pattern[str]
    negated: bool
    directory_only: bool


class Ignore(NamedTuple):
    """The patterns of one ignore file, last one first, and the directory they are relative to."""

    base: str
    patterns: tuple[Pattern, ...]

    def verdict(self, path: str, is_directory: bool) -> bool | None:
        """Whether a path below ``base`` is ignored; None when no pattern speaks of it."""
        relative = path[len(self.base.rstrip("/")) + 1 :]
        for pattern in self.patterns:
            if (is_directory or not pattern.directory_only) and pattern.regex.match(relative):
                return not pattern.negated
        return None


def make_ignore(base: str, lines: Iterable[str]) -> Ignore:
    """Compile the lines of an ignore file that lies in ``base`` (absolute, with slashes)."""
    compiled = [p for p in map(compile_pattern, lines) if p is not None]
    return Ignore(base, tuple(reversed(compiled)))


def read_ignore(directory: str) -> Ignore:
    """The ignore file of a directory; one that is not there or cannot be read ignores nothing."""
    return make_ignore(directory, read_lines(os.path.join(directory, ".gitignore")))


def read_lines(path: str) -> list[str]:
    """The lines of an ignore file; none of one that cannot be read."""
    try:
        if os.path.islink(path):
            return []  # git does not follow it either
        return read_limited(path).decode("utf-8", "replace").splitlines()
    except OSError:
        return []


def ignored(stack: Iterable[Ignore], path: str, is_directory: bool) -> bool:
    """Whether the innermost ignore file that speaks of a path ignores it; ``stack`` is outermost first."""
    for ignore in reversed(list(stack)):
        verdict = ignore.verdict(path, is_directory)
        if verdict is not None:
            return verdict
    return False


@lru_cache(maxsize=4096)
def compile_pattern(line: str) -> Pattern | None:
    """One line of an ignore file; None for a comment, a blank line or a malformed pattern."""
    if len(line) > LONGEST:
        return None
    text = line.rstrip("\r\n")
    stripped = text.rstrip(" \t")
    # A blank that is escaped by a backslash belongs to the pattern.
    text = stripped + " " if stripped.endswith("\\") and stripped != text else stripped
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[1:] if negated else text
    directory_only = text.endswith("/")
    text = text.rstrip("/") if directory_only else text
    anchored = "/" in text
    text = text.removeprefix("/")
    if not text:
        return None
    try:
        regex = re.compile(_translate(text, anchored), re.DOTALL)
    except re.error:
        return None
    return Pattern(regex, negated, directory_only)


def _translate(glob: str, anchored: bool) -> str:
    """The regular expression of a pattern; it is matched in time proportional to the path.

    A star is followed at once by the first place at which what stands behind it matches, and never by a later
    one: if the rest does not match after the first place, it does not match after any other, as a star matches
    everything within a component and ``**/`` any number of components. Without that, n stars take time that
    grows with the n-th power of the name.
    """
    parts = _split(glob)
    if not anchored:
        parts.insert(0, "**/")
    groups: list[list[str]] = [[]]
    for part in parts:
        if part == "**/":
            groups.append([])
        else:
            groups[-1].append(part)
    references = count(1)
    out = [_group(groups[0], references, last=len(groups) == 1)]
    for index, group in enumerate(groups[1:], 1):
        last = index == len(groups) - 1
        if not last and not group:
            continue
        if last:
            out.append("(?:.*/)?" + _group(group, references, last=True))
        else:
            number = next(references)
            out.append(rf"(?=((?:[^/]*/)*?{_group(group, references, last=False)}))\{number}")
    return "".join(out) + r"\Z"


def _group(parts: list[str], references: Iterator[int], *, last: bool) -> str:
    """What matches the parts between two ``**/``: stars and single characters."""
    chunks: list[list[str]] = [[]]
    for part in parts:
        if part == "*":
            chunks.append([])
        else:
            chunks[-1].append(part)
    out = ["".join(chunks[0])]
    for index, chunk in enumerate(chunks[1:], 1):
        text = "".join(chunk)
        if index == len(chunks) - 1 and (last or not chunk):
            out.append("[^/]*" + text)
        elif chunk:
            number = next(references)
            out.append(rf"(?=([^/]*?{text}))\{number}")
    return "".join(out)


def _split(glob: str) -> list[str]:
    """The parts of a pattern: ``**/``, ``*``, and expressions of one character (or of a trailing ``/**``)."""
    out: list[str] = []
    i = 0
    while i < len(glob):
        char = glob[i]
        if glob.startswith("**/", i) and (i == 0 or glob[i - 1] == "/"):
            out.append("**/")
            i += 3
        elif glob.startswith("/**", i) and i + 3 == len(glob):
            out.append("/.+")
            i += 3
        elif glob == "**":
            return [".*"]
        elif char == "*":
            while glob.startswith("**", i):
                i += 1
            out.append("*")
            i += 1
        elif char == "?":
            out.append("[^/]")
            i += 1
        elif char == "[":
            end = _class_end(glob, i)
            if end < 0:
                out.append(r"\[")
                i += 1
            else:
                body = glob[i + 1 : end]
                negation = "^" if body[:1] in ("!", "^") else ""
                body = body[1:] if negation else body
                body = body.replace("\\", r"\\").replace("[", r"\[").replace("&&", r"&\&")
                out.append(f"(?!/)[{negation}{body}]")
                i = end + 1
        elif char == "\\" and i + 1 < len(glob):
            out.append(re.escape(glob[i + 1]))
            i += 2
        else:
            out.append(re.escape(char))
            i += 1
    return out


def _class_end(glob: str, start: int) -> int:
    i = start + 1
    if glob[i : i + 1] in ("!", "^"):
        i += 1
    if glob[i : i + 1] == "]":
        i += 1
    return glob.find("]", i)
