"""DET205: shards of datasets whose order is not fixed."""

from __future__ import annotations

from d9mlint.base.findings import Confidence, Severity
from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import on_method


class Shard(Rule):
    """DET205: shards of datasets whose order is not fixed."""

    codes = ("DET205",)

    @on_method("shard")
    def shard(self, call: CallEvent) -> None:
        """A dataset is sharded."""
        owner = call.owner
        known = isinstance(owner, v.Obj) and owner.type == "tf.data.Dataset"
        if isinstance(owner, v.Obj) and not known and not owner.type.startswith(("?", "tf.", "object")):
            return
        if isinstance(owner, (v.Inst, v.Cls, v.Super)) or (
            isinstance(owner, v.Obj) and owner.type.startswith("datasets")
        ):
            return
        if not known and (not self.run.uses("tensorflow") or self.run.uses("datasets")):
            return
        if not known and len(call.args.pos) + len(call.args.kw) < 2:
            return
        count = call.args.get("num_shards", 0)
        if isinstance(count, v.Lit) and count.value == 1 and not count.option:
            # One shard has all elements; the default of an option is no promise of it.
            return
        old = self.run.targets is not None and self.run.targets.matches("tensorflow", "<2.2")
        target = self.run.targets.version("tensorflow") if self.run.targets is not None else None
        if old:
            text = "`Dataset.shard` was observed to be non-deterministic before TensorFlow 2.2"
        else:
            text = "elements selected by `Dataset.shard` depend on the upstream order"
        self.report(
            "DET205",
            call.node,
            text + (f" (TensorFlow {target.version})" if target is not None else ""),
            "shard before any shuffle, and seed every `shuffle` and `list_files` upstream",
            subject="tf.data.Dataset.shard",
            severity=Severity.ERROR if old else Severity.WARNING,
            confidence=None if known else Confidence.MEDIUM,
            targets=(f"tensorflow {target.version}", target.source) if target is not None else (),
        )
