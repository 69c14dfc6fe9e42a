"""DET701: text and samples that are generated without a seed."""

from __future__ import annotations

from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.calls import owner_types
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import on_call, on_method
from d9mlint.interp.state import UNSEEDED


class Sampling(Rule):
    """DET701: text and samples that are generated without a seed."""

    codes = ("DET701",)

    @on_method("generate", "__call__")
    def generate(self, call: CallEvent) -> None:
        """A model generates."""
        sample = _given(call, "do_sample")
        if sample is None or v.truth(sample) is not True or self.run.entry is None:
            return
        types = owner_types(self.run, call.owner) if call.owner is not None else []
        if isinstance(call.owner, v.Inst) and not types:
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
        )


def _given(call: CallEvent, name: str) -> v.Value | None:
    """An argument of generation: of the call, of the configuration that it is given, or of the pipeline that is called."""
    own = call.args.kw.get(name)
    if own is not None:
        return own
    config = call.args.kw.get("generation_config")
    for source in (config, call.owner):
        if isinstance(source, v.Obj) and name in source.args.kw:
            return source.args.kw[name]
    return None
