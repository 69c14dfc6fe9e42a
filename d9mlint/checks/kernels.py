"""DET408, DET501, DET701: atomics in kernels of the project, Horovod's fusion, sampling without a seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.checks.base import Reporter
from d9mlint.interp import values as v
from d9mlint.interp.calls import owner_types
from d9mlint.interp.state import UNSEEDED
from d9mlint.interp.text import call_text

if TYPE_CHECKING:
    from d9mlint.interp.hooks import CallEvent, Hooks
    from d9mlint.interp.interpreter import Interp

HOROVOD = ("torch", "tensorflow", "tensorflow.keras", "keras", "mxnet", "")


def register(hooks: Hooks, reporter: Reporter) -> None:
    """Listen to kernels, Horovod and generation."""
    if reporter.on("DET408"):
        _atomics(hooks, reporter)
    if reporter.on("DET501"):
        _fusion(hooks, reporter)
    if reporter.on("DET701"):
        _sampling(hooks, reporter)


def _atomics(hooks: Hooks, reporter: Reporter) -> None:
    def report(interp: Interp, call: CallEvent, what: str) -> None:
        reporter.report(
            interp,
            "DET408",
            call.node,
            f"{what}: threads add in an arbitrary order, and floating-point sums depend on it",
            "reduce in a fixed order (sort by index and sum segments, or use a tree in shared memory), or add integers",
            subject=call.api,
        )

    known = [api for op in reporter.knowledge.op_entries() if op.rule == "DET408" for api in op.apis]

    @hooks.on_call(*dict.fromkeys(("triton.language.atomic_add", "numba.cuda.atomic.sub", *known)))
    def atomic(interp: Interp, call: CallEvent) -> None:
        value = call.args.pos[-1] if call.args.pos else None
        if call.api.startswith("triton"):
            value = call.args.get("val", 1)
        if isinstance(value, v.Lit) and isinstance(value.value, int):
            return
        report(interp, call, f"`{call_text(call)}`")

    @hooks.on_call(
        "cupy.RawKernel",
        "cupy.RawModule",
        "torch.utils.cpp_extension.load_inline",
        "cupy.ElementwiseKernel",
        "cupy.ReductionKernel",
    )
    def source(interp: Interp, call: CallEvent) -> None:
        for value in call.args.values():
            for one in value.elts if isinstance(value, v.Items) else (value,):
                if isinstance(one, v.Lit) and isinstance(one.value, str) and "atomicAdd" in one.value:
                    report(interp, call, "`atomicAdd` in a kernel")
                    return


def _fusion(hooks: Hooks, reporter: Reporter) -> None:
    @hooks.on_call(*(f"horovod.{part}.init" if part else "horovod.init" for part in HOROVOD))
    def init(interp: Interp, call: CallEvent) -> None:
        setting = interp.state.env.get("HOROVOD_FUSION_THRESHOLD")
        if interp.entry is None or (setting is not None and setting.value in ("0", None)):
            return
        state = "is not set" if setting is None else f"is {setting.value}"
        reporter.report(
            interp,
            "DET501",
            call.node,
            f"`HOROVOD_FUSION_THRESHOLD` {state}: tensor fusion depends on timing, which changes summation order",
            'set os.environ["HOROVOD_FUSION_THRESHOLD"] = "0" before `init()`',
            subject="HOROVOD_FUSION_THRESHOLD",
        )


def _sampling(hooks: Hooks, reporter: Reporter) -> None:
    @hooks.on_method("generate", "__call__")
    def generate(interp: Interp, call: CallEvent) -> None:
        sample = call.args.kw.get("do_sample")
        if sample is None or v.truth(sample) is not True or interp.entry is None:
            return
        types = owner_types(interp, call.owner) if call.owner is not None else []
        if isinstance(call.owner, v.Inst) and not types:
            return
        if interp.state.level("torch").level != UNSEEDED:
            return
        reporter.report(
            interp,
            "DET701",
            call.node,
            "`do_sample=True` without a torch seed: generated tokens differ between runs",
            "call `transformers.set_seed(0)` first, or decode greedily",
            subject="generate",
            remedy=("rng", "torch"),
        )

    @hooks.on_call("vllm.SamplingParams")
    def params(interp: Interp, call: CallEvent) -> None:
        temperature = call.args.kw.get("temperature")
        seed = call.args.kw.get("seed")
        if call.args.dstar or (seed is not None and v.is_none(seed) is not True):
            return
        if temperature is not None and isinstance(temperature, v.Lit) and temperature.value == 0:
            return
        if temperature is not None and not isinstance(temperature, v.Lit):
            return
        reporter.report(
            interp,
            "DET701",
            call.node,
            "`SamplingParams` with a temperature and no `seed`: samples depend on how requests are scheduled",
            "pass `seed=0`, or `temperature=0.0`",
            subject=call.api,
        )
