"""DET308: variables that a library has read before they are set."""

from __future__ import annotations

import re

from d9mlint.checks.base import Rule
from d9mlint.checks.xla_devices import FLAGS
from d9mlint.interp import values as v
from d9mlint.interp.context import TAKEN_UP
from d9mlint.interp.events import CallEvent, EnvironmentEvent
from d9mlint.interp.library.options import OTHER_THAN
from d9mlint.interp.listening import on, on_call_if
from d9mlint.interp.memory import marks_path

READ_BY = {
    "TF_DETERMINISTIC_OPS": ("tensorflow", "tf."),
    "TF_CUDNN_DETERMINISTIC": ("tensorflow", "tf."),
    "TF_CUDNN_USE_FRONTEND": ("tensorflow", "tf."),
    "XLA_FLAGS": ("jax", "jax."),
    "TORCHINDUCTOR_DETERMINISTIC": ("torch", "torch.compile"),
}


class LateVariables(Rule):
    """DET308: variables that a library has read before they are set."""

    codes = ("DET308",)
    used = marks_path(bool)

    @on_call_if(
        lambda rule, api: api.startswith(_PREFIXES) and rule.run.kb.role(api, "reads-no-variables") is None
    )
    def library_use(self, call: CallEvent) -> None:
        """A library is used that reads variables when it is."""
        if TAKEN_UP in self.run.contexts:
            return
        for library, prefix in _READERS:
            if call.api.startswith(prefix):
                self.used.setdefault(f"{library}{self._root()}", True)

    def _root(self) -> str:
        """In code that no entry point reaches: the function that is looked at, as nobody is seen to call one behind another.
        Empty for the body of a module, which runs first, and in a program."""
        if self.run.entry is not None:
            return ""
        root = next((frame for frame in self.run.stack() if frame.func is not None), None)
        return f" {root.file.path}:{root.func.fn.start}" if root is not None and root.func is not None else ""

    @on(EnvironmentEvent)
    def variable(self, event: EnvironmentEvent) -> None:
        """A variable is set."""
        name, value, node = event
        reader = READ_BY.get(name)
        if reader is None or _is_put_back(name, value):
            return
        library = "torch.compile" if reader[0] == "torch" else reader[0]
        if library in self.used or f"{library}{self._root()}" in self.used:
            doubtful = name == FLAGS and _has_doubtful_flags(value)
            without = f" without the flags that this {reader[0]} does not know: it aborts on them"
            self.report(
                "DET308",
                node,
                f"`{name}` is set too late: {reader[0]} reads it once, before this line",
                f"set it before `import {reader[0]}`, or in the shell{',' + without if doubtful else ''}",
                subject=name,
                remedy=("flags",) if doubtful else (),
            )


def _is_put_back(name: str, value: v.Value) -> bool:
    """Whether a variable is given what it had when it was read, also where a test says that it had something."""
    if isinstance(value, v.Obj):
        value = value.attrs.get(OTHER_THAN, value)
    return isinstance(value, v.Lit) and value.option == f"${name}" and not value.value


def _has_doubtful_flags(value: v.Value) -> bool:
    """Whether a text has flags of XLA that come and go with its releases. Read at their place they may end a program that
    runs only as they are read too late."""
    text = value.value if isinstance(value, v.Lit) else None
    return not isinstance(text, str) or any(not _LASTING.fullmatch(flag) for flag in text.split())


_LASTING = re.compile(
    r"--xla_(?:gpu_deterministic_ops|gpu_autotune_level|force_host_platform_device_count)(?:=\S*)?"
)


_READERS = (("tensorflow", "tf."), ("jax", "jax."), ("torch.compile", "torch.compile"))
_PREFIXES: tuple[str, ...] = tuple(prefix for _, prefix in _READERS)
