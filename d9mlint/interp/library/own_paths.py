"""Paths that a program makes of the place of its own file: ``os.path.join(os.path.dirname(__file__), "config.yaml")``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

SAME_PATH = frozenset(
    {
        "os.path.abspath",
        "os.path.realpath",
        "os.path.normpath",
        "os.path.expanduser",
        "os.fspath",
        "builtins.str",
        "pathlib.Path.resolve",
        "pathlib.Path.absolute",
        "pathlib.Path.as_posix",
        "pathlib.Path.expanduser",
    }
)
"""What gives the path that it is given, perhaps in other words."""
JOINED = frozenset({"os.path.join", "pathlib.Path", "pathlib.PurePath", "pathlib.Path.joinpath"})
"""What joins the parts of a path."""
_FOLDER = "os.path.dirname"
_BESIDE = "pathlib.Path.with_name"
_OTHER_ENDING = "pathlib.Path.with_suffix"
_DEEPEST = 12
_NAME_PARTS = frozenset({"name", "stem", "suffix"})
ABOVE = v.Lit(os.pardir)


def path_of(value: v.Value | None, depth: int = 0) -> str | None:
    """The path that a value is, as far as it is made of the place of a file of the project and of constants."""
    if not isinstance(value, v.Obj) or value.args.star or depth > _DEEPEST:
        return None
    put_together = value.attrs.get(v.PARTS) if value.api == v.TEXT else None
    if isinstance(put_together, v.Items):
        return _of_text(put_together.elts, depth)
    if value.api in SAME_PATH or value.api in JOINED or value.api in (_FOLDER, _BESIDE, _OTHER_ENDING):
        first = value.owner if value.owner is not None else value.args.get("", 0)
        if first is v.UNKNOWN:
            path = value.file.path if value.file is not None and _is_own(value.node) else None
        else:
            path = path_of(first, depth + 1)
        if path is None:
            return None
        if value.api == _FOLDER:
            return os.path.dirname(path)
        parts = [path if value.api != _BESIDE else os.path.dirname(path)]
        for one in value.args.pos[value.owner is None :] if value.api not in SAME_PATH else ():
            if not isinstance(one, v.Lit) or not isinstance(one.value, str):
                return None
            parts.append(one.value)
        if value.api == _OTHER_ENDING:
            return os.path.splitext(path)[0] + "".join(parts[1:])
        return os.path.normpath(os.path.join(*parts))
    return None


def own_name(value: v.Value | None) -> str | None:
    """The last part of a path that is made of the place of a file of the project, where the program writes it so: what an
    option may have put into the path is no part of it."""
    path = path_of(value) if not _has_option(value) else None
    return os.path.basename(path) if path is not None else None


def _has_option(value: v.Value | None, depth: int = 0) -> bool:
    if isinstance(value, v.Lit):
        return bool(value.option)
    if not isinstance(value, v.Obj) or depth > _DEEPEST:
        return False
    put_together = value.attrs.get(v.PARTS)
    parts = put_together.elts if isinstance(put_together, v.Items) else []
    return any(_has_option(one, depth + 1) for one in (value.owner, *value.args.pos, *parts))


def name_part(value: v.Obj, name: str) -> v.Value | None:
    """``Path(__file__).stem``: a part of the name of a file of the project, from the attributes of its path."""
    own = own_name(value) if name in _NAME_PARTS else None
    return v.Lit(getattr(PurePosixPath(own), name)) if own else None


def _basename(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    given = args.get("p", 0)
    if given is v.UNKNOWN and _is_own(node):
        return v.Lit(os.path.basename(interp.frame.file.path))
    own = own_name(given)
    return v.Lit(own) if own else None


def _splitext(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    given = args.get("p", 0)
    if not isinstance(given, v.Lit) or not isinstance(given.value, str):
        return None
    return v.Items("t", [v.Lit(part, given.option) for part in os.path.splitext(given.value)])


OWN_PATH_MODELS: dict[str, Callable[[Interp, str, v.Args, Any], v.Value | None]] = {
    "os.path.basename": _basename,
    "os.path.splitext": _splitext,
}


def _of_text(parts: list[v.Value], depth: int) -> str | None:
    """A path that is made of the place of a file and of texts after it."""
    path = path_of(parts[0], depth + 1)
    rest = [one.value if isinstance(one, v.Lit) else None for one in parts[1:]]
    known = [one for one in rest if isinstance(one, str)]
    return os.path.normpath(path + "".join(known)) if path is not None and len(known) == len(rest) else None


def end_of(value: v.Value | None, depth: int = 0) -> str:
    """The last folders and the name of a path whose beginning is not known, as far as these are constants."""
    if isinstance(value, v.AnyOf) and depth <= _DEEPEST:
        ends = {end_of(one, depth + 1) for one in value.values}
        return ends.pop() if len(ends) == 1 else ""
    if not isinstance(value, v.Obj) or value.args.star or depth > _DEEPEST:
        return ""
    given = [value.owner, *value.args.pos] if value.owner is not None else value.args.pos
    last = value.args.kw.get("end") if value.api == v.TEXT else None
    if last is not None:
        text = last.value if isinstance(last, v.Lit) and not last.option else ""
        # What stands before the first slash may be the end of a name.
        return str(text).partition("/")[2]
    if value.api in SAME_PATH and len(given) == 1:
        return end_of(given[0], depth + 1)
    if value.api not in JOINED:
        return ""
    end = ""
    for one in reversed(given):
        known = _written(one, depth + 1) if not isinstance(one, v.Lit) or not one.option else None
        if known is None:
            return os.path.join(end_of(one, depth + 1), end)
        end = os.path.join(known, end)
    return end


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
