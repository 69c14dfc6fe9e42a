"""Ignore patterns in the language of ``.gitignore``.

A matcher of its own because a warm run has some hundred milliseconds in all, and importing a general
library takes forty of them. The tests compare it with ``git check-ignore``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple


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
        regex = re.compile(("" if anchored else "(?:.*/)?") + _translate(text) + r"\Z", re.DOTALL)
    except re.error:
        return None
    return Pattern(regex, negated, directory_only)


def _translate(glob: str) -> str:
    out: list[str] = []
    i = 0
    while i < len(glob):
        char = glob[i]
        if glob.startswith("**/", i) and (i == 0 or glob[i - 1] == "/"):
            out.append("(?:.*/)?")
            i += 3
        elif glob.startswith("/**", i) and i + 3 == len(glob):
            out.append("/.+")
            i += 3
        elif glob == "**":
            return ".*"
        elif char == "*":
            while glob.startswith("**", i):
                i += 1
            out.append("[^/]*")
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
    return "".join(out)


def _class_end(glob: str, start: int) -> int:
    i = start + 1
    if glob[i : i + 1] in ("!", "^"):
        i += 1
    if glob[i : i + 1] == "]":
        i += 1
    return glob.find("]", i)
