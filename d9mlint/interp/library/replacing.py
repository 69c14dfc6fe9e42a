"""What a library calls in place of its own: functions, classes and modules of the program that it found there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.library.replacements import is_called
from d9mlint.interp.usage import set_training

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_ANY = v.Args(star=True, dstar=True)


def _methods(cls: v.Cls) -> list[v.Func]:
    return [
        member
        for one in cls.mro()
        for name, member in one.env.all().items()
        if isinstance(member, v.Func) and cls.find(name) is member and (name == "__call__" or name[:1] != "_")
    ]


def run_rest(interp: Interp) -> None:
    """Run what only a library calls. By now the program has done all that it does before."""
    stored = [value for name, value in list(interp.library_attributes.items()) if is_called(name)]
    for value in [*interp.placed, *stored]:
        for one in v.alternatives(value):
            _run(interp, one)


def _run(interp: Interp, value: v.Value) -> None:
    if isinstance(value, v.Cls):
        waiting = [one for one in _methods(value) if one.key not in interp.visited]
        made = interp.call(value, _ANY, None) if waiting else None
        for method in waiting if isinstance(made, v.Inst) else ():
            if method.key not in interp.visited:
                interp.call(method.bind(made), _ANY, None)
    elif isinstance(value, v.Inst):
        found = value.cls.find("forward")
        if isinstance(found, v.Func) and found.key not in interp.visited:
            set_training(interp, value, None)
            interp.call(value, _ANY, None)
    elif isinstance(value, v.Partial) or (isinstance(value, v.Func) and value.key not in interp.visited):
        interp.call(value, _ANY, None)
