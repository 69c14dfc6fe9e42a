"""The state of one lowering: the tokens, how many of them are taken, and what has been collected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from d9mlint.frontend.tokens import Desync, Tokens
from d9mlint.ir.nodes import Class, Expr, Function, Stmt

DEEPEST = 400
"""Chains that are nested in the facts (operators, ``elif``) may be so long: whoever reads facts recurses."""


class Refused(Exception):
    """What is written is grammatical, but Python's compiler refuses it; the message, and the part of the text."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.start, self.end = start, end


Node = Any
"""A libcst node. The lowering dispatches on its class; nothing else is asked of libcst's types."""


class Cursor:
    """Where the lowering stands. ``i`` is the index of the next token."""

    __slots__ = (
        "classes",
        "cls",
        "comments",
        "ends",
        "extents",
        "function",
        "functions",
        "i",
        "loops",
        "qualname",
        "starts",
        "text",
        "texts",
        "yields",
    )

    def __init__(self, text: str, tokens: Tokens) -> None:
        self.text = text
        self.starts, self.ends, self.texts, found = tokens
        self.comments = [c for c in found if addressed(c[1])]
        self.i = 0
        self.functions: list[Function | None] = []
        self.classes: list[Class | None] = []
        self.function = 0
        self.cls = -1
        self.qualname = ""
        self.yields = False
        # How many loops of the running function or class body are open.
        self.loops = 0
        # Spans of simple statements and headers: only comments that may be pragmas need them.
        self.extents: list[tuple[int, int]] | None = [] if self.comments else None

    def word(self, expected: str) -> int:
        """Take one token, which must be ``expected``; its index."""
        i = self.i
        if self.texts[i] != expected:
            raise Desync
        self.i = i + 1
        return i

    def only_called(self, name: str) -> bool:
        """Whether the file does nothing with a name but call it, so that it is no name that the file defines."""
        texts = self.texts
        return all(
            texts[i - 1] == "." or (texts[i - 1] != "def" and texts[i + 1] == "(")
            for i, text in enumerate(texts[:-1])
            if text == name
        )

    def extent(self, start: int, end: int) -> None:
        """Note the span of a simple statement or of a header."""
        if self.extents is not None:
            self.extents.append((start, end))

    @staticmethod
    def limit(depth: int) -> None:
        """Refuse a chain that nests too deeply."""
        if depth > DEEPEST:
            raise RecursionError

    def operator_before(self, k: int, operator: str) -> int:
        """The operator stands right before token ``k``: from now on that token starts with it.

        Parents read the start of their first token after their children have been lowered, so this is
        how a sign or a star gets into the span of what it begins.
        """
        at = self.starts[k] - len(operator)
        if not self.text.startswith(operator, at):
            at = self.text.rfind(operator, self.ends[k - 1] if k else 0, at)
            if at < 0:
                raise Desync
        self.starts[k] = at
        return at

    def operator_after(self, k: int, operator: str) -> None:
        """The operator stands behind token ``k``: from now on that token ends with it."""
        at = self.text.find(operator, self.ends[k])
        if at < 0:
            raise Desync
        self.ends[k] = at + len(operator)


def addressed(comment: str) -> bool:
    """Whether a comment may be addressed to a linter."""
    lowered = comment.lower()
    return "noqa" in lowered or "d9mlint" in lowered


Lower = Callable[[Cursor, Node], Expr]
EXPR: dict[type, Lower] = {}
"""How to lower each expression class; filled by the modules that lower."""

LowerStmt = Callable[[Cursor, Node, "list[Stmt]"], None]
STMT: dict[type, LowerStmt] = {}
"""How to lower each statement class (appending to a body)."""
