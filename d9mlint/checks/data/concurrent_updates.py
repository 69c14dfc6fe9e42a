"""Weights that several threads update at the same time: each starts from what the others have done so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.checks.drawing import Observer
from d9mlint.interp import tensors
from d9mlint.interp import values as v
from d9mlint.interp.calls import owner_types
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import on
from d9mlint.interp.places import Where, running
from d9mlint.interp.usage import flatten
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import target_names
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

_DEPTH = 3
"""So far what an object holds is looked for."""
_NAME_WITHIN = 2
"""The parts of a method's name behind the package: its class and its own name."""


class UpdateLog(Observer):
    """Where a function updates weights that are among the ``shared`` objects."""

    def __init__(self, run: RunView, shared: list[v.Value]) -> None:
        super().__init__(run)
        self.shared = {id(one) for one in shared}
        self.places: list[Where] = []

    @on(CallEvent)
    def called(self, call: CallEvent) -> None:
        """Something is called, which may take a step of training."""
        name = call.api.rpartition(".")[2]
        role = self.run.kb.role(f"?.{name}", "updates-weights")
        if self.places or role is None or call.node is None or call.owner is None:
            return
        packages = [f"{api.rsplit('.', _NAME_WITHIN)[0]}." for api in role.apis if api.endswith(f".{name}")]
        if any(one.startswith(tuple(packages)) for one in owner_types(self.run, call.owner)):
            given = [call.owner, *call.args.values()]
            if isinstance(call.owner, v.Obj):
                given += call.owner.args.values()
            if any(self._is_shared(one, _DEPTH) for one in given):
                self.places.append(Where(self.run, call.node, call.api))

    def _is_shared(self, value: v.Value, depth: int) -> bool:
        for one in flatten(value):
            if id(one) in self.shared:
                return True
            inner: list[v.Value] = []
            if isinstance(one, v.Member):
                inner = [one.owner]
            elif isinstance(one, v.Obj):
                module = one.attrs.get(tensors.MODULE_OF)
                inner = [part for part in (module, one.owner) if part is not None]
                inner += one.args.pos if one.owner is None else []
            if depth and any(self._is_shared(part, depth - 1) for part in inner):
                return True
        return False


def shared(run: RunView, node: Any, func: v.Func | v.Partial, thread: v.Value | None = None) -> list[v.Value]:
    """The objects that all threads have in common which a loop makes of a function.

    These are variables of the scopes around it, what a name gives that the loop does not bind, and what they hold. What is
    taken from a list may be each thread's own.
    """
    since = next((one.start for one in reversed(run.loops) if one.frame.env is run.frame.env), run.now)
    bound = turns(running(run))
    found: list[v.Value] = []
    inner = func
    while isinstance(inner, v.Partial):
        inner = inner.func  # type: ignore[assignment]
    if not isinstance(inner, v.Func):
        return []
    env: v.Env | None = inner.env
    while env is not None:
        found += [value for name, value in env.all().items() if name not in bound]
        env = env.parent
    given = (
        [one for one in node.keywords if one.name in ("target", "args")] if isinstance(node, m.Call) else []
    )
    for part in given:
        for one in part.value.elts if isinstance(part.value, m.Seq) else [part.value]:
            if isinstance(one, m.Name) and one.id.partition(".")[0] not in bound:
                value = run.value_of(one)
                receiver = value.receiver if isinstance(value, v.Func) else None
                found += [value, receiver] if receiver is not None else [value]
    for worker in (thread, inner.receiver):
        if isinstance(worker, v.Inst):
            found += _given_to_all(run, worker)
    return _with_parts([one for one in found if getattr(one, "birth", since + 1) <= since], since)


def _with_parts(found: list[v.Value], since: int) -> list[v.Value]:
    every: list[v.Value] = []
    level = [one for one in found if isinstance(one, (v.Inst, v.Obj))]
    for _ in range(_DEPTH):
        every += level
        level = [
            held
            for one in level
            if isinstance(one, v.Inst)
            for held in one.attrs.values()
            if isinstance(held, (v.Inst, v.Obj)) and held.birth <= since
        ]
    return every


def turns(function: m.Function | None) -> set[str]:
    """The variables that loops and comprehensions of a function bind."""
    names: set[str] = set()
    for one in nodes(function.body) if function is not None else ():
        if isinstance(one, (m.For, m.Generator)):
            target_names(one.target, names)
    return names


def _given_to_all(run: RunView, inst: v.Inst) -> list[v.Value]:
    """What the constructor of an object is given by names, where the object is one of several."""
    if inst.node is None or inst.args.star or inst.args.dstar:
        return []
    functions = run.whole(run.frame.file).functions
    around = [one for one in functions if any(node is inst.node for node in nodes(one.body))]
    bound = turns(around[-1]) if around else None
    if bound is None:
        return []
    expressions = [*inst.node.args, *(one.value for one in inst.node.keywords)]
    values = [*inst.args.pos, *(inst.args.kw.get(one.name or "", v.NONE) for one in inst.node.keywords)]
    if len(expressions) != len(values):
        return []
    return [
        value
        for node, value in zip(expressions, values, strict=True)
        if isinstance(node, m.Name) and node.id.partition(".")[0] not in bound
    ]
