"""Tests of whether a seed is true, which take the seed 0 for none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp.text import with_keys, written
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import conditionals, nodes

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView


def truth_test(run: RunView, call: Any) -> str:
    """The seed as it is written in a test of its truth, on which a call that sets it depends: in the running function, or
    in one that calls it with the seed. Empty where there is none."""
    for frame in reversed(run.stack()):
        if not isinstance(call, m.Call):
            return ""
        given = {_last(one) for one in nodes([*call.args, *(keyword.value for keyword in call.keywords)])} - {
            ""
        }
        for one in conditionals(frame.body):
            if _last(one.test) in given and _holds(one, call):
                return with_keys(one.test)
        call = frame.began()
    return ""


def _holds(test: m.If, call: m.Call) -> bool:
    return any(one is call for one in nodes(test.body))


def _last(node: m.Expr) -> str:
    """The last name of a variable, an attribute or an item, whatever holds it."""
    if isinstance(node, m.Name):
        return node.id.rpartition(".")[2]
    if isinstance(node, m.Attr):
        return node.name.rpartition(".")[2]
    key: Any = None
    if isinstance(node, m.Subscript):
        key = node.index
    elif isinstance(node, m.Call) and written(node.func).endswith(".get") and node.args:
        key = node.args[0]
    return key.value if isinstance(key, m.Const) and isinstance(key.value, str) else ""
