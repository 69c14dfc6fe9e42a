"""Builders of fixes: text edits for findings, made from the source of the file and not by the checks.

A check says what is wrong, with ``Finding.remedy`` where a builder needs a word about it; the builder of the rule
writes the change for this file, this framework and this version. Findings that one change fixes carry equal edits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import msgspec

from d9mlint.base.findings import Applicability, Finding, Fix

if TYPE_CHECKING:
    from d9mlint.base.known_fix import KnownFix
    from d9mlint.base.source import Source
    from d9mlint.config.targets import Targets
    from d9mlint.fix.builders.context import Context
    from d9mlint.ir.nodes import Unread
    from d9mlint.knowledge import Knowledge


class FixMemory(Protocol):
    """Fixes of an earlier run, by the digests of their findings."""

    @property
    def known(self) -> Mapping[str, KnownFix]:
        """What was kept."""

    def keep(self, fixes: dict[str, KnownFix]) -> None:
        """Keep these for the next run."""


def with_fixes(
    findings: Sequence[Finding],
    sources: Mapping[str, Source],
    entries: Mapping[str, str],
    targets: Callable[[str], Targets],
    known: Knowledge,
    memory: FixMemory | None = None,
    unread: Mapping[str, Sequence[Unread]] = MappingProxyType({}),
) -> tuple[list[Finding], list[str]]:
    """The findings with the fixes that can be built for them, and a warning for each builder that failed.

    ``entries`` maps the names of entry points to files; ``targets`` gives the versions for a file. Of the fixes in
    ``memory`` those are taken over for which nothing has changed. ``unread`` are the parts of files that do not parse:
    their cells are left as they are.
    """
    from d9mlint.fix.builders import arguments, checkpoints, order, seeds, settings
    from d9mlint.fix.builders.context import Context, digest

    builders = {
        **arguments.BUILDERS,
        **checkpoints.BUILDERS,
        **order.BUILDERS,
        **seeds.BUILDERS,
        **settings.BUILDERS,
    }
    context = Context(findings, sources, entries, targets, known, unread)
    result: list[Finding] = []
    failed: dict[str, str] = {}
    before = memory.known if memory is not None else {}
    kept: dict[str, KnownFix] = {}
    for finding in findings:
        builder = builders.get(finding.code)
        fix = finding.fix
        if fix is not None or builder is not None:
            name = digest(finding)
            one = before.get(name)
            try:
                if one is None or not context.still_true(one):
                    one = context.recorded(lambda f=finding, b=builder: _built(context, f, b))  # type: ignore[misc]
                fix = one.fix
                kept[name] = one
            except Exception as error:  # A fix that cannot be built must not cost the findings.
                failed.setdefault(finding.code, f"{type(error).__name__}: {error}")
        result.append(finding if fix is finding.fix else msgspec.structs.replace(finding, fix=fix))
    if memory is not None:
        memory.keep(kept)
    return result, [
        f"the fixes of {code} could not be built ({text})." for code, text in sorted(failed.items())
    ]


def _built(
    context: Context, finding: Finding, builder: Callable[[Context, Finding], Fix | None] | None
) -> Fix | None:
    """The fix that a check made, or else the one that the rule's builder makes."""
    fix = finding.fix
    if fix is not None:
        fix = _judged(context, finding, fix)
    elif builder is not None:
        fix = builder(context, finding)
    if fix is None or not context.is_readable(fix.path or finding.path, fix.edits):
        return None
    return fix


def _judged(context: Context, finding: Finding, fix: Fix) -> Fix:
    """A fix that a check made: unsafe where it would make the branches of a test do the same, or writes a name that other
    programs of the project may not have; ``sorted`` in place of ``list`` around what is sorted."""
    import ast

    if finding.code == "DET209" and len(fix.edits) == 2:
        from d9mlint.fix.builders.order import as_sorted_list

        return as_sorted_list(context, finding, fix)
    if finding.code == "DET304" and context.versions_differ(finding, "torch"):
        return msgspec.structs.replace(fix, applicability=Applicability.UNSAFE)
    if finding.code != "DET301" or fix.applicability is not Applicability.SAFE:
        return fix
    code = context.own(finding)
    node = code.at(finding.start, finding.end) if code else None
    if code is None or node is None:
        return fix
    if any(isinstance(a, ast.If) and a.orelse for a in code.ancestors(node)):
        return msgspec.structs.replace(fix, applicability=Applicability.UNSAFE)
    return fix
