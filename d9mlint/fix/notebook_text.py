"""Edits of cells in the text of a notebook: all else stays as it was written, byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class Span(NamedTuple):
    """A value in a JSON text, from its first character to the one behind its last."""

    start: int
    end: int


def span_of(text: str, *path: str | int) -> Span | None:
    """The value under keys and indices; None where there is none."""
    span: Span | None = _value(text, _next(text, 0))
    for step in path:
        if span is None:
            return None
        if isinstance(step, str):
            members = _members(text, span) if text[span.start] == "{" else ()
            span = next((value for key, value in members if key == step), None)
        else:
            elements = list(_elements(text, span)) if text[span.start] == "[" else []
            span = elements[step] if step < len(elements) else None
    return span


def with_source(text: str, span: Span, source: str) -> str:
    """A notebook's text with another source of a cell, which is the value at a place. It is written as the old one was: in
    one string or a list of lines, escaped or not, with the same characters between the lines."""
    old = text[span.start : span.end]
    escaped = old.isascii() and "\\u" in old
    if not old.startswith("["):
        return text[: span.start] + json.dumps(source, ensure_ascii=escaped) + text[span.end :]
    spans = list(_elements(text, span))
    # Lines that stay are left as they are written.
    known = {_DECODER.decode(text[one.start : one.end]): text[one.start : one.end] for one in spans}
    lines = re.findall(r"[^\n]*\n|[^\n]+", source)
    written = [known.get(line) or json.dumps(line, ensure_ascii=escaped) for line in lines]
    begin, end = _around(text, span)
    if spans:
        begin, end = text[span.start + 1 : spans[0].start], text[spans[-1].end : span.end - 1]
    between = text[spans[0].end : spans[1].start] if len(spans) > 1 else f",{begin or ' '}"
    new = f"[{begin}{between.join(written)}{end}]" if written else "[]"
    return text[: span.start] + new + text[span.end :]


def _around(text: str, span: Span) -> tuple[str, str]:
    """What stands in front of the first and behind the last line of a list that has none yet: line ends and blanks as in
    front of the key of the list, one step deeper. Nothing where the file is not indented."""
    rows = text[: span.start].splitlines(keepends=True)
    if len(rows) < 3 or rows[1].strip() == rows[1].rstrip("\r\n"):
        return "", ""
    newline = rows[0][len(rows[0].rstrip("\r\n")) :]
    step = rows[1][: len(rows[1]) - len(rows[1].lstrip())]
    blanks = rows[-1][: len(rows[-1]) - len(rows[-1].lstrip())]
    return f"{newline}{blanks}{step}", f"{newline}{blanks}"


def _value(text: str, start: int) -> Span:
    return Span(start, _DECODER.raw_decode(text, start)[1])


def _next(text: str, index: int) -> int:
    """Behind the blanks at a place."""
    match = _BLANK.match(text, index)
    return match.end() if match is not None else index


def _members(text: str, span: Span) -> Iterator[tuple[str, Span]]:
    index = _next(text, span.start + 1)
    while text[index] != "}":
        key, index = _DECODER.raw_decode(text, index)
        value = _value(text, _next(text, _next(text, index) + 1))
        yield key, value
        index = _next(text, value.end)
        if text[index] == ",":
            index = _next(text, index + 1)


def _elements(text: str, span: Span) -> Iterator[Span]:
    index = _next(text, span.start + 1)
    while text[index] != "]":
        value = _value(text, index)
        yield value
        index = _next(text, value.end)
        if text[index] == ",":
            index = _next(text, index + 1)
