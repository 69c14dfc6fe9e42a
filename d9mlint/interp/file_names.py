"""How the files are called that a program saves and loads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from string import Formatter
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.library.own_paths import JOINED
from d9mlint.interp.library.strings import CONVERSION
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

_DEEPEST = 4


def ends_of(run: RunView, value: v.Value | None, depth: int = 0) -> frozenset[str]:
    """How the files that a value may be are known to end, with a slash before a whole name; empty where that is not
    known."""
    if isinstance(value, v.AnyOf):
        found = [ends_of(run, one, depth + 1) for one in value.values]
        return frozenset[str]().union(*found) if all(found) else frozenset()
    if isinstance(value, v.Lit):
        if not isinstance(value.value, str) or value.option:
            return frozenset()
        return frozenset({f"/{value.value.rpartition('/')[2]}"})
    if not isinstance(value, v.Obj) or depth > _DEEPEST or value.args.star or value.owner is not None:
        return frozenset()
    last = value.args.kw.get("end") if value.api == v.TEXT else None
    if isinstance(last, v.Lit) and isinstance(last.value, str) and not last.option:
        # What stands before the end of a text may belong to the name too.
        _, slash, name = last.value.rpartition("/")
        return frozenset({f"{slash}{name}"}) if name else frozenset()
    if run.kb.role(value.api, "makes-text") is None or not value.args.pos or value.type == v.TEXT:
        return frozenset()
    return ends_of(run, value.args.pos[-1], depth + 1)


class Field(NamedTuple):
    """A part of a file's name that varies, and whether it is the number of something that is counted."""

    counted: bool


Template = tuple[str | Field, ...]
"""The name of a file without its folder, in the order of its parts; empty where nothing is known."""


def template_of(run: RunView, value: v.Value | None, depth: int = 0) -> Template:
    """The name of a file as far as its value tells: its beginning and its end, where a part between them is not known."""
    if isinstance(value, v.Lit) and isinstance(value.value, str) and not value.option:
        return _own_name([value.value])
    if not isinstance(value, v.Obj) or depth > _DEEPEST or value.args.star:
        return ()
    if isinstance(value.owner, v.Lit) and isinstance(value.owner.value, str) and not value.owner.option:
        # `"model_{}.pt".format(epoch)`
        parts: list[str | Field] = []
        for text, name in _parsed(value.owner.value):
            parts += [text] if name is None else [text, Field(True)]
        return _own_name(parts)
    if value.owner is not None:
        return ()
    if value.api == v.TEXT:
        first, last = value.args.get("", 0), value.args.kw.get("end")
        if not (isinstance(first, v.Lit) and isinstance(last, v.Lit)) or first.option or last.option:
            return ()
        return _own_name([str(first.value), Field(True), str(last.value)])
    if run.kb.role(value.api, "makes-text") is None or not value.args.pos or value.type == v.TEXT:
        return ()
    return template_of(run, value.args.pos[-1], depth + 1)


def begins_otherwise(template: Template, others: Iterable[Template]) -> bool:
    """Whether files of one name are none of those of other names, by how their names begin, as far as that is known."""
    start = template[0] if template else None
    if not isinstance(start, str):
        return False
    starts = [one[0] if one else None for one in others]
    return bool(starts) and all(
        isinstance(one, str) and not one.startswith(start) and not start.startswith(one) for one in starts
    )


def _parsed(text: str) -> list[tuple[str, str | None]]:
    """The parts of a text that ``format`` puts values into, each with the name of the field behind it; empty for a text that
    is none such."""
    try:
        return [(before, name) for before, name, _, _ in Formatter().parse(text)]
    except ValueError:
        return []


def template_written(run: RunView, node: Any, counters: Set[str]) -> Template:
    """The name of a file as it is written, where some names are the numbers of rounds; empty where it is not put together
    by what is written."""
    parts = list(_written(run, node, counters, 0))
    return _own_name(parts) if len(parts) > 1 else ()


def _written(run: RunView, node: Any, counters: Set[str], depth: int) -> Iterator[str | Field]:
    if isinstance(node, m.Const):
        yield str(node.value)
        return
    if isinstance(node, m.FString):
        for part in node.parts:
            yield from _written(run, part, counters, depth + 1)
        return
    template, given = _formatted(node)
    if template and depth <= _DEEPEST:
        for one in template:
            yield one if isinstance(one, str) else Field(_is_counted(given.get(one), counters))
    elif isinstance(node, m.BinOp) and node.op in ("+", "/") and depth <= _DEEPEST and not _is_number(node):
        yield from _written(run, node.left, counters, depth + 1)
        yield from "/" if node.op == "/" else ""
        yield from _written(run, node.right, counters, depth + 1)
    elif isinstance(node, m.Call) and len(node.args) > 1 and _joins(run, node):
        yield from "/"
        yield from _written(run, node.args[-1], counters, depth + 1)
    else:
        known = run.value_of(node) if isinstance(node, m.Name) and node.id not in counters else None
        if isinstance(known, v.Lit) and isinstance(known.value, str) and not known.option:
            yield known.value
        else:
            yield Field(_is_counted(node, counters))


def _formatted(node: Any) -> tuple[list[str | int], dict[int, Any]]:
    """The parts of a text into which values are put with ``format`` or ``%``, and what these are by number; empty for other
    expressions."""
    if isinstance(node, m.BinOp) and node.op == "%" and isinstance(node.left, m.Const):
        around = CONVERSION.split(str(node.left.value).replace("%%", "\0"))
        given = list(node.right.elts) if isinstance(node.right, m.Seq) else [node.right]
        parts: list[str | int] = [around[0].replace("\0", "%")]
        for number, text in enumerate(around[1:]):
            parts += [number, text.replace("\0", "%")]
        return parts, dict(enumerate(given))
    if not isinstance(node, m.Call) or not isinstance(node.func, m.Attr) or node.func.name != "format":
        return [], {}
    if not isinstance(node.func.value, m.Const) or any(isinstance(one, m.Star) for one in node.args):
        return [], {}
    named = {one.name: one.value for one in node.keywords}
    parts, values = [], {}
    for number, (text, name) in enumerate(_parsed(str(node.func.value.value))):
        parts.append(text)
        if name is None:
            continue
        place = int(name) if name.isdecimal() else sum(isinstance(one, int) for one in parts)
        values[number] = named.get(name, node.args[place] if place < len(node.args) else None)
        parts.append(number)
    return parts, values


def _joins(run: RunView, call: m.Call) -> bool:
    func = run.value_of(call.func)
    return isinstance(func, v.Ext) and run.kb.canonical(func.name) in JOINED


def _is_number(node: m.BinOp) -> bool:
    """Whether a sum is one of numbers: ``epoch + 1``."""
    return any(isinstance(one, m.Const) and not isinstance(one.value, str) for one in (node.left, node.right))


def _is_counted(node: Any, counters: Set[str]) -> bool:
    """Whether an expression is the number of a round, or is computed of it and of constants."""
    return node is not None and any(
        isinstance(one, m.Name) and one.id.partition(".")[0] in counters for one in nodes([node])
    )


def _own_name(parts: list[str | Field]) -> Template:
    """What stands behind the last slash, with neighboring texts as one part."""
    found: list[str | Field] = []
    for part in parts:
        if isinstance(part, str) and "/" in part:
            found = []
            part = part.rpartition("/")[2]
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        elif part != "":
            found.append(part)
    return tuple(found)
