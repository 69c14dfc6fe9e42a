"""Where the significant tokens of a text are: one regular expression, no tree.

Significant are identifiers and keywords, numbers, strings, brackets and ``...``. Operators, commas,
colons and comments are left out: an expression hardly ever starts or ends with one of them, and which
of them are there the tree says. The lowering walks the tree in source order and takes one token after
the other, so a node's position costs one list look-up.

An f-string is the tokens: opening (prefix and quotes), every run of constant text (with empty text, so
that it is no identifier), the tokens of its replacement fields, closing quotes.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import NamedTuple

_NUMBER = (
    r"0[xX](?:_?[0-9a-fA-F])+|0[bB](?:_?[01])+|0[oO](?:_?[0-7])+"
    r"|(?:[0-9]+(?:_[0-9]+)*(?:\.(?:[0-9]+(?:_[0-9]+)*)?)?|\.[0-9]+(?:_[0-9]+)*)"
    r"(?:[eE][+-]?[0-9]+(?:_[0-9]+)*)?[jJ]?"
)
_QUOTED = (
    r"'''[^'\\]*(?:(?:\\[\s\S]|'(?!''))[^'\\]*)*'''"
    r'|"""[^"\\]*(?:(?:\\[\s\S]|"(?!""))[^"\\]*)*"""'
    r"|'[^'\\]*(?:\\[\s\S][^'\\]*)*'"
    r'|"[^"\\]*(?:\\[\s\S][^"\\]*)*"'
)
_TOKEN = (
    r"[()\[\]{}]"
    rf"|(?:[rR][bBfFtT]?|[bBfFtT][rR]?|[uU])?(?:{_QUOTED})"
    r"|[^\W\d]\w*"
    rf"|{_NUMBER}"
    r"|\#[^\r\n]*"
    r"|\.\.\."
)
_SPLIT = re.compile(rf"({_TOKEN})")
_SEARCH = re.compile(_TOKEN)
_IN_FIELD = re.compile(rf"{_TOKEN}|!=|[:!]")
_CONVERSION = re.compile(r"[ \t\f]*\w+")
_FORMATTED = re.compile(r"(?:[rR]?[fFtT]|[fFtT][rR])('''|\"\"\"|'|\")")


class Tokens(NamedTuple):
    """Parallel lists: where each token starts, where it ends, its text; then the offsets of comments."""

    starts: list[int]
    ends: list[int]
    texts: list[str]
    comments: list[tuple[int, str]]


class Desync(Exception):
    """The tokens of the text and the nodes of the tree don't agree."""


def split(text: str) -> list[str]:
    """What stands between tokens and the tokens (comments are tokens here), in turns."""
    return _SPLIT.split(text)


def scan(text: str, pieces: list[str]) -> Tokens:
    """All significant tokens of ``text``, which is taken to be correct Python; ``pieces`` are its split."""
    bounds = list(accumulate(map(len, pieces)))
    starts, ends, texts = bounds[0:-1:2], bounds[1::2], pieces[1::2]
    comments: list[tuple[int, str]] = []
    if "#" in text:
        comments = [(start, t) for start, t in zip(starts, texts, strict=True) if t[0] == "#"]
        if comments:
            keep = [t[0] != "#" for t in texts]
            starts = [s for s, k in zip(starts, keep, strict=True) if k]
            ends = [e for e, k in zip(ends, keep, strict=True) if k]
            texts = [t for t, k in zip(texts, keep, strict=True) if k]
    formatted = [
        k for k, t in enumerate(texts) if t[-1] in "'\"" and t[0] in "fFtTrR" and _FORMATTED.match(t)
    ]
    if not formatted:
        return Tokens(starts, ends, texts, comments)
    out = Tokens([], [], [], comments)
    done = 0
    for k in formatted:
        out.starts.extend(starts[done:k])
        out.ends.extend(ends[done:k])
        out.texts.extend(texts[done:k])
        if _formatted(text, starts[k], out) != ends[k]:  # quotes inside a field that are those of the string
            return _scan_stepwise(text)
        done = k + 1
    out.starts.extend(starts[done:])
    out.ends.extend(ends[done:])
    out.texts.extend(texts[done:])
    return out


def _scan_stepwise(text: str) -> Tokens:
    """The same for texts with f-strings that only Python 3.12 and later can read: token after token."""
    out = Tokens([], [], [], [])
    pos = 0
    while match := _SEARCH.search(text, pos):
        pos = _take(text, match, out)
    return out


def _take(text: str, match: re.Match[str], out: Tokens) -> int:
    """Write down one matched token (an f-string: several) and say where it ends."""
    token = match[0]
    if token[0] == "#":
        out.comments.append((match.start(), token))
        return match.end()
    if _FORMATTED.match(token):
        return _formatted(text, match.start(), out)
    _put(out, match.start(), match.end(), token)
    return match.end()


def _put(out: Tokens, start: int, end: int, token: str) -> None:
    out.starts.append(start)
    out.ends.append(end)
    out.texts.append(token)


def _formatted(text: str, start: int, out: Tokens) -> int:
    """The tokens of the f-string that starts at ``start``; its end."""
    opening = _FORMATTED.match(text, start)
    if opening is None:
        raise Desync
    quote = opening[1]
    raw = opening[0][:2].lower().find("r") >= 0
    _put(out, start, opening.end(), opening[0])
    pos = _text(text, opening.end(), out, _chunk(quote, raw, spec=False))
    while not text.startswith(quote, pos):
        if not text.startswith("{", pos):
            raise Desync
        pos = _field(text, pos + 1, out, quote, raw)
        pos = _text(text, pos, out, _chunk(quote, raw, spec=False))
    _put(out, pos, pos + len(quote), quote)
    return pos + len(quote)


_CHUNKS: dict[tuple[str, bool, bool], re.Pattern[str]] = {}


def _chunk(quote: str, raw: bool, *, spec: bool) -> re.Pattern[str]:
    """What matches a run of constant text inside an f-string (or inside a format specification)."""
    pattern = _CHUNKS.get((quote, raw, spec))
    if pattern is None:
        char = quote[0]
        choices = [rf"[^{{}}\\{char}]"]
        if not raw:
            choices.append(r"\\N\{[^}]*\}")
        choices += [r"\\[^{}]", r"\\(?=[{}])"]
        if not spec:
            choices += [r"\{\{", r"\}\}"]
        if len(quote) == 3:
            choices.append(rf"{char}(?!{char}{char})")
        pattern = _CHUNKS[quote, raw, spec] = re.compile(f"(?:{'|'.join(choices)})+")
    return pattern


def _text(text: str, pos: int, out: Tokens, chunk: re.Pattern[str]) -> int:
    match = chunk.match(text, pos)
    if match is None:
        return pos
    _put(out, pos, match.end(), "")
    return match.end()


def _field(text: str, pos: int, out: Tokens, quote: str, raw: bool) -> int:
    """The tokens of a replacement field, from behind its brace to behind its closing one."""
    depth = 0
    while match := _IN_FIELD.search(text, pos):
        token = match[0]
        pos = match.end()
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
            if depth < 0:
                return pos
        elif token == "!=":
            continue
        elif token in ":!":
            if depth == 0:
                return _format(text, pos, out, quote, raw, conversion=token == "!")
            continue
        if token[0] in "([{)]}":
            _put(out, match.start(), pos, token)
        else:
            pos = _take(text, match, out)
    raise Desync


def _format(text: str, pos: int, out: Tokens, quote: str, raw: bool, *, conversion: bool) -> int:
    """Conversion and format specification of a field, up to behind its closing brace."""
    if conversion:
        named = _CONVERSION.match(text, pos)
        if named is None:
            raise Desync
        pos = named.end()
        while text[pos : pos + 1] in " \t\f\r\n" and pos < len(text):
            pos += 1
        if text.startswith(":", pos):
            pos += 1
    chunk = _chunk(quote, raw, spec=True)
    pos = _text(text, pos, out, chunk)
    while not text.startswith("}", pos):
        if not text.startswith("{", pos):
            raise Desync
        pos = _field(text, pos + 1, out, quote, raw)
        pos = _text(text, pos, out, chunk)
    return pos + 1
