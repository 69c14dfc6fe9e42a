"""What listeners remember, and when an import that they listened to may be taken over by another run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from d9mlint.interp.events import CallEvent, EndEvent
from d9mlint.interp.listening import Listeners, Wanted, on, on_call, on_call_if, on_method
from d9mlint.interp.memory import Memory, Tick, noted, remembered, remembered_once, remembered_table
from d9mlint.interp.values import NO_ARGS


class Counting:
    """A listener with every kind of field."""

    seen = remembered(bool)
    first = remembered_once(str)
    names = remembered(list[str])
    table = remembered_table(str, int)
    pairs = remembered_table(tuple[str, int], int)
    notes = noted(list[str])

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.heard: list[str] = []

    @on(CallEvent)
    def any_call(self, call: CallEvent) -> None:
        self.heard.append(f"any {call.api}")

    @on_call("torch.rand")
    def rand(self, call: CallEvent) -> None:
        self.heard.append(f"rand {call.api}")

    @on_method("item")
    def item(self, call: CallEvent) -> None:
        self.heard.append(f"item {call.api}")

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        self.heard.append("end")


def test_fields_are_empty_at_first_and_each_run_has_its_own() -> None:
    one, other = Counting(Memory()), Counting(Memory())
    assert (one.seen, one.first, one.names, one.table.get("a")) == (False, None, [], None)
    one.seen, one.first = True, "torch"
    one.names.append("rand")
    one.table["a"] = 1
    assert (one.seen, one.first, one.names, one.table["a"]) == (True, "torch", ["rand"], 1)
    assert (other.seen, other.first, other.names, "a" in other.table) == (False, None, [], False)


def test_what_is_remembered_in_speculation_is_forgotten() -> None:
    rule = Counting(Memory())
    rule.names.append("before")
    memory, rule.memory = rule.memory, rule.memory.forked()
    rule.names.append("inside")
    rule.table["a"] = 1
    rule.memory = memory
    assert rule.names == ["before"]
    assert rule.table.known() == []


def _append(rule: Counting) -> None:
    rule.names.append("x")


def _look(rule: Counting) -> None:
    assert not rule.names


def _look_and_append(rule: Counting) -> None:
    names = rule.names
    with rule.memory.recorded():
        _look(rule)
    names.append("x")


def _set(rule: Counting) -> None:
    rule.seen = True


def _note(rule: Counting) -> None:
    rule.notes.add("x")


def _read_notes(rule: Counting) -> None:
    list(rule.notes)


def _set_time(rule: Counting) -> None:
    rule.table["a"] = Tick(3)


def _ask(rule: Counting) -> None:
    _ = rule.seen
    _ = "a" in rule.table


def _set_again(rule: Counting) -> None:
    rule.first = "torch"


@pytest.mark.parametrize(
    ("does", "quiet"),
    [
        (_append, False),
        (_look, True),
        (_look_and_append, False),
        (_read_notes, False),
        (_note, True),
        (_set, True),
        (_set_time, False),
        (_ask, True),
        (_set_again, True),
    ],
)
def test_an_import_that_changes_what_another_run_cannot_repeat_is_not_quiet(
    does: Callable[[Counting], None], quiet: bool
) -> None:
    rule = Counting(Memory())
    rule.first = "torch"
    with rule.memory.recorded() as log:
        does(rule)
    assert log.quiet is quiet


def test_an_import_holds_only_where_what_it_read_is_the_same() -> None:
    rule = Counting(Memory())
    with rule.memory.recorded() as log:
        _ask(rule)
    other = Counting(Memory())
    assert other.memory.agrees(log)
    other.table["b"] = 1
    assert other.memory.agrees(log)
    other.table["a"] = 1
    assert not other.memory.agrees(log)


def test_an_import_that_read_the_keys_of_a_table_holds_where_they_are_the_same() -> None:
    rule = Counting(Memory())
    rule.pairs["numpy", 0] = 1
    with rule.memory.recorded() as outer:
        rule.pairs["torch", 1] = 1
        with rule.memory.recorded() as log:
            rule.pairs["torch", 2] = 1
            assert rule.pairs.known("torch") == [("torch", 1), ("torch", 2)]
            rule.pairs.pop(("torch", 2))
    assert log.quiet and outer.quiet
    for held, inner_holds, outer_holds in (
        ([("torch", 1)], True, True),
        ([("torch", 2)], False, True),
        ([("torch", 1), ("torch", 2), ("random", 4)], True, True),
        ([("torch", 1), ("torch", 3)], False, False),
        ([], False, True),
    ):
        other = Counting(Memory())
        for key in held:
            other.pairs[key] = 5
        assert other.memory.agrees(log) == inner_holds, held
        assert other.memory.agrees(outer) == outer_holds, held
        other.memory.take_over(outer, lambda one: one)
        assert other.pairs["torch", 1] == 1 and ("torch", 2) not in other.pairs


def test_an_import_that_found_a_list_empty_holds_where_it_is_empty() -> None:
    rule = Counting(Memory())
    with rule.memory.recorded() as log:
        _look(rule)
    other = Counting(Memory())
    assert other.memory.agrees(log)
    assert other.names == [] and other.memory.agrees(log)
    other.names.append("x")
    assert not other.memory.agrees(log)


class _Placed:
    """What says how a run came to the import that noted it."""

    def __init__(self, way: str) -> None:
        self.way = way

    def replayed(self, way: str) -> _Placed:
        return _Placed(way)


def test_a_run_that_takes_an_import_over_notes_and_sets_the_same() -> None:
    rule = Counting(Memory())
    places = noted(list[_Placed])
    places.__set_name__(Counting, "places")
    first = remembered_table(str, tuple[_Placed, str])
    first.__set_name__(Counting, "first places")
    with rule.memory.recorded() as outer:
        with rule.memory.recorded() as inner:
            rule.seen = True
            rule.notes.add("x")
            places.__get__(rule, Counting).add(_Placed("first"))
            first.__get__(rule, Counting).setdefault("a", lambda: (_Placed("first"), "text"))
        assert rule.seen
    assert outer.quiet and inner.quiet
    # What it had set itself is not what it read.
    assert outer.written == inner.written and not outer.reads.keys() & outer.written.keys()
    other = Counting(Memory())
    other.notes.add("before")
    other.memory.take_over(outer, lambda one: one.replayed("second"))  # type: ignore[call-arg]
    assert (other.seen, list(other.notes)) == (True, ["before", "x"])
    assert [one.way for one in places.__get__(other, Counting)] == ["second"]
    place, text = first.__get__(other, Counting)["a"]
    assert (place.way, text) == ("second", "text")
    # What the import remembers stays as it is.
    assert first.__get__(rule, Counting)["a"][0].way == "first"


def test_listeners_hear_of_what_they_asked_for_in_order() -> None:
    rule, listeners = Counting(Memory()), Listeners()
    listeners.add(rule)
    listeners.tell_call(CallEvent("torch.rand", NO_ARGS, None))
    listeners.tell_method(CallEvent("torch.Tensor.item", NO_ARGS, None), "item", ["torch.Tensor.item"])
    listeners.tell(EndEvent())
    assert rule.heard == [
        "rand torch.rand",
        "any torch.rand",
        "item torch.Tensor.item",
        "any torch.Tensor.item",
        "end",
    ]


def test_observers_hear_of_a_speculation_alone() -> None:
    class Observer:
        def __init__(self) -> None:
            self.heard: list[str] = []

        @on(CallEvent)
        def called(self, call: CallEvent) -> None:
            self.heard.append(call.api)

    observer, listeners = Observer(), Listeners()
    listeners.add(Counting(Memory()))
    listeners.plus([observer]).tell_any_call(CallEvent("inside", NO_ARGS, None))
    listeners.tell_any_call(CallEvent("outside", NO_ARGS, None))
    assert observer.heard == ["inside"]


def test_calls_that_a_listener_does_not_want_are_not_told_to_it() -> None:
    class Chooser:
        def __init__(self, wanted: str) -> None:
            self.wanted, self.asked, self.heard = wanted, 0, list[str]()

        def wants(self, name: str) -> bool:
            self.asked += 1
            return name.startswith(self.wanted)

        @on_call_if(lambda listener, name: listener.wants(name))
        def called(self, call: CallEvent) -> None:
            self.heard.append(call.api)

    one, other, listeners = Chooser("torch."), Chooser("numpy."), Listeners()
    listeners.add(one)
    listeners.tell_call(CallEvent("numpy.zeros", NO_ARGS, None))
    listeners.add(other)
    for name in ("torch.rand", "numpy.zeros", "torch.rand"):
        listeners.tell_call(CallEvent(name, NO_ARGS, None))
    listeners.plus([Chooser("")]).tell_method(CallEvent("torch.Tensor.item", NO_ARGS, None), "item", [])
    assert (one.heard, other.heard) == (["torch.rand", "torch.rand", "torch.Tensor.item"], ["numpy.zeros"])
    assert other.asked == 3  # once for each name


def test_who_wants_a_name_is_asked_once_for_runs_with_the_same_listeners() -> None:
    asked: list[str] = []

    class Chooser:
        def __init__(self) -> None:
            self.heard: list[str] = []

        @on_call_if(lambda _, name: asked.append(name) or name.startswith("torch."))
        def called(self, call: CallEvent) -> None:
            self.heard.append(call.api)

    wanted: Wanted = {}
    for _ in range(2):
        one, listeners = Chooser(), Listeners()
        listeners.add(one)
        listeners.know(wanted)
        for name in ("torch.rand", "numpy.zeros", "torch.rand"):
            listeners.tell_call(CallEvent(name, NO_ARGS, None))
        assert one.heard == ["torch.rand", "torch.rand"]
    assert asked == ["torch.rand", "numpy.zeros"]
    # One listener more is asked for itself, and changes nothing for other runs.
    other = Chooser()
    listeners.add(other)
    listeners.tell_call(CallEvent("torch.rand", NO_ARGS, None))
    assert other.heard == ["torch.rand"] and wanted["torch.rand"] == (0,)
