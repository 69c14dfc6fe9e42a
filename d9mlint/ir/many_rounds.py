"""Loops of which each round does little, and what follows depends on each: options that are declared and read by name."""

from __future__ import annotations

from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes

_DECLARES = "add_argument"
_BY_NAME = "getattr"


def declares_options(loop: m.For) -> bool:
    """Whether each round declares an option: ``for k, v in defaults.items(): parser.add_argument("--" + k, default=v)``."""
    parts = list(nodes(loop.body))
    declares = any(isinstance(one, m.Call) and called_name(one) == _DECLARES for one in parts)
    return declares and not any(isinstance(one, (m.For, m.While, m.Comp)) for one in parts)


def takes_by_name(node: m.Comp) -> bool:
    """Whether a dictionary is made of what something has under names: ``{k: getattr(args, k) for k in names}``."""
    value = node.value
    if not isinstance(node.elt, m.Name) or len(node.generators) != 1:
        return False
    if isinstance(value, m.Call):
        name = value.args[1] if len(value.args) > 1 and called_name(value) == _BY_NAME else None
    else:
        name = value.index if isinstance(value, m.Subscript) else None
    return isinstance(name, m.Name) and name.id == node.elt.id
