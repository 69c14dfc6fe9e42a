"""How findings name a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name

if TYPE_CHECKING:
    from d9mlint.interp.events import CallEvent


def node_text(node: Any, fallback: str) -> str:
    """The called name, or an operator with its operands, as it is written, else the canonical name."""
    if isinstance(node, m.Call):
        if isinstance(node.func, m.Name):
            return node.func.id
        if isinstance(node.func, m.Attr) and node.func.name != "__init__":
            # What `super().forward` is does not show.
            return fallback if called_name(node.func.value) == "super" else node.func.name
    if isinstance(node, m.BinOp):
        return f"{written(node.left)} {node.op} {written(node.right)}"
    return fallback


def written(func: m.Expr) -> str:
    """What is called as it is written, without its arguments and indices."""
    if isinstance(func, m.Name):
        return func.id
    if isinstance(func, m.Call):
        return f"{written(func.func)}(...)"
    if isinstance(func, m.Subscript):
        return f"{written(func.value)}[...]"
    if isinstance(func, m.Attr):
        return f"{written(func.value)}.{func.name}"
    return "..."


def with_keys(node: m.Expr) -> str:
    """The same with the keys that are written as literals: ``config["seed"]``, ``config.get("seed")``."""
    if isinstance(node, m.Call) and node.args and isinstance(node.args[0], m.Const):
        return f"{written(node.func)}({node.args[0].value!r})"
    if isinstance(node, m.Subscript) and isinstance(node.index, m.Const):
        return f"{with_keys(node.value)}[{node.index.value!r}]"
    return written(node)


def call_text(call: CallEvent) -> str:
    """The called name of an event as it is written."""
    return node_text(call.node, call.api.removesuffix(".__call__"))
