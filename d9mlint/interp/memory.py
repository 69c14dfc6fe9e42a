"""What listeners remember: typed state of one run, and marks of the path that the run is on.

A rule declares what it remembers as fields of its class::

    class Rule:
        places = noted(list[Where])
        released = remembered(bool)
        first = remembered_table(str, Where)

Each run has its own memory, so that what one entry point does is never known to another. While an import is recorded,
the memory says which fields it read, what it noted and which plain values and places it set: a run that takes the
import over notes and sets the same, with its own flow into the places. An import that changes anything else that a
rule remembers is not taken over by another run, and one that read something only where it is the same. What an import
reports is reported again by the run that takes it over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, overload, runtime_checkable

import msgspec

from d9mlint.interp.state import OF_OPTIONS

if TYPE_CHECKING:
    from d9mlint.interp.places import Replay
    from d9mlint.interp.state import StateTable
    from d9mlint.interp.violations import Violation

T = TypeVar("T")
K = TypeVar("K")


class Cell(NamedTuple):
    """The name of something that is remembered: the class and field that declare it, and the key in a table."""

    owner: str
    field: str
    key: Any = None


class Plain(NamedTuple):
    """What a cell held when it was read: nothing, or a value that can be compared."""

    there: bool
    value: object


_NOTHING = Plain(False, None)


_FIXED = (str, int, bool, tuple, frozenset, type(None))
"""Types of values that stay what they are, and can be compared."""


_PLAIN = frozenset({str, bytes, bool, int, float, complex, type(None)})


class Tick(int):
    """A time by the clock of the heap: the same import has another one in another run."""


class _Changing:
    """What a cell held that cannot be compared: whoever holds a list or a set may add to it."""


CHANGING = _Changing()


class _Gone:
    """What a cell holds that has been forgotten."""


_GONE = _Gone()


class _Keys(NamedTuple):
    """The keys that a table had when they were read, without those of cells that had been written before in the import."""

    held: tuple[Any, ...]
    written: frozenset[Any]

    @staticmethod
    def of(keys: Iterable[Any], written: Collection[Any]) -> _Keys:
        """Of all keys."""
        return _Keys(tuple(key for key in keys if key not in written), frozenset(written))


class _Asked(NamedTuple):
    """The keys of a table, of those that are tuples with this first element alone if there is one."""

    owner: str
    field: str
    first: Any = None

    def among(self, cells: Iterable[Cell]) -> list[Any]:
        """The keys of cells that are among those asked for."""
        owner, field, first = self
        return [
            cell.key
            for cell in cells
            if cell.field == field
            and cell.owner == owner
            and (first is None or (isinstance(cell.key, tuple) and cell.key[0] == first))
        ]


class MemoryLog:
    """What happened to the memory during an import."""

    __slots__ = ("empty", "keys", "notes", "placed", "quiet", "reads", "reports", "written")

    def __init__(self) -> None:
        self.quiet = True
        # Lists and sets that held nothing when they were read: whoever has one may add to it until the import ends.
        self.empty: dict[Cell, Any] = {}
        self.reports: list[Violation] = []
        self.reads: dict[Cell, Plain | _Changing] = {}
        self.keys: dict[_Asked, _Keys] = {}
        self.written: dict[Cell, Any] = {}
        # Values that hold places, which are others in another run.
        self.placed: dict[Cell, Any] = {}
        self.notes: list[tuple[Cell, Any]] = []

    def read(self, cell: Cell, held: Plain | _Changing) -> None:
        """A cell was read, that may have been written meanwhile."""
        if cell not in self.written and cell not in self.placed:
            self.reads.setdefault(cell, held)

    def read_keys(self, asked: _Asked, keys: Iterable[Any], written: Collection[Any] = ()) -> None:
        """The keys of a table were read, but for those in ``written``."""
        if asked not in self.keys:
            mine = asked.among(chain(self.written, self.placed))
            self.keys[asked] = _Keys.of(keys, {*written, *mine})

    def add_reads(self, inner: MemoryLog) -> None:
        """An import inside of this one has read this."""
        for asked, (keys, written) in inner.keys.items():
            self.read_keys(asked, keys, written)
        for cell, held in inner.reads.items():
            self.read(cell, held)

    def add(self, inner: MemoryLog) -> None:
        """An import inside of this one has done this."""
        self.add_reads(inner)
        for cell, value in inner.written.items():
            self.write(cell, value)
        for cell, value in inner.placed.items():
            self.place(cell, value)

    def keep(self, cell: Cell, value: Any) -> bool:
        """A cell holds a value now; whether a run that takes the import over can have it too."""
        if _plain(value):
            self.write(cell, value)
        elif _placed(value):
            self.place(cell, value)
        else:
            return False
        return True

    def write(self, cell: Cell, value: Any) -> None:
        """A cell holds a plain value now."""
        self.placed.pop(cell, None)
        self.written[cell] = value

    def place(self, cell: Cell, value: Any) -> None:
        """A cell holds a value now that holds places."""
        self.written.pop(cell, None)
        self.placed[cell] = value


class Memory:
    """What the listeners of a run remember. They reach it through the fields of their classes alone."""

    __slots__ = ("_cells", "_logs", "_outer", "_outer_cells")

    def __init__(self, outer: Memory | None = None) -> None:
        # A speculation copies a list, set or dictionary of the run when it looks at it. At most of them it does not look.
        self._outer_cells: dict[Cell, Any] = {} if outer is None else outer._cells
        self._cells: dict[Cell, Any] = self._outer_cells.copy()
        self._logs: list[MemoryLog] = []
        self._outer = outer

    @contextmanager
    def recorded(self) -> Iterator[MemoryLog]:
        """What happens to the memory meanwhile."""
        log = MemoryLog()
        self._logs.append(log)
        try:
            yield log
        finally:
            self._logs.pop()
            log.quiet = log.quiet and not any(log.empty.values())
            if self._logs:
                outer = self._logs[-1]
                outer.empty |= log.empty
                outer.quiet = outer.quiet and log.quiet
                outer.reports += log.reports
                outer.notes += log.notes
                outer.add(log)

    def forked(self) -> Memory:
        """The same memory for a speculation: what happens there is forgotten."""
        return Memory(outer=self)

    def _own(self, cell: Cell, default: Any) -> Any:
        """What a cell holds, which may be changed."""
        found = self._cells.get(cell, default)
        if (
            self._outer is not None
            and isinstance(found, (list, set, dict))
            and self._outer_cells.get(cell) is found
        ):
            kind: Any = type(found)
            found = self._cells[cell] = kind(found)
        return found

    def changed(self) -> None:
        """Something that a run's outcome depends on was noted."""
        for log in self._logs:
            log.quiet = False

    def reported(self, violation: Violation) -> None:
        """A rule is violated; what is found in speculation counts."""
        if self._logs:
            self._logs[-1].reports.append(violation)
        elif self._outer is not None:
            self._outer.reported(violation)

    def agrees(self, log: MemoryLog) -> bool:
        """Whether all that an import read is the same here."""
        return all(
            isinstance(held, Plain) and self._held(cell) == held for cell, held in log.reads.items()
        ) and all(
            _Keys.of(asked.among(self._cells), keys.written) == keys for asked, keys in log.keys.items()
        )

    def take_over(self, log: MemoryLog, one: Callable[[Replayable], Any]) -> None:
        """An import that did this was taken over. What it noted is noted with its places as ``one`` gives them."""
        if self._logs:
            self._logs[-1].add_reads(log)
            for cell, value in log.written.items():
                self._logs[-1].write(cell, value)
        for cell, value in log.written.items():
            if value is _GONE:
                self._cells.pop(cell, None)
            else:
                self._cells[cell] = value
        for cell, value in log.placed.items():
            self.set(cell, replayed(value, one))
        for cell, item in log.notes:
            self.note(cell, replayed(item, one))

    def note(self, cell: Cell, item: Any) -> None:
        """Add an item to a cell that only grows."""
        notes = self._own(cell, None)
        if notes is None:
            notes = self._cells[cell] = []
        notes.append(item)
        if self._logs:
            self._logs[-1].notes.append((cell, item))

    def notes(self, cell: Cell) -> list[Any]:
        """What a cell that only grows holds."""
        if self._logs:
            self.changed()
        found: list[Any] = self._own(cell, [])
        return found

    def get(self, cell: Cell, default: Any = None) -> Any:
        """What a cell holds."""
        self._read(cell)
        return self._own(cell, default)

    def make(self, cell: Cell, make: Callable[[], Any]) -> Any:
        """What a cell holds, made where it holds nothing."""
        found = self._own(cell, self)
        if found is self:
            self._read(cell)
            found = make()
            if not _fixed(found):
                self._cells[cell] = found
                if not _empty(cell, found):
                    self.changed()
                elif self._logs:
                    self._logs[-1].empty[cell] = found
            return found
        self._read(cell)
        return found

    def set(self, cell: Cell, value: Any) -> None:
        """Remember a value."""
        if _fixed(value) and self._held(cell) == Plain(True, value):
            # Nothing changes where it is the same already.
            self._read(cell)
            return
        if not (self._logs and _fixed(value) and self._logs[-1].keep(cell, value)):
            self.changed()
        self._cells[cell] = value

    def forget(self, cell: Cell) -> None:
        """Remember nothing any more."""
        self._cells.pop(cell, None)
        if self._logs:
            self._logs[-1].write(cell, _GONE)

    def holds(self, cell: Cell) -> bool:
        """Whether a cell holds anything."""
        self._read(cell)
        return cell in self._cells

    def known(self, owner: str, field: str, first: Any = None) -> list[Any]:
        """The keys of a table; of those that are tuples with this first element alone, if it is given."""
        asked = _Asked(owner, field, first)
        keys = asked.among(self._cells)
        if self._logs:
            self._logs[-1].read_keys(asked, keys)
        return keys

    def _held(self, cell: Cell) -> Plain | _Changing:
        if cell not in self._cells:
            return _NOTHING
        value = self._cells[cell]
        if _fixed(value):
            return Plain(True, value)
        return _NOTHING if _empty(cell, value) else CHANGING

    def _read(self, cell: Cell) -> None:
        if self._logs:
            held = self._held(cell)
            self._logs[-1].read(cell, held)
            if held is CHANGING:
                self.changed()
            elif held is _NOTHING and cell in self._cells:
                self._logs[-1].empty[cell] = self._cells[cell]


def _empty(cell: Cell, value: object) -> bool:
    """Whether a field holds a list, set or dictionary in which nothing is, as it does before anybody asks for it. In a table
    the keys say who has asked."""
    return cell.key is None and type(value) in (list, set, dict) and not value


def _fixed(value: object) -> bool:
    """Whether a value stays what it is and can be compared."""
    if isinstance(value, _FIXED):
        return True
    if isinstance(value, msgspec.Struct):
        return bool(value.__struct_config__.frozen)
    return _is_replayable(value)


def _plain(value: object) -> bool:
    """Whether a value is the same in any run: it holds no place and nothing that the program made."""
    if isinstance(value, (tuple, frozenset)):
        return all(map(_plain, value))
    if isinstance(value, msgspec.Struct):
        return _fixed(value) and all(_plain(getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, dict):
        # In a frozen struct: nobody changes it.
        return all(_plain(key) and _plain(held) for key, held in value.items())
    return type(value) in _PLAIN


def _placed(value: object) -> bool:
    """Whether a value holds nothing but places and what is the same in any run."""
    if _is_replayable(value):
        return True
    return all(map(_placed, value)) if isinstance(value, tuple) else _plain(value)


def replayed(value: Any, one: Callable[[Replayable], Any]) -> Any:
    """A value as another run has it: ``one`` gives each place in it."""
    if _is_replayable(value):
        return one(value)
    if isinstance(value, tuple) and not _plain(value):
        items = [replayed(item, one) for item in value]
        return type(value)._make(items) if hasattr(value, "_make") else tuple(items)
    return value


@runtime_checkable
class Replayable(Protocol):
    """What is noted otherwise in another run, which came by other calls to the import that noted it."""

    def replayed(self, replay: Replay) -> Any:
        """The same in another run; see ``Where.replayed``."""


_REPLAYABLE: dict[type[Any], bool] = {}
"""By class. A protocol is slow to ask."""


def _is_replayable(value: object) -> bool:
    """Whether a value is noted otherwise in another run."""
    known = _REPLAYABLE.get(type(value))
    if known is None:
        known = _REPLAYABLE[type(value)] = isinstance(value, Replayable)
    return known


class Remembering(Protocol):
    """Who has a memory: a listener of a run."""

    @property
    def memory(self) -> Memory:
        """The memory of the run."""


class Remembered(Generic[T]):
    """A field of a listener's class that is state of one run."""

    __slots__ = ("_cell", "_make")

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._cell = Cell("", "")

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._cell = Cell(f"{owner.__module__}.{owner.__qualname__}", name)

    @overload
    def __get__(self, listener: None, owner: type[Any]) -> Remembered[T]: ...

    @overload
    def __get__(self, listener: Remembering, owner: type[Any]) -> T: ...

    def __get__(self, listener: Remembering | None, owner: type[Any]) -> Remembered[T] | T:
        if listener is None:
            return self
        value: T = listener.memory.make(self._cell, self._make)
        return value

    def __set__(self, listener: Remembering, value: T) -> None:
        listener.memory.set(self._cell, value)


def remembered(kind: type[T]) -> Remembered[T]:
    """A field that holds a ``kind``, at first an empty one: ``list[Where]``, ``set[str]``, ``bool``."""
    return Remembered(kind)


def remembered_once(kind: type[T]) -> Remembered[T | None]:
    """A field that holds a ``kind`` or, at first, None."""

    def nothing() -> T | None:
        return None

    return Remembered(nothing)


class Notes(Generic[T]):
    """A list that is state of one run and only grows. What an import notes, a run that takes it over notes too."""

    __slots__ = ("_cell", "_memory")

    def __init__(self, memory: Memory, cell: Cell) -> None:
        self._memory = memory
        self._cell = cell

    def add(self, item: T) -> None:
        """Note an item: one that can be replayed, a plain value, or a value of the program, which runs that take an
        import over share."""
        self._memory.note(self._cell, item)

    def __iter__(self) -> Iterator[T]:
        return iter(self._memory.notes(self._cell))

    def __bool__(self) -> bool:
        return bool(self._memory.notes(self._cell))


class Noted(Generic[T]):
    """A field of a listener's class that is a list of notes."""

    __slots__ = ("_cell",)

    def __init__(self) -> None:
        self._cell = Cell("", "")

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._cell = Cell(f"{owner.__module__}.{owner.__qualname__}", name)

    def __get__(self, listener: Remembering, owner: type[Any]) -> Notes[T]:
        return Notes(listener.memory, self._cell)


def noted(kind: type[list[T]]) -> Noted[T]:
    """A field that holds a list that only grows."""
    return Noted()


class Table(Generic[K, T]):
    """A mapping that is state of one run; each key is remembered for itself."""

    __slots__ = ("_cell", "_memory")

    def __init__(self, memory: Memory, cell: Cell) -> None:
        self._memory = memory
        self._cell = cell

    def _at(self, key: K) -> Cell:
        return Cell(self._cell.owner, self._cell.field, key)

    def get(self, key: K) -> T | None:
        """What is remembered under a key."""
        value: T | None = self._memory.get(self._at(key))
        return value

    def __getitem__(self, key: K) -> T:
        value: T = self._memory.get(self._at(key))
        return value

    def __contains__(self, key: K) -> bool:
        return self._memory.holds(self._at(key))

    def __setitem__(self, key: K, value: T) -> None:
        self._memory.set(self._at(key), value)

    def setdefault(self, key: K, make: Callable[[], T]) -> T:
        """What is remembered under a key, made where there is nothing."""
        if key not in self:
            self[key] = make()
        return self[key]

    def pop(self, key: K) -> None:
        """Forget a key."""
        self._memory.forget(self._at(key))

    def known(self, first: Any = None) -> list[K]:
        """All keys; of those that are tuples with this first element alone, if it is given."""
        return self._memory.known(self._cell.owner, self._cell.field, first)


class RememberedTable(Generic[K, T]):
    """A field of a listener's class that is a table."""

    __slots__ = ("_cell",)

    def __init__(self) -> None:
        self._cell = Cell("", "")

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._cell = Cell(f"{owner.__module__}.{owner.__qualname__}", name)

    def __get__(self, listener: Remembering, owner: type[Any]) -> Table[K, T]:
        return Table(listener.memory, self._cell)


def remembered_table(key: type[K], kind: type[T]) -> RememberedTable[K, T]:
    """A field that maps keys to values."""
    return RememberedTable()


class Path(Protocol):
    """The path that a run is on, which can be marked."""

    @property
    def marks(self) -> StateTable[Any]:
        """All marks."""


class PathMarks(Generic[T]):
    """What a listener marks the present path with, by name: it follows the branches of the program, and what a
    function does is run again where the names of the marks differ."""

    __slots__ = ("_kind", "_path", "_prefix")

    def __init__(self, path: Path, prefix: str, kind: type[T]) -> None:
        self._path = path
        self._prefix = prefix
        self._kind = kind

    def get(self, name: str) -> T | None:
        """The mark of this name."""
        found = self._path.marks.get(self._prefix + name)
        return found if isinstance(found, self._kind) else None

    def __contains__(self, name: str) -> bool:
        return self._prefix + name in self._path.marks

    def __bool__(self) -> bool:
        return self._prefix in self._path.marks

    def __setitem__(self, name: str, mark: T) -> None:
        # That there is any is known without looking at all marks.
        self._path.marks[self._prefix] = self._prefix
        self._path.marks[self._prefix + name] = mark

    def setdefault(self, name: str, mark: T) -> None:
        """Mark the path, where it has no mark of this name."""
        self._path.marks.setdefault(self._prefix + name, mark)

    def pop(self, name: str) -> T | None:
        """Take a mark away."""
        found = self.get(name)
        self._path.marks.pop(self._prefix + name, None)
        return found

    def items(self) -> list[tuple[str, T]]:
        """All marks of the path."""
        size = len(self._prefix)
        return [
            (flag[size:], mark)
            for flag, mark in self._path.marks.starting(self._prefix)
            if len(flag) > size and isinstance(mark, self._kind)
        ]


class OnPath(Protocol):
    """Who marks the path of a run: a listener."""

    @property
    def run(self) -> Path:
        """The run."""


class MarksPath(Generic[T]):
    """A field of a listener's class that marks the path that the run is on."""

    __slots__ = ("_begin", "_kind", "_prefix")

    def __init__(self, kind: type[T], begin: str = "") -> None:
        self._kind = kind
        self._begin = begin
        self._prefix = ""

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._prefix = f"{self._begin}{owner.__qualname__}.{name}:"

    def __get__(self, listener: OnPath, owner: type[Any]) -> PathMarks[T]:
        return PathMarks(listener.run, self._prefix, self._kind)


def marks_path(kind: type[T]) -> MarksPath[T]:
    """A field that marks paths with a ``kind``."""
    return MarksPath(kind)


def marks_options(kind: type[T]) -> MarksPath[T]:
    """A field that marks paths, also those that go on from a path that is taken only if an option is given."""
    return MarksPath(kind, OF_OPTIONS)


class ValueMarks:
    """What a listener marks objects with: the mark goes where the object goes."""

    __slots__ = ()

    def __getitem__(self, value: Marked) -> object:
        return value.data

    def __setitem__(self, value: Marked, mark: str) -> None:
        value.data = mark


class Marked(Protocol):
    """An object that can be marked."""

    data: Any


class MarksValues:
    """A field of a listener's class that marks objects."""

    __slots__ = ()

    def __get__(self, listener: object, owner: type[Any]) -> ValueMarks:
        return ValueMarks()


def marks_values() -> MarksValues:
    """A field that marks objects. They have one mark each, whoever makes it."""
    return MarksValues()
