"""Configuration files next to the code: YAML, JSON, TOML and INI read by a literal path, and hydra's defaults list."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from configparser import ConfigParser
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.base.paths import boundary, is_inside, read_limited
from d9mlint.base.toml import load_toml
from d9mlint.base.yaml_limits import load_yaml
from d9mlint.interp import values as v
from d9mlint.interp.library.own_paths import end_of, literal_path
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

STORED = "hydra.core.config_store"
"""Before the names of the configurations that the program stores, among the library attributes."""
YAML = (".yaml", ".yml")
"""The endings of the names of YAML files."""
JSON = (".json", ".json5", ".jsonc")
"""The endings of the names of JSON files; all but the first may have comments and commas at the end."""
INI = (".ini", ".cfg", ".conf")
"""The endings of the names of files with settings in sections."""
_CONFIGURATIONS = (*YAML, *JSON, *INI, ".toml")


def constants(value: v.Value) -> v.Value:
    """What a file holds that the program always reads: what is switched on or off there is no option of the command line.
    Numbers, texts and nothing at all are for those to fill in who run the program."""
    if isinstance(value, v.Mapping):
        return v.Mapping(
            {key: constants(one) for key, one in value.items.items()}, attributes=value.attributes
        )
    if isinstance(value, v.Items):
        return v.Items(value.kind, [constants(one) for one in value.elts], value.open)
    return v.Lit(value.value) if isinstance(value, v.Lit) and isinstance(value.value, bool) else value


def config_value(data: Any, label: str, prefix: str = "", references: _References | None = None) -> v.Value:
    """Plain data as abstract values; leaves are options named by their dotted key. ``references`` find what an
    interpolation stands for."""
    if isinstance(data, dict):
        return v.Mapping(
            {str(k): config_value(x, label, f"{prefix}{k}.", references) for k, x in data.items()},
            attributes=True,
        )
    if isinstance(data, list):
        # One that is empty is there to be filled, as an option of the command line that is a list.
        elements = [config_value(x, label, f"{prefix}{i}.", references) for i, x in enumerate(data)]
        return v.Items("l", elements, open=not elements)
    if isinstance(data, str) and "${" in data:
        return references.value(data, label, prefix) if references is not None else v.UNKNOWN
    if data is None or isinstance(data, (bool, int, float, str)):
        return v.Lit(data, prefix.rstrip("."))
    return v.UNKNOWN


class _Node(NamedTuple):
    """A part of a configuration, and its path from the root."""

    data: Any
    path: tuple[str, ...]


class _References:
    """What the interpolations of a whole configuration stand for: `${a.b}` is the node at `a.b`, whatever that is;
    `${.b}` is one next to the key that has it, `${..b}` one next to the mapping around that."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._left = _MOST_REFERENCED
        self._within: list[tuple[str, ...]] = []
        """The paths of the nodes that are being made for an interpolation."""

    def value(self, text: str, label: str, prefix: str) -> v.Value:
        """What an interpolation at a place stands for; unknown where it is part of a longer text, or of another kind."""
        found = self._followed(_Node(text, tuple(prefix.removesuffix(".").split("."))))
        if found is None or found.path in self._within or found.data == _MISSING:
            return v.UNKNOWN
        self._left -= _size(found.data, self._left)
        if self._left <= 0:
            return v.UNKNOWN
        self._within.append(found.path)
        made = config_value(found.data, label, "".join(f"{key}." for key in found.path), self)
        self._within.pop()
        return made

    def _followed(self, node: _Node, depth: int = 0) -> _Node | None:
        """The node that interpolations lead to, one after the other."""
        if not isinstance(node.data, str) or "${" not in node.data:
            return node
        reference = _REFERENCE.fullmatch(node.data.strip())
        up = len(reference["up"]) if reference is not None else 0
        if reference is None or up > len(node.path) or depth >= _DEEPEST:
            return None
        above = node.path[:-up] if up else ()
        found: _Node | None = _Node(self._root, ())
        for key in (*above, *_KEYS.findall(reference["path"])):
            found = _part(found, key) if found is not None else None
            found = self._followed(found, depth + 1) if found is not None else None
        return found


def _part(node: _Node, key: str) -> _Node | None:
    """What a node has under a key as an interpolation writes it."""
    parts = dict(enumerate(node.data)) if isinstance(node.data, list) else node.data
    named = [one for one in parts if str(one) == key] if isinstance(parts, dict) else []
    return _Node(parts[named[0]], (*node.path, key)) if named else None


def _size(data: Any, most: int) -> int:
    """How many parts a configuration has, as far as that is no more than some number."""
    count, parts = 0, [data]
    while parts and count <= most:
        one = parts.pop()
        count += 1
        parts.extend(one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
    return count


_MOST_REFERENCED = 10_000
"""So many parts of a configuration stand for interpolations: each may hold others."""
_REFERENCE = re.compile(r"\$\{(?P<up>\.*)(?P<path>[\w\-/]+(?:\.[\w\-/]+|\[[\w\-/]+\])*)\}")
_KEYS = re.compile(r"[\w\-/]+")


def parse_file(path: str) -> Any:
    """The content of a YAML, JSON, TOML or INI file, or None when it cannot be read as such."""
    try:
        text = read_limited(path).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    try:
        if path.endswith(JSON):
            return _load_json(text)
        if path.endswith(".toml"):
            return load_toml(text)
        return _load_ini(text) if path.endswith(INI) else load_yaml(text)
    except Exception:
        # Any malformed configuration is simply not known; it is not ours to report.
        return None


def _load_ini(text: str) -> dict[str, dict[str, Any]]:
    """The sections of a text with settings, which are texts; one that refers to others is not known.

    Raises:
        Exception: the text has no sections.
    """
    parser = ConfigParser(interpolation=None)
    parser.read_string(text)
    return {
        name: {key: one if one is None or "%(" not in one else ... for key, one in parser.items(name)}
        for name in parser.sections()
    }


def _load_json(text: str) -> Any:
    """The content of a JSON text, which may have comments, commas at the end and keys without quotes, as JSON5 has them.

    Raises:
        Exception: the text is neither.
    """
    try:
        return json.loads(text)
    except ValueError:
        # Without its comments and tabs it is YAML between braces.
        return load_yaml(_COMMENTS.sub(lambda found: found["kept"] or " ", text))


_COMMENTS = re.compile(r"""(?P<kept>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|//[^\n]*|/\*.*?\*/|\t""", re.DOTALL)


def load_literal(interp: Interp, path: str) -> Any:
    """A configuration file by a path as written in the code: next to the entry point, the file, or the root."""
    if not path.endswith(_CONFIGURATIONS):
        return None
    full = found_in(interp, path, [interp.entry_directory, interp.frame.file.directory, interp.modules.root])
    return parse_file(full) if full is not None else None


def found_in(interp: Interp, path: str, bases: list[str]) -> str | None:
    """The first file of this path in some directories; the program's findings depend on what it holds."""
    for base in dict.fromkeys(b for b in bases if b):
        full = os.path.normpath(os.path.join(base, path))
        if os.path.isfile(full) and is_inside(full, boundary(interp.modules.root)):
            interp.config_files.add(full)
            return full
    return None


_MOST_FILES = 100
_MOST_FOLDERS = 1000
_DEEPEST_FOLDER = 3


def files_below(interp: Interp, top: str, endings: tuple[str, ...]) -> Iterator[str]:
    """The files in a directory of the project, and in those below, whose names end so."""
    if not top or not is_inside(top, boundary(interp.modules.root)):
        return
    count = 0
    for number, (directory, below, names) in enumerate(os.walk(top)):
        depth = os.path.relpath(directory, top).count(os.sep) + (directory != top)
        below[:] = sorted(one for one in below if not one.startswith(".")) if depth < _DEEPEST_FOLDER else []
        if number == _MOST_FOLDERS:
            return
        interp.config_files.add(directory)
        for name in sorted(names):
            if name.endswith(endings) and not name.startswith("."):
                count += 1
                if count > _MOST_FILES:
                    return
                yield os.path.join(directory, name)


class Composed(NamedTuple):
    """A configuration, and what the command line has to choose for it: ``data=mnist``."""

    value: v.Value
    chosen: tuple[str, ...] = ()


def found_by_end(interp: Interp, path: v.Value | None, name: str = "") -> str | None:
    """The only file of the project that a path can be whose folders are known at the end and not at the beginning:
    ``os.path.join(os.environ["ROOT"], "conf", "run.yaml")``; None where none or several end so."""
    end = os.path.normpath(os.path.join(end_of(path), name)).rpartition(f"{os.pardir}/")[2]
    if not end.endswith(_CONFIGURATIONS):
        return None
    last = os.path.basename(end)
    found = [
        one
        for one in files_below(interp, interp.modules.root, (last,))
        if os.path.join("/", os.path.relpath(one, interp.modules.root)).endswith(f"/{end}")
    ]
    interp.config_files.update(found)
    return found[0] if len(found) == 1 else None


def folder_of(interp: Interp, path: v.Value | None, name: str, directory: str) -> str:
    """The folder with the configurations of Hydra, which a path names relative to the calling file."""
    known = literal_path(path)
    if known is None and path is not None and not v.is_none(path):
        full = found_by_end(interp, path, _with_ending(name))
        if full is not None:
            # The name of a configuration may have folders, too.
            return os.path.normpath(os.path.join(os.path.dirname(full), *[os.pardir] * name.count("/")))
    return os.path.normpath(os.path.join(directory, known or ""))


def _with_ending(name: str) -> str:
    return name if name.endswith(YAML) else f"{name}.yaml"


def hydra_configs(interp: Interp, func: v.Func, args: v.Args) -> list[Composed]:
    """The configuration that ``@hydra.main(config_path=..., config_name=...)`` composes by default; before Hydra 1.1
    ``config_path`` may be the path of the file itself. Where the lists leave the choice of a group to the command line, or
    choose a file that is not there, there is one configuration for each file of the group; and for other files of groups
    that have a default, as far as there are not too many."""
    path, name = args.get("config_path", 0), args.get("config_name", 1)
    relative = literal_path(path) or ""
    leaf = name.value if isinstance(name, v.Lit) and isinstance(name.value, str) else ""
    early = not leaf and relative.endswith(YAML)
    if early:
        relative, leaf = os.path.split(relative)
    if not leaf:
        return _of_any_name(interp, func, path) or [Composed(v.Mapping({}, open=True, attributes=True))]
    if early:
        base = os.path.normpath(os.path.join(func.file.directory, relative))
    else:
        base = folder_of(interp, path, leaf, func.file.directory)
    asked = _asked_for(interp, func)
    found, groups, offered = _composed(interp, base, leaf, {}, [], early, asked)
    first = {group.path: group.names[0] for group in groups}
    configs = [Composed(found, tuple(group.choice(first[group.path]) for group in groups))]
    others: list[dict[str, str]] = []
    for other in [name for group in groups for name in group.names]:
        # Files of one name in several groups are made for each other.
        together = {group.path: other if other in group.names else group.names[0] for group in groups}
        if together != first and together not in others:
            others.append(together)
    for chosen in others[: v.MAX_ALTERNATIVES - 1]:
        value, needed, _ = _composed(interp, base, leaf, chosen, [], early, asked)
        # What differs from the first configuration is said first; what the other file leaves open has its first choice, too.
        said = sorted(groups, key=lambda one: chosen[one.path] == first[one.path])
        more = [one.choice(one.names[0]) for one in needed if one.path not in first]
        configs.append(Composed(value, (*(one.choice(chosen[one.path]) for one in said), *more)))
    given = [one.choice(first[one.path]) for one in groups]
    for group, instead in _instead(interp, base, offered)[: v.MAX_ALTERNATIVES - len(configs)]:
        value, needed, _ = _composed(interp, base, leaf, {**first, group.path: instead}, [], early, asked)
        more = [one.choice(one.names[0]) for one in needed]
        configs.append(Composed(value, (group.choice(instead), *given, *more)))
    return configs


def _of_any_name(interp: Interp, func: v.Func, path: v.Value | None) -> list[Composed]:
    """The configurations of which the command line has to name one (``--config-name train``): those in the folder that have
    all that the program asks for, as far as any of them has it."""
    relative, asked = literal_path(path), _asked_for(interp, func)
    if not relative or not asked:
        return []
    base = os.path.normpath(os.path.join(func.file.directory, relative))
    found: list[tuple[str, v.Mapping]] = []
    for file in files_below(interp, base, YAML):
        name = os.path.relpath(file, base).removesuffix(".yaml")
        if os.sep not in name and len(found) < _MOST_NAMED:
            value = _composed(interp, base, name, {}, [], False, asked)[0]
            if isinstance(value, v.Mapping) and value.items:
                found.append((name, value))
    needed = {key for key in asked if any(key in value.items for _, value in found)}
    fitting: dict[Any, Composed] = {}
    for name, value in found:
        if needed and needed <= value.items.keys():
            # Of those that make objects of the same classes one is enough.
            fitting.setdefault(_classes(value) or name, Composed(value, (f"--config-name={name}",)))
    return list(fitting.values())[: v.MAX_ALTERNATIVES]


_MOST_NAMED = 32


def _classes(config: v.Value) -> frozenset[Any]:
    """The names of all classes of which a configuration makes objects."""
    found: set[Any] = set()
    parts = [config]
    while parts:
        part = parts.pop()
        if isinstance(part, v.Mapping):
            target = part.items.get("_target_")
            found.update([target.value] if isinstance(target, v.Lit) else [])
            parts += part.items.values()
        elif isinstance(part, v.Items):
            parts += part.elts
    return frozenset(found)


def _instead(interp: Interp, base: str, offered: list[_Group]) -> list[tuple[_Group, str]]:
    """The files of groups that the command line may choose in place of those which the lists choose, which are the first
    of their groups, as far as they name something else: those that make other objects come first, then one of each group."""
    found: list[tuple[bool, int, _Group, str]] = []
    for group in offered:
        folder = os.path.join(base, group.path)
        usual, *others = (_texts(found_in(interp, _with_ending(name), [folder])) for name in group.names)
        for number, texts in enumerate(others, 1):
            if new := texts - usual:
                makes = any(key == "_target_" for key, _ in new)
                found.append((not makes, number, group, group.names[number]))
    return [(group, name) for _, _, group, name in sorted(found, key=lambda one: one[:2])]


def _texts(path: str | None) -> frozenset[tuple[str, str]]:
    """The texts in a configuration file, with their keys."""
    parts: list[Any] = [parse_file(path) if path is not None else None]
    found: set[tuple[str, str]] = set()
    while parts:
        part = parts.pop()
        parts += part.values() if isinstance(part, dict) else part if isinstance(part, list) else []
        if isinstance(part, dict):
            found.update((str(key), one) for key, one in part.items() if isinstance(one, str))
    return frozenset(found)


def _asked_for(interp: Interp, func: v.Func) -> frozenset[str]:
    """The parts of its configuration that the file of a program asks for: ``cfg.data``, ``cfg["data"]``."""
    if not func.fn.params:
        return frozenset()
    config = func.fn.params[0].name
    asked = set()
    for function in interp.whole(func.file).functions:
        for node in nodes(function.body):
            if isinstance(node, m.Name) and node.id.startswith(f"{config}."):
                asked.add(node.id.split(".")[1])
            elif isinstance(node, m.Subscript) and isinstance(node.value, m.Name) and node.value.id == config:
                key = node.index.value if isinstance(node.index, m.Const) else None
                if isinstance(key, str):
                    asked.add(key)
    return frozenset(asked)


def composed(interp: Interp, base: str, name: str, overrides: list[str]) -> v.Value:
    """The configuration that ``hydra.compose`` gives with overrides as they are written on the command line."""
    groups: dict[str, Any] = {}
    values: list[tuple[str, str]] = []
    for override in overrides:
        key, equals, value = override.lstrip("+~").partition("=")
        if equals and os.path.isdir(os.path.join(base, key)):
            groups[key] = value
        elif equals:
            values.append((key, value))
    return _composed(interp, base, name, groups, values)[0]


def _composed(
    interp: Interp,
    base: str,
    name: str,
    groups: Mapping[str, Any],
    values: list[tuple[str, str]],
    early: bool = False,
    asked: frozenset[str] = frozenset(),
) -> tuple[v.Value, list[_Group], list[_Group]]:
    """A whole configuration as an abstract value, with the choices and values of the command line, the groups whose
    choice is left to it, and those of which it may choose another file. ``asked`` are parts of the configuration that
    the program asks for."""
    composition = _Composition(interp, base, groups, early)
    if not composition.add("", name, (), None, "", 0):
        return v.Mapping({}, open=True, attributes=True), [], []
    if composition.overridden:
        # Which choices are overridden is known when every list has been read: then it is composed again.
        composition = _Composition(interp, base, {**composition.overridden, **groups}, early)
        composition.add("", name, (), None, "", 0)
    if composition.complete:
        for group in sorted(asked - composition.data.keys()):
            composition.add_unlisted(group)
    data = composition.data
    for key, value in values:
        *above, last = key.split(".")
        into = _inner(data, above)
        if into is None:
            continue
        try:
            into[last] = load_yaml(value)
        except Exception:
            # Hydra's own grammar is wider than YAML: what it means is not known then.
            into[last] = "${" + value
    found = config_value(data, name, references=_References(data))
    if isinstance(found, v.Mapping) and not composition.complete:
        found.open = True
    return found, list(composition.left_open.values()), list(composition.offered.values())


class _Group(NamedTuple):
    """A group of which the command line has to choose a file, or may: its path, what precedes the name of the file there,
    and the names of its files."""

    path: str
    key: str
    names: list[str]

    def choice(self, name: str) -> str:
        """What the command line says to choose a file."""
        return f"{self.key}={name}"


_INTERPOLATED = re.compile(r"\$\{([\w/]+)\}")
"""The choice of another group as a part of a choice: ``${data}_${model}``."""
_MISSING = "???"
"""What stands for a choice, or a value, that has to be given."""
_PACKAGE = re.compile(r"\s*#\s*@package\s+(\S+)\s*$")
_DEEPEST = 8


class _Composition:
    """A hydra configuration: the files of its defaults lists, each merged at its package.

    ``choices`` replace those that the lists make for a group. ``overridden`` are the choices of the entries that
    begin with ``override``; ``complete`` is false when a file that a list names is not there (a structured
    configuration, a plugin's). ``left_open`` are the groups of which the command line has to choose a file, since none is
    chosen, or one that is not there; ``offered`` are those of which the lists choose one of several, which is the first of
    its names. ``early`` is whether Hydra is older than 1.1: a file is merged before what its list
    names, and that is merged at the root unless its header names another package.
    """

    def __init__(self, interp: Interp, base: str, choices: Mapping[str, Any], early: bool = False) -> None:
        self.interp = interp
        self.base = base
        self.choices = choices
        self.early = early
        self.data: dict[str, Any] = {}
        self.overridden: dict[str, Any] = {}
        self.left_open: dict[str, _Group] = {}
        self.offered: dict[str, _Group] = {}
        self.complete = True
        self._listed: set[str] = set()
        self._chosen: dict[str, str] = {}
        self._searches = False

    def add(
        self, group: str, name: str, parent: tuple[str, ...], given: str | None, usual: str, depth: int
    ) -> bool:
        """Merge one file and what its list names; ``given`` is the package that the entry in the list names,
        ``usual`` the one it has where neither the entry nor the file's header names one."""
        own, header = self._read(group, name, depth)
        if own is None:
            return False
        said = given if given is not None else header if header is not None else usual
        package = _package(parent, said, group, name)
        listed = own.pop("defaults", None)
        hydra = own.get("hydra")
        self._searches |= isinstance(hydra, dict) and "searchpath" in hydra
        entries = listed if isinstance(listed, list) else []
        merged = self.early and "_self_" not in entries
        if merged:
            self._merge(package, own)
        for entry in entries:
            if entry == "_self_":
                self._merge(package, own)
                merged = True
            elif isinstance(entry, str):
                path, _, into = entry.partition("@")
                directory, _, leaf = path.rpartition("/")
                self._include(group, directory, leaf, package, into or None, depth)
            elif isinstance(entry, dict):
                optional = entry.get("optional") is True
                for key, choice in entry.items():
                    self._choose(group, str(key), choice, package, depth, optional)
        if not merged:
            self._merge(package, own)
        return True

    def _choose(
        self, group: str, key: str, choice: Any, package: tuple[str, ...], depth: int, optional: bool
    ) -> None:
        """``group: option``, ``/group@package: [option, option]`` and ``override group: option``."""
        words = key.split()
        target, _, into = words[-1].partition("@")
        path = _joined(group, target)
        if path == "hydra" or path.startswith("hydra/"):
            return
        if "override" in words[:-1]:
            self.overridden[path] = choice
            return
        choice = self.choices.get(path, choice)
        if isinstance(choice, str):
            choice = _INTERPOLATED.sub(lambda found: self._chosen.get(found[1], found[0]), choice)
        optional = optional or "optional" in words[:-1]
        self._listed.add(path)
        group_key = f"{path}@{into}" if into else path
        if isinstance(choice, str) and not optional and not self._is_there(path, choice):
            open_group = self._left_open(path, group_key)
            choice = open_group.names[0] if open_group is not None else choice
        if isinstance(choice, str):
            self._chosen[path] = choice
            self._offer(path, group_key, choice)
        for one in choice if isinstance(choice, list) else [choice]:
            if isinstance(one, str):
                self._include(group, target, one, package, into or None, depth, optional)

    def add_unlisted(self, group: str) -> None:
        """Merge a file of a group that no list names, of which the command line has to add one."""
        found = self._left_open(group, f"+{group}") if group not in self._listed else None
        name = self.choices.get(group, found.names[0]) if found is not None else None
        if isinstance(name, str):
            self._include("", group, name, (), None, 0)

    def _is_there(self, group: str, name: str) -> bool:
        """Whether a choice of a group is a file of the project, or may come from elsewhere: from what the program or a
        library stores, from another directory, or from a name that is not known here."""
        if "$" in name or self._searches:
            return True
        if name != _MISSING and self.interp.library_attribute(f"{STORED}.{group}/{name}") is not None:
            return True
        return name != _MISSING and os.path.isfile(self._path(group, name))

    def _left_open(self, group: str, key: str) -> _Group | None:
        """A group of which the command line has to choose one of the files that it has; None where it has none."""
        files = self._files(group)
        if not files:
            return None
        found = self.left_open[group] = _Group(group, key, files)
        return found

    def _offer(self, group: str, key: str, chosen: str) -> None:
        """Keep a group of which the command line may choose another file than the one that a list chooses."""
        others = [one for one in self._files(group) if one != chosen]
        if others and group not in self.left_open and os.path.isfile(self._path(group, chosen)):
            self.offered.setdefault(group, _Group(group, key, [chosen, *others]))

    def _files(self, group: str) -> list[str]:
        """The names of the files of a group."""
        top = os.path.join(self.base, group)
        try:
            names = sorted(os.listdir(top)) if is_inside(top, boundary(self.interp.modules.root)) else []
        except OSError:
            names = []
        files = [one.removesuffix(".yaml") for one in names if one.endswith(".yaml") and one[0] not in "._"]
        if files:
            self.interp.config_files.add(top)
        return files

    def _path(self, group: str, name: str) -> str:
        return os.path.normpath(os.path.join(self.base, group, _with_ending(name)))

    def _include(
        self,
        group: str,
        target: str,
        name: str,
        package: tuple[str, ...],
        into: str | None,
        depth: int,
        optional: bool = False,
    ) -> None:
        # The package of a group that is named relative to another is relative to that one's package, too.
        usual = "" if self.early else os.path.normpath(target.strip("/") or ".").replace("/", ".").strip(".")
        if not self.add(_joined(group, target), name, package, into, usual, depth + 1) and not optional:
            self.complete = False

    def _read(self, group: str, name: str, depth: int) -> tuple[dict[str, Any] | None, str | None]:
        full = self._path(group, name)
        root = self.interp.modules.root
        if depth > _DEEPEST or not os.path.isfile(full) or not is_inside(full, boundary(root)):
            return None, None
        self.interp.config_files.add(full)
        own, lines = parse_file(full), _lines(full)
        if own is None:
            # A file with nothing but a header or a comment is an empty configuration.
            own = None if any(map(_is_content, lines)) else {}
        return (own, _header(lines)) if isinstance(own, dict) else (None, None)

    def _merge(self, package: tuple[str, ...], part: dict[str, Any]) -> None:
        into = _inner(self.data, package)
        if into is not None:
            _merge(into, part)


def _joined(group: str, target: str) -> str:
    """A group as a path from the root of the configuration: relative to the group of the list, or absolute."""
    if target.startswith("/"):
        return target.strip("/")
    joined = os.path.normpath(os.path.join(group, target)) if target else group
    return "" if joined == "." else joined


def _package(parent: tuple[str, ...], said: str, group: str, name: str) -> tuple[str, ...]:
    """Where a file is merged: at the package that is said, below that of the file whose list names it."""
    parts = [*parent]
    for part in said.split("."):
        if part == "_global_":
            parts = []
        elif part == "_group_":
            parts.extend(group.split("/") if group else [])
        elif part == "_name_":
            parts.append(name.rpartition("/")[2])
        elif part:
            parts.append(part)
    return tuple(parts)


def _inner(data: dict[str, Any], path: Iterable[str]) -> dict[str, Any] | None:
    """The mapping at a path, made where there is none; None where something else stands there."""
    for key in path:
        inner = data.setdefault(key, {})
        if inner is None:
            inner = data[key] = {}
        if not isinstance(inner, dict):
            return None
        data = inner
    return data


def _lines(path: str) -> list[str]:
    try:
        return read_limited(path).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []


def _header(lines: list[str]) -> str | None:
    """The package that the comments at the head of a file name: ``# @package _global_``."""
    for line in lines:
        if _is_content(line):
            return None
        found = _PACKAGE.match(line)
        if found is not None:
            return found[1]
    return None


def _is_content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _merge(into: dict[str, Any], other: dict[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value
