"""Commands that a program runs, as a list of words or as one text: which program they start, and with which words."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise

from d9mlint.interp import values as v

_HOLE = "\0"
"""Stands for a word, or a part of one, that is not known."""
_SPLIT = "shlex.split"
_MODULE = "-m"
_VARIABLE = re.compile(r"[A-Za-z_]\w*=")


def runs(value: v.Value, name: str) -> bool | None:
    """Whether a command starts a program of this name, or Python with a module of this name or below it."""
    words, more = _words(value)
    while words and _VARIABLE.match(words[0]):
        words = words[1:]
    if not words:
        return None
    if _last(words[0]) == name:
        return True
    python = False
    for one, after in pairwise(words):
        python = python or _HOLE in one or _last(one).startswith("python")
        if one == _MODULE and python:
            return after.partition(".")[0] == name or (None if _HOLE in after else False)
    return None if more or _HOLE in words[0] else False


def has_words(value: v.Value, wanted: str) -> bool | None:
    """Whether a command has some words in a row; ``=`` parts words as a space does."""
    words, more = _words(value)
    if not words:
        return None
    parts = [part for word in words for part in word.split("=")]
    wished = wanted.split()
    found: bool | None = None if more else False
    for at in range(len(parts)):
        given = parts[at : at + len(wished)]
        if given == wished:
            return True
        # An unknown word may be a value of the option, not the option.
        after = zip(given[1:], wished[1:], strict=False)
        if given[0] == wished[0] and all(one == other or _HOLE in one for one, other in after):
            found = None if more or len(given) == len(wished) else found
    return found


def _last(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2].removesuffix(".exe")


def _words(value: v.Value) -> tuple[list[str], bool]:
    """The words of a command as far as they are known, and whether there may be more of them."""
    if isinstance(value, v.Items):
        return [_text(one) for one in value.elts], value.open
    if isinstance(value, v.Obj) and value.api == _SPLIT and value.args.pos:
        return _words(value.args.pos[0])
    if isinstance(value, v.Lit) and isinstance(value.value, str):
        return _split(value.value), False
    if isinstance(value, v.Obj) and value.api == v.TEXT:
        written = value.attrs.get(v.WRITTEN)
        if isinstance(written, v.Items):
            return _split("".join(map(_text, written.elts))), False
        return _split(f"{v.beginning_of(value)}{_HOLE}"), True
    return [], True


def _text(value: v.Value) -> str:
    return str(value.value) if isinstance(value, v.Lit) and isinstance(value.value, (str, int)) else _HOLE


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
