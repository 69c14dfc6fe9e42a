"""A rule page as text: a line of metadata under the title, and code without the marks of its tests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from d9mlint.knowledge.schema import RulePage

_FIX = {
    "no": "no fix",
    "safe": "fix is sometimes available",
    "unsafe": "unsafe fix is sometimes available",
    "both": "safe or unsafe fix is sometimes available",
}
_MARK = re.compile(r"[ \t]*#[ \t]*(?:ok|(?:todo-)?error:[ \t]*\[[A-Z0-9, ]+\])[ \t]*$")
_LINK = re.compile(r"\[([^\]]+)\]\((?:DET\d+[^)]*)\)")
_STYLES = {"title": "1", "section": "1;36", "code": "36", "dim": "2"}


def metadata(page: RulePage) -> str:
    """Severity, confidence, whether the rule is on, whether it fixes, since when, and for which libraries."""
    state = "on by default" if page.default else "off by default"
    if page.retired:
        state = f"retired in {page.retired}"
    elif page.preview:
        state = f"preview, {state} with --preview"
    parts = [page.severity, f"{page.confidence} confidence", state, _FIX.get(page.fixable, page.fixable)]
    parts += [
        f"family {page.family}",
        *([f"since {page.since}"] if page.since else []),
        *([", ".join(page.libraries)] if page.libraries else []),
        *([f"formerly {', '.join(page.replaces)}"] if page.replaces else []),
    ]
    return " | ".join(parts)


def markdown(page: RulePage) -> str:
    """The page as Markdown for readers."""
    lines: list[str] = []
    inside = False
    for line in page.markdown.strip().splitlines():
        fence = re.match(r"\s*```(\w*)", line)
        if fence:
            inside = not inside
            lines.append(line.partition("```")[0] + "```" + (fence[1] if inside else ""))
        elif inside:
            lines.append(_MARK.sub("", line))
        else:
            lines.append(line)
            if line.startswith("# ") and len(lines) == 1:
                lines += ["", metadata(page)]
    return "\n".join(lines) + "\n"


def terminal(page: RulePage) -> str:
    """The page for a terminal: headings in bold, code indented and in color, links by their names."""
    lines: list[str] = []
    inside = False
    for line in markdown(page).splitlines():
        if line.lstrip().startswith("```"):
            inside = not inside
        elif inside:
            lines.append(_paint(f"    {line}", "code") if line else "")
        elif line.startswith("#"):
            marks, _, text = line.partition(" ")
            lines.append(_paint(text, "title" if len(marks) == 1 else "section"))
        elif line == metadata(page):
            lines.append(_paint(line, "dim"))
        else:
            text = re.sub(r"<(https?://[^>]+)>", r"\1", _LINK.sub(r"\1", line))
            lines.append(re.sub(r"`([^`]+)`", lambda m: _paint(m[1], "code"), text))
    return "\n".join(lines) + "\n"


def _paint(text: str, style: str) -> str:
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"
