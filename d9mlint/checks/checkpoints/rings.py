"""Arrays that a loop fills in turns, the oldest rows first, and of which it draws rows, as a replay memory does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.named_sizes import assignments
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

_DEEPEST = 3


def fills_in_turns(run: RunView, node: Any) -> bool:
    """Whether the first index of an assignment goes round: a remainder gives it, here or where its variable is set. What
    each round of a loop fills anew is counted from the beginning instead."""
    if not isinstance(node, m.Subscript):
        return False
    index = node.index
    if isinstance(index, m.Seq) and index.elts:
        index = index.elts[0]
    if not isinstance(index, m.Name):
        return _goes_round(index)
    return any(map(_goes_round, _given(run, index.id)))


def drawn_rows(run: RunView, index: v.Value, depth: int = 0) -> bool:
    """Whether an index is drawn, or made of what is."""
    for one in v.alternatives(index):
        if isinstance(one, v.Obj) and depth < _DEEPEST:
            if any(entry.kind in ("draw", "sampler") for entry in run.kb.rng(one.api)):
                return True
            if any(drawn_rows(run, part, depth + 1) for part in one.args.values()):
                return True
    return False


def _given(run: RunView, name: str) -> Iterator[m.Expr]:
    """What a variable is set to, or an attribute by any method of the class whose method runs."""
    func = run.frame.func
    if "." not in name or func is None or func.fn.cls < 0:
        yield from assignments(run, name)
        return
    for method in run.whole(func.file).functions:
        for one in nodes(method.body) if method.cls == func.fn.cls else ():
            if isinstance(one, m.Assign) and any(
                isinstance(to, m.Name) and to.id == name for to in one.targets
            ):
                yield one.value


def _goes_round(value: m.Expr) -> bool:
    return any(isinstance(one, m.BinOp) and one.op == "%" for one in nodes([value]))
