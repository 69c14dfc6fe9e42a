"""Ops that give several tensors of which only the last varies: the positions beside values that are the same in each run.

Where the program leaves those, nothing differs: ``values, _ = torch.median(x, dim=0)``. Of other ops only one of the
tensors has a gradient that varies: the distances, and not which points are the nearest ones. By syntax, in the function
that calls the op.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from d9mlint.interp.naming import is_private, running
from d9mlint.interp.view import RunView
from d9mlint.ir import nodes as m
from d9mlint.ir.forms import FORM
from d9mlint.ir.kept import Kept
from d9mlint.ir.traversal import parents, variables


def leaves_last_part(run: RunView, node: Any, parts: Sequence[str]) -> bool:
    """Whether the running function asks the last of the tensors that an op gives, whose names are those of ``parts``, for
    its form at most, and hands it to nobody."""
    function = running(run)
    if function is None or _may_show(run):
        return False
    kept = Kept(function, lambda call, argument, path: None, frozenset(), parts=parts)
    left = kept.follow(node, FORM, (len(parts) - 1,)) and not kept.returned
    return left and is_private(run, function, set(kept.places))


def asks_part(run: RunView, node: Any, parts: Sequence[str], part: str) -> bool | None:
    """Whether the running function computes something from one of the tensors that an op gives; None where what the op
    gives goes elsewhere as a whole."""
    function, number = running(run), parts.index(part)
    if function is None:
        return None
    kept = Kept(function, lambda call, argument, path: None, frozenset(), parts=parts)
    left = kept.follow(node, FORM, (number,))
    if left:
        private = not kept.returned and not _may_show(run) and is_private(run, function, set(kept.places))
        return False if private else None
    above = parents(function)

    def reads(value: Any) -> bool:
        parent = above.get(id(value))
        if isinstance(parent, m.Attr):
            return parent.name.partition(".")[0] == part
        at = parent.index if isinstance(parent, m.Subscript) and parent.value is value else None
        return isinstance(at, m.Const) and at.value == number

    if reads(node):
        return True
    for name, path in kept.places.items():
        for use in variables(function)[name]:
            asked = use.id.partition(".")[2].partition(".")[0]
            if path and (asked == part or (not asked and reads(use))):
                return True
            if not path and not isinstance(above.get(id(use)), (m.Seq, m.Assign)):
                return True
    return None


def _may_show(run: RunView) -> bool:
    """Whether others may see the variables of what is running."""
    frame = run.frame
    if frame.func is not None:
        return frame.keeps_locals
    return (
        # The last expression of a cell is shown, and another file may import a variable.
        frame.keeps_locals
        or frame.file.notebook
        or bool(frame.file.facts.unread)
        or run.entry is not frame.file
        or frame.file.path in run.imported_files
    )
