"""DET804: seeds that are computed from the number of the process."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from d9mlint.checks.base import Rule, argument_node
from d9mlint.checks.derivation import derives
from d9mlint.interp.events import SeedEvent
from d9mlint.interp.listening import on
from d9mlint.interp.memory import remembered
from d9mlint.interp.state import Site
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.frames import Frame

_CALLERS = 3
"""So many callers are asked what they pass as the seed."""


class SeedOfRank(Rule):
    """DET804: seeds that are computed from the number of the process."""

    codes = ("DET804",)
    calls = remembered(set[Site])
    """The calls that pass such a seed to what seeds with it."""

    @on(SeedEvent)
    def seeded(self, event: SeedEvent) -> None:
        """Something is seeded."""
        entry, _, node, _ = event
        seed = argument_node(node, entry.seed_arg, entry.seed_pos)
        source = self._source(seed)
        if not source:
            source, call = self._passed(seed)
            if call is not None and call in self.calls:
                # A function seeds several generators with what one call passes it.
                return
            self.calls.update([call] if call is not None else [])
        if source:
            shown = source.removeprefix("env:").removeprefix("option:")
            self.report(
                "DET804",
                node,
                f"the seed is computed from `{shown}`: results depend on the number of processes",
                "build the model with the same seed on every rank, and derive other seeds from the number of the sample",
                subject=shown,
            )

    def _source(self, seed: m.Expr | None) -> str:
        return derives(self.run, seed, "rank") or derives(self.run, seed, "world-size")

    def _passed(self, seed: m.Expr | None) -> tuple[str, Site | None]:
        """What a seed is computed from that the running function is passed, and the call that passes it."""
        func = self.run.frame.func
        if func is None or seed is None or not {one.name for one in func.fn.params} & _names(seed):
            return "", None
        frames = [*reversed(self.run.stack())][: _CALLERS + 1]
        for frame, caller in pairwise(frames):
            seed = _argument(frame, seed) if seed is not None else None
            if seed is None:
                return "", None
            with self.run.in_frame(caller):
                if found := self._source(seed):
                    return found, frame.call_site
        return "", None


def _names(expr: m.Expr) -> set[str]:
    return {one.id for one in nodes([expr]) if isinstance(one, m.Name)}


def _argument(frame: Frame, expr: m.Expr) -> m.Expr | None:
    """What the function of a frame was passed for the parameter that an expression is computed from, as it is written
    there."""
    if frame.func is None:
        return None
    params = [one.name for one in frame.func.fn.params][frame.func.receiver is not None :]
    name = next((one for one in params if one in _names(expr)), None)
    call = frame.began()
    return argument_node(call, name, params.index(name)) if name is not None and call is not None else None
