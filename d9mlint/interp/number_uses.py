"""What is used as numbers where it stands: columns and arrays of unknown type that are computed with, or given to what
raises for texts, in the same function."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memo
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_COMPUTED = frozenset({"+", "-", "/", "//", "**"})
_EXTREMES = frozenset({"max", "min"})
"""Methods that give one of the elements."""
_MOST_NAMES = 4


def are_numbers(interp: Interp, node: m.Expr | None) -> bool:
    """Whether the elements of an expression are numbers, by what else the running function does with the variable or column
    that they are taken out of."""
    if (
        isinstance(node, m.BinOp)
        and node.op in _COMPUTED
        and (_is_number(node.left) or _is_number(node.right))
    ):
        return True
    name = taken_from(node)
    if not name:
        return False
    body = body_of(interp)
    names = same(body, name)
    for used, func in _uses(body).taken:
        if used.isdisjoint(names):
            continue
        if func is None:
            return True
        called = interp.eval(func)
        entry = interp.kb.order(called.name) if isinstance(called, v.Ext) else None
        if entry is not None and entry.numbers:
            return True
    return False


class _Uses(NamedTuple):
    """What a body does with its variables: what each is assigned, and those of which elements are computed with, or are
    given to a function of a name, in the order of the code."""

    assigned: dict[str, list[m.Expr]]
    taken: list[tuple[frozenset[str], m.Name | None]]


_known: dict[int, tuple[list[m.Stmt], _Uses]] = memo()


def _uses(body: list[m.Stmt]) -> _Uses:
    known = _known.get(id(body))
    if known is None:
        known = _known[id(body)] = body, _found(body)
    return known[1]


def _found(body: list[m.Stmt]) -> _Uses:
    found = _Uses({}, [])
    for one in nodes(body):
        names: set[str] = set()
        func = None
        if isinstance(one, m.Assign):
            for target in {target.id for target in one.targets if isinstance(target, m.Name)}:
                found.assigned.setdefault(target, []).append(one.value)
        elif isinstance(one, m.BinOp) and one.op in _COMPUTED:
            pairs = (one.left, one.right), (one.right, one.left)
            names = {_element(side) for side, other in pairs if _is_number(other)}
        elif isinstance(one, m.Call) and isinstance(one.func, m.Name):
            func = one.func
            names = {taken_from(part) for given in one.args for part in _parts(given)}
        if names := names - {""}:
            found.taken.append((frozenset(names), func))
    return found


def body_of(interp: Interp) -> list[m.Stmt]:
    """The statements of the running function, or of the module."""
    func = interp.frame.func
    return func.fn.body if func is not None else interp.frame.file.facts.functions[0].body


def same(body: list[m.Stmt], name: str) -> set[str]:
    """A variable, and what it is assigned once: ``u`` and ``frame.u`` after ``u = frame.u.values``."""
    names = {name}
    for _ in range(_MOST_NAMES):
        assigned = _uses(body).assigned.get(name, [])
        name = taken_from(assigned[0]) if len(assigned) == 1 else ""
        if not name or name in names:
            break
        names.add(name)
    return names if len(assigned) <= 1 else set()


def taken_from(node: m.Expr | None) -> str:
    """The variable, or the column of one, that some elements are taken out of: ``u`` for ``u[mask].tolist()``."""
    while node is not None:
        if isinstance(node, m.Subscript):
            if isinstance(node.index, m.Const) and isinstance(node.value, m.Name):
                return _column(f"{node.value.id}.{node.index.value}")
            node = node.value
        elif isinstance(node, m.Call) and not node.args and isinstance(node.func, m.Name):
            return _column(node.func.id.rpartition(".")[0])
        elif isinstance(node, m.Call) and not node.args and isinstance(node.func, m.Attr):
            node = node.func.value
        else:
            return _column(node.id) if isinstance(node, m.Name) else ""
    return ""


def _element(node: m.Expr) -> str:
    """The variable that an expression is, or is an element of: the number of its elements is none."""
    if isinstance(node, m.Call) and not (
        isinstance(node.func, m.Name) and node.func.id.rpartition(".")[2] in _EXTREMES
    ):
        return ""
    return taken_from(node)


def _column(name: str) -> str:
    return name.removesuffix(".values")


def _parts(given: m.Expr) -> list[m.Expr]:
    """What an argument is: one expression, or those of a pair."""
    return given.elts if isinstance(given, m.Seq) else [given]


def _is_number(node: m.Expr) -> bool:
    return isinstance(node, m.Const) and type(node.value) in (int, float)
