"""Functions of libraries that call a function for each leaf of nested containers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.library import records

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import RoleEntry

_ONE_TREE = 2
"""So many arguments has a call with a function and a tree."""
_MOST = 32
_DEEPEST = 6
_FUNCTIONS = (v.Func, v.Partial)


def mapped(interp: Interp, role: RoleEntry | None, args: v.Args, node: Any) -> v.Value | None:
    """``tree_map(function, batch)``: containers of the same kinds with what the function gives for each leaf. None where the
    parts are not known, or other trees are given beside the first one."""
    if role is None:
        return None
    function, tree = args.get(role.arg, 0), args.get(role.more[0], 1)
    alone = len(args.pos) + len(args.kw) == _ONE_TREE and not args.star and not args.dstar
    if not alone or not isinstance(function, _FUNCTIONS) or tree is None or not _is_known(tree, 0, [0]):
        return None
    return _of_each(interp, function, tree, node)


def _parts(value: v.Value) -> list[v.Value] | None:
    if isinstance(value, v.Items):
        return value.elts
    if isinstance(value, v.Mapping):
        return list(value.items.values())
    return records.fields(value)


def _is_known(value: v.Value, depth: int, count: list[int]) -> bool:
    """Whether a value is a container of which all parts are known, down to tensors and literals."""
    if isinstance(value, v.Items | v.Mapping) and (value.open or depth == _DEEPEST):
        return False
    if isinstance(value, v.Items) and value.kind == "s":
        return False
    held = _parts(value)
    if held is None:
        count[0] += 1
        return depth > 0 and count[0] <= _MOST and not isinstance(value, v.Inst) and value is not v.UNKNOWN
    return all(_is_known(one, depth + 1, count) for one in held)


def _of_each(interp: Interp, function: v.Value, value: v.Value, node: Any) -> v.Value:
    if isinstance(value, v.Items):
        return v.Items(value.kind, [_of_each(interp, function, one, node) for one in value.elts])
    if isinstance(value, v.Mapping):
        return v.Mapping({key: _of_each(interp, function, one, node) for key, one in value.items.items()})
    held = records.named(value)
    if held is not None:
        return records.like(
            value, {name: _of_each(interp, function, x, node) for name, x in held.items()}, node
        )
    return interp.call(function, v.Args([value]), node)
