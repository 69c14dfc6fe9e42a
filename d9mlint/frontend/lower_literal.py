"""Numbers and strings."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence

import libcst as cst

from d9mlint.frontend.cursor import EXPR, Cursor, Node
from d9mlint.frontend.lower_expr import lower
from d9mlint.frontend.tokens import Desync
from d9mlint.ir.nodes import Bytes, Const, Expr, FString, Other

LARGEST_INT = 2**63 - 1


def _number(c: Cursor, node: Node) -> Expr:
    i = c.i + len(node.lpar)
    text: str = node.value
    if c.texts[i] != text:
        raise Desync
    c.i = i + 1 + len(node.rpar)
    if node.__class__ is cst.Float:
        return Const(float(text.replace("_", "")), c.starts[i], c.ends[i])
    if node.__class__ is cst.Integer and len(text) < 100:
        value = int(text, 0) if text.strip("0_") else 0
        if value <= LARGEST_INT:
            return Const(value, c.starts[i], c.ends[i])
    return Other(c.starts[i], c.ends[i])


def _string(c: Cursor, node: Node) -> Expr:
    c.i += len(node.lpar)
    i = c.word(node.value)
    c.i += len(node.rpar)
    start, end = c.starts[i], c.ends[i]
    value = string_value(node.value)
    if value is None:
        return Bytes(start, end)
    return _text(value, start, end)


def _text(value: str, start: int, end: int) -> Expr:
    """A constant string, unless it holds half of a surrogate pair, which no encoding can hold."""
    if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
        return Other(start, end)
    return Const(value, start, end)


def string_value(source: str) -> str | None:
    """What a string literal stands for; None for bytes."""
    quotes = min(k for k in (source.find("'"), source.find('"')) if k >= 0)
    prefix = source[:quotes].lower()
    if "b" in prefix:
        return None
    width = 3 if source[quotes : quotes + 3] in ('"""', "'''") and len(source) - quotes >= 6 else 1
    body = source[quotes + width : -width]
    if "\\" in body and "r" not in prefix:
        return _unescape(source[quotes:])
    return body.replace("\r\n", "\n").replace("\r", "\n") if "\r" in body else body


def _unescape(literal: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escape sequences are another linter's matter
        value = ast.literal_eval(literal)
    assert isinstance(value, str)
    return value


def _concatenated(c: Cursor, node: Node) -> Expr:
    """Adjacent literals lean to the right, however many: no recursion along them."""
    c.i += len(node.lpar)
    first = c.i
    closing = [len(node.rpar)]
    pieces = [lower(c, node.left)]
    right = node.right
    while right.__class__ is cst.ConcatenatedString:
        closing.append(len(right.rpar))
        pieces.append(lower(c, right.left))
        right = right.right
    pieces.append(lower(c, right))
    start, end = c.starts[first], c.ends[c.i - 1]
    c.i += sum(closing)
    if all(isinstance(piece, Const) for piece in pieces):
        return Const("".join(str(piece.value) for piece in pieces if isinstance(piece, Const)), start, end)
    if any(isinstance(piece, Bytes) for piece in pieces):
        return Bytes(start, end)
    if any(isinstance(piece, FString) for piece in pieces):
        parts: list[Expr] = []
        for piece in pieces:
            parts.extend(piece.parts if isinstance(piece, FString) else [piece])
        return FString(parts, start, end)
    return Other(start, end)


def _formatted(c: Cursor, node: Node) -> Expr:
    """An f-string or a template string."""
    c.i += len(node.lpar)
    first = c.word(node.start)
    raw = "r" in node.start.lower()
    parts: list[Expr] = []
    _parts(c, node.parts, parts, raw)
    last = c.word(node.end)
    c.i += len(node.rpar)
    return FString(parts, c.starts[first], c.ends[last])


def _parts(c: Cursor, nodes: Sequence[Node], out: list[Expr], raw: bool, *, spec: bool = False) -> None:
    """The parts of an f-string. Of format specifications only nested fields are kept."""
    for part in nodes:
        if part.__class__ in _TEXTS:
            i = c.word("")
            if not spec:
                out.append(_text(_constant_text(part.value, raw), c.starts[i], c.ends[i]))
        else:
            out.append(lower(c, part.expression))
            if part.format_spec is not None:
                _parts(c, part.format_spec, out, raw, spec=True)


def _constant_text(source: str, raw: bool) -> str:
    text = source.replace("{{", "{").replace("}}", "}")
    if raw or "\\" not in text:
        return text
    try:
        return _unescape('"""' + text.replace('"', '\\"') + '"""')
    except (SyntaxError, ValueError):
        return text


_TEXTS = tuple(
    getattr(cst, name) for name in ("FormattedStringText", "TemplatedStringText") if hasattr(cst, name)
)

EXPR.update(
    {
        cst.Integer: _number,
        cst.Float: _number,
        cst.Imaginary: _number,
        cst.SimpleString: _string,
        cst.ConcatenatedString: _concatenated,
        cst.FormattedString: _formatted,
    }
)
if hasattr(cst, "TemplatedString"):
    EXPR[cst.TemplatedString] = _formatted
