"""Who reads and who writes which mutable abstract object.

The interpreter remembers what a call or an import did and takes it over where the same would happen again.
That is sound only where everything that was read is still the same, and complete only if everything that was
written is written again. So each mutable object (an instance, a mapping, a sequence, a scope) carries the
time of its birth, and every read and write of an object that is older than the running activation is noted
in that activation.

Objects that a remembered import made are shared by several analysis runs. What one run writes to them is
undone when it ends, so that the next one finds them as the import left them. The same undo log gives
speculation (``Interp.fork``).

There is one heap in a process, as analysis runs follow one another in it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from d9mlint.interp.numbering import Numbering

if TYPE_CHECKING:
    from d9mlint.interp.values import Value

ABSENT: Any = type("Absent", (), {"__repr__": lambda self: "ABSENT"})()
"""What a key holds that is not there."""

ITEM, FIELD, NAME, WHOLE = "item", "field", "name", "whole"
"""Kinds of access: a key of ``Cells``, a field of an object, a variable of a scope, all of an object."""


class Tracked:
    """A mutable abstract object. ``birth`` orders objects by creation; ``version`` changes with every write
    and is the same only for the same content."""

    __slots__ = ("birth", "version")

    has_attributes: ClassVar[bool] = True
    """Whether its cells are attributes, whose keys are texts, and not items."""

    def __init__(self) -> None:
        HEAP.clock += 1
        self.birth = self.version = HEAP.clock

    def contents(self) -> Contents | None:
        """All that it holds; None where that is too much to be kept."""
        return None


MAX_CONTENTS = 64
"""What an object with more elements than this held is not kept."""
Contents = tuple[Any, Sequence[Any]]
"""What tells two objects with the same number of elements apart, and the elements."""


class Whole:
    """An object as it was read as a whole: its version then, and what it held."""

    __slots__ = ("contents", "version")

    def __init__(self, version: int, contents: Contents | None) -> None:
        self.version = version
        self.contents = contents


Access = tuple[Tracked, str, Any, Any, Any]
"""One read or write: owner, kind, holder, key, value. The holder is the ``Cells`` for ITEM, else the owner; the
value is what was read or written, a ``Whole`` for WHOLE. A plain tuple, because there are millions of them."""


Overwritten = dict[tuple[int, Any], Access]
"""What stood at places before they were written."""


class Activation:
    """The reads and writes of objects born before ``start`` since then; what was asked of the state of the path, changed
    in it, or set where it knew nothing (see ``state``); and the names that were looked for among functions,
    classes, modules and what they hold (those of remembered imports in ``named``, as bits of ``NAMES``). ``written`` are
    the owners of what is in ``writes``, with their versions before the first of them; ``circumstances`` what was asked of
    what is active (see ``context``); ``found_empty`` the containers that had no elements when something went through them;
    ``in_loops`` the names of what is noted of each loop in which it happens (see ``context.Running.marked``).
    A round of a loop is one too, inside of that of its function, which ``began`` first."""

    __slots__ = (
        "asked",
        "began",
        "changed",
        "circumstances",
        "found_empty",
        "hinted",
        "in_loops",
        "named",
        "names",
        "reads",
        "start",
        "writes",
        "written",
    )

    def __init__(self, start: int) -> None:
        self.start = self.began = start
        self.reads: dict[tuple[int, Any], Access] = {}
        self.writes: dict[tuple[int, Any], Access] = {}
        self.written: dict[Tracked, int] = {}
        self.asked: set[tuple[str, str, bool]] = set()
        self.changed: set[tuple[str, str]] = set()
        self.circumstances: set[tuple[str, str, Any]] = set()
        self.found_empty: set[Tracked] = set()
        self.hinted: set[tuple[str, str]] = set()
        self.in_loops: set[str] = set()
        self.names: set[str] = set()
        self.named = 0

    def changes(self) -> tuple[Access, ...]:
        """The writes, without those that put back what was read there: who takes them over may hold another object
        with the same content, and keeps it."""
        reads = self.reads
        return tuple(
            access
            for place, access in self.writes.items()
            if place not in reads or reads[place][4] is not access[4]
        )


NAMES: Numbering[str] = Numbering()
"""Names that were looked for: there is a set of them for each remembered import."""


class Heap:
    """The clock, the running activations, and what has to be undone."""

    __slots__ = (
        "_ends",
        "_outer",
        "_shared",
        "_starts",
        "_touched",
        "act",
        "clock",
        "fork_start",
        "overwritten",
        "patched",
        "rebound",
        "trail",
        "watched",
    )

    def __init__(self) -> None:
        self.clock = 0
        self.act = Activation(0)
        self._outer: list[Activation] = []
        # Objects made by remembered imports, as disjoint intervals of birth times in ascending order.
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._shared = 0
        self.fork_start = 0
        self.trail: list[tuple[Tracked, int, str, Any, Any, Any]] = []
        # Functions, classes and modules are hardly ever replaced: of reads of names that hold them only the name is
        # noted. Where one is replaced, no call counts any more that was remembered before and looked for that name
        # (``rebound`` lists these names in the order of time, with the birth of the scope where that is the running one:
        # calls that began before have their own), and no import that did so is taken over by a run that has not replaced
        # it too (``patched``).
        self.rebound: list[tuple[str, int]] = []
        self.patched: set[str] = set()
        # For each path that an option's default does not choose and that the run is on: what stood first at each place
        # that is written on it, with the place.
        self.overwritten: tuple[Overwritten, ...] = ()
        # The same for each branch that is running, of places with some names alone.
        self.watched: tuple[tuple[frozenset[str], Overwritten], ...] = ()
        # Births of the objects of remembered imports to which the run has written.
        self._touched: set[int] = set()

    def push(self) -> Activation:
        """Begin an activation."""
        self._outer.append(self.act)
        self.clock += 1
        self.act = Activation(self.clock)
        return self.act

    def pop(self) -> Activation:
        """End the activation; what it did to older objects its caller did too."""
        ended = self.act
        act = self.act = self._outer.pop()
        start, reads, writes, written = act.start, act.reads, act.writes, act.written
        for key, access in ended.reads.items():
            if access[0].birth < start and key not in reads and key not in writes:
                if access[1] is WHOLE and access[0] in written:
                    access = (*access[:4], Whole(written[access[0]], None))
                reads[key] = access
        for key, access in ended.writes.items():
            if access[0].birth < start or self.is_shared(access[0].birth):
                writes[key] = access
                written.setdefault(access[0], ended.written[access[0]])
        act.asked |= ended.asked
        act.changed |= ended.changed
        act.circumstances |= ended.circumstances
        act.found_empty.update(one for one in ended.found_empty if one.birth < start)
        act.hinted |= ended.hinted
        act.in_loops |= ended.in_loops
        act.names |= ended.names
        act.named |= ended.named
        return ended

    @property
    def depth(self) -> int:
        """How many activations are running."""
        return len(self._outer)

    def unwind(self, depth: int) -> None:
        """End the activations that an exception has left running."""
        while len(self._outer) > depth:
            self.pop()

    def read(self, owner: Tracked, kind: str, holder: Any, key: Any, value: Any) -> None:
        """Note a read of an object that is older than the activation (the caller has looked at ``birth``)."""
        act = self.act
        place = (id(holder), key)
        if place not in act.reads and place not in act.writes:
            act.reads[place] = (owner, kind, holder, key, value)

    def read_whole(self, owner: Tracked) -> None:
        """Note a read of all of an object that is older than the activation."""
        act = self.act
        place = (id(owner), WHOLE)
        if place not in act.reads:
            # What it holds after something has been written to it is not what it must hold when that begins.
            before = act.written.get(owner)
            whole = Whole(owner.version, owner.contents()) if before is None else Whole(before, None)
            act.reads[place] = (owner, WHOLE, owner, WHOLE, whole)

    def write(self, owner: Tracked, kind: str, holder: Any, key: Any, new: Any, old: Any) -> None:
        """Note a write that changes something; called before it is done."""
        birth = owner.birth
        act = self.act
        shared = self.is_shared(birth)
        if birth < act.start or shared:
            # What an import inside of this activation has made is as it was after that import for whoever takes over
            # one of the two.
            act.writes[(id(holder), key)] = (owner, kind, holder, key, new)
            act.written.setdefault(owner, owner.version)
        if birth < self.fork_start or shared:
            self.trail.append((owner, owner.version, kind, holder, key, old))
        if shared:
            self._touched.add(birth)
        for overwritten in self.overwritten:
            overwritten.setdefault((id(holder), key), (owner, kind, holder, key, old))
        for names, overwritten in self.watched:
            if key in names:
                overwritten.setdefault((id(holder), key), (owner, kind, holder, key, old))
        self.clock += 1
        owner.version = self.clock

    def note_overwritten(self) -> Overwritten:
        """What is overwritten from now on, with what stood there before, until ``stop_noting`` is called with it."""
        noted: Overwritten = {}
        self.overwritten = (*self.overwritten, noted)
        return noted

    def watch(self, names: frozenset[str]) -> Overwritten:
        """What is overwritten from now on at places with these names, until ``stop_watching`` is called."""
        noted: Overwritten = {}
        self.watched = (*self.watched, (names, noted))
        return noted

    def stop_watching(self) -> None:
        """What was watched last is no longer."""
        self.watched = self.watched[:-1]

    def stop_noting(self, noted: Overwritten) -> None:
        """What is overwritten from now on is no longer added to ``noted``."""
        self.overwritten = tuple(one for one in self.overwritten if one is not noted)

    def put(self, access: Access, value: Value) -> None:
        """Write a value at a place."""
        owner, kind, holder, key, _ = access
        old = at(owner, kind, holder, key)
        if old is not value:
            self.write(owner, kind, holder, key, value, old)
            _put(owner, kind, holder, key, value)

    def redo(self, access: Access) -> None:
        """Write again what a remembered activation has written."""
        self.put(access, access[4])

    def take_over(self, reads: tuple[Access, ...], writes: tuple[Access, ...]) -> None:
        """Let the running activation have done what a remembered one did."""
        act = self.act
        start = act.start
        for access in reads:
            if access[0].birth < start:
                place = (id(access[2]), access[3])
                if place not in act.reads and place not in act.writes:
                    if isinstance(access[4], Tracked):
                        # It may be another object here that is like the one there was.
                        access = (*access[:4], at(*access[:4]))
                    act.reads[place] = access
        for access in writes:
            self.redo(access)

    def redo_shared(self, writes: tuple[Access, ...]) -> None:
        """Write what an import has written that each run takes over as it is: the running activation has not done it, and
        holds the accesses themselves."""
        act = self.act
        for access in writes:
            self.redo(access)
            place = (id(access[2]), access[3])
            if place in act.writes:
                act.writes[place] = access

    @contextmanager
    def as_then(self, versions: Iterable[tuple[Tracked, int, int]]) -> Iterator[None]:
        """Objects that have the first version before the same is written to them again have the second one after it."""
        alike = [(owner, after) for owner, before, after in versions if owner.version == before]
        yield
        for owner, after in alike:
            owner.version = after

    def share(self, start: int) -> None:
        """Objects born since ``start`` belong to a remembered import from now on."""
        while self._starts and self._starts[-1] >= start:
            self._starts.pop()
            self._ends.pop()
        self._starts.append(start)
        self._ends.append(self.clock)
        self._shared = self.clock + 1

    def touched(self, born: tuple[int, int]) -> bool:
        """Whether the run has written to an object that was born between two times, and belongs to a remembered import."""
        first, last = born
        return any(first <= birth <= last for birth in self._touched)

    def is_shared(self, birth: int) -> bool:
        """Whether what was born then belongs to a remembered import."""
        if birth >= self._shared:
            return False
        index = bisect_right(self._starts, birth) - 1
        return index >= 0 and birth <= self._ends[index]

    def patch(self, name: str) -> None:
        """A function, class, module or class attribute is replaced from outside."""
        self.rebind(name.rpartition(".")[2])
        self.patched.add(name)

    def rebind(self, name: str, birth: int = -1) -> None:
        """What a name stands for is replaced: everywhere, or in the running scope that was born then."""
        self.rebound.append((name, birth))

    def rebound_since(self, count: int, start: int) -> bool:
        """Whether names have been replaced since there were ``count``, in what is older than an activation."""
        return any(birth < start for _, birth in self.rebound[count:])

    def forget_patches(self) -> None:
        """A new run begins, in which nothing has been replaced."""
        self.patched = set()
        self.rebound = []
        self.overwritten, self.watched = (), ()
        self._touched = set()

    def undo(self, mark: int) -> None:
        """Take back the writes noted since the trail had ``mark`` entries."""
        trail = self.trail
        while len(trail) > mark:
            owner, version, kind, holder, key, old = trail.pop()
            _put(owner, kind, holder, key, old)
            owner.version = version

    @contextmanager
    def speculation(self) -> Iterator[None]:
        """Whatever is written to objects that exist now is undone at the end."""
        outer, mark = self.fork_start, len(self.trail)
        overwritten, self.overwritten = self.overwritten, ()
        watched, self.watched = self.watched, ()
        self.clock += 1
        self.fork_start = self.clock
        self.push()
        depth = self.depth
        try:
            yield
        finally:
            self.unwind(depth)
            # What was written is undone; what was read may have decided what the caller does with the answer.
            self.act.writes.clear()
            self.act.written.clear()
            self.act.changed.clear()
            self.act.hinted.clear()
            self.act.in_loops.clear()
            self.pop()
            self.undo(mark)
            self.fork_start = outer
            self.overwritten, self.watched = overwritten, watched


def at(owner: Tracked, kind: str, holder: Any, key: Any) -> Any:
    """What stands at a place now; of all of an object its version."""
    if kind is ITEM:
        return dict.get(holder, key, ABSENT)
    if kind is NAME:
        return holder.vars.get(key, ABSENT)
    if kind is WHOLE:
        return owner.version
    return getattr(owner, key)


def _put(owner: Tracked, kind: str, holder: Any, key: Any, value: Any) -> None:
    if kind is ITEM:
        if value is ABSENT:
            dict.pop(holder, key, None)
        else:
            dict.__setitem__(holder, key, value)
    elif kind is NAME:
        if value is ABSENT:
            holder.vars.pop(key, None)
        else:
            holder.vars[key] = value
    else:
        setattr(owner, key, value)


HEAP = Heap()


class Cells(dict[Any, "Value"]):
    """The attributes or items of an object: a dict that notes who reads and writes it."""

    __slots__ = ("owner",)

    def __init__(self, owner: Tracked, items: Any = ()) -> None:
        dict.__init__(self, items)
        self.owner = owner

    def contents(self) -> Contents | None:
        """All keys and values; None where there are too many."""
        if dict.__len__(self) > MAX_CONTENTS:
            return None
        return tuple(dict.keys(self)), tuple(dict.values(self))

    # One key

    def get(self, key: Any, default: Any = None) -> Any:
        found = dict.get(self, key, ABSENT)
        owner = self.owner
        if owner.birth < HEAP.act.start:
            HEAP.read(owner, ITEM, self, key, found)
        return default if found is ABSENT else found

    def note_read(self, key: Any) -> None:
        """One key is read."""
        owner = self.owner
        if owner.birth < HEAP.act.start:
            HEAP.read(owner, ITEM, self, key, dict.get(self, key, ABSENT))

    def __getitem__(self, key: Any) -> Value:
        found: Value = self.get(key, ABSENT)
        if found is ABSENT:
            raise KeyError(key)
        return found

    def __contains__(self, key: Any) -> bool:
        return self.get(key, ABSENT) is not ABSENT

    def __setitem__(self, key: Any, value: Any) -> None:
        if type(key) is not str and self.owner.has_attributes:
            # `vars(x)[name] = value`, where the name is not known, or is no text.
            key = f"@{' '.join(map(str, key)) if isinstance(key, tuple) else key}"
        old = dict.get(self, key, ABSENT)
        if old is value:
            return
        HEAP.write(self.owner, ITEM, self, key, value, old)
        dict.__setitem__(self, key, value)

    def __delitem__(self, key: Any) -> None:
        if self.pop(key, ABSENT) is ABSENT:
            raise KeyError(key)

    def pop(self, key: Any, default: Any = None) -> Any:
        old = self.get(key, ABSENT)
        if old is ABSENT:
            return default
        HEAP.write(self.owner, ITEM, self, key, ABSENT, old)
        dict.pop(self, key)
        return old

    def setdefault(self, key: Any, default: Any = None) -> Any:
        found = self.get(key, ABSENT)
        if found is not ABSENT:
            return found
        self[key] = default
        return default

    def update(self, *others: Any, **named: Any) -> None:
        for other in others:
            for key, value in other.items() if hasattr(other, "items") else other:
                self[key] = value
        for key, value in named.items():
            self[key] = value

    # All of it

    def _whole(self) -> None:
        owner = self.owner
        if owner.birth < HEAP.act.start:
            HEAP.read_whole(owner)

    def __iter__(self) -> Iterator[Any]:
        self._whole()
        return dict.__iter__(self)

    def __len__(self) -> int:
        self._whole()
        return dict.__len__(self)

    def __bool__(self) -> bool:
        return len(self) > 0

    def keys(self) -> Any:
        self._whole()
        return dict.keys(self)

    def values(self) -> Any:
        self._whole()
        return dict.values(self)

    def items(self) -> Any:
        self._whole()
        return dict.items(self)


class LibraryAttributes(dict[str, "Value"]):
    """What the program stores on modules of libraries, and the values of its flags, by full names. What a name stands for is
    another value as soon as it is written."""

    def __setitem__(self, name: str, value: Value) -> None:
        HEAP.rebind(name)
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        HEAP.rebind(name)
        super().__delitem__(name)
