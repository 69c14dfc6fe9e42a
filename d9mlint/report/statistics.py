"""How many findings of which rule."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from d9mlint.report.common import Options, is_fixable, summary

if TYPE_CHECKING:
    from d9mlint.pipeline import Result


def render(result: Result, options: Options) -> str:
    """A line a rule, the most frequent first, then a summary."""
    counts = Counter(i.finding.code for i in result.items)
    pages = {i.finding.code: i.rule for i in result.items}
    fixable = {i.finding.code for i in result.items if is_fixable(i.finding, options)}
    lines = []
    room = max((len(str(n)) for n in counts.values()), default=1)
    for code, number in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        mark = "[*]" if code in fixable else "[ ]"
        lines.append(f"{number:>{room}}  {code}  {mark} {pages[code].name}: {pages[code].summary}")
    return "\n".join([*lines, *summary(result, options)]) + "\n"


def render_json(result: Result) -> str:
    """The same as JSON: a list of code, name and count."""
    counts = Counter(i.finding.code for i in result.items)
    pages = {i.finding.code: i.rule for i in result.items}
    rows = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return json.dumps([{"code": c, "name": pages[c].name, "count": n} for c, n in rows], indent=2) + "\n"
