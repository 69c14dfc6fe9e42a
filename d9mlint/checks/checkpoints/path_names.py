"""What paths are called that a program writes in several ways."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.library.own_paths import JOINED, SAME_PATH
from d9mlint.interp.named_sizes import assignments
from d9mlint.interp.storage import made_at
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from collections.abc import Iterable

    from d9mlint.interp.view import RunView

_DEEPEST = 6
_OPENED = frozenset({"builtins.open", "io.open", "pathlib.Path.open"})
"""What gives a file, which is called as its path is."""


class PathName(NamedTuple):
    """A path in the same words however the program writes it, the options that it is made of, and whether names of the
    running function are parts of it. What is not known of it stands for itself, between marks."""

    text: str
    options: frozenset[str] = frozenset()
    local: bool = False

    @classmethod
    def joined(cls, parts: Iterable[PathName], by: str = "") -> PathName:
        """A path of several parts, which are folders and a file, or parts of a text."""
        parts = list(parts)
        texts = [one.text for one in parts]
        text = posixpath.join(*texts) if by == "/" else by.join(texts)
        return cls(
            text, frozenset[str]().union(*(one.options for one in parts)), any(one.local for one in parts)
        )

    def key(self) -> tuple[str, ...]:
        """What two ways to write a path have in common."""
        return (posixpath.normpath(self.text), *sorted(self.options))

    def by_default(self) -> str:
        """The path by the defaults of options; empty where a part of it is not known then."""
        return "" if _MARK in self.text else posixpath.normpath(self.text)


_MARK = "\0"


def _mark(what: object) -> str:
    return f"{_MARK}{what}{_MARK}"


def path_name(run: RunView, value: v.Value, depth: int = 0) -> PathName | None:
    """What a path is called; None where part of it is not known to be the same whenever it is."""
    if isinstance(value, v.Lit):
        options = frozenset({value.option}) if value.option else frozenset[str]()
        if isinstance(value.value, str):
            return PathName(value.value, options)
        # An option without a default, or a number in a text.
        return PathName(_mark(value.option) if value.option else str(value.value), options)
    if not isinstance(value, v.Obj) or depth > _DEEPEST or value.args.star or value.args.dstar:
        return None
    if value.api == v.TEXT and value.owner is None:
        parts = value.attrs.get(v.PARTS)
        if isinstance(parts, v.Items):
            return _of_parts(run, parts.elts, "", depth)
    if value.api in JOINED or value.api in SAME_PATH or value.api in _OPENED:
        given = [value.owner, *value.args.pos] if value.owner is not None else value.args.pos
        found = _of_parts(run, given if value.api in JOINED else given[:1], "/", depth)
        if found is not None:
            return found
    elif value.owner is None and run.kb.role(value.api, "makes-text") is not None and value.api != v.TEXT:
        found = _of_parts(run, list(value.args.values()), ",", depth)
        if found is not None:
            return PathName(_mark(f"{value.api}({found.text})"), found.options)
    return None


def called_by_default(run: RunView, path: v.Value) -> set[str]:
    """What the files are called that a path may name, by the defaults of options, where that is known."""
    known = (path_name(run, one) for one in v.alternatives(path) if v.is_none(one) is not True)
    return {name for one in known if one is not None and (name := one.by_default())}


def with_ending(name: str, ending: str) -> str:
    """The name of a file with an ending that a library adds if there is none."""
    return name if "." in posixpath.basename(name) else f"{name}{ending}"


def _of_parts(run: RunView, parts: list[v.Value], by: str, depth: int) -> PathName | None:
    found = [path_name(run, one, depth + 1) for one in parts]
    known = [one for one in found if one is not None]
    return PathName.joined(known, by) if known and len(known) == len(found) else None


def path_written(run: RunView, node: m.Expr, depth: int = 0) -> PathName | None:
    """What a path is called that the running function writes, where the objects and names in it stand for themselves as far
    as what they hold is not known; None where it is no path that is put together."""
    if isinstance(node, m.Const):
        return PathName(str(node.value))
    if depth > _DEEPEST:
        return None
    if isinstance(node, m.FString):
        return _of_written(run, node.parts, "", depth)
    if isinstance(node, m.BinOp) and node.op in ("+", "/"):
        return _of_written(run, [node.left, node.right], "/" if node.op == "/" else "", depth)
    if isinstance(node, m.Call) and not node.keywords:
        api, given = _called(run, node)
        if api in JOINED:
            return _of_written(run, given, "/", depth)
        return path_written(run, given[0], depth + 1) if api in SAME_PATH and given else None
    return _of_name(run, node, depth) if isinstance(node, m.Name) else None


def _called(run: RunView, call: m.Call) -> tuple[str, list[m.Expr]]:
    """The function that a call names and what it is given, the object of a method first."""
    func = run.value_of(call.func)
    if isinstance(func, v.Ext):
        return run.kb.canonical(func.name), list(call.args)
    if not isinstance(func, v.Member) or not isinstance(func.owner, v.Obj):
        return "", []
    if isinstance(call.func, m.Attr):
        owner: m.Expr = call.func.value
    elif isinstance(call.func, m.Name):
        owner = m.Name(call.func.id.rpartition(".")[0], call.func.start, call.func.end)
    return f"{func.owner.type}.{func.name}", [owner, *call.args]


def _of_name(run: RunView, node: m.Name, depth: int) -> PathName:
    value = run.value_of(node)
    known = path_name(run, value)
    if known is not None:
        return known
    given = list(assignments(run, node.id))
    if isinstance(value, v.Obj) and value.api in _OPENED and isinstance(value.node, m.Call):
        given = value.node.args[:1] if value.owner is None else []
    whole = path_written(run, given[0], depth + 1) if len(given) == 1 else None
    if whole is not None:
        return whole
    if isinstance(value, v.Obj) and value.owner is None and (value.api in JOINED or value.api in SAME_PATH):
        return PathName(_mark(made_at(value)))
    return PathName(_mark(node.id), local=True)


def _of_written(run: RunView, parts: list[m.Expr], by: str, depth: int) -> PathName | None:
    found = [path_written(run, one, depth + 1) for one in parts]
    known = [one for one in found if one is not None]
    return PathName.joined(known, by) if known and len(known) == len(found) else None
