"""What is used as numbers where it stands: columns and arrays of unknown type that are computed with, or given to what
raises for texts, in the same function."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memo
from d9mlint.ir.scopes import names_assigned
from d9mlint.ir.traversal import called_name, nodes, receiver

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_COMPUTED = frozenset({"+", "-", "/", "//", "**"})
_EXTREMES = frozenset({"max", "min"})
"""Methods that give one of the elements."""
_MOST_NAMES = 4
_COUNTING = frozenset({"int", "len", "float", "round"})
_OF_ARRAYS = frozenset({"flatten", "ravel", "squeeze", "reshape"})
"""Methods of arrays that lists do not have."""


def are_numbers(interp: Interp, node: m.Expr | None) -> bool:
    """Whether the elements of an expression are numbers, by what else the running function does with the variable or column
    that they are taken out of."""
    if isinstance(node, m.BinOp) and node.op in _COMPUTED and (is_number(node.left) or is_number(node.right)):
        return True
    name = taken_from(node)
    if not name:
        return False
    body = interp.frame.body
    uses, names = _uses(body), same(body, name)
    if any(_is_computed(uses, one) for one in names):
        return True
    if any(not names.isdisjoint(same(body, one)) and _is_array(uses, one) for one in uses.filled):
        return True
    for used, func in uses.taken:
        if used.isdisjoint(names):
            continue
        if func is None:
            return True
        called = interp.eval(func)
        entry = interp.kb.order(called.name) if isinstance(called, v.Ext) else None
        if entry is not None and entry.numbers:
            return True
    return False


def gives_numbers(interp: Interp, loop: m.For) -> bool:
    """Whether all that a loop takes apart its elements into goes into lists of which the function makes tensors of
    numbers."""
    parts = loop.target.elts if isinstance(loop.target, m.Seq) else [loop.target]
    left = {part.id for part in parts if isinstance(part, m.Name)}
    if len(left) < len(parts):
        return False
    uses = _uses(interp.frame.body)
    for one in loop.body:
        # Those that every round adds, before a name is given something else.
        if left & names_assigned([one]):
            return False
        call = one.value if isinstance(one, m.ExprStmt) else None
        if not isinstance(call, m.Call) or called_name(call) != "append" or len(call.args) != 1:
            continue
        added = {part.id for part in _parts(call.args[0]) if isinstance(part, m.Name)}
        if left & added and _makes_tensor(interp, uses, receiver(call)):
            left -= added
    return not left


def _makes_tensor(interp: Interp, uses: _Uses, name: str) -> bool:
    for used, func in uses.taken:
        called = interp.eval(func) if func is not None and name in used else None
        entry = interp.kb.order(interp.kb.canonical(called.name)) if isinstance(called, v.Ext) else None
        if entry is not None and entry.numbers:
            return True
    return False


def gives_number(body: list[m.Stmt], node: m.Expr) -> bool:
    """Whether an expression is a number that is written out or counted, or a variable of this body that only holds such."""
    return _gives_number(_uses(body), node)


def joined(interp: Interp, node: m.Expr | None) -> list[m.Expr]:
    """What NumPy joins, in the running function, to a variable that has no elements at first: ``rows`` of
    ``found = np.concatenate((found, rows))``."""
    name = node.id if isinstance(node, m.Name) and "." not in node.id else ""
    found: list[m.Expr] = []
    for one in _uses(interp.frame.body).assigned.get(name, []):
        called = interp.eval(one.func) if isinstance(one, m.Call) and isinstance(one.func, m.Name) else None
        if not isinstance(one, m.Call) or not isinstance(called, v.Ext) or not one.args:
            return []
        first = one.args[0]
        given = first.elts if isinstance(first, m.Seq) else one.args[:2]
        others = [part for part in given if not isinstance(part, m.Name) or part.id != name]
        if not interp.kb.canonical(called.name).startswith("numpy.") or 0 < len(given) == len(others):
            return []
        found += others
    return found


class _Uses(NamedTuple):
    """What a body does with its variables: what each is assigned, those of which elements are computed with, or are
    given to a function of a name, in the order of the code, and those in whose elements it stores numbers; ``counters``
    are those in which it counts."""

    assigned: dict[str, list[m.Expr]]
    taken: list[tuple[frozenset[str], m.Name | None]]
    filled: set[str]
    counters: set[str]


_known: dict[int, tuple[list[m.Stmt], _Uses]] = memo()


def _uses(body: list[m.Stmt]) -> _Uses:
    known = _known.get(id(body))
    if known is None:
        known = _known[id(body)] = body, _found(body)
    return known[1]


def _found(body: list[m.Stmt]) -> _Uses:
    found = _Uses({}, [], set(), set())
    stores: list[tuple[str, m.Expr]] = []
    for one in nodes(body):
        names: set[str] = set()
        func = None
        if isinstance(one, m.Assign):
            for target in {target.id for target in one.targets if isinstance(target, m.Name)}:
                found.assigned.setdefault(target, []).append(one.value)
            for store in one.targets:
                if isinstance(store, m.Subscript) and isinstance(store.value, m.Name):
                    stores.append((store.value.id, one.value))
        elif isinstance(one, m.AugAssign):
            if isinstance(one.target, m.Name) and one.op in _COMPUTED and is_number(one.value):
                names = {one.target.id}
        elif isinstance(one, m.For):
            found.counters.update(_counters(one))
        elif isinstance(one, m.BinOp) and one.op in _COMPUTED:
            pairs = (one.left, one.right), (one.right, one.left)
            names = {_element(side) for side, other in pairs if is_number(other)}
        elif isinstance(one, m.Call) and isinstance(one.func, m.Name):
            func = one.func
            names = {taken_from(part) for given in one.args for part in _parts(given)}
        if names := names - {""}:
            found.taken.append((frozenset(names), func))
    found.filled.update(name for name, value in stores if _gives_number(found, value))
    return found


def _counters(loop: m.For) -> set[str]:
    """The variables in which a loop counts."""
    called = loop.iter.func.id if isinstance(loop.iter, m.Call) and isinstance(loop.iter.func, m.Name) else ""
    target: m.Expr = loop.target
    if called == "enumerate" and isinstance(target, m.Seq) and target.elts:
        target = target.elts[0]
    elif called != "range":
        return set()
    return {target.id} if isinstance(target, m.Name) else set()


def _gives_number(uses: _Uses, node: m.Expr) -> bool:
    """Whether an expression is a number, counts something, or is an element of a range."""
    if isinstance(node, m.Name):
        values = uses.assigned.get(node.id, [])
        if not values:
            return node.id in uses.counters
        return all(is_number(one) or _calls(one, _COUNTING) for one in values)
    if isinstance(node, m.Subscript):
        base = node.value
        values = uses.assigned.get(base.id, []) if isinstance(base, m.Name) else [base]
        return bool(values) and all(_calls(one, {"range"}) for one in values)
    return is_number(node) or _calls(node, _COUNTING)


def _calls(node: m.Expr, names: Collection[str]) -> bool:
    return isinstance(node, m.Call) and isinstance(node.func, m.Name) and node.func.id in names


def _is_computed(uses: _Uses, name: str) -> bool:
    """Whether all that a variable is assigned is computed with a number."""
    values = uses.assigned.get(name, [])
    return bool(values) and all(
        isinstance(one, m.BinOp) and one.op in _COMPUTED and (is_number(one.left) or is_number(one.right))
        for one in values
    )


def _is_array(uses: _Uses, name: str) -> bool:
    """Whether a variable holds an array: the elements of another one at several places, or what only arrays give. Lists
    have elements of all kinds."""
    return any(
        _names_several(uses, one.index)
        if isinstance(one, m.Subscript)
        else isinstance(one, m.Call)
        and isinstance(one.func, (m.Name, m.Attr))
        and (one.func.id if isinstance(one.func, m.Name) else one.func.name).rpartition(".")[2] in _OF_ARRAYS
        for one in uses.assigned.get(name, [])
    )


def _names_several(uses: _Uses, index: m.Expr) -> bool:
    """Whether an index may name several elements: a list of places, or a variable in which nothing counts."""
    if isinstance(index, m.Name):
        return index.id not in uses.counters
    return isinstance(index, m.Seq) and index.kind == "l"


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


def is_computed_with_number(node: m.BinOp) -> bool:
    """Whether an operator that texts do not have takes a number."""
    return node.op in _COMPUTED and (is_number(node.left) or is_number(node.right))


def is_number(node: m.Expr) -> bool:
    """Whether an expression is a number that is written out."""
    return isinstance(node, m.Const) and type(node.value) in (int, float)
