"""Reading ``rules/``: strictly typed, with file and line of every mistake, and compiled for the next run."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import string
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import msgspec

from d9mlint.base.files import read_regular, replace_file, seal, unseal
from d9mlint.base.yaml_limits import load_yaml
from d9mlint.knowledge.errors import KnowledgeError
from d9mlint.knowledge.pages import front_matter, page_words, parse_page
from d9mlint.knowledge.schema import (
    CONDITION_TESTS,
    SCHEMA,
    CallKind,
    Condition,
    DeviceEntry,
    GeneratorEntry,
    HazardEntry,
    HookEntry,
    InferredEntry,
    OpEntry,
    OrderEntry,
    RngEntry,
    RoleEntry,
    RulePage,
    RunnerEntry,
    SettingEntry,
    TensorEntry,
)

_KIND = "knowledge"
KEPT = 4
"""How many compiled knowledge bases are kept: several environments may have d9mlint."""
_CACHED = re.compile(r"knowledge-[0-9a-f]{24}\.bin")


class Compiled(msgspec.Struct, frozen=True):
    """Everything in ``rules/`` in one decodable piece."""

    schema: int = SCHEMA
    digest: str = ""
    generators: list[GeneratorEntry] = []
    rng: list[RngEntry] = []
    ops: list[OpEntry] = []
    roles: list[RoleEntry] = []
    hazards: list[HazardEntry] = []
    orders: list[OrderEntry] = []
    settings: list[SettingEntry] = []
    rules: list[RulePage] = []
    exact: dict[str, str] = {}
    prefixes: dict[str, str] = {}
    exporting: dict[str, str] = {}
    customary: dict[str, str] = {}
    results: dict[str, str] = {}
    seeders: dict[str, list[str]] = {}
    calls: dict[CallKind, list[str]] = {}
    newest: dict[str, str] = {}
    built_for: dict[str, dict[str, dict[str, str]]] = {}
    tested_with: dict[str, dict[str, dict[str, str]]] = {}
    allowed_by: dict[str, dict[str, dict[str, str]]] = {}
    cpu_builds: dict[str, str] = {}
    recorded: dict[str, dict[str, str]] = {}
    tensors: list[TensorEntry] = []
    devices: list[DeviceEntry] = []
    runners: list[RunnerEntry] = []
    hooks: list[HookEntry] = []
    inferred: list[InferredEntry] = []


ENTRIES: dict[str, type[Any]] = {
    "generators": GeneratorEntry,
    "rng": RngEntry,
    "ops": OpEntry,
    "roles": RoleEntry,
    "hazards": HazardEntry,
    "settings": SettingEntry,
    "orders": OrderEntry,
    "tensors": TensorEntry,
    "devices": DeviceEntry,
    "runners": RunnerEntry,
    "hooks": HookEntry,
    "inferred": InferredEntry,
}
"""The kinds of entries by the name of the list, file or directory that holds them."""
DIRECTORIES = frozenset({"hazards", "ops", "rng"})
"""The kinds that have a directory of files."""
TABLES = {
    "results": "results",
    "seeders": "seeders",
    "calls": "calls",
    "versions": "newest",
    "built_for": "built_for",
    "tested_with": "tested_with",
    "allowed_by": "allowed_by",
    "cpu_builds": "cpu_builds",
    "recorded": "recorded",
}
"""Files that hold one plain mapping, and what that is called once it is compiled."""


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
        found = _read(cache)
        if found is not None and found.schema == SCHEMA and found.digest == digest:
            return found
    compiled = compile_rules(root, digest)
    if cache is not None:
        _write(cache, msgspec.msgpack.encode(compiled))
    return compiled


def _read(cache: Path) -> Compiled | None:
    """The knowledge in a cached file; None where that is missing, of another version or damaged."""
    data = read_regular(str(cache))
    body = None if data is None else unseal(_KIND, data)
    try:
        return None if body is None else msgspec.msgpack.decode(body, type=Compiled)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


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
    """Write atomically; a cache that cannot be written is done without."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(str(path), [seal(_KIND, data)])
        others = [old for old in path.parent.iterdir() if old != path and _CACHED.fullmatch(old.name)]
        others.sort(key=lambda old: (old.stat().st_mtime_ns, old.name))
        for old in others[: 1 - KEPT]:
            old.unlink(missing_ok=True)
    except OSError:
        pass


def compile_rules(root: Path, digest: str = "") -> Compiled:
    """Read and check all of ``rules/``. Raises KnowledgeError at the first mistake."""
    rules: list[RulePage] = []
    parts: dict[str, list[Any]] = {kind: [] for kind in ENTRIES}
    tables: dict[str, dict[str, Any]] = {
        name: {} for name in ("exact", "prefixes", "exporting", "customary", *TABLES.values())
    }
    seen: dict[tuple[type[Any], str], str] = {}
    words: dict[str, str] = {}
    for path in rule_files(root):
        name = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".md":
            page = parse_page(name, text)
            for word in page_words(page):
                if word in words:
                    raise KnowledgeError(name, 2, f"`{word}` is already used in {words[word]}")
                words[word] = name
            rules.append(page)
            parts["hazards"] += matches_of(name, text, page, seen)
            continue
        # A kind of entries has a file of its name, or a directory of files.
        kind, slash, _ = name.removeprefix("knowledge/").partition("/")
        kind = kind if slash else kind.removesuffix(".yaml")
        if kind in ENTRIES and bool(slash) == (kind in DIRECTORIES):
            parts[kind] += entries(name, text, ENTRIES[kind], seen)
        elif kind == "aliases" and not slash:
            data = _plain(name, text)
            for table in ("exact", "prefixes", "exporting", "customary"):
                tables[table].update(data.get(table, {}))
        elif kind in TABLES and not slash:
            plain = _plain(name, text)
            if kind == "calls":
                _check_kinds(name, text, plain)
            tables[TABLES[kind]].update(plain)
        else:
            raise KnowledgeError(name, 1, "no part of the knowledge base is expected here")
    check_generators(parts["generators"], parts["rng"], parts["hazards"], seen)
    return msgspec.structs.replace(Compiled(digest=digest, rules=rules), **parts, **tables)


def matches_of(
    path: str, text: str, page: RulePage, seen: dict[tuple[type[Any], str], str]
) -> list[HazardEntry]:
    """What a rule that is data matches: the entries under ``match`` in the front matter of its page. Raises
    KnowledgeError."""
    data, node = parse(path, front_matter(text))
    children = {key.value: (key.start_mark.line + 1, value) for key, value in node.value}
    if "match" not in data:
        return []
    line, where = children["match"]
    return rule_matches(path, data["match"], where, line, page, seen)


def rule_matches(
    path: str, items: Any, node: Any, line: int, page: RulePage, seen: dict[tuple[type[Any], str], str]
) -> list[HazardEntry]:
    """The entries of a rule's ``match``; what they share with the rule is not written. Raises KnowledgeError."""
    if not isinstance(items, list):
        raise KnowledgeError(path, line, "`match` is a list of entries")
    named: list[Any] = []
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            raise KnowledgeError(
                path, node.value[number].start_mark.line + 1, "an entry of `match` is a mapping"
            )
        for key in ("id", "rule"):
            if key in item:
                at = next(k.start_mark.line + 1 for k, _ in node.value[number].value if k.value == key)
                raise KnowledgeError(
                    path, at, f"an entry of `match` has no `{key}`: the page says which rule it is"
                )
        implied: dict[str, Any] = {"id": f"{page.code}.{number + 1}", "rule": page.code}
        names = [
            name for key in ("apis", "attributes") for name in item.get(key) or () if isinstance(name, str)
        ]
        if page.libraries:
            implied["library"] = page.libraries[0]
        elif names:
            implied["library"] = names[0].partition(".")[0]
        else:
            implied["library"] = "python"
        named.append({**implied, **item})
    return entries_of(path, named, node, HazardEntry, {}, seen)


def check_generators(
    generators: list[GeneratorEntry],
    rng: list[RngEntry],
    hazards: list[HazardEntry],
    seen: dict[tuple[type[Any], str], str],
    others: Iterable[str] = (),
) -> None:
    """The generators that entries name exist, among these or the ``others``. ``seen`` are the places of the
    entries. Raises KnowledgeError."""
    known = ["own", "entropy", *others, *(one.id for one in generators)]
    named: list[tuple[Any, list[str]]] = [(one, [*one.seeds, *one.draws, *one.does_not_seed]) for one in rng]
    named += [(one, [*one.unless_seeded, *(one.callback.draws if one.callback else [])]) for one in hazards]
    named += [(one, [*one.replaces, *([one.seeded_from] if one.seeded_from else [])]) for one in generators]
    for entry, names in named:
        for name in names:
            if name not in known:
                path, _, line = seen[type(entry), entry.id].rpartition(":")
                text = f"there is no generator `{name}`"
                raise KnowledgeError(path, int(line), text + _nearest(name, known))


def _plain(path: str, text: str) -> dict[str, Any]:
    data = parse(path, text)[0]
    if not isinstance(data, dict):
        raise KnowledgeError(path, 1, "a mapping is expected")
    return data


def _check_kinds(path: str, text: str, table: dict[str, Any]) -> None:
    """The keys are kinds of calls, and each has a list of names. Raises KnowledgeError."""
    known = list(get_args(CallKind))
    node: Any = parse(path, text)[1]
    for key, _ in node.value:
        line = key.start_mark.line + 1
        if key.value not in known:
            raise KnowledgeError(
                path, line, f"`{key.value}` is no kind of calls" + _nearest(key.value, known)
            )
        names = table[key.value]
        if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
            raise KnowledgeError(path, line, f"`{key.value}` is a list of names")


def entries(
    path: str, text: str, kind: type[Any], seen: dict[tuple[type[Any], str], str] | None = None
) -> list[Any]:
    """The entries of a YAML file: a list, or a mapping with ``sources`` (short names for provenance) and
    ``entries``. ``seen`` are the places of the ids of other files. Raises KnowledgeError with the line of the
    entry that is wrong."""
    data, node = parse(path, text)
    sources: dict[str, Any] = {}
    if isinstance(data, dict):
        sources = data.get("sources", {})
        children = {key.value: value for key, value in node.value}
        node = children.get("entries", node)
        data = data.get("entries", [])
    if not isinstance(data, list):
        raise KnowledgeError(path, 1, "a list of entries is expected")
    return entries_of(path, data, node, kind, sources, {} if seen is None else seen)


def entries_of(
    path: str,
    data: list[Any],
    node: Any,
    kind: type[Any],
    sources: dict[str, Any],
    seen: dict[tuple[type[Any], str], str],
) -> list[Any]:
    """The entries of a list and its YAML node; see ``entries``."""
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
                path, _line_of(where, str(error), line), _explain(str(error), kind, item)
            ) from error
        if (kind, entry.id) in seen:
            raise KnowledgeError(path, line, f"id `{entry.id}` is already used at {seen[kind, entry.id]}")
        seen[kind, entry.id] = f"{path}:{line}"
        if isinstance(entry, OrderEntry):
            _check_order(path, line, entry)
        if isinstance(entry, RoleEntry):
            _check_names(path, where, line, entry)
        _check_ranges(path, line, entry)
        if isinstance(entry, HazardEntry):
            _check_hazard(path, where, line, entry)
        tests = [
            *getattr(entry, "when", []),
            *getattr(entry, "unless", []),
            *getattr(entry, "cpu", []),
            *getattr(entry, "beside", []),
        ]
        _check_conditions(path, line, tests)
        result.append(entry)
    return result


def _check_hazard(path: str, node: Any, line: int, entry: HazardEntry) -> None:
    """It names what it is about, and its texts have places only for what they can be filled with."""
    if not (entry.apis or entry.attributes or entry.env):
        raise KnowledgeError(path, line, "one of `apis`, `attributes` and `env` is needed")
    known = {"call", "api", *_arguments(entry.when), *(["version"] if entry.versions else [])}
    for key in ("message", "help", "help_beside", "subject"):
        text = getattr(entry, key)
        at = next((k.start_mark.line + 1 for k, _ in node.value if k.value == key), line)
        try:
            fields = [field for _, field, _, _ in string.Formatter().parse(text) if field is not None]
        except ValueError as error:
            raise KnowledgeError(path, at, f"`{key}`: {error}") from error
        for field in fields:
            name = re.split(r"[.\[]", field)[0]
            if name not in known or name != field:
                raise KnowledgeError(
                    path, at, f"`{key}` has no value for `{{{field}}}`" + _nearest(name, sorted(known))
                )


def _arguments(conditions: list[Condition]) -> set[str]:
    """The arguments that conditions test."""
    found: set[str] = set()
    for one in conditions:
        found |= {one.arg} if one.arg else set()
        for inner in (one.all_of, one.any_of, one.none_of):
            found |= _arguments(inner or [])
    return found


def _expanded(source: Any) -> list[str]:
    return [str(part) for part in source] if isinstance(source, list) else [str(source)]


def _check_names(path: str, node: Any, line: int, entry: RoleEntry) -> None:
    """Names of roles have a star at the end alone, for all that a module or class has."""
    wrong = next((name for name in entry.apis if "*" in name.removesuffix(".*")), None)
    if wrong is not None:
        named = next((k.start_mark.line + 1 for k, _ in node.value if k.value == "apis"), line)
        raise KnowledgeError(
            path, named, f"`{wrong}`: a name in `roles` takes a star only as `.*` at its end"
        )


def _check_order(path: str, line: int, entry: OrderEntry) -> None:
    """A source says which rule reports it, and how; nothing else does."""
    source = entry.role == "source" or bool(entry.key)
    if source != bool(entry.rule and entry.what and entry.help):
        needed = "needs" if source else "is no source and takes none of"
        raise KnowledgeError(path, line, f"`{entry.id}` {needed} `rule`, `what` and `help`")
    if entry.role == "type" and not (entry.value or entry.elements):
        raise KnowledgeError(path, line, f"`{entry.id}` says neither `value` nor `elements`")


def _check_ranges(path: str, line: int, entry: Any) -> None:
    from d9mlint.knowledge.versions import split

    ranges = [getattr(entry, "versions", "")]
    ranges += [item.versions for item in getattr(entry, "history", [])]
    for spec in ranges:
        try:
            split(spec)
        except ValueError as error:
            raise KnowledgeError(path, line, f"{error} (in `{entry.id}`)") from error


def _check_conditions(path: str, line: int, conditions: list[Condition]) -> None:
    """Each condition has exactly one test, and an argument unless it combines others."""
    for condition in conditions:
        tests = [name for name in CONDITION_TESTS if getattr(condition, name) not in (None, msgspec.UNSET)]
        inner = [one for name in ("all_of", "any_of", "none_of") for one in getattr(condition, name) or []]
        if len(tests) != 1:
            said = " and ".join(f"`{name}`" for name in tests) or "none"
            raise KnowledgeError(path, line, f"a condition has exactly one test, this one has {said}")
        if bool(condition.arg) == bool(inner):
            raise KnowledgeError(path, line, "a condition names one argument or combines other conditions")
        _check_conditions(path, line, inner)


def parse(path: str, text: str) -> tuple[Any, Any]:
    """The value of a YAML document, and its nodes, which know their lines. Raises KnowledgeError."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return load_yaml(text), yaml.compose(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise KnowledgeError(path, mark.line + 1 if mark else 1, f"no valid YAML: {error}") from error
    except (ValueError, RecursionError) as error:
        # A date or a number that is none, such as 2024-13-01, or thousands of brackets.
        raise KnowledgeError(path, 1, f"no valid YAML: {error}") from error


def _path(message: str) -> list[str]:
    """The keys and indices of the place that a validation message names: ``at `$.history[0].behaviour```."""
    found = re.search(r"at `\$(.*)`", message)
    steps = re.findall(r"\.(\w+)|\[(\d+)\]", found[1]) if found else []
    return [key or index for key, index in steps]


def _line_of(node: Any, message: str, fallback: int) -> int:
    """The line of the key that a validation message names, found in the entry's YAML node."""
    line = fallback
    unknown = re.search(r"unknown field `(\w+)`", message)
    for step in [*_path(message), *([unknown[1]] if unknown else [])]:
        value = getattr(node, "value", [])
        if not isinstance(value, list):
            break
        if step.isdigit():
            node = value[int(step)] if int(step) < len(value) else None
        else:
            pairs = [pair for pair in value if isinstance(pair, tuple)]
            key, node = next((pair for pair in pairs if pair[0].value == step), (None, None))
            line = key.start_mark.line + 1 if key is not None else line
        if node is None:
            break
        if step.isdigit():
            line = node.start_mark.line + 1
    return line


def _explain(message: str, kind: type[Any], item: Any) -> str:
    """A validation message, with the nearest known key or word where there is one."""
    path = _path(message)
    unknown = re.search(r"unknown field `(\w+)`", message)
    if unknown:
        names = _fields(kind, path)
        return f"unknown key `{unknown[1]}`" + _nearest(unknown[1], names)
    if "Invalid enum value" in message:
        given = item
        for step in path:
            given = given[int(step)] if step.isdigit() else given[step]
        words = _words(kind, path)
        named = ", ".join(f"`{word}`" for word in words)
        return f"`{path[0]}`: `{given}` is none of {named}" + _nearest(str(given), words)
    return message


def _nearest(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, 1)
    return f", did you mean `{near[0]}`?" if near else ""


def _type_at(kind: type[Any], path: list[str]) -> Any:
    """The type of the value at a path below an entry."""
    import msgspec.inspect as inspect

    found: Any = inspect.type_info(kind)
    for step in path:
        if isinstance(found, inspect.UnionType):
            found = next(
                (t for t in found.types if hasattr(t, "item_type" if step.isdigit() else "fields")), None
            )
        if step.isdigit():
            found = getattr(found, "item_type", None)
        else:
            found = next((f.type for f in getattr(found, "fields", ()) if f.name == step), None)
    return found


def _fields(kind: type[Any], path: list[str]) -> list[str]:
    import msgspec.inspect as inspect

    found = _type_at(kind, path)
    types = found.types if isinstance(found, inspect.UnionType) else (found,)
    return [field.encode_name for one in types for field in getattr(one, "fields", ())]


def _words(kind: type[Any], path: list[str]) -> list[str]:
    return [str(value) for value in getattr(_type_at(kind, path), "values", ())]
