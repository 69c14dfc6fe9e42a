"""Texts that would bring the parser down, told by their tokens before it sees them.

libcst builds its trees by recursion in native code. Some thousand nested or chained operations in one
statement take it time growing with the square of their number, and 10,000 end the process without an
exception. Python itself refuses more than 200 nested brackets.
"""

from __future__ import annotations

from collections.abc import Sequence

LONGEST_CHAIN = 3000
"""So many tokens may stand at one level of brackets without a comma, a semicolon or a new statement."""

DEEPEST_BRACKETS = 200
MOST_ARMS = 3000
"""So many ``elif`` may a file have; each is nested in the one before."""

LARGEST = 8_000_000
"""Characters of the largest text that is read."""

_SEPARATOR = -1
_NEWLINE = -2


def too_complex(text: str, pieces: Sequence[str]) -> str | None:
    """Why a text should not be given to the parser; None where nothing is against it.

    ``pieces`` are what stands between tokens and the tokens, in turns.
    """
    if len(text) > LARGEST:
        return f"the file is too large to be analyzed ({len(text):,} characters)"
    between, tokens = pieces[0::2], pieces[1::2]
    kinds = {piece: _kind(piece) for piece in set(between)}
    if len(tokens) < DEEPEST_BRACKETS and max(kinds.values()) < LONGEST_CHAIN:
        return None
    longest, deepest = _measure(between, tokens, kinds)
    if deepest > DEEPEST_BRACKETS:
        return f"the code is nested too deeply to be analyzed (more than {DEEPEST_BRACKETS} brackets)"
    if longest > LONGEST_CHAIN or tokens.count("elif") > MOST_ARMS:
        return "a statement is too long to be analyzed (thousands of chained operations)"
    return None


def _kind(piece: str) -> int:
    """A separator, a newline, or the number of operators that may be unary."""
    if "," in piece or ";" in piece:
        return _SEPARATOR
    if "\n" in piece or "\r" in piece:
        return _NEWLINE
    return piece.count("-") + piece.count("+") + piece.count("~")


def _measure(between: Sequence[str], tokens: Sequence[str], kinds: dict[str, int]) -> tuple[int, int]:
    """The longest chain and the deepest nesting of brackets."""
    longest = deepest = count = 0
    outer: list[int] = []
    for piece, token in zip(between, tokens, strict=False):
        kind = kinds[piece]
        if kind:
            if kind > 0:
                count += kind
            elif kind == _SEPARATOR or not outer:
                if count > longest:
                    longest = count
                count = 0
        if token in _OPENING:
            outer.append(count + 1)
            count = 0
            if len(outer) > deepest:
                deepest = len(outer)
        elif token in _CLOSING:
            if count > longest:
                longest = count
            count = outer.pop() if outer else 0
        else:
            count += 1
    return max(longest, count), deepest


_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")
