"""Texts of which only the beginning is known, and perhaps of which pieces the rest consists: what tests of them give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from d9mlint.interp import values as v

_PIECES = "@pieces"
"""Attribute of a text: the pieces, between dots, of which it consists behind its beginning. Numbers may be among them."""


def text_of_pieces(beginning: str, pieces: Sequence[str] | None) -> v.Obj:
    """A text with a known beginning, and pieces between dots behind it; None where any text may follow."""
    made = v.text(v.Lit(beginning), v.UNKNOWN)
    if pieces is not None:
        made.attrs[_PIECES] = v.Items("l", [v.Lit(one) for one in pieces])
    return made


def begins(text: v.Obj, wanted: str) -> bool | None:
    """Whether a text begins with another one."""
    known = v.beginning_of(text)
    if known.startswith(wanted):
        return True
    if not wanted.startswith(known):
        return False
    rest, pieces = wanted[len(known) :].split("."), _pieces(text)
    if pieces is None or any(one.isdigit() or one in pieces for one in rest[:-1]) or not known.endswith("."):
        return None
    return None if rest[0].isdigit() or any(one.startswith(rest[0]) for one in pieces) else False


def ends(text: v.Obj, wanted: str) -> bool | None:
    """Whether a text ends with another one."""
    if not v.may_be(text, v.beginning_of(text) + wanted):
        return False
    last, pieces = wanted.rpartition(".")[2], _pieces(text)
    if pieces is None or not last or last.isdigit():
        return None
    return None if any(one.endswith(last) for one in pieces) else False


def has_in(text: v.Obj, wanted: str) -> bool | None:
    """Whether another text is in a text."""
    known = v.beginning_of(text)
    if wanted in known:
        return True
    pieces = _pieces(text)
    if pieces is None or not wanted:
        return None
    first, dot, rest = wanted.partition(".")
    everywhere = [*known.split("."), *pieces]
    if dot:
        found = first.isdigit() or not first or any(one.endswith(first) for one in everywhere)
        after = rest.partition(".")[0]
        found = found and (
            not after or after[0].isdigit() or any(one.startswith(after) for one in everywhere)
        )
    else:
        found = first.isdigit() or any(first in one for one in everywhere)
    return None if found else False


def each(wanted: v.Value) -> Iterator[str | None]:
    """The texts that a test is for, one or a tuple of them; None for one that is not known."""
    for one in wanted.elts if isinstance(wanted, v.Items) and not wanted.open else [wanted]:
        yield one.value if isinstance(one, v.Lit) and isinstance(one.value, str) else None


def any_of(answers: Sequence[bool | None]) -> bool | None:
    """Whether one of several answers is yes."""
    return True if True in answers else None if None in answers else False


def _pieces(text: v.Obj) -> list[str] | None:
    held = text.attrs.get(_PIECES)
    return [one.value for one in held.elts if isinstance(one, v.Lit)] if isinstance(held, v.Items) else None
