"""What only Python 2 runs: statements that later releases do not parse, and functions that they do not have."""

from __future__ import annotations

from d9mlint.ir import nodes as m

OF_PYTHON_2 = frozenset({"basestring", "execfile", "raw_input", "unichr", "unicode", "xrange"})
"""Functions and classes of Python that later releases do not have, under names that hardly anything else has."""

_REFUSED = (
    "Missing parentheses in call to 'print'",
    "Missing parentheses in call to 'exec'",
    "multiple exception types must be parenthesized",
)
"""How the messages of CPython begin about statements of Python 2."""


def is_of_python_2(facts: m.FileFacts) -> bool:
    """Whether a file has statements that only Python 2 can run."""
    problems = [] if facts.problem is None else [facts.problem]
    return any(
        one.message.startswith(_REFUSED) for one in (*problems, *(one.problem for one in facts.unread))
    )
