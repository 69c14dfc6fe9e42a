"""Knowledge of a user's own: YAML files that the configuration names, on top of what d9mlint knows.

A file holds, each under its own key and none of them required, lists of entries as in
``rules/knowledge`` (``rng``, ``ops``, ``hazards``, ``orders``, ``roles``, ...), ``aliases`` (names of the user's
wrappers with the names that they stand for) , ``sources`` (short names for provenance) and ``rules``
(rules of the user's own: what stands in the front matter of a rule page). A Markdown file is such a page. In an entry ``id``
and ``library`` may be left out; an op without a ``history`` may differ between runs in all versions, also in
deterministic mode.

What an entry says of a name replaces what the layers below say of it. A function or class of the linted
project that is named is not looked into: what the entry says holds for its calls.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from msgspec import structs

from d9mlint.base.errors import UsageError, nearest
from d9mlint.base.paths import is_inside, read_limited
from d9mlint.knowledge.errors import KnowledgeError
from d9mlint.knowledge.loader import (
    ENTRIES,
    Compiled,
    check_generators,
    entries_of,
    matches_of,
    parse,
    rule_matches,
)
from d9mlint.knowledge.pages import IMPLIED, page_words, parse_page
from d9mlint.knowledge.schema import HazardEntry, OpEntry, RulePage

PARTS = (*ENTRIES, "aliases", "sources", "rules")


class LayerFile(NamedTuple):
    """A file of a user's knowledge, or of a plugin, as it was read: its path and its content; ``trusted`` when it
    may be quoted wherever it is."""

    path: str
    data: bytes
    trusted: bool = False


def read_files(paths: Sequence[str], origin: str) -> tuple[LayerFile, ...]:
    """The files that ``origin`` (a place in the configuration) names. Raises UsageError for one that cannot
    be read."""
    found = []
    for path in paths:
        try:
            found.append(LayerFile(path, read_limited(path)))
        except OSError as error:
            raise UsageError(
                f"{origin}: knowledge file {path} cannot be read: {error.strerror or error}."
            ) from error
    return tuple(found)


def files_digest(files: Iterable[LayerFile]) -> str:
    """What changes when any of the files does."""
    state = hashlib.blake2b(digest_size=16)
    for path, data, _ in files:
        state.update(f"{path}\0{len(data)}\0".encode("utf-8", "surrogatepass") + data)
    return state.hexdigest()


def parse_file(file: LayerFile, top: str, generators: Collection[str]) -> Compiled:
    """The knowledge in a file; ``generators`` are the ids of those that are known. Raises KnowledgeError with the
    line of what is wrong.

    Of a file outside of ``top``, the linted project, nothing is quoted: the project chose it, and it may be
    anybody's.
    """
    if file.path.endswith(".py"):
        # Of a plugin: results depend on it, and it is no knowledge.
        return Compiled()
    if file.trusted or is_inside(file.path, top):
        return _parse(file, generators)
    try:
        return _parse(file, generators)
    except KnowledgeError as error:
        raise KnowledgeError(
            file.path, error.line, "this file, which is outside of the project, holds no valid knowledge"
        ) from None


def _parse(file: LayerFile, generators: Collection[str]) -> Compiled:
    path = file.path
    try:
        text = file.data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise KnowledgeError(path, 1, "the file is not UTF-8") from error
    if path.endswith(".md"):
        page = parse_page(path, text, own=True)
        return Compiled(rules=[page], hazards=matches_of(path, text, page, {}))
    data, node = parse(path, text)
    if data is None:
        return Compiled()
    if not isinstance(data, dict):
        raise KnowledgeError(path, 1, f"a mapping is expected, with any of {', '.join(PARTS)}")
    nodes = {key.value: (key.start_mark.line + 1, value) for key, value in node.value}
    for key in data:
        if key not in PARTS:
            line = next((k.start_mark.line + 1 for k, _ in node.value if k.value == str(key)), 1)
            raise KnowledgeError(path, line, f"unknown key `{key}`.{nearest(str(key), PARTS)}")
    for key in ("aliases", "sources"):
        if not isinstance(data.get(key, {}), dict):
            raise KnowledgeError(path, nodes[key][0], f"`{key}` is a mapping")
    aliases = data.get("aliases", {})
    for name, target in aliases.items():
        if not isinstance(name, str) or not isinstance(target, str):
            raise KnowledgeError(path, nodes["aliases"][0], "an alias is a name with the name it stands for")
    seen: dict[tuple[type[Any], str], str] = {}
    parts: dict[str, list[Any]] = {}
    for key, kind in ENTRIES.items():
        items = data.get(key, [])
        if key not in data:
            continue
        line, where = nodes[key]
        if not isinstance(items, list):
            raise KnowledgeError(path, line, f"`{key}` is a list of entries")
        named = [_named(item, kind) for item in items]
        parts[key] = entries_of(path, named, where, kind, data.get("sources", {}), seen)
    rules, matches = _rules(path, data.get("rules", []), *nodes.get("rules", (1, None)), seen)
    parts["hazards"] = [*parts.get("hazards", []), *matches]
    own = structs.replace(Compiled(exact=aliases, rules=rules), **parts)
    check_generators(own.generators, own.rng, own.hazards, seen, generators)
    return own


_RULE = ("code", "name", "summary", "why", "match", "preview", "replaces", *IMPLIED)
"""What an entry of ``rules`` says."""


def _rules(
    path: str, items: Any, line: int, node: Any, seen: dict[tuple[type[Any], str], str]
) -> tuple[list[RulePage], list[HazardEntry]]:
    """The rules of a file and what they match. Raises KnowledgeError."""
    if not isinstance(items, list):
        raise KnowledgeError(path, line, "`rules` is a list of entries")
    pages: list[RulePage] = []
    matches: list[HazardEntry] = []
    for number, item in enumerate(items):
        where = node.value[number]
        at = where.start_mark.line + 1
        if not isinstance(item, dict):
            raise KnowledgeError(path, at, "a rule is a mapping")
        lines = {key.value: key.start_mark.line + 1 for key, _ in where.value}
        for key in item:
            if key not in _RULE:
                raise KnowledgeError(
                    path, lines.get(str(key), at), f"unknown key `{key}`.{nearest(str(key), _RULE)}"
                )
        for key in ("code", "name", "summary", "match"):
            if key not in item:
                raise KnowledgeError(path, at, f"a rule needs `{key}`")
        page = _page(path, at, lines, item)
        pages.append(page)
        children = {key.value: value for key, value in where.value}
        matches += rule_matches(path, item["match"], children["match"], lines["match"], page, seen)
    return pages, matches


def _page(path: str, line: int, lines: dict[str, int], item: dict[str, Any]) -> RulePage:
    """The page of a rule in a YAML file. Raises KnowledgeError with the line of what is wrong with it."""
    front = {key: value for key, value in item.items() if key not in ("why", "match")}
    why = item.get("why", "")
    body = f"# {item['code']} {item['name']}\n\n## What it does\n{item['summary']}\n"
    body += f"\n## Why it matters\n{why}\n" if why else ""
    try:
        # A mapping in JSON is one in YAML, with a key on each line, as in a page.
        rows = [f"{key}: {json.dumps(value, default=str)}" for key, value in front.items()]
        return parse_page(path, "\n".join(["---", *rows, "---", body]), own=True)
    except KnowledgeError as error:
        keys = list(front)
        key = keys[error.line - 2] if 2 <= error.line < 2 + len(keys) else ""
        raise KnowledgeError(path, lines.get(key, line), error.message) from None


def check_rules(layers: Sequence[Compiled], files: Sequence[LayerFile], builtin: Compiled) -> None:
    """Codes and names are those of one rule, and entries name rules that there are. Raises KnowledgeError."""
    pages = {page.code: page for page in builtin.rules}
    words = {word: page for page in builtin.rules for word in page_words(page)}
    for layer, file in zip(layers, files, strict=True):
        for page in layer.rules:
            other = next((words[word] for word in page_words(page) if word in words), None)
            if other is not None:
                raise KnowledgeError(
                    file.path,
                    1,
                    f"the code or the name of {page.code} {page.name} is already used in {other.path}",
                )
            pages[page.code] = page
            words |= dict.fromkeys(page_words(page), page)
    for layer, file in zip(layers, files, strict=True):
        for entry in layer.hazards:
            if entry.rule not in pages:
                text = f"there is no rule `{entry.rule}`.{nearest(entry.rule, sorted(pages))}"
                row = next(
                    (n for n, line in enumerate(file.data.split(b"\n"), 1) if entry.rule.encode() in line), 1
                )
                raise KnowledgeError(file.path, row, text)


def _named(item: Any, kind: type[Any]) -> Any:
    """An entry with what need not be written."""
    names = (item.get("apis") or item.get("names")) if isinstance(item, dict) else None
    if isinstance(names, list) and names and isinstance(names[0], str):
        implied: dict[str, Any] = {
            "id": names[0],
            "library": names[0].partition(".")[0],
            "history": [{"versions": "", "behaviour": "silent"}],
        }
        if kind is not OpEntry:
            del implied["history"]
        return {key: value for key, value in implied.items() if key in kind.__struct_fields__} | item
    return item
