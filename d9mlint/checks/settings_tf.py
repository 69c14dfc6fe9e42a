"""DET303, DET304, DET306, DET307, DET308, DET311, DET313: TensorFlow's switches, and variables set too late."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.base.findings import Severity
from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.activity import TF_TRAIN, where
from d9mlint.interp.events import BareNameEvent, CallEvent, EndEvent, EnvironmentEvent
from d9mlint.interp.listening import on, on_call, on_method
from d9mlint.interp.memory import marks_path, remembered
from d9mlint.interp.places import Where
from d9mlint.interp.switches import ENABLE, TF_PATCHES, TF_VARIABLES, is_on
from d9mlint.interp.text import call_text

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

AUTOTUNE = ("TF_CUDNN_USE_AUTOTUNE", "TF_USE_CUDNN_AUTOTUNE")
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


class Patches(Rule):
    """DET304: packages that patch releases of TensorFlow which they do not know."""

    codes = ("DET304",)

    @on_call(*TF_PATCHES)
    def patch(self, call: CallEvent) -> None:
        """A patch is applied."""
        if self.run.targets is None or (
            call.api.startswith("tfd") and self.run.targets.matches("tensorflow", ">=1.14,<2.1")
        ):
            return
        target = self.run.targets.version("tensorflow")
        raises = call.api.startswith("tfd")
        text = (
            f"raises TypeError on TensorFlow {target.version}"
            if raises
            else "was never released under this name"
        )
        self.report(
            "DET304",
            call.node,
            f"`{call_text(call)}` {text}",
            _switch_for(self.run),
            subject=call.api,
            severity=Severity.ERROR,
            targets=(f"tensorflow {target.version}", target.source),
        )

    @on(EnvironmentEvent)
    def variable(self, event: EnvironmentEvent) -> None:
        """A variable that later releases do not need."""
        name, value, node = event
        if name not in TF_VARIABLES or not is_on(value):
            return
        old = _version(self.run, "<2.8") if name == "TF_DETERMINISTIC_OPS" else _version(self.run, "<2.1")
        if self.run.targets is None or old:
            return
        target = self.run.targets.version("tensorflow")
        if self.run.uses("torch") and not self.run.uses("tensorflow"):
            # Seeding helpers of torch programs set it for good measure; no TensorFlow is there to read it.
            return
        self.report(
            "DET304",
            node,
            f"`{name}` is deprecated in TensorFlow {target.version}",
            _switch_for(self.run),
            subject=name,
            severity=Severity.WARNING,
            targets=(f"tensorflow {target.version}", target.source),
        )


class LateVariables(Rule):
    """DET308: variables that a library has read before they are set."""

    codes = ("DET308",)
    used = marks_path(bool)

    @on(CallEvent)
    def library_use(self, call: CallEvent) -> None:
        """A library is used that reads variables when it is."""
        for library, prefix in _READERS:
            if call.api.startswith(prefix) and not call.api.startswith(_CONFIGURING):
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


class Autotuning(Rule):
    """DET307: a variable that op determinism overrules."""

    codes = ("DET307",)
    places = remembered(list[Where])

    @on(EnvironmentEvent)
    def variable(self, event: EnvironmentEvent) -> None:
        """A variable is set."""
        if event.name in AUTOTUNE:
            self.places.append(Where(self.run, event.node, event.name))

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """Whether op determinism is on is known."""
        for place in self.places:
            if self.run.switches.tf_wanted:
                self.report(
                    "DET307",
                    place,
                    f"`{place.subject}` conflicts with op determinism, which selects cuDNN algorithms itself",
                    "do not set it",
                    subject=place.subject,
                )


class Threads(Rule):
    """DET311: several threads of TensorFlow without op determinism."""

    codes = ("DET311",)
    places = remembered(list[Where])

    @on_call(
        "tf.config.threading.set_intra_op_parallelism_threads",
        "tf.config.threading.set_inter_op_parallelism_threads",
    )
    def threads(self, call: CallEvent) -> None:
        """A number of threads is set."""
        value = call.args.get("num_threads", 0)
        if isinstance(value, v.Lit) and value.value != 1:
            self.places.append(Where(self.run, call.node, call.api))

    @on_call("tf.compat.v1.ConfigProto", "tf.ConfigProto")
    def proto(self, call: CallEvent) -> None:
        """The same in a session's configuration."""
        for name in ("intra_op_parallelism_threads", "inter_op_parallelism_threads"):
            value = call.args.kw.get(name)
            if isinstance(value, v.Lit) and value.value != 1:
                self.places.append(Where(self.run, call.node, call.api))
                return

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """Whether op determinism is on is known."""
        for place in self.places:
            if not self.run.switches.tf_wanted:
                self.report(
                    "DET311",
                    place,
                    "several TensorFlow threads without op determinism: sums may be split differently between runs",
                    "set the thread counts to 1, or enable op determinism",
                    subject=place.subject,
                )


class WithoutOpDeterminism(Rule):
    """DET306: training with TensorFlow without op determinism."""

    codes = ("DET306",)

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """Whether the program trains, and whether op determinism is on, is known."""
        run = self.run
        place = where(run, TF_TRAIN)
        if run.entry is None or place is None or run.device != "cuda" or "no-gpu" in run.places:
            return
        if _switched_on(run) or run.targets is None or other_backend(run):
            return
        target = run.targets.version("tensorflow")
        self.report(
            "DET306",
            place,
            f"`{place.entry}` trains with TensorFlow {target.version} without op determinism",
            _switch_for(run),
            subject="tensorflow",
            targets=(f"tensorflow {target.version}", target.source),
            entry_wide=True,
        )


class NotCalled(Rule):
    """DET303: a switch that is named and not called."""

    codes = ("DET303",)

    @on(BareNameEvent)
    def bare(self, event: BareNameEvent) -> None:
        """A name stands alone."""
        value, node = event
        if isinstance(value, v.Ext) and self.run.kb.canonical(value.name) in (
            ENABLE,
            "torch.use_deterministic_algorithms",
        ):
            name = value.name.rpartition(".")[2]
            self.report(
                "DET303",
                node,
                f"`{name}` is not called: the parentheses are missing",
                f"write `{name}()`" if name.startswith("enable") else f"write `{name}(True)`",
                subject=ENABLE,
                severity=Severity.ERROR,
            )


def _version(interp: RunView, spec: str) -> bool:
    return interp.kb_matches("tensorflow", spec)


def _switch_for(interp: RunView) -> str:
    if _version(interp, ">=2.8"):
        return "call `tf.config.experimental.enable_op_determinism()` at the start"
    if _version(interp, ">=2.1"):
        return 'set os.environ["TF_DETERMINISTIC_OPS"] = "1" before TensorFlow is imported'
    return 'use `tfdeterminism.patch()`, or os.environ["TF_CUDNN_DETERMINISTIC"] = "1" before TensorFlow is imported'


def _switched_on(run: RunView) -> bool:
    switches = run.switches
    if switches.tf_on:
        return True
    if _version(run, "<2.1"):
        return switches.tf_patched or "TF_CUDNN_DETERMINISTIC" in switches.tf_variables
    return "TF_DETERMINISTIC_OPS" in switches.tf_variables


def other_backend(interp: RunView) -> str:
    """The backend that the program gives Keras instead of TensorFlow, empty for none."""
    setting = interp.state.env.get("KERAS_BACKEND")
    name = str(setting.value) if setting is not None and setting.value is not None else ""
    return name if name in ("jax", "torch", "openvino", "numpy") and not interp.uses("tensorflow") else ""


class Gates(Rule):
    """DET313: gradients that are applied while others are still computed."""

    codes = ("DET313",)

    def _open(self, call: CallEvent, what: str, op: str = "") -> None:
        self.report(
            "DET313",
            call.node,
            f"{what}: gradients may be applied while others of the same op are still being computed",
            "use `gate_gradients=tf.compat.v1.train.Optimizer.GATE_OP` (or `True` for `tf.gradients`)",
            subject=call.api,
            op=op,
        )

    @on_method("minimize", "compute_gradients")
    def optimizer(self, call: CallEvent) -> None:
        """An optimizer computes them."""
        gate = call.args.kw.get("gate_gradients")
        none = isinstance(gate, v.Ext) and gate.name.endswith(".GATE_NONE")
        if none or (isinstance(gate, v.Lit) and gate.value == 0 and gate.value is not False):
            minimize = call.api.endswith(".minimize")
            op = "tf.v1_gate_gradients.minimize" if minimize else "tf.v1_gate_gradients"
            self._open(call, "`gate_gradients=GATE_NONE`", op)
