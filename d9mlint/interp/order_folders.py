"""Which listings are of one folder: two of them give its entries in one order, as long as none is added or taken away. So
does a process that goes through one set twice."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import msgspec

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.state import Site
    from d9mlint.knowledge.schema import OrderEntry

Folders = dict[int, tuple[str, v.Value]]
"""What lists each folder, and what names it, by numbers below those of places."""
_JOINED = "os.path.join"
_NAMING = frozenset({_JOINED, "pathlib.Path"})
"""What names the same folder whenever it is given the same."""
_FIRST = -2
_FIRST_SET = -(1 << 40)
"""Sets have numbers below those of folders."""
_PLAIN = (m.AnnAssign, m.Assert, m.Assign, m.AugAssign, m.ExprStmt)
"""Statements that do the same in each round."""
_DEEPEST = 4


def listed(entry: OrderEntry, args: v.Args, owner: v.Value | None) -> v.Value | None:
    """What names the folder whose entries a call lists, or the pattern of those that it lists; None where that is not
    known."""
    if not entry.one_folder and (entry.pattern is None or owner is not None):
        return None
    given = [*([owner] if owner is not None else []), *args.pos, *args.kw.values()]
    if len(given) != 1 or args.star or args.dstar:
        return None
    named = _plain(given[0])
    return named if isinstance(named, v.Obj) or is_fixed(named) else None


def is_fixed(named: v.Value) -> bool:
    """Whether this is the name of a folder that stands in the code, or what an option gives."""
    return isinstance(named, v.Lit) and (isinstance(named.value, str) or bool(named.option))


def number(folders: Folders, entry: OrderEntry, folder: v.Value, site: Site) -> int:
    """The number of a folder: another call that lists it has the same one."""
    for known, (listing, named) in folders.items():
        if listing == entry.id and are_alike(named, folder):
            return known
    found = _FIRST - zlib.crc32(f"{site.path}:{site.start}".encode())
    while found in folders:
        found -= 1
    folders[found] = (entry.id, folder)
    return found


def number_of_set(value: v.Items) -> int:
    """The number of a set, as long as it has these elements."""
    return _FIRST_SET - max(value.birth, value.version)


def of_call(known: int, site: int) -> int:
    """The number that a set has which a call at a site has gone through, where what it gives is used; 0 for anything but
    sets. Each call has its own."""
    return _FIRST_SET - zlib.crc32(f"{known}:{site}".encode()) - (1 << 40) if known <= _FIRST_SET else 0


def are_alike(one: v.Value, other: v.Value, depth: int = 0) -> bool:
    """Whether both surely name one folder."""
    one, other = _plain(one), _plain(other)
    if isinstance(one, v.Lit) and isinstance(other, v.Lit):
        return (one.value, one.option) == (other.value, other.option) and is_fixed(one)
    if not isinstance(one, v.Obj) or not isinstance(other, v.Obj):
        return False
    if one is other:
        return True
    if one.api != other.api or one.api not in _NAMING or depth > _DEEPEST:
        return False
    parts, others = one.args, other.args
    plain = not (parts.kw or others.kw or parts.star or others.star)
    return (
        plain
        and len(parts.pos) == len(others.pos)
        and all(are_alike(x, y, depth + 1) for x, y in zip(parts.pos, others.pos, strict=True))
    )


def through(folders: Folders, known: int, stmt: m.For | None, comp: m.Comp | None) -> int:
    """The number of what a loop over the entries of a folder gives: that of the folder where it gives something for each of
    them, another one where it leaves some out by their names alone, and none where it may leave out any."""
    if stmt is not None:
        return known if all(isinstance(one, _PLAIN) for one in stmt.body) and not stmt.orelse else 0
    if comp is None:
        return known
    if len(comp.generators) != 1:
        return 0
    first = comp.generators[0]
    if not first.ifs:
        return known
    target = first.target.id if isinstance(first.target, m.Name) else ""
    asked = [_words(one, target) for one in first.ifs]
    if not target or known not in folders or "" in asked:
        return 0
    found = _FIRST - zlib.crc32(f"{known}:{asked}".encode())
    folders.setdefault(found, folders[known])
    return found


def _words(test: Any, target: str) -> str:
    """What a test asks of an entry, whatever the variable is called that holds it; nothing where it asks more."""
    if isinstance(test, m.Name):
        name, dot, rest = test.id.partition(".")
        return f"_{dot}{rest}" if name == target else ""
    if isinstance(test, list):
        parts = [_words(one, target) for one in test]
        return f"[{','.join(parts)}]" if all(parts) else ""
    if not isinstance(test, msgspec.Struct):
        return repr(test)
    if not isinstance(test, (m.Attr, m.BoolOp, m.Call, m.Compare, m.Const, m.Seq, m.Unary)):
        return ""
    names = [name for name in test.__struct_fields__ if name not in ("start", "end")]
    parts = [_words(getattr(test, name), target) for name in names]
    return f"{type(test).__name__}({','.join(parts)})" if all(parts) else ""


def _plain(named: v.Value) -> v.Value:
    """What names a folder, without ``os.path.join`` around it alone."""
    while (
        isinstance(named, v.Obj) and named.api == _JOINED and len(named.args.pos) == 1 and not named.args.star
    ):
        named = named.args.pos[0]
    return named
