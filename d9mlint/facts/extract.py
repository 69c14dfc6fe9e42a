"""A text's facts. Importing this imports libcst; runs that find all facts in the cache don't."""

from __future__ import annotations

from d9mlint.facts.model import SCHEMA, FileFacts, Problem
from d9mlint.syntax.module import TooComplex, line_starts, lower_module


def extract(text: str, digest: str) -> FileFacts:
    """The facts of one file. Never raises for what the text holds: see ``FileFacts.problem``."""
    try:
        lowered = lower_module(text)
    except TooComplex as error:
        return failed(text, digest, str(error))
    except RecursionError:
        return failed(text, digest, "the code is nested too deeply to be analysed")
    return FileFacts(
        SCHEMA,
        digest,
        count_lines(text),
        lowered.functions,
        lowered.classes,
        lowered.comments,
        lowered.words,
        lowered.problem,
    )


def count_lines(text: str) -> int:
    """The number of lines, an unfinished last one included."""
    starts = line_starts(text)
    return len(starts) - (starts[-1] == len(text))


def failed(text: str, digest: str, reason: str) -> FileFacts:
    """Facts that say that the analysis of a file has failed, and why."""
    end = len(text.split("\n", 1)[0].rstrip("\r"))
    return FileFacts(SCHEMA, digest, count_lines(text), [], [], [], [], Problem("DET002", reason, 0, end))
