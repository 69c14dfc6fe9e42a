"""Times that a program reads from a clock, and what is computed from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp


def is_time(interp: Interp, value: v.Value) -> bool:
    """Whether a value was read from a clock, or computed from one that was: it differs with or without any other cause."""
    return isinstance(value, v.Obj) and interp.kb.role(value.api, "clock") is not None


def timed(interp: Interp, made: v.Value, left: v.Value, right: v.Value) -> v.Value:
    """What an operator makes of two values: of a time, something that the clock decides."""
    if made is not v.UNKNOWN:
        return made
    return next((one for one in (left, right) if is_time(interp, one)), v.UNKNOWN)
