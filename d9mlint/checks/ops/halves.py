"""Images that are resized to half their size or less: ``F.interpolate(x, (h // 2, w // 2), mode="bilinear")`` reads no
element twice, so that nothing is added up in its backward pass."""

from __future__ import annotations

from typing import Any

from d9mlint.checks.base import argument_node
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.events import CallEvent
from d9mlint.interp.naming import running
from d9mlint.interp.view import RunView
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import names_assigned, times_stored
from d9mlint.ir.traversal import statements, whole_number


def reads_each_once(run: RunView, call: CallEvent) -> bool:
    """Whether a call resizes its input to a fraction of each of its sizes, as the expressions say."""
    role = run.kb.role(call.api, "resizes")
    if role is None or not isinstance(call.node, m.Call) or all_hold(call.args, role.when) is not True:
        return False
    image, sizes = argument_node(call.node, "input", 0), argument_node(call.node, role.arg, role.pos)
    if not isinstance(image, m.Name) or "." in image.id or not isinstance(sizes, m.Seq):
        return False
    count = len(sizes.elts)
    return bool(sizes.elts) and all(
        _is_fraction(run, call.node, one, image.id, at, count) for at, one in enumerate(sizes.elts)
    )


def _is_fraction(run: RunView, call: m.Call, node: Any, image: str, at: int, count: int) -> bool:
    """Whether an expression is one of the last sizes of an image, divided by two or more."""
    if not isinstance(node, m.BinOp) or node.op != "//":
        return False
    divisor = whole_number(node.right)
    places = (at - count, at + _BEFORE)
    if divisor is None or divisor < _HALF:
        return False
    if isinstance(node.left, m.Name):
        return _is_stored(run, call, node.left.id, image, at, count)
    return _place(node.left, image) in places


def _is_stored(run: RunView, call: m.Call, name: str, image: str, at: int, count: int) -> bool:
    """Whether a variable holds one of the last sizes of an image, which is the same since then."""
    function = running(run)
    if function is None or "." in name or times_stored(function, name) != 1:
        return False
    stores = [one for one in statements(function.body) if name in names_assigned([one])]
    stmt = stores[-1] if stores else None
    if not isinstance(stmt, m.Assign) or len(stmt.targets) != 1 or stmt.end > call.start:
        return False
    between = (one for one in statements(function.body) if stmt.end < one.start and one.end < call.start)
    if any(image in names_assigned([one]) for one in between):
        return False
    target = stmt.targets[0]
    if isinstance(target, m.Name):
        return _place(stmt.value, image) in (at - count, at + _BEFORE)
    if not isinstance(target, m.Seq) or any(isinstance(one, m.Star) for one in target.elts):
        return False
    held = next((k for k, one in enumerate(target.elts) if isinstance(one, m.Name) and one.id == name), None)
    whole = _sizes(stmt.value, image)
    return (
        held is not None
        and whole is not None
        and held - len(target.elts) == at - count
        and (len(target.elts) == (count + _BEFORE if whole == 0 else -whole))
    )


def _sizes(node: Any, image: str) -> int | None:
    """Whether an expression gives the sizes of an image: 0 for all of them, -2 for the last two; None for anything else."""
    if isinstance(node, m.Subscript) and isinstance(node.index, m.Slice):
        index = node.index
        last = whole_number(index.lower)
        whole = index.upper is None and index.step is None and _sizes(node.value, image) == 0
        return last if whole and last is not None and last < 0 else None
    if isinstance(node, m.Call):
        plain = isinstance(node.func, m.Name) and not node.args and not node.keywords
        return 0 if plain and isinstance(node.func, m.Name) and node.func.id == f"{image}.size" else None
    return 0 if isinstance(node, m.Name) and node.id == f"{image}.shape" else None


def _place(node: Any, image: str) -> int | None:
    """Of which dimension of an image an expression is the size."""
    index: Any = None
    if isinstance(node, m.Subscript) and _sizes(node.value, image) == 0:
        index = node.index
    elif isinstance(node, m.Call) and isinstance(node.func, m.Name) and node.func.id == f"{image}.size":
        index = node.args[0] if len(node.args) == 1 else None
    return whole_number(index)


_BEFORE = 2
"""How many dimensions stand before those of the image: the batch and the channels."""
_HALF = 2
