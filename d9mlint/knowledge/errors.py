"""Mistakes in ``rules/``, named by file and line."""

from __future__ import annotations

from d9mlint.base.errors import UsageError


class KnowledgeError(UsageError):
    """A page or a knowledge file that cannot be used. The text names file and line."""

    def __init__(self, path: str, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")
        self.path = path
        self.line = line
        self.message = message
