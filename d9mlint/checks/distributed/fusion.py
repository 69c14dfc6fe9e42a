"""DET501: Horovod fuses tensors as they arrive."""

from __future__ import annotations

from d9mlint.checks.base import Rule
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import on_call

HOROVOD = ("torch", "tensorflow", "tensorflow.keras", "keras", "mxnet", "")


class Fusion(Rule):
    """DET501: Horovod fuses tensors as they arrive."""

    codes = ("DET501",)

    @on_call(*(f"horovod.{part}.init" if part else "horovod.init" for part in HOROVOD))
    def init(self, call: CallEvent) -> None:
        """Horovod starts."""
        setting = self.run.state.env.get("HOROVOD_FUSION_THRESHOLD")
        if self.run.entry is None or (setting is not None and setting.value in ("0", None)):
            return
        state = "is not set" if setting is None else f"is {setting.value}"
        self.report(
            "DET501",
            call.node,
            f"`HOROVOD_FUSION_THRESHOLD` {state}: tensor fusion depends on timing, which changes summation order",
            'set os.environ["HOROVOD_FUSION_THRESHOLD"] = "0" before `init()`',
            subject="HOROVOD_FUSION_THRESHOLD",
        )
