"""Findings in classes that an option may choose, of which the programs make another one by default.

The code of such a class is looked at with unknown arguments, as all that no entry point reaches: what leads to it is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from d9mlint.base.entry_report import EntryReport
from d9mlint.base.findings import Finding, Step
from d9mlint.checks.base import UNREACHED


def named_by_options(findings: Iterable[Finding], reports: Iterable[EntryReport]) -> list[Finding]:
    """The findings, with the option that leads to them where only that is known."""
    options = {(path, name): option for report in reports for path, name, option in report.unchosen}
    return [_named(one, options) if options and not one.entry_point else one for one in findings]


def _named(finding: Finding, options: dict[tuple[str, str], str]) -> Finding:
    option = next(
        (options[at] for name in _outer(finding.scope) if (at := (finding.path, name)) in options), ""
    )
    if not option:
        return finding
    note = f"only if `{option}` has another value than its default{UNREACHED}"
    flow = [
        Step(step.path, step.start, step.end, note) if step.message.endswith(UNREACHED) else step
        for step in finding.flow
    ]
    return msgspec.structs.replace(finding, flow=type(finding.flow)(flow))


def _outer(scope: str) -> Iterator[str]:
    """A qualified name, and those of what is around it."""
    while scope:
        yield scope
        scope = scope.rpartition(".")[0]
