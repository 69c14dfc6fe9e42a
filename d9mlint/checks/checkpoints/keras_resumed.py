"""DET602: training in Keras that goes on from a whole model, which has no states of the generators of its layers and none of
the order of its data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from d9mlint.base.terminal import listed
from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.events import AnyDrawEvent, CallEvent
from d9mlint.interp.listening import on, on_method
from d9mlint.interp.memory import remembered
from d9mlint.interp.places import Where
from d9mlint.interp.state import UNSEEDED
from d9mlint.interp.text import node_text
from d9mlint.interp.usage import flatten

if TYPE_CHECKING:
    from d9mlint.knowledge.schema import RoleEntry

_STATE = "seed_generator"
"""The attribute of layers that holds the state which Keras does not save."""
_DEEPEST = 16


class KerasResumed(Rule):
    """DET602: what a training in Keras does not go on with that goes on from a whole model."""

    codes = ("DET602",)
    layers = remembered(set[str])
    """What the layers are called that draw in training from the states that they hold."""

    @on(AnyDrawEvent)
    def drawn(self, event: AnyDrawEvent) -> None:
        """A layer is made that draws when it is called."""
        rng, entry, node = event
        if rng == "keras" and entry.kind == "dropout" and self.run.state.level(rng).level != UNSEEDED:
            self.layers.add(node_text(node, entry.apis[0].rpartition(".")[2]))

    @on_method("fit", "fit_generator")
    def fit(self, call: CallEvent) -> None:
        """A model is trained."""
        role = self.run.kb.role(call.api, "resumes-epochs")
        if role is None or self.run.entry is None:
            return
        name = self._resumes(call, role)
        if not name:
            return
        layers = [] if self._sets_states() else [f"`{one}`" for one in sorted(self.layers)]
        data = call.args.get("x", 0)
        order = data is not None and any(map(self._is_shuffled, v.alternatives(data)))
        lacks, remedies = [], []
        if layers:
            lacks.append(f"the seed {'states' if len(layers) > 1 else 'state'} of {listed(layers)}")
            remedies.append(
                f"set `layer.{_STATE}.state` of these layers by the number of the epoch in the `on_epoch_begin` of a "
                "callback, in every run"
            )
        if order:
            lacks.append("the order of the shuffled dataset")
            remedies.append(
                "train each epoch by its own call of `fit`, in every run, with a dataset that is shuffled with a seed made "
                f"of the number of the epoch{'' if role.arg in name else ', and save the whole model after each'}"
            )
        if lacks:
            self.report(
                "DET602",
                Where(self.run, call.node, call.api),
                f"{name} does not restore {listed(lacks)}, so resumed training continues from a different state",
                "; ".join(remedies),
                subject=call.api,
            )

    def _resumes(self, call: CallEvent, role: RoleEntry) -> str:
        """By what a training goes on from a whole model, in words; empty where it does not."""
        for one in flatten(call.args.kw.get("callbacks", v.NONE)):
            if isinstance(one, v.Obj) and self.run.kb.role(one.api, "loads-when-trained") is not None:
                return f"`{node_text(one.node, one.api.rpartition('.')[2])}`"
        first = call.args.get(role.arg, role.pos)
        if first is None or (isinstance(first, v.Lit) and not first.value and not first.option):
            return ""
        models = v.alternatives(call.owner) if call.owner is not None else ()
        loaded = any(
            isinstance(one, v.Obj) and self.run.kb.role(one.api, "restores-model") is not None
            for one in models
        )
        return f"`{call.api.rpartition('.')[2]}({role.arg}=...)`" if loaded else ""

    def _sets_states(self) -> bool:
        """Whether the program may set the states of layers."""
        by_path = self.run.modules.by_path
        paths = {*self.run.imported_files, *([self.run.entry.path] if self.run.entry is not None else [])}
        return any(_STATE in self.run.whole(by_path[path]).words for path in paths if path in by_path)

    def _is_shuffled(self, data: v.Value) -> bool:
        """Whether a dataset is seeded and shuffled in another order in each pass."""
        for one in _stages(data):
            role = self.run.kb.role(one.api, "reorders")
            if role is not None and all_hold(one.args, role.when) is True:
                seed = one.args.get("seed", 1)
                if any(one.birth > loop.start for loop in self.run.loops):
                    # It is made in each round.
                    return False
                if seed is None or v.is_none(seed) is True:
                    return self.run.state.level("tensorflow").level != UNSEEDED
                return isinstance(seed, v.Lit)
        return False


def _stages(data: v.Value) -> Iterator[v.Obj]:
    """A dataset, and those that it was made of one after the other."""
    for _ in range(_DEEPEST):
        if not isinstance(data, v.Obj):
            return
        yield data
        data = data.owner if data.owner is not None else v.UNKNOWN
