"""Texts that would bring the parser down, told by their tokens before it sees them.

libcst builds its trees by recursion in native code: a few thousand nested or chained operations take
time growing with the square of their number, or end the process without an exception.
"""

from __future__ import annotations

import re

LIMIT = 1500
"""As many nested or chained operations in one statement are still read."""

LARGEST = 5_000_000
"""Characters of the largest text that is read (the largest modules written by hand have 500,000)."""

_PIECE = re.compile(
    r"[rRbBuUfFtT]{0,2}(?:'''[^'\\]*(?:(?:\\[\s\S]|'(?!''))[^'\\]*)*'''"
    r'|"""[^"\\]*(?:(?:\\[\s\S]|"(?!""))[^"\\]*)*"""'
    r"|'[^'\\\n]*(?:\\[\s\S][^'\\\n]*)*'"
    r'|"[^"\\\n]*(?:\\[\s\S][^"\\\n]*)*")'
    r"|\#[^\r\n]*|[(\[{]|[)\]}]|\r?\n|\\\r?\n|[,;:]"
    r"|[-+*/%@&|^~<>=!.]+|\b(?:and|or|not|in|is|if|elif|else|for|lambda|await)\b"
)


def too_complex(text: str) -> str | None:
    """Why a text should not be given to the parser; None where nothing is against it."""
    if len(text) > LARGEST:
        return f"the file is too large to be analysed ({len(text):,} characters)"
    return None
