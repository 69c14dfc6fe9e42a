"""Who hears of which calls."""

from __future__ import annotations

import pytest

from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import Listeners, on, on_call_with_objects

OBJECT = v.Obj("torch.Tensor", "torch.Tensor")


class Heard:
    """Listens to all calls, and to those with objects."""

    def __init__(self) -> None:
        self.all: list[CallEvent] = []
        self.with_objects: list[CallEvent] = []

    @on(CallEvent)
    def called(self, call: CallEvent) -> None:
        """Something is called."""
        self.all.append(call)

    @on_call_with_objects
    def given_objects(self, call: CallEvent) -> None:
        """Something is called with objects."""
        self.with_objects.append(call)


@pytest.mark.parametrize(
    ("owner", "pos", "kw", "heard"),
    [
        (None, [], {}, False),
        (None, [v.Lit(1), v.UNKNOWN], {"dtype": v.Ext("torch.float32")}, False),
        (v.UNKNOWN, [v.NONE], {}, False),
        (OBJECT, [], {}, True),
        (None, [v.Lit(1), OBJECT], {}, True),
        (None, [], {"out": OBJECT}, True),
        (None, [v.Items("l", [v.Lit(1)])], {}, True),
        (v.Member(v.UNKNOWN, "weight"), [], {}, True),
        (None, [v.AnyOf((v.Lit(1), OBJECT))], {}, True),
    ],
)
def test_only_calls_with_objects_are_told_to_who_listens_to_them(
    owner: v.Value | None, pos: list[v.Value], kw: dict[str, v.Value], heard: bool
) -> None:
    listener, listeners = Heard(), Listeners()
    listeners.add(listener)
    for _ in range(2):
        call = CallEvent("torch.add", v.Args(pos, kw), None, owner)
        listeners.tell_any_call(call)
        assert listener.all.pop() is call
        assert listener.with_objects == ([call] if heard else [])
        listener.with_objects.clear()
