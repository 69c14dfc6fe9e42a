"""DET208: several workers feed one Keras model."""

from __future__ import annotations

from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.calls import owner_types
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import on_method
from d9mlint.interp.usage import BASE


class KerasWorkers(Rule):
    """DET208: several workers feed one Keras model."""

    codes = ("DET208",)

    @on_method("fit", "fit_generator")
    def fit(self, call: CallEvent) -> None:
        """A model is trained."""
        types = owner_types(self.run, call.owner) if call.owner is not None else []
        keras = any(t.startswith("tf.keras.") for t in types)
        if not keras and (
            types[:1] != ["?"] or (not self.run.uses("tensorflow") and not self.run.uses("keras"))
        ):
            return
        data = call.args.get("x", 0) or call.args.kw.get("generator")
        workers = call.args.kw.get("workers")
        processes = call.args.kw.get("use_multiprocessing")
        validation = call.args.kw.get("validation_data")
        message = ""
        if isinstance(workers, v.Lit) and isinstance(workers.value, int) and workers.value > 1:
            message = (
                f"`workers={workers.value}`: workers share RNG state, so draw order depends on scheduling"
            )
        elif isinstance(processes, v.Lit) and processes.value is True:
            message = "`use_multiprocessing=True`: every process gets a copy of the RNG states"
        elif validation is not None and validation is data and isinstance(data, v.Inst):
            if not (isinstance(workers, v.Lit) and workers.value == 0) and not self.run.kb_matches(
                "tensorflow", ">=2.16"
            ):
                message = "training and validation share one pipeline and race for it unless `workers=0`"
        elif isinstance(data, v.Inst) and self.run.kb_matches("tensorflow", ">=2.16"):
            base = data.attrs.get(BASE)
            count = (base if isinstance(base, v.Obj) else data).args.kw.get("workers")
            if isinstance(count, v.Lit) and isinstance(count.value, int) and count.value > 1:
                message = f"`PyDataset` with `workers={count.value}`: draw order depends on scheduling"
        if message:
            self.report(
                "DET208",
                call.node,
                message,
                "use one worker (0 when validation shares the pipeline), or a generator per element",
                subject="fit",
            )
