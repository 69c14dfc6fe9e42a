"""Environment markers of requirements: ``python_version < "3.8" and sys_platform == "linux"``.

They are judged for a Linux machine with the running version of Python: where a program is trained is what
counts, not where it is linted, and that is Linux nearly always. What is not known holds.
"""

from __future__ import annotations

import re
import sys

from d9mlint.knowledge.versions import compare, parse

_TOKEN = re.compile(
    r"""\s*(?:(\(|\))|("[^"]*"|'[^']*')|(===|==|~=|!=|<=|>=|<|>)|(not\s+in\b|in\b|and\b|or\b)|([\w.]+))"""
)
_PYTHON = "{}.{}.{}".format(*sys.version_info[:3])
_VALUES = {
    "python_version": "{}.{}".format(*sys.version_info[:2]),
    "python_full_version": _PYTHON,
    "implementation_version": _PYTHON,
    "sys_platform": "linux",
    "platform_system": "Linux",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "implementation_name": "cpython",
}
_VERSIONS = ("python_version", "python_full_version", "implementation_version")


def holds(marker: str) -> bool:
    """Whether a marker holds; one that cannot be understood does."""
    tokens: list[str] = []
    at = 0
    text = marker.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            return True
        tokens.append(re.sub(r"\s+", " ", found.group(0).strip()))
        at = found.end()
    try:
        answer, rest = _any(tokens, 0)
    except (IndexError, RecursionError):
        return True
    return answer or rest != len(tokens)


def _any(tokens: list[str], at: int) -> tuple[bool, int]:
    answer, at = _all(tokens, at)
    while at < len(tokens) and tokens[at] == "or":
        other, at = _all(tokens, at + 1)
        answer = answer or other
    return answer, at


def _all(tokens: list[str], at: int) -> tuple[bool, int]:
    answer, at = _one(tokens, at)
    while at < len(tokens) and tokens[at] == "and":
        other, at = _one(tokens, at + 1)
        answer = answer and other
    return answer, at


def _one(tokens: list[str], at: int) -> tuple[bool, int]:
    if tokens[at] == "(":
        answer, at = _any(tokens, at + 1)
        return answer, at + 1
    left, operator, right = tokens[at : at + 3]
    return _compare(left, operator, right), at + 3


def _compare(left: str, operator: str, right: str) -> bool:
    name = right if left[0] in "\"'" else left
    if name not in _VALUES:
        return True
    a, b = (_VALUES.get(side, side.strip("\"'")) for side in (left, right))
    if operator == "in":
        return a in b
    if operator == "not in":
        return a not in b
    if operator in ("==", "===", "!=") and (name not in _VERSIONS or "*" in b):
        same = a.startswith(b.rstrip("*")) if "*" in b else a == b
        return same != (operator == "!=")
    order = compare(parse(a), parse(b))
    if operator == "~=":
        return order >= 0 and parse(a)[: len(parse(b)) - 1] == parse(b)[:-1]
    return {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0, "!=": order != 0}.get(
        operator, order == 0
    )
