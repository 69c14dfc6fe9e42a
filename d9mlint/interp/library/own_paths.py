"""Paths that a program makes of the place of its own file: ``os.path.join(os.path.dirname(__file__), "config.yaml")``."""

from __future__ import annotations

import os
from typing import Any

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m

SAME_PATH = frozenset(
    {
        "os.path.abspath",
        "os.path.realpath",
        "os.path.normpath",
        "os.fspath",
        "builtins.str",
        "pathlib.Path.resolve",
        "pathlib.Path.absolute",
        "pathlib.Path.as_posix",
    }
)
"""What gives the path that it is given, perhaps in other words."""
JOINED = frozenset({"os.path.join", "pathlib.Path", "pathlib.PurePath", "pathlib.Path.joinpath"})
"""What joins the parts of a path."""
_FOLDER = "os.path.dirname"
_DEEPEST = 12
ABOVE = v.Lit(os.pardir)


def path_of(value: v.Value | None, depth: int = 0) -> str | None:
    """The path that a value is, as far as it is made of the place of a file of the project and of constants."""
    if not isinstance(value, v.Obj) or value.args.star or depth > _DEEPEST:
        return None
    if value.api in SAME_PATH or value.api in JOINED or value.api == _FOLDER:
        first = value.owner if value.owner is not None else value.args.get("", 0)
        if first is v.UNKNOWN:
            path = value.file.path if value.file is not None and _is_own(value.node) else None
        else:
            path = path_of(first, depth + 1)
        if path is None:
            return None
        if value.api == _FOLDER:
            return os.path.dirname(path)
        parts = [path]
        for one in value.args.pos[value.owner is None :] if value.api in JOINED else ():
            if not isinstance(one, v.Lit) or not isinstance(one.value, str):
                return None
            parts.append(one.value)
        return os.path.normpath(os.path.join(*parts))
    return None


def literal_path(value: v.Value | None) -> str | None:
    """A path as it is written, joined of what is written, or made of the place of a file."""
    own = path_of(value)
    return own if own is not None else _written(value, 0)


def _written(value: v.Value | None, depth: int) -> str | None:
    if isinstance(value, v.Lit):
        return value.value if isinstance(value.value, str) else None
    if not isinstance(value, v.Obj) or value.args.star or value.args.kw or depth > _DEEPEST:
        return None
    given = [value.owner, *value.args.pos] if value.owner is not None else value.args.pos
    if value.api in JOINED or (value.api in SAME_PATH and len(given) == 1):
        parts = [one for one in (_written(part, depth + 1) for part in given) if one is not None]
        return os.path.join(*parts) if parts and len(parts) == len(given) else None
    return None


def above(value: v.Obj, levels: int) -> v.Obj:
    """The folder some levels above a path that is made of the place of a file."""
    return v.Obj(value.type, value.type, v.Args([value, *[ABOVE] * levels]))


def _is_own(node: Any) -> bool:
    """Whether a call is given the place of the file in which it stands."""
    given = node.args[0] if isinstance(node, m.Call) and node.args else None
    return isinstance(given, m.Name) and given.id == "__file__"
