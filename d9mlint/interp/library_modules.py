"""Modules of PyTorch that libraries make, and layers that they give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.shapes import TENSOR

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView


_FUNCTIONS = ".functional."


def is_module(interp: RunView, value: v.Obj) -> bool:
    """Whether a library made a module: one of PyTorch, or what is known to draw its weights from torch."""
    if value.type == TENSOR:
        # What a function gives, as those of `torch.nn.functional`.
        return False
    return makes_module(interp, value.api)


def makes_module(interp: RunView, api: str) -> bool:
    """Whether a class or function of a library makes a module."""
    if api.startswith(("torch.nn.", "torchvision.models")):
        return _FUNCTIONS not in api
    given = interp.kb.tensor(api)
    if given is not None and given.module:
        return True
    makes = any(entry.kind == "init" and "torch" in entry.draws for entry in interp.kb.rng(api))
    return makes or interp.kb.role(api, "starts-evaluated") is not None


MODULE = "torch.nn.Module"
"""The base class of all modules."""


def stands_for_engine(interp: RunView, value: v.Obj, name: str) -> bool:
    """Whether a method is none of a module that a library made, but of an engine that was made with it, for which it
    stands: one that saves or restores the whole state of a run."""
    known = interp.kb.by_role(f"{MODULE}.{name}")
    return ("saves-run" in known or "restores-run" in known) and is_module(interp, value)


def model_of_layers(interp: RunView, value: v.Value) -> v.Inst | None:
    """The model that a library gives all layers of, without naming the attributes that hold them: ``model.layers``."""
    if not isinstance(value, v.Member) or not isinstance(value.owner, v.Inst):
        return None
    bases = map(interp.kb.canonical, value.owner.cls.external_bases())
    gives = any(interp.kb.role(f"{base}.{value.name}", "gives-layers") is not None for base in bases)
    return value.owner if gives else None
