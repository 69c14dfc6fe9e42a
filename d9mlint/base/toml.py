"""TOML, read by Python's own parser where it has one."""

from __future__ import annotations

import sys
from typing import Any


def load_toml(text: str) -> dict[str, Any]:
    """The content of a TOML document. Raises ValueError, also for a number with more digits than Python reads, and
    RecursionError."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    found: dict[str, Any] = tomllib.loads(text)
    return found
