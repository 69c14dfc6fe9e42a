"""Applying edits to one source."""

from __future__ import annotations

import ast
import json
import re
import sys
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from d9mlint.base.findings import Edit, Finding
from d9mlint.base.notebooks import Cell, load_notebook
from d9mlint.base.source import Source, make_source
from d9mlint.fix.notebook_text import span_of, with_source

_BOM = "\ufeff"
_SETS_VARIABLE = re.compile(r"\benviron\[")


class BrokenFix(ValueError):
    """A fix that cannot be applied, or would leave a file that does not parse."""


def without_overlaps(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, in order, whose fixes do not touch each other, nor add the same import at different places, nor import
    a library in front of where another sets a variable of the environment; the others wait for the next round."""
    taken: list[Edit] = []
    chosen: list[Finding] = []
    imports: set[str] = set()
    # A variable of the environment has to be set before what reads it is imported: the import follows in the next round.
    last = max((e.start for f in findings for e in _variables(f)), default=-1)
    for finding in findings:
        edits = finding.fix.edits if finding.fix else ()
        if any(e.start <= last and _adds_library(e) for e in edits) and not _variables(finding):
            continue
        fresh = [e for e in edits if e not in taken]
        added = {line for e in fresh for line in _added_imports(e)}
        touched = any(_touch(e, other) for e in fresh for other in taken)
        if edits and not touched and added.isdisjoint(imports):
            chosen.append(finding)
            taken += fresh
            imports |= added
    return chosen


def _added_imports(edit: Edit) -> list[str]:
    """The imports that an edit adds at the level of the module."""
    return [line for line in edit.content.splitlines() if line.startswith(("import ", "from "))]


def _variables(finding: Finding) -> list[Edit]:
    """The edits of its fix that set variables of the environment."""
    edits = finding.fix.edits if finding.fix else ()
    return [edit for edit in edits if _SETS_VARIABLE.search(edit.content)]


def _adds_library(edit: Edit) -> bool:
    """Whether an edit imports something else than modules of the standard library."""
    return any(
        line.split()[1].partition(".")[0] not in sys.stdlib_module_names for line in _added_imports(edit)
    )


def _touch(one: Edit, other: Edit) -> bool:
    if one.start == one.end or other.start == other.end:
        return one.start <= other.end and other.start <= one.end
    return one.start < other.end and other.start < one.end


def apply_edits(source: Source, edits: Sequence[Edit]) -> bytes:
    """The file's new content. Line ends, byte order mark and encoding stay what they are.

    Raises BrokenFix when it would not parse, or cannot be written in the file's encoding.
    """
    ordered = sorted(set(edits))
    for first, second in pairwise(ordered):
        if second.start < first.end:
            raise BrokenFix("its edits overlap")
    if any(e.start > e.end or e.end > len(source.raw) for e in ordered):
        raise BrokenFix("its edits are outside of the file")
    if source.cells is not None:
        data = _edit_notebook(source, ordered)
    else:
        newline = source.newline
        try:
            if source.raw.encode(source.encoding) != source.data:
                raise BrokenFix(f"what else is in it would not stay the same in {source.encoding}")
            data = _edit(source.raw, ordered, 0, newline).encode(source.encoding)
        except UnicodeEncodeError as error:
            raise BrokenFix(f"it cannot be written in {source.encoding}") from error
    _must_parse(source, make_source(source.path, data))
    return data


def _edit(text: str, edits: Sequence[Edit], base: int, newline: str) -> str:
    for edit in reversed(edits):
        content = edit.content.replace("\n", newline) if newline != "\n" else edit.content
        text = text[: edit.start - base] + content + text[edit.end - base :]
    return text


def cell_of(cells: Sequence[Cell], edit: Edit, raw: str) -> Cell | None:
    """The cell of a notebook that an edit is made in; None where it reaches over several. What is put between two cells is
    put before the first statement of the later one, unless that begins with a magic for the whole cell."""
    found = [cell for cell in cells if cell.start <= edit.start and edit.end <= cell.end]
    if len(found) > 1 and raw.startswith("%%", found[-1].start):
        return found[0]
    return found[-1] if found else None


def _edit_notebook(source: Source, edits: Sequence[Edit]) -> bytes:
    notebook = load_notebook(source.data)
    whole = source.data.decode("utf-8")
    written = whole.removeprefix(_BOM)
    head = whole[: len(whole) - len(written)]
    _must_be_unique(written)
    assert source.cells is not None
    for cell in source.cells:
        inside = [e for e in edits if cell_of(source.cells, e, source.raw) is cell]
        if inside:
            text = _edit(source.raw[cell.start : cell.end], inside, cell.start, "\n")
            old = notebook["cells"][cell.number - 1].get("source", "")
            if "\r" in "".join(old):
                raise BrokenFix("the cell has carriage returns, which would be lost")
            span = span_of(written, "cells", cell.number - 1, "source")
            if span is None:
                raise BrokenFix("the cell has no source")
            written = with_source(written, span, text)
            edits = [e for e in edits if e not in inside]
    if edits:
        raise BrokenFix("it reaches over several cells")
    return (head + written).encode("utf-8", "surrogatepass")


def _must_be_unique(text: str) -> None:
    """Raises BrokenFix for a notebook in which it is not clear what a key means."""

    def unique(pairs: list[tuple[str, Any]]) -> None:
        if len({key for key, _ in pairs}) < len(pairs):
            raise BrokenFix("the notebook has two values of the same key")

    json.loads(text, object_pairs_hook=unique)


def _must_parse(old: Source, new: Source) -> None:
    if new.problem is not None:
        raise BrokenFix(new.problem.message)
    error = _syntax_error(new.text)
    # Python 2 or newer syntax than ours: the parser of the analysis judges in the next round.
    if error is not None and _syntax_error(old.text) is None:
        raise BrokenFix(f"the file would no longer parse: {error}")
    if error is not None and old.cells and new.cells:
        for one, other in zip(old.cells, new.cells, strict=True):
            before, after = old.text[one.start : one.end], new.text[other.start : other.end]
            error = None if before == after else _syntax_error(after)
            if error is not None and _syntax_error(before) is None:
                raise BrokenFix(f"cell {one.number} would no longer parse: {error}")


def _syntax_error(text: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return error.msg
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or type(error).__name__
    return None
