"""Generators that a program makes before a loop and draws from in it: where they are is a state of the loop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.context import CPU_CONTEXT, NO_GRADIENT
from d9mlint.interp.events import CallEvent, ObjectAttributeEvent
from d9mlint.interp.listening import on_call, on_call_if, on_object_attribute
from d9mlint.interp.memory import remembered_table
from d9mlint.interp.rng import GENERATOR_TYPES
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.text import written
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.checks.base import Rule
    from d9mlint.interp.memory import Memory
    from d9mlint.interp.view import RunView

OF_TORCH = "torch.Generator"
_STATES = ("get_state", "set_state", "getstate", "setstate", "__getstate__", "__setstate__")
_SEEDS = ("seed", "manual_seed")
"""Methods that ask for the state of a generator or set it, and those that seed it, which a loop may do in each round."""


def _draws(rule: Rule, api: str) -> bool:
    return any(entry.kind == "draw" for entry in rule.run.kb.rng(api))


class OwnDraws:
    """Knows the generators that loops draw from, and which of them the program keeps the state of."""

    run: RunView
    memory: Memory
    own_draws = remembered_table(tuple[Site, str, str], bool)
    """Where generators were made, what the program calls them, and the loops that began later and draw from them."""
    own_kept = remembered_table(Site, bool)
    """Where those were made whose states the program asks for, or sets."""

    @on_call_if(lambda rule, api: api.rpartition(".")[0] in (*GENERATOR_TYPES, OF_TORCH))
    def own_called(self, call: CallEvent) -> None:
        """A method of a generator is called."""
        site = made_at(call.owner) if isinstance(call.owner, v.Obj) else None
        method = call.api.rpartition(".")[2]
        if method in _STATES or method in _SEEDS:
            if site is not None and (method in _STATES or self._in_rounds()):
                self.own_kept[site] = True
        elif isinstance(call.owner, v.Obj) and isinstance(call.node, m.Call):
            self._own_drawn(call.owner, written(call.node.func).rpartition(".")[0])

    @on_call("builtins.next")
    def own_next(self, call: CallEvent) -> None:
        """The next element is taken of something, which may be a sequence of keys of JAX."""
        sequence = call.args.get("iterator", 0)
        node = call.node.args[0] if isinstance(call.node, m.Call) and call.node.args else None
        if node is not None and isinstance(sequence, v.Obj) and self._gives_keys(sequence.api):
            self._own_drawn(sequence, written(node))

    @on_call_if(lambda rule, api: rule.run.kb.role(api.rpartition(".")[0], "gives-keys") is not None)
    def own_sequence(self, call: CallEvent) -> None:
        """A method of a sequence of keys is called: those that do not give keys are about its state."""
        site = made_at(call.owner) if isinstance(call.owner, v.Obj) else None
        if site is not None:
            self.own_kept[site] = True

    def _gives_keys(self, api: str) -> bool:
        return self.run.kb.role(api, "gives-keys") is not None

    @on_call_if(_draws)
    def own_given(self, call: CallEvent) -> None:
        """Something draws that is given a generator of PyTorch."""
        if not isinstance(call.node, m.Call):
            return
        for node in (*call.node.args, *(one.value for one in call.node.keywords)):
            value = self.run.value_of(node) if isinstance(node, m.Name) and self._in_rounds() else None
            if isinstance(value, v.Obj) and value.type == OF_TORCH:
                self._own_drawn(value, written(node))

    @on_object_attribute("state")
    def own_set(self, event: ObjectAttributeEvent) -> None:
        """A generator of NumPy is given the state of its bits."""
        owner = event.owner.owner if isinstance(event.owner, v.Member) else event.owner
        site = made_at(owner) if isinstance(owner, v.Obj) else None
        if site is not None:
            self.own_kept[site] = True

    def _in_rounds(self) -> bool:
        """Whether what runs now may run once more in a later round."""
        return bool(self.run.loops)

    def _own_drawn(self, generator: v.Obj, name: str) -> None:
        site = made_at(generator)
        # The items of a loader may be made by workers, which have their own copies.
        if site is None or not name or CPU_CONTEXT in self.run.contexts:
            return
        loops = [one.key for one in self.run.loops if generator.birth < one.start]
        if loops and not self.run.contexts.within(NO_GRADIENT):
            for loop in loops:
                self.own_draws[site, name, loop] = True

    def unsaved_generators(self, loops: Iterable[str], kept: Iterable[Site]) -> list[str]:
        """What the generators are called that some loops draw from, and whose states nothing keeps."""
        among, known = set(loops), {*kept, *self.own_kept.known()}
        return sorted(
            {name for site, name, loop in self.own_draws.known() if loop in among and site not in known}
        )
