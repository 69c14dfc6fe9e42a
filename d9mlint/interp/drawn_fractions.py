"""Comparisons of a random number between zero and one with a known number: some have one outcome, whatever is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.attribute_kinds import value_of
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import declared_names

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


class OnlyOutcome(NamedTuple):
    """What is ``drawn`` and the ``answer`` that its comparison gives, whatever that is, with the option by whose default it
    does."""

    drawn: v.Obj
    answer: bool
    option: str


def only_outcome(interp: Interp, node: m.Compare, left: v.Value, right: v.Value) -> OnlyOutcome | None:
    """The outcome of a comparison, where every number that may be drawn gives the same."""
    op = node.ops[0]
    if op not in _MIRRORED or interp.guessing:
        return None
    if isinstance(left, v.Obj) and isinstance(right, v.Lit):
        drawn, known, written = left, right, node.comparators[0]
    elif isinstance(right, v.Obj) and isinstance(left, v.Lit):
        drawn, known, written, op = right, left, node.left, _MIRRORED[op]
    else:
        return None
    role = interp.kb.role(drawn.api, "draws-fraction")
    if role is None or type(known.value) not in (int, float):
        return None
    if drawn.args.star or drawn.args.dstar or all_hold(drawn.args, role.when) is not True:
        return None
    answer = _outcome(op, known.value)
    if answer is None or not (known.option or _is_fixed(interp, written)):
        return None
    return OnlyOutcome(drawn, answer, known.option)


def _outcome(op: str, known: float) -> bool | None:
    """What a comparison of a number that is at least zero and less than one gives with a known number."""
    above, below = known >= 1, known < 0
    if op in ("==", "!="):
        return op == "!=" if above or below else None
    if above:
        return op in ("<", "<=")
    if below or (known == 0 and op in ("<", ">=")):
        return op in (">", ">=")
    return None


def _is_fixed(interp: Interp, node: m.Expr) -> bool:
    """Whether a number is written, or is the value of a variable that no other function assigns, or of an attribute that
    only the constructor does."""
    if isinstance(node, m.Unary):
        return _is_fixed(interp, node.operand)
    if isinstance(node, m.Name) and "." not in node.id:
        return node.id not in declared_names(interp.whole(interp.frame.file))
    if isinstance(node, m.Name):
        owner, _, attribute = node.id.rpartition(".")
        held = value_of(interp, m.Name(owner, node.start, node.end))
        return isinstance(held, v.Inst) and not interp.stores_attribute(attribute)
    return isinstance(node, m.Const)
