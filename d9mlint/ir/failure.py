"""Facts of files that could not be analyzed, which have an empty body. (Without libcst: these are made when a parser died,
too.)"""

from __future__ import annotations

from d9mlint.base.source import line_starts
from d9mlint.ir.bodies import definitions, module_body
from d9mlint.ir.nodes import SCHEMA, FileFacts, Problem

TOO_DEEP = "the code is nested too deeply to be analyzed"
TOO_SLOW = "parsing the file took too long and was stopped"
CRASHED = "the parser crashed on this file"
NOT_ISOLATED = "no separate process could be started to parse the file, and parsing it here is not safe"


def failed(text: str, digest: str, reason: str) -> FileFacts:
    """Facts that say that the analysis of a file has failed, and why; they stand at its first line."""
    starts = line_starts(text)
    end = len(text[: starts[1]].rstrip("\r\n")) if len(starts) > 1 else len(text)
    problem = Problem("DET002", reason, 0, end)
    return FileFacts(
        SCHEMA, digest, count_lines(text), 1, definitions([module_body([], 0)], []), [], [], problem
    )


def count_lines(text: str) -> int:
    """The number of lines, an unfinished last one included."""
    starts = line_starts(text)
    return len(starts) - (starts[-1] == len(text))
