"""Attributes that a statement reads of an object of the project before anything sets them, or that nothing sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.context import CALLED_BACK
from d9mlint.interp.known_attributes import has, has_now
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import assigned_attributes, stores_of
from d9mlint.ir.traversal import statements

if TYPE_CHECKING:
    from d9mlint.interp.frames import Frame
    from d9mlint.interp.interpreter import Interp
    from d9mlint.project.modules import ModuleFile

_CONSTRUCTOR = "__init__"
SET_BY_NAME = ("__dict__", "__getattr", "setattr")
"""Parts of names by which code may give attributes of any name to objects."""
_SET_OTHERWISE = (*SET_BY_NAME, "vars", "exec")
_CLASS = "__class__"


def is_unset(interp: Interp, node: m.Name) -> bool:
    """Whether reading an attribute raises: no code of the program sets one of this name, or only the constructor that is
    running, further below."""
    head, *rest = node.id.split(".")
    value = interp.lookup(head) if rest else None
    if not isinstance(value, v.Inst) or interp.importing or interp.exhausted or interp.muted:
        return False
    if rest[0].startswith("__") or has_now(interp, value, rest[0]) is not False:
        return False
    if not _is_own(interp, value) and any(base != "object" for base in value.cls.external_bases()):
        # A library that is given an object, as a model, may give it attributes or wrap it.
        return False
    value.attrs.note_read(rest[0])
    files = interp.run_files()
    if any(one.facts.unread for one in files) or interp.mentions(_SET_OTHERWISE):
        return False
    if any(_CLASS in assigned_attributes(interp.whole(one)) for one in files):
        return False
    if has(interp, value, rest[0]) is False:
        return True
    if CALLED_BACK in interp.contexts:
        # The library that calls this may wait until the object is made.
        return False
    among = [one for one in files if rest[0] in assigned_attributes(interp.whole(one))]
    return bool(among) and all(_is_later(interp, value, one, rest[0], node) for one in among)


def _is_own(interp: Interp, value: v.Inst) -> bool:
    """Whether an object is the one whose method runs."""
    func = interp.frame.func
    return func is not None and func.receiver is value


def _is_later(interp: Interp, value: v.Inst, file: ModuleFile, name: str, node: m.Name) -> bool:
    """Whether all that sets an attribute in a file belongs to other classes, or stands in a running constructor of the
    object, behind the place that runs, and in no loop."""
    facts = interp.whole(file)
    own = {id(one.cls) for one in value.cls.mro()}
    building = {id(frame.func.fn): place for frame, place in _constructors(interp, value, node) if frame.func}
    for function in facts.functions:
        for stmt in stores_of(function, name):
            if not _stores_in_own(stmt, function, name):
                return False
            if id(facts.classes[function.cls]) not in own:
                continue
            place = building.get(id(function))
            loops = (one for one in statements(function.body) if isinstance(one, (m.For, m.While)))
            if place is None or stmt.start < place or any(stmt in statements(one.body) for one in loops):
                return False
    return True


def _constructors(interp: Interp, value: v.Inst, node: m.Name) -> Iterator[tuple[Frame, int]]:
    """The running constructors of an object, with the place that runs in each."""
    frame, place = interp.frame, node.start
    while True:
        func = frame.func
        if func is not None and func.fn.name == _CONSTRUCTOR and func.receiver is value:
            yield frame, place
        site, caller = frame.call_site, frame.caller
        if site is None or caller is None:
            return
        frame, place = caller, site.start


def _stores_in_own(stmt: m.Stmt, function: m.Function, name: str) -> bool:
    """Whether a method stores something in an attribute of the object that it is called on, and nowhere else."""
    targets = stmt.targets if isinstance(stmt, m.Assign) else [getattr(stmt, "target", None)]
    if function.cls < 0 or not function.params:
        return False
    return all(
        not isinstance(one, m.Attr)
        and (not isinstance(one, m.Seq))
        and (
            not isinstance(one, m.Name)
            or not one.id.endswith(f".{name}")
            or one.id == f"{function.params[0].name}.{name}"
        )
        for one in targets
    )
