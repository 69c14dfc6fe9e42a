"""Tokens from the tree itself: exact whatever the text, and several times as dear.

For files whose text cannot be brought in step with their tree. libcst writes the module out again, and
every piece it writes is counted; the significant ones become tokens.
"""

from __future__ import annotations

from typing import Any

import libcst as cst
from libcst._nodes.internal import CodegenState

from d9mlint.frontend.tokens import Tokens

_FIELDS = tuple(
    getattr(cst, name)
    for name in ("FormattedStringExpression", "TemplatedStringExpression")
    if hasattr(cst, name)
)
_TEXTS = tuple(
    getattr(cst, name) for name in ("FormattedStringText", "TemplatedStringText") if hasattr(cst, name)
)


class _Recorder(CodegenState):
    """Counts what is written and keeps the significant pieces."""

    def __init__(self, module: cst.Module) -> None:
        super().__init__(default_indent=module.default_indent, default_newline=module.default_newline)
        self.offset = 0
        self.nodes: list[type] = []
        self.found = Tokens([], [], [], [])

    def before_codegen(self, node: Any) -> None:
        self.nodes.append(node.__class__)

    def after_codegen(self, node: Any) -> None:
        self.nodes.pop()

    def add_indent_tokens(self) -> None:
        self.offset += sum(map(len, self.indent_tokens))

    def pop_trailing_newline(self) -> None:
        """Nothing to take back: newlines are no tokens."""

    def add_token(self, value: str) -> None:
        start = self.offset
        self.offset = end = start + len(value)
        if not value:
            return
        within = self.nodes[-1]
        if within in _TEXTS:
            value = ""
        elif value[0] == "#":
            self.found.comments.append((start, value))
            return
        elif within in _FIELDS or not _significant(value):
            return
        self.found.starts.append(start)
        self.found.ends.append(end)
        self.found.texts.append(value)


def _significant(value: str) -> bool:
    char = value[0]
    return char.isidentifier() or char.isdigit() or char in "()[]{}'\"" or (char == "." and len(value) > 1)


def scan_tree(module: cst.Module) -> Tokens:
    """The significant tokens of a module, in order."""
    recorder = _Recorder(module)
    module._codegen(recorder)
    return recorder.found
