"""Code that would load a checkpoint and raises first, or before the program trains: no run is resumed by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.checks.checkpoints.own_states import blocks_of
from d9mlint.interp import values as v
from d9mlint.interp.events import FailEvent
from d9mlint.interp.listening import on
from d9mlint.interp.memory import remembered
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.memory import Memory
    from d9mlint.interp.places import Where
    from d9mlint.interp.state import Site
    from d9mlint.interp.view import RunView

LOAD = "torch.load"


class FailedLoads:
    """Knows which calls that load the program does not come to, or does not come away from."""

    run: RunView
    memory: Memory
    loads = remembered(list["tuple[Where, frozenset[str]]"])
    """Where something is loaded, and the loops around."""
    trained = remembered(int)
    """When the program trained last."""
    failed = remembered(set["tuple[Site, int]"])
    """Where something is loaded, and after how many steps, on a path that raises in the same function; with -1 for steps
    where the path does not come to it."""

    @on(FailEvent)
    def fails(self, event: FailEvent) -> None:
        """A statement of the running function raises, whatever that is given."""
        func = self.run.frame.func
        if func is None:
            return
        # What stands in the same block, or below in it, runs whenever the statement does.
        block = next((one for one in blocks_of(func.fn.body) if any(x is event.stmt for x in one)), [])
        for node in nodes(block):
            if isinstance(node, m.Call) and self._loads(node):
                site = self.run.here(node)
                if node.start >= event.stmt.start:
                    self.failed.add((site, -1))
                # What was loaded before the program trained has been gone on with.
                seen = (one.order for one, _ in self.loads if one.site == site)
                self.failed.update((site, steps) for steps in seen if steps > self.trained)

    def _loads(self, node: m.Call) -> bool:
        if not isinstance(node.func, (m.Name, m.Attr)):
            return False
        called: Any = self.run.value_of(node.func)
        return isinstance(called, v.Ext) and self.run.kb.canonical(called.name) == LOAD

    def all_fail(self) -> bool:
        """Whether the program would load something, and none of what does so comes to an end."""
        failed = set(self.failed)
        return bool(failed) and all((one.site, one.order) in failed for one, _ in self.loads)
