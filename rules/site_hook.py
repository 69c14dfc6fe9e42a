"""MkDocs hook: what the site shows of the rule pages, the README and the code. See ``mkdocs.yml``.

* Rule pages without the marks of their tests, an index of them by family, and both in the navigation.
* ``<!-- readme: Title -->`` in a page becomes the section of the README with that title, so that both stay one text.
* ``<!-- settings -->`` and ``<!-- options: command -->`` become references made from the code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from d9mlint import knowledge
from d9mlint.report import rule_page

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

    from d9mlint.knowledge.schema import RulePage

ROOT = Path(__file__).resolve().parents[1]
FAMILIES = {
    "general": "General",
    "seeds": "Seeds",
    "data": "Data",
    "settings": "Settings",
    "ops": "Ops",
    "distributed": "Distributed training",
    "checkpoints": "Checkpoints",
    "inference": "Inference",
    "portability": "Portability",
}
COPIED = {
    "CONTRIBUTING.md": "contributing/code.md",
    "rules/CONTRIBUTING.md": "contributing/facts.md",
    "rules/evidence/README.md": "contributing/evidence.md",
    "rules/evidence/MEASURED.md": "contributing/measured.md",
    "rules/knowledge/VERSIONS.md": "contributing/versions.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
"""Files of the repository that are pages as they are."""
_LINK = re.compile(r"\]\(((?:\.\./)*[\w./-]+\.md)(#[\w-]+)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation: rules by family, and no page that does not exist."""
    pages = rules()
    families = [
        {
            FAMILIES.get(family, family): [
                {f"{p.code} {p.name}": f"rules/{p.path}"} for p in pages if p.family == family
            ]
        }
        for family in dict.fromkeys(page.family for page in pages)
    ]
    assert config.nav is not None
    config.nav = _existing(config.nav)
    for entry in config.nav:
        if isinstance(entry, dict) and "Rules" in entry:
            entry["Rules"] += families
    return config


def _existing(nav: Sequence[Any]) -> list[Any]:
    """A navigation without the pages that are neither in ``rules/site`` nor made here."""
    made = {"rules/index.md", *COPIED.values()}
    kept: list[Any] = []
    for entry in nav:
        for title, target in entry.items() if isinstance(entry, dict) else [("", entry)]:
            if isinstance(target, list):
                kept.append({title: _existing(target)})
            elif target in made or (ROOT / "rules/site" / target).is_file():
                kept.append(entry)
    return kept


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the rule pages, their index and the files of the repository that are pages."""
    from mkdocs.structure.files import File

    pages = rules()
    made = {f"rules/{page.path}": rule_page.markdown(page) for page in pages}
    made["rules/index.md"] = index(pages)
    for source, target in COPIED.items():
        made[target] = relinked((ROOT / source).read_text(encoding="utf-8"), source, target)
    for target, text in made.items():
        files.append(File.generated(config, target, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in what a page includes."""
    return filled(markdown, page.file.src_uri)


def rules() -> list[RulePage]:
    """All rule pages by code."""
    found = knowledge.load().rules
    return [found[code] for code in sorted(found)]


def filled(markdown: str, target: str) -> str:
    """A page with its inclusions, without the marks of tests. Raises KeyError for what cannot be included."""
    text = re.sub(r"[ \t]*# (?:ok|error: \[[A-Z0-9, ]+\])$", "", markdown, flags=re.M)
    return re.sub(
        r"^<!-- ([\w ]+?)(?:: ([^>]+?))? -->$", lambda m: _part(m[1], m[2] or "", target), text, flags=re.M
    )


def _part(kind: str, argument: str, target: str) -> str:
    if kind == "readme":
        return relinked(readme_sections()[argument], "README.md", target)
    if kind == "settings":
        return settings_reference()
    if kind == "options":
        return options_reference(argument)
    if kind == "commands":
        return commands_reference()
    if kind == "include":
        return (ROOT / "rules/site" / argument).read_text(encoding="utf-8")
    raise KeyError(kind)


def readme_sections() -> dict[str, str]:
    """The sections of the README by title, without their headings; subsections also stand alone."""
    sections: dict[str, list[str]] = {}
    stack: dict[int, str] = {}
    fenced = False
    for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines():
        fenced = fenced != line.startswith("```")
        found = None if fenced else re.match(r"(##+) (.+)", line)
        if found:
            level = len(found[1])
            stack = {k: v for k, v in stack.items() if k < level} | {level: found[2]}
            sections[found[2]] = []
        for level, title in stack.items():
            if not (found and level == len(found[1])):
                sections[title].append(line)
    return {title: "\n".join(lines).strip() for title, lines in sections.items()}


def relinked(text: str, source: str, target: str) -> str:
    """A text of the repository with its links to other files made links between pages of the site."""

    def link(found: re.Match[str]) -> str:
        path = (ROOT / source).parent.joinpath(found[1]).resolve().relative_to(ROOT).as_posix()
        page = COPIED.get(path) or (f"rules/{Path(path).name}" if re.match(r"rules/DET\d", path) else "")
        if not page and path.startswith("rules/site/"):
            page = path.removeprefix("rules/site/")
        if path == "README.md":
            return f"]({'../' * target.count('/')}index.md)"
        if not page:
            raise KeyError(f"{source}: {found[1]} is no page of the site")
        up = "../" * target.count("/")
        return f"]({up}{page}{found[2] or ''})"

    return _LINK.sub(link, text)


def index(pages: Sequence[RulePage]) -> str:
    """All rules by family."""
    lines = [
        "# Rules",
        "",
        "What makes two runs of a training program differ, and what to write instead. `d9mlint rule CODE` shows the same "
        "pages offline. Fixes: *safe* ones only make results deterministic and cannot raise; *unsafe* ones change the "
        "numbers of a run or its speed.",
    ]
    for family in dict.fromkeys(page.family for page in pages):
        lines += [
            "",
            f"## {FAMILIES.get(family, family)}",
            "",
            "| rule | reports | severity | default | fix |",
            "|---|---|---|---|---|",
        ]
        for page in (p for p in pages if p.family == family):
            fix = {"no": "", "both": "safe, unsafe"}.get(page.fixable, page.fixable)
            link = f"[{page.code} {page.name}]({page.path})"
            state = "on" if page.default else "off"
            state = f"retired in {page.retired}" if page.retired else "preview" if page.preview else state
            lines.append(f"| {link} | {page.summary} | {page.severity} | {state} | {fix} |")
    return "\n".join(lines) + "\n"


def settings_reference() -> str:
    """Every configuration key with its type, its default and what it means, from the JSON schema."""
    from d9mlint.config.settings import config_schema

    lines: list[str] = []
    for key, schema in config_schema()["properties"].items():
        lines += [f"### `{key}`", "", schema["description"][:1].upper() + schema["description"][1:] + ".", ""]
        lines.append(f"* Type: {_kind(schema)}")
        default = schema.get("default")
        if default not in (None, "", [], {}, 0):
            lines.append(f"* Default: {_default(default)}")
        lines.append("")
    return "\n".join(lines)


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(f'`"{value}"`' for value in schema["enum"])
    if schema["type"] == "array":
        return "list of strings"
    if schema["type"] == "object":
        inner = schema["additionalProperties"]
        return "table of " + ("lists of strings" if inner.get("type") == "array" else _kind(inner))
    return {"boolean": "`true` or `false`", "integer": "number", "string": "string"}[schema["type"]]


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, list):
        return ", ".join(f"`{item}`" for item in value)
    return f"`{value}`"


def options_reference(command: str) -> str:
    """The options of a command as a table."""
    import click

    from d9mlint.cli.app import group

    found = group.get_command(click.Context(group), command)
    if found is None:
        raise KeyError(command)
    lines = ["| option | |", "|---|---|"]
    for parameter in found.params:
        if isinstance(parameter, click.Option):
            names = " ".join([*parameter.opts, *parameter.secondary_opts])
            metavar = "" if parameter.is_flag or parameter.count else _metavar(parameter, found)
            text = (parameter.help or "").replace("|", "\\|")
            lines.append(f"| `{names}{metavar}` | {text} |".replace("|none", "\\|none"))
    return "\n".join(lines) + "\n"


def _metavar(option: Any, command: Any) -> str:
    import inspect

    import click

    # Newer versions of click ask for the context.
    takes = inspect.signature(option.make_metavar).parameters
    text = option.make_metavar(click.Context(command)) if takes else option.make_metavar()
    return f" {text}".replace("|", "\\|")


def commands_reference() -> str:
    """All sub-commands with the first line of their help."""
    import click

    from d9mlint.cli.app import SUBCOMMANDS, group

    lines = ["| command | |", "|---|---|"]
    for name in SUBCOMMANDS:
        command = group.get_command(click.Context(group), name)
        assert command is not None
        lines.append(f"| `d9mlint {name}` | {command.get_short_help_str(200)} |")
    return "\n".join(lines) + "\n"
