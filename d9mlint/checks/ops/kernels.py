"""DET408: kernels of the project that add atomically."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import Listening, on_call
from d9mlint.interp.text import call_text


class Atomics(Rule):
    """DET408: kernels of the project that add atomically."""

    codes = ("DET408",)

    def also(self) -> Iterable[tuple[Listening, Callable[[CallEvent], None]]]:
        known = [api for op in self.run.kb.op_entries() if op.rule == "DET408" for api in op.apis]
        names = dict.fromkeys(("triton.language.atomic_add", "numba.cuda.atomic.sub", *known))
        return [(Listening(CallEvent, tuple(names)), self.atomic)]

    def _add(self, call: CallEvent, name: str, where: str = "") -> None:
        self.report(
            "DET408",
            call.node,
            f"`{name}`{where}: threads add in an arbitrary order, and floating-point sums depend on it",
            "reduce in a fixed order (sort by index and sum segments, or use a tree in shared memory), or add integers",
            subject=call.api,
            unchanged=name,
        )

    def atomic(self, call: CallEvent) -> None:
        """An atomic addition."""
        value = call.args.pos[-1] if call.args.pos else None
        if call.api.startswith("triton"):
            value = call.args.get("val", 1)
        if isinstance(value, v.Lit) and isinstance(value.value, int):
            return
        self._add(call, call_text(call))

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
                    self._add(call, "atomicAdd", " in a kernel")
                    return
