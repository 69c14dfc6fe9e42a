"""What an option is set to."""

from __future__ import annotations

from typing import Any

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m


def is_true(value: v.Value) -> bool:
    """Whether a value is True, or may be."""
    return any(isinstance(one, v.Lit) and one.value is True for one in v.alternatives(value)) or (
        isinstance(value, v.Lit) and value.value == 1 and not isinstance(value.value, bool)
    )


def literal_true(node: Any) -> bool:
    """Whether an expression is written as ``True``."""
    return isinstance(node, m.Const) and node.value is True
