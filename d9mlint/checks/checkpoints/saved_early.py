"""DET601: best scores that are saved before they take the score of their round."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.checks.base import Rule, argument_node
from d9mlint.checks.checkpoints.first_numbers import last_of, name_of, names_in, stored_names
from d9mlint.checks.checkpoints.rounds import InRound, in_round
from d9mlint.checks.checkpoints.states import saves
from d9mlint.checks.checkpoints.stopping import compares, own_statements
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import on_call_if
from d9mlint.interp.named_sizes import assignments
from d9mlint.interp.places import Where
from d9mlint.interp.text import call_text
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes, statements

if TYPE_CHECKING:
    from d9mlint.interp.events import Loop
    from d9mlint.interp.view import RunView

_CHOOSING = frozenset({"max", "min"})
_READING = frozenset({"get", "pop"})


class _Held(NamedTuple):
    """What a file holds: the key, and what the program calls it where the loop runs."""

    key: str
    name: str


class SavedEarly(Rule):
    """DET601: best scores that are saved before the round updates them."""

    codes = ("DET601",)

    @on_call_if(saves)
    def save(self, call: CallEvent) -> None:
        """A checkpoint is written in a round of a loop."""
        loop = self.run.loops[-1] if self.run.loops and self.run.entry is not None else None
        here = in_round(self.run, loop, call.node) if loop is not None else None
        if loop is None or here is None:
            return
        for held in _held(self.run, loop, call):
            if _is_stale(loop, held.name, here) and _goes_on(self.run, loop, held):
                place = Where(self.run, call.node, call_text(call))
                self.run.later(partial(self._judge, loop, place, held.name))
                return

    def _judge(self, loop: Loop, place: Where, name: str) -> None:
        """The program has ended: the loop matters if it trained."""
        if loop.key not in self.run.training_loops:
            return
        self.report(
            "DET601",
            place,
            f"`{name}` is saved before it takes the score of this round: a resumed run compares with an older one, and may "
            "replace better weights by worse ones",
            f"save after `{name}` is updated",
            subject=name,
        )


def _held(run: RunView, loop: Loop, call: CallEvent) -> Iterator[_Held]:
    """What a call saves under keys, by the names that it has in the function of a loop."""
    role = run.kb.role(call.api, "saves-checkpoint")
    given = argument_node(call.node, role.arg, role.pos) if role is not None else None
    dicts = [given] if isinstance(given, m.Dict) else []
    if isinstance(given, m.Name):
        dicts = [one for one in assignments(run, given.id) if isinstance(one, m.Dict)]
    known = [
        _Held(key.value, name)
        for one in dicts
        for key, value in zip(one.keys, one.values, strict=False)
        if isinstance(key, m.Const) and isinstance(key.value, str) and (name := name_of(value))
    ]
    frame = run.frame
    while known and frame.env is not loop.frame.env:
        if frame.func is None or frame.caller is None or frame.call_site is None:
            return
        site, caller = frame.call_site, frame.caller
        made = next(
            (one for one in nodes(caller.body) if isinstance(one, m.Call) and one.start == site.start), None
        )
        params = [one.name for one in frame.func.fn.params][frame.func.receiver is not None :]
        outside = [
            (held, argument_node(made, held.name, params.index(held.name)) if held.name in params else None)
            for held in known
        ]
        # An attribute of an object is the same in all its methods.
        known = [
            held if given is None else _Held(held.key, name_of(given))
            for held, given in outside
            if given is not None or (not held.name.isidentifier() and frame.func.receiver is not None)
        ]
        frame = caller
    yield from known


def _is_stale(loop: Loop, name: str, here: InRound) -> bool:
    """Whether a round compares a variable with the score of the round and updates it only after a place."""
    early, late = False, False
    for stmt, branches in _with_branches(loop.stmt.body, frozenset()):
        if name not in stored_names(stmt):
            continue
        where = InRound(loop.key, stmt.start, branches)
        if where.follows(here):
            late = late or any(compares(test) and name in names_in([test]) for test in _tests(loop, branches))
            late = late or _chooses(stmt, name)
        elif not any((test, not outcome) in branches for test, outcome in here.branches):
            early = True
    return late and not early


def _with_branches(
    body: list[m.Stmt], branches: frozenset[tuple[int, bool]]
) -> Iterator[tuple[m.Stmt, frozenset[tuple[int, bool]]]]:
    """The statements of a loop without those of loops in it, and in which branches of its tests they are."""
    for stmt in body:
        yield stmt, branches
        if isinstance(stmt, m.If):
            yield from _with_branches(stmt.body, branches | {(stmt.start, True)})
            yield from _with_branches(stmt.orelse, branches | {(stmt.start, False)})
        elif isinstance(stmt, (m.With, m.Try)):
            yield from _with_branches(stmt.body, branches)


def _tests(loop: Loop, branches: frozenset[tuple[int, bool]]) -> Iterator[m.Expr]:
    starts = {start for start, _ in branches}
    for one in own_statements(loop.stmt.body):
        if isinstance(one, m.If) and one.start in starts:
            yield one.test


def _chooses(stmt: Any, name: str) -> bool:
    """Whether a statement keeps the better of two numbers: ``best = max(best, score)``."""
    value = getattr(stmt, "value", None)
    better = isinstance(value, m.Call) and called_name(value) in _CHOOSING
    better = better or (isinstance(value, m.IfExp) and compares(value.test))
    return better and name in names_in([value])


def _goes_on(run: RunView, loop: Loop, held: _Held) -> bool:
    """Whether the program reads from a file under a key what it calls by a name."""
    facts = run.whole(loop.frame.file)
    return any(
        isinstance(stmt, m.Assign)
        and last_of(held.name) in {last_of(one) for one in stored_names(stmt)}
        and any(_reads(one, held.key) for one in nodes([stmt.value]))
        for function in facts.functions
        for stmt in statements(function.body)
    )


def _reads(node: Any, key: str) -> bool:
    if isinstance(node, m.Subscript):
        return isinstance(node.index, m.Const) and node.index.value == key
    if isinstance(node, m.Call) and called_name(node) in _READING and node.args:
        return isinstance(node.args[0], m.Const) and node.args[0].value == key
    return False
