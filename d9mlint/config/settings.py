"""Settings: defaults, then the nearest configuration file, then the command line."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from d9mlint.base.errors import UsageError, nearest
from d9mlint.base.files import is_below
from d9mlint.base.paths import absolute, boundary, is_inside, parents, read_limited
from d9mlint.config.discover import DEFAULT_EXCLUDE

FORMATS = (
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
)
SEVERITIES = ("advice", "warning", "error")
CONFIDENCES = ("low", "medium", "high")
DEVICES = ("cuda", "cpu")
EXECUTORS = ("serial", "processes", "dask", "ray")
COLORS = ("auto", "always", "never")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of a run. Paths are absolute. ``origins`` says where each value comes from;
    ``base`` is the directory that patterns are relative to (None: the project's root); ``nested`` is whether
    configuration files in directories below count."""

    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend_ignore: tuple[str, ...] = ()
    per_file_ignores: dict[str, tuple[str, ...]] = {}
    min_severity: str = ""
    min_confidence: str = "medium"
    exclude: tuple[str, ...] = tuple(DEFAULT_EXCLUDE)
    extend_exclude: tuple[str, ...] = ()
    respect_gitignore: bool = True
    force_exclude: bool = False
    required_version: str = ""
    severity: dict[str, str] = {}
    torch_version: str = ""
    tensorflow_version: str = ""
    device: str = "cuda"
    entry_points: tuple[str, ...] = ()
    output_format: str = "full"
    fail_on: str = "warning"
    baseline: str = ""
    evidence: tuple[str, ...] = ()
    knowledge: tuple[str, ...] = ()
    jobs: int = 0
    executor: str = "processes"
    cache: bool = True
    cache_dir: str = ""
    fix: bool = False
    unsafe_fixes: bool = False
    fixable: tuple[str, ...] = ("ALL",)
    unfixable: tuple[str, ...] = ()
    color: str = "auto"
    base: str | None = None
    nested: bool = True
    origins: dict[str, str] = {}


class Key(NamedTuple):
    """One setting: its ``kind`` (``list``, ``table``, ``bool``, ``int``, ``path``, ``paths``, ``version``,
    ``choice``), the values a choice has, and what it means."""

    kind: str
    about: str
    choices: tuple[str, ...] = ()


KEYS: dict[str, Key] = {
    "select": Key(
        "list", "rules to enable: codes, prefixes, names, families or ALL (default: the default rules)"
    ),
    "extend-select": Key("list", "rules to enable in addition"),
    "ignore": Key("list", "rules to disable"),
    "extend-ignore": Key("list", "rules to disable in addition"),
    "per-file-ignores": Key("table", "rules to ignore in files that match a pattern"),
    "min-severity": Key("choice", "minimum severity to report (default: warning)", SEVERITIES),
    "min-confidence": Key("choice", "minimum confidence to report", CONFIDENCES),
    "exclude": Key("list", "patterns to exclude, replacing the defaults"),
    "extend-exclude": Key("list", "patterns to exclude in addition"),
    "respect-gitignore": Key("bool", "whether to skip files that git ignores"),
    "force-exclude": Key("bool", "whether exclusions apply to files that are named on the command line, too"),
    "required-version": Key(
        "requirement", "versions of d9mlint that this configuration is for, such as >=0.1"
    ),
    "severity": Key("severities", "severity of rules, replacing that of the rule page"),
    "torch-version": Key("version", "PyTorch version to check against"),
    "tensorflow-version": Key("version", "TensorFlow version to check against"),
    "device": Key("choice", "device that the program runs on", DEVICES),
    "entry-points": Key(
        "list",
        "files, or FILE:FUNCTION, that are entry points beside those that are found; globs are allowed",
    ),
    "output-format": Key("choice", "output format", FORMATS),
    "fail-on": Key("choice", "minimum severity that causes exit status 1", SEVERITIES),
    "baseline": Key("path", "file of known findings, which are not reported"),
    "evidence": Key("paths", "evidence files (written by --verify) to show next to findings"),
    "knowledge": Key("paths", "files of facts about your own functions and libraries"),
    "jobs": Key("int", "number of worker processes (0: one per core)"),
    "executor": Key(
        "executor",
        "where programs are analyzed: serial, processes, dask or ray; for the last two with the address of a "
        "cluster, as in dask:tcp://10.0.0.1:8786, else on this machine",
    ),
    "cache": Key("bool", "whether to cache results"),
    "cache-dir": Key("path", "directory that holds .d9mlint_cache (default: the project root)"),
    "fix": Key("bool", "whether to apply safe fixes"),
    "unsafe-fixes": Key("bool", "whether to apply unsafe fixes too"),
    "fixable": Key("list", "rules whose fixes are offered (default: ALL)"),
    "unfixable": Key("list", "rules whose fixes are not offered"),
    "color": Key("choice", "when to use colors in text output", COLORS),
}

MOST_JOBS = 10_000

CONFIG_NAMES = ("d9mlint.toml", "pyproject.toml")


def field(key: str) -> str:
    """The attribute of Settings for a configuration key."""
    return key.replace("-", "_")


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
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        data: dict[str, Any] = tomllib.loads(_text(path))
        return data
    except RecursionError as error:
        raise UsageError(f"{path} is not valid TOML: it is nested too deeply.") from error
    except ValueError as error:
        # Also of a number with more digits than Python reads.
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
        raise UsageError(f"{chain[-1] + ': extended file ' if chain else ''}{path} does not exist.")
    data = _parse(path)
    table: Any = data
    prefix = ""
    if os.path.basename(path) == "pyproject.toml" or "tool" in data:
        prefix = "tool.d9mlint"
        tool = data.get("tool", {})
        table = tool.get("d9mlint", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise UsageError(f"{path}: [{prefix}] is not a table.")
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
        values[key] = _check(key, value, place, directory)
        origins[key] = place
    return values, origins


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


def _check(key: str, value: Any, place: str, directory: str) -> Any:
    """A value in the type of its key. Raises UsageError naming the place."""
    spec = KEYS[key]

    def wrong(expected: str) -> UsageError:
        return UsageError(f"{place}: {key} must be {expected}, not {_shown(value)}.")

    if spec.kind == "bool":
        if not isinstance(value, bool):
            raise wrong("true or false")
        return value
    if spec.kind == "int":
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_JOBS:
            raise wrong(f"a number from 0 to {MOST_JOBS}")
        return value
    if spec.kind == "list":
        return _strings(value, wrong)
    if spec.kind == "paths":
        if any("\0" in path for path in _strings(value, wrong)):
            raise wrong("a list of paths")
        return tuple(absolute(os.path.expanduser(path), directory) for path in _strings(value, wrong))
    if spec.kind == "table":
        if not isinstance(value, dict):
            raise wrong("a table of patterns with lists of rules")
        return {str(k): _strings(v, wrong) for k, v in value.items()}
    if spec.kind == "severities":
        if not isinstance(value, dict) or not all(v in SEVERITIES for v in value.values()):
            raise wrong(f"a table of rules with one of {', '.join(SEVERITIES)}")
        return {str(k): str(v) for k, v in value.items()}
    if not isinstance(value, str):
        raise wrong("a string")
    if spec.kind == "requirement":
        _require(value, place, wrong)
    if spec.kind == "executor":
        _check_executor(value, place)
    if spec.kind == "choice" and value not in spec.choices:
        known = ", ".join(spec.choices)
        hint = nearest(value, spec.choices)
        raise UsageError(f"{place}: {key} must be one of {known}, not {_shown(value)}.{hint}")
    if spec.kind == "version" and not re.fullmatch(r"\d{1,9}(\.\d{1,9}){0,3}", value):
        raise wrong("a version such as 2.4")
    if spec.kind == "path" and "\0" in value:
        raise wrong("a path")
    if spec.kind == "path" and value:
        return absolute(os.path.expanduser(value), directory)
    return value


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


def _shown(value: Any) -> str:
    """A wrong value as far as it helps to find it."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return "what it is"
    return _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"


def _require(value: str, place: str, wrong: Any) -> None:
    """Raises UsageError when this version of d9mlint is not one that the configuration is for."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    from d9mlint import __version__

    try:
        wanted = SpecifierSet(value if value[:1] in "<>=!~" else f"=={value}")
    except InvalidSpecifier:
        raise wrong("a version range such as >=0.1") from None
    if not wanted.contains(__version__, prereleases=True):
        raise UsageError(f"{place}: this is d9mlint {__version__}, and required-version is {value}.")


def _strings(value: Any, wrong: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value):
        raise wrong("a list of strings")
    return tuple(value)


def show_settings(settings: Settings) -> str:
    """All settings as TOML, each with where it comes from."""
    lines = []
    for key in sorted(KEYS):
        origin = settings.origins.get(key, "default")
        lines.append(f"{key} = {_toml(getattr(settings, field(key)))}  # {origin}")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    import json

    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items())
        return "{" + inner + "}"
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
