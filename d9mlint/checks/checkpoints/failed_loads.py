"""Code that would load a checkpoint and raises first, or before the program trains: no run is resumed by it. So it is with
code that asks what it has loaded for a key that the program gives none of its checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.checks.checkpoints.own_states import blocks_of
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, FailEvent
from d9mlint.interp.listening import on, on_call
from d9mlint.interp.memory import remembered
from d9mlint.interp.read_back import stored_keys
from d9mlint.ir import nodes as m
from d9mlint.ir.endings import evaluated
from d9mlint.ir.traversal import nodes, statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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

    asked = remembered(set["tuple[Site, str]"])
    """Where something is loaded, and the keys that it has to have for the program to go on."""
    keys_saved = remembered(set[str])
    """The keys of the dictionaries that are saved."""
    keys_unknown = remembered(bool)
    """Whether something is saved of which it is not known which keys it has."""

    @on_call(LOAD)
    def asks(self, call: CallEvent) -> None:
        """Something is loaded: what the statements that always follow take out of it has to be there."""
        site, stmt, function = self.run.here(call.node), self.run.statement, self.run.frame.function
        if function is None or not isinstance(stmt, m.Assign) or stmt.value is not call.node:
            return
        target = stmt.targets[0]
        if len(stmt.targets) != 1 or not isinstance(target, m.Name) or "." in target.id:
            return
        if any(
            isinstance(one, m.Try) and any(x is stmt for x in statements(one.body))
            for one in statements(function.body)
        ):
            return
        block = next((one for one in blocks_of(function.body) if any(x is stmt for x in one)), [])
        behind = [one for one in block if one.start > stmt.start]
        self.asked.update((site, key) for key in _keys_asked(behind, target.id))

    def notes_keys(self, saved: Iterable[v.Value]) -> None:
        """Something is saved: a state alone has the names of weights for keys, or what optimizers have."""
        for one in saved:
            if isinstance(one, v.Mapping) and not one.open:
                self.keys_saved.update(key for key in dict.keys(one.items) if isinstance(key, str))
            elif not (isinstance(one, v.Obj) and "@owner" in one.attrs):
                self.keys_unknown = True

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
        failed, lacking = set(self.failed), self._lacking()
        return bool(failed or lacking) and all(
            (one.site, one.order) in failed or one.site in lacking for one, _ in self.loads
        )

    def _lacking(self) -> set[Site]:
        """Where a checkpoint of the program is loaded, by a key that it has, which is asked for another one too that the
        project stores in no dictionary."""
        if self.keys_unknown:
            return set()
        own = {site for site, key in self.asked if key in self.keys_saved}
        wanted = {(site, key) for site, key in self.asked if site in own and key not in self.keys_saved}
        for file in self.run.modules.files if wanted else ():
            stored = stored_keys(self.run.whole(file))
            wanted = {one for one in wanted if one[1] not in stored}
        return {site for site, _ in wanted}


def _keys_asked(block: list[m.Stmt], name: str) -> Iterator[str]:
    """The keys under which statements take something out of a variable, as long as nothing else is done with that."""
    for stmt in block:
        uses = [one for one in nodes([stmt]) if isinstance(one, m.Name) and one.id.partition(".")[0] == name]
        if not uses:
            if isinstance(stmt, (m.Return, m.Raise, m.Jump)):
                return
            continue
        if not isinstance(stmt, (m.ExprStmt, m.Assign)):
            return
        targets = stmt.targets if isinstance(stmt, m.Assign) else []
        taken = {
            id(one.value): one.index.value
            for one in nodes([stmt.value])
            if isinstance(one, m.Subscript) and isinstance(one.index, m.Const)
        }
        if any(id(one) not in taken for one in uses) or any(
            id(one) in map(id, nodes(targets)) for one in uses
        ):
            return
        always = {id(one) for one in evaluated(stmt.value)}
        yield from (key for one in uses if id(one) in always and isinstance(key := taken[id(one)], str))
