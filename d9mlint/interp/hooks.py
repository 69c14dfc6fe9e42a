"""What checks listen to during an abstract run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp import values as v
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.state import Rng, Site
    from d9mlint.knowledge.schema import RngEntry


class CallEvent(NamedTuple):
    """A call of a library function, class or method. ``api`` is the canonical name (``torch.Tensor.add_`` for
    a method of a known type, ``?.add_`` for one of an unknown receiver); ``owner`` the receiver."""

    api: str
    args: v.Args
    node: Any
    owner: v.Value | None = None


class Loop(NamedTuple):
    """A loop that is running: its statement, the path of the file it stands in, the function it belongs to (by
    its activation's frame), and the time before which values are older than the loop."""

    stmt: Any
    path: str
    frame: Any
    start: int

    @property
    def key(self) -> str:
        """The loop's place, as a name."""
        return f"{self.path}:{self.stmt.start}"

    def holds(self, path: str, offset: int) -> bool:
        """Whether a place is in the loop's statement or body."""
        if path != self.path or offset < self.stmt.start:
            return False
        return any(offset < getattr(node, "end", 0) for node in nodes([self.stmt]))


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
    # Every draw from a generator that a library keeps, with what is known of its seed.
    all_draws: list[Callable[[Interp, str, Rng, RngEntry, Any], None]] = field(default_factory=list)
    # A rule has looked at a place and does not report it, for a reason. Only `explain` listens.
    silences: list[Callable[[Interp, str, Site, str], None]] = field(default_factory=list)
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
    # Makes a finding again that an import made in another run.
    report: Callable[..., None] = lambda *args, **options: None
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

    def iterate(self, interp: Interp, value: v.Value) -> None:
        """A value is iterated."""
        for hook in self.iterations:
            hook(interp, value)
