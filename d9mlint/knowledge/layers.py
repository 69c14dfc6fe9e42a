"""Knowledge of a user's own: YAML files that the configuration names, on top of what d9mlint knows.

A file holds, each under its own key and none of them required, lists of entries as in
``rules/knowledge`` (``rng``, ``ops``, ``hazards``, ``orders``, ``roles``, ...), ``aliases`` (names of the user's
wrappers with the names that they stand for) and ``sources`` (short names for provenance). In an entry ``id``
and ``library`` may be left out; an op without a ``history`` may differ between runs in all versions, also in
deterministic mode.

What an entry says of a name replaces what the layers below say of it. A function or class of the linted
project that is named is not looked into: what the entry says holds for its calls.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from msgspec import structs

from d9mlint.base.errors import UsageError, nearest
from d9mlint.base.paths import is_inside, read_limited
from d9mlint.knowledge.errors import KnowledgeError
from d9mlint.knowledge.loader import ENTRIES, Compiled, check_generators, entries_of, parse
from d9mlint.knowledge.schema import OpEntry

PARTS = (*ENTRIES, "aliases", "sources")


class LayerFile(NamedTuple):
    """A file of a user's knowledge as it was read: its path, as configured, and its content."""

    path: str
    data: bytes


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
    for path, data in files:
        state.update(f"{path}\0{len(data)}\0".encode("utf-8", "surrogatepass") + data)
    return state.hexdigest()


def parse_file(file: LayerFile, top: str, generators: Collection[str]) -> Compiled:
    """The knowledge in a file; ``generators`` are the ids of those that are known. Raises KnowledgeError with the
    line of what is wrong.

    Of a file outside of ``top``, the linted project, nothing is quoted: the project chose it, and it may be
    anybody's.
    """
    if is_inside(file.path, top):
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
        text = file.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise KnowledgeError(path, 1, "the file is not UTF-8") from error
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
    own = structs.replace(Compiled(exact=aliases), **parts)
    check_generators(own.generators, own.rng, own.hazards, seen, generators)
    return own


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
