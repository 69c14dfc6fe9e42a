"""What happens in an abstract run, as the rules hear of it: one immutable type for each kind of event.

The interpreter tells; rules and the interpreter's own models listen (see ``listening``). No event gives a listener a
way to change the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp import values as v
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.state import Rng, Site
    from d9mlint.ir import nodes as m
    from d9mlint.knowledge.schema import RngEntry


class Loop(NamedTuple):
    """A loop that is running: its statement, the path of the file it stands in, the function it belongs to (by
    its activation's frame), the time before which values are older than the loop, and what a ``for`` statement iterates."""

    stmt: Any
    path: str
    frame: Any
    start: int
    over: v.Value | None = None

    @property
    def key(self) -> str:
        """The loop's place, as a name."""
        return f"{self.path}:{self.stmt.start}"

    def holds(self, path: str, offset: int) -> bool:
        """Whether a place is in the loop's statement or body."""
        if path != self.path or offset < self.stmt.start:
            return False
        return any(offset < getattr(node, "end", 0) for node in nodes([self.stmt]))


class CallEvent(NamedTuple):
    """A call of a library function, class or method. ``api`` is the canonical name (``torch.Tensor.add_`` for
    a method of a known type, ``?.add_`` for one of an unknown receiver); ``owner`` the receiver. ``base_of`` is the
    object whose base class is called, as by ``super().__init__()``."""

    api: str
    args: v.Args
    node: Any
    owner: v.Value | None = None
    base_of: v.Inst | None = None


class DecoratorEvent(NamedTuple):
    """A decorator of a library is applied to a function or class."""

    decorator: v.Value
    decorated: v.Value
    node: Any


class RegisterEvent(NamedTuple):
    """A decorator of a library keeps a function or class of the project. ``registry`` names what keeps it: the function or
    method with its library, and where the registry is an object that the project makes, where that is made."""

    registry: str
    registered: v.Func | v.Cls


class DecoratedCallEvent(NamedTuple):
    """A function is called that decorators of libraries are applied to."""

    function: v.Func
    args: v.Args
    node: Any


class AnswerEvent(NamedTuple):
    """What a function gave that is registered with a server, which sends it to somebody."""

    value: v.Value


class RoundEvent(NamedTuple):
    """A library that calls a function in rounds has called it for the first: what it gives the next round."""

    carry: v.Value


class ResultEvent(NamedTuple):
    """What a library call gave, for calls whose result is an object."""

    call: CallEvent
    result: v.Value


class ObjectCallEvent(NamedTuple):
    """A library object is called: a layer, a transform."""

    obj: v.Obj
    args: v.Args
    node: Any


class AttributeEvent(NamedTuple):
    """An attribute of a library module is set, by its canonical name."""

    name: str
    value: v.Value
    node: Any


class OtherAttributeEvent(NamedTuple):
    """An attribute of a library module is set that is no setting that is known, by its canonical name."""

    name: str
    value: v.Value
    node: Any


class ObjectAttributeEvent(NamedTuple):
    """An attribute of a library object, or of an attribute of one, is set."""

    owner: v.Obj | v.Member
    name: str
    value: v.Value
    node: Any


class InstanceWriteEvent(NamedTuple):
    """An attribute of an instance of a project class is set that holds, or held, an object of a library."""

    old: v.Value | None
    value: v.Value
    owner: v.Inst
    name: str


class InstanceReadEvent(NamedTuple):
    """An attribute of an instance of a project class is read that holds an object of a library, or one of several; where
    ``node`` names it."""

    value: v.Obj | v.AnyOf
    node: Any


class ForeignWriteEvent(NamedTuple):
    """An attribute is set of something that is no instance, class or module of the project: a library may read it."""

    value: v.Value


class EnvironmentEvent(NamedTuple):
    """An environment variable is set; the state still has its old value."""

    name: str
    value: v.Value
    node: Any


class ImportEvent(NamedTuple):
    """A library is imported, by its dotted name."""

    name: str
    node: Any


class DrawEvent(NamedTuple):
    """An RNG is drawn from that is not seeded."""

    rng: str
    level: Rng
    entry: RngEntry
    node: Any


class DoubtfulDrawEvent(NamedTuple):
    """An RNG is drawn from that a helper may have seeded of which only the name is known."""

    rng: str
    level: Rng
    entry: RngEntry
    node: Any


class AnyDrawEvent(NamedTuple):
    """An RNG is drawn from, seeded or not; ``own`` for a generator that an object keeps."""

    rng: str
    entry: RngEntry
    node: Any


class RepeatedEvent(NamedTuple):
    """A call is taken over from an earlier one: what is noted of each loop in which it happens, under these names, happens
    in the loops that are running now (see ``context.Running.marked``)."""

    names: frozenset[str]

    def named(self, prefix: str) -> list[str]:
        """What follows a prefix in the names that begin with it."""
        return sorted(one.removeprefix(prefix) for one in self.names if one.startswith(prefix))


class GlobalDrawEvent(NamedTuple):
    """A generator that a library keeps is drawn from, seeded or not."""

    rng: str
    level: Rng
    entry: RngEntry
    node: Any


class SeedEvent(NamedTuple):
    """A call seeds these RNGs; the state still has their old levels."""

    entry: RngEntry
    args: v.Args
    node: Any
    rngs: list[str]


class LateSeedEvent(NamedTuple):
    """A default argument is used that was drawn before the seed at ``site``, or a model that was made before the call
    ``seed``."""

    rng: str
    entry: RngEntry
    node: Any
    site: Site
    seed: Any = None


class DefaultGeneratorEvent(NamedTuple):
    """A default argument is used, or may be, that is a generator which was made when its function was defined."""

    entry: RngEntry
    node: Any


class LoopEvent(NamedTuple):
    """A loop begins, or its body has run."""

    loop: Loop
    begins: bool


class TestEvent(NamedTuple):
    """An ``if`` or ``while`` is about to be decided."""

    stmt: m.If | m.While


class ReturnEvent(NamedTuple):
    """A function is about to return the outcome of a comparison."""

    stmt: m.Return


class HandlerEvent(NamedTuple):
    """An ``except`` clause is about to be run; ``stmt`` is the ``try`` that it belongs to."""

    handler: m.Handler
    stmt: m.Try


class ContextEvent(NamedTuple):
    """A context manager is entered or left."""

    context: v.Value
    stmt: m.With
    begins: bool


class DeviceEvent(NamedTuple):
    """A device of TensorFlow is entered that is one of these kinds (see ``graph_devices``)."""

    kinds: frozenset[str]
    node: Any


class IterationEvent(NamedTuple):
    """A value is iterated."""

    value: v.Value


class ItemEvent(NamedTuple):
    """``owner[key]`` is read."""

    owner: v.Value
    key: v.Value
    node: Any


class ItemWriteEvent(NamedTuple):
    """``owner[key] = value``."""

    owner: v.Value
    key: v.Value
    value: v.Value
    node: Any


class ItemUpdateEvent(NamedTuple):
    """``owner[key] op= value``."""

    owner: v.Value
    key: v.Value
    op: str
    value: v.Value
    node: Any


class ClearedEvent(NamedTuple):
    """A list is emptied."""

    owner: v.Items


class OperatorEvent(NamedTuple):
    """A binary operator is applied."""

    op: str
    left: v.Value
    right: v.Value
    node: Any


class LookedAtEvent(NamedTuple):
    """Values, some of them objects, are compared or made into text."""

    values: list[v.Value]


class OutcomeEvent(NamedTuple):
    """A random number is compared, and whatever it is, the outcome is the same."""

    value: v.Obj


class BareNameEvent(NamedTuple):
    """A name stands alone as a statement."""

    value: v.Value
    node: Any


class FailEvent(NamedTuple):
    """The running statement raises an exception whenever it runs, and is none that says so."""

    stmt: Any


class InstanceEvent(NamedTuple):
    """An instance of a project class is made."""

    instance: v.Inst


class EndEvent(NamedTuple):
    """The program has ended."""


Event = (
    CallEvent
    | DecoratorEvent
    | RegisterEvent
    | DecoratedCallEvent
    | AnswerEvent
    | RoundEvent
    | ResultEvent
    | ObjectCallEvent
    | AttributeEvent
    | OtherAttributeEvent
    | ObjectAttributeEvent
    | InstanceWriteEvent
    | InstanceReadEvent
    | ForeignWriteEvent
    | EnvironmentEvent
    | ImportEvent
    | DrawEvent
    | DoubtfulDrawEvent
    | AnyDrawEvent
    | RepeatedEvent
    | GlobalDrawEvent
    | SeedEvent
    | LateSeedEvent
    | DefaultGeneratorEvent
    | LoopEvent
    | TestEvent
    | ReturnEvent
    | HandlerEvent
    | ClearedEvent
    | ContextEvent
    | DeviceEvent
    | IterationEvent
    | ItemEvent
    | ItemWriteEvent
    | ItemUpdateEvent
    | OperatorEvent
    | LookedAtEvent
    | OutcomeEvent
    | BareNameEvent
    | FailEvent
    | InstanceEvent
    | EndEvent
)
"""Everything that a rule can listen to."""
