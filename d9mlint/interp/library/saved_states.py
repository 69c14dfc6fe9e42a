"""States that a program loads as it saves them, where it does not ask that they have all weights of a model.

``model.load_state_dict(checkpoint["model"], strict=False)`` may leave initial weights as they are, as those of a new head
on a pretrained model. It leaves none where the file is one that the program itself has saved: it saves the state of that
model under the same key, and loads something else that it saves there, as the state of the optimizer, with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from d9mlint.interp.places import running
from d9mlint.ir import nodes as m
from d9mlint.ir.endings import blocks_within
from d9mlint.ir.traversal import called_name, nodes, parents, receiver, statements

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_WRAPPED = ".module"
_OF_SELF = "self."


def is_saved_state(interp: Interp, call: Any) -> bool:
    """Whether a call of ``load_state_dict`` loads what the file saves under the same key, and other parts beside it."""
    function = running(interp)
    if function is None or not isinstance(call, m.Call) or not call.args:
        return False
    loaded = _loaded(call)
    if loaded is None:
        return False
    file = interp.frame.file
    interp.whole(file)
    known = [
        saved
        for one in file.facts.functions
        if one.cls == function.cls or not loaded.model.startswith(_OF_SELF)
        for saved in _saved(one)
        if saved.get(loaded.key) == loaded.model
    ]
    return any(
        saved.get(other.key) == other.model
        for other in _loaded_with(function, call, loaded)
        for saved in known
    )


class _Loaded:
    """``model.load_state_dict(checkpoint[key])``, by names."""

    __slots__ = ("checkpoint", "key", "model")

    def __init__(self, model: str, checkpoint: str, key: str) -> None:
        self.model = model
        self.checkpoint = checkpoint
        self.key = key


def _loaded(call: m.Call) -> _Loaded | None:
    state = call.args[0] if call.args else None
    if (
        called_name(call) != "load_state_dict"
        or not isinstance(state, m.Subscript)
        or not isinstance(state.value, m.Name)
        or (key := _text(state.index)) is None
    ):
        return None
    return _Loaded(_unwrapped(receiver(call)), state.value.id, key)


def _loaded_with(function: m.Function, call: m.Call, loaded: _Loaded) -> Iterator[_Loaded]:
    """What is loaded of the same checkpoint wherever a call runs, and has to be there as a whole."""
    above = parents(function)
    around: set[int] = set()
    node: Any = call
    while node is not None:
        around.add(id(node))
        node = above.get(id(node))
    given = _given(function, loaded.checkpoint)
    blocks: list[Sequence[m.Stmt]] = [function.body]
    while blocks:
        block = blocks.pop()
        for stmt in block:
            if id(stmt) in around:
                blocks.extend(blocks_within(stmt))
        # A part that is loaded in another branch says nothing.
        if not any(id(one) in around for one in block):
            continue
        for stmt in block:
            other = stmt.value if isinstance(stmt, m.ExprStmt) else None
            found = _loaded(other) if isinstance(other, m.Call) and not other.keywords else None
            if (
                found is not None
                and found.checkpoint == loaded.checkpoint
                and found.key != loaded.key
                and _latest(given, stmt.start) == _latest(given, call.start)
            ):
                yield found


def _given(function: m.Function, name: str) -> list[int]:
    """Where a variable is given a value."""
    return [
        stmt.start
        for stmt in statements(function.body)
        if isinstance(stmt, m.Assign)
        and any(isinstance(one, m.Name) and one.id == name for one in stmt.targets)
    ]


def _latest(places: list[int], before: int) -> int:
    return max((one for one in places if one < before), default=-1)


def _saved(function: m.Function) -> Iterator[dict[str, str]]:
    """The mappings with states that a function makes: the name of what has the state, by key."""
    added: dict[str, dict[str, str]] = {}
    for node in nodes(function.body):
        pairs: list[tuple[str | None, Any]] = []
        if isinstance(node, m.Dict):
            pairs = [
                (_text(key), value)
                for key, value in zip(node.keys, node.values, strict=True)
                if key is not None
            ]
        elif isinstance(node, m.Call) and isinstance(node.func, m.Name) and node.func.id == "dict":
            pairs = [(one.name, one.value) for one in node.keywords]
        elif isinstance(node, m.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, m.Subscript) and isinstance(target.value, m.Name):
                added.setdefault(target.value.id, {}).update(_states([(_text(target.index), node.value)]))
        yield _states(pairs)
    yield from added.values()


def _states(pairs: list[tuple[str | None, Any]]) -> dict[str, str]:
    return {
        key: _unwrapped(receiver(value))
        for key, value in pairs
        if key is not None and called_name(value) == "state_dict"
    }


def _unwrapped(name: str) -> str:
    return name.removesuffix(_WRAPPED)


def _text(key: Any) -> str | None:
    return key.value if isinstance(key, m.Const) and isinstance(key.value, str) else None
