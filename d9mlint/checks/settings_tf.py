"""DET303, DET304, DET306, DET307, DET308, DET311, DET313: TensorFlow's switches, and variables set too late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.base.findings import Severity
from d9mlint.checks.base import Reporter
from d9mlint.interp import values as v
from d9mlint.interp.activity import TF_TRAIN, where
from d9mlint.interp.places import Where
from d9mlint.interp.text import call_text

if TYPE_CHECKING:
    from d9mlint.interp.hooks import CallEvent, Hooks
    from d9mlint.interp.interpreter import Interp

ENABLE = "tf.config.experimental.enable_op_determinism"
SWITCHES = ("TF_DETERMINISTIC_OPS", "TF_CUDNN_DETERMINISTIC")
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


def register(hooks: Hooks, reporter: Reporter) -> None:
    """Listen to TensorFlow's switches and to the environment."""

    @hooks.on_call(ENABLE)
    def enable(interp: Interp, call: CallEvent) -> None:
        interp.set_mode("tf.deterministic", v.TRUE, call.node)
        interp.notes["tf-on"] = True

    @hooks.on_call("tfdeterminism.patch", "tfdeterminism.patch.patch", "fwd9m.tensorflow.enable_determinism")
    def patch(interp: Interp, call: CallEvent) -> None:
        interp.notes["tf-patched"] = True
        if interp.targets is None or (
            call.api.startswith("tfd") and interp.targets.matches("tensorflow", ">=1.14,<2.1")
        ):
            return
        target = interp.targets.version("tensorflow")
        raises = call.api.startswith("tfd")
        text = (
            f"raises TypeError on TensorFlow {target.version}"
            if raises
            else "was never released under this name"
        )
        reporter.report(
            interp,
            "DET304",
            call.node,
            f"`{call_text(call)}` {text}",
            _switch_for(interp),
            subject=call.api,
            severity=Severity.ERROR,
            targets=(f"tensorflow {target.version}", target.source),
        )

    @hooks.on_call("fwr13y.d9m.tensorflow.enable_determinism")
    def fwr13y(interp: Interp, call: CallEvent) -> None:
        interp.notes["tf-on"] = True

    hooks.env.append(lambda interp, name, value, node: _env(interp, reporter, name, value, node))
    hooks.any_call.append(_library_use)
    hooks.ends.append(lambda interp: _end(interp, reporter))
    hooks.bare_names.append(lambda interp, value, node: _bare(interp, reporter, value, node))
    if reporter.on("DET311"):
        _threads(hooks, reporter)
    if reporter.on("DET313"):
        _gates(hooks, reporter)


def _version(interp: Interp, spec: str) -> bool:
    return interp.kb_matches("tensorflow", spec)


def _switch_for(interp: Interp) -> str:
    if _version(interp, ">=2.8"):
        return "call `tf.config.experimental.enable_op_determinism()` at the start"
    if _version(interp, ">=2.1"):
        return 'set os.environ["TF_DETERMINISTIC_OPS"] = "1" before TensorFlow is imported'
    return 'use `tfdeterminism.patch()`, or os.environ["TF_CUDNN_DETERMINISTIC"] = "1" before TensorFlow is imported'


def _library_use(interp: Interp, call: CallEvent) -> None:
    for library, prefix in (("tensorflow", "tf."), ("jax", "jax."), ("torch.compile", "torch.compile")):
        if call.api.startswith(prefix) and not call.api.startswith(_CONFIGURING):
            interp.flag(f"used:{library}", call.node)
    if call.api in ("torch.Tensor.cuda", "torch.nn.Module.cuda") or call.api.endswith(".cuda"):
        interp.flag("used:cuda", call.node)


def _is_on(value: v.Value) -> bool:
    return not (isinstance(value, v.Lit) and str(value.value).lower() in ("0", "false", "none", ""))


def _env(interp: Interp, reporter: Reporter, name: str, value: v.Value, node: Any) -> None:
    if name == "CUBLAS_WORKSPACE_CONFIG" and "used:cuda" in interp.state.flags:
        interp.notes[("late-env", name)] = True
    if name in SWITCHES and _is_on(value):
        _deprecated_switch(interp, reporter, name, node)
        interp.notes.setdefault("tf-switch", []).append(name)
    if name in AUTOTUNE:
        interp.notes.setdefault("tf-autotune", []).append(Where(interp, node, name))
    reader = READ_BY.get(name)
    if reader is not None:
        library = "torch.compile" if reader[0] == "torch" else reader[0]
        if f"used:{library}" in interp.state.flags:
            reporter.report(
                interp,
                "DET308",
                node,
                f"`{name}` is set too late: {reader[0]} reads it once, before this line",
                f"set it before `import {reader[0]}`, or in the shell",
                subject=name,
            )


def _deprecated_switch(interp: Interp, reporter: Reporter, name: str, node: Any) -> None:
    old = _version(interp, "<2.8") if name == "TF_DETERMINISTIC_OPS" else _version(interp, "<2.1")
    if interp.targets is None or old:
        return
    target = interp.targets.version("tensorflow")
    if interp.uses("torch") and not interp.uses("tensorflow"):
        # Seeding helpers of torch programs set it for good measure; no TensorFlow is there to read it.
        return
    reporter.report(
        interp,
        "DET304",
        node,
        f"`{name}` is deprecated in TensorFlow {target.version}",
        _switch_for(interp),
        subject=name,
        severity=Severity.WARNING,
        targets=(f"tensorflow {target.version}", target.source),
    )


def _switched_on(interp: Interp) -> bool:
    if "tf-on" in interp.notes:
        return True
    if _version(interp, "<2.1"):
        return "tf-patched" in interp.notes or "TF_CUDNN_DETERMINISTIC" in interp.notes.get("tf-switch", ())
    return "TF_DETERMINISTIC_OPS" in interp.notes.get("tf-switch", ())


def other_backend(interp: Interp) -> str:
    """The backend that the program gives Keras instead of TensorFlow, empty for none."""
    setting = interp.state.env.get("KERAS_BACKEND")
    name = str(setting.value) if setting is not None and setting.value is not None else ""
    return name if name in ("jax", "torch", "openvino", "numpy") and not interp.uses("tensorflow") else ""


def _end(interp: Interp, reporter: Reporter) -> None:
    wanted = "tf-on" in interp.notes or interp.notes.get("tf-switch") or "tf-patched" in interp.notes
    for place in interp.notes.get("tf-autotune", []):
        if wanted:
            reporter.report(
                interp,
                "DET307",
                place,
                f"`{place.subject}` conflicts with op determinism, which selects cuDNN algorithms itself",
                "do not set it",
                subject=place.subject,
            )
    for place in interp.notes.get("tf-threads", []):
        if not wanted:
            reporter.report(
                interp,
                "DET311",
                place,
                "several TensorFlow threads without op determinism: sums may be split differently between runs",
                "set the thread counts to 1, or enable op determinism",
                subject=place.subject,
            )
    place = where(interp, TF_TRAIN)
    if interp.entry is None or place is None or interp.device == "cpu" or "no-gpu" in interp.places:
        return
    if _switched_on(interp) or interp.targets is None or other_backend(interp):
        return
    target = interp.targets.version("tensorflow")
    reporter.report(
        interp,
        "DET306",
        place,
        f"`{place.entry}` trains with TensorFlow {target.version} without op determinism",
        _switch_for(interp),
        subject="tensorflow",
        targets=(f"tensorflow {target.version}", target.source),
        entry_wide=True,
    )


def _bare(interp: Interp, reporter: Reporter, value: v.Value, node: Any) -> None:
    if isinstance(value, v.Ext) and interp.kb.canonical(value.name) in (
        ENABLE,
        "torch.use_deterministic_algorithms",
    ):
        name = value.name.rpartition(".")[2]
        reporter.report(
            interp,
            "DET303",
            node,
            f"`{name}` is not called: the parentheses are missing",
            f"write `{name}()`" if name.startswith("enable") else f"write `{name}(True)`",
            subject=ENABLE,
            severity=Severity.ERROR,
        )


def _threads(hooks: Hooks, reporter: Reporter) -> None:
    @hooks.on_call(
        "tf.config.threading.set_intra_op_parallelism_threads",
        "tf.config.threading.set_inter_op_parallelism_threads",
    )
    def threads(interp: Interp, call: CallEvent) -> None:
        value = call.args.get("num_threads", 0)
        if isinstance(value, v.Lit) and value.value != 1:
            interp.notes.setdefault("tf-threads", []).append(Where(interp, call.node, call.api))

    @hooks.on_call("tf.compat.v1.ConfigProto", "tf.ConfigProto")
    def proto(interp: Interp, call: CallEvent) -> None:
        for name in ("intra_op_parallelism_threads", "inter_op_parallelism_threads"):
            value = call.args.kw.get(name)
            if isinstance(value, v.Lit) and value.value != 1:
                interp.notes.setdefault("tf-threads", []).append(Where(interp, call.node, call.api))
                return


def _gates(hooks: Hooks, reporter: Reporter) -> None:
    @hooks.on_method("minimize", "compute_gradients")
    def optimizer(interp: Interp, call: CallEvent) -> None:
        gate = call.args.kw.get("gate_gradients")
        none = isinstance(gate, v.Ext) and gate.name.endswith(".GATE_NONE")
        if none or (isinstance(gate, v.Lit) and gate.value == 0 and gate.value is not False):
            minimize = call.api.endswith(".minimize")
            op = "tf.v1_gate_gradients.minimize" if minimize else "tf.v1_gate_gradients"
            reporter.report(
                interp,
                "DET313",
                call.node,
                "`gate_gradients=GATE_NONE`: gradients may be applied while others of the same op are still being "
                "computed",
                "use `gate_gradients=tf.compat.v1.train.Optimizer.GATE_OP` (or `True` for `tf.gradients`)",
                subject=call.api,
                op=op,
            )
