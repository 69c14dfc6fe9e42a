"""Members of the project's enumerations, each of which is known by its value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView


def enumerates(interp: RunView, cls: v.Cls) -> bool:
    """Whether calling a class looks up one of its members."""
    return any(
        interp.kb.role(interp.kb.canonical(base), "enumerates") is not None for base in cls.external_bases()
    )


def by_value(interp: RunView, cls: v.Cls, args: v.Args) -> v.Lit | None:
    """The member that ``Kind(value)`` gives; None where it is not known to be there."""
    value = args.pos[0] if len(args.pos) == 1 and not args.kw and not args.star and not args.dstar else None
    if not isinstance(value, v.Lit) or not enumerates(interp, cls) or _converts(cls):
        return None
    members = [cls.find(name) for one in cls.mro() for name in one.env.vars]
    return value if any(isinstance(one, v.Lit) and _equal(one, value) for one in members) else None


def by_name(interp: RunView, cls: v.Cls, name: v.Value) -> v.Value | None:
    """The member that ``Kind[name]`` gives: one of all, where these are classes; None where it is not known."""
    if not isinstance(name, v.Lit) or name.option or not isinstance(name.value, str):
        return any_member(interp, cls)
    return cls.find(name.value) if enumerates(interp, cls) else None


def any_member(interp: RunView, cls: v.Cls) -> v.Value | None:
    """One of the classes and functions that are members; None where there are none."""
    if not enumerates(interp, cls) or _converts(cls):
        return None
    members = [
        one
        for name, one in cls.env.all().items()
        if not name.startswith("_") and isinstance(one, (v.Cls, v.Ext, v.Partial))
    ]
    return v.candidates(members) if members else None


def _converts(cls: v.Cls) -> bool:
    """Whether members have other values than what the body of the class gives them."""
    return any(cls.find(name) is not None for name in ("__new__", "__init__", "_missing_"))


def _equal(one: v.Lit, other: v.Lit) -> bool:
    return type(one.value) is type(other.value) and one.value == other.value
