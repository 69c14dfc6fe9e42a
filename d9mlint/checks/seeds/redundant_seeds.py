"""DET112: seeds of GPUs beside one that seeds them too."""

from __future__ import annotations

from d9mlint.checks.base import Rule, argument_node
from d9mlint.interp import values as v
from d9mlint.interp.events import (
    CallEvent,
    EndEvent,
)
from d9mlint.interp.listening import on, on_call
from d9mlint.interp.memory import remembered
from d9mlint.interp.places import Where
from d9mlint.ir import nodes as m


class RedundantSeeds(Rule):
    """DET112: seeds of GPUs beside one that seeds them too."""

    codes = ("DET112",)
    cuda = remembered(list[tuple[tuple[v.Env, str], Where]])
    torch = remembered(set[tuple[v.Env, str]])

    @on_call("torch.cuda.manual_seed", "torch.cuda.manual_seed_all")
    def cuda_seed(self, call: CallEvent) -> None:
        """GPUs are seeded."""
        self.cuda.append(((self.run.frame.env, _argument_key(call)), Where(self.run, call.node, call.api)))

    @on_call("torch.manual_seed", "torch.random.manual_seed")
    def torch_seed(self, call: CallEvent) -> None:
        """Torch is seeded."""
        self.torch.add((self.run.frame.env, _argument_key(call)))

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


def _argument_key(call: CallEvent) -> str:
    """What a seeding call is given, as written: another seed for the devices is no repetition."""
    node = argument_node(call.node, "seed", 0)
    if isinstance(node, m.Name):
        return node.id
    return repr(node.value) if isinstance(node, m.Const) else type(node).__name__
