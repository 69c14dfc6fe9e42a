"""DET310: training with JAX on a GPU, whose compiler selects kernels by timing."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from d9mlint.base.findings import Confidence
from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, EndEvent, EnvironmentEvent
from d9mlint.interp.listening import on, on_call, on_call_if
from d9mlint.interp.memory import remembered, remembered_once
from d9mlint.interp.places import Where

_FLAGS = "XLA_FLAGS"
_WITHOUT_TIMING = re.compile(r"--xla_gpu_(?:deterministic_ops(?:=(?:true|1)|(?![\w=]))|autotune_level=0)")
_CHOSEN = ("JAX_PLATFORMS", "JAX_PLATFORM_NAME")
_PLATFORMS = ("jax_platforms", "jax_platform_name")
_GPU = ("gpu", "cuda")
_OF_GPUS = "XLA_PYTHON_CLIENT_*"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_LIBRARIES = ("flax.", "haiku.", "jax.", "equinox.")
_POOLS = re.compile(r".*\.(?:max_pool|MaxPool)\w*$")
_BUILDS = ("jax[[]cuda*", "jax_cuda*")


class XlaAutotuning(Rule):
    """DET310: training with JAX on a GPU, whose compiler selects kernels by timing."""

    codes = ("DET310",)
    trains = remembered_once(Where)
    on_gpu = remembered(bool)
    """Whether the program shows that it runs on a GPU."""
    elsewhere = remembered(bool)
    """Whether it asks for another device, or may."""
    pools = remembered(bool)

    @on_call("jax.grad", "jax.value_and_grad", "flax.nnx.grad", "flax.nnx.value_and_grad")
    def gradient(self, call: CallEvent) -> None:
        """Gradients are taken."""
        if self.trains is None:
            self.trains = Where(self.run, call.node, call.api)

    @on_call_if(lambda _, api: api.startswith(_LIBRARIES) and _POOLS.match(api) is not None)
    def pooled(self, call: CallEvent) -> None:
        """The largest of each window is taken."""
        self.pools = True

    @on_call("jax.devices", "jax.local_devices")
    def devices(self, call: CallEvent) -> None:
        """Devices are asked for."""
        self.on_gpu = self.on_gpu or _names_gpu(call.args.get("backend", 0)) is True

    @on_call("jax.config.update")
    def configured(self, call: CallEvent) -> None:
        """The platform may be chosen."""
        name = call.args.get("name", 0)
        if isinstance(name, v.Lit) and name.value in _PLATFORMS:
            self._chosen(call.args.get("val", 1))

    @on(EnvironmentEvent)
    def variable(self, event: EnvironmentEvent) -> None:
        """A variable is set that only a GPU has a use for, or one that chooses the platform."""
        text = str(event.value.value) if isinstance(event.value, v.Lit) else None
        if event.name in _CHOSEN:
            self._chosen(event.value)
        elif event.name == _VISIBLE:
            hidden = text in ("", "-1")
            self.on_gpu = self.on_gpu or (text is not None and not hidden)
            self.elsewhere = self.elsewhere or hidden
        elif fnmatchcase(event.name, _OF_GPUS) or (event.name == _FLAGS and "--xla_gpu_" in (text or "")):
            self.on_gpu = True

    def _chosen(self, value: v.Value | None) -> None:
        gpu = _names_gpu(value)
        self.on_gpu, self.elsewhere = self.on_gpu or gpu is True, self.elsewhere or gpu is not True

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """Whether the program trains on a GPU, and which flags the compiler has, is known."""
        place, targets = self.trains, self.run.targets
        if self.run.entry is None or place is None or self.elsewhere or self.run.device != "cuda":
            return
        if not self.on_gpu and (targets is None or not targets.asks_for(_BUILDS)):
            return
        flags = self.run.state.env.get(_FLAGS)
        if flags is not None and (flags.value is None or _WITHOUT_TIMING.search(str(flags.value))):
            return
        flag = "--xla_gpu_deterministic_ops=true"
        fails = ", and replace max pooling, whose gradient then fails to compile" if self.pools else ""
        self.report(
            "DET310",
            place,
            f"`{place.entry}` trains with JAX on a GPU without `{flag}`: XLA selects kernels by timing them",
            f"add `{flag}` to the value of `{_FLAGS}`{fails}"
            if flags is not None
            else f'set os.environ["{_FLAGS}"] = "{flag}" before jax is imported{fails}',
            subject="jax",
            confidence=Confidence.MEDIUM,
            entry_wide=True,
        )


def _names_gpu(value: v.Value | None) -> bool | None:
    """Whether a value names a GPU first; None for unknown."""
    if not isinstance(value, v.Lit):
        return None
    gpu = isinstance(value.value, str) and value.value.lower().partition(",")[0] in _GPU
    # The default of an option is what the program runs on unless another device is asked for.
    return gpu or (None if v.option_of(value) else False)
