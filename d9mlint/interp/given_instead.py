"""What stands in the place of an object where an option is given: ``if args.wide: net = Wide()``.

Behind the test, the variable stands for the object of the option's default. What the other objects are called for there
is followed beside it, with the option.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from d9mlint.interp import values as v
from d9mlint.interp.accepting import accepts
from d9mlint.interp.context import INSTEAD
from d9mlint.interp.device_names import ACCELERATORS, by_default, either_given
from d9mlint.interp.devices import DEVICE, named, selects
from d9mlint.interp.heap import HEAP
from d9mlint.interp.known_attributes import has
from d9mlint.interp.library_modules import is_module, makes_module
from d9mlint.interp.read_back import is_read_back
from d9mlint.interp.shapes import form
from d9mlint.interp.tensors import (
    LOADING,
    by_call,
    gone_on_with,
    in_place_of,
    is_switch,
    loaded_by_call,
    loaded_item,
)

if TYPE_CHECKING:
    from d9mlint.interp.heap import Activation
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.state import State
    from d9mlint.interp.view import RunView

_MOST = 16
"""An object has at most so many others in its place."""
_NONE: frozenset[int] = frozenset()
TRANSFORMS = ("transform", "augment")
"""The kinds of what draws where it changes an item."""
FUNCTIONS = (v.Func, v.Partial)
"""Functions of the program, also with some of their arguments."""
_MOST_OPTIONS = 3
"""So many options at once are taken for given at most."""


class Instead(NamedTuple):
    """An object, or a function of the program, that stands in the place of an object if ``option`` is given; ``asked`` are
    the values of options, as far as they are known, with which it does. ``since`` is the time at which a variable that had
    stood for the object was given the other: what has held the object before goes on with it."""

    value: v.Inst | v.Obj | v.Func | v.Partial
    option: str
    asked: dict[str, Any]
    since: int = 0


def note(interp: Interp, kept: v.Inst | v.Obj | v.Items, other: v.Value, option: str, since: int = 0) -> None:
    """If the option is given, a variable stands for ``other``, which may be one of several."""
    known = interp.given_instead.setdefault(kept.birth, [])
    for one in v.alternatives(other):
        if isinstance(one, (v.Inst, v.Obj, *FUNCTIONS)) and one is not kept and len(known) < _MOST:
            at = next((at for at, before in enumerate(known) if before.value is one), None)
            if at is not None:
                known[at] = known[at]._replace(since=min(known[at].since, since))
            else:
                known.append(Instead(one, option, {}, since))
                interp.noted_instead.append(known[-1])
                HEAP.clock += 1
                interp.instead_notes.append((HEAP.clock, kept.birth))


def unless_option(interp: Interp, kept: v.Value, other: v.Value, option: str, since: int = 0) -> v.Value:
    """What a name stands for by the default of an option, where it stands for something else if the option is given:
    what is on the CPU then by that default alone, or names the CPU, is kept apart from what always does. What stands there
    if it is given is noted, with the time ``since`` when a variable does so that had stood for what is kept."""
    if kept is other:
        return kept
    pairs = list(_elements(kept, other))
    if pairs and isinstance(kept, v.Items):
        meant_each = [unless_option(interp, one, another, option, since) for one, another in pairs]
        if all(one is now for (one, _), now in zip(pairs, meant_each, strict=True)):
            return kept
        replaced = v.Items(kept.kind, meant_each)
        replaced.order = kept.order
        return replaced
    called = _without_none(other)
    if _is_called(interp, kept) and all(_is_called(interp, one) for one in v.alternatives(called)):
        return _one_of(kept, called, option)
    if isinstance(kept, (*FUNCTIONS, v.Ext)) and _are_called(interp, kept, called):
        return _one_of(kept, called, option)
    if isinstance(kept, v.Mapping):
        for key, one, another in list(_read_numbers(interp, kept, other)):
            kept.items[key] = unless_option(interp, one, another, option, since)
    meant = _on_device(interp, kept, other, option)
    if interp.orders.any:
        meant = interp.orders.carried(meant, interp.orders.behind_options(other))
        if isinstance(meant, v.Inst):
            _take_orders(interp, meant, other)
    if (
        isinstance(meant, (v.Inst, v.Obj, v.Items))
        and not interp.importing
        and _is_followed(interp, kept, called)
    ):
        if isinstance(meant, v.Obj) and any(
            _is_transform(interp, one) or (isinstance(one, FUNCTIONS) and not _has_weights(interp, meant.api))
            for one in v.alternatives(called)
        ):
            meant = _for_itself(interp, meant)
        note(interp, meant, called, option, since)
    return meant


def _without_none(other: v.Value) -> v.Value:
    """What a name may stand for where an option is given, and is called: None, which it may stand for beside objects, is
    not."""
    left = [one for one in v.alternatives(other) if v.is_none(one) is not True]
    if not left or not isinstance(other, v.AnyOf) or len(left) == len(other.values):
        return other
    return v.join(left, max(v.MAX_ALTERNATIVES, len(left)))


def _elements(kept: v.Value, other: v.Value) -> Iterator[tuple[v.Value, v.Value]]:
    """The elements of two tuples of the same length, as a function returns them, in pairs."""
    if not isinstance(kept, v.Items) or not isinstance(other, v.Items):
        return
    if (
        kept.kind == other.kind == "t"
        and not kept.open
        and not other.open
        and len(kept.elts) == len(other.elts)
    ):
        yield from zip(kept.elts, other.elts, strict=True)


def _read_numbers(interp: Interp, kept: v.Value, other: v.Value) -> Iterator[tuple[Any, v.Lit, v.Obj]]:
    """The numbers in a dictionary in the place of which all that a file holds stands, with their keys and what the file
    holds under these."""
    files = [one for one in v.alternatives(other) if isinstance(one, v.Obj)]
    for key, one in kept.items.items() if isinstance(kept, v.Mapping) and files else ():
        if not isinstance(one, v.Lit) or type(one.value) is not int:
            continue
        for file in files:
            if file.api in LOADING or is_read_back(interp, file, v.Lit(key)):
                yield key, one, loaded_item(v.Obj("?", "?"), v.Lit(key), file)


def numbers_gone_on_with(interp: Interp, kept: v.Value, other: v.Value, option: str) -> Iterator[str]:
    """The flags of a path on which a number of a loaded file stands in the place of one that is known, if an option says
    what to load; also in the same place of a tuple, or under the same key of a dictionary."""
    flag = gone_on_with(kept, other, option)
    if flag and isinstance(kept, v.Lit):
        yield flag
        yield in_place_of(flag, kept.value)
        if reader := loaded_by_call(other):
            yield by_call(flag, reader)
    for one, another in _elements(kept, other):
        yield from numbers_gone_on_with(interp, one, another, option)
    for _, number, read in _read_numbers(interp, kept, other):
        yield from numbers_gone_on_with(interp, number, read, option)


def goes_on_with_numbers(interp: Interp, kept: v.Value, other: v.Value, option: str) -> bool:
    """Whether there are such numbers in what a function, or an expression, gives; the flags are set."""
    flags = list(numbers_gone_on_with(interp, kept, other, option))
    for flag in flags:
        interp.flag(flag, interp.statement)
    return bool(flags)


def _take_orders(interp: Interp, kept: v.Inst, other: v.Value) -> None:
    """What the attributes of an object hold is in arbitrary order if it is in the objects which stand in its place where
    the option is given."""
    for one in v.alternatives(other):
        for name, value in list(one.attrs.items()) if isinstance(one, v.Inst) and one is not kept else ():
            order = interp.orders.behind_options(value)
            held = kept.attrs.get(name) if order is not None else None
            if held is v.UNKNOWN or isinstance(held, (v.Obj, v.Items, v.Mapping)):
                kept.attrs[name] = interp.orders.carried(held, order)


def _has_weights(interp: RunView, api: str) -> bool:
    entry = interp.kb.tensor(api)
    return (entry is not None and entry.grad == "weights") or any(
        one.kind == "init" for one in interp.kb.rng(api)
    )


def _for_itself(interp: Interp, transform: v.Obj) -> v.Obj:
    """A transform, or a loss, of a variable that stands for something else if an option is given: other variables may
    stand for it, also what stands in its place may hold it."""
    if transform._attrs:
        return transform
    made = v.Obj(transform.api, transform.type, transform.args, transform.node)
    made.file, made.owner, made.something, made.package = (
        transform.file, transform.owner, transform.something, transform.package,
    )  # fmt: skip
    known = interp.given_instead.get(transform.birth)
    if known:
        interp.given_instead[made.birth] = list(known)
    return made


def given_by_default(interp: Interp, kept: v.Lit, option: str) -> v.Lit:
    """What stands in the place of an option that has no value by default: as the default of it."""
    nothing = is_switch(kept) or kept.instead is not None
    return switch(interp, kept, v.UNKNOWN, option) if nothing else v.Lit(kept.value, option)


def switch(interp: Interp, kept: v.Lit, other: v.Value, option: str) -> v.Lit:
    """Nothing, or yes or no, that stands somewhere by the default of an option, with the objects and callables that stand
    there if it is given."""
    if interp.importing:
        return v.Lit(kept.value, option)
    found = map(_object, (kept, *v.alternatives(other)))
    objects = [one for one in found if one is not None]
    return v.Lit(kept.value, option, v.join(objects) if objects else None)


def _object(value: v.Value) -> v.Value | None:
    if isinstance(value, v.Lit):
        return value.instead
    if isinstance(value, (v.Func, v.Cls, v.Ext, v.Member, v.Partial)):
        return value
    # A checkpoint is not None.
    known = isinstance(value, v.Obj) and value.api in LOADING
    return value if isinstance(value, (v.Inst, v.Obj)) and (known or v.is_none(value) is False) else None


def _is_called(interp: Interp, value: v.Value) -> bool:
    """Whether a value is a class or function of the program, or one of a library that makes a module or computes with
    tensors."""
    if isinstance(value, v.AnyOf):
        return bool(value.option) and all(_is_called(interp, one) for one in value.values)
    if not isinstance(value, v.Ext):
        return isinstance(value, (v.Cls, v.Func))
    api = interp.kb.canonical(value.name)
    return makes_module(interp, api) or interp.kb.tensor(api) is not None or bool(interp.kb.ops(api))


def _are_called(interp: RunView, kept: v.Value, other: v.Value) -> bool:
    """Whether a function of the program stands in one of two places, and in both what a program may call."""
    found = (kept, *v.alternatives(other))
    return any(isinstance(one, FUNCTIONS) for one in found) and all(
        isinstance(one, (*FUNCTIONS, v.Ext)) or _is_module(interp, one) or one is kept for one in found
    )


def _one_of(kept: v.Value, other: v.Value, option: str) -> v.Value:
    """What is called by the default of an option, with what is called instead where it is given."""
    known = list(v.alternatives(kept))
    known += [one for one in v.alternatives(other) if not any(v.same(one, before) for before in known)]
    return v.AnyOf(tuple(known[:_MOST]), option) if len(known) > 1 else kept


def _is_followed(interp: Interp, kept: v.Value, other: v.Value) -> bool:
    """Whether it matters what else a variable stands for: an object of the program, a model, one that was
    saved, or what resumes a training."""
    if isinstance(other, v.Obj) and (
        interp.kb.role(other.api, "resumes-training") is not None
        or interp.kb.role(other.api, "restores-model") is not None
    ):
        return True
    return (
        all(isinstance(one, v.Inst) for one in v.alternatives(other))
        or stands_for_module(interp, kept, other)
        or (isinstance(kept, (v.Inst, v.Obj)) and _are_called(interp, kept, other))
        or (
            isinstance(kept, v.Obj)
            and all(
                isinstance(one, (v.Inst, *FUNCTIONS)) or _is_transform(interp, one)
                for one in v.alternatives(other)
            )
        )
    )


def _is_transform(interp: RunView, value: v.Value) -> bool:
    """Whether a value is an object of a library that works on items, or calls what does: a transform, a dataset."""
    if not isinstance(value, v.Obj) or value.node is None:
        return False
    role = interp.kb.role(value.api, "calls-at-use")
    return (role is not None and role.library != "python") or any(
        entry.kind in TRANSFORMS for entry in interp.kb.rng(value.api)
    )


def _on_device(interp: Interp, kept: v.Value, other: v.Value, option: str) -> v.Value:
    """What is on the CPU by the default of an option alone, or names the CPU, with the option."""
    turned = isinstance(kept, v.Lit) and kept.option and type(kept.value) is bool and _differs(kept, other)
    if isinstance(kept, v.Lit) and (kept.instead is not None or turned):
        return switch(interp, kept, other, either_given(kept.option, option))
    if isinstance(kept, v.Lit) and gone_on_with(kept, other, option):
        return v.Lit(kept.value, option)
    if isinstance(kept, v.Lit) and (is_switch(kept) or is_choice(interp, kept)):
        return kept if v.same(kept, other) else switch(interp, kept, other, option)
    if not selects(interp, option):
        return kept
    if isinstance(kept, v.Lit):
        moves = not kept.option and named(interp, kept) == "cpu" and _may_name_gpu(interp, other)
        return v.Lit(kept.value, option) if moves else kept
    if not isinstance(kept, v.Obj):
        return kept
    old = kept.form
    if old is None:
        moves = kept.api == DEVICE and named(interp, kept) == "cpu" and named(interp, other) == interp.device
        return v.Obj(DEVICE, DEVICE, v.Args([v.Lit("cpu", option)]), kept.node) if moves else kept
    if old.device != "cpu" or form(other).device != interp.device:
        return kept
    moved = v.Obj(kept.api, kept.type, kept.args, kept.node)
    moved.file, moved.likely, moved.order, moved.owner, moved.something, moved.package = (
        kept.file, kept.likely, kept.order, kept.owner, kept.something, kept.package,
    )  # fmt: skip
    moved.start_with(old._replace(device=by_default(option)))
    return moved


def _may_name_gpu(interp: Interp, other: v.Value) -> bool:
    """Whether what stands in the place of the name of the CPU names a GPU of the kind that findings are about, or is what
    an option was given."""
    given = isinstance(other, v.Obj) and other.api == v.GIVEN
    return given or named(interp, other) == interp.device


def names_other_gpu(interp: Interp, kept: v.Lit, other: v.Value) -> bool:
    """Whether a name of the CPU is, if an option is given, that of a GPU of another kind than findings are about."""
    there = named(interp, v.Lit(kept.value)) if type(kept.value) is str else ""
    return there == "cpu" and named(interp, other) in set(ACCELERATORS) - {interp.device}


def is_choice(interp: Interp, value: object) -> TypeGuard[v.Lit]:
    """Whether a value is a text, whatever options are given, that names no device: one that may choose what a program
    does."""
    if not isinstance(value, v.Lit) or value.option or type(value.value) is not str:
        return False
    return not named(interp, value)


def _differs(kept: v.Lit, other: v.Value) -> bool:
    return not isinstance(other, v.Lit) or other.value is not kept.value


def made(interp: Interp, option: str, began: int) -> None:
    """A branch ends that has been running since ``began`` because an option is given."""
    spans = interp.made_where_given.setdefault(option, [])
    while spans and spans[-1][0] >= began:
        spans.pop()
    spans.append((began, HEAP.clock))


def is_made_where_given(interp: Interp, option: str, birth: int) -> bool:
    """Whether an object was made in a branch that ran because an option is given."""
    spans = interp.made_where_given.get(option)
    if not spans:
        return False
    at = bisect_left(spans, birth, key=_end)
    return at < len(spans) and spans[at][0] < birth


def _end(span: tuple[int, int]) -> int:
    return span[1]


def known_at(interp: Interp, time: int) -> dict[int, list[Instead]]:
    """What stands in the place of objects that were held at a time: not what a variable was given after it."""
    return {
        birth: [one for one in known if one.since <= time] for birth, known in interp.given_instead.items()
    }


def others(interp: RunView, value: v.Value) -> list[Instead]:
    """The objects that stand in the place of a value if options are given."""
    return [one for one in all_others(interp, value) if not isinstance(one.value, FUNCTIONS)]


def functions(interp: RunView, value: v.Value) -> list[Instead]:
    """The functions of the program that stand in the place of a value if options are given."""
    return [one for one in all_others(interp, value) if isinstance(one.value, FUNCTIONS)]


def all_others(interp: RunView, value: v.Value) -> list[Instead]:
    """What stands in the place of a value if options are given."""
    if not interp.given_instead or not isinstance(value, (v.Inst, v.Obj, v.Items)):
        return []
    known = interp.given_instead.get(value.birth, [])
    if known:
        HEAP.act.circumstances.add((INSTEAD, "", value.birth))
    return known


def answer(interp: Interp, birth: int) -> Any:
    """The answer to the question for the ``others`` of an object, for the memo."""
    known = interp.given_instead.get(birth, ())
    return birth in interp.apart, tuple(_identity(one.value) for one in known)


def _identity(value: v.Value) -> Any:
    """What tells a value that stands in the place of another one from others."""
    if isinstance(value, (v.Inst, v.Obj)):
        return value.birth
    return value.key if isinstance(value, v.Func) else id(value)


def noted_since(interp: Interp, time: int) -> frozenset[int]:
    """The objects, by birth, of which it was noted after a time that a different object stands in their place."""
    notes = interp.instead_notes
    if not notes or notes[-1][0] <= time:
        return _NONE
    return frozenset(birth for _, birth in notes[bisect_right(notes, time, key=_noted) :])


def has_changed(interp: Interp, act: Activation) -> bool:
    """Whether a call that has ended both changed and asked what stands in the place of an object. Then the answer at its
    start is not known."""
    late = noted_since(interp, act.start)
    return any(
        kind is INSTEAD and birth in late and birth < act.start for kind, _, birth in act.circumstances
    )


def _noted(note: tuple[int, int]) -> int:
    return note[0]


def call(interp: Interp, func: v.Value, args: v.Args, node: Any, follow: Callable[..., v.Value]) -> v.Value:
    """Call what the default of an option has chosen, or a method of it, and beside it what stands there if the option is
    given. ``follow`` calls one of them."""
    receiver = _receiver(func)
    meant = all_others(interp, receiver) if receiver is not None else []
    if not meant or not isinstance(receiver, (v.Inst, v.Obj)) or receiver.birth in interp.apart:
        return follow(interp, func, args, node)
    if not accepts(func, args):
        # With what the default of the option has chosen, this call raises.
        taking = [
            one for one in (_same(interp, func, other.value, node) for other in meant) if one is not None
        ]
        taking = [one for one in taking if accepts(one, args)]
        if taking:
            return follow(interp, v.join(taking), args, node)
    # In their own methods, both are themselves.
    interp.apart.add(receiver.birth)
    before, spans = interp.state.copy(), [HEAP.clock]
    result = follow(interp, func, args, node)
    spans.append(HEAP.clock)
    for one in list(meant):
        if any(interp.asked.get(name, value) != value for name, value in one.asked.items()):
            # Here the option has another value.
            continue
        function = _same(interp, func, one.value, node)
        if function is not None:

            def run(given: v.Args, function: v.Value = function) -> v.Value:
                return follow(interp, function, given, node)

            result = beside(interp, result, before, run, args, one.option)
            spans.append(HEAP.clock)
    interp.apart.discard(receiver.birth)
    part(interp, spans)
    return result


def part(interp: Interp, times: list[int]) -> None:
    """Calls have ended of which a run makes one: the first began at the first of these times, and each ended at one."""
    if not interp.importing:
        interp.partings.separate(
            tuple((began, ended, at) for at, (began, ended) in enumerate(pairwise(times)))
        )


def beside(
    interp: Interp,
    kept: v.Value,
    before: State,
    other: Callable[[v.Args], v.Value],
    args: v.Args,
    option: str,
) -> v.Value:
    """What a call has given, and what another one gives in its place from the state ``before`` it if an option is given."""
    if option in interp.options.held and interp.state.aside != option:
        # Here it is not.
        return kept
    if len(interp.asides) >= _MOST_OPTIONS:
        return kept
    results: list[v.Value] = []

    after = interp.state

    def nothing() -> None:
        interp.state = after

    def instead() -> None:
        results.append(other(_given(args, option)))

    interp.state = before
    interp.branch([nothing, instead], keep=0, option=option)
    for one in results:
        if kept is not one and _is_object(kept) and _is_object(one):
            kept = unless_option(interp, kept, one, option)
    return kept


def run_beside(interp: Interp, other: v.Value, args: v.Args, node: Any, option: str) -> None:
    """A library calls what it is given if an option is, beside what it is given by the default."""
    beside(interp, v.NONE, interp.state.copy(), lambda given: interp.call(other, given, node), args, option)


def _given(args: v.Args, option: str) -> v.Args:
    """Arguments as they are where an option is given that is off by default."""

    def one(value: v.Value) -> v.Value:
        switched = isinstance(value, v.Lit) and value.option == option and isinstance(value.value, bool)
        return v.Lit(not value.value) if isinstance(value, v.Lit) and switched else value

    kw = {name: one(value) for name, value in args.kw.items()}
    return v.Args([one(value) for value in args.pos], kw, args.star, args.dstar)


def _is_object(value: v.Value) -> bool:
    """Whether a value is an object of a class, and not what a function gives."""
    return isinstance(value, v.Inst) or (
        isinstance(value, v.Obj) and value.owner is None and value.type == value.api
    )


def stands_for_module(interp: RunView, kept: v.Value, other: v.Value) -> bool:
    """Whether a model stands in the place of another one."""
    return all(_is_module(interp, one) for one in (kept, *v.alternatives(other)))


def _is_module(interp: RunView, value: v.Value) -> bool:
    return isinstance(value, v.Inst) or (isinstance(value, v.Obj) and is_module(interp, value))


def _receiver(func: v.Value) -> v.Value | None:
    """The object that is called, or of which a method is."""
    if isinstance(func, (v.Inst, v.Obj)):
        return func
    return func.receiver if isinstance(func, v.Func) else func.owner if isinstance(func, v.Member) else None


def _same(interp: Interp, func: v.Value, other: v.Value, node: Any) -> v.Value | None:
    """What is called of another object in the place of a function of the one that a default has chosen."""
    if isinstance(func, (v.Inst, v.Obj)):
        return other
    if isinstance(other, FUNCTIONS):
        return None
    assert isinstance(func, (v.Func, v.Member))
    name = func.fn.name if isinstance(func, v.Func) else func.name
    found = interp.attribute(other, name, node)
    if isinstance(func, v.Func) and isinstance(found, v.Member) and isinstance(other, v.Inst):
        # What has no such method is not called for it.
        return found if has(interp, other, name) is not False else None
    return found if isinstance(found, (v.Func, v.Member)) else None
