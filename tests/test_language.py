"""User-visible English: phrases that are not idiomatic technical English appear in no message, help, README or page."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from d9mlint.cli.app import SUBCOMMANDS, group
from d9mlint.config.settings import KEYS

ROOT = Path(__file__).parents[1]
FORBIDDEN = {
    r"\bhang(s|ing)? on\b": "depends on",
    r"\b(is|are) (others|another one)\b|\bgives? other (numbers|bits|values|results)\b": "differs between runs",
    r"\banother (order|one|split) in (every|each) run\b": "differs between runs",
    r"\b(is|are|was|were|be) told\b|\btold (as|apart|of|beside)\b": "reported",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\bcan not\b": "cannot",
    r"\b(a|an|the) [\w ]+ of (its|his|their|your) own\b": "its own ...",
    r"\bbecomes? visible\b": "the result depends on the order of",
    r"\bcomes? too late\b": "is set after ... has already drawn",
    r"\bleaves? with 0\b": "exits with status 0",
    r"\banew\b": "recreated",
    r"\bthe mode raises\b": "raises RuntimeError in deterministic mode",
    r"\bas they must\b": "controls passed",
    r"\w+(nitialis|andomis|ptimis|ynchronis|ormalis|erialis)(e|er|ed|es|ing|ation)\b": "American spelling: -ize",
    r"\b[Cc]olours?\b|\b[Bb]ehaviours?\b|\banalys(e|ed|es|ing)\b": "American spelling",
}


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """String literals of a module that may reach a user: not docstrings, not single words."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    silent: set[int] = set()
    for node in ast.walk(tree):
        # Help of commands is written as docstrings; docstrings of everything else are for contributors.
        command = isinstance(node, ast.FunctionDef) and any(
            "command" in ast.unparse(d) for d in node.decorator_list
        )
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant) and not command:
                silent.add(id(child.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            if id(node) not in silent:
                yield node.lineno, node.value


CONTRIBUTORS = {
    r"\b(is|are|was|were|be|been|[Gg]ets?) told\b|\b[Tt]old (as|apart|of|beside|in|once|so|together|with)\b": "reported",
    r"\b[Mm]end(s|ed|ing)?\b": "fix",
    r"\bcan not\b": "cannot",
    r"\bhang(s|ing)? on\b": "depends on",
}
"""What no comment and no docstring says either."""


def remarks(path: Path) -> Iterator[tuple[int, str]]:
    """Comments and docstrings of a module."""
    text = path.read_text(encoding="utf-8")
    with path.open("rb") as stream:
        for token in tokenize.tokenize(stream.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.lineno, " ".join(node.value.value.split())


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a Markdown file outside of code; code spans are left out."""
    inside = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            yield number, re.sub(r"`[^`]*`", "`x`", line)


def wrong(text: str) -> list[str]:
    """What is to be replaced in a text."""
    return [
        f"{found.group()!r}: {better}" for p, better in FORBIDDEN.items() for found in re.finditer(p, text)
    ]


PAGES = [*ROOT.glob("*.md"), *(ROOT / "rules").glob("*.md"), *(ROOT / "rules" / "site").rglob("*.md")]


@pytest.mark.parametrize(
    "package", sorted(p.name for p in (ROOT / "d9mlint").iterdir() if p.suffix != ".pyc")
)
def test_messages_and_help_are_plain_technical_english(package: str) -> None:
    where = ROOT / "d9mlint" / package
    files = [where] if where.suffix == ".py" else sorted(where.rglob("*.py"))
    found = [f"{f.relative_to(ROOT)}:{n}: {w}" for f in files for n, text in strings(f) for w in wrong(text)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_pages_are_plain_technical_english(page: Path) -> None:
    found = [f"{page.relative_to(ROOT)}:{n}: {w}" for n, line in prose(page) for w in wrong(line)]
    assert not found, "\n".join(found)


def test_comments_and_docstrings_use_the_same_words() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {hit.group()!r}: {better}"
        for path in sorted((ROOT / "d9mlint").rglob("*.py"))
        for number, text in remarks(path)
        for pattern, better in CONTRIBUTORS.items()
        for hit in re.finditer(pattern, text)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("command", ["", *SUBCOMMANDS])
def test_help_is_plain_technical_english(command: str) -> None:
    """As it is shown, with what is inserted into it."""
    here = click.Context(group, info_name="d9mlint")
    shown = group.get_command(here, command) if command else group
    assert shown is not None
    text = " ".join(shown.get_help(click.Context(shown, info_name=command, parent=here)).split())
    assert not wrong(text), text


def test_descriptions_of_settings_are_plain_technical_english() -> None:
    found = [f"{key}: {hit}" for key, spec in KEYS.items() for hit in wrong(spec.about)]
    assert not found


def test_the_patterns_find_what_they_forbid() -> None:
    for text in (
        "the order hangs on the timing",
        "it is another one in every run",
        "an op without one is told as not run",
        "a generator of its own",
        "this can not be read",
        "the order becomes visible",
        "uninitialised memory",
    ):
        assert wrong(text), text
    assert not wrong("`DataLoader` uses its own generator; `x` depends on it and cannot be initialized")
