"""What builders of fixes know: the findings, the files, the versions, and the facts."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from d9mlint.base.findings import Applicability, Edit, Finding, Fix
from d9mlint.base.source import Source
from d9mlint.fix.builders.code import Code, parse

if TYPE_CHECKING:
    from d9mlint.config.targets import Targets
    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.schema import OpEntry

SAFE = Applicability.SAFE
UNSAFE = Applicability.UNSAFE


class Context:
    """The findings of a run and what they are about. Files are parsed when a fix of theirs is built.

    ``entries`` maps the names of entry points to files; ``targets`` gives the versions for a file.
    """

    def __init__(
        self,
        findings: Sequence[Finding],
        sources: Mapping[str, Source],
        entries: Mapping[str, str],
        targets: Callable[[str], Targets],
        known: Knowledge,
    ) -> None:
        self.findings = findings
        self.sources = sources
        self.known = known
        self._entries = entries
        self._targets = targets
        self._codes: dict[str, Code | None] = {}
        self._ops: dict[str, OpEntry] | None = None

    def code(self, path: str) -> Code | None:
        """A file as code; None where it cannot be parsed."""
        if path not in self._codes:
            self._codes[path] = parse(self.sources[path]) if path in self.sources else None
        return self._codes[path]

    def op(self, finding: Finding) -> OpEntry | None:
        """The knowledge entry of the op that a finding is about."""
        if self._ops is None:
            self._ops = {entry.id: entry for entry in self.known.op_entries()}
        return self._ops.get(finding.op)

    def own(self, finding: Finding) -> Code | None:
        """The file that a finding is in."""
        return self.code(finding.path)

    def call(self, finding: Finding) -> tuple[Code, ast.Call] | None:
        """The file that a finding is in and the call that it is about; None where it is about no call."""
        code = self.own(finding)
        call = code.call(finding.start, finding.end) if code is not None else None
        return None if code is None or call is None else (code, call)

    def entry(self, finding: Finding) -> str:
        """The file of the entry point whose run a finding was made in; empty where there is none."""
        return self._entries.get(finding.entry_point or "", "")

    def entry_offset(self, finding: Finding) -> int | None:
        """Where the entry point's own file leads to what a finding is about."""
        entry = self.entry(finding)
        own, code = self.own(finding), self.code(entry)
        if own is not None and own.runs_at_import(finding.start, finding.end):
            # A default argument is reported with the call that uses it, and drawn where it is defined.
            if finding.path == entry:
                return finding.start
            if code is None or not finding.flow or not code.is_import_at(finding.flow[0].start):
                return None
        if finding.flow:
            first = finding.flow[0]
            return first.start if first.path == entry else None
        return finding.start if finding.path == entry else None

    def matches(self, finding: Finding, library: str, spec: str) -> bool:
        """Whether the version that a finding was judged by is in a range."""
        return self._targets(self.entry(finding) or finding.path).matches(library, spec)


def made(
    message: str, edits: Sequence[Edit] | None, applicability: Applicability = UNSAFE, path: str = ""
) -> Fix | None:
    """A fix of edits; None where there are none."""
    return Fix(applicability, message, tuple(edits), path) if edits else None
