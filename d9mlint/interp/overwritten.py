"""Random values that are overwritten before anything reads them: what they were does not matter.

What is known is a mode of the path for each place at which such a value was drawn, and a flag for each place of which
a value was read. A place counts as read as soon as one of the values that were drawn there is.

What is only given to a call that looks at its form, such as the example that a model is exported with, does not matter
either, and what is only multiplied by zero, or only given to a model to build it. The same holds for what, in a text or a
path, only names a file, a run or an address: whatever it was put into text for is known by what reads that text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.data import PATH, is_environ
from d9mlint.interp.dummies import is_dummy
from d9mlint.interp.events import (
    CallEvent,
    DrawEvent,
    ItemEvent,
    ItemUpdateEvent,
    ItemWriteEvent,
    IterationEvent,
    LookedAtEvent,
    ObjectAttributeEvent,
    ObjectCallEvent,
    OperatorEvent,
    OutcomeEvent,
    RepeatedEvent,
    ResultEvent,
)
from d9mlint.interp.heap import HEAP
from d9mlint.interp.library.filled_in_loops import written
from d9mlint.interp.listening import on, on_call_with_objects, on_object_attribute
from d9mlint.interp.named_sizes import comes_to_all, indexed
from d9mlint.interp.naming import running
from d9mlint.interp.state import OF_OPTIONS, SEEDED, Setting, Site
from d9mlint.interp.storage import behind, followed, made_at, root
from d9mlint.interp.tensors import TENSOR
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.state import State
    from d9mlint.knowledge.schema import RngEntry, RoleEntry

OVERWRITTEN = "draw overwritten:"
_FORM = "draw shown:"
_DUMMY = "dummy "
_READ = "draw read:"
_LAYERS = "layers made at:"
"""Begins what calls are marked with that make layers, with the place where those draw their weights."""
_COPY_OF = "@copy of drawn"
"""Attribute of a tensor that a method copies from one that was drawn, to another type or place: that one."""
_FOLLOWED = frozenset({"looks-only", "copies"})
"""Roles of methods that read nothing of their receiver, as far as what they give is followed."""
_WITHOUT_READING = frozenset({"looks-only", "holds"})
"""Roles of calls that read nothing of what they are given."""
_KEEPING = frozenset({"makes-text", "hands-on"})
"""Roles of calls that only keep what they are given, for what reads the text that they make, or for what they call."""
_MOST_NESTED = 4
_HOLDING = frozenset({v.Obj, v.Member, v.Items, v.Mapping, v.AnyOf})


class Overwritten:
    """Follows what is drawn until it is read or overwritten."""

    def __init__(self, interp: Interp) -> None:
        self._interp = interp
        self._drawing: dict[str, bool] = {}
        self._in_place: dict[str, RngEntry | None] = {}
        self._made: dict[str, set[int]] = {}
        """When layers have drawn their weights at a place."""

    @on(DrawEvent)
    def drawn(self, event: DrawEvent) -> None:
        """Something is drawn where what was drawn before has been overwritten."""
        site = self._interp.here(event.node)
        name = OVERWRITTEN + _place(site)
        if name in self._interp.state.modes:
            self._interp.state.modes[name] = Setting(None, site)
        if event.entry.kind == "init" and not event.entry.in_place:
            self._made_at(_place(site))
        dummy = is_dummy(self._interp, event.node, running(self._interp))
        if dummy is not None:
            name = f"{OVERWRITTEN}{_DUMMY}{_place(site)}"
            before = self._interp.state.modes.get(name)
            # Another call of the function may have given it to something else.
            self._interp.state.modes[name] = Setting(dummy and (before is None or before.value is True), site)

    @on(RepeatedEvent)
    def drawn_once_more(self, event: RepeatedEvent) -> None:
        """A call that makes layers is taken over from an earlier one: it makes one more at each of the places, at least."""
        for place in event.named(_LAYERS):
            self._made_at(place)

    def _made_at(self, place: str) -> None:
        """Count a layer. The count is no part of the state: what makes a layer would be run again for each of them."""
        if not self._interp.speculating:
            self._interp.loops.marked(_LAYERS + place)
            # Each round of a loop that is run once more makes the layers of all rounds.
            self._made.setdefault(place, set()).add(self._interp.repeating or HEAP.clock)

    @on_call_with_objects
    def call(self, event: CallEvent) -> None:
        """Something is called: it may read its arguments and its receiver."""
        args, owner = event.args, event.owner
        roles = self._interp.kb.by_role(event.api)
        if not _KEEPING.isdisjoint(roles):
            # What it gives has them, see ``_parts_of_text``, or what it calls.
            return
        names = roles.get("named-by")
        if names is not None and all_hold(args, names.when, owner) is True:
            self._named(names, event)
            return
        target: v.Value | None = self._drawn_again(event)
        if target is None and owner is not None and type(owner) in _HOLDING:
            role = self._overwrites(event, owner)
            if role is not None and not role.arg:
                target = owner
            elif _FOLLOWED.isdisjoint(roles):
                self._read(owner)
        if not args.pos and not args.kw:
            if target is not None:
                self._lost(target)
            return
        if target is None:
            role = roles.get("overwrites")
            if role is not None and role.arg and "where" not in args.kw:
                target = args.get(role.arg, role.pos)
            elif not _WITHOUT_READING.isdisjoint(roles):
                return
        example = roles.get("form-only")
        shown = args.get(example.arg, example.pos) if example is not None else None
        for value in (*args.pos, *args.kw.values()):
            if value is not target and value is not shown and type(value) in _HOLDING:
                self._read(value)
        if shown is not None:
            self._shown(shown)
        if target is not None:
            self._lost(target)

    @on(ResultEvent)
    def copied(self, event: ResultEvent) -> None:
        """A method gave something, which may be a copy of what was drawn."""
        (call, result), owner = event, event.call.owner
        if not isinstance(owner, v.Obj) or self._drawn(owner) is None:
            return
        if self._interp.kb.role(call.api, "copies") is None:
            return
        if isinstance(result, v.Obj):
            result.attrs[_COPY_OF] = owner
        else:
            self._read(owner)

    def _drawn_again(self, event: CallEvent) -> v.Value | None:
        """What a call draws in place, from a generator that is seeded."""
        api = event.api
        if api.startswith("?.") and event.owner is not None and (self._drawn(event.owner) or ("", ""))[1]:
            # A weight of a layer, of which nothing else is known.
            api = f"{TENSOR}{api[1:]}"
        if api not in self._in_place:
            entries = self._interp.kb.rng(api)
            self._in_place[api] = next((one for one in entries if one.in_place), None)
        entry = self._in_place[api]
        if entry is None or any(self._interp.state.level(rng).level != SEEDED for rng in entry.draws):
            return None
        return event.owner if entry.method else event.args.get("tensor", 0)

    def _named(self, role: RoleEntry, event: CallEvent) -> None:
        """What a call makes has the name that it is given, and is made of its other arguments."""
        names = [event.args.get(role.arg, role.pos), *(event.args.kw.get(one) for one in role.more)]
        if role.arg == "self":
            names.append(event.owner)
        for value in (*event.args.values(), event.owner):
            if value is None:
                continue
            if any(value is one for one in names):
                self._shown(value)
            elif type(value) in _HOLDING:
                self._read(value)

    def _parts_of_text(self, value: v.Obj) -> Sequence[v.Value]:
        """What a text or a path was put together of, as far as it is known."""
        if (
            value.type != v.TEXT
            and value.type != PATH
            and "makes-text" not in self._interp.kb.by_role(value.api)
        ):
            return ()
        parts = value.attrs.get(v.WRITTEN) if value._attrs is not None else None
        held = parts.elts if isinstance(parts, v.Items) else ()
        return (*held, *value.args.values(), *([value.owner] if value.owner is not None else []))

    def _shown(self, value: v.Value, depth: int = 0) -> None:
        """A call looks at the form of a value."""
        if isinstance(value, v.Obj) and depth < _MOST_NESTED:
            for part in self._parts_of_text(value):
                self._shown(part, depth + 1)
        if isinstance(value, (v.Items, v.Mapping, v.AnyOf)):
            for one in _held(value) if depth < _MOST_NESTED else ():
                self._shown(one, depth + 1)
            return
        drawn = self._drawn(value)
        site = made_at(drawn[0]) if drawn is not None and not drawn[1] else None
        if site is not None and not self._interp.guessing:
            self._flag(_FORM, site)

    def _overwrites(self, event: CallEvent, owner: v.Value) -> RoleEntry | None:
        found = self._interp.kb.role(event.api, "overwrites")
        if found is None and isinstance(owner, v.Obj) and self._draws(owner):
            # A method of what a function gives, of whose class nothing is known.
            found = self._interp.kb.role(f"?.{event.api.rpartition('.')[2]}", "overwrites")
        return found

    @on(ObjectCallEvent)
    def object_called(self, event: ObjectCallEvent) -> None:
        """A module or transform is given something."""
        if self._parameters(event.obj):
            self._note_read(event.obj)
        for value in event.args.values():
            self._read(value)

    @on(OperatorEvent)
    def operator(self, event: OperatorEvent) -> None:
        """An operator is applied. Of what is multiplied by nothing, only the form counts."""
        if event.op == "*" and (v.is_zero(event.left) or v.is_zero(event.right)):
            for value in (event.left, event.right):
                if type(value) in _HOLDING:
                    self._shown(value)
            return
        if event.op == "+" and _is_text(event.left):
            # What it gives has both, see ``_parts_of_text``.
            return
        self._read(event.left)
        self._read(event.right)

    @on(LookedAtEvent)
    def looked_at(self, event: LookedAtEvent) -> None:
        """Values are compared, or made into text."""
        for value in event.values:
            self._read(value)

    @on(OutcomeEvent)
    def compared(self, event: OutcomeEvent) -> None:
        """A comparison has one outcome, whatever was drawn."""
        self._shown(event.value)

    @on(IterationEvent)
    def iterated(self, event: IterationEvent) -> None:
        """Something is iterated."""
        self._read(event.value)

    @on(ItemEvent)
    def item(self, event: ItemEvent) -> None:
        """An element is read, unless elements of it are written to."""
        if isinstance(event.owner, v.Obj) and not _is_written_in(self._interp.statement, event.node):
            self._read(event.owner)
        self._read(event.key)

    @on(ItemUpdateEvent)
    def item_updated(self, event: ItemUpdateEvent) -> None:
        """``owner[key] op= value``."""
        for value in (event.owner, event.key, event.value):
            self._read(value)

    @on(ItemWriteEvent)
    def item_written(self, event: ItemWriteEvent) -> None:
        """``owner[key] = value``."""
        key = event.key
        if isinstance(key, v.Lit) and is_environ(self._interp, event.owner):
            if self._interp.kb.role(f"os.environ.{key.value}", "named-by") is not None:
                self._shown(event.value)
                return
        self._read(event.value)
        self._read(event.key)
        if isinstance(event.node, m.Subscript):
            whole = _is_all(event.node.index, event.key)
            lost = event.owner if whole else self._filled(event.owner, event.node)
            if lost is not None:
                self._lost(lost)

    def _filled(self, owner: v.Value, node: m.Subscript) -> v.Value | None:
        """What the loops around ``owner[i] = value``, or ``owner[i][j] = value``, write every element of."""
        base, parts = indexed(node)
        if base is None or not self._interp.loops:
            return None
        whole = owner if node.value is base else self._interp.eval(base)
        drawn = self._drawn(whole)
        filled = drawn is not None and not drawn[1] and comes_to_all(self._interp, drawn[0], base, parts)
        return whole if filled else None

    @on_object_attribute("data", "weight", "bias")
    def replaced(self, event: ObjectAttributeEvent) -> None:
        """``tensor.data = value``, ``layer.weight = value``."""
        self._read(event.value)
        self._lost(event.owner if event.name == "data" else v.Member(event.owner, event.name))

    def _draws(self, value: v.Obj) -> bool:
        known = self._drawing.get(value.api)
        if known is None:
            entries = self._interp.kb.rng(value.api)
            known = any(rng != "own" for entry in entries for rng in entry.draws)
            self._drawing[value.api] = known
        return known

    def _parameters(self, layer: v.Value) -> tuple[str, ...]:
        """The names of the parameters that the constructor of a layer draws."""
        if not isinstance(layer, v.Obj) or layer.node is None or layer.file is None:
            return ()
        role = self._interp.kb.role(layer.api, "draws-weight")
        if role is None:
            return ()
        other = layer.args.get(role.arg, role.pos) if role.arg else v.FALSE
        return ("weight",) if other is not None and v.truth(other) is False else ("weight", role.arg)

    def _drawn(self, value: v.Value) -> tuple[v.Obj, str] | None:
        """The random value whose memory a value uses, or the layer, with the name of the parameter, that it is of; None
        for anything else."""
        original = _copied(value)
        if original is not None:
            return self._drawn(original)
        if isinstance(value, v.Obj):
            if not self._draws(value) and not followed(self._interp, value):
                # It uses no memory but its own.
                return None
        elif not isinstance(value, v.Member):
            return None
        else:
            inner: v.Value | None = value
            while isinstance(inner, v.Member) and behind(inner) is not None:
                inner = behind(inner)
            if isinstance(inner, v.Member) and inner.name in self._parameters(inner.owner):
                assert isinstance(inner.owner, v.Obj)
                return inner.owner, inner.name
        found = root(self._interp, value) if isinstance(value, v.Member) or not self._draws(value) else value
        if found is None or found.node is None or found.file is None or not self._draws(found):
            return None
        return (found, "") if not self._parameters(found) else None

    def _read(self, value: v.Value, depth: int = 0) -> None:
        if isinstance(value, (v.Obj, v.Member)):
            if isinstance(value, v.Obj) and depth < _MOST_NESTED:
                for part in self._parts_of_text(value):
                    self._read(part, depth + 1)
            drawn = self._drawn(value)
            if drawn is not None:
                self._note_read(drawn[0])
        elif depth < _MOST_NESTED and isinstance(value, (v.Items, v.Mapping, v.AnyOf)):
            for one in _held(value):
                if type(one) in _HOLDING:
                    self._read(one, depth + 1)

    def _note_read(self, drawn: v.Obj) -> None:
        site = made_at(drawn)
        assert site is not None
        self._flag(_READ, site)

    def _flag(self, flag: str, site: Site) -> None:
        """Set a flag for a place, which is also kept where it is set only if an option is given."""
        name = flag + _place(site)
        self._interp.state.flags.setdefault(name, site)
        if self._interp.state.aside:
            self._interp.state.flags.setdefault(OF_OPTIONS + name, site)

    def _lost(self, value: v.Value) -> None:
        """Everything that a value holds is overwritten."""
        interp = self._interp
        if parameters := self._parameters(value):
            for one in parameters:
                self._lost(v.Member(value, one))
            return
        written(interp, value)
        if _copied(value) is not None:
            # What it was copied from is not.
            return
        drawn = self._drawn(value)
        if drawn is None or interp.branching or interp.uncertain or interp.guessing:
            return
        made, name = drawn
        site = made_at(made)
        assert site is not None
        place, modes = _place(site), interp.state.modes
        if _READ + place in interp.state.flags:
            return
        before = modes.get(OVERWRITTEN + place)
        if not name:
            if before is None:
                modes[OVERWRITTEN + place] = Setting(True, site)
            return
        if before is not None and not isinstance(before.value, frozenset):
            return
        lost = {(name, made.birth), *(before.value if before is not None else ())}
        if lost.issuperset((one, made.birth) for one in self._parameters(made)):
            lost.add(("", made.birth))
        every = sum(not one for one, _ in lost) >= max(len(self._made.get(place, ())), 1)
        modes[OVERWRITTEN + place] = Setting(True if every else frozenset(lost), site)


def _is_text(value: v.Value) -> bool:
    """Whether a value is a text to which another one is added, and the sum has both as its parts (see ``data.binary``)."""
    if isinstance(value, v.Lit):
        return isinstance(value.value, str)
    return isinstance(value, v.Obj) and value._attrs is not None and v.WRITTEN in value.attrs


def _is_written_in(stmt: Any, node: m.Subscript) -> bool:
    """Whether a statement writes to elements of ``owner[i]``, as ``owner[i][j] = value`` does."""
    target = stmt.targets[0] if isinstance(stmt, m.Assign) else None
    while isinstance(target, m.Subscript):
        target = target.value
        if target is node:
            return True
    return False


def _held(value: v.Items | v.Mapping | v.AnyOf) -> Sequence[v.Value]:
    if isinstance(value, v.Mapping):
        return list(value.items.values())
    return value.elts if isinstance(value, v.Items) else value.values


def _copied(value: v.Value) -> v.Value | None:
    """What a value was copied from, where that was drawn."""
    found = value.attrs.get(_COPY_OF) if isinstance(value, v.Obj) and value._attrs is not None else None
    return found if isinstance(found, v.Obj) else None


def _place(site: Site) -> str:
    return f"{site.path}:{site.start}"


def overwritten_places(state: State) -> frozenset[Site]:
    """Where values were drawn that were overwritten before they were read, or of which only the form is looked at."""
    lost = {
        setting.site
        for _, setting in state.modes.starting(OVERWRITTEN)
        if setting.value is True and setting.site is not None
    }
    # Something else may read what was drawn, of which a call looks at the form.
    shown = {site for _, site in state.flags.starting(_FORM) if _READ + _place(site) not in state.flags}
    return frozenset(lost | shown)


def shown_if_given(state: State) -> frozenset[Site]:
    """Where values were drawn of which only the form is looked at, if an option is given."""
    read = (_READ, OF_OPTIONS + _READ)
    return frozenset(
        site
        for _, site in state.flags.starting(OF_OPTIONS + _FORM)
        if not any(flag + _place(site) in state.flags for flag in read)
    )


def _is_all(index: Any, key: v.Value) -> bool:
    """Whether an index selects all elements: ``[:]``, ``[...]``, ``[:, :]``."""
    if isinstance(index, m.Seq):
        return bool(index.elts) and all(_is_all(one, v.UNKNOWN) for one in index.elts)
    if isinstance(index, m.Slice):
        return index.lower is index.upper is index.step is None
    return isinstance(index, m.Dots)
