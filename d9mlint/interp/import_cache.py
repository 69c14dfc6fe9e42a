"""What importing a module does, remembered by one analysis run and taken over by others.

A large package is imported by every script of its project. An import is remembered with everything that it
read (objects, scopes, modules, what rules remember) and everything that it did (modules loaded, objects written,
what the program was seen to do). Another run takes it over where all that it read is the same, and otherwise
runs the module itself; either way the outcome is the same. Imports that start a process, put something off to the
end of the program, or make a rule remember what cannot be repeated (see ``memory``), are never taken over.

Code that no entry point reaches has no program that says what was imported before. There an import is the same
for all that ask for it: that of the module by itself (see ``ImportCache.settle``). It is kept without what the imports
in it did that are kept so themselves: a large package needs thousands of modules for each of thousands.
"""

from __future__ import annotations

import gc
from array import array
from itertools import chain, repeat
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from d9mlint.interp import values as v
from d9mlint.interp.context import Question
from d9mlint.interp.heap import HEAP, NAMES, WHOLE, Tracked, at
from d9mlint.interp.memory import MemoryLog, replayed
from d9mlint.interp.numbering import Numbering, numbers
from d9mlint.interp.places import Replay, flow_into
from d9mlint.interp.state import FLAG, Effect, effect
from d9mlint.interp.trail import FUNCTIONS, FunctionKey, Shared, functions
from d9mlint.knowledge.versions import keep_oldest
from d9mlint.project.modules import ModuleFile

T = TypeVar("T")

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from d9mlint.base.coverage import Cut, Gap
    from d9mlint.interp.heap import Access, Tracked
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.method_index import Layer, Method
    from d9mlint.interp.orders import Key, Numbered, Origin
    from d9mlint.interp.places import Where
    from d9mlint.interp.process_start import Left
    from d9mlint.project.import_order import Needed
    from d9mlint.project.modules import Found

MAX_VARIANTS = 64
"""An import is remembered for at most this many different circumstances, of more for those met last. Packages that import
one another in circles have one for each of their parts that may be the first: where one is not remembered, all that
imports it runs again."""


MOST_REMEMBERED = 1_500_000
"""How much is remembered from one run to the next, in ticks of the heap's clock while it was made: an object or a write is
one."""

_Lookup = tuple[str, str, bool, str | None, str | None]
"""A name that was looked for: from which directory, the name, whether anywhere; and the file and the directory that it
means."""
_LOOKUPS: Numbering[_Lookup] = Numbering()


class Imported(NamedTuple):
    """What an import read and did, without what the imports in it did that are ``inner``. Lookups and functions are
    numbers."""

    mod: v.Mod
    # Modules it loaded, and those that it found loaded already.
    loaded: tuple[v.Mod, ...]
    used: tuple[v.Mod, ...]
    lookups: array[int]
    asked: dict[str, bool]
    blanks_found: dict[v.Cls, v.Inst | None]
    blanks_made: dict[v.Cls, v.Inst]
    libraries: set[str]
    effect: Effect
    places: dict[str, Where]
    releases: tuple[dict[str, str], dict[str, str]]
    # What its module bodies seeded and set, and whether such bodies alone were running, if it asked.
    left: list[Left]
    at_module_level: bool | None
    # The length of the flow into it, and the step at which it began.
    depth: int
    began: int
    # Methods of classes that it made; and those of the names that it asked for which were there before.
    methods: Layer
    guessed: dict[str, list[Method]]
    visited: array[int]
    entered: array[int]
    inner: tuple[Settled, ...]
    origins: dict[Key, Origin]
    decided: dict[Key, None]
    excused: set[Key]
    holders: list[tuple[v.Inst, str]]
    kept: list[v.Obj]
    settled: list[v.Obj]
    numbered: list[Numbered]
    config_files: set[str]
    cuts: set[Cut]
    gaps: set[Gap]
    # Class attributes, functions and library attributes that it replaced, those that the run had replaced before, and
    # the names that it looked for (see ``heap.NAMES``).
    patched: set[str]
    library_attributes: dict[str, v.Value]
    patched_before: frozenset[str]
    attributes_before: dict[str, v.Value]
    named: int
    # How many steps it took, of how many that were left; and how many budgets it used up.
    steps: int
    steps_left: int
    used_up: int
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    # Versions of what it wrote to, before and after it.
    versions: tuple[tuple[Tracked, int, int], ...]
    memory: MemoryLog
    # What it asked of the options that lead to it, with the answers.
    circumstances: tuple[tuple[Question, Any], ...]
    # Between which times it made objects: those of the imports inside of it are not among what it read.
    born: tuple[int, int]
    kept_objects: _Kept


class Settled:
    """What stands for the import of a file in all runs over unreached code, whatever they have imported before. ``needs``
    are the files that importing it may import."""

    __slots__ = ("done", "loaded", "needs", "path")

    def __init__(self, done: Imported, path: str, needs: Needed) -> None:
        self.done = done
        self.path = path
        self.needs = needs
        self.loaded = {mod.path: mod for mod in done.loaded}

    @property
    def entered(self) -> array[int]:
        """The functions whose code it has read."""
        return self.done.entered

    @property
    def inner(self) -> tuple[Settled, ...]:
        """Those that it takes over itself."""
        return self.done.inner


class ImportLog:
    """What is noted while an import runs that may be remembered."""

    __slots__ = (
        "at_module_level",
        "blanks",
        "guessed",
        "imported",
        "inner",
        "left",
        "libraries",
        "lookups",
        "places",
        "releases",
        "spawned",
        "taken",
        "used",
    )

    def __init__(self) -> None:
        self.lookups: set[int] = set()
        self.used: dict[str, v.Mod] = {}
        # Settled imports that it took over, and those with all that they take over themselves.
        self.inner: list[Settled] = []
        self.taken: list[Settled] = []
        # Whether libraries that were asked for had been imported.
        self.libraries: dict[str, bool] = {}
        # Instances of which only the class is known, as they were found.
        self.blanks: dict[v.Cls, v.Inst | None] = {}
        # Names of methods that it called on objects of which nothing is known.
        self.guessed: set[str] = set()
        # What it imported and was seen to do, also where the run had done the same before.
        self.imported: set[str] = set()
        self.places: dict[str, Where] = {}
        # Releases of libraries that its names tell, and those that follow from these.
        self.releases: tuple[dict[str, str], dict[str, str]] = ({}, {})
        # What its module bodies seeded and set, whether it asked if such bodies alone are running, with the answer, and
        # whether it spawned a process.
        self.left: list[Left] = []
        self.at_module_level: bool | None = None
        self.spawned = False

    def looked_up(self, directory: str, name: str, anywhere: bool, found: Found | None) -> None:
        """A name was looked for."""
        self.lookups.add(_LOOKUPS.number((directory, name, anywhere, *_target(found))))

    def add(
        self,
        lookups: Iterable[int],
        used: Iterable[v.Mod],
        libraries: dict[str, bool],
        blanks: dict[v.Cls, v.Inst | None],
        guessed: Iterable[str],
    ) -> None:
        """An import inside of this one has read these."""
        self.guessed.update(guessed)
        self.lookups.update(lookups)
        for mod in used:
            self.used.setdefault(mod.path, mod)
        for name, found in libraries.items():
            self.libraries.setdefault(name, found)
        for cls, one in blanks.items():
            self.blanks.setdefault(cls, one)

    def add_settled(self, inner: list[Settled], taken: list[Settled]) -> None:
        """An import in this one has taken these over."""
        self.inner += inner
        self.taken += taken

    def tell(self, releases: tuple[dict[str, str], dict[str, str]]) -> None:
        """Names in it tell for which releases it was written."""
        for known, new in zip(self.releases, releases, strict=True):
            keep_oldest(known, new)

    def add_start(self, inner: ImportLog) -> None:
        """An import inside of this one has done and asked this of what spawned processes begin with."""
        self.left += inner.left
        self.spawned = self.spawned or inner.spawned
        if inner.at_module_level is not None:
            self.at_module_level = inner.at_module_level

    def add_effects(self, imported: set[str], places: dict[str, Where]) -> None:
        """An import inside of this one has done these."""
        self.imported |= imported
        for flag, place in places.items():
            self.places.setdefault(flag, place)


def _target(found: Found | None) -> tuple[str | None, str | None]:
    if found is None:
        return None, None
    return found.file.path if found.file is not None else None, found.directory


class _Added:
    """The imports that a run has added, with the last run that took one of them over, and how much there is to keep."""

    def __init__(self, used: int, imports: list[Imported]) -> None:
        self.used = used
        self.imports = imports
        self.weight = 0
        end = 0
        for start, last in sorted(one.born for one in imports):
            # Those that another one made are a part of it.
            self.weight += max(0, last - max(start, end))
            end = max(end, last)


class ImportCache:
    """Imports that later runs may take over. One for the entry points, one for unreached code."""

    def __init__(self) -> None:
        self._known: dict[Any, list[Imported]] = {}
        self._namespaces: dict[str, v.Mod] = {}
        # What the present run has added, and the modules that remembered imports of earlier runs have made.
        self._added: list[tuple[Any, Imported]] = []
        self._modules: set[v.Mod] = set()
        # What the run before has added.
        self._last: list[Imported] = []
        # In unreached code: what stands for the import of a file whatever was imported before; None where nothing can.
        self._settled: dict[str, Settled | None] = {}
        # What the last import found replaced: the same for most of them.
        self._patched: frozenset[str] = frozenset()
        self._attributes: dict[str, v.Value] = {}
        # What each run added that is remembered, and the run of each import by its id; and how many runs there were.
        self._runs: list[_Added] = []
        self._run_of: dict[int, _Added] = {}
        self._now = 0

    def is_settled(self, path: str) -> bool:
        """Whether a file has been imported by itself (see ``settle``)."""
        return path in self._settled

    def settle(self, interp: Interp, file: ModuleFile, circle: frozenset[str], needs: Needed) -> None:
        """A run has imported a file and nothing else: that is what all others take over who ask for it, or for a file of
        its circle that it has imported."""
        mod = interp.loaded.get(file.path)
        done = next((one for one in self._last if one.mod is mod), None)
        if done is None:
            self._settled[file.path] = None
            return
        settled = self._settled[file.path] = Settled(done, file.path, needs)
        for path in sorted(circle & settled.loaded.keys()):
            self._settled.setdefault(path, settled)

    def functions_entered(self) -> Iterator[FunctionKey]:
        """The functions that ran in the imports that are remembered."""
        settled = [one.done for one in self._settled.values() if one is not None]
        entered: set[int] = set()
        for done in chain(self._last, settled, *self._known.values()):
            entered.update(done.entered)
        return map(FUNCTIONS.elements.__getitem__, entered)

    def forget(self, path: str) -> None:
        """Forget the imports that read a file, which has been edited, and those that used what they made."""
        self._drop(lambda one: any(mod.path == path for mod in chain(one.loaded, one.used)))
        for settled, known in list(self._settled.items()):
            if settled == path or known is None:
                del self._settled[settled]

    def let_go(self) -> None:
        """Where too much is remembered, forget what no run has taken over for the longest time. Not while a run goes on,
        which may hold some of it."""
        self._now += 1
        total = sum(run.weight for run in self._runs)
        if total <= MOST_REMEMBERED:
            return
        gone: set[_Added] = set()
        for run in sorted(self._runs, key=lambda one: one.used):
            if total <= MOST_REMEMBERED // 2 or run.used >= self._now - 1:
                break
            total -= run.weight
            gone.add(run)
        if gone:
            self._drop(lambda one: self._run_of.get(id(one)) in gone)

    def _drop(self, is_gone: Callable[[Imported], bool]) -> None:
        """Forget some imports, and those that used what these made."""
        left = {id(one): one for one in self._remembered() if not is_gone(one)}
        while True:
            self._modules = {mod for one in left.values() for mod in one.loaded}
            lost = [
                number
                for number, one in left.items()
                if any(map(self._is_lost, one.used)) or any(id(other.done) not in left for other in one.inner)
            ]
            if not lost:
                break
            for number in lost:
                del left[number]
        for key, variants in list(self._known.items()):
            self._known[key] = [one for one in variants if id(one) in left]
            if not self._known[key]:
                del self._known[key]
        for path, known in list(self._settled.items()):
            if known is not None and id(known.done) not in left:
                del self._settled[path]
        for run in self._runs:
            run.imports = [one for one in run.imports if id(one) in left]
        self._runs = [run for run in self._runs if run.imports]
        self._run_of = {id(one): run for run in self._runs for one in run.imports}

    def _remembered(self) -> Iterator[Imported]:
        yield from chain.from_iterable(self._known.values())
        yield from (one.done for one in self._settled.values() if one is not None)

    def end_run(self) -> None:
        """Forget what no other run can take over: imports that used a module of this run alone, because the import that
        made it is not remembered."""
        added, self._added = self._added, []
        while True:
            added = [(key, one) for key, one in added if any(one is other for other in self._known[key])]
            made = {mod for _, one in added for mod in one.loaded}
            lost = [(key, one) for key, one in added if any(map(self._is_lost, one.used, repeat(made)))]
            if not lost:
                break
            for key, one in lost:
                self._known[key] = [other for other in self._known[key] if other is not one]
        self._modules |= made
        self._last = [one for _, one in added]
        if added:
            run = _Added(self._now, self._last)
            self._runs.append(run)
            self._run_of.update((id(one), run) for one in self._last)

    def _take_note(self, done: Imported) -> None:
        """A run has taken an import over."""
        run = self._run_of.get(id(done))
        if run is not None:
            run.used = self._now

    def _is_lost(self, mod: v.Mod, made: Collection[v.Mod] = ()) -> bool:
        return mod not in made and mod not in self._modules and mod.file is not None

    def namespace(self, directory: str, name: str) -> v.Mod:
        """The module that stands for a directory without ``__init__``."""
        known = self._namespaces.get(directory)
        if known is None:
            known = self._namespaces[directory] = v.Mod(name, None, directory)
            known.env.vars["__path__"] = v.Lit(directory)
            HEAP.share(known.env.birth)
        return known

    def load(self, interp: Interp, file: ModuleFile, name: str) -> v.Mod:
        """The module of a file: taken over from an earlier import, or run now."""
        if interp.entry is None:
            with interp.unjudged(), interp.import_budget():
                return self._load(interp, file, name)
        with interp.import_budget():
            return self._load(interp, file, name)

    def _load(self, interp: Interp, file: ModuleFile, name: str) -> v.Mod:
        if interp.frame is None or interp.speculating or interp.stopped:
            return interp.run_file(file, name)
        settled = self._settled_for(interp, file.path)
        if settled is not None and settled.loaded[file.path].name == name:
            self._take_settled(interp, settled)
            return interp.loaded[file.path]
        key = (
            file.path,
            name,
            interp.guessing > 0,
            interp.uncertain > 0,
            interp.orders.any,
            interp.exhausted,
        )
        variants = self._known.setdefault(key, [])
        # Modules of one package are imported in much the same circumstances, one after another.
        for index in reversed(range(len(variants))):
            if self._still_true(interp, variants[index]):
                variants.append(variants.pop(index))
                self._take_note(variants[-1])
                return self._take_over(interp, variants[-1])
        if len(variants) >= MAX_VARIANTS:
            del variants[0]
        return self._record(interp, file, name, key)

    def _settled_for(self, interp: Interp, path: str) -> Settled | None:
        return self._settled.get(path) if path in interp.ready else None

    def _take_settled(self, interp: Interp, settled: Settled) -> None:
        """Let a run over unreached code have imported a file, whose steps do not count."""
        interp.trail.append(settled)
        taken: list[Settled] = []
        pending = [(settled, False)]
        while pending:
            # Each behind those that it takes over itself.
            one, ready = pending.pop()
            if ready:
                _redo_settled(interp, one.done)
                self._take_note(one.done)
                taken.append(one)
            elif one not in interp.taken:
                interp.taken.add(one)
                pending.append((one, True))
                pending += [(inner, False) for inner in reversed(one.inner)]
        if interp.import_log is not None:
            interp.import_log.add_settled([settled], taken)

    def _record(self, interp: Interp, file: ModuleFile, name: str, key: Any) -> v.Mod:
        before = interp.state.copy()
        if self._patched != HEAP.patched:
            self._patched = frozenset(HEAP.patched)
        patched = self._patched
        places = set(interp.places)
        depth, steps, used_up = len(flow_into(interp, name)), interp.steps, interp.used_up
        if self._attributes != interp.library_attributes:
            self._attributes = dict(interp.library_attributes)
        library_attributes = self._attributes
        cuts, blanks = set(interp.cuts), set(interp.blanks)
        gaps = set(interp.gaps)
        pending, libraries = _pending(interp), set(interp.libraries)
        loaded, visited = set(interp.loaded), set(interp.visited)
        config_files, orders = set(interp.config_files), interp.orders
        origins, decided, excused = set(orders.origins), set(orders.decided), set(orders.excused)
        holders, kept, settled = len(orders.holders), len(orders.kept), len(orders.settled)
        numbered = len(orders.numbered)
        methods = interp.methods.mark()
        outer_log, interp.import_log = interp.import_log, ImportLog()
        outer_trail, interp.trail = interp.trail, []
        act = HEAP.push()
        with interp.memory.recorded() as memory:
            mod = interp.run_file(file, name)
        HEAP.pop()
        shared: list[Shared] = []
        entered = numbers(functions(interp.trail, shared).numbers)
        interp.trail = outer_trail
        interp.trail += (entered, *shared)
        log, interp.import_log = interp.import_log, outer_log
        if outer_log is not None:
            outer_log.add(log.lookups, log.used.values(), log.libraries, log.blanks, log.guessed)
            outer_log.add_settled(log.inner, log.taken)
            outer_log.add_effects(log.imported, log.places)
            outer_log.add_start(log)
            outer_log.tell(log.releases)
        done = effect(act, before, interp.state)
        quiet = (
            memory.quiet
            and (interp.entry is None or not log.spawned)
            and pending == _pending(interp)
            and (used_up == interp.used_up or not interp.importing)
        )
        if quiet:
            theirs = _Parts(log.taken)
            fresh_libraries = interp.libraries - libraries - theirs.libraries
            fresh = {path: one for path, one in interp.loaded.items() if path not in loaded}
            guessed = {name: interp.methods.before(methods, name) for name in sorted(log.guessed)}
            self._add(
                key,
                Imported(
                    mod,
                    tuple(one for one in fresh.values() if one not in theirs.modules),
                    tuple(one for path, one in log.used.items() if path not in fresh),
                    numbers(log.lookups),
                    {
                        n: known
                        for n, known in log.libraries.items()
                        if not (known and n in interp.libraries - libraries)
                    },
                    dict(log.blanks),
                    {
                        cls: one
                        for cls, one in interp.blanks.items()
                        if cls not in blanks and cls not in theirs.blanks
                    },
                    (log.imported - theirs.libraries) | fresh_libraries,
                    done,
                    {
                        **log.places,
                        **{flag: one for flag, one in interp.places.items() if flag not in places},
                    },
                    log.releases,
                    log.left,
                    log.at_module_level,
                    depth,
                    steps,
                    interp.methods.close(methods),
                    guessed,
                    numbers(map(FUNCTIONS.number, interp.visited - visited)),
                    entered,
                    tuple(dict.fromkeys(log.inner)),
                    {
                        key: origin
                        for key, origin in orders.origins.items()
                        if key not in origins and key not in theirs.keys
                    },
                    {key: None for key in orders.decided if key not in decided and key not in theirs.keys},
                    orders.excused - excused - theirs.keys,
                    theirs.without(orders.holders[holders:]),
                    theirs.without(orders.kept[kept:]),
                    theirs.without(orders.settled[settled:]),
                    theirs.without(orders.numbered[numbered:]),
                    interp.config_files - config_files - theirs.config_files,
                    interp.cuts - cuts,
                    interp.gaps - gaps,
                    HEAP.patched - patched - theirs.patched,
                    {
                        n: x
                        for n, x in interp.library_attributes.items()
                        if library_attributes.get(n) is not x and theirs.attributes.get(n) is not x
                    },
                    patched,
                    library_attributes,
                    act.named | NAMES.bits(act.names),
                    interp.steps - steps,
                    interp.limit - steps,
                    interp.used_up - used_up,
                    tuple(act.reads.values()),
                    tuple(theirs.without(act.changes())),
                    tuple((one, before, one.version) for one, before in act.written.items()),
                    memory,
                    interp.circumstances(act),
                    (act.start, HEAP.clock),
                    _Kept(),
                ),
            )
            HEAP.share(act.start)
        return mod

    def _add(self, key: Any, done: Imported) -> None:
        self._known[key].append(done)
        self._added.append((key, done))

    def _still_true(self, interp: Interp, known: Imported) -> bool:
        """Whether everything that an import read is the same here."""
        if known.inner:
            # Modules of settled imports that the run has made otherwise.
            others = interp.loaded.keys() - interp.settled_paths
            for one in known.inner:
                if self._settled_for(interp, one.path) is not one or any(
                    path in one.needs for path in others
                ):
                    return False
        return _still_true(interp, known)

    def _take_over(self, interp: Interp, known: Imported) -> v.Mod:
        for one in known.inner:
            self._take_settled(interp, one)
        return _take_over(interp, known)


class _Parts:
    """What settled imports did that a run took over while it made another import: no part of that one."""

    def __init__(self, taken: Iterable[Settled]) -> None:
        every = [one.done for one in taken]
        self.modules = {mod for done in every for mod in done.loaded}
        self.libraries: set[str] = set().union(*(done.libraries for done in every))
        self.blanks = {cls for done in every for cls in done.blanks_made}
        self.keys = {key for done in every for key in chain(done.origins, done.decided, done.excused)}
        self.config_files: set[str] = set().union(*(done.config_files for done in every))
        self.patched: set[str] = set().union(*(done.patched for done in every))
        self.attributes = {n: x for done in every for n, x in done.library_attributes.items()}
        self._objects = {
            id(x)
            for done in every
            for x in chain(done.holders, done.kept, done.settled, done.numbered, done.writes)
        }

    def without(self, some: Iterable[T]) -> list[T]:
        """What is not theirs."""
        objects = self._objects
        return [one for one in some if id(one) not in objects]


def _pending(interp: Interp) -> int:
    """How much is put off to the end of a program. What an import puts off is forgotten in a run over unreached code."""
    return len(interp.pending) if interp.entry is not None else 0


def _replaced_alike(interp: Interp, known: Imported) -> bool:
    """Whether the run has replaced the same as the one that remembered an import, as far as the import looked for it."""
    if any(NAMES.holds(known.named, name.rpartition(".")[2]) for name in HEAP.patched ^ known.patched_before):
        return False
    before, now = known.attributes_before, interp.library_attributes
    return not any(
        NAMES.holds(known.named, name) and not _same(before.get(name), now.get(name))
        for name in before.keys() | now.keys()
    )


def _same(then: v.Value | None, now: v.Value | None) -> bool:
    return then is now or (then is not None and now is not None and v.same(then, now))


def _still_true(interp: Interp, known: Imported) -> bool:
    """Whether everything that an import read is the same here."""
    left = interp.limit - interp.steps
    if known.steps > left if not known.used_up else known.steps_left != left:
        # It would not come as far here, or would come further.
        return False
    if known.at_module_level is not None and known.at_module_level != interp.at_module_level():
        return False
    if not _replaced_alike(interp, known):
        return False
    loaded = interp.loaded
    again = [mod for mod in known.loaded if mod.path in loaded]
    if any(loaded[mod.path] is not mod for mod in again):
        return False
    if again and HEAP.touched(known.born):
        return False
    if any(loaded.get(mod.path) is not mod for mod in known.used):
        return False
    if any((name in interp.libraries) is not found for name, found in known.asked.items()):
        return False
    if any(interp.blanks.get(cls) is not found for cls, found in known.blanks_found.items()):
        return False
    if not _found_alike(interp, known.lookups):
        return False
    if any(interp.methods.named(name) != found for name, found in known.guessed.items()):
        return False
    if not known.effect.holds(interp.state) or not interp.circumstances_hold(known.circumstances):
        return False
    if not all(v.same_access(access) or _alike(known, access) for access in known.reads):
        return False
    return interp.memory.agrees(known.memory)


def _alike(known: Imported, access: Access) -> bool:
    """Whether a place holds another object than the import read there, made by the same code, and the import did not keep
    the one that it read: so a logger is set up by whatever module is imported first."""
    if access[1] is WHOLE or not v.alike(at(*access[:4]), access[4]):
        return False
    return not known.kept_objects.keeps(known, access[4])


class _Kept:
    """Of which objects that an import read it is known whether what it left holds them, by their births."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, bool] = {}

    def keeps(self, done: Imported, one: v.Obj) -> bool:
        """Whether anything that an import made or wrote holds an object."""
        found = self._known.get(one.birth)
        if found is None:
            found = self._known[one.birth] = _reaches(done, one)
        return found


def _reaches(done: Imported, one: v.Obj) -> bool:
    first, last = done.born
    seen: set[int] = set()
    # Not by what it read, nor by what was there before.
    pending: list[Any] = [
        part
        for name, part in zip(done._fields, done, strict=True)
        if name not in ("reads", "attributes_before", "used", "inner")
    ]
    while pending:
        held = pending.pop()
        if held is one:
            return True
        if id(held) in seen or isinstance(held, _OUTSIDE):
            continue
        seen.add(id(held))
        scope = getattr(held, "env", held) if isinstance(held, (v.Cls, v.Mod)) else held
        if not isinstance(scope, Tracked) or first <= scope.birth <= last:
            pending += gc.get_referents(held)
    return False


_OUTSIDE = (str, int, float, bytes, type, FunctionType, ModuleType, msgspec.Struct, ModuleFile, array)
"""Types of what holds no values of the program."""


def _found_alike(interp: Interp, lookups: array[int]) -> bool:
    """Whether the run finds under names what the numbers of lookups say."""
    new = set(lookups) - interp.confirmed
    for number in new:
        directory, name, anywhere, file, place = _LOOKUPS.elements[number]
        if _target(interp.resolve(directory, name, anywhere)) != (file, place):
            return False
    interp.confirmed |= new
    return True


def _replayed(done: Effect, replay: Replay) -> Effect:
    """What an import did to the state, as a run does it that takes the import over: places have the run's flow."""
    writes, hints = (
        tuple(
            (kind, name, replayed(value, lambda one: one.replayed(replay)) if kind == FLAG else value)
            for kind, name, value in some
        )
        for some in (done.writes, done.hints)
    )
    return done._replace(writes=writes, hints=hints)


def _take_over(interp: Interp, known: Imported) -> v.Mod:
    """Let the run have done what the import did."""
    again = {mod.path for mod in known.loaded if mod.path in interp.loaded}
    interp.loaded.update((mod.path, mod) for mod in known.loaded)
    replay = _redo(interp, known, again)
    interp.visited.update(map(FUNCTIONS.elements.__getitem__, known.visited))
    interp.trail.append(known.entered)
    interp.cuts |= known.cuts
    interp.gaps |= known.gaps
    interp.steps += known.steps
    interp.used_up += known.used_up
    if interp.import_log is not None:
        interp.import_log.add(known.lookups, known.used, known.asked, known.blanks_found, known.guessed)
    with HEAP.as_then(known.versions):
        HEAP.take_over(known.reads, known.writes)
    for violation in known.memory.reports:
        interp.report(violation.replayed(replay))
    return known.mod


def _redo_settled(interp: Interp, known: Imported) -> None:
    """Let a run over unreached code have done what a settled import did, whatever it read."""
    again = {mod.path for mod in known.loaded if mod.path in interp.loaded}
    for mod in known.loaded:
        if interp.loaded.setdefault(mod.path, mod) is mod:
            interp.settled_paths.add(mod.path)
    _redo(interp, known, again, shared=True)
    with HEAP.as_then(known.versions):
        HEAP.redo_shared(known.writes)


def _redo(interp: Interp, known: Imported, again: Collection[str], shared: bool = False) -> Replay:
    """Let the run have done to its state what the import did. What of it the run had imported before is imported once."""
    replay = Replay(interp, flow_into(interp, known.mod.name), known.depth, interp.steps - known.began)
    _replayed(known.effect, replay).apply(interp.state)
    places = {
        flag: place.replayed(replay)
        for flag, place in known.places.items()
        if flag not in interp.places or interp.import_log is not None
    }
    for flag, place in places.items():
        interp.places.setdefault(flag, place)
    interp.methods.take_over(known.methods.without(again) if again else known.methods, shared)
    interp.libraries |= known.libraries
    orders = interp.orders
    for key, origin in known.origins.items():
        if key not in orders.origins:
            place = origin.place.replayed(replay)
            orders.origins[key] = origin._replace(place=place)
    orders.decided.update(known.decided)
    orders.excused |= known.excused
    orders.holders += known.holders
    orders.kept += known.kept
    orders.settled += known.settled
    orders.numbered += known.numbered
    interp.config_files |= known.config_files
    for name in sorted(known.patched):
        HEAP.patch(name)
    for name, value in known.library_attributes.items():
        interp.set_library_attribute(name, value)
    interp.blanks.update(known.blanks_made)
    if interp.import_log is not None:
        interp.import_log.add_effects(known.libraries, places)
        if known.at_module_level is not None:
            interp.import_log.at_module_level = known.at_module_level
        interp.import_log.tell(known.releases)
    interp.redo_left(known.left)
    interp.infer_releases(known.releases)
    HEAP.act.named |= known.named
    HEAP.act.circumstances.update(question for question, _ in known.circumstances)
    interp.memory.take_over(known.memory, lambda one: one.replayed(replay))
    return replay
