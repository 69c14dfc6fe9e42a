"""Configuration files that a program is given by name: what all that the project has for it say.

Which file is given is not known, but a project has the files with which its program is run. A key that the program looks
up tells which of them may be meant: those that have it.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from d9mlint.interp import values as v
from d9mlint.interp.library.config_files import INI, JSON, YAML, config_value, files_below, parse_file
from d9mlint.interp.library.own_paths import JOINED, SAME_PATH, literal_path
from d9mlint.interp.missing_items import maybe_missing

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

SECTIONS: Final = "@sections"
"""Attribute of a parser of settings: what it has read."""
_ENDINGS: Final = {"json": JSON, "toml": (".toml",), "configparser": INI}
_LARGEST: Final = 50_000
"""Bytes of the largest file that is taken for a configuration."""
_DEEPEST: Final = 12
_MOST_TEXTS: Final = 6
"""A text that has more values in the files is not known."""


def in_any(interp: Interp, api: str, path: v.Value | None) -> v.Mapping | None:
    """What a file holds that is one of those that the project has, None where it is no file that the program is given."""
    begins = _beginning(path, 0)
    if begins is None:
        return None
    library = api.partition(".")[0]
    endings = next((ends for name, ends in _ENDINGS.items() if library.startswith(name)), YAML)
    found = []
    for one in _files(interp, begins, endings):
        interp.config_files.add(one)
        data = _read(one, stamp(one))
        if isinstance(data, dict):
            found.append(data)
        elif data is not None and endings is not YAML:
            # Files of this kind are data as often as configurations.
            return None
    return of_files(found) if found else None


def is_path(value: v.Obj) -> bool:
    """Whether a value is a path, or part of one, rather than something that is made of it."""
    return value.api in (v.GIVEN, v.TEXT) or value.api in JOINED or value.api in SAME_PATH


def _beginning(path: v.Value | None, depth: int) -> str | None:
    """How the path of a file begins that the program is given the name of; None for another path."""
    if isinstance(path, v.Ext):
        return "" if path.name == "sys.argv" else None
    if isinstance(path, v.Lit):
        # The default of an option, which names no file that is there.
        return "" if path.option else None
    if not isinstance(path, v.Obj) or depth > _DEEPEST:
        return None
    if path.api == v.GIVEN:
        return ""
    if path.api == v.TEXT:
        first = path.args.pos[0] if path.args.pos else None
        text = first.value if isinstance(first, v.Lit) and isinstance(first.value, str) else ""
        return text if os.path.dirname(text) or _has_given(path, depth) else None
    if path.api not in JOINED and path.api not in SAME_PATH:
        return None
    before = ""
    for part in (path.owner, *path.args.pos) if path.owner is not None else path.args.pos:
        known = literal_path(part) if not isinstance(part, v.Lit) or not part.option else None
        if known is not None:
            before = os.path.join(before, known)
            continue
        rest = _beginning(part, depth + 1)
        # In a folder of the project it is one of the files there, whatever its name is made of.
        named = rest is not None or (before and isinstance(part, v.Obj) and part.api == v.TEXT)
        return os.path.join(before, rest or "") if named else None
    return None


def _has_given(text: v.Obj, depth: int) -> bool:
    """Whether a part of a text is given to the program."""
    parts = text.attrs.get(v.PARTS)
    return isinstance(parts, v.Items) and any(
        _beginning(one, depth + 1) is not None
        for one in parts.elts
        if not isinstance(one, v.Lit) or one.option
    )


def _files(interp: Interp, begins: str, endings: tuple[str, ...]) -> list[str]:
    """The files beside the program whose paths begin so; where there is none, those of the whole project."""
    for top in dict.fromkeys((interp.entry_directory, interp.modules.root)):
        folder, name = os.path.split(os.path.join(top, begins)) if top else ("", "")
        folder = os.path.normpath(folder)
        found = [
            one for one in files_below(interp, folder, endings) if one.startswith(f"{folder}{os.sep}{name}")
        ]
        if found:
            return found
    return []


def stamp(path: str) -> tuple[int, int]:
    """When a file was changed, and how large it is."""
    try:
        known = os.stat(path)
    except OSError:
        return 0, 0
    return known.st_mtime_ns, known.st_size


@lru_cache(maxsize=256)
def _read(path: str, stamped: tuple[int, int]) -> Any:
    """The content of a file, which nobody changes; it is read again when the file has changed."""
    return parse_file(path) if 0 < stamped[1] <= _LARGEST else None


def of_files(files: list[dict[Any, Any]], prefix: str = "") -> v.Mapping:
    """A configuration that one of several files holds. What only some of them have is there where it is looked up."""
    names = dict.fromkeys(name for one in files for name in one)
    everywhere = [name for name in names if all(name in one for one in files)]
    items = {name: _agreed([one[name] for one in files], f"{prefix}{name}") for name in everywhere}
    made = v.Mapping(items, not prefix or len(everywhere) < len(names), attributes=bool(prefix))
    made.files = tuple(files), prefix
    return made


def look_up(value: v.Mapping, key: Any) -> v.Value | None:
    """What a configuration of several files has under a key that not all of them have: then it is one of those."""
    files, prefix = value.files
    held = [one[key] for one in files if key in one]
    if not held:
        return None
    found = value.items[key] = _agreed(held, f"{prefix}{key}")
    return found


def whole(value: v.Mapping) -> v.Mapping:
    """A configuration of several files with all that any of them has: what is not in all of them may be missing."""
    files, prefix = value.files
    if not files or not prefix:
        return value
    items = dict(value.items)
    for name in dict.fromkeys(name for one in files for name in one):
        if name not in items:
            items[name] = maybe_missing(
                [_agreed([one[name] for one in files if name in one], f"{prefix}{name}")]
            )
    return v.Mapping(items, attributes=value.attributes)


def _agreed(held: list[Any], label: str) -> v.Value:
    """What one of several values is, as far as they agree."""
    if all(isinstance(one, dict) for one in held):
        return of_files(held, f"{label}.")
    kinds = {type(one) for one in held}
    if kinds <= {bool, type(None)} or (kinds == {str} and len(set(held)) <= _MOST_TEXTS):
        # A switch is on in some and off in others; a name is one of those that they have.
        return v.join([v.Lit(one, label) for one in dict.fromkeys(held)])
    same = len(kinds) == 1 and all(one == held[0] for one in held)
    return config_value(held[0], "", f"{label}.") if same else v.UNKNOWN
