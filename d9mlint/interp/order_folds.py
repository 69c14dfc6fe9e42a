"""What a loop builds up: ``total = total + x``, item by item, and by functions of the project, ``state = mix(state, part)``
where ``mix`` returns a sum or a product in which ``state`` is a term."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import alike, called_name, nodes, receiver

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

OPERATORS = frozenset("+-*")
_SCALING, _SHIFTING = frozenset({"*", "<<"}), frozenset({"+", "-", "^", "|"})


def called(interp: Interp, call: m.Expr) -> tuple[m.Function, Mapping[str, m.Expr]] | None:
    """The function of the project that an expression calls, and what is written there for its parameters."""
    if not isinstance(call, m.Call) or not isinstance(call.func, m.Name):
        return None
    func = interp.value_of(call.func)
    if not isinstance(func, v.Func) or any(isinstance(one, m.Star) for one in call.args):
        return None
    names = [one.name for one in func.fn.params if one.kind in ("p", "a")]
    given = dict(zip(names[1:] if func.receiver is not None else names, call.args, strict=False))
    given.update((one.name, one.value) for one in call.keywords if one.name is not None)
    return func.fn, given


def is_composed(written: m.Expr, built: m.Expr, names: frozenset[str]) -> bool:
    """Whether an assignment to ``built`` applies to it what each round of a loop that assigns these names has another one
    of: ``x = layer(x)``, ``x = step.apply(x)``."""
    if not isinstance(written, m.Call) or not isinstance(written.func, m.Name):
        return False
    given = [*written.args, *(one.value for one in written.keywords)]
    return written.func.id.partition(".")[0] in names and any(alike(one, built) for one in given)


def mixed_with(written: m.Expr, built: m.Expr) -> list[m.Expr]:
    """What an assignment to ``built`` adds to a multiple of it, or multiplies a sum with it by: ``total * 2 + x``. Such
    steps do not commute, whatever the numbers are. Nothing where it only adds, or only multiplies."""
    steps = _steps(written, built) or []
    operators = {op for op, _ in steps}
    mixed = operators & _SCALING and operators & _SHIFTING
    return [other for _, other in steps] if mixed else []


def _steps(node: m.Expr, built: m.Expr) -> list[tuple[str, m.Expr]] | None:
    """The operators that are applied to what is built up, and the other side of each; None where it is not in there."""
    if alike(node, built):
        return []
    if not isinstance(node, m.BinOp) or node.op not in _SCALING | _SHIFTING:
        return None
    for side, other in ((node.left, node.right), (node.right, node.left)):
        inner = _steps(side, built)
        if inner is not None:
            return [*inner, (node.op, other)]
    return None


class Sums(NamedTuple):
    """The sums and products in which what is built up is a term, and what else goes into them."""

    sums: list[m.Expr]
    rest: list[m.Expr]


def sums_in(interp: Interp, written: m.Expr, built: m.Expr) -> Sums | None:
    """What an assignment to ``built`` computes from it, also for each item of it in a comprehension, or by a function of the
    project that is given it; None where that is no sum or product."""
    here = list(_terms([written], _Held(built)))
    if here:
        return Sums(here, [written])
    if isinstance(written, m.IfExp):
        # `total = x if total is None else add(total, x)`
        return sums_in(interp, written.body, built) or sums_in(interp, written.orelse, built)
    found = called(interp, written)
    if found is None:
        return None
    function, given = found
    params = [param for param, one in given.items() if alike(one, built)]
    sums = [
        one
        for param in params
        for one in _terms(_returned(function, param), _Held(m.Name(param, 0, 0), True))
    ]
    rest = [one for param, one in given.items() if param not in params]
    return Sums(sums, rest) if sums and rest else None


def _returned(function: m.Function, param: str) -> Iterator[m.Expr]:
    """What a function returns: the expression itself, what it has given the variable that it returns, or an item of it.
    What it adds to a parameter in place is a sum too."""
    values = [
        one.value for one in nodes(function.body) if isinstance(one, m.Return) and one.value is not None
    ]
    names = {one.id for one in values if isinstance(one, m.Name)}
    for one in nodes(function.body):
        if isinstance(one, m.Assign) and any(_holder(target) in names for target in one.targets):
            values.append(one.value)
        elif isinstance(one, m.AugAssign) and isinstance(one.target, m.Name) and one.op in OPERATORS:
            if one.target.id == param and param in names:
                values.append(m.BinOp(one.op, one.target, one.value, one.start, one.end))
    yield from values


def _holder(target: m.Expr) -> str | None:
    """The variable that an assignment gives something, or an item of which."""
    held = target.value if isinstance(target, m.Subscript) else target
    return held.id if isinstance(held, m.Name) else None


class _Held(NamedTuple):
    """What is built up: an expression for it, whether an item of it is meant too, and variables that hold its items."""

    written: m.Expr
    items: bool = False
    names: frozenset[str] = frozenset()

    def is_held(self, node: m.Expr) -> bool:
        """Whether an expression is what is built up."""
        if self.items and isinstance(node, m.Subscript):
            node = node.value
        return alike(node, self.written) or (isinstance(node, m.Name) and node.id in self.names)


def _terms(values: Iterable[m.Expr], held: _Held) -> Iterator[m.Expr]:
    """The sums and products in which what is built up is a term: those of comprehensions of its items."""
    for value in values:
        if isinstance(value, m.Comp) and value.kind in "ld":
            names = {name for one in value.generators for name in _items(one.target, one.iter, held.written)}
            made = value.value if value.value is not None else value.elt
            if _is_term(made, _Held(held.written, True, frozenset(names))):
                yield made
        elif _is_term(value, held):
            yield value


def _is_term(node: m.Expr, held: _Held) -> bool:
    """Whether what is built up is part of a sum or product, other than as an argument of a call."""
    if isinstance(node, m.IfExp):
        return _is_term(node.body, held) or _is_term(node.orelse, held)
    if isinstance(node, m.BinOp) and node.op in OPERATORS:
        return any(held.is_held(side) or _is_term(side, held) for side in (node.left, node.right))
    return False


def _items(target: m.Expr, iterated: m.Expr, held: m.Expr) -> Iterator[str]:
    """The variables that hold the items of something where a comprehension goes through it, also beside something else."""
    if isinstance(target, m.Name) and alike(iterated, held):
        yield target.id
    elif isinstance(iterated, m.Call) and isinstance(held, m.Name):
        name, of_held = called_name(iterated), receiver(iterated) == held.id
        elts = target.elts if isinstance(target, m.Seq) else []
        if of_held and name == "values" and isinstance(target, m.Name):
            yield target.id
        elif of_held and name == "items":
            yield from (one.id for one in elts[1:] if isinstance(one, m.Name))
        elif name in ("zip", "enumerate"):
            beside = elts[1:] if name == "enumerate" else elts
            for one, given in zip(beside, iterated.args, strict=False):
                yield from _items(one, given, held)
