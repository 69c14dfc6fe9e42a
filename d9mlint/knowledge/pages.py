"""Rule pages: Markdown with front matter."""

from __future__ import annotations

import re
from typing import Any, get_args

import msgspec

from d9mlint.base.errors import nearest
from d9mlint.base.yaml_limits import load_yaml
from d9mlint.knowledge.errors import KnowledgeError
from d9mlint.knowledge.schema import Level, RulePage, Sureness

KEYS = (
    "code",
    "name",
    "family",
    "summary",
    "severity",
    "confidence",
    "default",
    "since",
    "libraries",
)
OPTIONAL = ("show_advice", "preview", "replaces", "retired", "match")
CODE = re.compile(r"[A-Z]{3}[0-9]{3}")
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_FRONT = re.compile(r"---\n(.*?)\n---\n(.*)", re.DOTALL)


IMPLIED: dict[str, Any] = {
    "family": "own",
    "severity": "warning",
    "confidence": "high",
    "default": True,
    "since": "",
    "libraries": [],
}
"""What pages of a user's own and of plugins need not say."""


def parse_page(path: str, text: str, own: bool = False) -> RulePage:
    """A rule page of its file's text, without what it matches; ``own`` is one that is not d9mlint's. Raises
    KnowledgeError."""
    found = _FRONT.match(text)
    if found is None:
        raise KnowledgeError(path, 1, "no front matter between two lines of ---")
    import yaml

    try:
        front: Any = load_yaml(found.group(1))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        raise KnowledgeError(
            path, (mark.line + 2) if mark else 1, f"front matter is no YAML: {error}"
        ) from error
    if not isinstance(front, dict):
        raise KnowledgeError(path, 2, "front matter is no mapping")
    if own:
        front = IMPLIED | front
    for key in KEYS:
        if key not in front:
            raise KnowledgeError(path, 2, f"front matter lacks `{key}`")
    # Pages of plugins may still say what their blocks say now.
    front.pop("fixable", None)
    unknown = [key for key in front if key not in KEYS + OPTIONAL]
    if unknown:
        line = 2 + next(
            i for i, row in enumerate(found.group(1).split("\n")) if row.startswith(f"{unknown[0]}:")
        )
        raise KnowledgeError(
            path, line, f"unknown key `{unknown[0]}`.{nearest(str(unknown[0]), KEYS + OPTIONAL)}"
        )
    front.pop("match", None)
    if own and str(front["code"]).startswith("DET"):
        raise KnowledgeError(path, 2, "codes that begin with DET are those of d9mlint")
    front = {
        key: str(value) if key in ("since", "retired", "code", "name") else value
        for key, value in front.items()
    }
    rows = found.group(1).split("\n")

    def wrong(key: str, expected: str) -> KnowledgeError:
        line = 2 + next((i for i, row in enumerate(rows) if row.startswith(f"{key}:")), 0)
        return KnowledgeError(path, line, f"`{key}` is {expected}")

    if not CODE.fullmatch(front["code"]):
        raise wrong("code", "three capital letters and three digits")
    if not NAME.fullmatch(front["name"]):
        raise wrong("name", "words in lower case, with hyphens")
    for key, words in (("severity", get_args(Level)), ("confidence", get_args(Sureness))):
        if front[key] not in words:
            given = str(front[key])
            raise wrong(key, f"one of {', '.join(words)}, not `{given}`.{nearest(given, words)}")
    replaced = front.get("replaces", [])
    if not isinstance(replaced, list) or not all(
        isinstance(word, str) and (CODE.fullmatch(word) or NAME.fullmatch(word)) for word in replaced
    ):
        raise wrong("replaces", "a list of codes and names that rules had")
    if own and any(word.startswith("DET") for word in replaced):
        raise wrong("replaces", "without codes that begin with DET, which are those of d9mlint")
    body = found.group(2)
    sections: dict[str, str] = {}
    title = ""
    lines: list[str] = []
    fenced = False
    for row in body.split("\n"):
        fenced = fenced != row.startswith("```")
        if row.startswith("## ") and not fenced:
            if title:
                sections[title] = "\n".join(lines).strip()
            title, lines = row[3:].strip(), []
        else:
            lines.append(row)
    if title:
        sections[title] = "\n".join(lines).strip()
    try:
        return msgspec.convert(
            {
                **front,
                "fixable": fixable(body),
                "path": path,
                "markdown": body.strip(),
                "sections": sections,
            },
            RulePage,
        )
    except msgspec.ValidationError as error:
        raise KnowledgeError(path, 2, str(error)) from error


def page_words(page: RulePage) -> tuple[str, ...]:
    """The words that mean a rule: its code, its name, and the codes and names that it replaces."""
    return (page.code, page.name, *page.replaces)


def front_matter(text: str) -> str:
    """The front matter of a page as a YAML document whose lines are those of the page."""
    found = _FRONT.match(text)
    return "\n" + found.group(1) if found else ""


_FIXED = re.compile(r"^```python[^\n]*\bfixed\b([^\n]*)$", re.MULTILINE)


def fixable(body: str) -> str:
    """Whether a rule has fixes, by the blocks of its page that show fixed code: ``no``, ``safe``, ``unsafe`` or
    ``both``. The blocks are tested, so the page cannot promise a fix that is not there."""
    kinds = {"unsafe" if "unsafe" in found[1].split() else "safe" for found in _FIXED.finditer(body)}
    return "both" if len(kinds) == 2 else next(iter(kinds), "no")
