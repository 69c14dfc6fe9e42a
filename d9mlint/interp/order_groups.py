"""Columns that have one value: that by which a table is grouped, in each group, and that by which its rows are selected.

A set of such a column has one element, and so no order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.attribute_kinds import value_of
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memoized
from d9mlint.ir.traversal import called_name, nodes, parents

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

GROUPING = frozenset({"groupby", "group_by"})
_LOCATED = frozenset({"loc"})
_VALUES = frozenset({"values", "unique", "array"})
_MOST_NAMES = 4


class _Data(NamedTuple):
    """A table or one of its columns. ``single`` are names of columns that have one value; ``groups`` is whether it is a
    table of groups, in each of which these columns have one."""

    single: frozenset[str]
    column: str | None = None
    groups: bool = False


_ANY = _Data(frozenset())


def has_one_value(interp: Interp, node: m.Expr | None, fn: m.Function | None) -> bool:
    """Whether an expression is a column of a table that has the same value in all rows there are."""
    if fn is None or not isinstance(node, m.Call | m.Name | m.Attr | m.Subscript) or not _selects(fn):
        return False
    found = _read(interp, node, fn, 0)
    return found is not None and found.column is not None and found.column in found.single


@memoized
def _selects(fn: m.Function) -> bool:
    """Whether a function groups anything, or selects anything by a comparison; memoised while the function lives."""
    return any(
        called_name(one) in GROUPING
        or (isinstance(one, m.Subscript) and isinstance(one.index, m.Compare | m.BinOp | m.Seq))
        for one in nodes(fn.body)
    )


def _steps(node: Any) -> tuple[m.Name | None, list[Any]]:
    """The variable that an expression begins with, and what is taken of it, one after the other: names of attributes,
    calls, and indices in subscripts."""
    if isinstance(node, m.Name):
        first, *rest = node.id.split(".")
        return m.Name(first, node.start, node.end), list(rest)
    if isinstance(node, m.Attr):
        root, steps = _steps(node.value)
        return root, [*steps, *node.name.split(".")]
    if isinstance(node, m.Call):
        root, steps = _steps(node.func)
        return root, [*steps, node]
    if isinstance(node, m.Subscript):
        root, steps = _steps(node.value)
        return root, [*steps, node]
    return None, []


def _read(interp: Interp, node: m.Expr, fn: m.Function, names: int) -> _Data | None:
    """What an expression is, as far as it begins with a variable; None for anything but a table or a column."""
    root, steps = _steps(node)
    if root is None:
        return None
    data: _Data | None = _variable(interp, root.id, node, fn, names) if names < _MOST_NAMES else _ANY
    method = ""
    for step in steps:
        if data is None:
            return None
        if isinstance(step, str):
            if method:
                data = _attribute(data, method)
            method = step
        elif isinstance(step, m.Call):
            data = _called(interp, data, method, step)
            method = ""
        else:
            if method and method not in _LOCATED:
                data = _attribute(data, method)
            data = _item(interp, data, step) if data is not None else None
            method = ""
    return _attribute(data, method) if data is not None and method else data


def _attribute(data: _Data, name: str) -> _Data | None:
    if data.column is None:
        return data._replace(column=name)
    return data if name in _VALUES else None


def _called(interp: Interp, data: _Data, method: str, node: m.Call) -> _Data | None:
    """What a method of a table or column gives."""
    if method in GROUPING:
        given = node.args[0] if node.args else next((one.value for one in node.keywords), None)
        # What looks like a column may be an attribute that holds the table.
        single = data.single if data.column is None else frozenset()
        return _Data(single | _texts(interp, given), groups=True)
    if data.groups:
        return data._replace(groups=False) if method == "get_group" else None
    if data.column is not None:
        entry = interp.kb.order(f"?.{method}", True)
        return data if method in _VALUES or (entry is not None and entry.elements == "same") else None
    written = {one.value for one in nodes([node]) if isinstance(one, m.Const)}
    written |= {one.name for one in node.keywords}
    if method not in interp.kb.table_methods or written & data.single:
        return None
    return data


def _item(interp: Interp, data: _Data, node: m.Subscript) -> _Data | None:
    """A column, rows that a comparison selects, or both."""
    index = node.index
    wanted: m.Expr | None = None
    if isinstance(index, m.Seq) and index.kind == "t" and len(index.elts) == 2:
        index, wanted = index.elts
    if isinstance(index, m.Compare | m.BinOp):
        data = data._replace(single=data.single | frozenset(_selected(interp, index)))
    elif not isinstance(index, m.Slice):
        if wanted is not None:
            return None
        wanted = index
    if wanted is None:
        return data
    names = _texts(interp, wanted)
    if data.column is not None or len(names) != 1:
        return None
    return data if isinstance(wanted, m.Seq) else data._replace(column=next(iter(names)))


def _selected(interp: Interp, mask: m.Expr) -> Iterator[str]:
    """The columns that have one value where a mask holds: ``(table["id"] == key) & ...``."""
    if isinstance(mask, m.BinOp) and mask.op == "&":
        yield from _selected(interp, mask.left)
        yield from _selected(interp, mask.right)
    elif isinstance(mask, m.Compare) and mask.ops == ["=="]:
        root, steps = _steps(mask.left)
        other = mask.comparators[0]
        if root is None or any(
            isinstance(one, m.Name) and one.id.partition(".")[0] == root.id for one in nodes([other])
        ):
            return
        if len(steps) == 1 and isinstance(steps[0], str):
            yield steps[0]
        elif len(steps) == 1 and isinstance(steps[0], m.Subscript):
            yield from _texts(interp, steps[0].index)


def _texts(interp: Interp, node: m.Expr | None) -> frozenset[str]:
    """The text that an expression is, or those of a list."""
    if isinstance(node, m.Seq):
        return frozenset().union(*(_texts(interp, one) for one in node.elts))
    if not isinstance(node, m.Const | m.Name):
        return frozenset()
    value = value_of(interp, node) if isinstance(node, m.Name) else interp.eval(node)
    found = value.elts if isinstance(value, v.Items) and not value.open else [value]
    return frozenset(one.value for one in found if isinstance(one, v.Lit) and isinstance(one.value, str))


def _variable(interp: Interp, name: str, where: m.Expr, fn: m.Function, names: int) -> _Data | None:
    """What a variable of a function is, by all that the function gives it."""
    rounds = _round_of(fn, name, where)
    if rounds is not None:
        return _group(interp, *rounds, fn, name, names)
    if any(one.name == name for one in fn.params):
        return _ANY
    found: list[_Data | None] = []
    for one in nodes(fn.body):
        if isinstance(one, m.For) and _binds(one.target, name):
            found.append(_group(interp, one.target, one.iter, fn, name, names))
        elif isinstance(one, m.Assign) and any(_binds(target, name) for target in one.targets):
            root, steps = _steps(one.value)
            if root is not None and root.id == name and steps:
                # `group = group.sort_values("day")`
                data = _read(interp, one.value, fn, _MOST_NAMES)
                if data is None or data.column is not None or data.groups:
                    return _ANY
                continue
            found.append(
                _read(interp, one.value, fn, names + 1) if isinstance(one.targets[0], m.Name) else None
            )
    if not found or None in found:
        return _ANY
    return found[0] if all(one == found[0] for one in found) else _ANY


def _round_of(fn: m.Function, name: str, where: m.Expr) -> tuple[m.Expr, m.Expr] | None:
    """The target and what it is of, where a comprehension around an expression gives it the variable."""
    above = parents(fn)
    node: Any = above.get(id(where))
    while node is not None:
        for one in node.generators if isinstance(node, m.Comp) else ():
            if _binds(one.target, name):
                return one.target, one.iter
        node = above.get(id(node))
    return None


def _binds(target: m.Expr, name: str) -> bool:
    return any(isinstance(one, m.Name) and one.id == name for one in nodes([target]))


def _group(
    interp: Interp, target: m.Expr, given: m.Expr, fn: m.Function, name: str, names: int
) -> _Data | None:
    """A group of a table, as a loop gives it: the second of a pair, behind what counts the rounds."""
    while isinstance(target, m.Seq) and len(target.elts) == 2 and isinstance(target.elts[1], m.Seq):
        target = target.elts[1]
    if not isinstance(target, m.Seq) or len(target.elts) != 2 or not _binds(target.elts[1], name):
        return None
    while isinstance(given, m.Call) and called_name(given) not in GROUPING and given.args:
        # `enumerate(tqdm(groups))`
        given = given.args[0]
    data = _read(interp, given, fn, names + 1)
    return data._replace(groups=False) if data is not None and data.groups and data.column is None else None
