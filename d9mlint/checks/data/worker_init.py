"""DET212: seeds in ``worker_init_fn`` that give workers the same numbers, or other ones in every run."""

from __future__ import annotations

from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.data import is_entropy
from d9mlint.interp.events import CallEvent, SeedEvent
from d9mlint.interp.library.loaders import LOADER
from d9mlint.interp.listening import on, on_call
from d9mlint.interp.rng import seed_value


class WorkerInit(Rule):
    """DET212: seeds in ``worker_init_fn`` that give workers the same numbers, or other ones in every run."""

    codes = ("DET212",)

    @on_call(LOADER)
    def loader(self, call: CallEvent) -> None:
        """A loader is made."""
        init = call.args.get("worker_init_fn", 9)
        if not isinstance(init, (v.Func, v.Partial)):
            return
        with self.run.fork(worker=True) as fork:
            fork.call(init, v.Args([v.Obj("worker id")]), None)

    @on(SeedEvent)
    def seeded(self, event: SeedEvent) -> None:
        """Something is seeded."""
        entry, args, node, rngs = event
        if not self.run.in_worker:
            return
        value = seed_value(args, entry)
        if isinstance(value, v.Lit) and value.value is not None:
            text = "every worker gets the same seed"
        elif is_entropy(value) if value is not None else False:
            text = "the seed differs between runs"
        elif isinstance(value, v.Obj) and value.api == "torch.initial_seed" and "numpy" in rngs:
            text = "`torch.initial_seed()` has 64 bits but `np.random.seed` accepts 32: raises ValueError"
        else:
            return
        self.report(
            "DET212",
            node,
            f"in `worker_init_fn`: {text}",
            "seed with `torch.initial_seed() % 2**32`, which differs by worker and epoch",
            subject=entry.apis[0],
        )
