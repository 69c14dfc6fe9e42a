"""Which of the things that were changed on purpose makes the runs differ. No framework is imported here.

The second run differs from the first in its hash seed, the order of directory listings, the clock and the
contents of fresh memory. Where data, a number or the structure differs, runs with one of them changed tell them
apart.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from d9mlint.trace.compare import Cause, Frame, frames
from d9mlint.trace.journal import NOTE, Journal
from d9mlint.trace.program import NONE, SECOND, Perturbation


class Suspect(NamedTuple):
    """Something that is changed on purpose: its name in reports and a run with it alone."""

    kind: str
    text: str
    perturbation: Perturbation


SUSPECTS = (
    Suspect(
        "hash seed",
        "the order of a set of strings and `hash()` depend on the hash seed, which differs in every run",
        NONE._replace(hash_seed=SECOND.hash_seed),
    ),
    Suspect(
        "listing",
        "the order of a directory listing is arbitrary",
        NONE._replace(listing=True),
    ),
)
"""Changes that make the same value again when they are the cause; the usual one first."""
FIXED = (
    Suspect(
        "entropy",
        "the program reads random bytes of the operating system",
        SECOND._replace(entropy=True),
    ),
    Suspect(
        "addresses",
        "the order of a set of objects and `id()` depend on addresses, which differ in every run",
        SECOND._replace(addresses=True),
    ),
    Suspect("clock", "the program reads the clock", SECOND._replace(still=True)),
)
"""What never makes the same value again. It is the cause where two runs in which it does are equal: everything else
that is not fixed differs in them as before."""
NOTED = ("entropy", "clock")
"""Of these it is noted who reads them."""
MOST_SHOWN = 5
"""Lines that are named where several may be the cause."""


def find(reproduces: Callable[[Suspect], bool], suspects: Sequence[Suspect]) -> Suspect | None:
    """The change that alone makes the same difference. ``reproduces`` runs the program once more."""
    return next((suspect for suspect in suspects if reproduces(suspect)), None)


def cause(suspect: Suspect, first: Journal, position: int, place: tuple[Frame, ...]) -> Cause:
    """The line behind a cause: the last listing before the difference, or the loop around the line."""
    path: tuple[Frame, ...] = ()
    if suspect.kind == "listing":
        path = _last_listing(first, position)
    elif suspect.kind in ("hash seed", "addresses"):
        path = enclosing_loop(place)
    else:
        found = readers(first, suspect.kind)
        if len(found) == 1:
            path = found[0]
        elif found:
            lines = [f"{os.path.basename(one[0].filename)}:{one[0].row}" for one in found[:MOST_SHOWN]]
            return Cause(suspect.kind, f"{suspect.text}: {', '.join(lines)}", path)
    return Cause(suspect.kind, suspect.text, path)


def readers(found: Journal, name: str) -> list[tuple[Frame, ...]]:
    """The lines that have read the clock or random bytes, the last first."""
    lines: dict[tuple[str, int], tuple[Frame, ...]] = {}
    for record in reversed(found.records):
        if record.kind == NOTE and found.text("name", record.name) == name:
            path = frames(found.text("path", record.path))
            if path:
                lines.setdefault((path[0].filename, path[0].row), path)
    return list(lines.values())


def _last_listing(first: Journal, position: int) -> tuple[Frame, ...]:
    for record in reversed(first.records[:position]):
        if record.kind == NOTE and first.text("name", record.name) in ("os.listdir", "os.scandir"):
            return frames(first.text("path", record.path))
    return ()


def enclosing_loop(place: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """The innermost loop over something other than a range or a list display around the lines of a path."""
    for depth, frame in enumerate(place):
        row = _loop(frame)
        if row:
            return (frame._replace(row=row, columns=()), *place[depth + 1 :])
    return ()


def _loop(frame: Frame) -> int:
    """The row of the innermost loop around a line; 0 where there is none."""
    try:
        with open(frame.filename, encoding="utf-8") as stream:
            tree = ast.parse(stream.read())
    except (OSError, SyntaxError, ValueError):
        return 0
    best = 0
    for node, iterated in loops(tree):
        if node.lineno <= frame.row <= (node.end_lineno or node.lineno) and not _ordered(iterated):
            best = max(best, iterated.lineno)
    return best


def loops(tree: ast.AST) -> Iterator[tuple[ast.For | ast.AsyncFor | ast.expr, ast.expr]]:
    """The loops and comprehensions of a program, with what they go through."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.AsyncFor)):
            yield node, node.iter
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            for part in node.generators:
                yield node, part.iter


def _ordered(node: ast.expr) -> bool:
    """Whether an iterable has a fixed order by its form."""
    if isinstance(node, (ast.List, ast.Tuple, ast.Constant)):
        return True
    name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    return name in ("range", "sorted")
