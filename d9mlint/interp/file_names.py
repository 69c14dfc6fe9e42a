"""How the files are called that a program saves and loads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

_DEEPEST = 4


def ends_of(run: RunView, value: v.Value | None, depth: int = 0) -> frozenset[str]:
    """How the files that a value may be are known to end, with a slash before a whole name; empty where that is not
    known."""
    if isinstance(value, v.AnyOf):
        found = [ends_of(run, one, depth + 1) for one in value.values]
        return frozenset[str]().union(*found) if all(found) else frozenset()
    if isinstance(value, v.Lit):
        if not isinstance(value.value, str) or value.option:
            return frozenset()
        return frozenset({f"/{value.value.rpartition('/')[2]}"})
    if not isinstance(value, v.Obj) or depth > _DEEPEST or value.args.star or value.owner is not None:
        return frozenset()
    last = value.args.kw.get("end") if value.api == v.TEXT else None
    if isinstance(last, v.Lit) and isinstance(last.value, str) and not last.option:
        # What stands before the end of a text may belong to the name too.
        _, slash, name = last.value.rpartition("/")
        return frozenset({f"{slash}{name}"}) if name else frozenset()
    if run.kb.role(value.api, "makes-text") is None or not value.args.pos or value.type == v.TEXT:
        return frozenset()
    return ends_of(run, value.args.pos[-1], depth + 1)
