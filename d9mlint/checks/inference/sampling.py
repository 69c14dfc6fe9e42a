"""DET701: text and samples that are generated without a seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.calls import owner_types
from d9mlint.interp.events import CallEvent, ObjectAttributeEvent
from d9mlint.interp.listening import on_call, on_method, on_object_attribute
from d9mlint.interp.memory import remembered_table
from d9mlint.interp.state import UNSEEDED, Site
from d9mlint.interp.storage import made_at

if TYPE_CHECKING:
    from d9mlint.interp.memory import Table
    from d9mlint.interp.view import RunView

GENERATING = ("generate", "__call__")
"""Methods of models and pipelines that generate."""


class Sampling(Rule):
    """DET701: text and samples that are generated without a seed."""

    codes = ("DET701",)

    switched = remembered_table(Site, bool)
    """Where models were made whose own configuration is changed to sample, or not to."""

    @on_object_attribute("do_sample")
    def configured(self, event: ObjectAttributeEvent) -> None:
        """The configuration of a model is changed."""
        inner = event.owner
        model = inner.owner if isinstance(inner, v.Member) and inner.name == "generation_config" else None
        site = made_at(model) if isinstance(model, v.Obj) else None
        if site is not None and not self.run.branching:
            self.switched[site] = v.truth(event.value) is True

    @on_method(*GENERATING)
    def generate(self, call: CallEvent) -> None:
        """A model generates."""
        if self.run.entry is None or not samples(self.run, call, self.switched):
            return
        if self.run.state.level("torch").level != UNSEEDED:
            return
        self.report(
            "DET701",
            call.node,
            "`do_sample=True` without a torch seed: generated tokens differ between runs",
            "call `transformers.set_seed(0)` first, or decode greedily",
            subject="generate",
            remedy=("rng", "torch"),
            cause=("DET101", "torch"),
        )

    @on_call("vllm.SamplingParams")
    def params(self, call: CallEvent) -> None:
        """How vLLM samples."""
        temperature = call.args.kw.get("temperature")
        seed = call.args.kw.get("seed")
        if call.args.dstar or (seed is not None and v.is_none(seed) is not True):
            return
        if temperature is not None and isinstance(temperature, v.Lit) and temperature.value == 0:
            return
        if temperature is not None and not isinstance(temperature, v.Lit):
            return
        self.report(
            "DET701",
            call.node,
            "`SamplingParams` with a temperature and no `seed`: samples depend on how requests are scheduled",
            "pass `seed=0`, or `temperature=0.0`",
            subject=call.api,
            remedy=("seed", "0"),
        )


def samples(run: RunView, call: CallEvent, switched: Table[Site, bool] | None = None) -> bool:
    """Whether a call of a model's method that generates samples, which draws from torch's global generator."""
    sample = _given(call, "do_sample", switched)
    if sample is None or v.truth(sample) is not True:
        return False
    return not isinstance(call.owner, v.Inst) or bool(owner_types(run, call.owner))


def _given(call: CallEvent, name: str, switched: Table[Site, bool] | None) -> v.Value | None:
    """An argument of generation: of the call, of the configuration that it is given or that its model keeps, or of the
    pipeline that is called."""
    own = call.args.kw.get(name)
    if own is not None:
        return own
    config = call.args.kw.get("generation_config")
    kept = call.owner.attrs.get("generation_config") if isinstance(call.owner, v.Obj) else None
    for source in (config or kept, call.owner):
        if isinstance(source, v.Obj) and name in source.args.kw:
            return source.args.kw[name]
    site = made_at(call.owner) if isinstance(call.owner, v.Obj) and config is None else None
    if site is None or switched is None:
        return None
    return v.Lit(True) if switched.get(site) else None
