"""What a library makes or calls where the program does not: functions, classes and objects that it was given, or finds
where it had others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.library.replacements import is_called, is_followed, is_own_module, library_of
from d9mlint.interp.usage import flatten, set_training

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_ANY = v.Args(star=True, dstar=True)


def given(interp: Interp, api: str, args: v.Args, owner: v.Value | None) -> None:
    """Keep what a call gives to a library that is derived from a library's classes: objects that can be called; and classes,
    where it is not known what the library does with them."""
    if interp.importing or interp.speculating or interp.entry is None:
        return
    name = library_of(api, owner)
    if not is_called(name):
        return
    for value in args.values():
        for one in flatten(value):
            if isinstance(one, v.Inst):
                if one.cls.find("__call__") is not None and _is_derived(one.cls):
                    interp.placed[id(one)] = one
            elif isinstance(one, v.Cls) and not is_followed(interp.kb, name) and _is_derived(one):
                interp.placed[id(one)] = one


def _is_derived(cls: v.Cls) -> bool:
    return any(map(is_called, cls.external_bases()))


def _methods(cls: v.Cls, names: tuple[str, ...]) -> list[v.Func]:
    """The methods of a class that a library calls: those of these names, or else all that are no private ones."""
    return [
        member
        for one in cls.mro()
        for name, member in one.env.all().items()
        if isinstance(member, v.Func) and cls.find(name) is member
        if (name in names if names else name == "__call__" or name[:1] != "_")
    ]


def run_rest(interp: Interp, trains: bool) -> None:
    """Run what only a library calls. By now the program has done all that it does before. Modules in a library's model are
    called by it where the program calls models, or ``trains`` one."""
    before = interp.visited.copy()
    stored = [value for name, value in list(interp.library_attributes.items()) if is_called(name)]
    for value in [*interp.placed.values(), *stored]:
        for one in v.alternatives(value):
            if (
                trains
                or interp.calls_objects
                or not isinstance(one, v.Inst)
                or not is_own_module(interp, one.cls)
            ):
                _run(interp, one)
    interp.left_to_libraries |= interp.visited - before


def _run(interp: Interp, value: v.Value) -> None:
    if isinstance(value, v.Cls):
        _make(interp, value)
    elif isinstance(value, v.Inst):
        name = "forward" if is_own_module(interp, value.cls) else "__call__"
        found = value.cls.find(name)
        if isinstance(found, v.Func) and found.key not in interp.visited:
            set_training(interp, value, None)
            interp.call(value, _ANY, None)
    elif isinstance(value, v.Partial) or (isinstance(value, v.Func) and value.key not in interp.visited):
        interp.call(value, _ANY, None)


def _make(interp: Interp, cls: v.Cls) -> None:
    """A library makes an object of a class and calls its methods."""
    names = ("forward",) if is_own_module(interp, cls) else ()
    waiting = [one for one in _methods(cls, names) if one.key not in interp.visited]
    made = interp.call(cls, _ANY, None) if waiting else None
    if not isinstance(made, v.Inst):
        return
    set_training(interp, made, None)
    for method in waiting:
        if method.key not in interp.visited:
            interp.call(made if names else method.bind(made), _ANY, None)
