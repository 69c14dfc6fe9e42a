"""Sets of texts in the cells of a table: where the table is written as text, each cell shows the order of its set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import columns, made_tables
from d9mlint.interp import values as v
from d9mlint.interp.order_kinds import TEXT, kind_of_elements

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.orders import Order

_CELLS = "@sets in cells"
"""Attribute of a column: a stand-in with the order of the sets in its cells."""


def given(interp: Interp, node: Any, value: v.Value) -> None:
    """A function gives a value for each element of a column: ``column.map(function)``."""
    order = _of_cell(interp, value, node)
    if order is not None:
        interp.orders.cells[id(node)] = order


def called(interp: Interp, api: str, args: v.Args, node: Any, result: v.Value, owner: v.Value) -> None:
    """A method of a library is called: it may give a column with sets in it, or write a table."""
    order = interp.orders.cells.pop(id(node), None) if interp.orders.cells else None
    if order is not None and isinstance(result, v.Obj) and columns.is_column(owner):
        result.attrs[_CELLS] = interp.orders.carried(v.Obj("?", "?"), order)
    writes = interp.kb.role(api, "writes-cells")
    if writes is None or args.get(writes.arg, writes.pos) is not None or args.star or args.dstar:
        return
    for one in (owner, *made_tables.columns_of(interp, owner)):
        interp.orders.decide(_of_column(interp, one, node))


def _of_column(interp: Interp, column: v.Value, node: Any) -> Order | None:
    if isinstance(column, v.Items) and column.kind in "lt" and column.elts:
        return _of_cell(interp, v.join(column.elts), node)
    if not isinstance(column, v.Obj) or column._attrs is None:
        return None
    return interp.orders.of(column.attrs.get(_CELLS))


def _of_cell(interp: Interp, cell: v.Value, node: Any) -> Order | None:
    """The order of the texts of a set; None for all else."""
    sets = [one for one in v.alternatives(cell) if isinstance(one, v.Items) and one.kind == "s"]
    if len(sets) < len(list(v.alternatives(cell))):
        return None
    # An empty set where there is nothing says nothing of the others.
    kinds = {kind_of_elements(interp, one) for one in sets if one.elts or one.open}
    return interp.orders.iterated(interp, cell, node) if kinds == {TEXT} else None
