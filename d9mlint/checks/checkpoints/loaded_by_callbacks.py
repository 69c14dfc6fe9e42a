"""DET602: estimators that train modules and go on from a checkpoint which a callback loads."""

from __future__ import annotations

from collections.abc import Iterator

from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import on_method
from d9mlint.interp.places import Where
from d9mlint.interp.state import UNSEEDED
from d9mlint.interp.text import node_text
from d9mlint.interp.usage import flatten

_SHUFFLES = "iterator_train__shuffle"
_BEGINS = ("on_train_begin", "on_epoch_begin", "on_batch_begin")
_DEEPEST = 4


class LoadedByCallbacks(Rule):
    """DET602: what a callback does not restore that loads a checkpoint when training begins."""

    codes = ("DET602",)

    @on_method("fit", "partial_fit")
    def fit(self, call: CallEvent) -> None:
        """An estimator is trained."""
        estimator, run = call.owner, self.run
        if not isinstance(estimator, v.Obj) or run.entry is None:
            return
        callbacks = list(_parts(estimator.args.kw.get("callbacks", v.NONE)))
        loads = next(
            (
                one
                for one in callbacks
                if isinstance(one, v.Obj) and run.kb.role(one.api, "loads-when-trained") is not None
            ),
            None,
        )
        if loads is None or run.state.level("torch").level == UNSEEDED:
            return
        if any(isinstance(one, v.Inst) and any(map(one.cls.find, _BEGINS)) for one in callbacks):
            # It may set the states.
            return
        shuffles = v.truth(estimator.args.kw.get(_SHUFFLES, v.FALSE)) is True
        if not shuffles and not self._draws(estimator):
            return
        self.report(
            "DET602",
            Where(run, call.node, call.api),
            f"`{node_text(loads.node, loads.api.rpartition('.')[2])}` does not restore the torch RNG state, so resumed "
            "training continues from a different state",
            "call `torch.manual_seed(seed + len(net.history))` in the `on_epoch_begin` of a callback, in every run",
            subject=call.api,
        )

    def _draws(self, estimator: v.Obj) -> bool:
        """Whether a layer of the module draws that an estimator trains."""
        module = estimator.args.get("module", 0)
        return any(
            entry.kind == "dropout" and "torch" in entry.draws
            for layer in _layers(module, _DEEPEST)
            for entry in self.run.kb.rng(layer.api)
        )


def _parts(callbacks: v.Value) -> Iterator[v.Value]:
    """The callbacks in a list, each of which may stand there with its name."""
    for one in flatten(callbacks):
        yield from flatten(one) if isinstance(one, v.Items) else (one,)


def _layers(value: v.Value | None, depth: int) -> Iterator[v.Obj]:
    """A module of a library, and those that it is made of."""
    for one in flatten(value) if value is not None else ():
        if isinstance(one, v.Obj):
            yield one
            for part in one.args.values() if depth else ():
                yield from _layers(part, depth - 1)
