"""DET408, DET501, DET701: atomics in kernels of the project, Horovod's fusion, sampling without a seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.calls import owner_types
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import Listening, on_call, on_method
from d9mlint.interp.state import UNSEEDED
from d9mlint.interp.text import call_text

HOROVOD = ("torch", "tensorflow", "tensorflow.keras", "keras", "mxnet", "")


class Atomics(Rule):
    """DET408: kernels of the project that add atomically."""

    codes = ("DET408",)

    def also(self) -> Iterable[tuple[Listening, Callable[[CallEvent], None]]]:
        known = [api for op in self.run.kb.op_entries() if op.rule == "DET408" for api in op.apis]
        names = dict.fromkeys(("triton.language.atomic_add", "numba.cuda.atomic.sub", *known))
        return [(Listening(CallEvent, tuple(names)), self.atomic)]

    def _add(self, call: CallEvent, what: str) -> None:
        self.report(
            "DET408",
            call.node,
            f"{what}: threads add in an arbitrary order, and floating-point sums depend on it",
            "reduce in a fixed order (sort by index and sum segments, or use a tree in shared memory), or add integers",
            subject=call.api,
        )

    def atomic(self, call: CallEvent) -> None:
        """An atomic addition."""
        value = call.args.pos[-1] if call.args.pos else None
        if call.api.startswith("triton"):
            value = call.args.get("val", 1)
        if isinstance(value, v.Lit) and isinstance(value.value, int):
            return
        self._add(call, f"`{call_text(call)}`")

    @on_call(
        "cupy.RawKernel",
        "cupy.RawModule",
        "torch.utils.cpp_extension.load_inline",
        "cupy.ElementwiseKernel",
        "cupy.ReductionKernel",
    )
    def source(self, call: CallEvent) -> None:
        """A kernel that is compiled from text."""
        for value in call.args.values():
            for one in value.elts if isinstance(value, v.Items) else (value,):
                if isinstance(one, v.Lit) and isinstance(one.value, str) and "atomicAdd" in one.value:
                    self._add(call, "`atomicAdd` in a kernel")
                    return


class Fusion(Rule):
    """DET501: Horovod fuses tensors as they arrive."""

    codes = ("DET501",)

    @on_call(*(f"horovod.{part}.init" if part else "horovod.init" for part in HOROVOD))
    def init(self, call: CallEvent) -> None:
        """Horovod starts."""
        setting = self.run.state.env.get("HOROVOD_FUSION_THRESHOLD")
        if self.run.entry is None or (setting is not None and setting.value in ("0", None)):
            return
        state = "is not set" if setting is None else f"is {setting.value}"
        self.report(
            "DET501",
            call.node,
            f"`HOROVOD_FUSION_THRESHOLD` {state}: tensor fusion depends on timing, which changes summation order",
            'set os.environ["HOROVOD_FUSION_THRESHOLD"] = "0" before `init()`',
            subject="HOROVOD_FUSION_THRESHOLD",
        )


class Sampling(Rule):
    """DET701: text and samples that are generated without a seed."""

    codes = ("DET701",)

    @on_method("generate", "__call__")
    def generate(self, call: CallEvent) -> None:
        """A model generates."""
        sample = call.args.kw.get("do_sample")
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
