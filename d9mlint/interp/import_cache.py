"""What importing a module does, remembered by one analysis run and taken over by others.

A large package is imported by every script of its project. An import is remembered with everything that it
read (objects, scopes, modules, what rules remember) and everything that it did (modules loaded, objects written,
what the program was seen to do). Another run takes it over where all that it read is the same, and otherwise
runs the module itself; either way the outcome is the same. Imports that seed, or make a rule remember what
cannot be repeated (see ``memory``), are never taken over.

Code that no entry point reaches has no program that says what was imported before. There an import is the same
for all that ask for it: that of the module by itself (see ``ImportCache.settle``).
"""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.context import Question
from d9mlint.interp.heap import HEAP, NAMES, Access
from d9mlint.interp.memory import MemoryLog, replayed
from d9mlint.interp.places import Replay, flow_into
from d9mlint.interp.state import FLAG, MODE, RNG, Effect, effect
from d9mlint.interp.trail import FunctionKey, functions
from d9mlint.knowledge.versions import keep_oldest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from d9mlint.base.coverage import Cut, Gap
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.method_index import Layer, Method
    from d9mlint.interp.orders import Key, Numbered, Origin
    from d9mlint.interp.places import Where
    from d9mlint.project.modules import Found, ModuleFile

MAX_VARIANTS = 64
"""An import is remembered for at most this many different circumstances, of more for those met last. Packages that import
one another in circles have one for each of their parts that may be the first: where one is not remembered, all that
imports it runs again."""


class Imported(NamedTuple):
    """What an import read and did."""

    mod: v.Mod
    # Modules it loaded, and those that it found loaded already.
    loaded: dict[str, v.Mod]
    used: dict[str, v.Mod]
    lookups: dict[tuple[str, str, bool], Found | None]
    asked: dict[str, bool]
    blanks_found: dict[v.Cls, v.Inst | None]
    blanks_made: dict[v.Cls, v.Inst]
    libraries: set[str]
    effect: Effect
    places: dict[str, Where]
    releases: tuple[dict[str, str], dict[str, str]]
    # The length of the flow into it, and the step at which it began.
    depth: int
    began: int
    # Methods of classes that it made; and those of the names that it asked for which were there before.
    methods: Layer
    guessed: dict[str, list[Method]]
    visited: set[tuple[str, int]]
    entered: frozenset[FunctionKey]
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
    # the names that it looked for (see ``heap.Names``).
    patched: set[str]
    library_attributes: dict[str, v.Value]
    patched_before: frozenset[str]
    attributes_before: dict[str, v.Value]
    named: int
    # How many steps it took, of how many that were left; and how many budgets it used up.
    steps: int
    left: int
    used_up: int
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    memory: MemoryLog
    # What it asked of the options that lead to it, with the answers.
    circumstances: tuple[tuple[Question, Any], ...]
    # Between which times it made objects: those of the imports inside of it are not among what it read.
    born: tuple[int, int]


class ImportLog:
    """What is noted while an import runs that may be remembered."""

    __slots__ = ("blanks", "guessed", "imported", "libraries", "lookups", "places", "releases", "used")

    def __init__(self) -> None:
        self.lookups: dict[tuple[str, str, bool], Found | None] = {}
        self.used: dict[str, v.Mod] = {}
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

    def add(
        self,
        lookups: dict[tuple[str, str, bool], Found | None],
        used: dict[str, v.Mod],
        libraries: dict[str, bool],
        blanks: dict[v.Cls, v.Inst | None],
        guessed: Iterable[str],
    ) -> None:
        """An import inside of this one has read these."""
        self.guessed.update(guessed)
        self.lookups.update(lookups)
        for path, mod in used.items():
            self.used.setdefault(path, mod)
        for name, found in libraries.items():
            self.libraries.setdefault(name, found)
        for cls, one in blanks.items():
            self.blanks.setdefault(cls, one)

    def tell(self, releases: tuple[dict[str, str], dict[str, str]]) -> None:
        """Names in it tell for which releases it was written."""
        for known, new in zip(self.releases, releases, strict=True):
            keep_oldest(known, new)

    def add_effects(self, imported: set[str], places: dict[str, Where]) -> None:
        """An import inside of this one has done these."""
        self.imported |= imported
        for flag, place in places.items():
            self.places.setdefault(flag, place)


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
        self._settled: dict[str, Imported | None] = {}
        # What the last import found replaced: the same for most of them.
        self._patched: frozenset[str] = frozenset()

    def is_settled(self, path: str) -> bool:
        """Whether a file has been imported by itself (see ``settle``)."""
        return path in self._settled

    def settle(self, interp: Interp, file: ModuleFile, circle: frozenset[str]) -> None:
        """A run has imported a file and nothing else: that is what all others take over who ask for it, or for a file of
        its circle that it has imported."""
        mod = interp.loaded.get(file.path)
        done = next((one for one in self._last if one.mod is mod), None)
        self._settled[file.path] = done
        if done is not None:
            for path in sorted(circle & done.loaded.keys()):
                self._settled.setdefault(path, done)

    def functions_entered(self) -> Iterator[FunctionKey]:
        """The functions that ran in the imports that are remembered."""
        settled = [one for one in self._settled.values() if one is not None]
        for done in chain(self._last, settled, *self._known.values()):
            yield from done.entered

    def forget(self, path: str) -> None:
        """Forget the imports that read a file, which has been edited."""
        for key, variants in list(self._known.items()):
            kept = [one for one in variants if path not in one.loaded and path not in one.used]
            if key[0] == path or not kept:
                del self._known[key]
            else:
                self._known[key] = kept
        for settled, known in list(self._settled.items()):
            if settled == path or known is None or path in known.loaded or path in known.used:
                del self._settled[settled]
        left = [one for variants in self._known.values() for one in variants]
        left += [one for one in self._settled.values() if one is not None]
        self._modules = {mod for one in left for mod in one.loaded.values()}

    def end_run(self) -> None:
        """Forget what no other run can take over: imports that used a module of this run alone, because the import that
        made it is not remembered."""
        added, self._added = self._added, []
        while True:
            added = [(key, one) for key, one in added if any(one is other for other in self._known[key])]
            made = {mod for _, one in added for mod in one.loaded.values()}
            lost = [
                (key, one) for key, one in added if any(map(self._is_lost, one.used.values(), repeat(made)))
            ]
            if not lost:
                break
            for key, one in lost:
                self._known[key] = [other for other in self._known[key] if other is not one]
        self._modules |= made
        self._last = [one for _, one in added]

    def _is_lost(self, mod: v.Mod, made: set[v.Mod]) -> bool:
        return mod not in made and mod not in self._modules and mod.file is not None

    def namespace(self, directory: str, name: str) -> v.Mod:
        """The module that stands for a directory without ``__init__``."""
        known = self._namespaces.get(directory)
        if known is None:
            known = self._namespaces[directory] = v.Mod(name, None)
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
        settled = self._settled.get(file.path) if file.path in interp.ready else None
        if settled is not None and settled.loaded[file.path].name == name:
            return self._take_settled(interp, settled, file.path)
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
            if _still_true(interp, variants[index]):
                variants.append(variants.pop(index))
                return _take_over(interp, variants[-1])
        if len(variants) >= MAX_VARIANTS:
            del variants[0]
        return self._record(interp, file, name, key)

    def _take_settled(self, interp: Interp, settled: Imported, path: str) -> v.Mod:
        """Let a run over unreached code have imported a file, whose steps do not count."""
        steps, used_up, loaded = interp.steps, interp.used_up, dict(interp.loaded)
        _take_over(interp, settled)
        interp.loaded.update(loaded)
        interp.steps, interp.used_up = steps, used_up
        return interp.loaded[path]

    def _record(self, interp: Interp, file: ModuleFile, name: str, key: Any) -> v.Mod:
        before = interp.state.copy()
        if self._patched != HEAP.patched:
            self._patched = frozenset(HEAP.patched)
        patched = self._patched
        places = set(interp.places)
        depth, steps, used_up = len(flow_into(interp, name)), interp.steps, interp.used_up
        library_attributes = dict(interp.library_attributes)
        cuts, blanks = set(interp.cuts), set(interp.blanks)
        gaps = set(interp.gaps)
        counts, libraries = _counts(interp), set(interp.libraries)
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
        entered = functions(interp.trail)
        interp.trail = outer_trail
        interp.trail.append(entered)
        log, interp.import_log = interp.import_log, outer_log
        if outer_log is not None:
            outer_log.add(log.lookups, log.used, log.libraries, log.blanks, log.guessed)
            outer_log.add_effects(log.imported, log.places)
            outer_log.tell(log.releases)
        done = effect(act, before, interp.state)
        quiet = (
            memory.quiet
            and (interp.entry is None or not done.changes(RNG, MODE))
            and counts == _counts(interp)
            and (used_up == interp.used_up or not interp.importing)
        )
        if quiet:
            fresh_libraries = interp.libraries - libraries
            fresh = {path: one for path, one in interp.loaded.items() if path not in loaded}
            guessed = {name: interp.methods.before(methods, name) for name in sorted(log.guessed)}
            self._add(
                key,
                Imported(
                    mod,
                    fresh,
                    {path: one for path, one in log.used.items() if path not in fresh},
                    log.lookups,
                    {n: known for n, known in log.libraries.items() if not (known and n in fresh_libraries)},
                    dict(log.blanks),
                    {cls: one for cls, one in interp.blanks.items() if cls not in blanks},
                    log.imported | fresh_libraries,
                    done,
                    {
                        **log.places,
                        **{flag: one for flag, one in interp.places.items() if flag not in places},
                    },
                    log.releases,
                    depth,
                    steps,
                    interp.methods.close(methods),
                    guessed,
                    interp.visited - visited,
                    entered,
                    {key: origin for key, origin in orders.origins.items() if key not in origins},
                    {key: None for key in orders.decided if key not in decided},
                    orders.excused - excused,
                    orders.holders[holders:],
                    orders.kept[kept:],
                    orders.settled[settled:],
                    orders.numbered[numbered:],
                    interp.config_files - config_files,
                    interp.cuts - cuts,
                    interp.gaps - gaps,
                    HEAP.patched - patched,
                    {
                        n: x
                        for n, x in interp.library_attributes.items()
                        if library_attributes.get(n) is not x
                    },
                    patched,
                    library_attributes,
                    act.named | NAMES.number(act.names),
                    interp.steps - steps,
                    interp.limit - steps,
                    interp.used_up - used_up,
                    tuple(act.reads.values()),
                    act.changes(),
                    memory,
                    interp.circumstances(act),
                    (act.start, HEAP.clock),
                ),
            )
            HEAP.share(act.start)
        return mod

    def _add(self, key: Any, done: Imported) -> None:
        self._known[key].append(done)
        self._added.append((key, done))


def _counts(interp: Interp) -> tuple[int, ...]:
    if interp.entry is None:
        # Whatever an import leaves is forgotten in a run over unreached code.
        return ()
    return (len(interp.pending), len(interp.module_rng), len(interp.module_modes))


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
    if known.steps > left if not known.used_up else known.left != left:
        # It would not come as far here, or would come further.
        return False
    if not _replaced_alike(interp, known):
        return False
    loaded = interp.loaded
    again = known.loaded.keys() & loaded.keys()
    if any(loaded[path] is not known.loaded[path] for path in again):
        return False
    if again and HEAP.touched(known.born):
        return False
    if any(loaded.get(path) is not mod for path, mod in known.used.items()):
        return False
    if any((name in interp.libraries) is not found for name, found in known.asked.items()):
        return False
    if any(interp.blanks.get(cls) is not found for cls, found in known.blanks_found.items()):
        return False
    if any(interp.resolve(*asked) != found for asked, found in known.lookups.items()):
        return False
    if any(interp.methods.named(name) != found for name, found in known.guessed.items()):
        return False
    if not known.effect.holds(interp.state) or not interp.circumstances_hold(known.circumstances):
        return False
    if not all(v.same_access(access) for access in known.reads):
        return False
    return interp.memory.agrees(known.memory)


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
    again = known.loaded.keys() & interp.loaded.keys()
    interp.loaded.update(known.loaded)
    replay = Replay(interp, flow_into(interp, known.mod.name), known.depth, interp.steps - known.began)
    _replayed(known.effect, replay).apply(interp.state)
    places = {
        flag: place.replayed(replay)
        for flag, place in known.places.items()
        if flag not in interp.places or interp.import_log is not None
    }
    for flag, place in places.items():
        interp.places.setdefault(flag, place)
    # What the run had imported before is imported once.
    interp.methods.take_over(known.methods.without(again) if again else known.methods)
    interp.libraries |= known.libraries
    interp.visited |= known.visited
    interp.trail.append(known.entered)
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
    interp.cuts |= known.cuts
    interp.gaps |= known.gaps
    for name in sorted(known.patched):
        HEAP.patch(name)
    for name, value in known.library_attributes.items():
        interp.set_library_attribute(name, value)
    interp.blanks.update(known.blanks_made)
    interp.steps += known.steps
    interp.used_up += known.used_up
    if interp.import_log is not None:
        interp.import_log.add(known.lookups, known.used, known.asked, known.blanks_found, known.guessed)
        interp.import_log.add_effects(known.libraries, places)
        interp.import_log.tell(known.releases)
    interp.infer_releases(known.releases)
    HEAP.act.named |= known.named
    HEAP.act.circumstances.update(question for question, _ in known.circumstances)
    HEAP.take_over(known.reads, known.writes)
    interp.memory.take_over(known.memory, lambda one: one.replayed(replay))
    for violation in known.memory.reports:
        interp.report(violation.replayed(replay))
    return known.mod
