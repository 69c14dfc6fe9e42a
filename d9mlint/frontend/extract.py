"""A text's facts. Importing this imports libcst; runs that find all facts in the cache don't."""

from __future__ import annotations

from d9mlint.frontend.guard import is_simple
from d9mlint.frontend.module import Lowered, TooComplex, lower_module
from d9mlint.frontend.tokens import split
from d9mlint.ir.bodies import definitions
from d9mlint.ir.codec import with_code
from d9mlint.ir.failure import TOO_DEEP, count_lines, failed
from d9mlint.ir.limits import collector_off, frames
from d9mlint.ir.nodes import FRAMES as ENCODING
from d9mlint.ir.nodes import SCHEMA, FileFacts

FRAMES = 1000
"""How deep a file's lowering may recurse, whoever calls: the same file must give the same facts."""


def extract(text: str, digest: str) -> FileFacts:
    """The facts of one file. Never raises for what the text holds: see ``FileFacts.problem``."""
    facts = _extract(text, digest)
    try:
        with frames(ENCODING):
            return with_code(facts)
    except (RecursionError, OverflowError, UnicodeEncodeError):
        return facts  # as it cannot be packed either


def _extract(text: str, digest: str) -> FileFacts:
    try:
        with collector_off(), frames(FRAMES):
            lowered = lower_module(text)
    except TooComplex as error:
        return failed(text, digest, str(error))
    except (RecursionError, OverflowError, UnicodeEncodeError):
        return failed(text, digest, TOO_DEEP)
    except Exception as error:  # whatever it is, it is about one file of many
        return failed(text, digest, f"{type(error).__name__}: {error}")
    try:
        with frames(ENCODING):
            return _facts(text, digest, lowered)
    except (RecursionError, OverflowError, UnicodeEncodeError):
        return failed(text, digest, TOO_DEEP)


def is_safe(text: str) -> bool:
    """Whether parsing a text can neither end this process nor stall it."""
    return is_simple(text, split(text))


def _facts(text: str, digest: str, lowered: Lowered) -> FileFacts:
    return FileFacts(
        SCHEMA,
        digest,
        count_lines(text),
        len(lowered.functions),
        definitions(lowered.functions, lowered.classes),
        lowered.comments,
        lowered.words,
        lowered.problem,
    )
