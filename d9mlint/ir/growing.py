"""The methods by which the containers of Python grow."""

from __future__ import annotations

GROWING = frozenset({"append", "appendleft", "extend", "extendleft", "insert", "add", "update", "setdefault"})
"""Methods that put what they are given into a list, a deque, a set or a dictionary."""
