"""A module's text, parsed once and lowered in one pass."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass

import libcst as cst

from d9mlint.base.source import line_starts
from d9mlint.frontend import lower_literal, lower_match, lower_stmt  # noqa: F401  they fill the tables
from d9mlint.frontend.codegen import scan_tree
from d9mlint.frontend.comments import place
from d9mlint.frontend.cursor import Cursor, Refused
from d9mlint.frontend.guard import too_complex
from d9mlint.frontend.lower_def import block
from d9mlint.frontend.problems import is_python, syntax_problem
from d9mlint.frontend.tokens import Desync, Tokens, scan, split
from d9mlint.ir.bodies import module_body
from d9mlint.ir.nodes import Class, Comment, Function, Problem

_KEYWORDS = frozenset(keyword.kwlist)
_INDENTATION_WITH_TABS = re.compile(r"(?<=[\r\n]) *\t[ \t]*")


class TooComplex(Exception):
    """The text is more than the parser can be trusted with; the argument says why."""


@dataclass(frozen=True)
class Lowered:
    """What a text holds, or why it cannot be read."""

    functions: list[Function]
    classes: list[Class]
    comments: list[Comment]
    words: list[str]
    problem: Problem | None = None


def lower_module(text: str) -> Lowered:
    """Parse and lower ``text``. Raises TooComplex or RecursionError where that cannot be done."""
    pieces = split(text)
    reason = too_complex(text, pieces)
    if reason is not None:
        raise TooComplex(reason)
    try:
        tree = _parsed(text, pieces)
        try:
            return _lower(text, tree, scan(text, pieces))
        except (Desync, IndexError):
            # Characters that Python and regular expressions see differently; the tree knows best.
            return _lower(text, tree, _placed(scan_tree(tree), text))
    except (cst.ParserSyntaxError, SyntaxError) as error:  # the latter for what a string literal holds
        return Lowered([module_body([], 0)], [], [], [], syntax_problem(text, line_starts(text), error))
    except Refused as error:
        return Lowered(
            [module_body([], 0)], [], [], [], Problem("DET001", str(error), error.start, error.end)
        )


def _parsed(text: str, pieces: list[str]) -> cst.Module:
    """The tree of a text. Blocks that are indented with tabs in one line and with spaces in the next are read as
    Python reads them, which libcst does not: with spaces alone, and the same tokens. ``async`` may be a name, as it was
    before Python 3.7: ``x.cuda(async=True)``."""
    try:
        return cst.parse_module(text)
    except cst.ParserSyntaxError:
        instead = _instead_of_async(pieces)
        named = text if instead is None else "".join(instead)
        spaced = "".join(
            piece if k % 2 else _INDENTATION_WITH_TABS.sub(lambda found: found[0].expandtabs(8), piece)
            for k, piece in enumerate(instead or pieces)
        )
        if spaced == text or not is_python(named):
            raise
        tree = cst.parse_module(spaced)
        return tree if instead is None else tree.visit(_Async())


_ASYNC = "async"
_NAME = "\u0430sync"
"""Stands for ``async`` where that is a name: as long, and written by nobody (its first letter is Cyrillic)."""


def _instead_of_async(pieces: list[str]) -> list[str] | None:
    """The pieces of a text with another name in place of ``async`` where that begins no statement and no loop; None where
    there is no such place."""
    found = [
        k
        for k in range(1, len(pieces), 2)
        if pieces[k] == _ASYNC
        and (
            k + 2 >= len(pieces) or pieces[k + 1].strip(" \t") or pieces[k + 2] not in ("def", "for", "with")
        )
    ]
    if not found:
        return None
    instead = list(pieces)
    for k in found:
        instead[k] = _NAME
    return instead


class _Async(cst.CSTTransformer):
    """Gives names back that another name stands for."""

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        return updated_node.with_changes(value=_ASYNC) if updated_node.value == _NAME else updated_node


def _placed(tokens: Tokens, text: str) -> Tokens:
    """Tokens of a tree, at their places in the text: libcst drops byte order marks and form feeds."""
    starts, ends, texts, comments = tokens
    shift = done = 0
    for k, token in enumerate(texts):
        start = starts[k] + shift
        if not text.startswith(token, start):
            found = text.find(token, done)
            if found < 0:
                raise Desync
            shift += found - start
        starts[k] += shift
        done = ends[k] = ends[k] + shift
    return Tokens(starts, ends, texts, [(text.find(comment, at), comment) for at, comment in comments])


def _lower(text: str, tree: cst.Module, tokens: Tokens) -> Lowered:
    c = Cursor(text, tokens)
    words = [w for w in sorted(set(tokens.texts)) if w.isidentifier() and w not in _KEYWORDS]
    c.functions.append(None)
    body = block(c, tree)
    if c.i != len(c.texts):
        raise Desync
    end = c.ends[-1] if c.ends else 0
    c.functions[0] = module_body(body, end)
    comments = place(text, line_starts(text), c.comments, c.extents) if c.extents is not None else []
    return Lowered(
        [f for f in c.functions if f is not None],
        [k for k in c.classes if k is not None],
        comments,
        words,
    )
