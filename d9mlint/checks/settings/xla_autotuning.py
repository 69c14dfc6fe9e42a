"""DET310: training with JAX on a GPU, whose compiler selects kernels by timing."""

from __future__ import annotations

import re

from d9mlint.base.findings import Confidence, Severity
from d9mlint.checks.base import Rule
from d9mlint.checks.xla_devices import FLAGS, XlaDevices
from d9mlint.interp.events import CallEvent, EndEvent
from d9mlint.interp.listening import on, on_call_if, on_method
from d9mlint.interp.memory import remembered, remembered_once
from d9mlint.interp.places import Where

_WITHOUT_TIMING = re.compile(r"--xla_gpu_(?:deterministic_ops(?:=(?:true|1)|(?![\w=]))|autotune_level=0)")
_LIBRARIES = ("flax.", "haiku.", "jax.", "equinox.", "objax.")
_CONVOLUTIONS = re.compile(r".*\.(?:[cC]onv|conv_general_dilated|conv_transpose)(?:\d[dD]|Transpose)*$")
_POOLS = re.compile(r".*\.(?:max_pool|MaxPool)\w*$")


class XlaAutotuning(XlaDevices, Rule):
    """DET310: training with JAX on a GPU, whose compiler selects kernels by timing."""

    codes = ("DET310",)
    trains = remembered_once(Where)
    unset = remembered_once(Where)
    """Where gradients are taken on a way on which nothing sets the flags."""
    steps = remembered(bool)
    """Whether an optimizer is seen to change parameters."""
    pools = remembered(bool)
    convolves = remembered(bool)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "gives-gradients") is not None)
    def gradient(self, call: CallEvent) -> None:
        """Gradients are taken."""
        if self.trains is None:
            self.trains = Where(self.run, call.node, call.api)
        if self.unset is None and FLAGS not in self.run.state.env:
            self.unset = Where(self.run, call.node, call.api)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "trains") is not None)
    def stepped(self, call: CallEvent) -> None:
        """Parameters are changed."""
        self.steps = True

    @on_method("apply_gradients")
    def stepped_by_unknown(self, call: CallEvent) -> None:
        """The state of a training, of which nothing is known, changes its parameters."""
        self.steps = True

    @on_call_if(lambda _, api: api.startswith(_LIBRARIES) and _POOLS.match(api) is not None)
    def pooled(self, call: CallEvent) -> None:
        """The largest of each window is taken."""
        self.pools = True

    @on_call_if(lambda _, api: api.startswith(_LIBRARIES) and _CONVOLUTIONS.match(api) is not None)
    def convolved(self, call: CallEvent) -> None:
        """A convolution is made or computed, whose kernels cuDNN has many of."""
        self.convolves = True

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """Whether the program trains on a GPU, and which flags the compiler has, is known."""
        place = self.trains
        shown = self.uses_gpu()
        if place is None or not (shown or (self.convolves and self.may_use_gpu())):
            return
        flags = self.run.state.env.get(FLAGS)
        if flags is not None and flags.value is None and self.unset is not None:
            # Another command, or another branch, sets them.
            place, flags = self.unset, None
        if flags is not None and (flags.value is None or _WITHOUT_TIMING.search(str(flags.value))):
            return
        flag = "--xla_gpu_deterministic_ops=true"
        does = "trains" if self.steps else "computes gradients"
        fails = (
            ", and replace max pooling, whose gradient fails to compile with it in older releases"
            if self.pools
            else ""
        )
        self.report(
            "DET310",
            place,
            f"`{place.entry}` {does} with JAX{' on a GPU' if shown else ''} without `{flag}`: "
            f"{'' if shown else 'on a GPU, '}XLA selects kernels by timing them",
            f"add `{flag}` to the value of `{FLAGS}`{fails}"
            if flags is not None
            else f'set os.environ["{FLAGS}"] = "{flag}" before jax is imported{fails}',
            subject="jax",
            severity=None if shown else Severity.ADVICE,
            confidence=Confidence.MEDIUM,
            entry_wide=True,
        )
