"""Ops that give several tensors of which only the last varies: the positions beside values that are the same in each run.

Where the program leaves those, nothing differs: ``values, _ = torch.median(x, dim=0)``. By syntax, in the function that
calls the op.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from d9mlint.interp.naming import is_private, running
from d9mlint.interp.view import RunView
from d9mlint.ir.forms import FORM
from d9mlint.ir.kept import Kept


def leaves_last_part(run: RunView, node: Any, parts: Sequence[str]) -> bool:
    """Whether the running function asks the last of the tensors that an op gives, whose names are those of ``parts``, for
    its form at most, and hands it to nobody."""
    function, frame = running(run), run.frame
    if function is None or frame.keeps_locals:
        return False
    facts = frame.file.facts
    if frame.func is None and (
        # The last expression of a cell is shown, and another file may import a variable.
        frame.file.notebook
        or facts.unread
        or run.entry is not frame.file
        or frame.file.path in run.imported_files
    ):
        return False
    kept = Kept(function, lambda call, argument, path: None, frozenset(), parts=parts)
    left = kept.follow(node, FORM, (len(parts) - 1,)) and not kept.returned
    return left and is_private(run, function, set(kept.places))
