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


def parts_of(run: RunView, value: v.Value | None, depth: int = 0) -> tuple[str, str | None]:
    """How the name of a file begins and ends, without its folder, where a part between them is not known; None in place of
    the end where all of it is. Both are empty where nothing is known."""
    if isinstance(value, v.Lit) and isinstance(value.value, str) and not value.option:
        return value.value.rpartition("/")[2], None
    if not isinstance(value, v.Obj) or depth > _DEEPEST or value.args.star:
        return "", ""
    if isinstance(value.owner, v.Lit) and isinstance(value.owner.value, str) and not value.owner.option:
        # `"model_{}.pt".format(epoch)`
        begins, _, rest = value.owner.value.partition("{")
        return begins.rpartition("/")[2], rest.rpartition("}")[2]
    if value.owner is not None:
        return "", ""
    if value.api == v.TEXT:
        first, last = value.args.get("", 0), value.args.kw.get("end")
        if not (isinstance(first, v.Lit) and isinstance(last, v.Lit)) or first.option or last.option:
            return "", ""
        return str(first.value).rpartition("/")[2], str(last.value)
    if run.kb.role(value.api, "makes-text") is None or not value.args.pos or value.type == v.TEXT:
        return "", ""
    return parts_of(run, value.args.pos[-1], depth + 1)
