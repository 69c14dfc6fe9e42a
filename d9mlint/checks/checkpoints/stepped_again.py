"""DET603: schedulers that take the steps again that the state which they were given has taken."""

from __future__ import annotations

from d9mlint.checks.base import Rule
from d9mlint.checks.checkpoints.states import is_scheduler
from d9mlint.interp import tensors
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import on_method
from d9mlint.interp.memory import remembered
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name


class SteppedAgain(Rule):
    """DET603: schedulers that are given their state, and then stepped as often as it was."""

    codes = ("DET603",)
    restored = remembered(set[Site])
    """Schedulers that were given a state."""

    @on_method("load_state_dict")
    def restore(self, call: CallEvent) -> None:
        """A scheduler is given the state of a checkpoint."""
        self.restored.update(_schedulers(call))

    @on_method("step")
    def step(self, call: CallEvent) -> None:
        """A scheduler takes a step: in a loop that does nothing else, up to the number that was loaded."""
        loop = self.run.loops[-1].stmt if self.run.loops else None
        if not isinstance(loop, m.For) or len(loop.body) != 1 or call.args.pos or call.args.kw:
            return
        if not any(site in self.restored for site in _schedulers(call)):
            return
        if called_name(loop.iter) != "range" or not isinstance(loop.iter, m.Call) or not loop.iter.args:
            return
        count = self.run.value_of(loop.iter.args[min(1, len(loop.iter.args) - 1)])
        if tensors.loaded_as(count) is None:
            return
        self.report(
            "DET603",
            call.node,
            "the scheduler takes the steps of the epochs that are over, although its state was loaded: they count twice "
            "in a resumed run",
            "leave this loop out, or give the scheduler no state",
            subject=call.api,
        )


def _schedulers(call: CallEvent) -> list[Site]:
    """Where the scheduler was made whose method is called."""
    made = [
        made_at(one)
        for one in (v.alternatives(call.owner) if call.owner is not None else ())
        if isinstance(one, v.Obj) and is_scheduler(one.api)
    ]
    return [site for site in made if site is not None]
