"""Texts that would bring the parser down or keep it busy without end, refused by a count of their tokens.

libcst parses by recursion in native code: what nests deeply ends the process without an exception, what
is nested is copied once per level, and some constructs (patterns of ``match``, targets of ``del``) are
parsed again for every level around them, which takes time exponential in their depth. The counts below
are made in one pass over the tokens, before anything is parsed, and depend on the text alone.

They are no proof: texts are parsed in processes of their own, under a limit of CPU time (``store.pool``).
Only what ``is_simple`` admits is parsed here where no process can be started.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

LONGEST_CHAIN = 3000
"""How deep an expression may nest: its tokens since the last separator, at all levels of brackets."""

DEEPEST_BRACKETS = 200
"""Python itself refuses more nested brackets, and more nested blocks than the next number."""
DEEPEST_BLOCKS = 100

MOST_ARMS = 3000
"""How many ``elif`` a file may have; each is nested in the one before."""

LARGEST = 8_000_000
"""Characters of the largest text that is read."""

MOST_WORK = 4_000_000
"""What the tokens of a file may cost, those that are nested more: some three microseconds each."""

MOST_ATTEMPTS = 1_000_000
"""How often the tokens of patterns and ``del`` targets are read: some three microseconds each."""

_BRACKET = 8
"""A level of brackets nests the parser as deeply as so many operators in a row."""

_MESSAGE_CHAIN = "a statement is too long to be analyzed (thousands of chained operations)"


class Shape(NamedTuple):
    """What a text asks of the parser.

    ``nesting`` is the deepest path through an expression, in operators; ``brackets`` and ``blocks`` are the
    deepest nesting of each; ``arms`` counts ``elif``; ``work`` and ``attempts`` are described above.
    """

    nesting: int
    brackets: int
    blocks: int
    arms: int
    work: int
    attempts: int


def too_complex(text: str, pieces: Sequence[str]) -> str | None:
    """Why a text should not be given to the parser; None where nothing is against it.

    ``pieces`` are what stands between tokens and the tokens, in turns.
    """
    if len(text) > LARGEST:
        return f"the file is too large to be analyzed ({len(text):,} characters)"
    shape = measure(pieces)
    if shape.brackets > DEEPEST_BRACKETS:
        return f"the code is nested too deeply to be analyzed (more than {DEEPEST_BRACKETS} brackets)"
    if shape.blocks > DEEPEST_BLOCKS:
        return f"the code is nested too deeply to be analyzed (more than {DEEPEST_BLOCKS} blocks)"
    if shape.nesting > LONGEST_CHAIN or shape.arms > MOST_ARMS:
        return _MESSAGE_CHAIN
    if shape.attempts > MOST_ATTEMPTS:
        return "a pattern or `del` target is nested too deeply to be analyzed"
    if shape.work > MOST_WORK:
        return f"the file is too large to be analyzed ({len(pieces) // 2:,} tokens)"
    return None


def is_simple(text: str, pieces: Sequence[str]) -> bool:
    """Whether a text is so small and shallow that parsing it can neither end this process nor stall it."""
    if len(text) > 50_000 or not all(map(_is_plain, pieces[1::2])):
        return False
    shape = measure(pieces)
    return (
        shape.nesting <= 300
        and shape.brackets <= 10
        and shape.blocks <= 20
        and shape.arms <= 50
        and shape.attempts <= 10_000
    )


_KINDS = re.compile(r"\\\r?\n|[,;:\r\n]|[-+~]")
_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")
_QUOTED_FIELD = re.compile(r"\{[^{}]*['\"\\]")
_FORMATTED = re.compile(r"(?:[rR]?[fFtT]|[fFtT][rR])['\"]")


def measure(pieces: Sequence[str]) -> Shape:
    """Count what a text asks of the parser, in one pass over its tokens."""
    counter = _Counter()
    counter.read(pieces)
    return Shape(
        counter.nesting, counter.deepest, counter.blocks, counter.arms, counter.work, counter.attempts
    )


class _Counter:
    """The state of one pass."""

    def __init__(self) -> None:
        self.nesting = self.deepest = self.blocks = self.arms = self.work = self.attempts = 0

    def read(self, pieces: Sequence[str], within: int = 0, fields: bool = False) -> None:
        """Count the tokens of a text, or (``fields``) those in the braces of an f-string nested ``within``."""
        kinds: dict[str, tuple[str, int]] = {}
        count = within  # operators on the path to the current token, brackets around it included
        floor = within  # what of them belongs to the brackets around
        heads = 0  # parameter lists of lambdas that are open at this level: their commas end nothing
        outer: list[tuple[int, int, int]] = []
        indents = [0]
        work = attempts = 0
        weight = 0  # how often the current token of a pattern is read; 0 outside of patterns
        weights: list[int] = []
        pattern = ""
        start = True  # at the beginning of a logical line
        nesting = within
        tokens = iter(pieces)
        for piece in tokens:
            token = next(tokens, "")
            if piece and piece != " ":
                kind = kinds.get(piece)
                if kind is None:
                    kind = kinds[piece] = _kind(piece)
                marks, unary = kind
                count += unary
                for mark in marks:
                    if mark == ":":
                        heads -= heads > 0
                    elif mark == "\n":
                        work += 2
                        if not outer:
                            count, heads, start, weight = floor, 0, True, 0
                    elif not heads:  # a comma or a semicolon
                        count = floor
                if start and not outer and token and token[0] != "#":
                    _indent(indents, piece)
                    if len(indents) - 1 > self.blocks:
                        self.blocks = len(indents) - 1
            if not token:
                break
            if token[0] == "#" or (fields and not outer and token not in _OPENING):
                continue
            if start:
                start = False
                pattern = token if token in ("case", "del") else ""
                weight = 1 if pattern else 0
            elif weight and not outer and pattern == "case" and (token == "if" or "=" in piece):
                weight = 0  # a guard, or an assignment to a variable of this name
            if weight:
                attempts += weight
            work += 5 + 2 * len(outer) + (count >> 2)
            if token in _OPENING:
                outer.append((count, floor, heads))
                weights.append(weight)
                if weight:
                    weight = min(weight * (2 if token == "[" or pattern == "del" else 4), MOST_ATTEMPTS)
                count = floor = count + _BRACKET
                heads = 0
                if len(outer) > self.deepest:
                    self.deepest = len(outer)
            elif token in _CLOSING:
                if outer:
                    count, floor, heads = outer.pop()
                    weight = weights.pop()
                    count = floor if fields and not outer else count + 1
            else:
                count += 1
                if token == "lambda":
                    heads += 1
                elif token == "elif":
                    self.arms += 1
                elif token[-1] in "'\"" and "{" in token and _FORMATTED.match(token):
                    # One inside of others is copied for each of them.
                    work += 25 * token.count("{") + 4 * count
                    self._field(token, count, len(outer))
            if count > nesting:
                nesting = count
        self.nesting = max(self.nesting, nesting)
        self.work += work
        self.attempts += attempts

    def _field(self, token: str, within: int, brackets: int) -> None:
        """Count what stands in the fields of an f-string, as far as the text shows it."""
        if token.count("{") + token.count("(") + token.count("[") < 20 and len(token) < 500:
            return
        from d9mlint.frontend.tokens import split

        before, self.deepest = self.deepest, 0
        inside = token[_body(token) :].replace("{{", "  ").replace("}}", "  ")
        self.read(split(inside), within, fields=True)
        self.deepest = max(before, self.deepest + brackets)


def _is_plain(token: str) -> bool:
    """False for an f-string of which it is not certain that it ends where the token does."""
    if "{" not in token or not _FORMATTED.match(token):
        return True
    inside = token[_body(token) : -1].replace("{{", "").replace("}}", "")
    return inside.count("{") == inside.count("}") and not _QUOTED_FIELD.search(inside)


def _body(token: str) -> int:
    """Where the text of an f-string starts: behind its prefix and quotes."""
    quote = token.index(token[-1])
    return quote + (3 if token[quote : quote + 3] == token[-1] * 3 else 1)


def _kind(piece: str) -> tuple[str, int]:
    """The separators in a piece, in order, and how many of its operators may be unary."""
    marks: list[str] = []
    unary = 0
    for mark in _KINDS.findall(piece.replace(":=", "")):
        if mark in "-+~":
            unary += 1
        elif mark[0] != "\\":
            marks.append("\n" if mark == "\r" else mark)
    return "".join(marks), unary


def _indent(indents: list[int], piece: str) -> None:
    """Note the indentation of a logical line, which stands at the end of the piece before it."""
    line = piece[max(piece.rfind("\n"), piece.rfind("\r")) + 1 :]
    width = len(line) - len(line.lstrip(" \t\f"))
    while width < indents[-1]:
        indents.pop()
    if width > indents[-1]:
        indents.append(width)
