"""How long a call takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def timed(call: Callable[[], Any], wait: Callable[[], None]) -> tuple[float, Any]:
    """Seconds and result of a call, with ``wait`` for the device on both sides."""
    wait()
    began = time.perf_counter()
    result = call()
    wait()
    return time.perf_counter() - began, result
