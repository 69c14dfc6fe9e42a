"""Models that loops train, and those whose weights a program saves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from d9mlint.checks.checkpoints.weights import models_made
from d9mlint.interp import values as v
from d9mlint.interp.calls import has_model
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import on_call_if
from d9mlint.interp.memory import remembered
from d9mlint.interp.optimizers import parameters_in
from d9mlint.interp.state import Site
from d9mlint.interp.tensors import MODULE_OF
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import receiver

if TYPE_CHECKING:
    from d9mlint.interp.memory import Memory
    from d9mlint.interp.view import RunView

_DEEPEST = 7


class TrainedModels:
    """Knows the models with whose parameters optimizers take steps in loops, and those that the program saves."""

    run: RunView
    memory: Memory
    trained_models = remembered(set[tuple[str, Site, frozenset[Site], str]])
    """What the program calls such models, where they and their parts were made, and the loops."""
    saved_models = remembered(set[Site])
    """Where models were made that are saved, or whose states are, and their parts."""

    def models_stepped(self, optimizer: v.Obj) -> None:
        """An optimizer takes a step."""
        around = [loop for loop in self.run.loops if optimizer.birth < loop.start]
        for one in parameters_in(optimizer.args) if around and self.run.entry is not None else ():
            module, name = one.attrs[MODULE_OF], receiver(one.node) if isinstance(one.node, m.Call) else ""
            made = set(models_made(module))
            if name and len(made) == 1:
                parts = frozenset(models_in(self.run, [module]))
                self.trained_models.update((name, site, parts, loop.key) for site in made for loop in around)

    def models_saved(self, content: v.Value) -> None:
        """Something is saved."""
        self.saved_models.update(models_in(self.run, [content]))

    @on_call_if(lambda rule, api: rule.run.kb.call_is("saves-models", api))
    def saved_by_itself(self, call: CallEvent) -> None:
        """A method of a model saves it, or something is given the model to save."""
        self.saved_models.update(models_in(self.run, [call.owner or v.UNKNOWN, *call.args.values()]))
        # What a library has loaded need not be known to be a model.
        self.saved_models.update(models_made(call.owner))

    def unsaved_models(self, loops: Iterable[str]) -> set[str]:
        """What the models are called that some loops train, and of which nothing saves the weights, whole or in part."""
        among, saved = set(loops), set(self.saved_models)
        return {
            name
            for name, site, parts, loop in self.trained_models
            if loop in among and site not in saved and saved.isdisjoint(parts)
        }


def models_in(run: RunView, values: Iterable[v.Value]) -> Iterator[Site]:
    """Where the models were made that values are, hold, or have the states of."""
    seen = set[int]()
    found = [one for value in values for one in v.alternatives(value)]
    for _ in range(_DEEPEST):
        inner: list[v.Value] = []
        for one in found:
            if id(one) in seen:
                continue
            seen.add(id(one))
            if isinstance(one, v.Mapping):
                inner += one.items.values()
            elif isinstance(one, v.Items):
                inner += one.elts
            elif isinstance(one, v.Inst):
                yield from models_made(one)
                inner += one.attrs.values()
            elif isinstance(one, v.Obj):
                of = one.attrs.get("@owner") or one.attrs.get(MODULE_OF)
                if of is not None:
                    inner.append(of)
                elif has_model(run, [one]):
                    yield from models_made(one)
                    inner += [*one.args.values(), *one.attrs.values()]
                else:
                    inner += _given(run, one)
        found = [one for value in inner for one in v.alternatives(value)]


def _given(run: RunView, result: v.Obj) -> list[v.Value]:
    """The models that a call was given, which may have given their states; an optimizer has parameters, and not theirs."""
    given = [one for value in result.args.values() for one in v.alternatives(value)]
    return [
        one
        for one in given
        if has_model(run, [one]) and not (isinstance(one, v.Obj) and MODULE_OF in one.attrs)
    ]
