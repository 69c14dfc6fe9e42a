"""Findings that ask for the same release of a library, as one for each op and file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from d9mlint.base.findings import Step
from d9mlint.base.terminal import count

if TYPE_CHECKING:
    from d9mlint.pipeline import Item, Result

_RELEASE = re.compile(r"use [\w -]+ [\d.]+ or newer\.?", re.IGNORECASE)
"""A remedy that is nothing but another release: it is carried out once, wherever the op is called."""


def joined(result: Result) -> Result:
    """A result in which the first finding about an op in a file stands for the others, if the remedy is another release
    alone. It is made last: comments, baselines and measurements are about each place."""
    groups: dict[tuple[Any, ...], list[Item]] = {}
    for item in result.items:
        f = item.finding
        alone = f.op and f.fix is None and not f.evidence and _RELEASE.fullmatch(f.help)
        # Other programs that lead to one place are no other claim.
        said = f.message.partition(" (also when ")[0]
        same = (f.code, f.path, f.op, said, f.help, f.severity, f.confidence, f.targets)
        groups.setdefault(same if alone else (id(item),), []).append(item)
    if len(groups) == len(result.items):
        return result
    items = (_as_one(group) for group in groups.values())
    return result._replace(items=tuple(sorted(items, key=lambda i: i.finding.sort_key)))


def _as_one(group: list[Item]) -> Item:
    first, *others = group
    f = first.finding
    if not others:
        return first
    more = (Step(i.finding.path, i.finding.start, i.finding.end, "it is also called here") for i in others)
    message = f"{f.message}; also at {count(len(others), 'other place')} in this file"
    return first._replace(finding=msgspec.structs.replace(f, message=message, flow=(*f.flow, *more)))
