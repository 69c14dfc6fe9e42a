"""DET313: gradients that are applied while others are still computed."""

from __future__ import annotations

from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import on_method


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
