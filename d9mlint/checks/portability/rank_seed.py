"""DET804: seeds that are computed from the number of the process."""

from __future__ import annotations

from d9mlint.checks.base import Rule, argument_node
from d9mlint.checks.derivation import derives
from d9mlint.interp.events import SeedEvent
from d9mlint.interp.listening import on


class SeedOfRank(Rule):
    """DET804: seeds that are computed from the number of the process."""

    codes = ("DET804",)

    @on(SeedEvent)
    def seeded(self, event: SeedEvent) -> None:
        """Something is seeded."""
        entry, _, node, _ = event
        seed = argument_node(node, entry.seed_arg, entry.seed_pos)
        source = derives(self.run, seed, "rank") or derives(self.run, seed, "world-size")
        if source:
            shown = source.removeprefix("env:").removeprefix("option:")
            self.report(
                "DET804",
                node,
                f"the seed is computed from `{shown}`: results depend on the number of processes",
                "build the model with the same seed on every rank, and derive other seeds from the number of the sample",
                subject=shown,
            )
