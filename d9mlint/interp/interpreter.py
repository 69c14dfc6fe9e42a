"""The abstract run of a program: statements, scopes, imports.

One ``Interp`` runs one entry point (or, with ``entry`` None, everything no entry point reached, under
neutral assumptions). It follows Python's own order: a module's body runs at its first import, class
bodies, decorators and default arguments at definition. Branches whose test is known are followed alone;
if a command-line option's default decides the test, both are run and the default's outcome is kept.
Expressions are in ``expressions``, targets in ``assignment``, calls in ``calls``, models of libraries in
``library``. They import this module for type hints alone: what they need of a run they ask of its ``Interp``.
"""

from __future__ import annotations

import builtins
import functools
import sys
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.base.coverage import Cut, Gap, GapKind
from d9mlint.interp import (
    calls,
    conditions,
    constant_tests,
    data,
    equal_tests,
    expressions,
    given_instead,
    given_options,
    given_together,
    idle,
    missing_attributes,
    module_modes,
    named_weights,
    order_cuts,
    order_last,
    order_lone,
    order_looks,
    rank_tests,
    text_parts,
)
from d9mlint.interp import values as v
from d9mlint.interp.assignment import assign, aug_assign, delete, set_attribute
from d9mlint.interp.case_tests import as_tests
from d9mlint.interp.context import (
    CONTEXT,
    INSTEAD,
    LOOPS,
    OPTION,
    QUIET,
    REPEATED,
    RESULT,
    Active,
    Question,
    Running,
)
from d9mlint.interp.emptiness import empty_by_default, filled
from d9mlint.interp.environment import before_change
from d9mlint.interp.events import (
    BareNameEvent,
    ContextEvent,
    EnvironmentEvent,
    FailEvent,
    HandlerEvent,
    ImportEvent,
    Loop,
    LoopEvent,
    ReturnEvent,
    TestEvent,
)
from d9mlint.interp.expressions import EVAL
from d9mlint.interp.failing import (
    asked_first,
    defines_no,
    has_raised,
    must_raise,
    rounds_take_other_number,
    unpacks_other_number,
)
from d9mlint.interp.frames import Aside, BudgetExceeded, Frame, Jumped
from d9mlint.interp.given_instead import Instead, numbers_gone_on_with, unless_option
from d9mlint.interp.heap import (
    ABSENT,
    HEAP,
    ITEM,
    NAME,
    Access,
    Activation,
    Cells,
    LibraryAttributes,
    Overwritten,
    at,
)
from d9mlint.interp.import_cache import ImportCache, ImportLog, Settled
from d9mlint.interp.later_rounds import without_gradient
from d9mlint.interp.library.processes import context_class
from d9mlint.interp.library.reflection import SEARCH_PATH, on_search_path
from d9mlint.interp.library.weights import loaded_between, loaded_if_given, loaded_places
from d9mlint.interp.listening import Listeners
from d9mlint.interp.made_again import Code
from d9mlint.interp.memory import Memory
from d9mlint.interp.method_index import MethodIndex
from d9mlint.interp.methods import setter_of
from d9mlint.interp.missing_items import present, there_if_given
from d9mlint.interp.naming import printed_before_failing
from d9mlint.interp.orders import Orders
from d9mlint.interp.overwritten import overwritten_places, shown_if_given
from d9mlint.interp.partings import Open, Partings
from d9mlint.interp.places import running
from d9mlint.interp.process_start import IMPORTED, Left, ProcessStart
from d9mlint.interp.replaced import kept_places, replaced_places, stored_places, uncalled_parts
from d9mlint.interp.rng import use_default
from d9mlint.interp.state import (
    MAYBE,
    MODE,
    RNG,
    UNSEEDED,
    Rng,
    Setting,
    Site,
    State,
    StateTable,
    Ways,
    join_states,
    prefer,
)
from d9mlint.interp.tensors import TENSOR, is_switch, of_later_rounds, unpacked
from d9mlint.interp.trail import FUNCTIONS, Trail, every_function
from d9mlint.interp.usage import MODES, join_modes, use
from d9mlint.ir import liveness
from d9mlint.ir import nodes as m
from d9mlint.ir.elements import may_call_elements, uses_names_with
from d9mlint.ir.endings import calls_before_failing
from d9mlint.ir.many_rounds import declares_options
from d9mlint.ir.python_2 import OF_PYTHON_2, is_of_python_2
from d9mlint.ir.scopes import assigned_names, counts_up, may_read, names_of_libraries, stored_attributes
from d9mlint.ir.traversal import nodes
from d9mlint.knowledge.versions import at_most, keep_oldest
from d9mlint.project.entry_points import is_main_test
from d9mlint.project.modules import Found, ModuleFile, Modules

if TYPE_CHECKING:
    from d9mlint.config.targets import Targets
    from d9mlint.interp.activity import Activity
    from d9mlint.interp.conditions import Outcome
    from d9mlint.interp.library.queues import Workers
    from d9mlint.interp.memo import Outcome as CallOutcome
    from d9mlint.interp.places import Where
    from d9mlint.interp.releases import ReleaseNames
    from d9mlint.interp.rng import Draw
    from d9mlint.interp.switches import Switches, TrainerSwitch
    from d9mlint.interp.violations import Violation
    from d9mlint.knowledge import Knowledge

MAIN = "__main__"
"""The name of the module that a program is started with."""
_PYTHON_2 = {at_most("python"): "2.7"}
MAX_STEPS = 400_000
"""Statements run for one entry point, and for each of its imports, before calls are no longer followed."""
MAX_RUN_STEPS = 1_000_000
"""Statements run for one entry point with all of its imports before calls in imports are no longer followed."""
MAX_UNROLL = 16
"""Loops over a known sequence of at most this many elements are run element by element."""
MAX_UNROLLED = 256
"""Rounds of loops and comprehensions inside one another that are run element by element."""
MAX_ROUNDS = 4
MAX_INNER_ROUNDS = 2
"""How often the body of any other loop, and of one in it, is run at most, where a round leaves another switch than it
found."""
_MOST_LATE = 8
"""Names that one module after another imports from the next are followed through so many modules."""
_MOST_NAMED = 3
"""So many files are named that an import may mean."""


def _before(access: Access) -> Any:
    """What stood at a place before it was written, be it as the class has it."""
    owner, _, _, name, old = access
    return owner.cls.find(name) if old is ABSENT and isinstance(owner, v.Inst) else old


def _nowhere(violation: Violation) -> None:
    """There are no rules."""


_TWO = 2
"""Branches of an ``if``."""


class _HeldBefore(NamedTuple):
    """What a place in ``into`` held when a branch of a call began: the number of the branch and the start of the call."""

    into: Cells
    branch: tuple[int, int]
    value: v.Value | None


class _Within:
    """Some names are active. Every call is made within something, and a generator for each takes longer."""

    __slots__ = ("_before", "_interp", "_names")

    def __init__(self, interp: Interp, names: tuple[str, ...]) -> None:
        self._interp = interp
        self._names = names

    def __enter__(self) -> None:
        held = self._interp.contexts.held
        self._before = len(held)
        held.extend(self._names)

    def __exit__(self, *_: object) -> None:
        del self._interp.contexts.held[self._before :]


class Interp:
    """An abstract run. ``entry`` is the file it starts from, None for the run over what was not reached."""

    looks_behind_constants = True
    """Whether it looks at what the program would do in branches that constants leave out."""

    def __init__(
        self,
        modules: Modules,
        knowledge: Knowledge,
        *,
        targets: Targets | None = None,
        device: str = "cuda",
        device_given: bool = False,
        entry: ModuleFile | None = None,
        imported: frozenset[str] = frozenset(),
        used: frozenset[str] = frozenset(),
        imports: ImportCache | None = None,
    ) -> None:
        self.activity: Activity
        self.switches: Switches
        self.release_names: ReleaseNames
        self.modules = modules
        self.kb = knowledge
        self.listeners = Listeners()
        # The same without observers of a speculation.
        self.unobserved = self.listeners
        # Whether this is what a worker process runs when it starts.
        self.in_worker = False
        # Whether a worker of a loader starts, of which the program goes on.
        self.starting_worker = False
        # Whether nobody is to hear of what happens: an import in a run over unreached code.
        self.muted = False
        self.targets = targets
        self.device = device
        self.device_given = device_given
        self.entry = entry
        self.imported_files = imported
        self.used_files = used
        self.imports = imports if imports is not None else ImportCache()
        # In a run over unreached code: paths of the files whose import is the same in all such runs.
        self.ready: Container[str] = frozenset()
        # Which of these it has taken over, and the paths of their modules.
        self.taken: set[Settled] = set()
        self.settled_paths: set[str] = set()
        self.entry_directory = entry.directory if entry else ""
        # Where Python looks first for what the program imports.
        self.first_on_path = self.entry_directory
        # Lookups that remembered imports have made, and that give the same here.
        self.confirmed: set[int] = set()
        self.visited: set[tuple[str, int]] = set()
        # In a run over unreached code: whether functions that it calls are called where gradients may be recorded.
        self.gradient_calls: dict[tuple[str, int], bool] = {}
        # And which of their parameters are given tensors that do not require grad in all calls.
        self.without_gradient: dict[tuple[str, int], frozenset[str]] = {}
        # Whether nothing that the program may run makes a process group; None until that is asked.
        self.without_group: bool | None = None
        # Whose code was read, see ``trail``.
        self.trail: Trail = []
        self.state = State()
        if entry is None:
            self.state.default_level = MAYBE
        self.frame: Frame = None  # type: ignore[assignment]
        self.loaded: dict[str, v.Mod] = {}
        # Classes that a metaclass of the project is making.
        self.making: list[v.Cls] = []
        self.steps = 0
        # The steps that may be run for what is running, and the step after which they are used up: then calls are no
        # longer followed. An import has a budget besides that of the program, so that what it does is the same in all.
        self.budget = self.limit = MAX_STEPS
        self.stopped = False
        # How many budgets have been used up: not all that the program does is known.
        self.used_up = 0
        self.guessing = 0
        # Whether the function that ended last asks for a name that nothing defines, on all of its paths.
        self.lost = False
        # Whether it ends the program.
        self.exits = False
        # How many calls that are running may not happen at all.
        self.uncertain = 0
        # The draws of a default argument that is being evaluated.
        self.captured: list[Draw] | None = None
        # What stands in the place of an object if an option is given, with the option, by the birth of the object.
        self.given_instead: dict[int, list[Instead]] = {}
        self.noted_instead: list[Instead] = []
        self.case_tests: dict[int, m.If | None] = {}
        # When that was noted of which object, by its birth.
        self.instead_notes: list[tuple[int, int]] = []
        # The values that options have in the branches that are running.
        self.asked: dict[str, Any] = {}
        # What has to hold for each of the branches to be taken that options lead to.
        self.given: list[Ways] = []
        # The objects of which methods run, by themselves and not for what stands in their place.
        self.apart: set[int] = set()
        # Branches that exclude each other.
        self.partings = Partings()
        self.methods = MethodIndex()
        self.contexts = Active(CONTEXT)
        # Loops that are running, outermost first.
        self.loops = Running()
        self.branching = 0
        # The body of the `try` that runs, if it has handlers: what a statement there takes for granted may not hold.
        self.tried: list[m.Stmt] = []
        # The births of objects of which the program makes only one, and for each of which in turn something is done.
        self.one_of: list[tuple[int, ...]] = []
        # The time at which the innermost branch began, with how many were running then.
        self.branch_began = (0, 0)
        self.branch_number = self._branches = 0
        # The options of the branches that are running which their defaults do not take.
        self.asides: list[str] = []
        # What the command line is taken to choose where a configuration leaves it open.
        self.assumed: tuple[str, ...] = ()
        # When branches ran in which something was made that exists only if an option is given, by option.
        self.made_where_given: dict[str, list[tuple[int, int]]] = {}
        self._modes_before: dict[tuple[v.Value, int, int], v.Value] = {}
        self._held_before: dict[tuple[int, str], _HeldBefore] = {}
        # When the innermost loop began whose body is run once for all of its rounds; 0 outside of such loops.
        self.repeating = 0
        # Options whose defaults decided the branches that are running.
        self.options = Active(OPTION)
        self.memo: dict[Any, list[CallOutcome]] = {}
        self.variants: dict[Code, set[Any]] = {}
        self.reruns: dict[tuple[str, int], int] = {}
        # How often each function was run, and for how many steps; and, where that was too much, the run that stands
        # for all that would follow. A wrapper counts for each function that it calls.
        self.spent: dict[Code, list[int]] = {}
        self.settled: dict[Code, CallOutcome] = {}
        self.active: dict[tuple[str, int], v.Args] = {}
        # Functions that were not entered again because they are running.
        self.recursions: set[tuple[str, int]] = set()
        self.importing = 0
        # Steps of the module body that is being imported, without those of its own imports.
        self.import_steps = 0
        # The product of the rounds of the loops that are being run element by element.
        self.rounds = 1
        # Whether the program ends where it asks for a name that nothing defines, or fails otherwise.
        self.fails = False
        self.cuts: set[Cut] = set()
        self.gaps: set[Gap] = set()
        self.pending: list[Callable[[], None]] = []
        # What rules and models remember of this run, and the first place at which it did something.
        self.memory = Memory()
        # Takes what an import has violated in another run.
        self.report: Callable[[Violation], None] = _nowhere
        # Takes why a rule does not report a place that it has looked at, where somebody asks.
        self.silences: Callable[[str, Site, str], None] | None = None
        # Libraries that the program has imported, by the first part of their names.
        self.libraries: set[str] = set()
        self.places: dict[str, Where] = {}
        # For which releases of libraries the program was written, and which follow from these.
        self.releases: dict[str, str] = {}
        self.implied_releases: dict[str, str] = {}
        # What module bodies seeded and set: a process that is spawned repeats it.
        self._process_start = ProcessStart.new()
        # What runs in a process that the program starts, by the name of its function.
        self.spawned = ""
        # When that process began, by the clock of the heap.
        self.process_began = 0
        # The handles of hooks that modules were given.
        self.hooks: list[v.Obj] = []
        # Whether an object of a library was called, such as a model.
        self.calls_objects = False
        # What was given to libraries, or put into their objects: they call it. By the identity of each.
        self.placed: dict[int, v.Func | v.Partial | v.Cls | v.Inst] = {}
        # The functions that only they have called: of what they do, of devices above all, the program says nothing.
        self.left_to_libraries: set[tuple[str, int]] = set()
        # In how many bodies of `if __name__ == "__main__"` the program is.
        self.guarded = 0
        # What the program itself stored on modules of libraries.
        self.library_attributes = LibraryAttributes()
        self.blanks: dict[v.Cls, v.Inst] = {}
        self.methods_run: set[tuple[v.Inst, str, bool]] = set()
        self.modes_run: set[tuple[v.Inst, str]] = set()
        self.orders = Orders(knowledge)
        # The call of a sort whose key function is running.
        self.sorting: Any = None
        # Functions that decorators of the project are applied to at the moment, by their keys.
        self.decorated: frozenset[tuple[str, int]] = frozenset()
        # The workers that run what is running; none in the main thread of the program.
        self.workers: Workers | None = None
        # The time at which the workers of a loader began that run what is running; 0 for no workers.
        self.loading = 0
        # Several threads that run what is running share what is older than this; 0 where there are none.
        self.sharing = 0
        # The same for files that are written.
        self.sharing_files = 0
        # The same two times for coroutines that run as tasks, which share it from where they first wait.
        self.tasks = (0, 0)
        # They are processes, which share only what a manager holds for them.
        self.among_processes = False
        self.import_log: ImportLog | None = None
        self.speculating = 0
        # The tests of which it is known what the branches do that constants leave out.
        self.left_out: set[Site] = set()
        self.config_files: set[str] = set()
        # In a run over unreached code: the functions of the module at hand that are judged.
        self.judged: frozenset[tuple[str, int]] = frozenset()

    # ------------------------------------------------------------------------------ entry and modules

    @property
    def exhausted(self) -> bool:
        """Whether something was not followed because a budget was used up."""
        return self.used_up > 0

    def forget_calls(self) -> None:
        """The run has ended. What calls did is most of what it has made: it is freed at once, and not when Python has found
        that nothing but the run itself holds it, which takes several times as long."""
        self.memo.clear()
        self.settled.clear()
        self.variants.clear()

    def allow(self, steps: int) -> None:
        """Run at most so many steps from here."""
        self.budget, self.limit = steps, self.steps + steps

    @contextmanager
    def import_budget(self) -> Iterator[None]:
        """Import a module on its budget, which is not that of the program. A module that it imports has none."""
        if self.importing or self.stopped:
            yield
            return
        steps, budget, limit = self.steps, self.budget, self.limit
        self.allow(max(0, min(MAX_STEPS, MAX_RUN_STEPS - steps)))
        try:
            yield
        finally:
            self.budget, self.limit = budget, limit + self.steps - steps
            self.stopped = False

    def run_file(self, file: ModuleFile, name: str) -> v.Mod:
        """Run a module's body under ``__name__`` = name; the module's names are in the result's env."""
        mod = v.Mod(name, file)
        if name != MAIN:
            # A program that imports the file that it was started with runs it again, under its own name.
            self.loaded[file.path] = mod
        mod.env.vars["__name__"] = v.Lit(name)
        mod.env.vars["__file__"] = v.UNKNOWN
        site = self.here() if self.frame is not None else None
        outer, contexts, branching, repeating = self.frame, self.contexts, self.branching, self.repeating
        loops, self.loops = self.loops, Running()
        label = file.relative if outer is None else f"import of {name}"
        self.frame = Frame(mod, file, mod.env, label, outer, site)
        self.contexts = Active(CONTEXT)
        circumstances, HEAP.act.circumstances = HEAP.act.circumstances, set()
        in_loops, HEAP.act.in_loops = HEAP.act.in_loops, set()
        self.branching = self.repeating = 0
        one_of, self.one_of = self.one_of, []
        active, self.active = self.active, {}
        import_steps, self.import_steps = self.import_steps, 0
        # What an import does must not depend on what the program ran before.
        variants, self.variants = self.variants, {}
        spent, self.spent = self.spent, {}
        settled, self.settled = self.settled, {}
        order_loops, self.orders.loops = self.orders.loops, []
        order_lones, self.orders.lone = self.orders.lone, []
        order_rounds, self.orders.rounds = self.orders.rounds, []
        if outer is not None:
            self.importing += 1
            # What an import does must not depend on how deep in the program it stands.
            self.frame.depth = 0
        self.visited.add((file.path, 0))
        self.trail.append(FUNCTIONS.number((file.path, 0)))
        alive = self.state.alive
        if is_of_python_2(file.facts):
            self.infer_releases((_PYTHON_2, {}))
        if file.facts.problem is None:
            self.block(file.facts.functions[0].body)
        if outer is None:
            self.fails = self.state.lost and not self.state.alive
        self.state.alive = alive
        self.frame, self.contexts, self.branching, self.active = outer, contexts, branching, active
        self.one_of = one_of
        # No context is active in an import and no loop runs, whatever is where it stands.
        circumstances.update(one for one in HEAP.act.circumstances if one[0] not in (CONTEXT, LOOPS))
        HEAP.act.circumstances = circumstances
        HEAP.act.in_loops = in_loops
        self.repeating = repeating
        self.loops = loops
        self.importing -= outer is not None
        self.orders.loops, self.orders.rounds = order_loops, order_rounds
        self.orders.lone = order_lones
        self.import_steps = import_steps
        self.variants, self.spent, self.settled = variants, spent, settled
        return mod

    def import_found(self, found: Found, name: str) -> v.Mod:
        """The module an import resolved to, run if this is its first import."""
        if found.file is None:
            key = found.directory + "/"
            known = self.loaded.get(key)
            if known is None:
                known = self.loaded[key] = self.imports.namespace(found.directory, name)
            return known
        known = self.loaded.get(found.file.path)
        if known is not None:
            if self.import_log is not None:
                self.import_log.used.setdefault(found.file.path, known)
            return known
        return self.imports.load(self, found.file, name)

    def find_module(self, file: ModuleFile, name: str, names: Sequence[str] = ()) -> Found | None:
        """The project module that an absolute import means in ``file``, from which it imports ``names``."""
        found = self.resolve(file.directory, name, False)
        if self.import_log is not None:
            self.import_log.looked_up(file.directory, name, False, found)
        if (found is None or found.file is None) and self.uses(SEARCH_PATH):
            added = self._in_added_directory(name, names)
            if added is not None:
                return added
            if found is None:
                found = self.resolve(file.directory, name, True)
                if self.import_log is not None:
                    self.import_log.looked_up(file.directory, name, True, found)
        return found

    def _in_added_directory(self, name: str, names: Sequence[str]) -> Found | None:
        """The module of this name in a directory that the program has added to the search path. Where a library has the
        name, too, the file is meant unless it surely lacks what is imported."""
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names:
            return None
        library = self.modules.is_library(name)
        for directory, found in self.modules.directories_with(name).items():
            if not self.uses(on_search_path(directory)) or found.file is None:
                continue
            inner = [one for one in names if library and self.modules.at(found.directory, [one]) is None]
            if inner:
                # An edit of the file may change the answer.
                self.trail.append(FUNCTIONS.number((found.file.path, 0)))
                if found.file.lacks(inner):
                    continue
            return found
        return None

    def resolve(self, directory: str, name: str, anywhere: bool) -> Found | None:
        """The project module that an absolute import means in a file of ``directory``; ``anywhere`` in the project
        where the program has extended the search path and it is on none of the usual ones."""
        if anywhere:
            return self.modules.anywhere(name, directory)
        return self.modules.absolute_in(directory, self.first_on_path, name)

    def look_first_in(self, directory: str) -> None:
        """Look for what the program imports in this directory before all others."""
        self.first_on_path = directory
        self.confirmed.clear()

    def uses(self, library: str) -> bool:
        """Whether the program has imported a library."""
        found = library in self.libraries
        if self.import_log is not None:
            self.import_log.libraries.setdefault(library, found)
        return found

    @contextmanager
    def unjudged(self) -> Iterator[None]:
        """Import a module in a run over unreached code: its own run judges it, and who imports it before is not
        known, so rules do not listen, and seeds, modes and variables are afterwards what they were."""
        state, listeners = self.state, self.listeners
        kept = state.copy()
        outermost = not self.muted
        pending, cuts = len(self.pending), self.cuts
        steps, used_up, stopped = self.steps, self.used_up, self.stopped
        process_start = self._process_start.copy()
        if outermost:
            self.muted, self.listeners = True, listeners.muted()
            self.steps, self.used_up, self.stopped, self.cuts = 0, 0, False, set()
        try:
            yield
        finally:
            state = self.state
            state.restore(kept)
            self._process_start = process_start
            del self.pending[pending:]
            if outermost:
                self.muted, self.listeners = False, listeners
                self.steps, self.used_up, self.stopped, self.cuts = steps, used_up, stopped, cuts

    def library_attribute(self, name: str) -> v.Value | None:
        """What the program itself stored on a module of a library, by its full name."""
        HEAP.act.names.add(name)
        return self.library_attributes.get(name)

    def set_library_attribute(self, name: str, value: v.Value) -> None:
        """The program stores something on a module of a library."""
        old = self.library_attributes.get(name)
        if old is None or not v.same(old, value):
            self.library_attributes[name] = value
        else:
            dict.__setitem__(self.library_attributes, name, value)

    def cut(self, reason: str, node: Any) -> None:
        """Something is not followed here."""
        self.cuts.add(Cut(reason, *self.here(node)))

    def gap(self, kind: GapKind, text: str, node: Any) -> None:
        """Something that may matter is not followed here. Only in runs of entry points: others know less anyway."""
        if self.entry is not None:
            self.gap_at(kind, text, self.here(node))

    def gap_at(self, kind: GapKind, text: str, site: Site) -> None:
        """The same, at a place."""
        if self.entry is not None:
            self.gaps.add(Gap(site.path, site.start, site.end, kind, text))

    def has_gap(self, kind: GapKind, site: Site) -> bool:
        """Whether something of this kind is not followed at a place."""
        return any((gap.kind, gap.path, gap.start) == (kind, site.path, site.start) for gap in self.gaps)

    def has_run(self, function: tuple[str, int]) -> bool:
        """Whether a function of the project has run."""
        return function in self.visited

    @contextmanager
    def fork(self, *observers: object, frame: Frame | None = None, worker: bool = False) -> Iterator[Interp]:
        """Speculate: what happens inside leaves no trace in the run but violations at their places. See
        ``view.RunView.fork``."""
        listeners, in_worker = self.listeners, self.in_worker
        outer_frame = self.frame
        state, memo, memory = self.state, self.memo, self.memory
        process_start = self._process_start.copy()
        places, contexts, loops = dict(self.places), self.contexts.copy(), self.loops.copy()
        self.state, self.memo, self.memory = state.copy(), {}, memory.forked()
        variants, self.variants = self.variants, {}
        settled, self.settled = self.settled, {}
        instead = self.given_instead
        order_loops, order_lones = list(self.orders.loops), list(self.orders.lone)
        loaded = dict(self.loaded)
        log = self.import_log
        done = dict(log.places) if log is not None else None
        left = len(log.left) if log is not None else 0
        self.speculating += 1
        try:
            if not self.muted:
                self.listeners = self.unobserved.plus(observers) if observers else self.unobserved
            self.in_worker = worker
            if frame is not None:
                self.frame = frame
            with HEAP.speculation():
                yield self
        finally:
            self.speculating -= 1
            if log is not None and done is not None:
                # An import that is being recorded has not done what it only might do.
                log.places = done
                del log.left[left:]
            self.listeners, self.in_worker = listeners, in_worker
            self.frame, self.state, self.memo, self.memory = outer_frame, state, memo, memory
            self._process_start = process_start
            self.places, self.contexts, self.variants = places, contexts, variants
            self.settled, self.given_instead = settled, instead
            self.loops = loops
            self.orders.loops, self.orders.lone = order_loops, order_lones
            if len(loaded) != len(self.loaded):
                # A module that was only imported in speculation is imported again when it is.
                self.methods.drop(self.loaded.keys() - loaded.keys())
                self.loaded = loaded

    def use(self, value: v.Value) -> None:
        """Use a dataset, a sampler or a transform, as a loader does."""
        use(self, value, None)

    def of_other_branches(self, one: int, other: int) -> bool:
        """Whether two times lie in branches of which only one is taken."""
        return self.partings.exclusive(one, other)

    def exclusive(self, time: int) -> bool:
        """Whether the run came here through something made in a branch that excludes the one that was running then."""
        return any(self.partings.exclusive(time, made) for made in self.partings.made(self))

    def instead(self, time: int) -> bool:
        """Whether the run came here through one of several objects that a variable may hold, another one of which was
        made in the branch that was running then: that branch did not leave this one."""
        for frame in self.stack():
            receiver = frame.func.receiver if frame.func is not None else None
            if not isinstance(receiver, v.Inst) or frame.caller is None or frame.caller.env is None:
                continue
            for value in dict.values(frame.caller.env.vars):
                if isinstance(value, v.AnyOf) and any(one is receiver for one in value.values):
                    others = [
                        one for one in value.values if isinstance(one, v.Inst | v.Obj) and one is not receiver
                    ]
                    if any(self.partings.together(time, one.birth) for one in others):
                        return True
        return False

    @property
    def trains_networks(self) -> bool:
        """Whether the program trains what may be a network."""
        return self.activity.trains_networks

    def trains_with(self, time: int, later: bool = False) -> bool:
        """Whether the program may train on a path on which it did something at a time, or does so ``later``."""
        return self.activity.trains_with(time, later)

    def forget_seeds(self) -> None:
        """Whether any RNG is seeded is not known from here."""
        for rng in self.kb.generators:
            self.state.rng[rng] = Rng(MAYBE)

    def forget_later_variables(self, time: int) -> None:
        """What variables were given after a time, where an option is given, is not held by what was made before."""
        self.given_instead = given_instead.known_at(self, time)

    @property
    def used(self) -> list[v.Obj]:
        """The objects of libraries that are being used, outermost first."""
        return self.partings.used

    @property
    def now(self) -> int:
        """The time of the run: objects that are made later have a later birth."""
        return HEAP.clock

    def in_doubt(self, birth: int) -> bool:
        """Whether what is done to an object may not happen to it: the branch may not, and the object is older."""
        if not self.branching:
            return False
        if self.is_made_aside(birth):
            return False
        running, began = self.branch_began
        return running != self.branching or birth <= began

    def is_made_aside(self, birth: int) -> bool:
        """Whether the running branches are only taken where options are given, and are so wherever an object exists."""
        if not self.made_where_given or not self.asides or self.branching != len(self.asides):
            return False
        return all(given_instead.is_made_where_given(self, option, birth) for option in self.asides)

    @property
    def joins_modes(self) -> bool:
        """Whether the running branch joins the modes that models are put into where it ends: until then they are known."""
        return self.branch_began[0] == self.branching

    def mode_before(self, model: v.Value, mode: v.Value) -> v.Value:
        """The mode that a model was in when the running branch began, where its mode is ``mode`` and one is set."""
        if self.branch_began[0] != self.branching:
            return mode
        return self._modes_before.setdefault((model, self.branch_number, HEAP.act.start), mode)

    def held_before(self, into: Cells, name: str) -> v.Value | None:
        """What a place that is written now held when the running branch began, if this call has written there since."""
        held: v.Value | None = into.get(name)
        if self.branch_began[0] != self.branching:
            return held
        known = self._held_before.get((id(into), name))
        now = self.branch_number, HEAP.act.start
        if known is None or known.into is not into or known.branch != now:
            known = self._held_before[id(into), name] = _HeldBefore(into, now, held)
        return known.value

    def trainer_switch(self, site: Site) -> TrainerSwitch | None:
        """How the trainer that trains at a place is made deterministic."""
        return self.activity.trainer_switches.get((site.path, site.end))

    @property
    def training_loops(self) -> frozenset[str]:
        """The loops, by their keys, in which this run trains."""
        return self.activity.training_loops

    @property
    def loaded_weights(self) -> frozenset[Site]:
        """Where the modules were made over whose initial weights others have been loaded."""
        return loaded_places(self.state)

    @property
    def loaded_if_given(self) -> frozenset[tuple[Site, str]]:
        """Where the modules were made over whose initial weights others have been loaded if an option is given, with the
        option."""
        return loaded_if_given(self.state)

    @property
    def in_default(self) -> bool:
        """Whether the default of a parameter is evaluated."""
        return self.captured is not None

    @property
    def called_without_gradient(self) -> frozenset[tuple[str, int]]:
        """In a run over unreached code: the functions that are called only where no gradient is recorded."""
        return frozenset(name for name, recorded in self.gradient_calls.items() if not recorded)

    @property
    def overwritten_draws(self) -> frozenset[Site]:
        """Where values were drawn that were overwritten before they were read."""
        found = overwritten_places(self.state) | replaced_places(self.state)
        if self.entry is None or self.exhausted:
            return found
        parts = uncalled_parts(self.state, self._may_be_named)
        found |= parts | kept_places(self.state, self._may_be_read)
        # Where all of the program was followed, a method that has not run of an instance that it keeps never does.
        followed = self._is_followed()
        stored = stored_places(self.state, lambda name, held: self._may_be_read(name, held and followed))
        return found if not stored or self.mentions(["__dict__"]) else found | stored

    @property
    def shown_if_given(self) -> frozenset[Site]:
        """Where values were drawn of which only the form is looked at, if an option is given."""
        return shown_if_given(self.state)

    @property
    def marks(self) -> StateTable[Any]:
        """Marks of the present path."""
        return self.state.flags

    def import_parents(self, file: ModuleFile, parts: list[str], names: Sequence[str] = ()) -> v.Mod | None:
        """Import ``a``, ``a.b``, ... in order, as Python does; the last module, None for a library. ``names`` are what is
        imported from it."""
        last: v.Mod | None = None
        found = self.find_module(file, ".".join(parts), names)
        if found is None:
            return None
        for count in range(1, len(parts) + 1):
            part = self.find_module(file, ".".join(parts[:count]), names if count == len(parts) else ())
            if part is None:
                continue
            mod = self.import_found(part, ".".join(parts[:count]))
            if last is not None:
                if last.env.read(parts[count - 1]) is None:
                    last.env.write(parts[count - 1], mod)
            last = mod
        return last

    def submodule(self, mod: v.Mod, name: str) -> v.Mod | None:
        """The submodule ``name`` of a package, imported if need be."""
        if mod.file is not None:
            if not mod.file.is_package:
                return None
            directory = mod.file.directory
        else:
            path = mod.env.vars.get("__path__")
            directory = path.value if isinstance(path, v.Lit) else ""
        found = self.modules.at(directory, [name])
        return self.import_found(found, f"{mod.name}.{name}") if found else None

    # ------------------------------------------------------------------------------------ small tools

    def here(self, node: Any = None) -> Site:
        """The place of a node in the current file."""
        file = self.frame.file
        node = node if node is not None else self.statement
        return Site(file.path, getattr(node, "start", 0), getattr(node, "end", 0))

    def body(self, func: v.Func) -> list[m.Stmt]:
        """The statements of a function that are looked at without running them."""
        self.trail.append(FUNCTIONS.number(func.key))
        return func.fn.body

    def reads_variable(self, file: ModuleFile, name: str, outside: bool = False) -> bool:
        """Whether anything that has run may have read a variable of a module; ``outside`` of its body."""
        # What was only looked at, as here, has not run.
        word, entered = name.partition(".")[0], self.visited
        if self.exhausted or word != name:
            return True
        for one in self.modules.files:
            if (one.path, 0) in entered and one is not file and word in self.whole(one).words:
                if liveness.may_read_of_module(self.whole(one), word):
                    return True
        read = liveness.readers(self.whole(file), word)
        return read is None or any(
            not outside if index == 0 else (file.path, index) in entered for index in read
        )

    def reads_attribute(
        self,
        file: ModuleFile,
        name: str,
        classes: frozenset[tuple[str, int]] | None = None,
        by_run: bool = False,
    ) -> bool:
        """Whether the program may do more with attributes of a name, of instances of a class in a file, than assign them,
        store items in them and ask what is in them. What methods do with their own objects counts in these classes alone,
        by file and where each begins, if they are known. With ``by_run``, what methods do that have not run does not count
        where all of the program was followed."""
        if self.exhausted or self.entry is None:
            return True
        if liveness.reaches_by_text(self.whole(file)):
            return True
        entered = self.visited
        by_run = by_run and self._is_followed()
        for one in self.modules.files:
            if (one.path, 0) not in entered:
                continue
            of = frozenset(start for path, start in classes if path == one.path) if classes else None
            read = liveness.attribute_readers(self.whole(one), name, True, of)
            if read is None or (read and not by_run):
                return True
            for index in read:
                function = one.facts.functions[index]
                # Python and libraries call methods with such names where no call of them is seen.
                if (one.path, index) in entered or function.cls < 0 or function.name.startswith("__"):
                    return True
        return False

    def uses_attribute(self, file: ModuleFile, name: str, classes: frozenset[tuple[str, int]]) -> bool:
        """Whether the code of a file may do more with attributes of a name, of instances of its classes, than assign them.
        For code that no program reaches: that of other files is not looked at."""
        whole = self.whole(file)
        of = frozenset(start for path, start in classes if path == file.path)
        return liveness.reaches_by_text(whole) or liveness.attribute_readers(whole, name, True, of) != []

    def _is_followed(self) -> bool:
        """Whether all of the program was followed."""
        return all(gap.kind == "constant" for gap in self.gaps)

    def stores_attribute(self, name: str) -> bool:
        """Whether code of the program that has run, or may have, may assign attributes of a name at any time."""
        return self.exhausted or any(
            name in self.whole(one).words and name in stored_attributes(one.facts) for one in self.run_files()
        )

    def may_set_in(self, file: ModuleFile, name: str) -> bool:
        """Whether another file of the program that has run, or may have, may assign a variable of a module."""
        files = [one for one in self.run_files() if one is not file]
        return any(
            name in self.whole(one).words and liveness.may_read_of_module(self.whole(one), name)
            for one in files
        )

    def mentions(self, parts: Iterable[str], besides: ModuleFile | None = None) -> bool:
        """Whether a file of the program that has run, or may have, uses names which contain one of these texts."""
        if self.exhausted:
            return True
        files = [one for one in self.run_files() if one is not besides]
        texts = tuple(parts)
        return any(uses_names_with(self.whole(one), texts) for one in files)

    def uses_word(self, word: str, besides: ModuleFile | None = None) -> bool:
        """Whether a file of the program that has run, or may have, but one of them, uses a name."""
        files = [one for one in self.run_files() if one is not besides]
        return any(word in self.whole(one).words for one in files)

    def run_files(self) -> list[ModuleFile]:
        """The files of the program that have run, or may have."""
        return [one for one in self.modules.files if (one.path, 0) in self.visited]

    def calls_elements(self, parts: Iterable[str], methods: tuple[str, ...]) -> bool:
        """Whether a file of the program that has run, or may have, may call what attributes or methods give whose names
        contain one of these texts, or call one of some methods of it."""
        if self.exhausted:
            return True
        files = self.run_files()
        return any(may_call_elements(self.whole(one), parts, methods) for one in files)

    def _may_be_read(self, name: str, methods: bool = False) -> bool:
        """Whether code of the program that has not run reads attributes of a name; with ``methods``, other code than that
        of methods."""
        # The trail also has functions that were only looked at.
        entered = self.visited
        for one in self.modules.files:
            if (one.path, 0) in entered:
                read = liveness.attribute_readers(self.whole(one), name)
                if read is None:
                    return True
                left = [one.facts.functions[index] for index in read if (one.path, index) not in entered]
                if any(not methods or function.cls < 0 for function in left):
                    return True
        return False

    def _may_be_named(self, name: str) -> bool:
        """Whether code of the program that has not run uses a name, as a variable or as an attribute."""
        entered = self.visited
        for one in self.modules.files:
            if (one.path, 0) in entered and name in self.whole(one).words:
                for index, function in enumerate(one.facts.functions):
                    if (one.path, index) not in entered and liveness.names(function, name):
                        return True
        return False

    def whole(self, file: ModuleFile) -> m.FileFacts:
        """All code of a file, looked at without running it."""
        self.trail.append(every_function(file.path, file.facts.count))
        return file.facts

    def is_unparsed(self, node: Any) -> bool:
        """Whether a node stands for code of a notebook that does not parse."""
        parts = self.frame.file.facts.unread
        if not parts:
            return False
        start = getattr(node, "start", -1)
        behind = bisect_right(parts, start, key=lambda one: one.start)
        return behind > 0 and start < parts[behind - 1].end

    def only_viewed(self, node: m.Expr) -> bool:
        """Whether what an expression draws is only shown on a screen or page. See ``view.RunView.only_viewed``."""
        return order_looks.is_only_viewed(self, node, running(self))

    def unread(self, node: m.Expr) -> bool:
        """Whether the statement that is running stores what an expression gives in variables that nothing reads, or tests
        it where something else decides."""
        stmt, frame = self.statement, self.frame
        if self._is_decided(node):
            return True
        if frame.is_class or frame.keeps_locals or not isinstance(stmt, (m.Assign, m.AnnAssign)):
            return False
        if not liveness.gives(stmt.value, node):
            return False
        function = frame.function
        dead = stmt.start in liveness.dead_stores(function) or self._is_dead_now(function, stmt)
        if not dead and isinstance(stmt, m.Assign) and calls_before_failing(function):
            passed = printed_before_failing(self, function)
            dead = bool(passed) and liveness.is_dead_besides(function, stmt, passed, kept=True)
        if not dead:
            return False
        return not liveness.may_be_shared(self.whole(frame.file), function, liveness.stored_names(stmt))

    def _is_decided(self, node: m.Expr) -> bool:
        """Whether a test in which an expression stands has the same outcome whatever that gives."""
        func = self.frame.func
        if func is None:
            return False
        for name, outcome in liveness.deciding(func.fn, node):
            value = self.eval(name)
            if not v.option_of(value) and v.truth(value) is outcome:
                return True
        return False

    def _is_dead_now(self, function: m.Function, stmt: m.Assign | m.AnnAssign) -> bool:
        """Whether what an assignment stores is not read where the tests of the function have the outcomes that they
        have in this call. What an option decides has both."""
        decided: dict[str, bool] = {}
        for name in liveness.tests(function) if self.frame.func is not None else ():
            value = self.eval(name)
            truth = None if v.option_of(value) else v.truth(value)
            if truth is not None:
                decided[name.id] = truth
        if decided and liveness.is_dead(function, stmt, decided):
            return True
        known = liveness.constants(self.frame.file.facts.functions[0], function)
        if not liveness.is_dead(function, stmt, {**known, **decided}):
            return False
        # Only here the rest of the file matters.
        elsewhere = liveness.declared_global(self.whole(self.frame.file))
        known = {name: truth for name, truth in known.items() if name not in elsewhere}
        return liveness.is_dead(function, stmt, {**known, **decided})

    statement: Any = None

    def lookup(self, name: str) -> v.Value | None:
        """A name in the current scopes; None if no project code or builtin defines it."""
        env: v.Env | None = self.frame.env
        if env is not None and env.globals_ and name in env.globals_:
            env = self.frame.mod.env
        while env is not None:
            found = env.vars.get(name)
            if found is not None:
                if found is v.UNKNOWN and env is self.frame.mod.env and name in self.frame.mod.late:
                    return self._late(self.frame.mod, name)
                if env.birth < HEAP.act.start:
                    if type(found) in v.FIXED:
                        HEAP.act.names.add(name)
                    else:
                        HEAP.read(env, NAME, env, name, found)
                return found
            env = env.parent
        found = self.frame.mod.env.read(name)
        if found is not None:
            return found
        for star in self.frame.mod.env.stars:
            dotted = f"{star}.{name}"
            if self.kb.gives(dotted) or self.kb.canonical(dotted) in self.listeners.calls:
                return v.Ext(f"{star}.{name}")
        builtin = f"builtins.{name}"
        known = self.kb.canonical(builtin)
        if name in _BUILTINS or known != builtin:
            # Or a shell adds it to them.
            return v.Ext(known)
        if self.frame.mod.env.stars:
            return self._by_star(name)
        if name in OF_PYTHON_2 and not (self.branching or self.tried):
            self.infer_releases((_PYTHON_2, {}))
        return self._of_later_cell(name) if self.frame.file.notebook else None

    def _of_later_cell(self, name: str) -> v.Value | None:
        """A name that the cells of a notebook that stand before do not bind, where a later one imports it from a library:
        who wrote it ran the cells in another order."""
        file = self.frame.file
        module, member = names_of_libraries(self.whole(file)).get(name, ("", ""))
        if not module or self.find_module(file, module.partition(".")[0]) is not None:
            return None
        return v.of_library(f"{module}.{member}") if member else v.Ext(module)

    def _by_star(self, name: str) -> v.Value:
        """A name that nothing binds but a module that was not found and of which all names are imported: a customary
        name of a library is taken for that library, any other for one of the package that the names come from, if
        it is one."""
        customary = self.kb.customary.get(name)
        stars = [
            one for one in self.frame.mod.env.stars if one.partition(".")[0] not in sys.stdlib_module_names
        ]
        if not stars:
            return v.UNKNOWN
        if customary is None:
            alone = len({one.partition(".")[0] for one in stars}) == 1
            return v.of_library(f"{stars[0]}.{name}") if alone else v.UNKNOWN
        top = customary.partition(".")[0]
        self.libraries.add(top)
        if self.import_log is not None:
            self.import_log.imported.add(top)
        return v.Ext(customary)

    def _late(self, mod: v.Mod, name: str) -> v.Value:
        """What a name stands for that was imported from a module which had not come to its end then."""
        found: v.Value | None = None
        for _ in range(_MOST_LATE):
            mod, name = mod.late[name]
            found = mod.env.read(name)
            if found is not v.UNKNOWN or name not in mod.late:
                break
        return v.UNKNOWN if found is None else found

    def bind(self, name: str, value: v.Value) -> None:
        """Assign a name in the current scope."""
        env = self.frame.env
        if env.globals_ and name in env.globals_:
            target = self.frame.mod.env
            if self.branching:
                old = target.read(name)
                value = value if old is None else v.join((old, value))
            target.write(name, value)
            return
        if env.outer_ and name in env.outer_ and self._bind_around(env.parent, name, value):
            return
        old = env.vars.get(name)
        if old is not None and old is not value and type(old) in v.FIXED:
            HEAP.rebind(name, env.birth)
        env.vars[name] = value

    def _bind_around(self, env: v.Env | None, name: str, value: v.Value) -> bool:
        """Assign a ``nonlocal`` name, in the innermost scope around the running one that has it."""
        while env is not None:
            old = env.vars.get(name)
            if old is not None:
                if self.branching and old is not value:
                    value = v.join((old, value))
                env.write(name, value)
                return True
            env = env.parent
        return False

    def eval(self, node: m.Expr) -> v.Value:
        """The abstract value of an expression."""
        return EVAL[type(node)](self, node)

    def value_of(self, node: m.Expr) -> v.Value:
        """The value of an expression that is only looked at. See ``view.RunView.value_of``."""
        if isinstance(node, m.Const) or (isinstance(node, m.Name) and "." not in node.id):
            return self.eval(node)
        with self.fork(), self.unjudged():
            return self.eval(node)

    def call(self, func: v.Value, args: v.Args, node: Any) -> v.Value:
        """The value of calling ``func``; see ``calls``."""
        return calls.call(self, func, args, node)

    def attribute(self, value: v.Value, name: str, node: Any = None) -> v.Value:
        """An attribute of a value; see ``expr``."""
        return expressions.attribute(self, value, name, node)

    def assign_attribute(self, owner: v.Value, name: str, value: v.Value, node: Any) -> None:
        """``owner.name = value``; see ``assignment``."""
        set_attribute(self, owner, name, value, node)

    def within(self, *names: str) -> AbstractContextManager[None]:
        """Run with these context managers or decorators (canonical names) active."""
        return _Within(self, names)

    def circumstances(
        self, act: Activation, call: tuple[v.Func, Any] | None = None
    ) -> tuple[tuple[Question, Any], ...]:
        """What an activation asked of what is active, with the answers where it began; it is a call of a function, or an
        import."""
        return tuple(
            (question, self._answer(question, call))
            for question in act.circumstances
            # What it made itself is made again.
            if question[0] is not INSTEAD or question[2] < act.start
        )

    def circumstances_hold(
        self, circumstances: Iterable[tuple[Question, Any]], call: tuple[v.Func, Any] | None = None
    ) -> bool:
        """Whether these questions have these answers here, for a call of a function or an import."""
        return all(self._answer(question, call) == answer for question, answer in circumstances)

    def _answer(self, question: Question, call: tuple[v.Func, Any] | None) -> Any:
        if question[0] is INSTEAD:
            return given_instead.answer(self, question[2])
        if question[0] is RESULT:
            return call is not None and idle.result_is_idle(self, *call, question)
        if question[0] is LOOPS:
            asked_which = question[1] is REPEATED
            return self.loops.key_of(self.repeating) if asked_which else self.loops.answer(question)
        return (self.contexts if question[0] is CONTEXT else self.options).answer(question)

    @contextmanager
    def in_frame(self, frame: Frame) -> Iterator[None]:
        """What is looked at stands in another activation meanwhile. See ``view.RunView.in_frame``."""
        outer, self.frame = self.frame, frame
        try:
            yield
        finally:
            self.frame = outer

    @contextmanager
    def in_file(self, file: ModuleFile | None) -> Iterator[None]:
        """Places are in this file meanwhile: for objects that are used elsewhere than where they were made."""
        outer = self.frame
        if file is not None and file is not outer.file:
            self.frame = Frame(
                outer.mod, file, outer.env, outer.label, outer.caller, outer.call_site, outer.func
            )
        try:
            yield
        finally:
            self.frame = outer

    def stack(self) -> list[Frame]:
        """The frames from the entry point to here."""
        frames: list[Frame] = []
        frame: Frame | None = self.frame
        while frame is not None:
            frames.append(frame)
            frame = frame.caller
        return frames[::-1]

    # ------------------------------------------------------------------------------------- statements

    def block(self, body: Iterable[m.Stmt]) -> None:
        """Run statements until the path ends."""
        for stmt in body:
            if not self.state.alive:
                return
            self.steps += 1
            self.import_steps += 1
            if self.steps > self.limit:
                if not self.stopped:
                    self.stopped = True
                    self.used_up += 1
                    what = "for an import " if self.importing else ""
                    self.cut(f"the budget of {self.budget:,} steps {what}is used up", stmt)
                elif self.steps > self.limit + (MAX_STEPS if self.importing else self.budget):
                    raise BudgetExceeded
            self.statement = stmt
            _EXEC[type(stmt)](self, stmt)

    def branch(self, runs: list[Callable[[], None]], keep: int | None = None, option: str = "") -> None:
        """Run alternatives from the same state and join what they leave.

        With ``keep``, the outcome of that alternative stands (an option's default chose it) and the others
        only leave the note that ``option`` would have seeded something.
        """
        env = self.frame.env
        before_state = self.state
        before_vars = env.vars
        outcomes: list[tuple[State, dict[str, v.Value]]] = []
        frame = self.frame
        self.branching += keep is None
        if option:
            self.options.held.append(option)
        leaves = left_round = False
        left = 0
        spans: list[tuple[int, int, int]] = []
        added: list[Access] = []
        replaced: list[tuple[Access, v.Value]] = []
        by_default: Overwritten = {}
        modes: Overwritten = {}
        began_with, outer_began = len(frame.returns), self.branch_began
        outer_number = self.branch_number
        for index, run in enumerate(runs):
            began = HEAP.clock
            self._branches += 1
            self.branch_number = self._branches
            self.state = before_state.copy()
            env.vars = dict(before_vars)
            if keep is not None and index != keep:
                # What is returned or broken off in the branch not taken does not count.
                returned, jumped = len(frame.returns), len(frame.jumps[-1]) if frame.jumps else 0
                self.branching += 1
                self.state.lead_aside(option)
                HEAP.clock += 1
                born = HEAP.clock
                overwritten = HEAP.note_overwritten()
                self.branch_began = self.branching, born
                self.asides.append(option)
                run()
                self.branch_began = outer_began
                HEAP.stop_noting(overwritten)
                join_modes(self, overwritten, born)
                added += self._put_defaults(overwritten, born, option)
                if option:
                    known = [one for one in overwritten.values() if one[0].birth < born]
                    replaced += [(one, at(*one[:4])) for one in known]
                self.asides.pop()
                if option and HEAP.clock > born and not self.importing:
                    given_instead.made(self, option, born)
                self.branching -= 1
                if option:
                    frame.returns_aside += [(value, option) for value, _ in frame.returns[returned:]]
                del frame.returns[returned:]
                if frame.jumps:
                    del frame.jumps[-1][jumped:]
            else:
                returned, jumped = len(frame.returns), len(frame.jumps[-1]) if frame.jumps else 0
                if keep is None:
                    self.branch_began = self.branching, began
                    modes = HEAP.watch(MODES)
                elif added or replaced:
                    by_default = HEAP.note_overwritten()
                run()
                if keep is None:
                    HEAP.stop_watching()
                    join_modes(self, modes, began)
                elif added or replaced:
                    HEAP.stop_noting(by_default)
                self.branch_began = outer_began
                left = jumped
                left_round = bool(frame.jumps) and len(frame.jumps[-1]) > jumped
                leaves = left_round or len(frame.returns) > returned
            outcomes.append((self.state, env.vars))
            spans.append((began, HEAP.clock, index))
        for access in added:
            if (id(access[2]), access[3]) in by_default:
                # It is there in both cases.
                HEAP.put(access, present(at(*access[:4])))
        for access, value in replaced:
            kept = at(*access[:4])
            if (id(access[2]), access[3]) in by_default and is_switch(kept) and not v.same(kept, value):
                # Both have written there: nothing by default, and what the option asks for.
                HEAP.put(access, given_instead.switch(self, kept, value, option))
        self.branch_number = outer_number
        self.branching -= keep is None
        if option:
            self.options.held.pop()
        flags: set[str] = set()
        if keep is not None:
            state, merged = outcomes[keep]
            if option and leaves and not state.alive and any(other.alive for other, _ in outcomes):
                if left_round:
                    # Its variables come back where the round ends.
                    jumps = frame.jumps[-1]
                    jumps[left:] = [one._replace(variables=None) for one in jumps[left:]]
                self._go_aside(option, left_round, merged)
            for index, (other, other_vars) in enumerate(outcomes):
                if index != keep:
                    state_alive, raised = state.alive, state.raised
                    state = prefer(state, other, option)
                    if not state_alive and raised and state.alive:
                        # Without the option the program stops: it has to be given.
                        state.aside = before_state.aside
                    if not state_alive and other.alive:
                        merged = other_vars
                    for name, value in other_vars.items():
                        kept = merged.setdefault(name, value)
                        if kept is not value and value is not before_vars.get(name):
                            flags.update(numbers_gone_on_with(self, kept, value, option))
                            since = HEAP.clock if kept is before_vars.get(name) else 0
                            merged[name] = unless_option(self, kept, value, option, since)
        else:
            state = join_states([s for s, _ in outcomes])
            merged = _join_vars([vs for s, vs in outcomes if s.alive] or [vs for _, vs in outcomes])
        # The dict object of a module's scope is shared with closures: keep its identity.
        before_vars.clear()
        before_vars.update(merged)
        env.vars = before_vars
        self.state = state
        if spans[-1][1] > spans[0][0] and not self.importing:
            self._part(tuple(spans), [s for s, _ in outcomes], len(frame.returns) > began_with)
        for flag in flags:
            self.flag(flag, self.statement)

    def _put_defaults(self, overwritten: Overwritten, born: int, option: str) -> list[Access]:
        """What stood at places before they were written where an option was given stands there by default, as what a
        variable stands for does. What was made where it was given is there only then, and so are the items that were
        added, which are given back."""
        added: list[Access] = []
        for access in overwritten.values():
            before, birth = _before(access), access[0].birth
            if isinstance(before, v.Lit) and at(*access[:4]) is before:
                # A test was known to hold there, or not, and now it has ended.
                continue
            if birth < born and (is_switch(before) or given_instead.is_choice(self, before)):
                if not given_instead.is_made_where_given(self, option, birth):
                    HEAP.put(access, given_instead.switch(self, before, at(*access[:4]), option))
            elif birth < born and isinstance(before, (v.Inst, v.Obj)):
                now = at(*access[:4])
                if isinstance(now, v.AnyOf) and given_instead.stands_for_module(self, before, now):
                    HEAP.put(access, given_instead.unless_option(self, before, now, option))
            elif birth < born and before is ABSENT and isinstance(access[0], v.Mapping) and access[1] is ITEM:
                there = there_if_given(at(*access[:4]), option)
                if there is not None:
                    HEAP.put(access, there)
                    added.append(access)
        return added

    def _part(self, spans: tuple[tuple[int, int, int], ...], states: list[State], returned: bool) -> None:
        """Branches have met in which something was made or called; ``returned`` is whether one has left the function."""
        alive = [number for number, state in enumerate(states) if state.alive]
        if len(alive) > 1:
            self.partings.add(spans, states, self.state)
        elif returned and len(alive) == 1 and len(states) == len(spans) == _TWO:
            left = states[1 - alive[0]]
            self.frame.parted.append(Open(spans, left, len(self.frame.returns), alive[0]))

    def _go_aside(self, option: str, left_round: bool, variables: dict[str, v.Value]) -> None:
        """From here on the run is where an option has been given: its default leaves the round of the loop, or else the
        function."""
        HEAP.clock += 1
        loops = len(self.frame.jumps) if left_round else 0
        noted = HEAP.note_overwritten()
        self.frame.asides.append(Aside(option, loops, HEAP.clock, dict(variables), noted, []))

    def come_back(self, loops: int) -> None:
        """The path ends that the run is on since an option's default left a round of the running loop, or, where ``loops``
        is 0, since it left the function. What stands somewhere by default is known again."""
        frame = self.frame
        for one in [one for one in frame.asides if one.loops == loops]:
            frame.asides.remove(one)
            conditions.widen(one)
            HEAP.stop_noting(one.overwritten)
            for access in one.overwritten.values():
                before = _before(access)
                if access[0].birth < one.born and isinstance(before, v.Lit):
                    HEAP.put(access, v.join((before, at(*access[:4]))))
            self._put_defaults(one.overwritten, one.born, one.option)
            if not loops:
                continue
            for name, kept in one.variables.items():
                value = frame.env.vars.get(name, kept)
                if value is not kept:
                    for flag in numbers_gone_on_with(self, kept, value, one.option):
                        self.flag(flag, self.statement)
                    frame.env.vars[name] = unless_option(self, kept, value, one.option)

    def may_happen(self, runs: list[Callable[[], None]]) -> None:
        """Run calls that may happen or not. What they do is seen, but none of them seeds an RNG, switches a mode on
        or sets a variable for what follows."""
        state = self.state
        rngs, modes, env = state.rng.save(), state.modes.save(), state.env.save()
        self.uncertain += 1
        self.branch([lambda: None, *runs])
        self.uncertain -= 1
        state = self.state
        state.rng.restore(rngs)
        state.modes.restore(modes)
        state.env.restore(env)

    def decide(self, stmt: m.If | m.While) -> Outcome:
        """What the test of an ``if`` or ``while`` gives."""
        return conditions.condition(self, stmt.test)

    def exec_if(self, stmt: m.If) -> None:
        """``if``: follow what the test decides."""
        if must_raise(self, asked_first(stmt.test)):
            _fail(self)
            return
        self.listeners.tell(TestEvent(stmt))
        test = self.decide(stmt)
        if has_raised(self, stmt.test):
            _fail(self)
            return

        # What the branches leave, None where one does not come back.
        left: list[dict[str, v.Value] | None] = [None, None]
        ends: list[State] = []
        stops = [False, False]
        asides = len(self.frame.asides)

        def follow(outcome: bool, statements: list[m.Stmt]) -> None:
            branch = functools.partial(self.block, statements)
            alone = functools.partial(order_lone.within, self, stmt.test, outcome, statements, branch)
            narrowed = functools.partial(conditions.narrowed, self, stmt.test, outcome, alone)
            module_modes.within(self, stmt.test, outcome, narrowed)
            if self.state.alive:
                left[not outcome] = self.frame.env.vars
                ends.append(self.state)
            stops[not outcome] = self.state.raised

        dispatches = test.answer is None and conditions.asks_for_set(stmt.test)

        guards = self.frame.mod.name == MAIN and is_main_test(stmt.test)

        def body() -> None:
            self.frame.dispatching += dispatches
            self.guarded += guards
            equal_tests.within(self, stmt.test, True, lambda: follow(True, stmt.body))
            self.guarded -= guards
            self.frame.dispatching -= dispatches

        def orelse() -> None:
            equal_tests.within(self, stmt.test, False, lambda: follow(False, stmt.orelse))

        if test.answer is False and not test.option and conditions.is_for_types(self, stmt.test):
            self._import_for_types(stmt.body)
        if test.answer is None or rank_tests.decides(self, test.option, stmt.test):
            rank_tests.branch(self, stmt.test, lambda: self.branch([body, orelse]), ends)
        elif test.option:
            self._branch_by_option(stmt, test, body, orelse)
        else:
            constant_tests.left_out(self, stmt, test.answer)
            (body if test.answer else orelse)()
        true, false = left
        if true is not None and false is not None:
            equal_tests.remember(self, stmt.test, true, false)
        elif true is not false and (test.answer is None or test.option) and self.state.alive:
            # Whoever comes past `if x is None: return` knows what `x` is not.
            conditions.narrow(self, stmt.test, false is None, stops[false is None])
            order_lone.narrow(self, stmt, false is None)
            module_modes.go_on(self, stmt, false is None)
            if len(self.frame.asides) > asides:
                conditions.narrow_aside(self, stmt.test, false is None, self.frame.asides[-1])

    def _branch_by_option(
        self, stmt: m.If, test: Outcome, body: Callable[[], None], orelse: Callable[[], None]
    ) -> None:
        """The branches of an ``if`` that the default of an option decides."""
        met: list[Callable[[], None]] = []

        def run(outcome: bool) -> None:
            branch = body if outcome else orelse
            if outcome is test.answer:
                branch()
            else:
                led = functools.partial(given_together.within, self, stmt.test, outcome, branch)
                met.append(given_options.writing(self, stmt.test, outcome, led))

        runs: list[Callable[[], None]] = [
            functools.partial(given_options.within, self, stmt.test, outcome, functools.partial(run, outcome))
            for outcome in (True, False)
        ]
        asked, noted = given_options.values(self, stmt.test, not test.answer), len(self.noted_instead)
        before = self.state.rng.save()
        self.branch(runs, keep=0 if test.answer else 1, option=test.option)
        given_together.note(self, stmt, test, before)
        for instead in self.noted_instead[noted:]:
            instead.asked.update(asked)
        for one in met:
            one()

    def exec_for(self, stmt: m.For) -> None:
        """``for``: known short sequences element by element, anything else once."""
        if must_raise(self, stmt.iter):
            _fail(self)
            return
        iterated = self.eval(stmt.iter)
        if has_raised(self):
            _fail(self)
            return
        option = empty_by_default(iterated)
        if option:
            rounds = functools.partial(self._exec_rounds, stmt, iterated)
            self.branch([rounds, functools.partial(self.block, stmt.orelse)], keep=1, option=option)
        else:
            self._exec_rounds(stmt, iterated)

    def _exec_rounds(self, stmt: m.For, iterated: v.Value) -> None:
        """The rounds of a ``for`` over a value, and its ``else``."""
        elements = data.elements(self, iterated, stmt.iter)
        if elements is None:
            elements = data.rounds_of_literals(iterated)
        if elements is None:
            elements = named_weights.rounds(self, stmt, iterated)
        if elements is None:
            elements = text_parts.counted(self, iterated, stmt.target, stmt.body)
        if isinstance(stmt.target, m.Seq) and rounds_take_other_number(self, stmt, iterated, elements):
            _fail(self)
            return
        unrolled = elements is not None and (
            self.may_unroll(len(elements))
            or (self.may_unroll(len(elements), many=True) and declares_options(stmt))
        )
        apart = None if unrolled else data.elements_of_own_code(iterated)
        self._enter_loop(stmt, iterated)
        loop = self.orders.enter(self, iterated, stmt.iter, stmt)
        self.orders.begin_rounds(self, stmt)
        if unrolled or apart is not None:
            elements = apart or elements or []
            self.frame.jumps.append([])
            self.frame.unrolled += 1
            # Rounds that each run other code take no longer than that is.
            rounds, self.rounds = self.rounds, self.rounds * (1 if apart else max(1, len(elements)))
            branching = self.branching
            for element in elements:
                if not self.state.alive:
                    break
                # A round behind one that may have broken the loop off may not come.
                self.branching = branching + bool(self.frame.jumps[-1])
                assign(self, stmt.target, element)
                self._loop_body(stmt.body, stmt, havoc=False, sure=apart is None)
            self.branching = branching
            self.rounds = rounds
            self.frame.unrolled -= 1
            without = None
        else:
            element = data.element(self, iterated)
            if self.orders.any:
                element = self.orders.element(self, iterated, loop, element, stmt.target)
            self.frame.jumps.append([])
            outer, self.repeating = self.repeating, self.loops[-1].start
            self._forget_tensors(stmt)
            without = self._without_rounds(stmt, havoc=True)
            assign(self, stmt.target, element)
            self._rounds(stmt.body, stmt, havoc=True)
            self.repeating = outer
        self.orders.end_rounds()
        self._leave_loop()
        if loop is not None:
            self.orders.leave(loop)
            order_last.left(self, stmt, loop)
        self._behind_loop(stmt, without)

    def _without_rounds(self, stmt: m.For | m.While, havoc: bool) -> Jumped:
        """Where a loop of any number of rounds ends that has none."""
        if havoc:
            self._havoc(stmt)
        return Jumped(self.state.copy(), dict(self.frame.env.vars), False)

    def _behind_loop(self, stmt: m.For | m.While, without: Jumped | None, endless: bool = False) -> None:
        """What follows a loop: its ``else`` where no round broke it off. Without rounds, one of any number of them leaves
        what is given; one that is ``endless`` has to be broken off."""
        broken = self.frame.jumps.pop()
        if not broken:
            self.block(stmt.orelse)
            return
        if without is not None and self.state.alive:
            # A later round breaks off what an earlier one has left.
            broken.append(Jumped(self.state.copy(), dict(self.frame.env.vars), True))
        elif without is not None and not endless:
            if stmt.orelse:
                self.state = without.state
                self.frame.env.vars.update(without.variables or {})
            else:
                without.state.alive = False
                broken.append(without)
        if endless:
            self.state.alive = False
        self.branching += 1
        self.block(stmt.orelse)
        self.branching -= 1
        self._meet(broken)

    def _meet(self, jumped: list[Jumped]) -> None:
        """Paths that have left a round of a loop meet the running one."""
        scope = self.frame.env.vars
        here = [Jumped(self.state, dict(scope), True)] if self.state.alive else []
        paths = [*jumped, *here]
        usual = [one for one in paths if one.state.usual] or paths
        scopes = [one.variables for one in usual if one.variables is not None]
        self.state = join_states([*(one.state for one in jumped), self.state])
        if scopes:
            merged = _join_vars(scopes)
            # The dict object of a module's scope is shared with closures: keep its identity.
            scope.clear()
            scope.update(merged)

    def _enter_loop(self, stmt: m.For | m.While, over: v.Value | None = None) -> None:
        HEAP.clock += 1
        loop = Loop(stmt, self.frame.file.path, self.frame, HEAP.clock, over)
        self.loops.append(loop)
        self.listeners.tell(LoopEvent(loop, True))

    def _leave_loop(self) -> None:
        self.listeners.tell(LoopEvent(self.loops[-1], False))
        self.loops.pop()

    def may_unroll(self, count: int, many: bool = False) -> bool:
        """Whether a loop of ``count`` rounds, each of which does little if there are ``many``, is run round by round, inside
        of the loops that are running."""
        return (many or count <= MAX_UNROLL) and count * self.rounds <= MAX_UNROLLED

    def exec_while(self, stmt: m.While) -> None:
        """``while``: its body once, from a state in which its own assignments may have happened."""
        if must_raise(self, asked_first(stmt.test)):
            _fail(self)
            return
        if self._never_begins(stmt):
            self.block(stmt.orelse)
            return
        self.frame.jumps.append([])
        self._enter_loop(stmt)
        outer, self.repeating = self.repeating, self.loops[-1].start
        self.orders.begin_rounds(self, stmt)
        self._forget_tensors(stmt)
        counting = self.orders.count_through(self, stmt)
        self._havoc(stmt)
        self.listeners.tell(TestEvent(stmt))
        test = self.decide(stmt)
        without = self._without_rounds(stmt, havoc=False)
        if test.answer is not False or test.option:
            self._rounds(stmt.body, stmt, havoc=False)
        self.repeating = outer
        if counting is not None:
            self.orders.leave(counting)
        self.orders.end_rounds()
        self._leave_loop()
        self._behind_loop(stmt, without, test.answer is True and not test.option)

    def _never_begins(self, stmt: m.While) -> bool:
        """Whether the test of a loop is false before its first round already, whatever options are given: then no round
        changes what it asks for. A test that calls something is not made twice."""
        for one in nodes([stmt.test]):
            is_variable = isinstance(one, m.Name) and "." not in one.id
            if not is_variable and not isinstance(one, m.Const | m.Compare | m.BoolOp | m.Unary):
                return False
        test = self.decide(stmt)
        return test.answer is False and not test.option

    def _havoc(self, stmt: m.For | m.While) -> None:
        """Forget literals of names that the loop assigns: a later round sees other values."""
        for name in assigned_names(stmt):
            known = self.frame.env.vars.get(name)
            if known is None or not any(isinstance(one, v.Lit) for one in v.alternatives(known)):
                continue
            if not conditions.stays(self, stmt, name, known):
                counts = isinstance(stmt, m.While) and counts_up(stmt, name)
                self.frame.env.vars[name] = (data.counted(known) if counts else None) or v.UNKNOWN

    def _forget_tensors(self, stmt: m.For | m.While) -> None:
        """Forget what tensors are that the loop assigns: in a later round they may require grad."""
        free = without_gradient(self, stmt)
        for name in assigned_names(stmt):
            known = self.frame.env.vars.get(name)
            if isinstance(known, v.Obj) and known.type == TENSOR and known.form is not None:
                self.frame.env.vars[name] = of_later_rounds(known, name in free)

    def _rounds(self, body: list[m.Stmt], stmt: m.For | m.While, havoc: bool) -> None:
        """Run the body of a loop for all of its rounds: once, and again as long as what it leaves in an attribute that
        decides what runs (a switch, a method, nothing) is what no round has found there, or something is in a container in
        which a round has found nothing."""
        found: set[Any] = set()
        # What an inner loop leaves, the next round of the outer one finds.
        for _ in range(MAX_ROUNDS if self.loops.depth == 1 else MAX_INNER_ROUNDS):
            began = HEAP.act.began
            HEAP.push().began = began
            variables = self.frame.env.vars
            before = {name: variables[name] for name in assigned_names(stmt) if name in variables}
            self._loop_body(body, stmt, havoc)
            ended = HEAP.pop()
            left = _switches(ended) | filled(ended, before, self.frame.env.vars)
            if left <= found or not self.state.alive:
                break
            found |= left
            havoc = False

    def _loop_body(self, body: list[m.Stmt], stmt: m.For | m.While, havoc: bool, sure: bool = False) -> None:
        if havoc:
            self._havoc(stmt)
        before, lone = self.state.copy(), len(self.orders.lone)
        self.block(body)
        order_lone.come_back(self, lone)
        if self.frame.asides:
            self.come_back(len(self.frame.jumps))
        jumped = self.frame.jumps[-1]
        ended = [one for one in jumped if not one.leaves]
        if ended:
            jumped[:] = [one for one in jumped if one.leaves]
            self._meet(ended)
        if not self.state.alive and not jumped and (not sure or self.state.raised):
            # Every path of the body left the function: the loop may still have had no round.
            self.state = before

    def exec_try(self, stmt: m.Try) -> None:
        """``try``: the body is taken to succeed; handlers run aside and only add possibilities."""
        env = self.frame.env
        before = self.state.copy()
        before_vars = dict(env.vars)
        instead = missing_attributes.handler_of_missing(self, stmt)
        handlers = [] if instead is not None or missing_attributes.are_idle(self, stmt) else stmt.handlers
        if instead is not None:
            self._handle(instead, stmt)
        else:
            outer, self.tried = self.tried, stmt.body if handlers else self.tried
            self.block(stmt.body)
            self.tried = outer
            if self.state.alive:
                self.block(stmt.orelse)
            failed = self.state.raised and not self.state.alive
            if self.frame.unrolled and not failed and text_parts.has_found_module(stmt, env):
                handlers = []
        end, end_vars = self.state, dict(env.vars)
        loaded = loaded_between(before, end)
        lost: dict[str, Setting] = {}
        self.branching += 1
        for handler in handlers:
            # A handler may run from anywhere in the body: seeds of the body may or may not have happened.
            self.state = join_states([before, end]) if end.alive else before.copy()
            env.vars.update(before_vars)
            self._handle(handler, stmt)
            if self.state.alive:
                # Who goes on without the file has the weights that the model began with.
                lost |= {name: one for name, one in loaded.items() if self.state.modes.get(name) != one}
                if not end.alive:
                    end = self.state
                for name, value in env.vars.items():
                    old = end_vars.get(name)
                    if old is None:
                        end_vars[name] = value
                    elif old is not value:
                        end_vars[name] = v.join((old, value))
        self.branching -= 1
        env.vars.clear()
        env.vars.update(end_vars)
        self.state = end
        for name, setting in lost.items():
            end.modes[name] = Setting(None, setting.site)
        if stmt.final:
            alive = self.state.alive
            self.state.alive = True
            self.block(stmt.final)
            self.state.alive = alive and self.state.alive

    def _handle(self, handler: m.Handler, stmt: m.Try) -> None:
        self.listeners.tell(HandlerEvent(handler, stmt))
        if handler.type is not None:
            self.eval(handler.type)
        if handler.name:
            self.frame.env.vars[handler.name] = v.UNKNOWN
        self.block(handler.body)

    def exec_with(self, stmt: m.With) -> None:
        """``with``: contexts are visible to what runs inside; some restore what they changed."""
        if must_raise(self, stmt.items[0].context):
            _fail(self)
            return
        self._with_items(stmt, 0)

    def _with_items(self, stmt: m.With, start: int) -> None:
        names: list[str] = []
        after: list[Callable[[], None]] = []
        restores: list[Callable[[], None]] = []
        contexts: list[v.Value] = []
        run: Callable[[], None] = functools.partial(self.block, stmt.body)
        for index in range(start, len(stmt.items)):
            item = stmt.items[index]
            recorded = self.state.modes.get(QUIET)
            context = self.eval(item.context)
            if calls.is_managed(context):
                # A generator function runs to its `yield`, then the body runs, then the rest of the function.
                def body(value: v.Value, index: int = index, target: m.Expr | None = item.target) -> None:
                    if target is not None:
                        assign(self, target, value)
                    self._with_items(stmt, index + 1)

                def managed(context: v.Value = context, node: m.Expr = item.context) -> None:
                    calls.manage(self, context, body, node)

                run = managed
                break
            entered = calls.enter(self, context, item.context, after, restores, recorded)
            names.extend(entered.names)
            contexts.append(context)
            self._tell_context(context, stmt, True)
            if item.target is not None:
                assign(self, item.target, entered.value)
        raised = self.state.raised
        returned, jumps = len(self.frame.returns), self.frame.jumps[-1] if self.frame.jumps else []
        jumped = len(jumps)
        with self.within(*names):
            run()
        if not self.state.alive and self.state.raised and any(map(self._may_suppress, contexts)):
            self.state.alive, self.state.raised = True, raised
        for context in reversed(contexts):
            self._tell_context(context, stmt, False)
        for leave in reversed(after):
            leave()
        if restores:
            end = self.state
            left = [state for _, state in self.frame.returns[returned:]]
            for self.state in (*left, *(jump.state for jump in jumps[jumped:]), end):
                for restore in reversed(restores):
                    restore()

    def _may_suppress(self, context: v.Value) -> bool:
        """Whether what follows a ``with`` statement may run where its body raises."""
        if isinstance(context, v.Obj):
            return self.kb.role(context.api, "suppresses") is not None
        return not isinstance(context, v.Ext | v.Lit)

    def _tell_context(self, context: v.Value, stmt: m.With, begins: bool) -> None:
        # What is made inside is younger than the beginning, and what is made afterwards than the end.
        HEAP.clock += 1
        self.listeners.tell(ContextEvent(context, stmt, begins))

    def exec_function(self, stmt: m.FunctionDef) -> None:
        """``def``: defaults and decorators are evaluated now."""
        fn = self.frame.file.facts.functions[stmt.function]
        value = self.make_function(fn)
        self.bind(fn.name, self._declared(fn.name) or value)

    def _declared(self, name: str) -> v.Ext | None:
        """What stands for a function or class at module level that the user's own knowledge is about."""
        if not self.kb.declared or self.frame.env is not self.frame.mod.env:
            return None
        full = f"{self.modules.name_of(self.frame.file)}.{name}"
        return v.Ext(full) if full in self.kb.declared else None

    def make_function(self, fn: m.Function) -> v.Value:
        """The value of a function definition with its decorators applied."""
        env = self.frame.env
        if self.frame.is_class and env.parent is not None:
            env = env.parent
        func = v.Func(self.frame.mod, self.frame.file, fn, env)
        defaults: dict[str, v.Value] = {}
        for param in fn.params:
            if param.default is None:
                continue
            if type(param.default) in _PLAIN:
                defaults[param.name] = self.eval(param.default)
                continue
            # What a default draws matters only to calls that use it.
            outer, self.captured = self.captured, []
            defaults[param.name] = self.eval(param.default)
            drawn, self.captured = self.captured, outer
            if drawn and may_read(self.body(func), param.name):
                func.drawn = {**func.drawn, param.name: drawn}
                self.pending.append(functools.partial(self._default_of_uncalled, func.key, drawn))
        if defaults:
            func.defaults = defaults
        value: v.Value = func
        for node in reversed(fn.decorators):
            recorded = self.state.modes.get(QUIET)
            decorator = self.eval(node)
            value = calls.decorate(self, decorator, value, node)
            if calls.is_gradient_switch(decorator):
                self.reset_mode(QUIET, recorded)
        return value

    def _default_of_uncalled(self, key: tuple[str, int], drawn: list[Draw]) -> None:
        """The default of a function that the program defines and does not call: others may use it."""
        if key in self.visited:
            return
        generators = [one for one in drawn if one.rng == "own"]
        use_default(self, generators)
        others = [one for one in drawn if one.rng != "own"]
        if all(self.state.level(d.rng).level == UNSEEDED for d in others):
            use_default(self, others)

    def exec_class(self, stmt: m.ClassDef) -> None:
        """``class``: its body runs now, in a scope of its own."""
        fact = self.frame.file.facts.classes[stmt.cls]
        bases = [self.eval(base) for base in fact.bases]
        keywords = {keyword.name: self.eval(keyword.value) for keyword in fact.keywords}
        flat = tuple(context_class(one) for base in bases for one in v.alternatives(base))
        env = v.Env(self.frame.env if not self.frame.is_class else self.frame.env.parent)
        cls = v.Cls(self.frame.mod, self.frame.file, fact, flat, env)
        outer = self.frame
        self.frame = Frame(outer.mod, outer.file, env, f"class {fact.name}", outer, self.here(stmt))
        self.frame.class_fact = fact
        self.frame.returns = outer.returns
        self.frame.jumps = outer.jumps
        self.frame.asides = outer.asides
        self.block(fact.body)
        self.frame = outer
        cls.fields = [
            s.target.id for s in fact.body if isinstance(s, m.AnnAssign) and isinstance(s.target, m.Name)
        ]
        for member in env.vars.values():
            if isinstance(member, v.Func) and member.cls is None:
                member.cls = cls
                self.methods.add(cls, member)
            setter = setter_of(member)
            if setter is not None and setter.cls is None:
                setter.cls = cls
        self._take_item_method(cls)
        self._init_subclass(cls, keywords, stmt)
        self._made_by_metaclass(cls, keywords.get("metaclass"), stmt)
        decorators = [(self.eval(node), node) for node in fact.decorators]
        cls.decorated = tuple(decorator for decorator, _ in decorators)
        value: v.Value = cls
        for decorator, node in reversed(decorators):
            value = calls.decorate_class(self, decorator, value, node)
        cls.made = True
        self.bind(fact.name, self._declared(fact.name) or value)

    def _take_item_method(self, cls: v.Cls) -> None:
        """The ``__getitem__`` of a library's class may call another method, which the class defines."""
        if "__getitem__" in cls.env.vars:
            return
        for base in cls.external_bases():
            role = self.kb.role(self.kb.canonical(base), "item-method")
            method = cls.env.vars.get(role.arg) if role is not None else None
            if isinstance(method, v.Func):
                cls.env.vars["__getitem__"] = method
                return

    def _init_subclass(self, cls: v.Cls, keywords: dict[str | None, v.Value], stmt: m.ClassDef) -> None:
        """A base class hears of its subclasses: ``__init_subclass__`` often registers them."""
        for base in cls.mro()[1:]:
            HEAP.act.names.add("__init_subclass__")
            hook = base.env.vars.get("__init_subclass__")
            if isinstance(hook, v.Func):
                given = {
                    name: value for name, value in keywords.items() if name not in ("", None, "metaclass")
                }
                self.call(hook.bind(cls), v.Args([], given), stmt)
                return

    def _made_by_metaclass(self, cls: v.Cls, given: v.Value | None, stmt: m.ClassDef) -> None:
        """A metaclass of the project makes the class: it often registers it."""
        inherited = (base.metaclass for base in cls.mro()[1:] if base.metaclass is not None)
        cls.metaclass = given if isinstance(given, v.Cls) else next(inherited, None)
        if cls.metaclass is None:
            return
        args: list[v.Value] = [
            v.Lit(cls.cls.name),
            v.Items("t", list(cls.bases)),
            v.Mapping(dict(cls.env.vars)),
        ]
        for name, receiver in (("__new__", cls.metaclass), ("__init__", cls)):
            hook = cls.metaclass.find(name)
            if isinstance(hook, v.Func):
                self.making.append(cls)
                self.call(hook.bind(receiver), v.Args(args), stmt)
                self.making.pop()

    def exec_import(self, stmt: m.Import) -> None:
        """``import a.b as c``."""
        for alias in stmt.names:
            parts = alias.name.split(".")
            mod = self.import_parents(self.frame.file, parts)
            if mod is not None and mod.file is None and self.modules.is_library(alias.name):
                mod = None
            elif mod is not None and mod.file is None and len(parts) == 1:
                # What it is asked for, and does not have, is that of a library.
                self.external_import(alias.name, stmt)
            if mod is None:
                self._missing_module(alias.name, stmt)
                self.external_import(alias.name, stmt)
                self.bind(alias.asname or parts[0], v.Ext(alias.name if alias.asname else parts[0]))
            elif alias.asname:
                self.bind(alias.asname, mod)
            else:
                top = self.find_module(self.frame.file, parts[0])
                self.bind(parts[0], self.import_found(top, parts[0]) if top else v.UNKNOWN)

    def exec_import_from(self, stmt: m.ImportFrom) -> None:
        """``from m import names``, with re-exports, submodules and stars."""
        file = self.frame.file
        mod: v.Mod | None
        if stmt.level:
            mod = self._import_relative(file, stmt)
            if mod is None:
                self.gap(
                    "project-import", f"`{'.' * stmt.level}{stmt.module}` is no file of the project", stmt
                )
                for alias in stmt.names:
                    if alias.name == "*":
                        self.frame.mod.env.stars += (self._absolute_name(stmt),)
                    else:
                        self.bind(alias.asname or alias.name, v.UNKNOWN)
                return
        else:
            names = [alias.name for alias in stmt.names if alias.name != "*"]
            mod = self._import_namesake(stmt) or self.import_parents(file, stmt.module.split("."), names)
            if mod is not None and mod.file is None and not self._has_members(mod, stmt):
                mod = None
            mod = mod or self._import_elsewhere(stmt)
        if mod is None:
            self._missing_module(stmt.module, stmt)
            self.external_import(stmt.module, stmt)
            for alias in stmt.names:
                if alias.name == "*":
                    self.frame.mod.env.stars += (stmt.module,)
                else:
                    self.bind(alias.asname or alias.name, v.of_library(f"{stmt.module}.{alias.name}"))
            return
        for alias in stmt.names:
            if alias.name == "*":
                self._star(mod)
                continue
            value = mod.env.read(alias.name)
            if value is None:
                value = self.submodule(mod, alias.name)
            if value is None and mod.env.stars:
                value = v.Ext(f"{mod.env.stars[-1]}.{alias.name}")
            if value is None and mod.file is not None:
                if defines_no(self, mod, alias.name, stmt):
                    if self.tried:
                        self.state.lost = True
                        _fail(self)
                        return
                    # Who corrects the import has the rest of the program.
                    self.bind(alias.asname or alias.name, v.UNKNOWN)
                    continue
                self.frame.mod.late[alias.asname or alias.name] = (mod, alias.name)
            self.bind(alias.asname or alias.name, value if value is not None else v.UNKNOWN)

    def _import_for_types(self, body: list[m.Stmt]) -> None:
        """Imports that only a type checker runs: the names of libraries are known in annotations, and those of the
        project where they are asked for."""
        file, mod = self.frame.file, self.frame.mod
        if self.frame.env is not mod.env:
            return
        for stmt in body:
            if isinstance(stmt, m.Import):
                for alias in stmt.names:
                    first = alias.name.partition(".")[0]
                    if self.find_module(file, first) is None:
                        self.bind(alias.asname or first, v.Ext(alias.name if alias.asname else first))
            elif isinstance(stmt, m.ImportFrom):
                library = not stmt.level and self.find_module(file, stmt.module.partition(".")[0]) is None
                for alias in stmt.names:
                    name = alias.asname or alias.name
                    if library and name != "*":
                        self.bind(name, v.Ext(f"{stmt.module}.{alias.name}"))
                    elif name != "*":
                        mod.typed[name] = (stmt, alias.name)

    def typed(self, mod: v.Mod, name: str) -> v.Value | None:
        """What a name stands for that a module imports for a type checker, where the program has imported its module."""
        stmt, member = mod.typed.get(name, (None, ""))
        if stmt is None or mod.file is None:
            return None
        if self.entry is None and not stmt.level:
            found = self.import_parents(mod.file, stmt.module.split("."))
            return found.env.read(member) if found is not None else None
        if stmt.level:
            named = self.modules.relative(mod.file, stmt.level, stmt.module)
        else:
            named = self.find_module(mod.file, stmt.module)
        if named is None or named.file is None:
            return None
        if self.entry is None:
            return self.import_found(named, self.modules.name_of(named.file)).env.read(member)
        # What an import does must not depend on what else was imported.
        known = self.loaded.get(named.file.path) if self.import_log is None else None
        return known.env.read(member) if known is not None else None

    def _import_relative(self, file: ModuleFile, stmt: m.ImportFrom) -> v.Mod | None:
        """The module of ``from ..a.b import names``; the packages on the way to it are imported before it."""
        found = self.modules.relative(file, stmt.level, stmt.module)
        if found is None:
            return None
        name = self._absolute_name(stmt)
        parts = stmt.module.split(".")
        for count in range(1, len(parts)):
            part = self.modules.relative(file, stmt.level, ".".join(parts[:count]))
            if part is not None:
                self.import_found(part, name.removesuffix("." + ".".join(parts[count:])))
        return self.import_found(found, name)

    def _import_namesake(self, stmt: m.ImportFrom) -> v.Mod | None:
        """The module that is meant where the program has extended the search path, the module found first lacks what is
        imported, and one other file of that name defines it."""
        file, name = self.frame.file, stmt.module
        if "." in name:
            return None
        names = [alias.name for alias in stmt.names]
        inner = self._inner_namesake(file, name, names)
        if inner is not None:
            return self.import_found(inner, name)
        if not self.uses(SEARCH_PATH):
            return None
        found = self.find_module(file, name)
        if found is None or found.file is None or found.file.is_package or "*" in names:
            return None
        if found.file.defines(names) or (found.file is not file and not found.file.lacks(names)):
            return None
        others = [one for one in self.modules.named(name) if one is not found.file]
        # An edit of these files may change the answer.
        self.trail += [FUNCTIONS.number((one.path, 0)) for one in (found.file, *others)]
        meant = [one for one in others if one.defines(names)]
        if len(meant) != 1:
            return None
        return self.import_found(self.modules.found(meant[0]), name)

    def _inner_namesake(self, file: ModuleFile, name: str, names: Sequence[str]) -> Found | None:
        """The module in a package of its name that defines what is imported, where the package surely lacks it: the import
        raises unless the program is started with the directory of the package on its path."""
        found = self.find_module(file, name)
        if found is None or found.file is None or not found.file.is_package or found.file is file:
            return None
        inner = self.modules.at(found.directory, [name])
        if inner is None or inner.file is None or inner.file in (file, found.file):
            return None
        # An edit of these files may change the answer.
        self.trail += [FUNCTIONS.number((one.path, 0)) for one in (found.file, inner.file)]
        if not inner.file.defines(names) or not found.file.lacks(names):
            return None
        return inner if all(self.modules.at(found.directory, [one]) is None for one in names) else None

    def _import_elsewhere(self, stmt: m.ImportFrom) -> v.Mod | None:
        """A module that is on no usual search path, where one file of the project has its name and defines what is
        imported: the program is started with a path that leads there, or the file was renamed and only the case of its
        name is an old one."""
        directory, name = self.frame.file.directory, stmt.module
        if "." in name:
            return None
        found = self.resolve(directory, name, True)
        if self.import_log is not None:
            self.import_log.looked_up(directory, name, True, found)
        if found is None and not self.modules.named(name):
            found = self.modules.anywhere_in_other_case(name)
        if found is None or found.file is None or found.file is self.frame.file:
            return None
        # An edit of that file may change the answer.
        self.trail.append(FUNCTIONS.number((found.file.path, 0)))
        named = found.file.defines([alias.name for alias in stmt.names])
        return self.import_found(found, name) if named else None

    def _missing_module(self, name: str, stmt: Any) -> None:
        """A module that is not found in a package of the project, or on the search path."""
        top, _, rest = name.partition(".")
        package = self.find_module(self.frame.file, top) if rest else None
        library = self.modules.is_library(top) or top in self.kb.named_libraries
        if package is not None and (package.file is not None or not library):
            self.gap("project-import", f"`{name}` is no file of the project", stmt)
        elif len(found := self.modules.named(name)) > 1 and self.frame.file not in found:
            several = ", ".join(one.relative for one in found[:_MOST_NAMED])
            more = ", ..." if len(found) > _MOST_NAMED else ""
            self.gap("project-import", f"`{name}` may be one of {len(found)} files: {several}{more}", stmt)

    def _has_members(self, mod: v.Mod, stmt: m.ImportFrom) -> bool:
        """Whether a directory without ``__init__`` is what the import means: all names are files of it."""
        return all(self.submodule(mod, a.name) is not None for a in stmt.names if a.name != "*")

    def _absolute_name(self, stmt: m.ImportFrom) -> str:
        file, name = self.frame.file, self.frame.mod.name
        parts = (self.modules.name_of(file) if name == MAIN else name).split(".")
        drop = stmt.level - (1 if file.is_package else 0)
        base = parts[: len(parts) - drop] if drop else parts
        return ".".join([*base, stmt.module] if stmt.module else base) or stmt.module

    def _star(self, mod: v.Mod) -> None:
        exported = mod.env.read("__all__")
        names: list[str] | None = None
        if isinstance(exported, v.Items) and not exported.open:
            names = [e.value for e in exported.elts if isinstance(e, v.Lit) and isinstance(e.value, str)]
        if names is None:
            names = _public(mod)
        lacking = ""
        for name in names:
            value = mod.env.read(name)
            if value is None:
                value = self.submodule(mod, name)
            if value is not None:
                self.bind(name, value)
            elif not mod.env.stars and mod.env.read("__getattr__") is None:
                lacking = name
        if lacking:
            # The list is wrong, as where a comma is missing: what the module defines is meant.
            text = f"`__all__` of `{mod.name}` has `{lacking}`, which is defined nowhere"
            self.gap("undefined-name", text, self.statement)
            for name in _public(mod):
                if name not in self.frame.mod.env.vars:
                    self.bind(name, mod.env.vars[name])
        self.frame.mod.env.stars += mod.env.stars
        if mod.file is not None and mod.file.facts.problem is not None:
            # It could not be parsed: it may have any names.
            self.frame.mod.env.stars += (mod.name,)

    def external_import(self, name: str, stmt: Any) -> None:
        """Note the first import of a library."""
        top = name.partition(".")[0]
        self.libraries.add(top)
        if self.import_log is not None:
            self.import_log.imported.add(top)
        self.listeners.tell(ImportEvent(name, stmt))

    # ----------------------------------------------------------------------- modes, seeds, environment

    def set_env(self, name: str, value: v.Value, node: Any, default_only: bool = False) -> None:
        """An environment variable is set in the running process."""
        known = value.value if isinstance(value, v.Lit) else None
        if isinstance(known, str) or known is None:
            text = known
        else:
            text = str(known)
        if default_only and name in self.state.env:
            return
        self.listeners.tell(EnvironmentEvent(name, value, node))
        before_change(self, name)
        self.state.env[name] = Setting(text, self.here(node), v.option_of(value))

    def unset_env(self, name: str) -> None:
        """An environment variable is deleted in the running process."""
        before_change(self, name)
        self.state.env.pop(name, None)

    def set_mode(self, name: str, value: v.Value, node: Any) -> None:
        """A determinism mode is set; see ``knowledge.model.Effect`` for names."""
        known = value.value if isinstance(value, v.Lit) else None
        self.state.modes[name] = Setting(known, self.here(node), v.option_of(value))
        self.left_by_modules(MODE, name)

    def reset_mode(self, name: str, setting: Setting | None) -> None:
        """A mode is again what it was: ``setting``, or None where nothing had set it."""
        if setting is not None:
            self.state.modes[name] = setting
        else:
            self.state.modes.pop(name, None)
        self.left_by_modules(MODE, name)

    def left_by_modules(self, kind: str, *names: str) -> None:
        """RNGs are seeded or modes set: if a module body does it, a process that is spawned repeats it."""
        if self.at_module_level():
            held = self.state.table(kind).held
            left: list[Left] = [(kind, name, held.get(name, ABSENT)) for name in names]
            if kind == RNG and self.importing:
                left += [(IMPORTED, name, value) for _, name, value in left]
            self.redo_left(left)

    def redo_left(self, left: list[Left]) -> None:
        """Module bodies have seeded and set these."""
        self._process_start.redo(left)
        if self.import_log is not None:
            self.import_log.left += left

    def process_start(self) -> ProcessStart:
        """What a process that is spawned now begins with. It is not to be changed."""
        if self.import_log is not None:
            self.import_log.spawned = True
        return self._process_start

    def mode(self, name: str) -> Setting:
        """A mode's setting here; its value is False where nothing set it, None for unknown."""
        found: Setting | None = self.state.modes.get(name)
        if found is not None:
            return found
        return Setting(False if self.entry is not None else None, None)

    def flag(self, name: str, node: Any = None) -> None:
        """Note that something happened here for the first time on this path."""
        self.state.flags.setdefault(name, self.here(node))

    def infer_releases(self, releases: tuple[dict[str, str], dict[str, str]]) -> None:
        """Names that the program uses tell for which releases of libraries it was written, and from which others
        follow."""
        for known, new in zip((self.releases, self.implied_releases), releases, strict=True):
            keep_oldest(known, new)
        if self.import_log is not None:
            self.import_log.tell(releases)

    def base_frame(self, mod: v.Mod, file: ModuleFile) -> Frame:
        """A frame in a module's scope, for calls from outside any code."""
        return Frame(mod, file, mod.env, file.relative, None, None)

    def later(self, judge: Callable[[], None], first: bool = False) -> None:
        """Put something off to the end, there before all else or after it."""
        self.pending.insert(0 if first else len(self.pending), judge)

    def drain(self) -> None:
        """Run what was put off to the end: loaders that nothing was seen to iterate."""
        while self.pending:
            pending, self.pending = self.pending, []
            for later in pending:
                later()

    @property
    def worker(self) -> str:
        """What names the thread or process that runs what is running; empty for the main one of the program."""
        return self.workers.place if self.workers is not None else ""

    def workers_seed_numpy(self) -> bool:
        """Whether DataLoader workers seed NumPy's global state: from torch 1.9 on."""
        return self.targets is None or not self.targets.matches("torch", "<1.9")

    def kb_matches(self, library: str, spec: str) -> bool:
        """Whether the target version of a library lies in a range; False without targets."""
        return self.targets is not None and self.targets.matches(library, spec)

    def at_module_level(self) -> bool:
        """Whether only what modules do when they are imported, functions that they call then included, is running: not what
        stands behind ``__name__`` being ``"__main__"``."""
        answer = not self.guarded and self.stack()[0].func is None
        if self.import_log is not None:
            self.import_log.at_module_level = answer
        return answer

    def methods_named(self, name: str) -> list[tuple[v.Cls, v.Func]]:
        """Methods of this name in the project classes seen so far."""
        if self.import_log is not None:
            self.import_log.guessed.add(name)
        return self.methods.named(name)


_PLAIN = (m.Const, m.Name, m.Attr, m.Unary)
"""Expressions that draw nothing."""


def _public(mod: v.Mod) -> list[str]:
    """The names of a module that are not private."""
    return [name for name in mod.env.all() if not name.startswith("_")]


def _switches(round_: Activation) -> set[Any]:
    """The attributes that decide what runs which a round of a loop read, and in which it then left something else, with
    what that is: what it is as a switch, as the name of a state, which a variable may be too, or as a function."""
    left: set[Any] = set()
    for place, (_, kind, _, _, new) in round_.writes.items():
        read = round_.reads.get(place)
        if read is None or kind not in (ITEM, NAME) or new is ABSENT:
            continue
        old = read[4]
        if states := _texts(old):
            left.update((place, name) for name in _texts(new) - states)
        if kind is NAME:
            continue
        switch = isinstance(old, v.Lit) and (old.value is None or isinstance(old.value, bool))
        if switch and not (isinstance(new, v.Lit) and new.value is old.value):
            left.add((place, new.value if isinstance(new, v.Lit) and isinstance(new.value, bool) else ...))
        elif isinstance(old, v.Func) and new is not old:
            left.add((place, new.key if isinstance(new, v.Func) else ...))
    return left


def _texts(value: v.Value) -> set[str]:
    """The texts of which a value is one; none where it may be something else."""
    found = {
        one.value for one in v.alternatives(value) if isinstance(one, v.Lit) and isinstance(one.value, str)
    }
    return found if len(found) == len(v.alternatives(value)) else set()


def _join_vars(scopes: list[dict[str, v.Value]]) -> dict[str, v.Value]:
    merged = dict(scopes[0])
    for scope in scopes[1:]:
        for name, value in scope.items():
            old = merged.get(name)
            if old is None:
                merged[name] = value
            elif old is not value:
                merged[name] = v.join((old, value))
    return merged


def _exec_expr(interp: Interp, stmt: m.ExprStmt) -> None:
    if must_raise(interp, stmt.value):
        _fail(interp)
        return
    value = interp.eval(stmt.value)
    if has_raised(interp, stmt.value):
        _fail(interp)
        return
    if isinstance(stmt.value, m.Name):
        interp.listeners.tell(BareNameEvent(value, stmt.value))


def _exec_assign(interp: Interp, stmt: m.Assign) -> None:
    if must_raise(interp, stmt.value):
        _fail(interp)
        return
    value = interp.eval(stmt.value)
    if has_raised(interp, stmt.value) or unpacks_other_number(interp, stmt, value):
        _fail(interp)
        return
    if interp.orders.loops:
        value = interp.orders.assigned(interp, stmt, value)
    for target in stmt.targets:
        assign(interp, target, value)
        if type(target) is m.Seq and type(stmt.value) is not m.Subscript:
            if not any(one is stmt for one in interp.tried):
                unpacked(value, target)


def _exec_ann_assign(interp: Interp, stmt: m.AnnAssign) -> None:
    if stmt.value is not None:
        assign(interp, stmt.target, interp.eval(stmt.value))


def _exec_aug_assign(interp: Interp, stmt: m.AugAssign) -> None:
    aug_assign(interp, stmt)


def _exec_return(interp: Interp, stmt: m.Return) -> None:
    if must_raise(interp, stmt.value):
        _fail(interp)
        return
    if type(stmt.value) is m.Compare:
        interp.listeners.tell(ReturnEvent(stmt))
    value = interp.eval(stmt.value) if stmt.value is not None else v.NONE
    if has_raised(interp, stmt.value):
        _fail(interp)
        return
    interp.frame.returns.append((value, interp.state.copy()))
    order_cuts.left(interp, stmt)
    interp.state.alive = False


def _exec_scope(interp: Interp, stmt: m.ScopeDecl) -> None:
    env = interp.frame.env
    if stmt.kind == "global":
        env.globals_ = (env.globals_ or frozenset()) | frozenset(stmt.names)
    else:
        env.outer_ = (env.outer_ or frozenset()) | frozenset(stmt.names)


def _exec_delete(interp: Interp, stmt: m.Delete) -> None:
    for target in stmt.targets:
        if isinstance(target, m.Name) and "." not in target.id:
            interp.frame.env.vars.pop(target.id, None)
        else:
            delete(interp, target)


def _exec_raise(interp: Interp, stmt: m.Raise) -> None:
    if stmt.exc is not None:
        interp.eval(stmt.exc)
    _end_raised(interp)


def _exec_assert(interp: Interp, stmt: m.Assert) -> None:
    test = conditions.condition(interp, stmt.test)
    if test.answer is False and not test.option:
        _end_raised(interp)
        return
    if test.answer is False:
        # Without the option the program stops: it has to be given.
        interp.branch([lambda: None, lambda: _end_raised(interp)], keep=1, option=test.option)
    if interp.state.alive and (test.answer is None or test.option):
        conditions.narrow(interp, stmt.test, True, stops=True)


def _fail(interp: Interp) -> None:
    """The running path ends at a statement that was not meant to raise."""
    if interp.statement is not None:
        interp.listeners.tell(FailEvent(interp.statement))
    _end_raised(interp)


def _end_raised(interp: Interp) -> None:
    interp.state.alive = False
    interp.state.raised = True


def _exec_jump(interp: Interp, stmt: m.Jump) -> None:
    order_cuts.left(interp, stmt)
    if interp.frame.jumps:
        jumped = Jumped(interp.state.copy(), dict(interp.frame.env.vars), stmt.kind == "break")
        interp.frame.jumps[-1].append(jumped)
    interp.state.alive = False


def _exec_match(interp: Interp, stmt: m.Match) -> None:
    subject = interp.eval(stmt.subject)
    if isinstance(subject, v.Lit) and subject.option:
        if id(stmt) not in interp.case_tests:
            interp.case_tests[id(stmt)] = as_tests(stmt)
        tests = interp.case_tests[id(stmt)]
        if tests is not None:
            interp.exec_if(tests)
            return
    cases, certain = _possible_cases(interp, stmt, subject)
    runs: list[Callable[[], None]] = []
    for case in cases:

        def run(case: m.Case = case) -> None:
            for name in case.binds:
                interp.bind(name, v.UNKNOWN)
            if case.guard is not None:
                interp.eval(case.guard)
            interp.block(case.body)

        runs.append(run)
    if certain and len(runs) == 1:
        runs[0]()
        return
    if not certain:
        runs.append(lambda: None)
    interp.branch(runs)


def _possible_cases(interp: Interp, stmt: m.Match, subject: v.Value) -> tuple[list[m.Case], bool]:
    """The cases that may be chosen, and whether one of them is for certain. What an option chooses by default, another
    run may choose otherwise."""
    known = isinstance(subject, v.Lit) and not subject.option
    found: list[m.Case] = []
    for case in stmt.cases:
        values = [interp.eval(one) for one in case.values] if known and case.values else []
        equal = None
        if values and all(isinstance(one, v.Lit) for one in values):
            equal = any(v.same(one, subject) for one in values)
        if equal is False:
            continue
        found.append(case)
        if case.guard is None and (equal or case.irrefutable):
            return found, True
    return found, False


_EXEC: dict[type, Callable[[Interp, Any], None]] = {
    m.ExprStmt: _exec_expr,
    m.Assign: _exec_assign,
    m.AnnAssign: _exec_ann_assign,
    m.AugAssign: _exec_aug_assign,
    m.Return: _exec_return,
    m.If: Interp.exec_if,
    m.For: Interp.exec_for,
    m.While: Interp.exec_while,
    m.Try: Interp.exec_try,
    m.With: Interp.exec_with,
    m.FunctionDef: Interp.exec_function,
    m.ClassDef: Interp.exec_class,
    m.Import: Interp.exec_import,
    m.ImportFrom: Interp.exec_import_from,
    m.ScopeDecl: _exec_scope,
    m.Delete: _exec_delete,
    m.Raise: _exec_raise,
    m.Assert: _exec_assert,
    m.Match: _exec_match,
    m.Jump: _exec_jump,
}

# The names of all releases and systems, not only of the Python that analyzes: the findings do not depend on it.
_BUILTINS = frozenset(
    {name for name in dir(builtins) if not name.startswith("_")} - {"copyright", "credits", "license"}
    | {"__import__", "exit", "quit", "aiter", "anext", "WindowsError"}
    | {"EncodingWarning", "BaseExceptionGroup", "ExceptionGroup", "PythonFinalizationError"}
)
