"""Whether a program that uses JAX shows that it runs on a GPU."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, EnvironmentEvent
from d9mlint.interp.listening import on, on_call
from d9mlint.interp.memory import remembered

if TYPE_CHECKING:
    from d9mlint.interp.memory import Memory
    from d9mlint.interp.view import RunView

FLAGS = "XLA_FLAGS"
_CHOSEN = ("JAX_PLATFORMS", "JAX_PLATFORM_NAME")
_PLATFORMS = ("jax_platforms", "jax_platform_name")
_GPU = ("gpu", "cuda")
_OF_GPUS = "XLA_PYTHON_CLIENT_*"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_CPU_BUILDS = ("jax[[]cpu*",)
_BUILDS = ("jax[[]cuda*", "jaxlib[[]cuda*", "jax_cuda*")
_OF_CUDA = ("nvidia_cudnn*", "nvidia_cublas*")
"""Libraries of CUDA that are installed with whatever is built for it,"""
_OTHERS = ("torch", "tensorflow")
"""which may be another framework."""


class XlaDevices:
    """Listens for what chooses the devices of JAX; a base of the rules that judge by it."""

    run: RunView
    on_gpu = remembered(bool)
    """Whether the program shows that it runs on a GPU."""
    off_gpu = remembered(bool)
    """Whether it asks for another device, or may."""

    @property
    def memory(self) -> Memory:
        """Where the fields are remembered."""
        return self.run.memory

    @on_call("jax.devices", "jax.local_devices")
    def devices_asked(self, call: CallEvent) -> None:
        """Devices are asked for."""
        self.on_gpu = self.on_gpu or _names_gpu(call.args.get("backend", 0)) is True

    @on_call("jax.config.update")
    def platform_configured(self, call: CallEvent) -> None:
        """The platform may be chosen."""
        name = call.args.get("name", 0)
        if isinstance(name, v.Lit) and name.value in _PLATFORMS:
            self._chosen(call.args.get("val", 1))

    @on(EnvironmentEvent)
    def variable_set(self, event: EnvironmentEvent) -> None:
        """A variable is set that only a GPU has a use for, or one that chooses the platform."""
        text = str(event.value.value) if isinstance(event.value, v.Lit) else None
        if event.name in _CHOSEN:
            self._chosen(event.value)
        elif event.name == _VISIBLE:
            hidden = text in ("", "-1")
            self.on_gpu = self.on_gpu or (text is not None and not hidden)
            self.off_gpu = self.off_gpu or (hidden and not v.option_of(event.value))
        elif fnmatchcase(event.name, _OF_GPUS) or (event.name == FLAGS and "--xla_gpu_" in (text or "")):
            self.on_gpu = True

    def _chosen(self, value: v.Value | None) -> None:
        gpu = _names_gpu(value)
        self.on_gpu, self.off_gpu = self.on_gpu or gpu is True, self.off_gpu or gpu is not True

    def uses_gpu(self) -> bool:
        """Whether the program shows that it runs on a GPU: it asks for one, the project requires a build for one, its README
        says that it was trained on one, or the user says so."""
        if self._runs_elsewhere():
            return False
        targets = self.run.targets
        if self.on_gpu or self.run.device_given:
            return True
        if targets is None or targets.asks_for(_CPU_BUILDS):
            # Of two builds one is to be chosen.
            return False
        others = any(map(targets.requires, _OTHERS))
        if targets.trained_on_gpus and not others:
            return True
        return targets.asks_for(_BUILDS) or (not others and targets.asks_for(_OF_CUDA))

    def may_use_gpu(self) -> bool:
        """Whether nothing says that the program runs on another device."""
        targets = self.run.targets
        return not self._runs_elsewhere() and (targets is None or not targets.asks_for(_CPU_BUILDS))

    def has_cpu_build(self) -> bool:
        """Whether the project asks for nothing but the build of JAX for the CPU, and the program for no GPU."""
        targets = self.run.targets
        if targets is None or self.on_gpu or self.run.device_given:
            return False
        return targets.asks_for(_CPU_BUILDS) and not targets.asks_for(_BUILDS)

    def _runs_elsewhere(self) -> bool:
        """Whether there is no program, or it runs on no GPU."""
        return self.run.entry is None or self.off_gpu or self.run.device != "cuda"


def _names_gpu(value: v.Value | None) -> bool | None:
    """Whether a value names a GPU first; None for unknown."""
    if not isinstance(value, v.Lit):
        return None
    gpu = isinstance(value.value, str) and value.value.lower().partition(",")[0] in _GPU
    # The default of an option is what the program runs on unless another device is asked for.
    return gpu or (None if v.option_of(value) else False)
