"""Attributes that are given something random that nothing reads, or something else before anything does.

``self.transform = RandomCrop(8)`` and later ``data.transform = CenterCrop(8)``: what was made first draws nothing that
matters. An attribute counts as read where the program reads it, and where a library gets the instance or one that holds
it. What is known is kept with the path, as in ``overwritten``.

A layer that is written into a container of modules, ``Sequential(Linear(3, 4), ReLU())``, and replaced or taken out before
anything gets the container, decides nothing either.

A part of a dictionary, list or tuple, as in ``{"train": Compose(...), "val": Compose(...)}``, draws where it is called,
and counts as called where a library gets it or something that holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from d9mlint.interp import values as v
from d9mlint.interp.containers import CONTAINERS, parts
from d9mlint.interp.events import (
    CallEvent,
    ForeignWriteEvent,
    InstanceReadEvent,
    InstanceWriteEvent,
    ItemEvent,
    ItemWriteEvent,
    IterationEvent,
    ObjectCallEvent,
    OperatorEvent,
    ResultEvent,
)
from d9mlint.interp.library.processes import starts_tasks
from d9mlint.interp.library.weights import LOADING_METHODS
from d9mlint.interp.library_modules import model_of_layers
from d9mlint.interp.listening import on, on_call_with_objects
from d9mlint.interp.places import running
from d9mlint.interp.rng import GENERATOR_TYPES, seed_value
from d9mlint.interp.state import REPLACED, Setting, Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.tensors import TENSOR
from d9mlint.ir import nodes as m
from d9mlint.ir.forms import only_form
from d9mlint.ir.traversal import nodes, parents, variables

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.state import State

_ALONE = "draw alone:"
_LOADED = "draw loaded:"
_KEPT = "draw kept:"
_STORED = "draw stored:"
_PARTS = "draw parts"
"""Set where any such part was made: only then what happens to values is looked at."""
_LAYER = REPLACED + "layer "
_LAYERS = "draw layers"
"""Set where any such layer was replaced: made once more, it is there again."""
_CHANGING = frozenset({"append", "extend", "insert", "pop"})
_PART = "draw part:"
_USED = "draw used:"
_MOST_NESTED = 3
_MOST_HELD = 5
_PLAIN = frozenset({v.Lit, v.Ext, v.Unknown})
_HOLDING = frozenset({v.Items, v.Mapping, v.AnyOf})
_MAKING = frozenset({"draw", "init", "generator"})


class Replaced:
    """Follows what is random in attributes of instances."""

    def __init__(self, interp: Interp) -> None:
        self._interp = interp
        self._random: dict[str, bool] = {}

    @on(InstanceWriteEvent)
    def written(self, event: InstanceWriteEvent) -> None:
        """``instance.name = value``."""
        interp, stmt = self._interp, self._interp.statement
        new = self._place(event.value)
        if new is not None and isinstance(stmt, m.Assign) and len(stmt.targets) == 1:
            assert isinstance(event.value, v.Obj)
            if self._is_alone(stmt.value, event.value):
                interp.state.flags.setdefault(_ALONE + new[0], new[1])
                self._made_again(event.value, *new)
                if self._is_kept_generator(event.value, event.owner) and self._keeps_its_attributes(
                    event.owner
                ):
                    interp.state.flags.setdefault(f"{_KEPT}{event.name} {new[0]}", new[1])
        if new is not None:
            self._stored(event, *new)
        old = self._place(event.old)
        if old is None or event.old is event.value or interp.uncertain or interp.guessing:
            return
        if interp.in_doubt(event.owner.birth):
            return
        place, site = old
        flags = interp.state.flags
        if _ALONE + place in flags and _LOADED + place not in flags:
            assert isinstance(event.old, v.Obj)
            before = interp.state.modes.get(REPLACED + place)
            if before is None:
                interp.state.modes[REPLACED + place] = Setting(True, site)
            elif isinstance(before.value, frozenset):
                left = before.value - {event.old.birth}
                interp.state.modes[REPLACED + place] = Setting(left or True, site)

    def _stored(self, event: InstanceWriteEvent, place: str, site: Site) -> None:
        """A value that is drawn, or a layer, is kept in an attribute: alone, or as the only thing that is done with an
        argument of the constructor that it is given to."""
        interp, stmt, value, owner = self._interp, self._interp.statement, event.value, event.owner
        if not isinstance(value, v.Obj) or not self._keeps_its_attributes(owner):
            return
        if not self._is_drawn(value) and not self._is_layer(value):
            return
        if not isinstance(stmt, m.Assign) or len(stmt.targets) > 1:
            return
        if stmt.value is value.node or self._is_only_stored(stmt, value, owner):
            held = "held" if self._stays_in_function(owner) else ""
            interp.state.flags.setdefault(f"{_STORED}{event.name} {held} {place}", site)
        else:
            interp.state.flags.setdefault(_LOADED + place, site)

    def _is_alone(self, given: m.Expr, value: v.Obj) -> bool:
        """Whether an expression that is stored is all that gets what another one makes: ``make()``, ``rng or make()``, or
        ``rng`` where ``rng = make()`` stands before, and else it is only asked whether that is something."""
        if isinstance(given, m.BoolOp):
            return given.op == "or" and given.right is value.node
        if isinstance(given, m.IfExp):
            return given.body is value.node or given.orelse is value.node
        if not isinstance(given, m.Name):
            return given is value.node
        func = self._interp.frame.func
        if func is None or "." in given.id:
            return False
        above = parents(func.fn)
        # Functions within it may use the variable, too.
        if any(isinstance(one, (m.FunctionDef, m.ClassDef, m.Lambda)) for one in nodes(func.fn.body)):
            return False
        uses = variables(func.fn).get(given.id, ())
        made = [one for one in uses if _is_made(above, one, value)]
        return bool(made) and all(one is given or one in made or _is_tested(above, one) for one in uses)

    def _is_only_stored(self, stmt: m.Assign, value: v.Obj, owner: v.Inst) -> bool:
        """Whether a constructor is given a value where that is drawn, and only stores it."""
        func, made = self._interp.frame.func, owner.node
        if func is None or func.receiver is not owner or made is None or not isinstance(stmt.value, m.Name):
            return False
        given = [*made.args, *(one.value for one in made.keywords)]
        uses = variables(func.fn).get(stmt.value.id, ())
        return any(one is value.node for one in given) and all(
            one is stmt.value or self._looks_at_form(func.fn, one) for one in uses
        )

    def _stays_in_function(self, owner: v.Inst) -> bool:
        """Whether a function keeps an instance that it is making in a variable, and hands it on to nobody by returning it:
        no library calls methods of it unseen."""
        frame = self._interp.frame
        if (
            frame.func is None
            or frame.func.fn.name != "__init__"
            or frame.caller is None
            or owner.node is None
        ):
            return False
        function = frame.caller.function
        above = parents(function)
        stmt = above.get(id(owner.node))
        if isinstance(stmt, m.Attr):
            # Of `Model().encoder` nobody has the model.
            return True
        target = stmt.targets[0] if isinstance(stmt, m.Assign) and len(stmt.targets) == 1 else None
        if not isinstance(target, m.Name) or "." in target.id:
            return False
        for one in variables(function).get(target.id, ()):
            user: Any = one
            while isinstance(user, (m.Name, m.Seq, m.Dict, m.IfExp, m.Star)):
                user = above.get(id(user))
            if one.id == target.id and isinstance(user, (m.Return, m.Other, m.Lambda)):
                return False
        return True

    @staticmethod
    def _looks_at_form(function: m.Function, node: Any) -> bool:
        return only_form(node) or only_form(parents(function).get(id(node)))

    def _is_layer(self, value: v.Obj) -> bool:
        return any(one.kind == "init" for one in self._interp.kb.rng(value.api))

    def _is_drawn(self, value: v.Obj) -> bool:
        return any(one.kind == "draw" and "own" not in one.draws for one in self._interp.kb.rng(value.api))

    def _made_again(self, value: v.Obj, place: str, site: Site) -> None:
        """Where some have been replaced that were made at a place, it makes another one: the births of those that have
        not been are kept."""
        before = self._interp.state.modes.get(REPLACED + place)
        if before is not None and before.value is not None:
            others = before.value if isinstance(before.value, frozenset) else frozenset()
            self._interp.state.modes[REPLACED + place] = Setting(others | {value.birth}, site)

    @on(InstanceReadEvent)
    def read(self, event: InstanceReadEvent) -> None:
        """``instance.name``."""
        function = running(self._interp)
        if function is not None and event.node is not None and self._looks_at_form(function, event.node):
            return
        if not _is_container(event.value):
            self._given(event.value, 0)

    @on_call_with_objects
    def call(self, event: CallEvent) -> None:
        """Something outside of the program gets an instance."""
        roles = self._interp.kb.by_role(event.api)
        if "takes-items" in roles or "looks-only" in roles:
            # What a dataset of the program reads then is seen.
            return
        if _PARTS in self._interp.state.flags:
            for value in (event.owner, *event.args.pos, *event.args.kw.values()):
                self._follow(value, 0)
        name = event.api.rpartition(".")[2]
        if name in LOADING_METHODS and type(event.owner) is v.Inst:
            # What stood there before is not read.
            return
        if _is_container(event.owner) and name == "pop":
            self._taken(event.owner, event.args.get("key", 0))
        elif type(event.owner) is v.Inst or (_is_container(event.owner) and name not in _CHANGING):
            inherited = isinstance(event.owner, v.Inst) and self._keeps_its_attributes(event.owner)
            self._given(event.owner, 0, inherited)
        if self._hands_on(event):
            # What the function does with its arguments is seen.
            return
        for value in (*event.args.pos, *event.args.kw.values()):
            if type(value) is v.Inst or type(value) in _HOLDING or _is_container(value):
                self._given(value, 0)

    def _hands_on(self, event: CallEvent) -> bool:
        """Whether a library hands on what it is given to a function or a class of the program, when that is called: it only
        goes through lists."""
        kb, args = self._interp.kb, event.args
        called = args.pos[0] if args.pos else args.kw.get("func") or args.kw.get("target")
        while isinstance(called, v.Partial):
            called = called.func
        if not isinstance(called, (v.Func, v.Cls)):
            return False
        roles = kb.by_role(event.api)
        if "hands-on" in roles or (event.owner is None and "calls-for-each" in roles):
            return True
        return starts_tasks(event.owner, event.api)

    @on(ResultEvent)
    def made(self, event: ResultEvent) -> None:
        """A call gave something: it may be made as a part of something."""
        made, stmt = event.result, self._interp.statement
        if _LAYERS in self._interp.state.flags and isinstance(made, v.Obj):
            found = self._place(made)
            if found is not None and _LAYER + found[0] in self._interp.state.modes:
                self._interp.state.modes[_LAYER + found[0]] = Setting(None, found[1])
        if not isinstance(made, v.Obj) or not isinstance(stmt, (m.Assign, m.AnnAssign, m.Return)):
            return
        if not isinstance(stmt.value, (m.Dict, m.Seq)) or self._interp.frame.is_class:
            return
        place = self._place(made)
        if place is None or not self._is_generator(made) or not _has_part(stmt.value, event.call.node):
            return
        names: list[str] = []
        if not isinstance(stmt, m.Return):
            for target in stmt.targets if isinstance(stmt, m.Assign) else [stmt.target]:
                if not isinstance(target, (m.Name, m.Attr)):
                    return
                names.append((target.id if isinstance(target, m.Name) else target.name).rpartition(".")[2])
        flags = self._interp.state.flags
        flags.setdefault(_PARTS, place[1])
        flags.setdefault(f"{_PART}{','.join(names)} {place[0]}", place[1])

    @on(ObjectCallEvent)
    def object_called(self, event: ObjectCallEvent) -> None:
        """Something that was made is called."""
        if _is_container(event.obj):
            self._given(event.obj, 0)
        if _PARTS in self._interp.state.flags:
            for value in (event.obj, *event.args.values()):
                self._follow(value, 0)

    @on(IterationEvent)
    def iterated(self, event: IterationEvent) -> None:
        """Something is iterated."""
        if _is_container(event.value):
            self._given(event.value, 0)
        self._layers_asked(event.value)
        self._use(event.value)

    @on(ForeignWriteEvent)
    def handed_on(self, event: ForeignWriteEvent) -> None:
        """Something becomes part of an object of a library."""
        self._use(event.value)

    @on(OperatorEvent)
    def operated(self, event: OperatorEvent) -> None:
        """An operator is applied."""
        self._use(event.left)
        self._use(event.right)

    @on(ItemEvent)
    def item(self, event: ItemEvent) -> None:
        """``owner[key]``, which gives any part of the owner unless the key is known."""
        self._layers_asked(event.owner)
        if _is_container(event.owner):
            self._given(event.owner, 0)
        if not isinstance(event.key, v.Lit) or event.key.option:
            self._use(event.owner)

    @on(ItemWriteEvent)
    def item_written(self, event: ItemWriteEvent) -> None:
        """``owner[key] = value``."""
        if _is_container(event.owner):
            self._taken(event.owner, event.key)
        if not isinstance(event.owner, (v.Items, v.Mapping)):
            self._use(event.value)

    def _layers_asked(self, value: v.Value) -> None:
        """Elements of a value are used: all that a model holds, where they are its layers."""
        model = model_of_layers(self._interp, value)
        if model is not None:
            self._given(model, 0)

    def _taken(self, container: v.Obj, key: v.Value | None) -> None:
        """A layer is replaced, or taken out."""
        interp = self._interp
        if key is None:
            key = v.Lit(-1)
        if not isinstance(key, v.Lit) or not isinstance(key.value, int) or key.option or container.args.star:
            return
        if interp.branching or interp.uncertain or interp.guessing:
            return
        layers = parts(container)
        old = layers[key.value] if -len(layers) <= key.value < len(layers) else None
        place = self._place(old)
        written = container.node.args if isinstance(container.node, m.Call) else []
        if place is None or not isinstance(old, v.Obj) or all(one is not old.node for one in written):
            return
        if _LOADED + place[0] not in interp.state.flags:
            interp.state.flags.setdefault(_LAYERS, place[1])
            interp.state.modes[_LAYER + place[0]] = Setting(True, place[1])

    def _use(self, value: v.Value) -> None:
        """Something may call a value, or what it holds."""
        if type(value) not in _PLAIN and _PARTS in self._interp.state.flags:
            self._follow(value, 0)

    def _follow(self, value: v.Value | None, depth: int) -> None:
        if value is None or type(value) in _PLAIN or (isinstance(value, v.Obj) and value.type == TENSOR):
            return
        inner = _parts(value) or ()
        if isinstance(value, v.Obj):
            place = self._place(value)
            if place is not None and self._is_generator(value):
                self._interp.state.flags.setdefault(_USED + place[0], place[1])
            if self._interp.kb.role(value.api, "takes-items") is None:
                inner = value.args.values()
        elif isinstance(value, v.Member):
            inner = (value.owner,)
        elif isinstance(value, v.Func):
            # What it closes over; variables of modules are read by name.
            closed = value.env if value.env.parent is not None else None
            inner = [*(closed.vars.values() if closed is not None else ()), value.receiver or v.NONE]
        elif isinstance(value, v.Partial):
            inner = [value.func, *value.args.values()]
        if depth < _MOST_HELD:
            for one in inner:
                self._follow(one, depth + 1)

    def _has_generator(self, value: v.Obj) -> bool:
        return any(one.kind == "generator" for one in self._interp.kb.rng(value.api))

    def _is_kept_generator(self, value: v.Obj, owner: v.Inst) -> bool:
        """Whether a value draws, and may be used in methods of the instance that keeps it. A class that does nothing is one
        that is being written."""
        if self._is_generator(value) or not self._has_generator(value):
            return self._is_generator(value)
        held = (one for cls in owner.cls.mro() for one in cls.env.all().items())
        return any(isinstance(one, v.Func) and name != "__init__" for name, one in held)

    def _is_generator(self, value: v.Obj) -> bool:
        # One that does nothing but draw is reported wherever it is handed on.
        return value.type not in GENERATOR_TYPES and self._has_generator(value)

    def _keeps_its_attributes(self, owner: v.Inst) -> bool:
        """Whether no class of a library that an instance is derived from reads attributes that it does not know."""
        role = self._interp.kb.role
        return all(role(base, "base-only") is not None for base in owner.cls.external_bases())

    def _given(self, value: v.Value, depth: int, inherited: bool = False) -> None:
        """A library gets a value, or an ``inherited`` method of it is called, which reads no number or array that the
        class keeps, other than in its layers."""
        if type(value) is v.Obj and value.api not in CONTAINERS:
            if not inherited or not self._is_drawn(value):
                self._loaded(value)
            return
        inner = _parts(value)
        if inner is not None and depth < _MOST_NESTED:
            for one in inner:
                # Most of what is held is plain.
                if type(one) not in _PLAIN:
                    self._given(one, depth + 1, inherited)

    def _loaded(self, value: v.Obj) -> None:
        if self._random.get(value.api) is False:
            return
        found = self._place(value)
        if found is not None:
            self._interp.state.flags.setdefault(_LOADED + found[0], found[1])

    def _place(self, value: v.Value | None) -> tuple[str, Site] | None:
        """Where something random was made, as text and as a place; None for anything else."""
        if not isinstance(value, v.Obj):
            return None
        known = self._random.get(value.api)
        if known is None:
            entries = self._interp.kb.rng(value.api)
            known = any(one.kind in _MAKING and one.at == "call" and not one.in_place for one in entries)
            self._random[value.api] = known
        site = made_at(value) if known else None
        if site is None or self._is_seeded(value):
            return None
        return f"{site.path}:{site.start}", site

    def _is_seeded(self, value: v.Obj) -> bool:
        """Whether a generator was made with a seed: another call of the same place may have made one without."""
        return value.type in GENERATOR_TYPES and any(
            one.kind == "generator"
            and (one.seed_arg or one.seed_pos is not None)
            and v.is_none(seed_value(value.args, one) or v.NONE) is not True
            for one in self._interp.kb.rng(value.api)
        )


def _parts(value: v.Value) -> Sequence[v.Value] | None:
    """The values that an instance or a container holds, or that a value may be; None for anything else."""
    if isinstance(value, v.Obj) and value.api in CONTAINERS:
        return parts(value)
    if isinstance(value, v.Inst):
        return list(dict.values(value.attrs))
    if isinstance(value, v.Items):
        return value.elts
    if isinstance(value, v.Mapping):
        return list(value.items.values())
    return value.values if isinstance(value, v.AnyOf) else None


def _is_container(value: v.Value | None) -> TypeGuard[v.Obj]:
    return isinstance(value, v.Obj) and value.api in CONTAINERS


def kept_places(state: State, is_read: Callable[[str], bool]) -> frozenset[Site]:
    """Where something random was made that is kept in an attribute which nothing reads; ``is_read`` says whether code that
    has not run may read attributes of a name."""
    kept = ((*name.removeprefix(_KEPT).split(" ", 1), site) for name, site in state.flags.starting(_KEPT))
    return frozenset(
        site for name, place, site in kept if _LOADED + place not in state.flags and not is_read(name)
    )


def stored_places(state: State, is_read: Callable[[str, bool], bool]) -> frozenset[Site]:
    """Where values were drawn that are kept in attributes which nothing reads, see ``kept_places``; ``is_read`` also
    gets whether a function keeps the instance."""
    stored: dict[str, tuple[Site, set[tuple[str, bool]]]] = {}
    for flag, site in state.flags.starting(_STORED):
        name, held, place = flag.removeprefix(_STORED).split(" ", 2)
        stored.setdefault(place, (site, set()))[1].add((name, bool(held)))
    return frozenset(
        site
        for place, (site, names) in stored.items()
        if _LOADED + place not in state.flags and not any(is_read(*one) for one in names)
    )


def uncalled_parts(state: State, is_read: Callable[[str], bool]) -> frozenset[Site]:
    """Where something random was made as a part of something, and nothing called it; ``is_read`` says whether code that has
    not run may read a name."""
    found: set[Site] = set()
    for flag, site in state.flags.starting(_PART):
        names, _, place = flag.removeprefix(_PART).partition(" ")
        if _USED + place not in state.flags and not any(is_read(name) for name in names.split(",") if name):
            found.add(site)
    return frozenset(found)


def _is_made(above: Mapping[int, Any], name: m.Name, value: v.Obj) -> bool:
    """Whether a variable stands where it is given what an expression makes."""
    stmt = above.get(id(name))
    return isinstance(stmt, m.Assign) and stmt.value is value.node and name in stmt.targets


def _is_tested(above: Mapping[int, Any], name: m.Name) -> bool:
    """Whether a variable stands where it is asked whether it is something: ``rng is None``, ``not rng``."""
    user = above.get(id(name))
    if isinstance(user, m.Compare):
        return user.left is name and user.ops in (["is"], ["is not"])
    return isinstance(user, m.Unary) and user.op == "not"


def _has_part(whole: m.Expr, part: Any) -> bool:
    """Whether an expression is made of another one: ``{"a": part}``, ``(part, x)``."""
    if isinstance(whole, m.Dict):
        return any(_has_part(one, part) for one in whole.values if one is not None)
    if isinstance(whole, m.Seq):
        return any(_has_part(one, part) for one in whole.elts)
    return whole is part


def replaced_places(state: State) -> frozenset[Site]:
    """Where something random was made that was replaced before anything read it."""
    return frozenset(
        setting.site
        for name, setting in state.modes.starting(REPLACED)
        if setting.value is True
        and setting.site is not None
        and _LOADED + name.removeprefix(REPLACED) not in state.flags
    )
