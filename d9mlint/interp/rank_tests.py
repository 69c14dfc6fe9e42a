"""Branches that the number of the process decides: of the processes of a program, some take the one and some the other.

What only one of them has seeded is not seeded on all ranks. Behind the branches it counts as unseeded; in branches of
further tests of the rank it may be either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.data import is_environ
from d9mlint.interp.devices import RANK
from d9mlint.interp.named_sizes import assignments
from d9mlint.interp.state import MAYBE, SEEDED, UNSEEDED, Rng
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.state import Site, State

_CONVERSIONS = frozenset({"builtins.int", "builtins.str", "builtins.bool"})
_NUMBERS = frozenset(name.rpartition(".")[2] for name in _CONVERSIONS)
_DEPTH = 3


def branch(interp: Interp, test: m.Expr, run: Callable[[], None], ends: list[State]) -> None:
    """Run the branches of an ``if`` whose outcome is not known. ``ends`` is then how those ended that come back."""
    partly = {name: level for name, level in interp.state.rng.held.items() if level.some_ranks}
    if partly and any(is_of_rank(interp, one) for one in _parts(test)):
        either = {name: Rng(MAYBE, "", level.site) for name, level in partly.items()}
        interp.state.rng.update(either)
        run()
        if len(ends) > 1:
            same = [name for name in partly if interp.state.level(name) == either[name]]
            interp.state.rng.update({name: partly[name] for name in same})
    else:
        run()
    if len(ends) > 1 and ends[0].rng.held is not ends[1].rng.held:
        _meet(interp, test, *ends)


def _meet(interp: Interp, test: m.Expr, one: State, other: State) -> None:
    sites: dict[str, Site | None] = {}
    for name in {**one.rng.held, **other.rng.held}:
        first, second = one.level(name), other.level(name)
        if {first.level, second.level} == {SEEDED, UNSEEDED} and not (first.option or second.option):
            sites[name] = first.site or second.site
    if sites and is_of_rank(interp, test):
        interp.state.rng.update(
            {name: Rng(UNSEEDED, "", site, some_ranks=True) for name, site in sites.items()}
        )


def _parts(test: m.Expr) -> list[m.Expr]:
    if isinstance(test, m.BoolOp):
        return [*_parts(test.left), *_parts(test.right)]
    return [test]


def is_of_rank(interp: Interp, test: m.Expr, depth: int = 0) -> bool:
    """Whether a test asks which of the processes this is, and for nothing else."""
    if isinstance(test, m.Unary) and test.op == "not":
        return is_of_rank(interp, test.operand, depth)
    if isinstance(test, m.Compare):
        sides = [test.left, *test.comparators]
        asking = [one for one in sides if not _is_constant(one)]
        return len(asking) == 1 and not _is_of_all(test) and _gives_rank(interp, asking[0], depth)
    return _gives_rank(interp, test, depth)


def _is_of_all(test: m.Compare) -> bool:
    """Whether a comparison of the number of the process has one outcome for all of them: it asks whether there are several,
    as ``local_rank != -1`` and ``rank >= 0`` do."""
    left, op, right = test.left, test.ops[0], test.comparators[0]
    if len(test.ops) != 1 or _is_constant(left):
        return False
    bound = right.operand if isinstance(right, m.Unary) and right.op == "-" else right
    if not isinstance(bound, m.Const) or type(bound.value) is not int:
        return isinstance(bound, m.Const) and bound.value is None
    number = -bound.value if bound is not right else bound.value
    return number < 0 or (number == 0 and op in (">=", "<"))


def _is_constant(node: m.Expr) -> bool:
    return all(isinstance(one, (m.Const, m.Unary, m.Seq)) for one in nodes([node]))


def _gives_rank(interp: Interp, node: m.Expr, depth: int) -> bool:
    """Whether an expression is the number of the process, or what a test of it gave. No call is run again."""
    if isinstance(node, m.Call):
        func = interp.eval(node.func)
        if isinstance(func, v.Ext):
            name = interp.kb.canonical(func.name)
            if name in _CONVERSIONS and node.args:
                return _gives_rank(interp, node.args[0], depth)
            of_environment = name.startswith("os.") and bool(node.args)
            return interp.kb.role(name, "rank") is not None or (
                of_environment and _names_rank(interp, node.args[0])
            )
        return isinstance(func, v.Func) and _tests_rank(interp, func)
    if isinstance(node, m.Subscript):
        return is_environ(interp, interp.eval(node.value)) and _names_rank(interp, node.index)
    if isinstance(node, m.Attr) and isinstance(node.value, m.Call):
        made = interp.eval(node.value.func)
        return isinstance(made, v.Ext) and _has_rank(interp, made.name, node.name)
    if not isinstance(node, m.Name):
        return False
    value = interp.eval(node)
    if any(_is_rank(interp, one) for one in v.alternatives(value)):
        return True
    if value is v.UNKNOWN and "." in node.id:
        return _has_rank(interp, "?", node.id.rpartition(".")[2])
    # A parameter stands before a variable of the module, whose name is the same.
    params = interp.frame.func.fn.params if interp.frame.func is not None else []
    if depth >= _DEPTH or any(param.name == node.id for param in params):
        return False
    assigned = list(assignments(interp, node.id))
    return len(assigned) == 1 and is_of_rank(interp, assigned[0], depth + 1)


def _names_rank(interp: Interp, node: Any) -> bool:
    """Whether this is the name of a variable in which a launcher tells each process its number."""
    return isinstance(node, m.Const) and interp.kb.role(f"env:{node.value}", "rank") is not None


def _tests_rank(interp: Interp, func: v.Func) -> bool:
    """Whether what a function returns at its end is a test of a call that gives the number of the process."""
    last = interp.body(func)[-1:]
    if not last or not isinstance(last[0], m.Return):
        return False
    calls = [one for one in nodes([last[0]]) if isinstance(one, m.Call)]
    called = [one for one in calls if not (isinstance(one.func, m.Name) and one.func.id in _NUMBERS)]
    items = [one for one in nodes([last[0]]) if isinstance(one, m.Subscript)]
    if not called and len(items) == 1 and isinstance(items[0].value, m.Name):
        head, *rest = items[0].value.id.split(".")
        owner = func.env.vars.get(head) or func.mod.env.read(head)
        mapping = v.Ext(".".join([owner.name, *rest])) if isinstance(owner, v.Ext) else v.UNKNOWN
        return is_environ(interp, mapping) and _names_rank(interp, items[0].index)
    if len(called) != 1 or not isinstance(func_of := called[0].func, m.Name):
        return False
    head, *rest = func_of.id.split(".")
    value = func.env.vars.get(head) or func.mod.env.read(head)
    if isinstance(value, v.Ext):
        name = interp.kb.canonical(".".join([value.name, *rest]))
        of_environment = name.startswith("os.") and bool(called[0].args)
        return interp.kb.role(name, "rank") is not None or (
            of_environment and _names_rank(interp, called[0].args[0])
        )
    return isinstance(value, v.Func) and not rest and value is not func and _tests_rank(interp, value)


def _has_rank(interp: Interp, owner: str, name: str) -> bool:
    """Whether an attribute of something of this class tells the number of the process."""
    return interp.kb.role(interp.kb.canonical(f"{owner}.{name}"), "rank") is not None


def _is_rank(interp: Interp, value: v.Value) -> bool:
    if isinstance(value, v.Member):
        owner = value.owner
        if isinstance(owner, v.Inst):
            return any(_has_rank(interp, base, value.name) for base in owner.cls.external_bases())
        kind = owner.type if isinstance(owner, v.Obj) else "?"
        return any(_has_rank(interp, one, value.name) for one in (kind or "?", "?"))
    if not isinstance(value, v.Obj):
        return False
    if value.api in _CONVERSIONS and value.args.pos:
        return any(_is_rank(interp, one) for one in v.alternatives(value.args.pos[0]))
    return value.api == RANK or interp.kb.role(value.api, "rank") is not None
