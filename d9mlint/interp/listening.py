"""Who listens to which events of a run.

A listener is an object with the state of one run. Its methods say with a decorator what they listen to; they are called
in the order in which the listeners were added. What is not known when the class is written, such as names of the
knowledge base, its method ``also`` tells.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from d9mlint.interp import values as v
from d9mlint.interp.events import (
    AttributeEvent,
    CallEvent,
    Event,
    ObjectAttributeEvent,
)

L = TypeVar("L")
E = TypeVar("E")
Method = Callable[[L, E], None]
Handler = Callable[[E], None]

_LISTENS = "_d9mlint_listens"


class Listening(NamedTuple):
    """What a method listens to: a type of events and, for calls and attributes, their names; ``method`` when these
    are bare names of methods, whatever the receiver. ``wanted`` chooses calls by their canonical names, ``with_objects``
    those of methods of objects, or that are given objects. With ``always``, the method hears of imports that are not
    judged, too."""

    event: type[Any]
    names: tuple[str, ...] = ()
    method: bool = False
    wanted: Callable[..., bool] | None = None
    with_objects: bool = False
    always: bool = False


_PLAIN = frozenset({v.Lit, v.Ext, v.Unknown, type(None)})


def _listens(listening: Listening) -> Callable[[Method[L, E]], Method[L, E]]:
    def mark(method: Method[L, E]) -> Method[L, E]:
        setattr(method, _LISTENS, (*getattr(method, _LISTENS, ()), listening))
        return method

    return mark


def on(event: type[E]) -> Callable[[Method[L, E]], Method[L, E]]:
    """Decorator of a method: listen to all events of a type."""
    return _listens(Listening(event))


def on_always(event: type[E], *names: str) -> Callable[[Method[L, E]], Method[L, E]]:
    """Decorator of a method: listen to all events of a type, or to calls of these canonical names, also in imports that
    are not judged, as of the packages around unreached code."""
    return _listens(Listening(event, names, always=True))


def on_call(*names: str) -> Callable[[Method[L, CallEvent]], Method[L, CallEvent]]:
    """Decorator of a method: listen to calls of these canonical names."""
    return _listens(Listening(CallEvent, names))


def on_call_if(
    wanted: Callable[[Any, str], bool], always: bool = False
) -> Callable[[Method[L, CallEvent]], Method[L, CallEvent]]:
    """Decorator of a method: listen to calls that are ``wanted(listener, name)``, which is asked once for each canonical
    name, and so must not look at anything but the knowledge base, the targets and whether a program is run; ``always``,
    also in imports that are not judged."""
    return _listens(Listening(CallEvent, wanted=wanted, always=always))


def on_call_with_objects(method: Method[L, CallEvent]) -> Method[L, CallEvent]:
    """Decorator of a method: listen to calls whose receiver or arguments are, or hold, something that was made; of all
    others it would hear nothing but literals, names of a library and what is not known."""
    return _listens(Listening(CallEvent, with_objects=True))(method)


def on_method(*names: str) -> Callable[[Method[L, CallEvent]], Method[L, CallEvent]]:
    """Decorator of a method: listen to calls of methods by bare name, whatever the receiver."""
    return _listens(Listening(CallEvent, names, method=True))


def on_attribute(*names: str) -> Callable[[Method[L, AttributeEvent]], Method[L, AttributeEvent]]:
    """Decorator of a method: listen to attributes of library modules being set, by canonical names."""
    return _listens(Listening(AttributeEvent, names))


def on_object_attribute(
    *names: str,
) -> Callable[[Method[L, ObjectAttributeEvent]], Method[L, ObjectAttributeEvent]]:
    """Decorator of a method: listen to attributes of library objects being set, by bare names."""
    return _listens(Listening(ObjectAttributeEvent, names))


@functools.cache
def listened(kind: type[Any]) -> tuple[tuple[str, Listening], ...]:
    """The methods of a class that listen, and to what, in the order in which they are written."""
    members: dict[str, Any] = {}
    for one in reversed(kind.__mro__):
        members.update(vars(one))
    return tuple((name, to) for name, member in members.items() for to in getattr(member, _LISTENS, ()))


def listened_by(listener: object) -> tuple[tuple[str, Listening], ...]:
    """The methods of an object that listen, and to what."""
    kind: Any = type(listener)
    return listened(kind)


def _bound(listening: Listening, listener: object) -> Listening:
    """What one listener listens to, of all that are of its class."""
    wanted = listening.wanted
    return listening if wanted is None else listening._replace(wanted=functools.partial(wanted, listener))


Wanted = dict[str, tuple[int, ...]]
"""Those who want a call, by its canonical name: their places among all who listen to calls by no name of their own."""


class _Choice(NamedTuple):
    """Who wants calls of one name: of all, and of those without objects."""

    every: tuple[Handler[CallEvent], ...]
    plain: tuple[Handler[CallEvent], ...]


def _has_objects(event: CallEvent) -> bool:
    args = event.args
    return (
        type(event.owner) not in _PLAIN
        or not _PLAIN.issuperset(map(type, args.pos))
        or (bool(args.kw) and not _PLAIN.issuperset(map(type, args.kw.values())))
    )


class Listeners:
    """The listeners of a run, by what they listen to."""

    __slots__ = (
        "_always",
        "_any_call",
        "_chosen",
        "_muted",
        "_wanted",
        "attributes",
        "calls",
        "handlers",
        "methods",
        "object_attributes",
    )

    def __init__(self) -> None:
        self.calls: dict[str, list[Handler[CallEvent]]] = {}
        self.methods: dict[str, list[Handler[CallEvent]]] = {}
        self.attributes: dict[str, list[Handler[AttributeEvent]]] = {}
        self.object_attributes: dict[str, list[Handler[ObjectAttributeEvent]]] = {}
        self.handlers: dict[type[Any], list[Handler[Any]]] = {}
        # Who listens to calls by no name of their own, and which names they want; and those who want a name, by their
        # places, which several runs have in common. Nobody wants most of them.
        self._any_call: list[tuple[Listening, Handler[CallEvent]]] = []
        self._chosen: dict[str, _Choice] = {}
        self._wanted: Wanted = {}
        self._always: list[tuple[Listening, Handler[Any]]] = []
        self._muted: Listeners | None = None

    def add(self, listener: object) -> None:
        """Tell an object what its methods listen to."""
        for name, listening in listened_by(listener):
            self.listen(_bound(listening, listener), getattr(listener, name))
        more: Callable[[], Iterable[tuple[Listening, Handler[Any]]]] | None
        more = getattr(listener, "also", None)
        for listening, handler in more() if more is not None else ():
            self.listen(listening, handler)

    def listen(self, to: Listening, handler: Handler[Any]) -> None:
        """Tell a function of these events."""
        if to.always:
            self._always.append((to, handler))
        if not to.names and to.event is CallEvent:
            self._any_call.append((to, handler))
            self._chosen.clear()
            self._wanted = {}
            return
        if not to.names:
            self.handlers.setdefault(to.event, []).append(handler)
            return
        table: dict[str, list[Handler[Any]]]
        if to.event is CallEvent:
            table = self.methods if to.method else self.calls
        else:
            table = self.attributes if to.event is AttributeEvent else self.object_attributes
        for name in to.names:
            table.setdefault(name, []).append(handler)

    def know(self, wanted: Wanted) -> None:
        """Who wants which calls is known from other runs with the same listeners, and is noted for them."""
        self._wanted = wanted

    def tell(self, event: Event) -> None:
        """Something happens that has no name."""
        for handler in self.handlers.get(type(event), ()):
            handler(event)

    def tell_call(self, event: CallEvent) -> None:
        """A function or class is called."""
        for handler in self.calls.get(event.api, ()):
            handler(event)
        self.tell_any_call(event)

    def tell_any_call(self, event: CallEvent) -> None:
        """A call of which only those hear who do not listen to its name."""
        chosen = self._chosen.get(event.api)
        if chosen is None:
            places = self._wanted.get(event.api)
            if places is None:
                places = tuple(
                    place
                    for place, (to, _) in enumerate(self._any_call)
                    if to.wanted is None or to.wanted(event.api)
                )
                self._wanted[event.api] = places
            who = [self._any_call[place] for place in places]
            chosen = self._chosen[event.api] = _Choice(
                tuple(handler for _, handler in who),
                tuple(handler for to, handler in who if not to.with_objects),
            )
        for handler in chosen.every if _has_objects(event) else chosen.plain:
            handler(event)

    def tell_named(self, event: CallEvent) -> None:
        """A call that only those hear of who listen to its name."""
        for handler in self.calls.get(event.api, ()):
            handler(event)

    def tell_method(self, event: CallEvent, name: str, names: Iterable[str]) -> None:
        """A method is called; its receiver may go by several ``names``."""
        for one in names:
            for handler in self.calls.get(one, ()):
                handler(event)
        for handler in self.methods.get(name, ()):
            handler(event)
        self.tell_any_call(event)

    def tell_attribute(self, event: AttributeEvent) -> None:
        """An attribute of a library module is set."""
        for handler in self.attributes.get(event.name, ()):
            handler(event)

    def tell_object_attribute(self, event: ObjectAttributeEvent) -> None:
        """An attribute of a library object is set."""
        for handler in self.object_attributes.get(event.name, ()):
            handler(event)

    def plus(self, observers: Iterable[object]) -> Listeners:
        """These, and observers of a speculation, which listen to events without names."""
        new = Listeners()
        new.calls, new.methods = self.calls, self.methods
        new.attributes, new.object_attributes = self.attributes, self.object_attributes
        new.handlers = {event: list(handlers) for event, handlers in self.handlers.items()}
        new._any_call = list(self._any_call)
        new._wanted = self._wanted
        for one in observers:
            for name, listening in listened_by(one):
                assert not listening.names
                new.listen(_bound(listening, one), getattr(one, name))
        return new

    def muted(self) -> Listeners:
        """Nobody listens but those who always do; names that are listened to are still known."""
        if self._muted is None or len(self._muted.calls) != len(self.calls):
            self._muted = Listeners()
            self._muted.calls = {name: [] for name in self.calls}
            for to, handler in self._always:
                self._muted.listen(to, handler)
        return self._muted
