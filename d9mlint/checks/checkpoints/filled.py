"""Lists and arrays that a loop fills and draws from in later rounds, as a replay memory is: what they hold is a state of the
loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, TypeVar

from d9mlint.checks.checkpoints.carried_on import saved_in
from d9mlint.checks.checkpoints.rings import drawn_rows, fills_in_turns
from d9mlint.interp import values as v
from d9mlint.interp.events import AnyDrawEvent, CallEvent, ClearedEvent, ItemEvent, ItemWriteEvent
from d9mlint.interp.listening import on, on_call_if
from d9mlint.interp.memory import noted, remembered, remembered_table
from d9mlint.interp.order_sorting import LENGTH
from d9mlint.interp.state import Site
from d9mlint.interp.text import written
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.memory import Memory, Table
    from d9mlint.interp.view import RunView

T = TypeVar("T")
_DEEPEST = 4
_WRITES = ("stores-data", "stores-arrays", "writes-data")
"""Roles of calls that write what they are given into a file."""


class Filled(NamedTuple):
    """A list, or an array, that a loop fills, what the program calls it, and the loop."""

    items: v.Items | v.Obj
    name: str
    loop: str
    held_by: v.Inst | None
    """The object of which it is an attribute."""

    def is_held(self) -> bool:
        """Whether it still is what the name stands for, and holds what was added."""
        attribute = self.name.rpartition(".")[2]
        return (isinstance(self.items, v.Obj) or self.items.open) and (
            self.held_by is None or self.held_by.attrs.get(attribute, self.items) is self.items
        )


class FilledLists:
    """Knows the lists that loops fill and draw from, and which of them nothing saves."""

    run: RunView
    memory: Memory
    filled = noted(list[Filled])
    """Lists that loops fill and draw from,"""
    in_turns = remembered(set[tuple[int, str]])
    """Arrays that loops fill in turns, by their birth, and the loops,"""
    kept_lists = remembered_table(Site, frozenset[int])
    """the lists that the program saves,"""
    emptied = remembered_table(int, bool)
    """and those that it empties again in a loop, by their birth."""
    kept_items = remembered_table(Site, frozenset[int])
    """The elements of collections that the program saves, or of which it makes what it saves, by their birth,"""
    stored_names = remembered_table(Site, frozenset[str])
    """and the variables and attributes from which it computes what it saves, where it does."""

    @on(AnyDrawEvent)
    def elements_drawn(self, event: AnyDrawEvent) -> None:
        """An RNG is drawn from, which may choose elements of a list."""
        if event.entry.kind == "draw" and not event.entry.in_place:
            for one in _filled(self.run, event.node):
                self.filled.add(one)

    @on(ItemWriteEvent)
    def row_stored(self, event: ItemWriteEvent) -> None:
        """A row of an array is assigned."""
        owner = event.owner
        # The loops are asked for last: a call that asks is run again in other loops.
        if isinstance(owner, v.Obj) and fills_in_turns(self.run, event.node):
            self.in_turns.update(
                (owner.birth, loop.key) for loop in self.run.loops if owner.birth < loop.start
            )

    @on(ItemEvent)
    def rows_read(self, event: ItemEvent) -> None:
        """Rows of an array are read, which may have been drawn."""
        owner, index, node = event
        if not isinstance(owner, v.Obj) or not self.run.loops or not drawn_rows(self.run, index):
            return
        name, holder = _name(self.run, node.value)
        for loop in self.run.loops:
            if (owner.birth, loop.key) in self.in_turns:
                self.filled.add(Filled(owner, name, loop.key, holder))

    @on(ClearedEvent)
    def cleared(self, event: ClearedEvent) -> None:
        """A list is emptied, which a loop may do in each round."""
        if self.run.loops:
            self.emptied[event.owner.birth] = True

    @on_call_if(lambda rule, api: any(rule.run.kb.role(api, one) is not None for one in _WRITES))
    def lists_stored(self, call: CallEvent) -> None:
        """Data is written into a file, in which lists may be, or their elements."""
        site = self.run.here(call.node)
        _keep(self.stored_names, site, {of_class(self.run, one) for one in saved_in([call.node])})
        stored = list(_held_in(call.args.values()))
        _keep(self.kept_lists, site, {one.birth for one in stored if isinstance(one, v.Items | v.Obj)})
        items = {
            part.birth
            for one in stored
            if isinstance(one, v.Items)
            for part in _held_in(one.elts)
            if _is_made(part)
        }
        _keep(self.kept_items, site, items)

    def unsaved_lists(self, loops: Iterable[str]) -> list[str]:
        """What the lists are called that some loops fill, that still hold what was added, and that nothing saves."""
        among, kept, stored = set(loops), _all(self.kept_lists), _all(self.kept_items)
        kept.update(self.emptied.known())
        names = _all(self.stored_names)
        return sorted(
            {
                one.name
                for one in self.filled
                if one.loop in among and one.is_held()
                if one.items.birth not in kept and one.name not in names
                # A copy of a list has its elements, or what is made of each.
                if isinstance(one.items, v.Obj)
                or stored.isdisjoint(element.birth for element in one.items.elts if _is_made(element))
            }
        )


def _keep(table: Table[Site, frozenset[T]], site: Site, more: set[T]) -> None:
    """Remember more of what was kept at a place."""
    known = table.get(site) or frozenset()
    if not more <= known:
        table[site] = known | more


def _all(table: Table[Site, frozenset[T]]) -> set[T]:
    """What was kept anywhere."""
    return {one for site in table.known() for one in table[site]}


def _filled(run: RunView, draw: Any) -> Iterator[Filled]:
    """The lists of which a call draws elements, or positions, and which are older than a loop that is running and have
    been added to in it."""
    for node in _drawn_from(draw) if isinstance(draw, m.Call) and run.loops else ():
        for items in v.alternatives(run.value_of(node)):
            if isinstance(items, v.Items) and items.kind == "l" and items.open:
                name, holder = _name(run, node)
                for loop in run.loops:
                    if items.birth < loop.start < items.version:
                        yield Filled(items, name, loop.key, holder)


def _drawn_from(draw: m.Call) -> Iterator[m.Expr]:
    """What a call draws elements of, or positions in."""
    for at, one in enumerate(draw.args[:2]):
        if at == 0 and isinstance(one, m.Name | m.Attr):
            yield one
        for part in nodes([one]):
            if isinstance(part, m.Call) and isinstance(part.func, m.Name) and part.func.id == "len":
                yield from (arg for arg in part.args[:1] if isinstance(arg, m.Name | m.Attr))


def _name(run: RunView, node: m.Expr) -> tuple[str, v.Inst | None]:
    """What the program calls a list: an attribute by the class in whose method it is drawn from, with that object."""
    func, name = run.frame.func, written(node)
    holder = func.receiver if func is not None and name.startswith("self.") else None
    held = isinstance(holder, v.Inst) and name.count(".") == 1
    return of_class(run, name), holder if held and isinstance(holder, v.Inst) else None


def of_class(run: RunView, name: str) -> str:
    """What an attribute of the object is called whose method runs: by its class."""
    func = run.frame.func
    holder = func.receiver if func is not None else None
    if isinstance(holder, v.Inst) and name.startswith("self."):
        return holder.cls.cls.name + name.removeprefix("self")
    return name


def _held_in(values: Iterable[v.Value], depth: int = 0) -> Iterator[v.Value]:
    """Values, what these hold, and what they are made of."""
    for one in values:
        yield one
        inner: Iterable[v.Value] = ()
        if isinstance(one, v.Items):
            inner = one.elts
        elif isinstance(one, v.Mapping):
            inner = one.items.values()
        elif isinstance(one, v.Inst):
            inner = one.attrs.values()
        elif isinstance(one, v.AnyOf):
            inner = one.values
        elif isinstance(one, v.Obj) and one.api != LENGTH:
            inner = [*one.args.values(), *([one.owner] if one.owner is not None else [])]
        if depth < _DEEPEST:
            yield from _held_in(inner, depth + 1)


def _is_made(one: v.Value) -> TypeGuard[v.Obj | v.Inst | v.Items | v.Mapping]:
    """Whether a value is one that was made at some time, and no constant."""
    return isinstance(one, v.Obj | v.Inst | v.Items | v.Mapping)
