"""Why a text cannot be read, in the words of the Python that runs this where it has any."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence

import libcst as cst

from d9mlint.ir.nodes import Problem


def syntax_problem(text: str, lines: Sequence[int], error: cst.ParserSyntaxError | SyntaxError) -> Problem:
    """DET001 for a text that cannot be read: CPython's message and place if it rejects it, too."""
    found = _compile(text)
    if found is not None:
        return _at(text, lines, found.msg, found.lineno, found.offset, found.end_lineno, found.end_offset)
    if isinstance(error, SyntaxError):
        return _at(text, lines, error.msg, None, None, None, None)
    message = (error.message.strip() or "invalid syntax").splitlines()[-1].strip()
    return _at(text, lines, message, error.raw_line, error.raw_column + 1, None, None)


def is_python(text: str) -> bool:
    """Whether the Python that runs this accepts a text."""
    return _compile(text) is None


def _compile(text: str) -> SyntaxError | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "<source>", "exec", flags=ast.PyCF_ONLY_AST, dont_inherit=True)
        except SyntaxError as error:
            return error
        except ValueError as error:  # null bytes
            return SyntaxError(str(error))
        except (RecursionError, MemoryError):
            return None
    return None


def _at(
    text: str,
    lines: Sequence[int],
    message: str,
    row: int | None,
    column: int | None,
    end_row: int | None,
    end_column: int | None,
) -> Problem:
    start = _offset(text, lines, row or 1, column or 1)
    end = _offset(text, lines, end_row, end_column) if end_row and end_column else start + 1
    if end <= start or text[start:end].isspace():
        end = start + 1
    return Problem("DET001", message, start, min(end, len(text)))


def _offset(text: str, lines: Sequence[int], row: int, column: int) -> int:
    """Rows and columns count from 1. Whatever lies outside the text becomes its nearest place."""
    if row > len(lines):
        return len(text)
    begin = lines[row - 1]
    limit = lines[row] if row < len(lines) else len(text)
    return min(begin + max(column - 1, 0), max(limit - 1, begin) if row < len(lines) else limit)
