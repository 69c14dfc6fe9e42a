"""Columns of tables, of whose elements nothing is known: most have numbers, whose hashes are the same in every run, and many
have texts. What the running function does with them tells some of the latter."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.number_uses import same, taken_from
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes, receiver

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

TABLES = ("pandas.", "polars.", "dask.", "cudf.")
"""Libraries of tables, whose ``keys()`` are columns, which have an order of their own."""
CELL = "@cell"
"""The mark of an element of a column."""
_DEPTH = 8
_LABELS = frozenset({"columns", "index", "keys"})
"""What tables have that names their columns and rows."""
_NO_TEXTS = (int, float, complex, tuple, frozenset, datetime.datetime)
_OF_TEXTS = frozenset(name for name in vars(str) if not any(hasattr(kind, name) for kind in _NO_TEXTS))
"""What texts have, and nothing else that a set often holds."""


def is_column(value: v.Value | None) -> bool:
    """Whether a value is a column of a table, or has the elements of one."""
    for _ in range(_DEPTH):
        if isinstance(value, v.Obj):
            if value.api.rpartition(".")[2] in _LABELS:
                return False
            if value.api.startswith(TABLES) or value.type.startswith(TABLES):
                return True
            value = value.owner
        elif isinstance(value, v.Member):
            value = value.owner
        else:
            break
    return False


def cell() -> v.Obj:
    """An element of a column."""
    made = v.Obj("?", "?")
    made.attrs[CELL] = v.TRUE
    return made


def has_cells(elements: list[v.Value]) -> bool:
    """Whether the unknown elements of a set, and the unknown parts of those that are tuples, were taken out of columns, all
    of them."""
    unknown = [
        one for one in _parts(elements) if one is v.UNKNOWN or (isinstance(one, v.Obj) and one.api == "?")
    ]
    return bool(unknown) and all(isinstance(one, v.Obj) and CELL in one.attrs for one in unknown)


def _parts(elements: list[v.Value]) -> Iterator[v.Value]:
    for one in elements:
        if isinstance(one, v.Items) and one.kind == "t" and not one.open:
            yield from _parts(one.elts)
        else:
            yield one


def are_texts(interp: Interp, node: m.Expr | None) -> bool:
    """Whether the elements of an expression are texts, by what else the running function does with the variable or column
    that they are taken out of: methods that only texts have are called on each of them, or they are compared with texts."""
    name = taken_from(node)
    if not name:
        return False
    body = interp.frame.body
    names = same(body, name)
    for one in nodes(body):
        if isinstance(one, m.For):
            if _calls_text(one, one.target, one.iter, names):
                return True
        elif isinstance(one, m.Comp):
            if any(_calls_text(one, gen.target, gen.iter, names) for gen in one.generators):
                return True
        elif isinstance(one, m.Compare):
            sides = [one.left, *one.comparators]
            if any(map(_is_text, sides)) and any(taken_from(side) in names for side in sides):
                return True
        elif isinstance(one, m.Call):
            # `frame["name"].str.lower()`
            path = one.func.name if isinstance(one.func, m.Attr) else ""
            if (
                path.startswith("str.")
                and isinstance(one.func, m.Attr)
                and taken_from(one.func.value) in names
            ):
                return True
    return False


def _calls_text(within: m.For | m.Comp, target: m.Expr, over: m.Expr, names: set[str]) -> bool:
    """Whether a loop goes through one of some variables, and calls a method that only texts have on each element."""
    if isinstance(over, m.Call) and over.args and called_name(over) == "enumerate":
        over, target = over.args[0], target.elts[-1] if isinstance(target, m.Seq) and target.elts else target
    if taken_from(over) not in names:
        return False
    return isinstance(target, m.Name) and any(
        isinstance(one, m.Call) and receiver(one) == target.id and called_name(one) in _OF_TEXTS
        for one in nodes([within])
    )


def _is_text(node: m.Expr) -> bool:
    return isinstance(node, m.Const) and isinstance(node.value, str)
