"""States that functions ask objects for, and give back to them: ``get_optimizer_state_dict(model, optimizer)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.data import set_item
from d9mlint.interp.library.weights import mark_loaded
from d9mlint.interp.library_modules import is_module
from d9mlint.interp.tensors import loaded_item

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import RoleEntry


def given(interp: Interp, role: RoleEntry, args: v.Args, node: Any) -> v.Value | None:
    """The states that a function gives of its arguments, one for each; None where one of these cannot be seen."""
    names = (role.arg, *role.more)
    objects = [args.get(name, (role.pos or 0) + at) for at, name in enumerate(names)]
    states = [_state(interp, one, node) for one in objects if one is not None]
    if len(states) < len(names) or args.star or args.dstar:
        return None
    return states[0] if len(states) == 1 else v.Items("t", states)


def give_back(interp: Interp, role: RoleEntry, args: v.Args, node: Any) -> None:
    """A function gives its arguments the states that others name: the object, its state, and so on."""
    names = (role.arg, *role.more)
    for at, (name, state) in enumerate(zip(names[::2], names[1::2], strict=True)):
        position = (role.pos or 0) + at
        one = args.get(name, position)
        content = args.get(state, position + 1)
        if one is None or content is None:
            continue
        for each in _each(one):
            method = interp.attribute(each, "load_state_dict", node)
            interp.call(method, v.Args([content]), node)


def in_dictionary(interp: Interp, role: RoleEntry, args: v.Args, node: Any) -> v.Args:
    """The arguments of a function that asks the objects of the program in a dictionary for their states, with the states in
    their places."""
    given = args.get(role.arg, role.pos)
    if not isinstance(given, v.Mapping):
        return args
    held = dict(given.items.items())
    states = {key: _state(interp, one, node) for key, one in held.items() if _has(one, "state_dict")}
    if not states:
        return args
    made = v.Mapping({**held, **states}, given.open)
    if role.arg in args.kw:
        return args.replaced(v.Args(None, {role.arg: made}))
    at = role.pos or 0
    return v.Args([*args.pos[:at], made, *args.pos[at + 1 :]], args.kw, args.star, args.dstar)


def fill(interp: Interp, role: RoleEntry, args: v.Args, node: Any) -> None:
    """A file is loaded into the values of a dictionary: models get its weights in place, the program's objects their states,
    and numbers are those of the file."""
    into = args.get(role.arg, role.pos)
    held = v.Obj("torch.load", "torch.load", v.NO_ARGS, node)
    held.file = interp.frame.file
    if isinstance(into, v.Mapping):
        _fill(interp, into, held, node, 0)


def _fill(interp: Interp, into: v.Mapping, held: v.Obj, node: Any, depth: int) -> None:
    for key, value in list(into.items.items()):
        owner = value.attrs.get("@owner", value) if isinstance(value, v.Obj) else value
        if _has(value, "state_dict") and _has(value, "load_state_dict"):
            state = _state(interp, value, node)
            if isinstance(state, v.Mapping) and depth < _DEEPEST:
                _fill(interp, state, held, node, depth + 1)
            interp.call(interp.attribute(value, "load_state_dict", node), v.Args([state]), node)
        elif isinstance(owner, v.Inst) or (isinstance(owner, v.Obj) and is_module(interp, owner)):
            mark_loaded(interp, owner, False)
        if isinstance(value, v.Mapping) and depth < _DEEPEST:
            _fill(interp, value, held, node, depth + 1)
        elif isinstance(value, v.Lit) or owner is not value:
            set_item(interp, into, v.Lit(key), loaded_item(v.Obj("?", "?"), v.Lit(key), held), node)


_DEEPEST = 3


def _has(value: v.Value, method: str) -> bool:
    """Whether a value is an object of the program whose class defines a method."""
    return isinstance(value, v.Inst) and isinstance(value.cls.find(method), v.Func)


def _state(interp: Interp, value: v.Value, node: Any) -> v.Value:
    states = [interp.call(interp.attribute(one, "state_dict", node), v.NO_ARGS, node) for one in _each(value)]
    return states[0] if len(states) == 1 else v.Items("l", states)


def _each(value: v.Value) -> list[v.Value]:
    return list(value.elts) if isinstance(value, v.Items) else [value]
