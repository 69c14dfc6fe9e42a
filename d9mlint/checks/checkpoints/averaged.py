"""Models that a program updates by itself, as averages of the weights of another one: their weights are a state of the loop
that trains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from d9mlint.checks.checkpoints.filled import of_class
from d9mlint.checks.checkpoints.first_numbers import last_of, names_in
from d9mlint.interp import values as v
from d9mlint.interp.calls import has_model
from d9mlint.interp.events import CallEvent, LoopEvent
from d9mlint.interp.listening import on, on_method
from d9mlint.interp.memory import remembered
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memoized
from d9mlint.ir.liveness import stored_names
from d9mlint.ir.traversal import alike, nodes, receiver, statements

if TYPE_CHECKING:
    from d9mlint.interp.events import Loop
    from d9mlint.interp.memory import Memory
    from d9mlint.interp.view import RunView

_DEEPEST = 3


class AveragedWeights:
    """Knows the models whose weights a loop changes in place, and those that the program saves or sets."""

    run: RunView
    memory: Memory
    averaged = remembered(set[tuple[int, str, str]])
    """Such models, by their birth, what the program calls them, and the loops that began later."""
    kept_models = remembered(set[int])
    """Models that are saved, or whose states are, and those that are given a state in a loop."""
    kept_keys = remembered(set[str])
    """The keys of dictionaries that are saved, and of those in them: a class may give a copy of what it has as its state."""

    @on(LoopEvent)
    def changed(self, event: LoopEvent) -> None:
        """A loop may go through the weights of a model and change them."""
        if not event.begins:
            return
        changed, collected = _changed(event.loop.stmt), _collected(event.loop.stmt)
        if not (changed or collected) or not self.run.loops.nested:
            return
        for call in changed:
            name = receiver(call)
            # The state of a model holds its weights themselves.
            for one in v.alternatives(self.run.value_of(m.Name(name, call.start, call.end))):
                if isinstance(one, v.Inst | v.Obj) and has_model(self.run, [one]):
                    self._averages(one, name)
        for name in collected:
            if not self._goes_through_model(event.loop.stmt) or not self._is_read(name, event.loop):
                continue
            for one in v.alternatives(
                self.run.value_of(m.Name(name, event.loop.stmt.start, event.loop.stmt.end))
            ):
                if isinstance(one, v.Mapping | v.Obj):
                    self._averages(one, of_class(self.run, name))

    def _averages(self, one: v.Mapping | v.Inst | v.Obj, name: str) -> None:
        """Something has averages of weights, which the loops update that began later."""
        around = [loop.key for loop in self.run.loops if one.birth < loop.start]
        self.averaged.update((one.birth, name, loop) for loop in around)

    def _is_read(self, name: str, loop: Loop) -> bool:
        """Whether the file of a loop does more with a collection than update it there, and fill it."""
        last, inside = last_of(name), {id(one) for one in nodes([loop.stmt])}
        for function in self.run.whole(loop.frame.file).functions:
            filled = {
                id(one.value if isinstance(one, m.Subscript) else one)
                for stmt in statements(function.body)
                if isinstance(stmt, m.Assign)
                for one in stmt.targets
            }
            for one in nodes(function.body):
                if isinstance(one, m.Name) and last_of(one.id) == last and id(one) not in inside | filled:
                    return True
        return False

    def _goes_through_model(self, loop: m.For | m.While) -> bool:
        """Whether a loop goes through what a method of a model gives."""
        over = [loop.iter] if isinstance(loop, m.For) else []
        names = {receiver(one) for one in nodes(over) if isinstance(one, m.Call)} - {""}
        return any(
            has_model(self.run, [self.run.value_of(m.Name(one, loop.start, loop.end))]) for one in names
        )

    @on_method("load_state_dict")
    def set_anew(self, call: CallEvent) -> None:
        """A model is given a state: in a loop, that of another one."""
        if self.run.loops:
            self.models_kept(call.owner or v.UNKNOWN)

    def models_kept(self, content: v.Value) -> None:
        """What is saved, or has the states that are."""
        self.kept_models.update(_births([content]))
        self.kept_keys.update(_keys([content]))

    def unsaved_averages(self, loops: Iterable[str]) -> list[str]:
        """What the models are called that some loops change so, and that nothing saves."""
        among, kept, keys = set(loops), set(self.kept_models), set(self.kept_keys)
        found = {name for birth, name, loop in self.averaged if loop in among and birth not in kept}
        return sorted(name for name in found if last_of(name) not in keys)


def _keys(values: Iterable[v.Value], depth: int = 0) -> Iterator[str]:
    for value in values:
        for one in v.alternatives(value):
            if isinstance(one, v.Mapping):
                yield from map(str, dict.keys(one.items))
                if depth < _DEEPEST:
                    yield from _keys(one.items.values(), depth + 1)


def _births(values: Iterable[v.Value], depth: int = 0) -> Iterator[int]:
    for one in values:
        if isinstance(one, v.Mapping):
            yield one.birth
            inner: Iterable[v.Value] = one.items.values()
        elif isinstance(one, v.Items):
            inner = one.elts
        elif isinstance(one, v.AnyOf):
            inner = one.values
        elif isinstance(one, v.Inst):
            yield one.birth
            inner = one.attrs.values()
        elif isinstance(one, v.Obj):
            yield one.birth
            inner = [held for name, held in one.attrs.items() if name == "@owner"]
        else:
            continue
        if depth < _DEEPEST:
            yield from _births(inner, depth + 1)


@memoized
def _changed(loop: m.For | m.While) -> tuple[m.Call, ...]:
    """The calls of methods whose items a loop changes in place, computing them from what they were; memoised while the
    loop lives."""
    return tuple(_calls(loop)) if isinstance(loop, m.For) and isinstance(loop.iter, m.Call) else ()


def _calls(loop: m.For) -> Iterator[m.Call]:
    over = loop.iter
    several = isinstance(over, m.Call) and isinstance(over.func, m.Name) and not receiver(over)
    given = over.args if several and isinstance(over, m.Call) else [over]
    targets = loop.target.elts if isinstance(loop.target, m.Seq) and len(given) > 1 else [loop.target]
    for part, target in zip(given, targets, strict=False):
        names = {one.id for one in nodes([target]) if isinstance(one, m.Name)}
        if any(_averages(stmt, names) for stmt in statements(loop.body)):
            # Of ``model.state_dict().values()`` it is the model that has the items.
            yield from (
                one
                for one in nodes([part])
                if isinstance(one, m.Call) and receiver(one) and isinstance(one.func, m.Name)
            )


def _averages(stmt: m.Stmt, names: set[str]) -> bool:
    """Whether a statement computes one of some variables, or its data, from what that was and from something else."""
    if isinstance(stmt, m.ExprStmt) and isinstance(stmt.value, m.Call):
        parts = list[Any]()
        first: m.Expr = stmt.value
        steps = 0
        while isinstance(first, m.Call):
            parts += [*first.args, *first.keywords]
            steps += 1
            if not isinstance(first.func, m.Attr):
                break
            first = first.func.value
        method = first.func if isinstance(first, m.Call) else None
        if not isinstance(method, m.Name) or not method.id.endswith("_") or _base(method.id) not in names:
            return False
        read = _read(parts)
        return bool(read - names) and (steps > 1 or bool(read & names) or len(stmt.value.args) > 1)
    if isinstance(stmt, m.AugAssign):
        return _base_of(stmt.target) in names and bool(_read([stmt.value]) - names)
    if isinstance(stmt, m.Assign) and len(stmt.targets) == 1:
        target = stmt.targets[0]
        read = _read([stmt.value])
        whole = isinstance(target, m.Name) and target.id in names
        return not whole and _base_of(target) in names and bool(read & names) and bool(read - names)
    return False


@memoized
def _collected(loop: m.For | m.While) -> tuple[str, ...]:
    """The collections whose item for each round a loop computes from what it was and from something else; memoised while
    the loop lives."""
    return tuple(sorted(_item_averages(loop)))


def _item_averages(loop: m.For | m.While) -> set[str]:
    rounds = names_in([loop.target]) if isinstance(loop, m.For) else set[str]()
    given = {
        name: stmt.value
        for stmt in statements(loop.body)
        if isinstance(stmt, m.Assign)
        for name in stored_names(stmt)
    }
    found = set[str]()
    for stmt in statements(loop.body):
        item, parts = _item_set(stmt)
        if item is None or not isinstance(item.value, m.Name) or rounds.isdisjoint(_read([item.index])):
            continue
        # What is assigned may have been computed in another statement.
        parts += [given[name] for name in sorted(_read(parts)) if name in given]
        if any(isinstance(one, m.Subscript) and alike(one, item) for one in nodes(parts)):
            if not rounds.isdisjoint(_read(parts)):
                found.add(item.value.id)
    return found


def _item_set(stmt: m.Stmt) -> tuple[m.Subscript | None, list[Any]]:
    """The item that a statement gives another value, or changes in place, and what that is computed from."""
    if isinstance(stmt, m.Assign) and len(stmt.targets) == 1 and isinstance(stmt.targets[0], m.Subscript):
        return stmt.targets[0], [stmt.value]
    if isinstance(stmt, m.AugAssign) and isinstance(stmt.target, m.Subscript):
        return stmt.target, [stmt.target, stmt.value]
    call = stmt.value if isinstance(stmt, m.ExprStmt) else None
    parts = list[Any]()
    in_place = False
    while isinstance(call, m.Call) and isinstance(call.func, m.Attr):
        in_place = call.func.name.endswith("_")
        parts += [*call.args, *call.keywords]
        call = call.func.value
    if in_place and isinstance(call, m.Subscript):
        return call, [call, *parts]
    return None, []


def _base(name: str) -> str:
    return name.partition(".")[0]


def _base_of(node: Any) -> str:
    return _base(node.id) if isinstance(node, m.Name) else ""


def _read(parts: Iterable[Any]) -> set[str]:
    return {_base(one.id) for one in nodes(parts) if isinstance(one, m.Name)}
