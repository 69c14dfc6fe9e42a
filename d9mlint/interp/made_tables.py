"""Tables that the program makes itself: what is in the cells of their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.columns import TABLES
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.project.modules import ModuleFile

_CHANGED = "@cells changed"
"""Attribute of a table of which cells were replaced that have no known name."""
_IN_PLACE = "inplace"
"""The argument with which methods of tables change them."""
_TAKING_OUT = "pop"
"""The method that takes a column out."""
_STEPS = 8
_NUMBERED = v.Obj("builtins.range")


def changed(owner: v.Value) -> None:
    """Cells of a table are replaced, under an unknown name or by their places: ``table.loc[rows, name] = value``."""
    table = owner.owner if isinstance(owner, v.Member) else owner
    if isinstance(table, v.Obj) and table.type.startswith(TABLES):
        table.attrs[_CHANGED] = v.TRUE


def column(interp: Interp, table: v.Value | None, name: str) -> v.Value | None:
    """What a table was made with, or was given later, for a column; None where that is not known, or where the cells may be
    others by now."""
    for _ in range(_STEPS):
        if not isinstance(table, v.Obj) or _CHANGED in table.attrs or _is_changed_in_place(interp, table):
            return None
        if name in table.attrs:
            return table.attrs[name]
        role = interp.kb.role(table.api, "makes-table")
        if role is not None:
            return _given(table.args.get(role.arg, role.pos), name)
        if not table.api.endswith(".__getitem__") and interp.kb.role(table.api, "keeps-cells") is None:
            return None
        table = table.owner
    return None


def deleted(owner: v.Value, index: v.Value) -> None:
    """``del table[name]``."""
    if isinstance(owner, v.Obj) and owner.type.startswith(TABLES):
        if isinstance(index, v.Lit) and isinstance(index.value, str):
            owner.attrs[index.value] = v.UNKNOWN
        else:
            changed(owner)


def columns_of(interp: Interp, table: v.Value) -> list[v.Value]:
    """What is known of the columns of a table, as far as none of them may be taken out or have other cells by now."""
    if not isinstance(table, v.Obj) or _CHANGED in table.attrs or _has_in_place(interp, table):
        return []
    if any(_TAKING_OUT in interp.whole(one).words for one in _files(interp, table)):
        return []
    found = {name: one for name, one in table.attrs.items() if not name.startswith("@")}
    role = interp.kb.role(table.api, "makes-table")
    data = table.args.get(role.arg, role.pos) if role is not None else None
    if isinstance(data, v.Mapping):
        found = {**data.items, **found}
    elif isinstance(data, v.Items):
        names = {name for row in data.elts if isinstance(row, v.Mapping) for name in row.items}
        found = {**{name: _cells(data, name) for name in names}, **found}
    return list(found.values())


def _cells(rows: v.Items, name: Any) -> v.Items:
    return v.Items(
        "l", [one.items[name] for one in rows.elts if isinstance(one, v.Mapping) and name in one.items]
    )


def labels(interp: Interp, value: v.Obj) -> v.Value | None:
    """What names the columns or the rows of a table, ``table.columns``, that the program makes: what it gives for that, the
    keys of its mapping, or numbers. None where that is not known."""
    table, which = value.owner, value.api.rpartition(".")[2]
    role = interp.kb.role(table.api, "makes-table") if isinstance(table, v.Obj) else None
    if role is None or which not in role.more or not isinstance(table, v.Obj) or _has_in_place(interp, table):
        return None
    given, data = table.args.get(which), table.args.get(role.arg, role.pos)
    if given is not None or table.args.dstar:
        return given
    if not isinstance(data, v.Mapping):
        return None
    if which == role.more[0]:
        return data
    return _NUMBERED if all(isinstance(one, v.Items) for one in data.items.values()) else None


def _has_in_place(interp: Interp, table: v.Obj) -> bool:
    """Whether the file where a table is made, or the one that runs, has methods that change tables in place."""
    return any(_IN_PLACE in interp.whole(one).words for one in _files(interp, table))


def _files(interp: Interp, table: v.Obj) -> list[ModuleFile]:
    return list({one.path: one for one in (table.file, interp.frame.file) if one is not None}.values())


def _given(data: v.Value | None, name: str) -> v.Value | None:
    """The column of this name in a mapping of columns, or in a list of rows that are mappings."""
    if isinstance(data, v.Mapping):
        found: v.Value | None = data.items.get(name)
        return found
    if not isinstance(data, v.Items) or data.open or not data.elts:
        return None
    rows = [one.items.get(name) if isinstance(one, v.Mapping) else None for one in data.elts]
    cells = [one for one in rows if one is not None]
    return v.Items("l", cells) if len(cells) == len(rows) else None


def _is_changed_in_place(interp: Interp, table: v.Obj) -> bool:
    """Whether a method may change the cells of a table in place, in the file where it is made or in the one that runs."""
    return any(
        interp.kb.role(f"{table.type}.{called_name(one)}", "keeps-cells") is None
        for file in _files(interp, table)
        if _IN_PLACE in interp.whole(file).words
        for function in file.facts.functions
        for one in nodes(function.body)
        if isinstance(one, m.Call) and any(given.name == _IN_PLACE for given in one.keywords)
    )
