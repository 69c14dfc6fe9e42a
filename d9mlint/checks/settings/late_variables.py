"""DET308: variables that a library has read before they are set."""

from __future__ import annotations

from d9mlint.checks.base import Rule
from d9mlint.interp.events import CallEvent, EnvironmentEvent
from d9mlint.interp.listening import on, on_call_if
from d9mlint.interp.memory import marks_path

READ_BY = {
    "TF_DETERMINISTIC_OPS": ("tensorflow", "tf."),
    "TF_CUDNN_DETERMINISTIC": ("tensorflow", "tf."),
    "TF_CUDNN_USE_FRONTEND": ("tensorflow", "tf."),
    "XLA_FLAGS": ("jax", "jax."),
    "TORCHINDUCTOR_DETERMINISTIC": ("torch", "torch.compile"),
}
# Calls of a library that configure it and do not yet make it read its variables.
_CONFIGURING = (
    "tf.config.",
    "tf.random.set_seed",
    "tf.get_logger",
    "tf.autograph.",
    "tf.compat.v1.logging",
    "tf.keras.utils.set_random_seed",
    "jax.config.",
    "tf.app.",
    "tf.flags.",
    "tf.logging.",
    "tf.compat.v1.disable",
    "tf.compat.v1.enable",
    "tf.set_random_seed",
    "tf.compat.v1.set_random_seed",
)


class LateVariables(Rule):
    """DET308: variables that a library has read before they are set."""

    codes = ("DET308",)
    used = marks_path(bool)

    @on_call_if(lambda _, api: api.startswith(_PREFIXES) and not api.startswith(_CONFIGURING))
    def library_use(self, call: CallEvent) -> None:
        """A library is used that reads variables when it is."""
        for library, prefix in _READERS:
            if call.api.startswith(prefix):
                self.used.setdefault(library, True)

    @on(EnvironmentEvent)
    def variable(self, event: EnvironmentEvent) -> None:
        """A variable is set."""
        name, _, node = event
        reader = READ_BY.get(name)
        if reader is None:
            return
        library = "torch.compile" if reader[0] == "torch" else reader[0]
        if library in self.used:
            self.report(
                "DET308",
                node,
                f"`{name}` is set too late: {reader[0]} reads it once, before this line",
                f"set it before `import {reader[0]}`, or in the shell",
                subject=name,
            )


_READERS = (("tensorflow", "tf."), ("jax", "jax."), ("torch.compile", "torch.compile"))
_PREFIXES: tuple[str, ...] = tuple(prefix for _, prefix in _READERS)
