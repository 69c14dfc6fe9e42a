"""Rows that hold tensors, such as the steps that an agent remembers, and objects of the program: chosen at random, and taken
apart into columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.library.records import fields
from d9mlint.interp.tensors import TENSOR

if TYPE_CHECKING:
    from collections.abc import Callable

    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import RoleEntry

_MOST_ROWS = 64


def _chosen(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``random.sample(rows, n)``: some of the rows."""
    rows = args.get("population", 0)
    if (
        not isinstance(rows, v.Items)
        or rows.kind == "s"
        or not (_holds_tensors(rows) or _holds_objects(rows))
    ):
        return None
    return v.Items("l", list(rows.elts), True)


def _one(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``random.choice(clients)``: one of some objects of the program."""
    rows = args.get("seq", 0)
    if not isinstance(rows, v.Items) or rows.kind == "s" or not _holds_objects(rows):
        return None
    return v.candidates(v.two_of_each(rows.elts))


def picked(run: RunView, role: RoleEntry, args: v.Args) -> v.Value | None:
    """One of some objects of the program, or a list of them: ``max(members)``, ``sorted(members)``. None for other
    elements."""
    if args.star:
        return None
    several = not role.more and len(args.pos) > 1
    rows = v.Items("t", args.pos) if several else args.get(role.arg, role.pos)
    if isinstance(rows, v.Obj):
        rows = v.Items("l", among(run, rows), True)
    if not isinstance(rows, v.Items) or rows.kind == "s" or not _holds_objects(rows):
        return None
    if role.more:
        return v.Items("l", list(rows.elts), True)
    instead = args.kw.get("default")
    return v.candidates([*v.two_of_each(rows.elts), *([] if instead is None else [instead])])


def among(run: RunView, value: v.Value) -> list[v.Value]:
    """The objects of which a call of a library gives one or some, such as ``np.random.choice(steps, 2)``."""
    role = run.kb.role(value.api, "chooses") if isinstance(value, v.Obj) else None
    rows = value.args.get(role.arg, role.pos) if role is not None and isinstance(value, v.Obj) else None
    if not isinstance(rows, v.Items) or rows.kind == "s" or rows.order is not None:
        return []
    return rows.elts if any(map(v.may_be_called, rows.elts)) else []


def _holds_objects(rows: v.Items) -> bool:
    return (
        rows.order is None and len(rows.elts) <= _MOST_ROWS and any(type(one) is v.Inst for one in rows.elts)
    )


def columns(rows: v.Items) -> v.Items | None:
    """What ``zip(*rows)`` gives; None where the rows are not known well enough."""
    if rows.kind == "s" or rows.order is not None or len(rows.elts) > _MOST_ROWS:
        return None
    cells = [cell for row in rows.elts if (cell := _cells(row)) is not None]
    widths = {len(row) for row in cells}
    if len(widths) != 1 or len(cells) < sum(v.is_none(row) is not True for row in rows.elts):
        return None
    return v.Items("t", [v.Items("t", [row[at] for row in cells], rows.open) for at in range(widths.pop())])


def _holds_tensors(rows: v.Items) -> bool:
    if rows.order is not None or len(rows.elts) > _MOST_ROWS:
        return False
    return any(_is_tensor(one) for row in rows.elts for one in (row, *(_cells(row) or ())))


def _is_tensor(value: v.Value) -> bool:
    return any(isinstance(one, v.Obj) and one.type == TENSOR for one in v.alternatives(value))


def _cells(row: v.Value) -> list[v.Value] | None:
    if isinstance(row, v.Items):
        return None if row.open or row.kind == "s" else row.elts
    return fields(row)


ROW_MODELS: dict[str, Callable[[Interp, str, v.Args, Any], v.Value | None]] = {
    "random.sample": _chosen,
    "random.choices": _chosen,
    "random.choice": _one,
}
