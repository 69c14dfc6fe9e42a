"""Which abstract tensors share their memory: views, parameters and buffers lead back to what was allocated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.events import ResultEvent
from d9mlint.interp.heap import HEAP
from d9mlint.interp.listening import on
from d9mlint.interp.state import Site

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.view import RunView

_SHARED = "@memory"
_VIEWED = "@viewed"
_ITEM_OF = "@item of"
_SAME = frozenset({"data", "T", "mT", "H", "real"})
"""Attributes of a tensor that share its memory."""
_ATTRIBUTES = frozenset(f"torch.Tensor.{name}" for name in _SAME)
_MAX_LINKS = 8


def behind(value: v.Value | None) -> v.Value | None:
    """The tensor of which a value is an attribute that shares its memory; None for anything else."""
    if isinstance(value, v.Member) and value.name in _SAME:
        return value.owner
    if isinstance(value, v.Obj) and value.api in _ATTRIBUTES and value.args.pos:
        return value.args.pos[0]
    return None


def viewed(value: v.Value | None) -> v.Value | None:
    """The tensor of which a call gave a view, as far as somebody watches its memory; None for anything else."""
    return value.attrs.get(_VIEWED) if isinstance(value, v.Obj) and value._attrs is not None else None


def has_known_items(interp: RunView, value: v.Value | None) -> bool:
    """Whether it is followed what becomes of the items of a tensor: the running activation allocated its memory, not in an
    earlier round of a loop."""
    owner = root(interp, whole_of(value))
    if owner is None or owner.birth < HEAP.act.start or interp.kb.role(owner.api, "allocates") is None:
        return False
    return not any(loop.start > owner.birth for loop in interp.loops)


def taken(interp: RunView, item: v.Obj, value: v.Obj) -> None:
    """``item`` is what an index selects of a tensor."""
    if (value._attrs is not None or interp.kb.by_role(value.api)) and has_known_items(interp, value):
        item.attrs[_ITEM_OF] = value


def whole_of(value: v.Value | None) -> v.Value | None:
    """The tensor of which a value is an item that is followed; the value itself for anything else."""
    for _ in range(_MAX_LINKS):
        found = value.attrs.get(_ITEM_OF) if isinstance(value, v.Obj) and value._attrs is not None else None
        if found is None:
            break
        value = found
    return value


def made_at(value: v.Obj) -> Site | None:
    """The call that made an object, None where no call of the program is known to have made it."""
    if value.file is None or value.node is None:
        return None
    return Site(value.file.path, value.node.start, value.node.end)


def root(interp: RunView, value: v.Value | None) -> v.Obj | None:
    """The object whose memory a tensor uses: itself where nothing else is known."""
    for _ in range(_MAX_LINKS):
        inner = behind(value)
        if inner is not None:
            value = inner
            continue
        if not isinstance(value, v.Obj):
            return None
        held = value.attrs.get(_SHARED) if value._attrs is not None else None
        if held is None:
            role = interp.kb.role(value.api, "holds")
            held = value.args.get(role.arg or "data", role.pos or 0) if role is not None else None
        if held is None or held is v.UNKNOWN:
            return value
        value = held
    return None


def followed(interp: RunView, value: v.Obj | v.Member) -> bool:
    """Whether anything is known of a value's memory: what allocated it, or whose it is. Of most nothing is."""
    if isinstance(value, v.Member):
        return value.name in _SAME
    return value._attrs is not None or value.api in _ATTRIBUTES or bool(interp.kb.by_role(value.api))


class Storage:
    """Remembers of which tensors others are views, as far as somebody watches their memory."""

    def __init__(self, interp: Interp) -> None:
        self._interp = interp

    @on(ResultEvent)
    def made(self, event: ResultEvent) -> None:
        """A call gave something."""
        interp, (call, result) = self._interp, event
        if not isinstance(result, v.Obj):
            return
        roles = interp.kb.by_role(call.api)
        role = roles.get("views") or roles.get("copies")
        if role is None:
            return
        if call.owner is not None:
            self._share(result, call.owner)
            return
        given = call.args.get(role.arg, role.pos) if role.arg else None
        if role.role == "views":
            self._share(result, given)
            return
        # What is joined is read where what it gives is read.
        for part in given.elts if isinstance(given, v.Items) else (given,):
            if self._share(result, part, copied=True):
                return
            if isinstance(part, v.Obj) and whole_of(part) is not part and has_known_items(interp, part):
                result.attrs[_ITEM_OF] = part
                return

    def _share(self, result: v.Obj, value: v.Value | None, copied: bool = False) -> bool:
        owner, role = root(self._interp, value), self._interp.kb.role
        if owner is None or owner is result:
            return False
        if role(owner.api, "allocates") is None and (copied or role(owner.api, "async-copy") is None):
            return False
        result.attrs[_SHARED] = owner
        if value is not None:
            result.attrs[_VIEWED] = value
        return True
