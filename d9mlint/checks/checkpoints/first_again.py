"""Checkpoints with the number of an epoch that nothing reads: the loop that goes on begins with the first one again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from d9mlint.interp.events import Loop
    from d9mlint.interp.view import RunView

_EPOCH = "epoch"
_FIRST = (0, 1)


def begins_anew(loop: Loop) -> bool:
    """Whether a loop counts from a first number that is written there: ``for epoch in range(epochs)``."""
    over = loop.stmt.iter if isinstance(loop.stmt, m.For) else None
    if not isinstance(over, m.Call) or called_name(over) != "range" or over.keywords:
        return False
    if any(isinstance(one, m.Star) for one in over.args):
        return False
    first = over.args[0] if len(over.args) > 1 else None
    return first is None or (isinstance(first, m.Const) and first.value in _FIRST)


def epoch_keys(mapping: v.Mapping) -> Iterator[str]:
    """The keys under which a dictionary that is saved has the number of an epoch."""
    for key in dict.keys(mapping.items):
        if (
            isinstance(key, str)
            and key.lower().endswith(_EPOCH)
            and not isinstance(mapping.items[key], v.Lit)
        ):
            yield key


def is_read(run: RunView, key: str) -> bool:
    """Whether a file of the program names a key for more than to store something under it."""
    by_path = run.modules.by_path
    paths = {*run.imported_files, *([run.entry.path] if run.entry is not None else [])}
    return any(_reads(run.whole(by_path[path]), key) for path in sorted(paths) if path in by_path)


def _reads(facts: m.FileFacts, key: str) -> bool:
    for function in facts.functions:
        named = stored = 0
        for one in nodes(function.body):
            named += isinstance(one, m.Const) and one.value == key
            stored += sum(isinstance(x, m.Const) and x.value == key for x in _stored(one))
        if named > stored:
            return True
    return False


def _stored(node: object) -> Iterator[m.Expr]:
    """The keys under which a node stores something."""
    if isinstance(node, m.Dict):
        yield from (one for one in node.keys if one is not None)
    elif isinstance(node, m.Assign):
        yield from (one.index for one in node.targets if isinstance(one, m.Subscript))
