"""From findings to the Language Server Protocol: places, diagnostics, fixes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pygls import uris

from d9mlint.base.findings import Applicability, Edit, Severity
from d9mlint.filters.add_noqa import comment_row, noqa_edits
from d9mlint.fix.edits import without_overlaps
from d9mlint.report.json import rule_url

if TYPE_CHECKING:
    from d9mlint.base.findings import Finding
    from d9mlint.base.source import Source
    from d9mlint.pipeline import Item

SOURCE = "d9mlint"
SEVERITIES = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.ADVICE: lsp.DiagnosticSeverity.Information,
}
FIX_ALL = "source.fixAll.d9mlint"
Lookup = Callable[[str], "Source | None"]
"""The text of a file as it was analyzed."""


def path_of(uri: str) -> str | None:
    """The path that a URI means, with slashes; None for one that is no file."""
    path = uris.to_fs_path(uri) if uri.startswith("file:") else None
    return path.replace("\\", "/") if path else None


def uri_of(path: str) -> str:
    """A path as a URI."""
    return uris.from_fs_path(path) or path


class Converter:
    """``encoding`` is in what columns are counted: ``utf-16`` unless the client can do better."""

    def __init__(self, lookup: Lookup, encoding: str) -> None:
        self.lookup = lookup
        self.encoding = encoding

    def position(self, source: Source, offset: int) -> lsp.Position:
        """The place of an offset."""
        row, column = source.row_column(offset)
        start = source.starts[row - 1]
        return lsp.Position(row - 1, self._units(source.text[start : start + column - 1]))

    def _units(self, text: str) -> int:
        if self.encoding == "utf-32" or text.isascii():
            return len(text)
        code = "utf-8" if self.encoding == "utf-8" else "utf-16-le"
        return len(text.encode(code, "surrogatepass")) // (1 if code == "utf-8" else 2)

    def range(self, source: Source, start: int, end: int) -> lsp.Range:
        """The range between two offsets."""
        return lsp.Range(self.position(source, start), self.position(source, end))

    def diagnostic(self, item: Item) -> lsp.Diagnostic | None:
        """A finding, with the calls that lead to it; None where its file is gone."""
        finding = item.finding
        source = self.lookup(finding.path)
        if source is None:
            return None
        url = rule_url(item.rule)
        return lsp.Diagnostic(
            range=self.range(source, finding.start, finding.end),
            severity=SEVERITIES[finding.severity],
            code=finding.code,
            code_description=lsp.CodeDescription(href=url) if url else None,
            source=SOURCE,
            message=f"{finding.message}\nhelp: {finding.help}" if finding.help else finding.message,
            related_information=list(self._related(finding)) or None,
            data={"fingerprint": item.fingerprint},
        )

    def _related(self, finding: Finding) -> Iterator[lsp.DiagnosticRelatedInformation]:
        for step in finding.flow:
            source = self.lookup(step.path)
            if source is not None:
                place = self.range(source, step.start, step.end)
                yield lsp.DiagnosticRelatedInformation(lsp.Location(uri_of(step.path), place), step.message)

    # ------------------------------------------------------------------------------------ code actions

    def actions(self, items: list[Item], diagnostics: list[lsp.Diagnostic]) -> list[lsp.CodeAction]:
        """What can be done about findings: their fixes, and a comment that ignores each."""
        found: list[lsp.CodeAction] = []
        for item in items:
            finding = item.finding
            source = self.lookup(finding.path)
            if source is None:
                continue
            about = [d for d in diagnostics if _same(d, item)] or None
            fix = self._fix(item, about)
            if fix is not None:
                found.append(fix)
            row = comment_row(source, finding.start)
            edits = noqa_edits(source, [(row, [finding.code])])
            found.append(
                lsp.CodeAction(
                    title=f"Ignore {finding.code} ({item.rule.name}) on this line",
                    kind=lsp.CodeActionKind.QuickFix,
                    diagnostics=about,
                    edit=self._change(finding.path, source, edits),
                )
            )
        return found

    def _fix(self, item: Item, about: list[lsp.Diagnostic] | None) -> lsp.CodeAction | None:
        finding, fix = item.finding, item.finding.fix
        if fix is None or fix.applicability is Applicability.DISPLAY:
            return None
        source = self.lookup(finding.fixed_path)
        if source is None:
            return None
        safe = fix.applicability is Applicability.SAFE
        where = "" if finding.fixed_path == finding.path else f" in {finding.fixed_path.rpartition('/')[2]}"
        text = fix.message[:1].upper() + fix.message[1:]
        return lsp.CodeAction(
            title=f"{finding.code}: {text}{where} ({'safe' if safe else 'unsafe'} fix)",
            kind=lsp.CodeActionKind.QuickFix,
            diagnostics=about,
            is_preferred=safe,
            edit=self._change(finding.fixed_path, source, list(fix.edits)),
        )

    def fix_all(self, path: str, items: list[Item]) -> lsp.CodeAction | None:
        """All safe fixes of a file at once; None where there is none."""
        source = self.lookup(path)
        safe = [
            i.finding
            for i in items
            if i.finding.fix is not None
            and i.finding.fix.applicability is Applicability.SAFE
            and i.finding.fixed_path == path
        ]
        chosen = without_overlaps(safe)
        if source is None or not chosen:
            return None
        edits = sorted({edit for f in chosen if f.fix is not None for edit in f.fix.edits})
        return lsp.CodeAction(
            title="Apply all safe fixes of d9mlint",
            kind=FIX_ALL,
            edit=self._change(path, source, edits),
        )

    def _change(self, path: str, source: Source, edits: list[Edit]) -> lsp.WorkspaceEdit:
        changes = [
            lsp.TextEdit(self.range(source, one.start, one.end), one.content) for one in sorted(set(edits))
        ]
        return lsp.WorkspaceEdit(changes={uri_of(path): changes})


def _same(diagnostic: lsp.Diagnostic, item: Item) -> bool:
    data = diagnostic.data
    if isinstance(data, dict):
        return data.get("fingerprint") == item.fingerprint
    return diagnostic.code == item.finding.code
