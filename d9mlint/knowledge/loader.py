"""Reading ``rules/``: strictly typed, with file and line of every mistake, and compiled for the next run."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from pathlib import Path
from typing import Any

import msgspec

from d9mlint.knowledge.errors import KnowledgeError
from d9mlint.knowledge.pages import parse_page
from d9mlint.knowledge.schema import SCHEMA, OpEntry, RngEntry, RulePage, SettingEntry


class Compiled(msgspec.Struct, frozen=True):
    """Everything in ``rules/`` in one decodable piece."""

    schema: int
    digest: str
    rng: list[RngEntry]
    ops: list[OpEntry]
    settings: list[SettingEntry]
    rules: list[RulePage]
    exact: dict[str, str]
    prefixes: dict[str, str]
    newest: dict[str, str]


def rules_directory() -> Path:
    """Where the rules are: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_rules"
    return installed if installed.is_dir() else package.parent / "rules"


def rule_files(root: Path) -> list[Path]:
    """All files that make up the knowledge, sorted."""
    return sorted([*root.glob("DET*.md"), *(root / "knowledge").rglob("*.yaml")])


def load_compiled(root: Path | None = None) -> Compiled:
    """The compiled knowledge: from the cache where it is fresh, else read and checked. Raises KnowledgeError."""
    root = root or rules_directory()
    digest = _digest(root)
    cache = _cache_file(digest)
    if cache is not None:
        try:
            found = msgspec.msgpack.decode(cache.read_bytes(), type=Compiled)
            if found.schema == SCHEMA and found.digest == digest:
                return found
        except (OSError, msgspec.MsgspecError):
            pass
    compiled = compile_rules(root, digest)
    if cache is not None:
        _write(cache, msgspec.msgpack.encode(compiled))
    return compiled


def _digest(root: Path) -> str:
    """Identity of the rules by name, size and time: reading them all would cost more than it saves."""
    state = hashlib.sha256(f"{SCHEMA}".encode())
    for path in rule_files(root):
        stat = path.stat()
        state.update(f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
    return state.hexdigest()


def _cache_file(digest: str) -> Path | None:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if not os.path.isabs(base):
        return None
    return Path(base) / "d9mlint" / f"knowledge-{digest[:24]}.bin"


def _write(path: Path, data: bytes) -> None:
    """Write atomically; a cache that can not be written is done without."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        temporary.write_bytes(data)
        os.replace(temporary, path)
        for old in path.parent.glob("knowledge-*.bin"):
            if old != path:
                old.unlink(missing_ok=True)
    except OSError:
        pass


def compile_rules(root: Path, digest: str = "") -> Compiled:
    """Read and check all of ``rules/``. Raises KnowledgeError at the first mistake."""
    rng: list[RngEntry] = []
    ops: list[OpEntry] = []
    settings: list[SettingEntry] = []
    rules: list[RulePage] = []
    exact: dict[str, str] = {}
    prefixes: dict[str, str] = {}
    newest: dict[str, str] = {}
    for path in rule_files(root):
        name = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".md":
            rules.append(parse_page(name, text))
            continue
        part = name.removeprefix("knowledge/")
        if part == "aliases.yaml":
            tables = _plain(name, text)
            exact.update(tables.get("exact", {}))
            prefixes.update(tables.get("prefixes", {}))
        elif part == "versions.yaml":
            newest.update(_plain(name, text))
        elif part.startswith("rng/"):
            rng += entries(name, text, RngEntry)
        elif part.startswith("ops/"):
            ops += entries(name, text, OpEntry)
        elif part == "settings.yaml":
            settings += entries(name, text, SettingEntry)
        else:
            raise KnowledgeError(name, 1, "no part of the knowledge base is expected here")
    return Compiled(SCHEMA, digest, rng, ops, settings, rules, exact, prefixes, newest)


def _plain(path: str, text: str) -> dict[str, Any]:
    data = _parse(path, text)[0]
    if not isinstance(data, dict):
        raise KnowledgeError(path, 1, "a mapping is expected")
    return data


def entries(path: str, text: str, kind: type[Any]) -> list[Any]:
    """The entries of a YAML file: a list, or a mapping with ``sources`` (short names for provenance) and
    ``entries``. Raises KnowledgeError with the line of the entry that is wrong."""
    data, node = _parse(path, text)
    sources: dict[str, Any] = {}
    if isinstance(data, dict):
        sources = data.get("sources", {})
        children = {key.value: value for key, value in node.value}
        node = children.get("entries", node)
        data = data.get("entries", [])
    if not isinstance(data, list):
        raise KnowledgeError(path, 1, "a list of entries is expected")
    seen: dict[str, int] = {}
    result: list[Any] = []
    for item, where in zip(data, node.value, strict=False):
        line = where.start_mark.line + 1
        if isinstance(item, dict):
            item["provenance"] = [
                text for key in item.get("provenance", []) for text in _expanded(sources.get(key, key))
            ]
        try:
            entry = msgspec.convert(item, kind)
        except msgspec.ValidationError as error:
            raise KnowledgeError(
                path, _line_of(where, str(error), line), _explain(str(error), kind)
            ) from error
        if entry.id in seen:
            raise KnowledgeError(path, line, f"id `{entry.id}` stands in line {seen[entry.id]} already")
        seen[entry.id] = line
        _check_ranges(path, line, entry)
        result.append(entry)
    return result


def _expanded(source: Any) -> list[str]:
    return [str(part) for part in source] if isinstance(source, list) else [str(source)]


def _check_ranges(path: str, line: int, entry: Any) -> None:
    from d9mlint.knowledge.versions import split

    ranges = [getattr(entry, "versions", "")] if not isinstance(entry, SettingEntry) else []
    ranges += [item.versions for item in getattr(entry, "history", [])]
    for spec in ranges:
        try:
            split(spec)
        except ValueError as error:
            raise KnowledgeError(path, line, f"{error} (in `{entry.id}`)") from error


def _parse(path: str, text: str) -> tuple[Any, Any]:
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(text, Loader=loader), yaml.compose(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise KnowledgeError(path, mark.line + 1 if mark else 1, f"no valid YAML: {error}") from error


def _line_of(node: Any, message: str, fallback: int) -> int:
    """The line of the key that a validation message names, found in the entry's YAML node."""
    for name in re.findall(r"[`.](\w+)", message):
        for key, _ in getattr(node, "value", []):
            if getattr(key, "value", None) == name:
                return int(key.start_mark.line) + 1
    return fallback


def _explain(message: str, kind: type[Any]) -> str:
    unknown = re.search(r"unknown field `(\w+)`", message)
    if unknown:
        near = difflib.get_close_matches(unknown.group(1), kind.__struct_fields__, 1)
        return f"unknown key `{unknown.group(1)}`" + (f", did you mean `{near[0]}`?" if near else "")
    return message
