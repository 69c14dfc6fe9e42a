"""What is written to the places that it was rounded to. ``t[x.long()] = x - x.floor()`` keeps of each value what its
place leaves out: values that are different have one place."""

from __future__ import annotations

from typing import Any

from d9mlint.checks.base import called_api
from d9mlint.interp.tensors import TENSOR
from d9mlint.interp.view import RunView
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import alike, called_name, receiver


def writes_fraction(run: RunView, target: Any) -> bool:
    """Whether the statement that is running writes into a target what rounding leaves out of a value."""
    stmt = run.statement
    if not isinstance(stmt, m.Assign) or not any(one is target for one in stmt.targets):
        return False
    value = stmt.value
    return isinstance(value, m.BinOp) and value.op == "-" and _is_rounded(run, value.left, value.right)


def _is_rounded(run: RunView, whole: m.Expr, part: m.Expr) -> bool:
    """Whether an expression rounds the other one: ``x.floor()``, ``torch.floor(x)``."""
    if not isinstance(part, m.Call):
        return False
    if len(part.args) == 1 and isinstance(part.func, m.Name):
        known = run.kb.role(called_api(run, part), "rounds-down")
        return known is not None and alike(part.args[0], whole)
    if part.args or part.keywords or run.kb.role(f"{TENSOR}.{called_name(part)}", "rounds-down") is None:
        return False
    if isinstance(part.func, m.Attr):
        return alike(part.func.value, whole)
    return isinstance(whole, m.Name) and receiver(part) == whole.id
