"""What a call did, remembered by what it read.

A call is not run again where it would do the same: the same function in the same state, where every object
and variable that it read before holds what it held then. The arguments need not be the same objects. An
argument that was read is matched, read by read, with the argument that stands in its place now; one that
was never read does not matter. What the call wrote is written again, and objects that it made are made again.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.context import Question
from d9mlint.interp.heap import (
    ABSENT,
    FIELD,
    HEAP,
    ITEM,
    NAME,
    NAMES,
    WHOLE,
    Access,
    Activation,
    Cells,
    Tracked,
    Whole,
    at,
)
from d9mlint.interp.state import Effect
from d9mlint.interp.trail import Trail

MAX_OUTCOMES = 16
"""A function's outcomes from one shape of arguments: the latest are kept."""
MAX_COPIED = 200
"""A result with more new objects than this is made by running the call again."""
MAX_RERUNS = 8
"""So often a function is run again because of the size of its result; then its results are shared as they are."""
SHAPE_DEPTH = 2
TENSOR = "torch.Tensor"


class Outcome(NamedTuple):
    """What a call read, wrote and gave. ``arguments`` are the objects it was given; ``recursions`` the functions
    that were running and so not entered again; objects born between ``start`` and ``end`` are its own. ``checked``
    holds up to where the names that the run has replaced were compared with those that the call looked for."""

    function: tuple[str, int]
    value: v.Value
    effect: Effect
    arguments: tuple[v.Value, ...]
    env: v.Env
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    recursions: frozenset[tuple[str, int]]
    start: int
    end: int
    # The names that it looked for, see ``heap.Activation``.
    names: set[str]
    named: int
    trail: Trail
    checked: list[int]
    # What it asked of what is active, with the answers.
    circumstances: tuple[tuple[Question, Any], ...]
    # What it found empty, and what is noted of each loop in which it happens, see ``heap.Activation``.
    found_empty: tuple[Tracked, ...]
    in_loops: frozenset[str]


def shape(value: v.Value | None, depth: int = 0) -> Any:
    """What tells values apart before anything is read from them."""
    if value is None or value is v.UNKNOWN:
        return None
    if isinstance(value, v.Lit):
        known = (type(value.value).__name__, value.value, value.option)
        if value.instead is None and not value.choices and not value.never_none:
            return known
        return (*known, shape(value.instead, depth + 1), value.choices, value.never_none, value.single)
    if isinstance(value, v.Ext):
        return value.name
    if isinstance(value, v.Obj):
        if value.type == TENSOR:
            return (TENSOR, value.likely)
        place = (value.file.path if value.file else "", value.node.start if value.node else 0)
        inner = tuple(shape(x, depth + 1) for x in value.args.values()) if depth < SHAPE_DEPTH else ()
        return ("obj", value.api, value.type, place, inner)
    if isinstance(value, v.Inst):
        return ("inst", value.cls)
    if isinstance(value, v.Items):
        return ("items", value.kind)
    if isinstance(value, v.Mapping):
        return ("mapping", value.attributes, value.cls)
    if isinstance(value, v.Func):
        return ("func", value.key, shape(value.receiver, depth + 1) if depth < SHAPE_DEPTH else 0)
    if isinstance(value, v.AnyOf):
        held = tuple(shape(x, depth + 1) for x in value.values) if depth < SHAPE_DEPTH else len(value.values)
        return ("any", held, value.option)
    if isinstance(value, v.Member):
        return ("member", value.name, shape(value.owner, depth + 1) if depth < SHAPE_DEPTH else 0)
    if isinstance(value, v.Partial):
        return ("partial", *_partial_shapes(value, depth + 1)) if depth < SHAPE_DEPTH else "partial"
    return id(value)


def _partial_shapes(value: v.Partial, depth: int) -> Iterator[Any]:
    args = value.args
    yield shape(value.func, depth)
    yield tuple(shape(one, depth) for one in args.pos)
    yield tuple((name, shape(one, depth)) for name, one in sorted(args.kw.items()))


def shapes(args: v.Args) -> Any:
    """The shapes of a call's arguments."""
    return (
        tuple(shape(value) for value in args.pos),
        tuple((name, shape(value)) for name, value in sorted(args.kw.items())),
        args.star,
        args.dstar,
    )


def remember(
    function: tuple[str, int],
    act: Activation,
    value: v.Value,
    effect: Effect,
    arguments: tuple[v.Value, ...],
    env: v.Env,
    recursions: frozenset[tuple[str, int]],
    trail: Trail,
    circumstances: tuple[tuple[Question, Any], ...],
) -> Outcome:
    """The outcome of an activation that has just ended."""
    return Outcome(
        function,
        value,
        effect,
        arguments,
        env,
        tuple(act.reads.values()),
        act.changes(),
        recursions,
        act.start,
        HEAP.clock,
        act.names,
        act.named,
        trail,
        [len(HEAP.rebound)],
        circumstances,
        tuple(act.found_empty),
        frozenset(act.in_loops),
    )


def is_bound_alike(outcome: Outcome) -> bool:
    """Whether nothing that the call looked for by its name has been replaced since."""
    replaced, (checked,) = HEAP.rebound, outcome.checked
    if checked == len(replaced):
        return True
    names, named, start = outcome.names, outcome.named, outcome.start
    if checked < 0 or any(
        birth < start and (name in names or NAMES.holds(named, name)) for name, birth in replaced[checked:]
    ):
        outcome.checked[0] = -1
        return False
    outcome.checked[0] = len(replaced)
    return True


_PLAIN = (v.Lit, v.Ext)
"""Types of most of what a call reads: what holds no object."""


class _Mismatch(Exception):
    """A call would not do the same again."""


def replay(
    outcome: Outcome,
    arguments: tuple[v.Value, ...],
    reruns: dict[tuple[str, int], int],
    loops: tuple[int, ...] = (),
    instead: Container[int] = (),
    late: Container[int] = (),
) -> v.Value | None:
    """Let the running activation have made the call again; None where it might do something else.

    ``reruns`` counts by function how often a call was run again because its result was too large; ``loops`` are
    the starts of the loops over an arbitrary order that are running. ``instead`` are the births of objects in whose place
    others stand if options are given, ``late`` of those of which that was not known when the call was made."""
    try:
        match = _Match(outcome, arguments, loops, instead, late)
        objects = match.objects
        for index, access in enumerate(outcome.reads):
            owner, kind, holder, key, then = access
            if owner in objects:
                match.check(access)
                continue
            if owner in match.taken or owner.birth in late:
                # Two objects then, one object now; or an object that has been replaced now.
                return None
            if kind is WHOLE:
                match.whole(access, outcome.reads[:index])
                continue
            now = dict.get(holder, key, ABSENT) if kind is ITEM else at(owner, kind, holder, key)
            if now is then:
                if not isinstance(then, _PLAIN):
                    match.stays(then)
            elif not v.same_content(now, then):
                if kind is FIELD:
                    return None
                match.replace(then, now, outcome.reads[:index])
        copies = _Copies(outcome, objects, reruns.get(outcome.function, 0) >= MAX_RERUNS)
        result: v.Value = copies.of(outcome.value)
        writes = [(objects.get(w[0], w[0]), w, copies.of(w[4])) for w in outcome.writes]
    except _TooLarge:
        reruns[outcome.function] = reruns.get(outcome.function, 0) + 1
        return None
    except _Mismatch:
        return None
    _look_again(outcome, objects)
    act = HEAP.act
    start, noted, written = act.start, act.reads, act.writes
    for access in outcome.reads:
        then_owner, kind, holder, key, then = access
        owner = objects.get(then_owner, then_owner)
        if owner.birth < start:
            if owner is not then_owner:
                holder = _holder(owner, access)
            if kind is WHOLE:
                HEAP.read_whole(owner)
                continue
            place = (id(holder), key)
            if place not in noted and place not in written:
                now = at(owner, kind, holder, key)
                alike = owner is then_owner and now is then
                noted[place] = access if alike else (owner, kind, holder, key, now)
    for owner, access, value in writes:
        HEAP.redo((owner, access[1], _holder(owner, access), access[3], value))
    return result


def repeat(outcome: Outcome, arguments: tuple[v.Value, ...]) -> v.Value:
    """Let the running activation have made the call again, whatever it reads now: what it gave is shared, and what
    it wrote to its arguments is written to those that stand in their places."""
    objects: dict[Tracked, Tracked] = {}
    for then, now in zip(outcome.arguments, arguments, strict=False):
        if isinstance(then, Tracked) and isinstance(now, Tracked) and type(then) is type(now):
            objects.setdefault(then, now)
    _look_again(outcome, objects)
    given = {one for one in outcome.arguments if isinstance(one, Tracked)}
    for access in outcome.writes:
        owner = objects.get(access[0])
        if owner is None and access[0] in given:
            continue
        owner = owner or access[0]
        value = objects.get(access[4], access[4]) if isinstance(access[4], Tracked) else access[4]
        HEAP.redo((owner, access[1], _holder(owner, access), access[3], value))
    value = outcome.value
    return objects.get(value, value) if isinstance(value, Tracked) else value  # type: ignore[return-value]


def _look_again(outcome: Outcome, objects: Mapping[Tracked, Tracked]) -> None:
    act = HEAP.act
    act.found_empty.update(objects.get(one, one) for one in outcome.found_empty)
    act.names |= outcome.names
    act.named |= outcome.named
    act.circumstances.update(question for question, _ in outcome.circumstances)


def _holder(owner: Tracked, access: Access) -> Any:
    """Where an access of the remembered call falls in the object that stands in for its owner."""
    then_owner, kind, holder, _, _ = access
    if owner is then_owner:
        return holder
    if kind != ITEM:
        return owner
    if isinstance(owner, v.Mapping):
        return owner.items
    if isinstance(owner, v.Obj):
        return owner._data if then_owner._data is holder else owner.attrs  # type: ignore[attr-defined]
    assert isinstance(owner, v.Inst)
    return owner.attrs


class _TooLarge(Exception):
    """A call made more objects than are copied."""


class _Match:
    """Objects of the remembered call and those that stand in their places now."""

    def __init__(
        self,
        outcome: Outcome,
        arguments: tuple[v.Value, ...],
        loops: tuple[int, ...],
        instead: Container[int],
        late: Container[int],
    ) -> None:
        self._loops = loops
        self._instead = instead
        self._late = late
        self.objects: dict[Tracked, Tracked] = {}
        self.taken: dict[Tracked, Tracked] = {}
        for then, now in zip(outcome.arguments, arguments, strict=True):
            self.pair(then, now)

    def pair(self, then: Any, now: Any) -> None:
        """Two values that have to be the same as far as they are read."""
        if then is now:
            if isinstance(then, Tracked):
                self._bind(then, then)
            return
        if isinstance(then, Tracked) and type(then) is type(now) and _like(then, now):
            self._bind(then, now)
            return
        if isinstance(then, v.Func) and isinstance(now, v.Func):
            if then.fn is now.fn and len(then.defaults) == len(now.defaults):
                self.pair(then.receiver, now.receiver)
                for name, default in then.defaults.items():
                    self.pair(default, now.defaults.get(name))
                self._scopes(then.env, now.env)
                return
        elif isinstance(then, v.AnyOf) and isinstance(now, v.AnyOf) and len(then.values) == len(now.values):
            for a, b in zip(then.values, now.values, strict=True):
                self.pair(a, b)
            return
        elif isinstance(then, v.Member) and isinstance(now, v.Member) and then.name == now.name:
            self.pair(then.owner, now.owner)
            return
        elif isinstance(then, v.Partial) and isinstance(now, v.Partial):
            if _is_given_alike(then.args, now.args):
                for a, b in zip(_parts(then), _parts(now), strict=True):
                    self.pair(a, b)
                return
        elif isinstance(then, (v.Lit, v.Ext)) and v.same(then, now):
            return
        raise _Mismatch

    def replace(self, then: Any, now: Any, before: tuple[Access, ...]) -> None:
        """A place that is no argument's holds another value now, which may still be the same as far as it is read:
        as long as nothing of it has been read as it was."""
        if then is ABSENT or now is ABSENT:
            raise _Mismatch
        known = set(self.objects)
        self.pair(then, now)
        new = {
            x
            for pair in self.objects.items()
            if pair[0] not in known and pair[0] is not pair[1]
            for x in pair
        }
        if new and any(access[0] in new or _mentions(access[4], new) for access in before):
            raise _Mismatch

    def whole(self, access: Access, before: tuple[Access, ...]) -> None:
        """A read of all of an object that is no argument: it holds the same, or what may be the same as far as it
        is read."""
        then: Whole = access[4]
        if access[0].version == then.version:
            self._unchanged(then)
            return
        now = access[0].contents()
        if now is None or then.contents is None or not v.same_shape(now, then.contents):
            raise _Mismatch
        for was, one in zip(then.contents[1], now[1], strict=True):
            if one is was:
                self.stays(was)
            elif not v.same_content(one, was):
                self.replace(was, one, before)

    def stays(self, value: Any) -> None:
        """A place holds the object that it held then: which is no other one elsewhere, then or now."""
        if isinstance(value, Tracked) and (value in self.objects or value in self.taken):
            self._bind(value, value)
        elif isinstance(value, (v.AnyOf, v.Partial)):
            for one in value.values if isinstance(value, v.AnyOf) else _parts(value):
                self.stays(one)

    def _unchanged(self, read: Whole) -> None:
        if read.contents is not None:
            for one in read.contents[1]:
                self.stays(one)

    def _scopes(self, then: v.Env | None, now: v.Env | None) -> None:
        """The scopes that a function closes over, from the inside to the one that both have in common."""
        while then is not now:
            if then is None or now is None or then.globals_ != now.globals_:
                raise _Mismatch
            self._bind(then, now)
            then, now = then.parent, now.parent

    def _bind(self, then: Tracked, now: Tracked) -> None:
        known = self.objects.get(then)
        if known is None and now not in self.taken:
            if then is now:
                if then.birth in self._late:
                    raise _Mismatch
            elif then.birth in self._instead or now.birth in self._instead:
                raise _Mismatch
            elif any((then.birth < x) is not (now.birth < x) for x in self._loops):
                # What is added to something older than a loop over an arbitrary order is arbitrary too.
                raise _Mismatch
            self.objects[then] = now
            self.taken[now] = then
            if isinstance(then, v.Obj) and isinstance(now, v.Obj) and then is not now:
                for a, b in zip(then.args.values(), now.args.values(), strict=True):
                    self.pair(a, b)
        elif known is not now:
            # One object in two places then, two objects now, or the other way round.
            raise _Mismatch

    def check(self, access: Access) -> None:
        """A read from an object that stands in the place of an argument."""
        then_owner, kind, _, key, then = access
        owner = self.objects[then_owner]
        if kind is WHOLE:
            self._whole(then_owner, then, owner)
            return
        if owner is then_owner:
            now = at(*access[:4])
            if now is then or v.same_content(now, then):
                if isinstance(then, Tracked):
                    self.pair(then, then)
            elif kind in (ITEM, NAME) and then is not ABSENT and now is not ABSENT:
                self.pair(then, now)
            else:
                raise _Mismatch
            return
        now = at(owner, kind, _holder(owner, access), key)
        if then is ABSENT or now is ABSENT or kind == FIELD:
            if then is not now and not (kind == FIELD and _plain(then) and then == now):
                raise _Mismatch
            return
        self.pair(then, now)

    def _whole(self, then: Tracked, read: Whole, now: Tracked) -> None:
        """All of an argument was read."""
        if then is now and then.version == read.version:
            self._unchanged(read)
            return
        if isinstance(then, v.Items) and isinstance(now, v.Items) and then.order != now.order:
            raise _Mismatch
        if isinstance(then, v.Mapping) and isinstance(now, v.Mapping) and then.order != now.order:
            raise _Mismatch
        if read.contents is not None:
            held = now.contents()
            if held is None or not v.same_shape(held, read.contents):
                raise _Mismatch
            for a, b in zip(read.contents[1], held[1], strict=True):
                self.pair(a, b)
            return
        # What it held was not kept: it holds it still.
        if then.version != read.version:
            raise _Mismatch
        if isinstance(then, v.Items) and isinstance(now, v.Items):
            if then._open is not now._open or len(then._elts) != len(now._elts):
                raise _Mismatch
            for a, b in zip(then._elts, now._elts, strict=True):
                self.pair(a, b)
            return
        left, right = _cells(then), _cells(now)
        if left is None or right is None or list(dict.keys(left)) != list(dict.keys(right)):
            raise _Mismatch
        for a, b in zip(dict.values(left), dict.values(right), strict=True):
            self.pair(a, b)


def _cells(owner: Tracked) -> Cells | None:
    if isinstance(owner, v.Mapping):
        return owner.items if owner.items.owner is owner else None
    return owner.attrs if isinstance(owner, v.Inst) else None


def _mentions(value: Any, objects: set[Tracked]) -> bool:
    if isinstance(value, Whole):
        return value.contents is not None and any(_mentions(one, objects) for one in value.contents[1])
    if isinstance(value, v.AnyOf):
        return any(_mentions(one, objects) for one in value.values)
    if isinstance(value, v.Partial):
        return any(_mentions(one, objects) for one in _parts(value))
    return isinstance(value, Tracked) and value in objects


def _parts(value: v.Partial) -> tuple[v.Value, ...]:
    """What a partial call holds: the function and its arguments."""
    return (value.func, *value.args.pos, *value.args.kw.values())


def _is_given_alike(a: v.Args, b: v.Args) -> bool:
    """Whether two calls have arguments of the same number and names, in the same order."""
    return len(a.pos) == len(b.pos) and list(a.kw) == list(b.kw) and (a.star, a.dstar) == (b.star, b.dstar)


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, bool, tuple))


def _like(then: Tracked, now: Tracked) -> bool:
    """Whether two objects are alike in what never changes."""
    if isinstance(then, v.Inst) and isinstance(now, v.Inst):
        return then.cls is now.cls
    if isinstance(then, v.Env):
        return True
    if isinstance(then, v.Items) and isinstance(now, v.Items):
        return then.kind == now.kind
    if isinstance(then, v.Mapping) and isinstance(now, v.Mapping):
        return (
            then.attributes == now.attributes
            and then.option == now.option
            and then.factory is now.factory
            and then.cls is now.cls
            and then.files == now.files
            and then.items.owner is then
            and now.items.owner is now
        )
    if isinstance(then, v.Obj) and isinstance(now, v.Obj):
        a, b = then.args, now.args
        return (
            (then.api, then.type, then.file, then.likely, then.package)
            == (now.api, now.type, now.file, now.likely, now.package)
            and (then.node is now.node or then.type == TENSOR)
            and _is_given_alike(a, b)
        )
    return False


class _Copies:
    """New objects in place of those that the remembered call made."""

    def __init__(self, outcome: Outcome, objects: dict[Tracked, Tracked], shared: bool) -> None:
        self._shared = shared
        self._start = outcome.start
        self._end = outcome.end
        self._known: dict[Any, Any] = dict(objects)
        self._count = 0

    def of(self, value: Any) -> Any:
        """The value in terms of the present call. Raises _Mismatch for what cannot be made again."""
        if isinstance(value, Tracked):
            known = self._known.get(value)
            if known is not None:
                return known
            return self._copy(value) if self._start <= value.birth <= self._end else value
        if isinstance(value, v.Func):
            receiver = self.of(value.receiver)
            return value if receiver is value.receiver else value.bind(receiver)
        if isinstance(value, v.Member):
            owner = self.of(value.owner)
            return value if owner is value.owner else v.Member(owner, value.name)
        if isinstance(value, v.AnyOf):
            values = tuple(self.of(one) for one in value.values)
            return (
                value
                if all(a is b for a, b in zip(values, value.values, strict=True))
                else v.AnyOf(values, value.option)
            )
        if isinstance(value, v.Partial):
            return v.Partial(self.of(value.func), self._args(value.args))
        if isinstance(value, v.Super):
            return v.Super(value.cls, self.of(value.receiver))
        if isinstance(value, list):
            return [self.of(one) for one in value]
        return value

    def _args(self, args: v.Args) -> v.Args:
        if not args.pos and not args.kw:
            return args
        pos = [self.of(one) for one in args.pos]
        return v.Args(pos, {k: self.of(x) for k, x in args.kw.items()}, args.star, args.dstar)

    def _copy(self, value: Tracked) -> Any:
        self._count += 1
        if value.version > self._end:
            # It has been changed since the call gave it.
            raise _Mismatch
        if self._shared:
            return value
        if self._count > MAX_COPIED:
            raise _TooLarge
        new: Any
        if isinstance(value, v.Items):
            new = self._known[value] = v.Items(value.kind, [], value._open)
            new._elts = [self.of(one) for one in value._elts]
            new.order, new.maker = value.order, value.maker
        elif isinstance(value, v.Mapping):
            if value.items.owner is not value:
                raise _Mismatch
            new = self._known[value] = v.Mapping({}, value._open, value.attributes)
            new.option, new.factory, new.files = value.option, value.factory, value.files
            new.cls = value.cls
            new.order = value.order
            self._fill(new.items, value.items)
        elif isinstance(value, v.Inst):
            new = self._known[value] = v.Inst(value.cls, None, value.node)
            new.args = self._args(value.args)
            self._fill(new.attrs, value.attrs)
        elif isinstance(value, v.Obj):
            new = self._known[value] = v.Obj(value.api, value.type, None, value.node)
            new.args = self._args(value.args)
            new.file, new.likely, new.something = value.file, value.likely, value.something
            new.package = value.package
            new._form = value._form
            new.order = value.order
            if value._attrs is not None:
                self._fill(new.attrs, value._attrs)
            if isinstance(value._data, Cells):
                new._data = Cells(new)
                self._fill(new._data, value._data)
            else:
                new._data = value._data
        else:
            # A scope: functions that were made in the call go on to share it.
            return value
        return new

    def _fill(self, into: Cells, cells: Cells) -> None:
        for key, one in dict.items(cells):
            dict.__setitem__(into, key, self.of(one))
