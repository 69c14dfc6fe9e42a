"""Modules of code that no program reaches: what they do outside of training is for inference, and without gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.context import QUIET
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from collections.abc import Callable

    from d9mlint.interp.interpreter import Interp

_MODE = "training"
"""The attribute of modules that says whether they are in training."""


def within(interp: Interp, test: m.Expr, outcome: bool, run: Callable[[], None]) -> None:
    """Follow a branch of an ``if``, without gradients where its test says that the module is not in training."""
    if _says_inference(interp, test, outcome):
        with interp.within(QUIET):
            run()
    else:
        run()


def go_on(interp: Interp, stmt: m.If, outcome: bool) -> None:
    """The rest of a function runs where a test had this outcome: ``if self.training: return loss``."""
    func = interp.frame.func
    if func is None or all(one is not stmt for one in func.fn.body):
        return
    if _says_inference(interp, stmt.test, outcome):
        # It ends with the function.
        interp.contexts.held.append(QUIET)


def _says_inference(interp: Interp, test: m.Expr, outcome: bool) -> bool:
    if interp.entry is not None or interp.frame.func is None:
        return False
    if isinstance(test, m.Unary) and test.op == "not":
        return _says_inference(interp, test.operand, not outcome)
    if outcome or not isinstance(test, m.Name):
        return False
    owner, _, name = test.id.partition(".")
    module = interp.frame.func.receiver
    return (
        name == _MODE
        and isinstance(module, v.Inst)
        and interp.lookup(owner) is module
        and _MODE not in module.attrs
    )
