"""How findings name a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.events import CallEvent


def node_text(node: Any, fallback: str) -> str:
    """The called name as it is written, else the canonical name."""
    if isinstance(node, m.Call):
        if isinstance(node.func, m.Name):
            return node.func.id
        if isinstance(node.func, m.Attr) and node.func.name != "__init__":
            return node.func.name
    return fallback


def call_text(call: CallEvent) -> str:
    """The called name of an event as it is written."""
    return node_text(call.node, call.api)
