"""Experiments that keep a configuration and the function that they run when they are started: of sacred."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.library.config_files import config_value, load_literal
from d9mlint.interp.library.options import as_default

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import Role, RoleEntry

_CONFIGURATION = "@configuration"
_MAIN = "@main"


def roles(interp: Interp, decorator: v.Member) -> dict[Role, RoleEntry]:
    """What a method of a library's object, as a decorator, does with functions."""
    owner = decorator.owner
    return interp.kb.by_role(f"{owner.type}.{decorator.name}") if isinstance(owner, v.Obj) else {}


def configure(interp: Interp, api: str, owner: v.Value, args: v.Args) -> None:
    """``experiment.add_config(seed=1)``, of a mapping or of a file."""
    if interp.kb.role(api, "configures") is None:
        return
    given = v.Mapping(dict(args.kw), args.star or args.dstar)
    first = args.pos[0] if args.pos else None
    if isinstance(first, v.Lit) and isinstance(first.value, str):
        first = config_value(load_literal(interp, first.value), first.value)
    if isinstance(first, v.Mapping):
        given = v.Mapping({**first.items, **given.items}, given.open or first.open)
    elif first is not None:
        given.open = True
    take(interp, owner, given)


def take(interp: Interp, owner: v.Value, given: v.Mapping) -> None:
    """An experiment is given a part of its configuration."""
    kept = configuration(owner)
    if kept is None:
        return
    for key, value in given.items.items():
        kept.items[key] = v.UNKNOWN if interp.branching else value
    kept.open = kept.open or given.open


def configuration(owner: v.Value) -> v.Mapping | None:
    """What an experiment was configured with so far; None for what is none."""
    if not isinstance(owner, v.Obj):
        return None
    kept = owner.attrs.get(_CONFIGURATION)
    if not isinstance(kept, v.Mapping):
        kept = owner.attrs[_CONFIGURATION] = v.Mapping({})
    return kept


def name_main(owner: v.Value, func: v.Func) -> None:
    """A function becomes the one that an experiment runs."""
    if isinstance(owner, v.Obj):
        owner.attrs[_MAIN] = func


def main_of(owner: v.Value) -> v.Func | None:
    """The function that an experiment runs."""
    found = owner.attrs.get(_MAIN) if isinstance(owner, v.Obj) else None
    return found if isinstance(found, v.Func) else None


def started_with(owner: v.Value, role: RoleEntry, args: v.Args) -> v.Args:
    """The configuration with which an experiment is started, as arguments: its own, and what the call changes of it."""
    kept = configuration(owner)
    items = (
        {str(key): as_default(value, str(key)) for key, value in kept.items.items()}
        if kept is not None
        else {}
    )
    known = kept is not None and not kept.open and not (args.star or args.dstar)
    changed = args.get(role.arg, role.pos) if role.arg else None
    if isinstance(changed, v.Mapping):
        items.update({str(key): value for key, value in changed.items.items()})
        known = known and not changed.open
    elif (changed is not None and v.is_none(changed) is not True) or any(one in args.kw for one in role.more):
        items, known = {}, False
    return v.Args([], items, dstar=not known)
