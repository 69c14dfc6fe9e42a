"""Items that each round of a loop has for itself: ``groups[name].append(x)`` in a loop over names that are all different.

Such a list gets no more from another round, so that the order of the rounds is that of the keys alone. A key that has the
element in it, with nothing else that differs, is different in each round too: ``f"{name}_loss"``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from d9mlint.interp.order_lone import is_entry
from d9mlint.interp.order_single import is_joined, only_value
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import assigned_names, names_assigned, own_names
from d9mlint.ir.traversal import statements

if TYPE_CHECKING:
    from d9mlint.interp.frames import Frame
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.orders import Loop

_SETDEFAULT = "setdefault"
_FORMAT = "format"
_DEEPEST = 8


def has_own_item(interp: Interp, loop: Loop, container: Any) -> bool:
    """Whether each round of a loop takes an item of a container that no other round takes."""
    if loop.stmt is None or loop.entry is None:
        return False
    return any(_differs(interp, loop, frame, key, 0) for frame, key in _keys(loop, interp.frame, container))


def _keys(loop: Loop, frame: Frame, container: Any) -> Iterator[tuple[Frame, m.Expr]]:
    """The keys by which an expression takes items: those of ``groups[a][b]`` and of ``groups.setdefault(a, [])``, also
    where that is what a variable holds, what a function is given, or what its receiver is."""
    for _ in range(_DEEPEST):
        if isinstance(container, m.Subscript):
            yield frame, container.index
            container = container.value
        elif isinstance(container, m.Attr):
            container = container.value
        elif isinstance(container, m.Name):
            head = container if "." not in container.id else m.Name(container.id.partition(".")[0], 0, 0)
            found = _source(loop, frame, head)
            if found is None:
                return
            frame, container = found
        elif isinstance(container, m.Call) and container.args and _method(container) == _SETDEFAULT:
            yield frame, container.args[0]
            container = container.func.value if isinstance(container.func, m.Attr) else None
        else:
            return


def _method(call: m.Call) -> str:
    if isinstance(call.func, m.Attr):
        return call.func.name
    return call.func.id.rpartition(".")[2] if isinstance(call.func, m.Name) else ""


def _differs(interp: Interp, loop: Loop, frame: Frame, node: m.Expr, depth: int) -> bool:
    """Whether an expression is different in each round of a loop, which runs in this frame or calls what does."""
    if depth > _DEEPEST or loop.entry is None or loop.stmt is None:
        return False
    if frame.env is loop.env and is_entry(interp, node, loop.entry):
        return True
    if isinstance(node, m.Name):
        found = _source(loop, frame, node)
        return found is not None and _differs(interp, loop, *found, depth + 1)
    if isinstance(node, m.Seq):
        return node.kind == "t" and any(_differs(interp, loop, frame, one, depth + 1) for one in node.elts)
    parts = _parts(interp, node)
    if not parts:
        return False
    differing = [one for one in parts if _differs(interp, loop, frame, one, depth + 1)]
    return len(differing) == 1 and all(
        one is differing[0] or _is_fixed(interp, loop, frame, one, depth + 1) for one in parts
    )


def _is_fixed(interp: Interp, loop: Loop, frame: Frame, node: m.Expr, depth: int) -> bool:
    """Whether an expression is the same in each round of a loop."""
    if depth > _DEEPEST or loop.stmt is None or loop.entry is None:
        return False
    if isinstance(node, m.Const):
        return True
    if isinstance(node, m.Name):
        found = _source(loop, frame, node)
        if found is not None:
            return _is_fixed(interp, loop, *found, depth + 1)
        head = node.id.partition(".")[0]
        if frame.env is loop.env:
            return head != loop.entry.variable and head not in assigned_names(loop.stmt)
        return "." not in node.id and head not in own_names(frame.function)
    parts = _parts(interp, node)
    return bool(parts) and all(_is_fixed(interp, loop, frame, one, depth + 1) for one in parts)


def _parts(interp: Interp, node: m.Expr) -> list[m.Expr]:
    """What a text is put together from, all of which can be read from it where one part alone differs."""
    if isinstance(node, m.FString):
        return node.parts
    if isinstance(node, m.BinOp) and node.op in ("+", "/"):
        return [node.left, node.right]
    if isinstance(node, m.BinOp) and node.op == "%" and isinstance(node.left, m.Const):
        given = node.right
        return list(given.elts) if isinstance(given, m.Seq) else [given]
    if isinstance(node, m.Call) and not any(isinstance(one, m.Star) for one in node.args):
        if (
            _method(node) == _FORMAT
            and isinstance(node.func, m.Attr)
            and isinstance(node.func.value, m.Const)
        ):
            return [*node.args, *(one.value for one in node.keywords)]
        if is_joined(interp, node):
            return list(node.args)
    return []


def _source(loop: Loop, frame: Frame, name: m.Name) -> tuple[Frame, m.Expr] | None:
    """What a variable has in a round, if that is written in one place: in the loop, in a function that it calls, or as an
    argument of that call."""
    if frame.env is loop.env:
        written = [
            one.value
            for one in statements(loop.stmt.body if loop.stmt is not None else [])
            if isinstance(one, m.Assign) and any(_is(target, name.id) for target in one.targets)
        ]
        return (frame, written[0]) if len(written) == 1 and "." not in name.id else None
    function, call = frame.func, frame.began()
    if function is None or call is None or frame.caller is None:
        return None
    made = only_value(function.fn, name.id)
    if made is not None:
        return frame, made
    bound = 1 if function.receiver is not None else 0
    for index, param in enumerate(function.fn.params):
        if param.name != name.id or param.kind not in "pak" or name.id in names_assigned(function.fn.body):
            continue
        found = [one.value for one in call.keywords if one.name == name.id]
        place = index - bound
        if place < 0 and isinstance(call.func, m.Attr):
            found = [call.func.value]
        if not found and param.kind != "k" and 0 <= place < len(call.args):
            if any(isinstance(one, m.Star) for one in call.args[: place + 1]):
                return None
            found = [call.args[place]]
        return (frame.caller, found[0]) if found else None
    return None


def _is(target: m.Expr, name: str) -> bool:
    return isinstance(target, m.Name) and target.id == name
