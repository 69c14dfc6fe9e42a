"""Items of plain data that a program writes into a file and reads from it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memoized
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import Role


def is_read_back(interp: Interp, value: v.Obj, index: v.Value) -> bool:
    """Whether an item of what a file holds, whichever module reads it, is one that the module which asks for it writes into
    a file, in a function that names its key, or that is saved with the whole state of a run."""
    if not isinstance(index, v.Lit) or not isinstance(index.value, str) or index.option:
        return False
    if interp.kb.role(value.api, "restores-run") is not None:
        # What is saved with a run, which that gives beside the name of its folder.
        return value.type != value.api
    stores: Role
    if interp.kb.role(value.api, "reads-data") is not None:
        stores = "stores-data"
    elif interp.kb.role(value.api, "reads-arrays") is not None:
        stores = "stores-arrays"
    else:
        return False
    called = stored_keys(interp.whole(interp.frame.file)).get(index.value, ())
    made = (interp.eval(one) for one in called)
    return any(
        isinstance(one, v.Ext) and interp.kb.role(interp.kb.canonical(one.name), stores) is not None
        for one in made
    )


@memoized
def stored_keys(facts: m.FileFacts) -> dict[str, list[m.Name]]:
    """The functions that are called where a key of a dictionary is named, by keys; memoised while the facts live."""
    found: dict[str, list[m.Name]] = {}
    for function in facts.functions:
        every = list(nodes(function.body))
        called = [one.func for one in every if isinstance(one, m.Call) and isinstance(one.func, m.Name)]
        for one in every:
            for key in _named(one):
                found.setdefault(key, []).extend(called)
    return found


def _named(node: object) -> list[str]:
    """The keys that a dictionary is made with, or that are stored in it, and the names of arguments."""
    if isinstance(node, m.Dict):
        keys = [one.value for one in node.keys if isinstance(one, m.Const)]
    elif isinstance(node, m.Call):
        # Of `dict`, or of a function that writes its arguments.
        keys = [one.name for one in node.keywords]
    elif isinstance(node, m.Assign):
        stored = [one.index for one in node.targets if isinstance(one, m.Subscript)]
        keys = [one.value for one in stored if isinstance(one, m.Const)]
    else:
        return []
    return [key for key in keys if isinstance(key, str)]
