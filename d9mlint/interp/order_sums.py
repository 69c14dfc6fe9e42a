"""Sums of floating point numbers that are built up in arbitrary order.

Addition of floats is not associative: a sum, a product or a running mean depends on the order of its terms. What
counts is a loop that is younger than the sum, and terms or a start value that are known to be floats: sums of
integers, and of what may be integers, are not meant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from d9mlint.interp import shapes
from d9mlint.interp import values as v
from d9mlint.interp.clocks import is_time
from d9mlint.interp.columns import is_column
from d9mlint.interp.order_folds import OPERATORS, is_composed, mixed_with, sums_in
from d9mlint.interp.order_kinds import FLOAT, raw_kind, raw_kind_of_elements
from d9mlint.interp.tensors import TENSOR
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memo
from d9mlint.ir.scopes import assigned_names, target_names
from d9mlint.ir.traversal import called_name, nodes

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.orders import Loop, Orders

_LARGEST = 2**64
_MOST_NESTED = 4
_MOST_EXACT, _FINEST = 2**20, 2**10


def is_float(interp: Interp, value: v.Value | None, depth: int = 0) -> bool:
    """Whether a value is a floating point number, or an array of them; a tensor is, unless it is known not to be."""
    if isinstance(value, v.Lit):
        return isinstance(value.value, float)
    if isinstance(value, v.AnyOf):
        return any(is_float(interp, one, depth) for one in value.values)
    if not isinstance(value, v.Obj):
        return False
    is_operator = value.api == shapes.OPERATOR
    if is_operator and shapes.form(value).dtype is None:
        # Tensors of TensorFlow are not converted: both sides are of one kind.
        return depth < _MOST_NESTED and any(is_float(interp, one, depth + 1) for one in value.args.pos)
    if is_operator or value.type == TENSOR or interp.kb.role(value.api, "tensor") is not None:
        dtype = shapes.form(value).dtype
        return dtype is None or shapes.is_dtype(dtype, "floating")
    kinds = (raw_kind(interp, value), raw_kind_of_elements(interp, value))
    return FLOAT in kinds or (not any(kinds) and _is_selected(value))


def _is_selected(value: v.Obj) -> bool:
    """Whether a value is a column of a table, as that has it: most hold what was measured."""
    return value.api.endswith(".__getitem__") and is_column(value)


def are_floats(interp: Interp, values: v.Value) -> bool:
    """Whether the elements of a sequence are floats."""
    if isinstance(values, v.Items):
        return any(is_float(interp, one) for one in values.elts) and not all(map(is_exact, values.elts))
    return isinstance(values, v.Obj) and raw_kind_of_elements(interp, values) == FLOAT


def is_exact(value: v.Value) -> bool:
    """Whether a value is one of some numbers that add up without rounding, in any order: ``1.0 if found else 0.0``. They
    are multiples of one power of two."""
    if isinstance(value, v.AnyOf):
        return all(map(is_exact, value.values))
    if not isinstance(value, v.Lit) or not isinstance(value.value, (int, float)):
        return False
    return abs(value.value) < _MOST_EXACT and float(value.value * _FINEST).is_integer()


def loop_of(orders: Orders, interp: Interp, name: str) -> Loop | None:
    """The innermost loop that began when a variable, or the owner of an attribute, was there already."""
    head, _, attribute = name.partition(".")
    if not attribute:
        env = interp.frame.env
        return next((x for x in reversed(orders.loops) if x.env is env and head in x.before), None)
    owner = interp.lookup(head)
    return orders.loop_older_than(owner) if owner is not None else None


def assigned(orders: Orders, interp: Interp, stmt: m.Assign, value: v.Value) -> None:
    """``total = decay * total + x`` in a loop over an arbitrary order, also of an item, of each item in a comprehension, and
    where a function of the project computes it; and ``x = layer(x)``."""
    if is_time(interp, value):
        return
    for target in stmt.targets:
        loop = _loop_around(orders, interp, target)
        if loop is None:
            continue
        composed = isinstance(target, m.Name) and is_composed(stmt.value, target, loop.names)
        if composed or _is_mixed(interp, stmt, target, loop):
            orders.decide(loop.order)
        found = sums_in(interp, stmt.value, target)
        plain = isinstance(stmt.value, (m.BinOp, m.IfExp)) and not is_number_like(value)
        if found is None or plain:
            continue
        calls = isinstance(target, m.Name) and not isinstance(stmt.value, m.Comp)
        if not any(_varies(one, target, loop, calls) for one in found.rest):
            continue
        before = loop.before.get(target.id) if isinstance(target, m.Name) else None
        if any(is_float(interp, one) for one in (before, value)) or any(
            _is_fraction(orders, one) for one in found.sums
        ):
            orders.decide(loop.order)


def _is_mixed(interp: Interp, stmt: m.Assign, target: m.Expr, loop: Loop) -> bool:
    """Whether each round adds something to a multiple of what the rounds before it have left, ``total = total * 2 + x``, of
    which the result depends on the order also for whole numbers."""
    others = mixed_with(stmt.value, target)
    if not others or not isinstance(target, m.Name):
        return False
    if "." not in target.id:
        return any(_varies(one, target, loop, True) for one in others)
    # Another statement may begin anew in each round.
    attribute = target.id.rpartition(".")[2]
    begun = {
        function.name
        for function in interp.whole(interp.frame.file).functions
        for one in nodes(function.body)
        if isinstance(one, m.Assign) and one is not stmt
        for written in one.targets
        if isinstance(written, m.Name) and written.id.endswith(f".{attribute}")
    }
    return begun <= {"__init__"} and not all(isinstance(one, m.Const) for one in others)


def _loop_around(orders: Orders, interp: Interp, target: m.Expr) -> Loop | None:
    """The loop that is younger than what a variable holds, or what has an item that is the same in each of its rounds."""
    if isinstance(target, m.Name):
        return loop_of(orders, interp, target.id)
    if not isinstance(target, m.Subscript) or not isinstance(target.value, m.Name):
        return None
    loop = loop_of(orders, interp, target.value.id)
    loop = loop or orders.loop_older_than(interp.value_of(target.value))
    return loop if loop is not None and not _chooses_item(loop, target) else None


def _chooses_item(loop: Loop, target: m.Subscript) -> bool:
    """Whether each round of a loop may mean another item."""
    used = {one.id.partition(".")[0] for one in nodes([target.index]) if isinstance(one, m.Name)}
    return bool(used & (loop.names - loop.counters))


def is_number_like(value: v.Value) -> bool:
    """Whether the result of an operator may be a number: no sequence, no text, no path."""
    if isinstance(value, v.Obj):
        return value.type not in ("builtins.str", "pathlib.Path")
    return not isinstance(value, (v.Items, v.Mapping)) and not (
        isinstance(value, v.Lit) and isinstance(value.value, (str, bytes))
    )


def _varies(node: m.Expr, target: m.Expr, loop: Loop, calls: bool) -> bool:
    """Whether an expression has, beside what it is assigned to, something that may differ in each round of the loop, as what
    is called may."""
    own = tuple(f"{one.id}." for one in nodes([target]) if isinstance(one, m.Name))
    return any(
        (calls and isinstance(one, m.Call))
        or (
            isinstance(one, m.Name)
            and not f"{one.id}.".startswith(own)
            and one.id.partition(".")[0] in loop.names
        )
        for one in nodes([node])
    )


def _is_fraction(orders: Orders, node: m.Expr) -> bool:
    """Whether a sum or product has a float in it, such as a constant with a decimal point, or a quotient."""
    return any(
        (isinstance(one, m.Const) and isinstance(one.value, float))
        or (isinstance(one, m.BinOp) and (one.op == "/" or id(one) in orders.fractions))
        for one in nodes([node])
    )


def makes_float(orders: Orders, interp: Interp, node: m.BinOp, sides: tuple[v.Value, v.Value]) -> bool:
    """Whether an operator gives floats: it divides numbers, or one of its sides is a float or such an expression."""
    if node.op == "/" and _is_exact_quotient(*sides):
        return False
    if any(is_float(interp, side) for side in sides):
        return True
    if not all(map(is_number_like, sides)):
        return False
    return node.op == "/" or id(node.left) in orders.fractions or id(node.right) in orders.fractions


def _is_exact_quotient(left: v.Value, right: v.Value) -> bool:
    """Whether a whole number is divided by a power of two: such quotients add up without rounding, in any order."""
    whole = shapes.is_whole_number(left) or (isinstance(left, v.Obj) and left.type == shapes.NUMBER)
    if not whole or not isinstance(right, v.Lit) or not isinstance(right.value, (int, float)):
        return False
    return 0 < right.value < _LARGEST and math.frexp(right.value)[0] == 0.5


def is_number(interp: Interp, node: m.BinOp, sides: tuple[v.Value, v.Value]) -> bool:
    """Whether the result of an operator is a number, or an array of them, and no path: a quotient of two paths is one."""
    return any(is_float(interp, side) for side in sides) or any(
        isinstance(one, m.Const) and isinstance(one.value, (int, float)) for one in _operands(node)
    )


def _operands(node: m.Expr) -> Iterator[m.Expr]:
    """What the operators of an expression are applied to."""
    if isinstance(node, m.BinOp):
        yield from _operands(node.left)
        yield from _operands(node.right)
    else:
        yield node


def is_sum_of_floats(orders: Orders, interp: Interp, node: m.Expr, value: v.Value) -> bool:
    """Whether a term is a float by the operators in it, or the sum of such an expression: ``np.sum((x - 0.5) ** 2)``."""
    if isinstance(node, m.Call) and node.args and isinstance(value, v.Obj):
        entry = interp.kb.order(value.api)
        return entry is not None and entry.role == "sum" and id(node.args[0]) in orders.fractions
    return isinstance(node, m.BinOp) and id(node) in orders.fractions


def gives_fraction(orders: Orders, interp: Interp, node: m.Expr) -> bool:
    """Whether an expression is the call of a function of the project that returns a sum or product with a float in it."""
    if not isinstance(node, m.Call) or not isinstance(node.func, m.Name):
        return False
    func = interp.lookup(node.func.id)
    return isinstance(func, v.Func) and any(
        isinstance(one, m.Return) and one.value is not None and _is_fraction(orders, one.value)
        for one in nodes(func.fn.body)
    )


def item_summed(orders: Orders, interp: Interp, stmt: m.AugAssign, owner: v.Value, value: v.Value) -> None:
    """``stats["loss"] += x``: an item that several rounds of a loop add to."""
    target = stmt.target
    if stmt.op not in OPERATORS or not isinstance(target, m.Subscript) or is_time(interp, value):
        return
    loop = loop_of(orders, interp, target.value.id) if isinstance(target.value, m.Name) else None
    loop = loop or orders.loop_older_than(owner)
    if loop is None:
        return
    if not (
        is_float(interp, value) or _holds_floats(interp, owner) or gives_fraction(orders, interp, stmt.value)
    ):
        return
    if not _chooses_item(loop, target):
        orders.decide(loop.order)


def added_by_tasks(interp: Interp, stmt: m.AugAssign, old: v.Value, value: v.Value) -> None:
    """``total += x`` in a function that several threads or coroutines run at the same time: they add floating-point numbers
    to one that they share, in the order in which they get there."""
    if stmt.op not in OPERATORS or is_time(interp, value) or not _is_common(interp, stmt.target):
        return
    if is_float(interp, old) or is_float(interp, value):
        interp.orders.decide_arrival(interp, stmt.target)


def _is_common(interp: Interp, target: m.Expr) -> bool:
    """Whether a target of several tasks is a variable, an attribute or an item under a constant key of what is older than
    they are."""
    if isinstance(target, m.Subscript):
        held = interp.value_of(target.value)
        return (
            isinstance(target.index, m.Const)
            and isinstance(held, (v.Items, v.Mapping))
            and held.birth < interp.sharing
        )
    if not isinstance(target, m.Name):
        return False
    owner, dot, _ = target.id.rpartition(".")
    if dot:
        inst = interp.value_of(m.Name(owner, target.start, target.end))
        return isinstance(inst, v.Inst) and inst.birth < interp.sharing
    env: v.Env | None = interp.frame.env
    if env is None or target.id not in (env.globals_ or frozenset()) | (env.outer_ or frozenset()):
        return False
    while env.parent is not None and (env is interp.frame.env or target.id not in env.vars):
        env = env.parent
    return env.birth < interp.sharing


def is_numbered(orders: Orders, interp: Interp, stmt: m.Stmt | None, owner: v.Items, index: v.Value) -> bool:
    """``results[number - 1] = x`` with ``number, x = queue.get()``: each result has its own place in a list, which does not
    depend on how many rounds there were."""
    if not isinstance(stmt, m.Assign) or len(stmt.targets) != 1 or orders.deep(index) is not None:
        return False
    target = stmt.targets[0]
    if not isinstance(target, m.Subscript) or owner.kind != "l":
        return False
    parts = list(nodes([target.index]))
    if any(isinstance(one, m.BinOp) and one.op not in _SHIFTS for one in parts):
        return False
    used = {one.id.partition(".")[0] for one in parts if isinstance(one, m.Name)}
    around = [loop for loop in orders.loops if owner.birth < loop.start]
    return all(loop.env is interp.frame.env and used & loop.taken for loop in around)


_SHIFTS = frozenset("+-")


def _holds_floats(interp: Interp, owner: v.Value) -> bool:
    if isinstance(owner, v.Mapping):
        return any(is_float(interp, one) for one in owner.items.values())
    return are_floats(interp, owner)


def given_by(stmt: m.For | m.While | None) -> frozenset[str]:
    """The names of what a ``for`` statement takes in each round, and of what is computed from it in its body, not from
    the rounds before. What `zip` puts beside an element may be its number."""
    if not isinstance(stmt, m.For):
        return frozenset()
    known = _given.get(id(stmt))
    if known is None or known[0] is not stmt:
        names: set[str] = set()
        paired = isinstance(stmt.iter, m.Call) and called_name(stmt.iter) == "zip"
        if not paired or isinstance(stmt.target, m.Name):
            target_names(stmt.target, names)
        other: set[str] = set()
        setting = [one for one in nodes(stmt.body) if isinstance(one, (m.Assign, m.AugAssign, m.For))]
        for one in sorted(setting, key=lambda each: each.start):
            made: set[str] = set()
            for target in one.targets if isinstance(one, m.Assign) else [one.target]:
                target_names(target, made)
            if isinstance(one, m.Assign) and _is_looked_up(one.value, names - other, made):
                names |= made
            else:
                other |= made
        known = _given[id(stmt)] = (stmt, frozenset(names - other))
    return known[1]


def _is_looked_up(value: m.Expr, names: set[str], made: set[str]) -> bool:
    """Whether an expression is computed from a variable of these names, and from nothing that a call may count."""
    parts = list(nodes([value]))
    read = {one.id.partition(".")[0] for one in parts if isinstance(one, m.Name)}
    return (
        bool(read & names)
        and not read & made
        and all(
            called_name(one) in _LOOK_UPS
            or any(isinstance(x, m.Name) and x.id.partition(".")[0] in names for x in nodes([one.func]))
            for one in parts
            if isinstance(one, m.Call)
        )
    )


_LOOK_UPS = frozenset({"int", "get", "index", "pop"})
_given: dict[int, tuple[object, frozenset[str]]] = memo()


def names_of(stmt: m.For | m.While | None) -> tuple[frozenset[str], frozenset[str]]:
    """The names that a loop assigns, with its own target, and those of them that loops inside of it count or
    walk with."""
    if stmt is None:
        return frozenset(), frozenset()
    own: set[str] = set()
    if isinstance(stmt, m.For):
        target_names(stmt.target, own)
    inner: set[str] = set()
    for one in nodes(stmt.body):
        if isinstance(one, m.For):
            target_names(one.target, inner)
    return assigned_names(stmt) | own, frozenset(inner - own)
