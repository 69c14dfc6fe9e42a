"""DET112: seeds of GPUs beside one that seeds them too."""

from __future__ import annotations

from d9mlint.checks.base import Rule, argument_node
from d9mlint.interp.events import (
    CallEvent,
    EndEvent,
)
from d9mlint.interp.listening import on, on_call
from d9mlint.interp.memory import noted, remembered_table
from d9mlint.interp.places import Where
from d9mlint.interp.view import RunView
from d9mlint.ir import nodes as m


class RedundantSeeds(Rule):
    """DET112: seeds of GPUs beside one that seeds them too."""

    codes = ("DET112",)
    # Where in which scope, named by its birth, the generators of GPUs are seeded and from what; and in which torch is.
    cuda = noted(list[tuple[tuple[int, str], Where]])
    torch = remembered_table(tuple[int, str], bool)

    @on_call("torch.cuda.manual_seed", "torch.cuda.manual_seed_all")
    def cuda_seed(self, call: CallEvent) -> None:
        """GPUs are seeded."""
        self.cuda.add((_seed_key(self.run, call), Where(self.run, call.node, call.api)))

    @on_call("torch.manual_seed", "torch.random.manual_seed")
    def torch_seed(self, call: CallEvent) -> None:
        """Torch is seeded."""
        key = _seed_key(self.run, call)
        self.torch[key] = True

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """All seeds are known."""
        for key, place in self.cuda:
            if key in self.torch:
                self.report(
                    "DET112",
                    place,
                    f"`{place.subject}` is redundant: `torch.manual_seed` already seeds every GPU",
                    "remove it",
                    subject=place.subject,
                )


def _seed_key(run: RunView, call: CallEvent) -> tuple[int, str]:
    """The scope in which a generator is seeded, and what it is given, as written: another seed for the devices is no
    repetition."""
    node = argument_node(call.node, "seed", 0)
    written = repr(node.value) if isinstance(node, m.Const) else type(node).__name__
    return run.frame.env.birth, node.id if isinstance(node, m.Name) else written
