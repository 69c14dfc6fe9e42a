"""Binding names, attributes and items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from d9mlint.interp import made_tables, order_sums, parted, rng, tensors
from d9mlint.interp import values as v
from d9mlint.interp.clocks import timed
from d9mlint.interp.containers import in_places
from d9mlint.interp.data import (
    added,
    binary,
    element,
    elements,
    happens_once,
    has_elements,
    is_entropy,
    is_environ,
    joined,
    position,
    rest_of,
    set_item,
    subscript,
    takes_away,
)
from d9mlint.interp.events import (
    AttributeEvent,
    ForeignWriteEvent,
    InstanceWriteEvent,
    ItemUpdateEvent,
    ObjectAttributeEvent,
    OtherAttributeEvent,
)
from d9mlint.interp.heap import HEAP, Cells
from d9mlint.interp.library import replacements
from d9mlint.interp.library.options import FLAGS, as_default, section
from d9mlint.interp.library.records import fields
from d9mlint.interp.library.reflection import extend_path
from d9mlint.interp.methods import setter_of
from d9mlint.interp.missing_items import take_out
from d9mlint.interp.order_kinds import some_of
from d9mlint.interp.places import running
from d9mlint.ir import nodes as m
from d9mlint.ir.growing import grows_items_of
from d9mlint.ir.scopes import counted_attributes

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_PARTS: dict[str, tuple[str, ...]] = {}
_MOST_GROWN = 64
"""So many elements of a list that grows in a loop are known."""


def parts_of(dotted: str) -> tuple[str, ...]:
    """A dotted name's parts, memoised."""
    known = _PARTS.get(dotted)
    if known is None:
        known = _PARTS[dotted] = tuple(dotted.split("."))
    return known


def assign(interp: Interp, target: m.Expr, value: v.Value) -> None:
    """Bind a target: a name, an attribute, an item, or a sequence of targets."""
    if isinstance(target, m.Name):
        parts = parts_of(target.id)
        if len(parts) == 1:
            interp.bind(target.id, value)
            return
        owner = interp.lookup(parts[0])
        if owner is None:
            return
        for part in parts[1:-1]:
            owner = interp.attribute(owner, part, target)
        set_attribute(interp, owner, parts[-1], value, target)
    elif isinstance(target, m.Attr):
        names = parts_of(target.name)
        owner = interp.eval(target.value)
        for part in names[:-1]:
            owner = interp.attribute(owner, part, target)
        set_attribute(interp, owner, names[-1], value, target)
    elif isinstance(target, m.Subscript):
        if _is_lone(value) and (function := running(interp)) is not None:
            # Another round adds to the set of a key: `if word in table: table[word].add(tag)`, `else: table[word] = {tag}`.
            value.open = value.open or grows_items_of(function, target.value)
        set_item(interp, interp.eval(target.value), interp.eval(target.index), value, target)
    elif isinstance(target, m.Seq):
        _unpack(interp, target, value)
    elif isinstance(target, m.Star):
        assign(interp, target.value, v.UNKNOWN)


def _is_lone(value: v.Value) -> TypeGuard[v.Items]:
    """Whether a value is a set of one element."""
    return isinstance(value, v.Items) and value.kind == "s" and len(value.elts) == 1


def _unpack(interp: Interp, target: m.Seq, value: v.Value) -> None:
    if interp.orders.any or isinstance(value, v.Items):
        interp.orders.unpacked(interp, target, value)
    starred = [i for i, one in enumerate(target.elts) if isinstance(one, m.Star)]
    # Of several tuples, only those of the right length can be meant.
    fitting = [
        known
        for one in v.alternatives(value)
        if (known := elements(interp, one, None) or in_places(one, len(target.elts))) is not None
        and (len(known) >= len(target.elts) - 1 if starred else len(known) == len(target.elts))
    ]
    if fitting:
        others = any(
            not isinstance(one, v.Items)
            and tensors.second(interp, one) is None
            and fields(one) is None
            and not (isinstance(one, v.Obj) and v.BATCH_PARTS in one.attrs)
            and in_places(one, len(target.elts)) is None
            for one in v.alternatives(value)
        )
        rows = [_spread(known, len(target.elts), starred[0]) if starred else known for known in fitting]
        for index, one in enumerate(target.elts):
            found = v.join([*(row[index] for row in rows), *([v.UNKNOWN] if others else [])])
            assign(interp, one.value if isinstance(one, m.Star) else one, found)
        return
    known_parts = isinstance(value, v.Items) or (isinstance(value, v.Obj) and has_elements(interp, value))
    rest = element(interp, value) if known_parts else v.UNKNOWN
    if isinstance(value, v.AnyOf) and tensors.detached(value):
        rest = tensors.batch("")
    if isinstance(value, v.Obj) and is_entropy(value) and not starred:
        for index, one in enumerate(target.elts):
            assign(interp, one, rest_of(interp, value, index))
        return
    for index, one in enumerate(target.elts):
        part = parted.of_result(interp, value, index) if isinstance(value, v.Obj) and not starred else None
        if part is None:
            # One value stands for all that are taken; what is learned of one of them is not so of the others.
            part = tensors.another(rest) if index else rest
        if isinstance(one, m.Star) and isinstance(rest, v.Obj) and tensors.detached(rest):
            assign(interp, one.value, v.Items("l", [part], open=True))
        else:
            assign(interp, one, part)


def _spread(known: list[v.Value], count: int, starred: int) -> list[v.Value]:
    """Elements as they fall to ``count`` targets of which one takes all that are left."""
    after = len(known) - (count - 1 - starred)
    return [*known[:starred], v.Items("l", known[starred:after]), *known[after:]]


def aug_assign(interp: Interp, stmt: m.AugAssign) -> None:
    """``target op= value``."""
    value = interp.eval(stmt.value)
    target = stmt.target
    if isinstance(target, m.Subscript):
        owner = interp.eval(target.value)
        index = interp.eval(target.index)
        interp.listeners.tell(ItemUpdateEvent(owner, index, stmt.op, value, stmt))
        if interp.sharing and not interp.among_processes:
            order_sums.added_by_tasks(interp, stmt, subscript(interp, owner, index, target), value)
        if stmt.op == "+" and isinstance(owner, v.Items | v.Mapping):
            _grow_item(interp, stmt, subscript(interp, owner, index, target), value)
        if interp.orders.any:
            interp.orders.stored(interp, owner, index, value)
            interp.orders.item_summed(interp, stmt, owner, value)
        tensors.write(interp, owner, "", value)
        _vary_item(interp, stmt, owner, index, value)
        return
    old = interp.eval(target)
    orders = interp.orders
    if isinstance(old, v.Items) and stmt.op == "+":
        in_branch = interp.repeating and interp.branching and not orders.any
        if in_branch and old.kind == "l" and isinstance(value, v.Items) and value.kind in "lt":
            # The list itself grows: where the branches of a round meet again, it is the same one.
            old.elts, old.open = [*old.elts, *value.elts][:_MOST_GROWN], True
            return
        extra = (
            value.elts if isinstance(value, v.Items) else some_of(interp, value, stmt.value) or [v.UNKNOWN]
        )
        is_open = old.open or not isinstance(value, v.Items) or value.open
        new: v.Value = joined(old.kind, [*old.elts, *extra], is_open)
        if orders.any or isinstance(value, v.Items):
            new = orders.augmented(interp, stmt, old, value, new)
        assign(interp, target, new)
        return
    if isinstance(target, m.Name) and "." not in target.id:
        result = binary(interp, stmt.op, old, value, stmt)
        result = v.UNKNOWN if interp.frame.jumps and isinstance(result, v.Lit) else result
    else:
        # An attribute that is counted up has no one value.
        lists = all(isinstance(one, v.Items) for one in v.alternatives(old))
        kept = old if isinstance(old, v.Obj) or lists else v.UNKNOWN
        result = binary(interp, stmt.op, kept, value, stmt)
    if stmt.op == "+" and not interp.frame.jumps:
        result = added(result, old, value)
    result = timed(interp, result, old, value)
    if interp.sharing and not interp.among_processes:
        order_sums.added_by_tasks(interp, stmt, old, value)
    if orders.any:
        result = orders.augmented(interp, stmt, old, value, result)
    assign(interp, target, result)


def _vary_item(interp: Interp, stmt: m.AugAssign, owner: v.Value, index: v.Value, value: v.Value) -> None:
    """``config["seed"] += value``: of what is computed so, it is kept that it differs in every run."""
    if not isinstance(index, v.Lit) or not isinstance(index.value, str) or not isinstance(value, v.Obj):
        return
    result = binary(interp, stmt.op, v.UNKNOWN, value, stmt)
    if not isinstance(result, v.Obj) or not is_entropy(result):
        return
    if isinstance(owner, v.Mapping):
        held: dict[Any, v.Value] = owner.items
    elif isinstance(owner, v.Obj) and owner.type != tensors.TENSOR:
        held = owner.attrs
    else:
        return
    before = held.get(index.value)
    held[index.value] = v.join((before, result)) if interp.branching and before is not None else result


def _grow_item(interp: Interp, stmt: m.AugAssign, held: v.Value, value: v.Value) -> None:
    """``lists[index] += value``: the list that is there grows."""
    lists = [one for one in v.alternatives(held) if isinstance(one, v.Items) and one.kind == "l"]
    grown = value.elts if isinstance(value, v.Items) else some_of(interp, value, stmt.value) or [v.UNKNOWN]
    for one in lists:
        one.elts, one.open = [*one.elts, *grown][:_MOST_GROWN], True
        interp.orders.item_grown(interp, stmt, one, value)
    if not lists and isinstance(value, v.Items):
        interp.orders.item_grown(interp, stmt, held, value)


def delete(interp: Interp, target: m.Expr) -> None:
    """``del target`` for items and attributes."""
    if isinstance(target, m.Subscript):
        owner, index = interp.eval(target.value), interp.eval(target.index)
        made_tables.deleted(owner, index)
        if is_environ(interp, owner) and isinstance(index, v.Lit):
            interp.unset_env(str(index.value))
        elif isinstance(owner, v.Mapping) and isinstance(index, v.Lit):
            if not take_out(owner, index, happens_once(interp, owner)):
                owner.items.pop(index.value, None)
                owner.open = True
        elif isinstance(owner, v.Items):
            at = position(owner, index) if takes_away(interp, owner) else None
            if at is None or at >= len(owner.elts):
                owner.open = v.FEWER
            else:
                owner.elts = [*owner.elts[:at], *owner.elts[at + 1 :]]


_FOREIGN = frozenset({v.Obj, v.Member, v.Unknown})
_HELD = frozenset({v.Obj, v.Inst, v.AnyOf, v.Items, v.Mapping})


def set_attribute(interp: Interp, owner: v.Value, name: str, value: v.Value, node: Any) -> None:
    """``owner.name = value``."""
    if isinstance(owner, v.Ext):
        dotted = interp.kb.canonical(f"{owner.name}.{name}")
        interp.listeners.tell_attribute(AttributeEvent(dotted, value, node))
        if dotted == "sys.path":
            extend_path(interp, dotted, v.NO_ARGS, node)
        mode = interp.kb.mode_of(dotted)
        if mode is not None:
            interp.set_mode(mode, value, node)
        else:
            interp.listeners.tell(OtherAttributeEvent(dotted, value, node))
        seeds = tuple(one for one in interp.kb.rng(dotted) if one.assigned or one.seeds)
        if seeds and (not isinstance(value, v.Lit) or any(entry.assigned for entry in seeds)):
            # A library that is seeded by an assignment, or a function in place of the one that seeds.
            rng.apply(interp, seeds, v.Args([value]), node)
        if owner.name in FLAGS:
            interp.set_library_attribute(f"{owner.name}.{name}", v.UNKNOWN if interp.branching else value)
        elif interp.library_attributes.get(f"{owner.name}.{name}") in (None, v.UNKNOWN):
            interp.set_library_attribute(f"{owner.name}.{name}", replacements.in_library(interp, value))
        else:
            # Which of several functions of the program it is, or the library's own again, depends on when it is called.
            interp.set_library_attribute(f"{owner.name}.{name}", v.UNKNOWN)
        return
    if type(owner) in _FOREIGN:
        if type(value) in _HELD:
            interp.listeners.tell(ForeignWriteEvent(value))
        replacements.into(interp, owner, value)
    if isinstance(owner, v.Inst):
        found = owner.cls.find(name) if name not in owner.attrs else None
        setter = setter_of(found)
        if setter is not None:
            interp.call(setter.bind(owner), v.Args([value]), node)
            return
        if isinstance(found, v.Func):
            HEAP.rebind(name)
        if isinstance(value, v.Lit) and _counts(owner.cls, name, value.value):
            # Where it starts says nothing of the rounds in which it has been counted up.
            value = v.UNKNOWN
        old = dict.get(owner.attrs, name)
        if type(value) is v.Obj or type(old) is v.Obj:
            interp.listeners.tell(InstanceWriteEvent(old, value, owner, name))
        _store(interp, owner.attrs, name, value, owner.birth)
        if interp.orders.any:
            interp.orders.set_attribute(interp, owner, name, value)
    elif isinstance(owner, v.Obj):
        interp.listeners.tell_object_attribute(ObjectAttributeEvent(owner, name, value, node))
        if name == "requires_grad":
            tensors.require(interp, owner, value)
        _store(interp, owner.attrs, name, value)
    elif isinstance(owner, v.Member) and isinstance(owner.owner, v.Obj):
        interp.listeners.tell_object_attribute(ObjectAttributeEvent(owner, name, value, node))
    elif isinstance(owner, v.Member):
        into = _section_of(owner)
        if into is not None:
            set_attribute(interp, into, name, value, node)
    elif isinstance(owner, (v.Mod, v.Cls)):
        if interp.branching:
            old = owner.env.read(name)
            if old is not None and old is not value:
                value = v.join((old, value))
        if isinstance(owner, v.Cls):
            owner.set(name, value)
        else:
            owner.env.write(name, value)
    elif isinstance(owner, v.Mapping) and owner.cls is not None and name == "__dict__":
        if isinstance(value, v.Mapping) and value is not owner:
            owner.items.update(value.items)
    elif isinstance(owner, v.Mapping):
        _store(interp, owner.items, name, as_default(value, name) if owner.option else value)
        owner.attributes = True
    elif isinstance(owner, v.AnyOf):
        interp.branching += 1
        with tensors.of_one_of(interp, owner.values):
            for one in owner.values:
                set_attribute(interp, one, name, value, node)
        interp.branching -= 1


def _section_of(member: v.Member) -> v.Mapping | None:
    """The part of a configuration that an attribute names which the program has not set so far."""
    owner = _section_of(member.owner) if isinstance(member.owner, v.Member) else member.owner
    found = section(owner, member.name) if owner is not None else None
    return found if isinstance(found, v.Mapping) else None


def _counts(cls: v.Cls, name: str, value: object) -> bool:
    """Whether a number is the start of an attribute that the class, or one that it is made from, counts up."""
    return type(value) is int and any(name in counted_attributes(one.file.facts) for one in cls.mro())


def _store(interp: Interp, into: Cells, name: str, value: v.Value, birth: int = 0) -> None:
    if interp.in_doubt(birth):
        # What the same branch has stored there before is gone.
        old = interp.held_before(into, name)
        if old is not None and old is not value:
            value = v.join((old, value))
    into[name] = value
