"""JUnit XML: a test suite a file, a failed test a finding."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from d9mlint.report.common import Options, clean, said, shown_path

if TYPE_CHECKING:
    from d9mlint.base.findings import Finding
    from d9mlint.pipeline import Item, Result

_FORBIDDEN = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(result: Result, options: Options) -> str:
    """All reported files; one without findings has one passed test."""
    by_path: dict[str, list[Item]] = {path: [] for path in result.files}
    for item in result.items:
        by_path.setdefault(item.finding.path, []).append(item)
    total = sum(max(len(items), 1) for items in by_path.values())
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="d9mlint" tests="{total}" failures="{len(result.items)}" errors="0">',
    ]
    for path, items in sorted(by_path.items()):
        name = quoteattr(_text(shown_path(path, options)))
        lines.append(
            f'  <testsuite name={name} tests="{max(len(items), 1)}" failures="{len(items)}" errors="0">'
        )
        if not items:
            lines.append(f'    <testcase name="d9mlint" classname={name} />')
        for item in items:
            f = item.finding
            at = result.sources[path].location(f.start)
            where = f"cell {at.cell}, " if at.cell is not None else ""
            title = quoteattr(f"{f.code} {item.rule.name}")
            lines.append(f'    <testcase name={title} classname={name} line="{at.row}">')
            lines.append(f"      <failure type={title} message={quoteattr(_text(clean(f.message)))}>")
            lines.append(
                escape(
                    _text(f"{where}line {at.row}, column {at.column}: {f.message}\n{f.help}{_measured(f)}")
                )
            )
            lines.append("      </failure>")
            lines.append("    </testcase>")
        lines.append("  </testsuite>")
    lines.append("</testsuites>")
    return "\n".join(lines) + "\n"


def _measured(finding: Finding) -> str:
    return f"\nmeasured: {said(finding)}" if said(finding) else ""


def _text(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
