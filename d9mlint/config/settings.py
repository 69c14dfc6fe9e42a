"""Settings: defaults, then the nearest configuration file, then the command line."""

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

import msgspec
from msgspec import Meta

from d9mlint.base.errors import UsageError, nearest
from d9mlint.base.files import is_below
from d9mlint.base.paths import absolute, boundary, is_inside, parents, read_limited
from d9mlint.base.toml import load_toml
from d9mlint.config.discover import DEFAULT_EXCLUDE

Severity = Literal["advice", "warning", "error"]
Confidence = Literal["low", "medium", "high"]
Device = Literal["cuda", "cpu", "xpu", "mps"]
Color = Literal["auto", "always", "never"]
Format = Literal[
    "full",
    "concise",
    "grouped",
    "json",
    "json-lines",
    "sarif",
    "github",
    "gitlab",
    "junit",
    "rdjson",
    "html",
]
FORMATS: tuple[str, ...] = get_args(Format)
SEVERITIES: tuple[str, ...] = get_args(Severity)
CONFIDENCES: tuple[str, ...] = get_args(Confidence)
DEVICES: tuple[str, ...] = get_args(Device)
COLORS: tuple[str, ...] = get_args(Color)
EXECUTORS = ("serial", "processes", "dask", "ray")

MOST_JOBS = 10_000

_VERSION = r"^[0-9]{1,9}(\.[0-9]{1,9}){0,3}$"
# Patterns of Meta itself are compiled at every start; these are for the schema, and compiled when a value is checked.
VERSION: dict[str, Any] = {"extra": {"kind": "version"}, "extra_json_schema": {"pattern": _VERSION}}
PATH: dict[str, Any] = {"extra": {"kind": "path"}}
"""Marks a value that is a path, relative to the file that it stands in."""
Rules = tuple[str, ...]
Patterns = tuple[str, ...]
Paths = tuple[str, ...]


class Keys(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """What a configuration file may hold: the type of a field is what is checked, its description is the help, the
    reference and the JSON schema."""

    select: Annotated[
        Rules,
        Meta(
            description="rules to enable: codes, prefixes, names, families or ALL (default: the default rules)"
        ),
    ] = ()
    extend_select: Annotated[Rules, Meta(description="rules to enable in addition")] = ()
    ignore: Annotated[Rules, Meta(description="rules to disable")] = ()
    extend_ignore: Annotated[Rules, Meta(description="rules to disable in addition")] = ()
    per_file_ignores: Annotated[
        dict[str, Rules], Meta(description="rules to ignore in files that match a pattern")
    ] = {}
    preview: Annotated[
        bool, Meta(description="whether to use preview rules, which are new and may still change")
    ] = False
    min_severity: Annotated[
        Severity | None, Meta(description="minimum severity to report (default: warning)")
    ] = None
    min_confidence: Annotated[Confidence, Meta(description="minimum confidence to report")] = "medium"
    exclude: Annotated[Patterns, Meta(description="patterns to exclude, replacing the defaults")] = tuple(
        DEFAULT_EXCLUDE
    )
    extend_exclude: Annotated[Patterns, Meta(description="patterns to exclude in addition")] = ()
    respect_gitignore: Annotated[bool, Meta(description="whether to skip files that git ignores")] = True
    force_exclude: Annotated[
        bool, Meta(description="whether exclusions apply to files that are named on the command line, too")
    ] = False
    required_version: Annotated[
        str,
        Meta(
            description="versions of d9mlint that this configuration is for, such as >=0.1",
            extra={"kind": "requirement"},
        ),
    ] = ""
    severity: Annotated[
        dict[str, Severity], Meta(description="severity of rules, replacing that of the rule page")
    ] = {}
    torch_version: Annotated[str, Meta(description="PyTorch version to check against", **VERSION)] = ""
    tensorflow_version: Annotated[
        str,
        Meta(description="TensorFlow version to check against", **VERSION),
    ] = ""
    device: Annotated[Device, Meta(description="device that the program runs on")] = "cuda"
    entry_points: Annotated[
        tuple[str, ...],
        Meta(
            description="files, or FILE:FUNCTION, that are entry points beside those that are found; "
            "globs are allowed"
        ),
    ] = ()
    output_format: Annotated[Format, Meta(description="output format")] = "full"
    fail_on: Annotated[Severity, Meta(description="minimum severity that causes exit status 1")] = "warning"
    baseline: Annotated[str, Meta(description="file of known findings, which are not reported", **PATH)] = ""
    evidence: Annotated[
        Paths, Meta(description="evidence files (written by --verify) to show next to findings", **PATH)
    ] = ()
    knowledge: Annotated[
        Paths, Meta(description="files of facts about your own functions and libraries", **PATH)
    ] = ()
    plugins: Annotated[
        tuple[str, ...], Meta(description="installed plugins whose rules and facts are used")
    ] = ()
    jobs: Annotated[
        int, Meta(description="number of worker processes (0: one per core)", ge=0, le=MOST_JOBS)
    ] = 0
    executor: Annotated[
        str,
        Meta(
            description="where programs are analyzed: serial, processes, dask or ray; for the last two with the "
            "address of a cluster, as in dask:tcp://10.0.0.1:8786, else on this machine",
            extra={"kind": "executor"},
            extra_json_schema={"pattern": f"^({'|'.join(EXECUTORS)})(:.+)?$"},
        ),
    ] = "processes"
    cache: Annotated[bool, Meta(description="whether to cache results")] = True
    cache_dir: Annotated[
        str,
        Meta(description="directory that holds .d9mlint_cache (default: the project root)", **PATH),
    ] = ""
    fix: Annotated[bool, Meta(description="whether to apply safe fixes")] = False
    unsafe_fixes: Annotated[bool, Meta(description="whether to apply unsafe fixes too")] = False
    fixable: Annotated[Rules, Meta(description="rules whose fixes are offered (default: ALL)")] = ("ALL",)
    unfixable: Annotated[Rules, Meta(description="rules whose fixes are not offered")] = ()
    color: Annotated[Color, Meta(description="when to use colors in text output")] = "auto"


class Settings(Keys, frozen=True, kw_only=True):
    """All settings of a run. Paths are absolute. ``origins`` says where each value comes from;
    ``base`` is the directory that patterns are relative to (None: the project's root); ``nested`` is whether
    configuration files in directories below count."""

    base: str | None = None
    nested: bool = True
    origins: dict[str, str] = {}


class Key(NamedTuple):
    """One setting as a field of ``Keys`` describes it: its type, its ``kind`` (``list``, ``table``, ``bool``, ``int``,
    ``path``, ``paths``, ``version``, ``requirement``, ``executor``, ``severities``, ``choice``), the values
    a choice has, and what it means."""

    type: Any
    kind: str
    about: str
    choices: tuple[str, ...] = ()


def _keys() -> dict[str, Key]:
    """The keys of a configuration file, by the fields of ``Keys``."""
    # Not get_type_hints: this module leaves its annotations as objects, because reading them from text takes
    # milliseconds at every start.
    hints = Keys.__annotations__
    found: dict[str, Key] = {}
    for name in Keys.__struct_fields__:
        plain, meta = get_args(hints[name])
        parts = get_args(plain)
        choices: tuple[str, ...] = ()
        if plain is bool or plain is int or plain is str:
            kind = (meta.extra or {}).get("kind", plain.__name__)
        elif get_origin(plain) is tuple:
            kind = "paths" if meta.extra else "list"
        elif get_origin(plain) is dict:
            kind = "table" if parts[1] is Rules else "severities"
        else:
            literal = plain if get_origin(plain) is Literal else parts[0]
            kind, choices = "choice", get_args(literal)
        found[name.replace("_", "-")] = Key(hints[name], kind, meta.description or "", choices)
    return found


KEYS = _keys()

CONFIG_NAMES = ("d9mlint.toml", "pyproject.toml")


def field(key: str) -> str:
    """The attribute of Settings for a configuration key."""
    return key.replace("-", "_")


EXTEND = "configuration file to inherit from; this file overrides its values"
"""What the key ``extend`` means: it is resolved while files are read, and is no setting."""


def config_schema() -> dict[str, Any]:
    """The JSON schema (2020-12) of ``d9mlint.toml`` and of ``[tool.d9mlint]``, for editors."""
    table = msgspec.json.schema(Keys)["$defs"]["Keys"]
    properties: dict[str, Any] = dict(table["properties"], extend={"type": "string", "description": EXTEND})
    # TOML has no null: the key is left out instead.
    least = properties["min-severity"]
    properties["min-severity"] = {"description": least["description"], **least["anyOf"][0]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "d9mlint",
        "description": "d9mlint.toml, or the table [tool.d9mlint] of pyproject.toml",
        "type": "object",
        "properties": dict(sorted(properties.items())),
        "additionalProperties": False,
    }


def load_settings(
    directory: str,
    *,
    config: str | None = None,
    isolated: bool = False,
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """Settings for a run about ``directory``. ``overrides`` are configuration keys given on the command line.

    Raises UsageError, naming file and line, for unknown keys and wrong values.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    base: str | None = None
    path = absolute(config) if config else None
    if path is None and not isolated:
        path = find_config(directory)
    if path is not None:
        try:
            values, origins = _read(path, (), boundary(directory))
        except RecursionError as error:
            raise UsageError(f"{path} is nested too deeply.") from error
        base = os.path.dirname(path)
    for key in PLACES_TO_WRITE:
        if key in values and key not in (overrides or {}):
            _must_be_inside(key, values[key], origins[key], directory)
    if "executor" in values and "executor" not in (overrides or {}):
        _must_be_local(values["executor"], origins["executor"], directory)
    for key, value in (overrides or {}).items():
        values[key] = _check(key, value, "command line", os.getcwd())
        origins[key] = "command line"
    fields = {field(k): v for k, v in values.items()}
    return Settings(base=base, nested=not config and not isolated, origins=origins, **fields)


PLACES_TO_WRITE = ("baseline", "cache-dir")
"""Keys that name what d9mlint writes: a project's configuration does not choose places outside of the project."""


def _must_be_inside(key: str, value: str, origin: str, directory: str) -> None:
    """Raises UsageError for a place outside of the project, and of the user's cache home for the cache, that
    the project's own configuration names. A configuration file outside of the project is the user's."""
    top = os.path.realpath(boundary(directory))
    if not value or not _is_of_project(origin, top):
        return
    allowed = [top, *(cache_homes() if key == "cache-dir" else ())]
    place = os.path.realpath(value)
    if not any(is_below(place, a) for a in allowed):
        raise UsageError(
            f"{origin}: {key} {value} is outside of the project ({top}); use --{key} on the command line instead."
        )


def _must_be_local(executor: str, origin: str, directory: str) -> None:
    """Raises UsageError for a cluster that the project's own configuration names: what is linted does not make
    this program open connections, or start servers."""
    if executor.partition(":")[0] in ("dask", "ray") and _is_of_project(
        origin, os.path.realpath(boundary(directory))
    ):
        raise UsageError(
            f"{origin}: a project's configuration cannot choose the executor {_cut(executor)}; use --executor on the "
            "command line or a configuration file outside of the project instead."
        )


def _is_of_project(origin: str, top: str) -> bool:
    """Whether a value comes from a configuration file in the project whose real directory is ``top``."""
    return is_below(os.path.realpath(origin.rpartition(":")[0]), top)


def cache_homes() -> list[str]:
    """The directory of the user for caches, without links; none where it is not known."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return [os.path.realpath(home)] if os.path.isabs(home) else []


def find_config(directory: str) -> str | None:
    """The nearest file at or above a directory that configures d9mlint. Links in the project that lead out of it
    are not followed."""
    top = boundary(directory)
    for candidate in parents(directory):
        for name in CONFIG_NAMES:
            path = f"{candidate.rstrip('/')}/{name}"
            if not os.path.isfile(path) or (is_inside(candidate, top) and not is_inside(path, top)):
                continue
            if name != "pyproject.toml" or _mentions(path):
                return path
    return None


def _mentions(path: str) -> bool:
    try:
        data = read_limited(path)
    except OSError:
        return False
    if b"d9mlint" not in data:
        return False
    tool = _parse(path).get("tool")
    return isinstance(tool, dict) and "d9mlint" in tool


def _parse(path: str) -> dict[str, Any]:
    try:
        return load_toml(_text(path))
    except RecursionError as error:
        raise UsageError(f"{path} is not valid TOML: it is nested too deeply.") from error
    except ValueError as error:
        raise UsageError(f"{path} is not valid TOML: {error}.") from error


def _text(path: str) -> str:
    """The text of a configuration file, without a byte order mark. Raises UsageError and UnicodeDecodeError."""
    try:
        return read_limited(path).decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}.") from error


def _read_extended(path: str, chain: tuple[str, ...], top: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The values of a file that another one extends. Of a file outside of ``top``, the project, nothing is
    quoted: the project chose it, and it may be anybody's."""
    if is_inside(path, top) or not os.path.exists(path):
        return _read(path, chain, top)
    try:
        return _read(path, chain, top)
    except UsageError:
        text = f"{chain[-1]} extends {path}, which is outside of the project and no valid configuration."
        raise UsageError(text) from None


def _read(path: str, chain: tuple[str, ...], top: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The checked values of a file and of those it extends, and the place of each."""
    if path in chain:
        raise UsageError(f"{path} extends itself through {' -> '.join((*chain, path))}.")
    if not os.path.isfile(path):
        if not chain:
            raise UsageError(f"{path} does not exist.")
        section = "tool.d9mlint" if os.path.basename(chain[-1]) == "pyproject.toml" else ""
        place = f"{chain[-1]}:{key_line(chain[-1], section, 'extend')}"
        raise UsageError(f"{place}: extended file {path} does not exist.")
    prefix, table = _table(path)
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    directory = os.path.dirname(path)
    if "extend" in table:
        place = f"{path}:{key_line(path, prefix, 'extend')}"
        if not isinstance(table["extend"], str) or "\0" in table["extend"]:
            raise UsageError(f"{place}: extend must be the path of a configuration file.")
        parent = absolute(os.path.expanduser(table["extend"]), directory)
        values, origins = _read_extended(parent, (*chain, path), top)
    for key, value in table.items():
        if key == "extend":
            continue
        place = f"{path}:{key_line(path, prefix, key)}"
        if key not in KEYS:
            raise UsageError(f"{place}: unknown key {_cut(key)}.{nearest(key, [*KEYS, 'extend'])}")
        entries = {
            f"{key}.{name}": f"{path}:{entry_line(path, prefix, key, name)}"
            for name in (value if isinstance(value, dict) else ())
        }
        values[key] = _check(key, value, place, directory, entries)
        origins = {k: v for k, v in origins.items() if not k.startswith(f"{key}.")} | entries
        origins[key] = place
    return values, origins


def _table(path: str) -> tuple[str, dict[str, Any]]:
    """The table of a file that configures d9mlint, and its name ("" for the whole file). Raises UsageError."""
    data = _parse(path)
    table: Any = data
    prefix = ""
    if os.path.basename(path) == "pyproject.toml" or "tool" in data:
        prefix = "tool.d9mlint"
        tool = data.get("tool", {})
        table = tool.get("d9mlint", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise UsageError(f"{path}: [{prefix}] is not a table.")
    return prefix, table


def configuration_files(directory: str, config: str | None) -> list[str]:
    """The configuration file that counts in a directory, and those that it extends, as far as they can be read."""
    found: list[str] = []
    path = absolute(config) if config else find_config(directory)
    while path is not None and path not in found:
        found.append(path)
        try:
            extended = _table(path)[1].get("extend")
        except (UsageError, UnicodeDecodeError):
            break
        if not isinstance(extended, str) or "\0" in extended:
            break
        path = absolute(os.path.expanduser(extended), os.path.dirname(path))
    return found


def key_line(path: str, table: str, key: str) -> int:
    """The 1-based line of a key (or of its table) in a TOML file; of the table's header when not found."""
    inside = not table
    header = 1
    wanted = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]")
    for number, line in enumerate(_text(path).split("\n"), 1):
        opened, _, rest = line.partition("[")
        name, closed, _ = rest.partition("]")
        if not opened.strip() and closed:
            name = re.sub(r"[\"'\s]", "", name)
            if name in (f"{table}.{key}".lstrip("."), key if not table else f"{table}.{key}"):
                return number
            inside = name == table
            header = number if inside else header
        elif inside and wanted.match(line):
            return number
    return header


def entry_line(path: str, table: str, key: str, name: str) -> int:
    """The 1-based line of the entry ``name`` of a table under ``key``; that of the key when it is not found."""
    quoted = rf"[\"']?{re.escape(name)}[\"']?\s*="
    text = _text(path)
    opened = key_line(path, table, key)
    for number, line in enumerate(text.split("\n")[opened - 1 :], opened):
        if number > opened and line.lstrip().startswith("["):
            break
        if re.match(rf"\s*(?:[\"']?{re.escape(key)}[\"']?\s*\.\s*)?{quoted}", line):
            return number
    return opened


EXPECTED = {
    "bool": "true or false",
    "int": f"a number from 0 to {MOST_JOBS}",
    "list": "a list of strings",
    "paths": "a list of paths",
    "table": "a table of patterns, each with a list of rules",
    "severities": f"a table of rules, each with one of {', '.join(SEVERITIES)}",
    "requirement": "a version range such as >=0.1",
    "version": "a version such as 2.4",
    "path": "a path",
}
"""What a value of a kind must be, in words."""
ENTRIES = {"table": "a list of rules", "severities": f"one of {', '.join(SEVERITIES)}"}
"""What each entry of a table must be, in words."""


def _check(key: str, value: Any, place: str, directory: str, entries: Mapping[str, str] | None = None) -> Any:
    """A value in the type of its key. Raises UsageError naming the place; ``entries`` are those of a table."""
    spec = KEYS[key]
    try:
        checked = msgspec.convert(value, spec.type)
        if spec.kind in ("path", "paths") and any(
            "\0" in p for p in ([checked], checked)[spec.kind == "paths"]
        ):
            raise msgspec.ValidationError
        if spec.kind == "version" and checked and not re.fullmatch(_VERSION[1:-1], checked):
            raise msgspec.ValidationError
    except msgspec.ValidationError:
        if spec.kind == "choice" and isinstance(value, str):
            known = ", ".join(spec.choices)
            hint = nearest(value, spec.choices)
            raise UsageError(f"{place}: {key} must be one of {known}, not {_shown(value)}.{hint}") from None
        expected = EXPECTED.get(spec.kind, "a string")
        if spec.kind == "version" and not isinstance(value, str):
            expected = 'a version in quotes, such as "2.4"'
        if isinstance(value, dict) and spec.kind in ENTRIES:
            name, part = next(pair for pair in value.items() if not _fits(dict([pair]), spec.type))
            place = (entries or {}).get(f"{key}.{name}", place)
            raise UsageError(
                f"{place}: {key}: {name} must be {ENTRIES[spec.kind]}, not {_shown(part)}."
            ) from None
        raise UsageError(f"{place}: {key} must be {expected}, not {_shown(value)}.") from None
    if spec.kind == "requirement":
        _require(checked, place)
    if spec.kind == "executor":
        _check_executor(checked, place)
    if spec.kind == "path" and checked:
        return absolute(os.path.expanduser(checked), directory)
    if spec.kind == "paths":
        return tuple(absolute(os.path.expanduser(path), directory) for path in checked)
    return checked


def _fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _shown(value: Any) -> str:
    """A wrong value as far as it helps to find it."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return "what it is"
    return _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"


def _check_executor(value: str, place: str) -> None:
    """Raises UsageError for what is no executor."""
    name, colon, address = value.partition(":")
    if name not in EXECUTORS:
        known = ", ".join(EXECUTORS)
        raise UsageError(
            f"{place}: executor must be one of {known}, not {_shown(value)}.{nearest(name, EXECUTORS)}"
        )
    if colon and (name not in ("dask", "ray") or not address.isprintable() or not address.strip()):
        what = "needs an address after the colon" if name in ("dask", "ray") else "takes no address"
        raise UsageError(f"{place}: executor {name} {what}.")


def _require(value: str, place: str) -> None:
    """Raises UsageError when this version of d9mlint is not one that the configuration is for."""
    if not value:
        return
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    from d9mlint import __version__

    try:
        wanted = SpecifierSet(value if value[:1] in "<>=!~" else f"=={value}")
    except InvalidSpecifier:
        expected = EXPECTED["requirement"]
        raise UsageError(f"{place}: required-version must be {expected}, not {_shown(value)}.") from None
    if not wanted.contains(__version__, prereleases=True):
        raise UsageError(f"{place}: this is d9mlint {__version__}, and required-version is {value}.")


def show_settings(settings: Settings) -> str:
    """All settings as TOML, each with where it comes from."""
    lines = []
    for key in sorted(KEYS):
        origin = settings.origins.get(key, "default")
        lines.append(f"{key} = {_toml(getattr(settings, field(key)))}  # {origin}")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    import json

    if value is None:
        return '""'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items())
        return "{" + inner + "}"
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
