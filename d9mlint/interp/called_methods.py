"""Which methods of the program's objects a library calls.

What is known of a library's base classes is in ``rules/knowledge/hooks.yaml``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.containers import BASE
from d9mlint.interp.library.environments import played
from d9mlint.interp.methods import bind_method

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import HookEntry, RunnerEntry

CALL = "__call__"
"""Stands among the methods of a library for a call of the object itself."""
_ANY = v.Args(star=True, dstar=True)
ANY_METHOD = "*"
"""Stands for a method of a library that is not known: the command line chooses it."""


def may_inherit(interp: RunView, cls: v.Cls) -> bool:
    """Whether a class may have methods that the project does not show and that run others of its methods. Without them, a
    call of a method that no class of the project defines raises."""
    shown = all(isinstance(base, (v.Cls, v.Ext)) for one in cls.mro() for base in one.bases)
    if not shown or cls.decorated or cls.find("__getattr__") is not None:
        return True
    return not all(_runs_no_methods(interp, base) for base in cls.external_bases())


def _runs_no_methods(interp: RunView, base: str) -> bool:
    entry = interp.kb.hooks(base)
    if entry is not None:
        return entry.only
    return interp.kb.role(interp.kb.canonical(base), "runs-no-methods") is not None


def may_be_called(interp: RunView, cls: v.Cls, name: str) -> bool:
    """Whether a library may call the method of a name of the objects of a class."""
    entries = list(_entries(interp, cls))
    return any(one.calls(name, "") for one in entries) or (not entries and may_inherit(interp, cls))


class Called:
    """The methods of an object that a method of a library calls."""

    def __init__(self, interp: RunView, cls: v.Cls, method: str) -> None:
        by = "" if method == ANY_METHOD else method
        found = list(_entries(interp, cls))
        self._entries = [one for one in found if not by or by in one.called]
        self._method = by
        # Of a class whose base classes are all known, nothing else is called.
        self._only = bool(self._entries) and len(found) == len(self._entries) and not may_inherit(interp, cls)

    def hooks(self, name: str) -> bool:
        """Whether the method of a name is there to be called by it."""
        return any(one.calls(name, self._method) for one in self._entries)

    def of_given(self, name: str) -> Iterator[str]:
        """The methods that it calls of the objects which the method of a name gives."""
        for one in self._entries:
            yield from one.gives.get(name, ())

    def __contains__(self, name: str) -> bool:
        """Whether it calls the method of a name, or may."""
        if not self._entries or self.hooks(name):
            return True
        return not self._only and not any(one.calls(name, "") for one in self._entries)


def _entries(interp: RunView, cls: v.Cls) -> Iterator[HookEntry]:
    for base in cls.external_bases():
        entry = interp.kb.hooks(base)
        if entry is not None:
            yield entry


def run_when_called(interp: Interp, inst: v.Inst, node: Any) -> None:
    """An object is called in the way that its class inherits from one of a library, which calls other methods of it."""
    for entry in _entries(interp, inst.cls):
        if CALL not in entry.called:
            continue
        for cls in inst.cls.mro():
            for name, member in list(cls.env.all().items()):
                if isinstance(member, v.Func) and entry.calls(name, CALL) and inst.cls.find(name) is member:
                    interp.call(bind_method(interp, member, inst, inst.cls, node), _ANY, node)


def waits_for(interp: RunView, inst: v.Inst, runner: RunnerEntry, function: str = "") -> bool:
    """Whether the methods of an object that a trainer is made with are called where the trainer's own are, and not by the
    ``function`` that is given it."""
    methods = {*runner.trains, *runner.evaluates}
    by = {name for one in _entries(interp, inst.cls) for name in one.called}
    return function not in by and not methods.isdisjoint(by)


def waiting(interp: RunView, owner: v.Obj | v.Inst, method: str, runner: RunnerEntry) -> Iterator[v.Inst]:
    """The objects that a trainer was made with and whose methods a method of it calls."""
    if method not in runner.trains and method not in runner.evaluates:
        return
    base = owner.attrs.get(BASE) if isinstance(owner, v.Inst) else None
    made = [owner.args, *([base.args] if isinstance(base, v.Obj) else [])]
    for value in [*(value for args in made for value in args.values()), owner.attrs.get(_ADDED) or v.NONE]:
        for one in v.alternatives(value):
            for part in one.elts if isinstance(one, v.Items) else (one,):
                yield from (inst for inst in played(part) if waits_for(interp, inst, runner))


def given_before(owner: v.Obj | v.Inst, args: v.Args, runner: RunnerEntry) -> list[v.Inst]:
    """The objects that a trainer was given by an earlier call, where it keeps them and this call gives it none."""
    if not runner.keeps:
        return []
    given: list[v.Value] = [
        one for value in args.values() for one in v.alternatives(value) if isinstance(one, v.Inst)
    ]
    if given:
        owner.attrs[_GIVEN] = v.Items("t", given)
        return []
    kept = owner.attrs.get(_GIVEN)
    return [one for one in kept.elts if isinstance(one, v.Inst)] if isinstance(kept, v.Items) else []


def join(owner: v.Obj | v.Inst, value: v.Value) -> None:
    """A method of a trainer adds an object to those that it was made with."""
    kept = owner.attrs.get(_ADDED)
    owner.attrs[_ADDED] = v.Items("t", [*(kept.elts if isinstance(kept, v.Items) else []), value])


_GIVEN = "@given"
"""The objects that a trainer keeps, among its attributes."""
_ADDED = "@added"
"""Those that were added to the ones that it was made with."""
