"""What checks listen to during an abstract run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from d9mlint.interp import events as e
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent as CallEvent
from d9mlint.interp.events import Loop as Loop
from d9mlint.interp.listening import Listeners, Listening
from d9mlint.interp.memory import Cell, Memory

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.state import Rng, Site
    from d9mlint.knowledge.schema import RngEntry


CallHook = Callable[["Interp", CallEvent], None]


@dataclass
class Hooks:
    """Listeners by what they listen to. Hooks report through the findings collector they were made with."""

    calls: dict[str, list[CallHook]] = field(default_factory=dict)
    methods: dict[str, list[CallHook]] = field(default_factory=dict)
    any_call: list[CallHook] = field(default_factory=list)
    attributes: dict[str, list[Callable[[Interp, str, v.Value, Any], None]]] = field(default_factory=dict)
    object_attributes: dict[str, list[Callable[..., None]]] = field(default_factory=dict)
    env: list[Callable[[Interp, str, v.Value, Any], None]] = field(default_factory=list)
    imports: list[Callable[[Interp, str, Any], None]] = field(default_factory=list)
    draws: list[Callable[[Interp, str, Rng, RngEntry, Any], None]] = field(default_factory=list)
    # Draws from an RNG that a helper may have seeded of which only the name is known.
    doubtful_draws: list[Callable[[Interp, str, Rng, RngEntry, Any], None]] = field(default_factory=list)
    # A seed at a site comes after the draw of a default argument that is used.
    late_seeds: list[Callable[[Interp, str, RngEntry, Any, Site], None]] = field(default_factory=list)
    # A library object is called: a layer, a transform.
    object_calls: list[Callable[[Interp, v.Obj, v.Args], None]] = field(default_factory=list)
    any_draw: list[Callable[[Interp, str, RngEntry], None]] = field(default_factory=list)
    seeds: list[Callable[[Interp, RngEntry, v.Args, Any, list[str]], None]] = field(default_factory=list)
    # What a library call gave, for calls whose result is an object.
    results: list[Callable[[Interp, CallEvent, v.Value], None]] = field(default_factory=list)
    # A loop begins (True), or its body has run (False).
    loops: list[Callable[[Interp, Loop, bool], None]] = field(default_factory=list)
    # An `if` or `while` is about to be decided.
    tests: list[Callable[[Interp, Any], None]] = field(default_factory=list)
    # A context manager is entered (True) or left (False).
    contexts: list[Callable[[Interp, v.Value, Any, bool], None]] = field(default_factory=list)
    iterations: list[Callable[[Interp, v.Value], None]] = field(default_factory=list)
    items: list[Callable[..., None]] = field(default_factory=list)
    item_writes: list[Callable[..., None]] = field(default_factory=list)
    item_updates: list[Callable[..., None]] = field(default_factory=list)
    operators: list[Callable[..., None]] = field(default_factory=list)
    bare_names: list[Callable[[Interp, v.Value, Any], None]] = field(default_factory=list)
    instances: list[Callable[[Interp, v.Inst], None]] = field(default_factory=list)
    ends: list[Callable[[Interp], None]] = field(default_factory=list)

    def on_call(self, *names: str) -> Callable[[CallHook], CallHook]:
        """Decorator: listen to calls of these canonical names."""

        def register(hook: CallHook) -> CallHook:
            for name in names:
                self.calls.setdefault(name, []).append(hook)
            return hook

        return register

    def on_method(self, *names: str) -> Callable[[CallHook], CallHook]:
        """Decorator: listen to calls of methods by bare name, whatever the receiver."""

        def register(hook: CallHook) -> CallHook:
            for name in names:
                self.methods.setdefault(name, []).append(hook)
            return hook

        return register

    def adopt(self, interp: Interp, listeners: Listeners) -> None:
        """Tell these functions of the events."""

        def spread(hook: Callable[..., None]) -> Callable[[Any], None]:
            return lambda event: hook(interp, *event)

        def whole(hook: Callable[..., None]) -> Callable[[Any], None]:
            return lambda event: hook(interp, event)

        def result(hook: Callable[..., None]) -> Callable[[Any], None]:
            return lambda event: hook(interp, event.call, event.result)

        for name, hooks in self.calls.items():
            for hook in hooks:
                if name == "@decorator":
                    listeners.listen(Listening(e.DecoratorEvent), _decorator(interp, hook))
                else:
                    listeners.listen(Listening(CallEvent, (name,)), whole(hook))
        for name, hooks in self.methods.items():
            for hook in hooks:
                listeners.listen(Listening(CallEvent, (name,), method=True), whole(hook))
        for name, attributes in self.attributes.items():
            for attribute in attributes:
                listeners.listen(Listening(e.AttributeEvent, (name,)), spread(attribute))
        for name, objects in self.object_attributes.items():
            for one in objects:
                listeners.listen(Listening(e.ObjectAttributeEvent, (name,)), spread(one))
        for call in self.any_call:
            listeners.listen(Listening(CallEvent), whole(call))
        for given in self.results:
            listeners.listen(Listening(e.ResultEvent), result(given))
        table: list[tuple[type[Any], Any]] = [
            (e.EnvironmentEvent, self.env),
            (e.ImportEvent, self.imports),
            (e.DrawEvent, self.draws),
            (e.DoubtfulDrawEvent, self.doubtful_draws),
            (e.LateSeedEvent, self.late_seeds),
            (e.ObjectCallEvent, self.object_calls),
            (e.AnyDrawEvent, self.any_draw),
            (e.SeedEvent, self.seeds),
            (e.LoopEvent, self.loops),
            (e.TestEvent, self.tests),
            (e.ContextEvent, self.contexts),
            (e.IterationEvent, self.iterations),
            (e.ItemEvent, self.items),
            (e.ItemWriteEvent, self.item_writes),
            (e.ItemUpdateEvent, self.item_updates),
            (e.OperatorEvent, self.operators),
            (e.BareNameEvent, self.bare_names),
            (e.InstanceEvent, self.instances),
            (e.EndEvent, self.ends),
        ]
        for event, listening in table:
            for anything in listening:
                listeners.listen(Listening(event), spread(anything))


def _decorator(interp: Interp, hook: Callable[..., None]) -> Callable[[Any], None]:
    return lambda event: hook(
        interp, CallEvent("@decorator", v.Args([event.decorator, event.decorated]), event.node)
    )


_NOTES = ("notes", "")


class Notes:
    """The memory by names without types, for rules that have no fields yet."""

    __slots__ = ("_memory",)

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def get(self, key: Any, default: Any = None) -> Any:
        return self._memory.get(Cell(*_NOTES, key), default)

    def setdefault(self, key: Any, default: Any) -> Any:
        return self._memory.make(Cell(*_NOTES, key), lambda: default)

    def pop(self, key: Any, default: Any = None) -> Any:
        found = self.get(key, default)
        self._memory.forget(Cell(*_NOTES, key))
        return found

    def __getitem__(self, key: Any) -> Any:
        return self.get(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._memory.set(Cell(*_NOTES, key), value)

    def __contains__(self, key: Any) -> bool:
        return self._memory.holds(Cell(*_NOTES, key))

    def __delitem__(self, key: Any) -> None:
        self._memory.forget(Cell(*_NOTES, key))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._memory.keys(*_NOTES))
