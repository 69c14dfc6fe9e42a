"""Whose code a run has read: every function that it ran, also where it took over what an earlier call or import did.

A trail lists what was run below a call, in order: functions, trails of calls (which are shared where an outcome is
taken over), and the functions of imports.
"""

from __future__ import annotations

from typing import Any

FunctionKey = tuple[str, int]
"""A function by the path of its file and its place among the functions of the file."""
Trail = list[Any]


def functions(trail: Trail) -> frozenset[FunctionKey]:
    """All functions of a trail."""
    found: set[FunctionKey] = set()
    seen = {id(trail)}
    stack = [trail]
    while stack:
        for part in stack.pop():
            if type(part) is tuple:
                found.add(part)
            elif type(part) is frozenset:
                found |= part
            elif id(part) not in seen:
                seen.add(id(part))
                stack.append(part)
    return frozenset(found)
