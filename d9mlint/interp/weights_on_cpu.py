"""Modules whose weights are surely on the CPU: the program makes them there, and nothing has moved any module since.

What such a module computes is on the CPU. With inputs on a GPU it would raise: a program that works has them on the CPU
too, whatever device it names for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.devices import DEFAULT_DEVICE, DEVICE, named

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

MODELS_MOVED = "models_moved"
"""The mode that holds whether a module may have been moved to another device, and the flag of a run in which one may."""
_MOST_PARTS = 3


def are_on_cpu(interp: RunView, module: v.Obj) -> bool:
    """Whether a module of PyTorch has weights, all of which are surely on the CPU."""
    entry = interp.kb.tensor(module.api)
    has_weights = entry is not None and entry.grad == "weights"
    if not has_weights or module.node is None or MODELS_MOVED in interp.places:
        return False
    return all(is_unset(interp, x) for x in (MODELS_MOVED, DEFAULT_DEVICE)) and _made_on_cpu(interp, module)


def is_unset(interp: RunView, mode: str) -> bool:
    """Whether nothing has set a mode in a program that is known."""
    setting = interp.mode(mode)
    return setting.value is False and setting.site is None


def _made_on_cpu(interp: RunView, made: v.Obj, depth: int = 0) -> bool:
    if made.args.dstar or depth > _MOST_PARTS:
        return False
    device = made.args.kw.get("device")
    if device is not None and v.is_none(device) is not True and named(interp, device) != "cpu":
        return False
    if any(isinstance(one, v.Obj) and one.api == DEVICE for one in made.args.pos):
        return False
    return all(_made_on_cpu(interp, one, depth + 1) for one in made.args.values() if isinstance(one, v.Obj))
