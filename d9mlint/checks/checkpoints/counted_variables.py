"""DET603: variables of TensorFlow that count rounds, and with which a resumed run begins one too early."""

from __future__ import annotations

from d9mlint.base.findings import Confidence
from d9mlint.checks.base import Rule
from d9mlint.checks.checkpoints.continued import first_of, number_of
from d9mlint.checks.checkpoints.tensorflow import checkpoint_of, variable_of
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, Loop
from d9mlint.interp.listening import on_method
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.places import Where
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at

_DEEPEST = 6


class CountedVariables(Rule):
    """DET603: the number of the round that has just ended, which a checkpoint of TensorFlow holds in a variable."""

    codes = ("DET603",)
    restored = remembered(set[Site])
    """Where the checkpoints are made that are restored."""
    trained_in = remembered_table(str, bool)
    """The loops in which the program has trained."""
    given = remembered_table(tuple[Site, str], Where)
    """Where variables are given the number of the round of a loop that begins with what they hold, by where they are made
    and by the loop."""
    begun = remembered_table(tuple[Site, str], bool)
    """Checkpoints that a round of a loop saves before it trains, by where they are made and by the loop."""

    @on_method("restore", "read", "restore_or_initialize")
    def restore(self, call: CallEvent) -> None:
        """A checkpoint is restored."""
        found = checkpoint_of(self.run, call.owner)
        site = made_at(found) if found is not None else None
        if site is not None:
            self.restored.add(site)

    @on_method("apply_gradients", "minimize", "fit", "train_on_batch")
    def training(self, call: CallEvent) -> None:
        """The program trains."""
        for loop in self.run.loops:
            self.trained_in[loop.key] = True

    @on_method("assign")
    def assigned(self, call: CallEvent) -> None:
        """A variable is given a number: that of the round of a loop whose first number the variable has given."""
        variable, value = variable_of(self.run, call.owner), call.args.get("value", 0)
        site = made_at(variable) if variable is not None else None
        if site is None or not isinstance(value, v.Obj) or not self.run.loops:
            return
        loop = self.run.loops[-1]
        if number_of(loop) is not value or not self._goes_on_from(loop, variable):
            return
        self.given.setdefault((site, loop.key), lambda: Where(self.run, call.node, "assign"))

    @on_method("save", "write")
    def save(self, call: CallEvent) -> None:
        """A checkpoint is saved, at the end of a round or at its beginning."""
        found = checkpoint_of(self.run, call.owner)
        site = made_at(found) if found is not None else None
        if found is None or site is None or not self.run.loops or self.run.entry is None:
            return
        loop = self.run.loops[-1]
        if self.begun.setdefault((site, loop.key), lambda: loop.key not in self.trained_in):
            return
        for name, one in found.args.kw.items() if site in self.restored else ():
            held = made_at(one) if isinstance(one, v.Obj) else None
            known = self.given.get((held, loop.key)) if held is not None else None
            if known is None:
                continue
            what = "epoch" if "epoch" in name else "step"
            self.report(
                "DET603",
                known,
                f"checkpoint saves the {what} that has just ended as `{name}`, and a resumed run starts with it: "
                f"that {what} is repeated",
                f"save the number of the next {what}, or add one to the number that is restored",
                subject="assign",
                confidence=Confidence.MEDIUM,
            )

    def _goes_on_from(self, loop: Loop, variable: v.Obj | None) -> bool:
        """Whether the first number of a loop is what a variable holds."""
        first = first_of(loop.over)
        return any(
            self._read(one) is variable for one in (v.alternatives(first) if first is not None else ())
        )

    def _read(self, number: v.Value) -> v.Obj | None:
        """The variable from which a number is read as it is."""
        known: v.Value | None = number
        for _ in range(_DEEPEST):
            if not isinstance(known, v.Obj) or self.run.kb.role(known.api, "gives-number-held") is None:
                break
            known = known.owner or known.args.get("", 0)
        return variable_of(self.run, known)
