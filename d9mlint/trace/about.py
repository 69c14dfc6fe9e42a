"""Whether a fact of the knowledge base is about an operation of a recording, by its names. No framework is imported here."""

from __future__ import annotations

import re
from collections.abc import Sequence

from d9mlint.trace.facts import base_of

_BACKWARD = "_backward"
_DEVICE = re.compile(r"(_out)?[_ ](cuda|gpu|xpu|mps|cpu|kernel|template)", re.IGNORECASE)
"""What may follow the name of an operation in the name by which PyTorch refuses it."""


def is_about(operation: str, apis: Sequence[str], alerts: Sequence[str], operations: Sequence[str]) -> bool:
    """Whether these names are about an operation such as ``aten.index_add_``. An alert names the kernel; where there is
    one, an API has to be named exactly like the operation."""
    full = _name(operation)
    if full in {_name(f"aten.{one}") for one in operations} or any(_alerts(full, alert) for alert in alerts):
        return True
    base = base_of(operation)
    own = {api.rpartition(".")[2].lower().strip("_") for api in apis}
    if any(one.replace("_", "") == base.replace("_", "") for one in own):
        return True
    return not alerts and any(base.startswith(f"{one}_") for one in own)


def _name(operation: str) -> str:
    """``aten._adaptive_avg_pool2d_backward`` is ``adaptive_avg_pool2d_backward``."""
    parts = operation.split(".")
    return parts[min(1, len(parts) - 1)].strip("_").lower()


def _alerts(name: str, alert: str) -> bool:
    text = alert.lower().lstrip("_")
    rest = text[len(name) :]
    return text.startswith(name) and (not rest.strip("_") or _DEVICE.match(rest) is not None)
