"""From the reports of all analysis runs to findings, whatever the order of the reports."""

from __future__ import annotations

from collections.abc import Container, Iterable

import msgspec

from d9mlint.base.findings import Finding

MAX_NAMED = 3
"""Entry points that a message names beside the one whose flow is shown."""


def merge(
    found: Iterable[Iterable[Finding]], training: Container[str] = (), shown: Container[str] = ()
) -> list[Finding]:
    """One finding for each place and subject: the most confident, then the most severe, then that of an entry point
    in ``training``, then that of the first by name. Other entry points that lead to it with the same confidence are
    named. What the programs of the project have ``shown`` together leaves nothing to report of some."""
    groups: dict[tuple[str, str, int, int, str], list[Finding]] = {}
    for findings in found:
        for one in findings:
            if one.unless and one.unless in shown:
                continue
            groups.setdefault((one.code, one.path, one.start, one.end, one.subject), []).append(one)
    # What reads alike is said once, whatever it is about.
    alike: dict[tuple[str, str, int, int, str], list[Finding]] = {}
    for group in groups.values():
        best = _ranked(group, training)[0]
        alike.setdefault((best.code, best.path, best.start, best.end, best.message), []).extend(group)
    return sorted((_joined(group, training) for group in alike.values()), key=lambda f: f.sort_key)


def _ranked(group: list[Finding], training: Container[str]) -> list[Finding]:
    return sorted(
        group,
        key=lambda f: (
            -f.confidence.rank,
            -f.severity.rank,
            f.entry_point not in training,
            f.entry_point or "~",
            f.message,
            f.flow,
        ),
    )


def _joined(group: list[Finding], training: Container[str]) -> Finding:
    best = _ranked(group, training)[0]
    sure = {f.entry_point for f in group if f.entry_point and f.confidence is best.confidence}
    others = sorted(sure - {best.entry_point})
    if not others or not best.entry_point:
        return best
    named = ", ".join(others[:MAX_NAMED])
    if len(others) > MAX_NAMED:
        named += f" and {len(others) - MAX_NAMED} more"
    return msgspec.structs.replace(best, message=f"{best.message} (also when {named} runs)")
