"""Text on its way out: what is linted must not steer a terminal, a CI log, or the program that reads a report."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import TextIO

COMPLETE = "_D9MLINT_COMPLETE"
"""The variable by which a shell asks for completions."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_COMMAND = re.compile(r"^(\s*)::", re.MULTILINE)
LONGEST = 1500
"""Characters of the longest message; names and values of a project may be of any length."""
_BREAK = "\N{ZERO WIDTH SPACE}"


def clean(text: str) -> str:
    """Text with control characters replaced by visible signs."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _stand_in(c) for c in text)


def _stand_in(char: str) -> str:
    code = ord(char)
    if code < 32:
        return chr(0x2400 + code)
    return "\u2421" if code == 127 else "\N{REPLACEMENT CHARACTER}"


def clean_patch(text: str) -> str:
    """A patch to be looked at: lines and tabs stay, and carriage returns at the ends of lines."""
    lines = []
    for line in text.split("\n"):
        body = line.removesuffix("\r")
        lines.append("\t".join(map(clean, body.split("\t"))) + line[len(body) :])
    return "\n".join(lines)


def say(message: str) -> None:
    """Print one line on standard error. What cannot be printed there is no reason to fail."""
    line = clean(re.sub(r"\s*\n\s*", " ", message.strip()))
    if len(line) > LONGEST:
        line = f"{line[: LONGEST - 1]}…"
    level, colon, rest = line.partition(":")
    if colon and level in _LEVELS and wants_color(sys.stderr):
        line = f"\x1b[{_LEVELS[level]}m{level}\x1b[0m:{rest}"
    try:
        print(inert(line) if in_workflow() else line, file=sys.stderr, flush=True)
    except OSError:
        close_stream(2)
    except AttributeError:
        # There is no standard error at all.
        pass


_LEVELS = {"error": "1;31", "warning": "1;33"}
"""Words that begin a line on standard error, with their colors on a terminal."""


def wants_color(stream: TextIO | None) -> bool:
    """Whether what is written to a stream is colored, by the environment and by what the stream is."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE", "0") != "0":
        return True
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def in_workflow() -> bool:
    """Whether lines of output can be commands to the runner of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def inert(text: str, output_format: str = "") -> str:
    """A report for the log of a workflow, of which no line is a command; that of ``github`` is made of them.

    JSON and XML stay the same data; in text an invisible character is put into what looks like a command.
    """
    if output_format in ("json", "json-lines", "sarif", "gitlab", "rdjson"):
        # A number sign is always inside of a string there.
        return text.replace("##[", "#\\u0023[")
    if output_format in ("junit", "html"):
        return text.replace("##[", "#&#35;[")
    text = text.replace("##[", f"#{_BREAK}#[")
    return text if output_format == "github" else _COMMAND.sub(rf"\1:{_BREAK}:", text)


def encode(text: str) -> bytes:
    """Text as valid UTF-8: each byte of a file's name that is not UTF-8 becomes a replacement character."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text).encode("utf-8")


def close_stream(number: int) -> None:
    """Send what is still buffered for a broken standard stream nowhere, so that Python does not try again."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, number)
        os.close(null)
    except OSError:
        pass


def listed(words: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def shortened(words: Sequence[str], most: int) -> str:
    """``a, b, c``, or, where there are more than ``most``, ``a, b and 3 more``."""
    shown = ", ".join(words[:most])
    return f"{shown} and {len(words) - most} more" if len(words) > most else shown


def count(number: int, word: str, plural: str = "") -> str:
    """``1 file``, ``2 files``."""
    return f"{number} {word}" if number == 1 else f"{number} {plural or word + 's'}"
