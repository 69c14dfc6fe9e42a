"""Weights alone that a program goes on from: those of a file that it gives a model, and those that it saves as it trains."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from d9mlint.checks.base import argument_node
from d9mlint.checks.checkpoints.continued import counted_from, counted_in
from d9mlint.checks.checkpoints.path_names import path_name, path_written
from d9mlint.checks.checkpoints.stages import Test, exclude
from d9mlint.interp import values as v
from d9mlint.interp.calls import has_model
from d9mlint.interp.file_names import Field, Template, ends_of, template_of, template_written
from d9mlint.interp.named_sizes import assignments as given_values
from d9mlint.interp.places import Moment, Where
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.tensors import LOADED_FROM, LOADING, loaded_as
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import assignments, bound_by
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.events import CallEvent, Loop
    from d9mlint.interp.view import RunView

_MOST_NAMES = 4
_DEEPEST = 6
_DIGIT = re.compile("[0-9]")
WHOLE = ""
"""The key of a state that is saved, or loaded, by itself."""


class File(NamedTuple):
    """How a program names a file: what it is called, the loops that give it another name in each round, those that put in it
    what they compute, and the parts of its name, without its folder, as far as they are known; what it is called by the
    defaults of options, where that is known."""

    name: str
    numbered_by: frozenset[str]
    measured_by: frozenset[str]
    template: Template
    by_default: str = ""

    @property
    def constant(self) -> str | None:
        """The own name of a file that has always the same."""
        only = self.template[0] if len(self.template) == 1 else None
        return only if isinstance(only, str) else None

    def is_same(self, other: File) -> bool:
        """Whether another name stands for this file, if only by the defaults of options."""
        known = self.constant is not None and self.by_default.endswith(self.constant)
        return self.name == other.name or (known and self.by_default == other.by_default)

    def is_round_of(self, other: File, loop: str) -> bool:
        """Whether another name gives this file the number of a loop's round, or a number that the loop computes: it is a
        constant name, or one with some number in the same place, which is not that of the present round."""
        if loop in other.measured_by and self.constant is not None:
            parts = other._parts_in(self.constant) if other._begins() else []
            return bool(parts) and all(isinstance(one, str) or _DIGIT.search(text) for one, text in parts)
        if not other.template or loop not in other.numbered_by or loop in self.numbered_by:
            return False
        if self.constant is None:
            return bool(self._texts()) and self._texts() == other._texts() and self._begins()
        return self.number_in(other) is not None

    def number_in(self, other: File) -> int | None:
        """The number that this constant name has where another name has that of a round; None where it has none."""
        if self.constant is None or other.constant is not None:
            return None
        found = other._parts_in(self.constant)
        numbers = [text for part, text in found if isinstance(part, Field) and part.counted]
        return int(numbers[0]) if numbers else None

    def _parts_in(self, name: str) -> list[tuple[str | Field, str]]:
        """The parts of this name with what stands for them in a constant one; nothing where that is another name."""
        found = re.fullmatch("".join(f"({_pattern(one)})" for one in self.template), name)
        return list(zip(self.template, found.groups(), strict=True)) if found is not None else []

    def _begins(self) -> bool:
        return bool(self.template) and isinstance(self.template[0], str)

    def _texts(self) -> list[str | None]:
        return [one if isinstance(one, str) else None for one in self.template]


def _pattern(part: str | Field) -> str:
    """What a part of a name stands for in the names of files."""
    if isinstance(part, str):
        return re.escape(part)
    return "[0-9]+" if part.counted else "[^/]+"


class Loaded(NamedTuple):
    """Models that are given what a file has, in which loops, under which key of the file: None where that is not known;
    behind which tests."""

    order: Moment
    loops: frozenset[str]
    models: frozenset[Site]
    key: object
    file: File | None
    tests: frozenset[Test]


class Saved(NamedTuple):
    """Weights alone that are saved in loops, or after others: of which models, under which keys, behind which tests."""

    place: Where
    found: frozenset[str]
    loops: frozenset[str]
    option: str
    models: frozenset[tuple[object, Site]]
    file: File | None
    tests: frozenset[Test]
    after: frozenset[str] = frozenset()
    """Loops that have trained before, where weights are saved in none."""

    def holds(self, loaded: Loaded) -> bool:
        """Whether a later run, of the same stage, can load as this what the program loads."""
        return not exclude(self.tests, loaded.tests) and any(
            site in loaded.models and (loaded.key is None or loaded.key == key) for key, site in self.models
        )

    def before(self, loop: str, loaded: Iterable[Loaded], began: int | None) -> list[Loaded]:
        """What the program loads of this before a loop that saves it, which began at some time, or in it."""
        return [
            one
            for one in loaded
            if self.holds(one) and (loop in one.loops or (began is not None and one.order < began))
        ]

    def replaces(self, loaded: Loaded, loop: str, first: int | None) -> bool:
        """Whether the file that is loaded is one that an earlier run has saved in a loop; when this one first wrote it."""
        if self.file is None or loaded.file is None:
            return False
        if not self.file.is_same(loaded.file) and not loaded.file.is_round_of(self.file, loop):
            return False
        return (
            loaded.order < self.place.order
            and (first is None or loaded.order < first)
            and (loop not in loaded.loops or loop in loaded.file.numbered_by)
        )


def models_made(value: v.Value | None) -> Iterator[Site]:
    """Where a model was made."""
    for one in v.alternatives(value) if value is not None else ():
        if isinstance(one, v.Obj):
            site = made_at(one)
            if site is not None:
                yield site
        elif isinstance(one, v.Inst) and one.node is not None:
            yield Site(one.cls.mod.path, one.node.start, one.node.end)


def weights_in(run: RunView, content: v.Value) -> frozenset[tuple[object, Site]]:
    """The models that are saved, themselves or their states, with their keys."""
    found: set[tuple[object, Site]] = set()
    for one in v.alternatives(content):
        parts = one.items.items() if isinstance(one, v.Mapping) else ((WHOLE, one),)
        for key, part in parts:
            for state in v.alternatives(part):
                owner = state.attrs.get("@owner") if isinstance(state, v.Obj) else None
                if owner is None and has_model(run, [state]):
                    owner = state
                found.update((key, site) for site in models_made(owner))
    return frozenset(found)


def key_of(state: v.Value) -> object:
    """The key of a file under which a state was loaded; None where that is not known."""
    key = loaded_as(state)
    if isinstance(key, v.Lit):
        return key.value
    return WHOLE if isinstance(state, v.Obj) and state.api in LOADING else None


def sources(state: v.Value) -> Iterator[Site]:
    """Where the file was loaded that a state is, or is taken out of."""
    for one in v.alternatives(state):
        whole = one.attrs.get(LOADED_FROM, one) if isinstance(one, v.Obj) else None
        site = made_at(whole) if isinstance(whole, v.Obj) else None
        if site is not None:
            yield site


def file_of(run: RunView, call: CallEvent, argument: str, position: int) -> File | None:
    """The file that an argument of a call names; None where it may be any."""
    node, value = argument_node(call.node, argument, position), call.args.get(argument, position)
    if node is None:
        return None
    known = path_name(run, value) if value is not None else None
    name: Hashable | None = known.key() if known is not None else None
    numbered = frozenset(
        loop.key
        for loop in run.loops
        if isinstance(loop.stmt, m.For) and loop.frame.env is run.frame.env
        if _names(loop.stmt.target) & _names(_expression(run, node))
    )
    if name is None and isinstance(node, m.Expr):
        body = run.frame.body
        counted = {
            one for loop in run.loops if isinstance(loop.stmt, m.For) for one in _names(loop.stmt.target)
        }
        if all(assignments(body, one) <= 1 or one in counted for one in _names(node)):
            spelled = path_written(run, node)
            here = (run.frame.file.path, body[0].start if body else 0)
            if spelled is None:
                name = (*here, _words(node))
            else:
                name = (*here, spelled.key()) if spelled.local else spelled.key()
    if name is None:
        return None
    counters = {x for loop in run.loops if isinstance(loop.stmt, m.For) for x in _names(loop.stmt.target)}
    written = _expression(run, node)
    measured = frozenset(
        loop.key
        for loop in run.loops
        if loop.key not in numbered
        and loop.frame.env is run.frame.env
        and _stored(loop.stmt) & _names(written)
    )
    template = template_written(run, written, counters) if numbered or measured else ()
    by_default = known.by_default() if known is not None else ""
    return File(repr(name), numbered, measured, template or template_of(run, value), by_default)


def _stored(loop: Any) -> set[str]:
    """The names that a loop assigns in its rounds."""
    found: set[str] = set()
    for one in nodes(loop.body) if isinstance(loop, m.For | m.While) else ():
        bound_by(one, found)
    return found


def is_numbered_by(run: RunView, node: Any, path: v.Value | None, loop: Loop) -> bool:
    """Whether the path of a file holds the number of a loop's present round: in what it is made of, or as it is written."""
    names = {one.id for one in counted_in(loop)} if isinstance(loop.stmt, m.While) else set[str]()
    if isinstance(loop.stmt, m.For):
        names = _names(loop.stmt.target) | {name.id for name, _ in counted_from(loop)}
    if loop.frame.env is run.frame.env and names & _names(_expression(run, node)):
        return True
    numbers = [loop.frame.env.vars[name] for name in names if name in loop.frame.env.vars]
    return path is not None and any(one is number for one in _parts(path) for number in numbers)


def _parts(value: v.Value, depth: int = 0) -> Iterator[v.Value]:
    """What a text is made of."""
    yield value
    held: list[v.Value] = list(v.alternatives(value)) if isinstance(value, v.AnyOf) else []
    if isinstance(value, v.Items):
        held = list(value.elts)
    elif isinstance(value, v.Obj):
        held = list(value.args.values())
        if v.PARTS in value.attrs:
            held.append(value.attrs[v.PARTS])
    for one in held if depth < _DEEPEST else ():
        yield from _parts(one, depth + 1)


def numbered_as_counted(run: RunView, node: Any, loop: Loop) -> bool:
    """Whether a path holds the number of a loop's round as the loop counts it, not one that is computed of it."""
    target = loop.stmt.target if isinstance(loop.stmt, m.For) else None
    written = _expression(run, node)
    if not isinstance(target, m.Name) or target.id not in _names(written):
        return False
    return not any(
        isinstance(one, m.BinOp)
        and one.op != "%"
        and any(isinstance(side, m.Name) and side.id == target.id for side in (one.left, one.right))
        for one in nodes([written])
    )


def _expression(run: RunView, node: Any) -> Any:
    """What an argument is written as: a name that is given a value once stands for that."""
    for _ in range(_MOST_NAMES):
        given = list(given_values(run, node.id)) if isinstance(node, m.Name) and "." not in node.id else []
        if len(given) != 1:
            break
        node = given[0]
    return node


def names_of(run: RunView, call: CallEvent, argument: str, position: int) -> frozenset[str]:
    """What the files are called that an argument of a call may name, without their folders where their own names are known;
    empty where that is not known."""
    ends = ends_of(run, call.args.get(argument, position))
    if ends and all(one.startswith("/") for one in ends):
        return ends
    file = file_of(run, call, argument, position)
    return frozenset({file.name}) if file is not None else frozenset()


def _words(node: Any) -> Hashable:
    """An expression without its place."""
    if isinstance(node, list):
        return tuple(map(_words, node))
    if not isinstance(node, msgspec.Struct):
        return (type(node).__name__, node)
    fields = [name for name in node.__struct_fields__ if name not in ("start", "end")]
    return (type(node).__name__, *(_words(getattr(node, name)) for name in fields))


def _names(node: Any) -> set[str]:
    return {one.id.partition(".")[0] for one in nodes([node]) if isinstance(one, m.Name)} if node else set()
