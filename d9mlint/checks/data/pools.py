"""DET211: threads and processes that draw, or update, in an order that depends on scheduling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.base.findings import Step
from d9mlint.checks.base import Rule, argument_node
from d9mlint.checks.data import concurrent_updates
from d9mlint.checks.drawing import Observer, fits_unseeded, what_is_drawn
from d9mlint.checks.inference.sampling import GENERATING, samples
from d9mlint.interp import rng
from d9mlint.interp import values as v
from d9mlint.interp.context import THREAD
from d9mlint.interp.events import CallEvent, EndEvent, GlobalDrawEvent, SeedEvent
from d9mlint.interp.library.processes import (
    given_to_task,
    is_pool,
    is_process_pool,
    of_thread,
    several_at_once,
)
from d9mlint.interp.library.weights import LOADING_METHODS
from d9mlint.interp.listening import on, on_call, on_call_if, on_method
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.places import Where, running
from d9mlint.interp.state import Site
from d9mlint.interp.text import node_text
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

PROCESSES = (
    "multiprocessing.Process",
    "torch.multiprocessing.Process",
    "torch.multiprocessing.spawn",
    "threading.Thread",
)

POOL_METHODS = (
    "map",
    "imap",
    "starmap",
    "map_async",
    "starmap_async",
    "apply_async",
    "submit",
    "imap_unordered",
    "apply",
)


_SIZES = ("max_workers", "processes", "num_workers")
MOST_PLACES = 4
"""So many draws of a function that several workers run are shown."""
_PICKLED_DEPTH = 4
"""So far what an object holds is looked for."""
# Methods of a generator that draw nothing.
_LOOKS = frozenset(
    {"get_state", "set_state", "getstate", "setstate", "seed", "manual_seed", "initial_seed", "spawn"}
)


class RaceLog(Observer):
    """What a function draws that several workers run: from generators that were there before it was called, unless
    they are ``made`` for the item, or from global ones. ``own`` are those that a worker process seeds for itself."""

    def __init__(self, run: RunView, processes: bool, made: list[v.Value]) -> None:
        super().__init__(run)
        self.start = run.now
        self.processes = processes
        self.made = {id(one) for one in made}
        self.own: set[str] = set()
        self.places: list[Where] = []
        self.generators: set[str] = set()
        self.sampled: set[str] = set()
        """The generator from which models draw that generate."""
        self.fitted: set[Site] = set()
        """Where estimators are fitted that draw from NumPy's generator."""
        self._seeded: set[str] = set()
        self._weights: dict[str, list[Where]] = {}
        self._loads = False
        self._trains = False

    @on(SeedEvent)
    def seeded(self, event: SeedEvent) -> None:
        """The worker seeds a generator: no other process draws from it, but other threads do."""
        (self.own if self.processes else self._seeded).update(event.rngs)

    @on(GlobalDrawEvent)
    def drew(self, event: GlobalDrawEvent) -> None:
        """Initial weights are drawn: by a thread from a generator that it has seeded, for them, or by a process."""
        if event.entry.kind == "init" and event.node is not None:
            if self.processes or event.rng in self._seeded:
                self._weights.setdefault(event.rng, []).append(Where(self.run, event.node))

    def weights(self) -> set[str]:
        """The generators from which several threads draw initial weights that each has seeded for its own, or several
        processes those of models that they train, where no others are loaded in their place."""
        drawn = (
            set() if self._loads or (self.processes and not self._trains) else set(self._weights) - self.own
        )
        for name in sorted(drawn):
            known = {one.site for one in self.places}
            new = [one for one in self._weights[name] if one.site not in known]
            self.places += new[: MOST_PLACES - len(self.places)]
        return drawn

    def _shared(self, generator: v.Obj) -> bool:
        return generator.birth <= self.start and id(generator) not in self.made

    @on(CallEvent)
    def called(self, call: CallEvent) -> None:
        """Something is called, which may draw."""
        if call.node is None:
            return
        method = call.api.rpartition(".")[2]
        loads = method in LOADING_METHODS or self.run.kb.role(call.api, "loads-weights") is not None
        self._loads = self._loads or loads
        self._trains = (
            self._trains or method == "backward" or self.run.kb.role(call.api, "trains") is not None
        )
        owner = call.owner
        if isinstance(owner, v.Obj) and owner.type in rng.GENERATOR_TYPES:
            shared = self._shared(owner) and call.api.rpartition(".")[2] not in _LOOKS
        else:
            shared = any(
                entry.draws
                and entry.kind not in ("init", "dropout", "mask")
                and rng.draws_now(self.run, call.args, entry)
                for entry in self.run.kb.rng(call.api)
                if not {"own", "entropy", *self.own} & set(entry.draws)
            )
            owner = next(
                (x for x in call.args.kw.values() if isinstance(x, v.Obj) and x.type in rng.GENERATOR_TYPES),
                None,
            )
            if owner is not None:
                shared = self._shared(owner)
        fits = fits_unseeded(self.run, call, self.start)
        if fits:
            shared, owner = True, None
        if call.api.rpartition(".")[2] in GENERATING and samples(self.run, call):
            self.sampled.add("torch")
            shared, owner = True, None
        if shared and len(self.places) < MOST_PLACES:
            place = Where(self.run, call.node)
            if fits:
                self.fitted.add(place.site)
            if all(one.site != place.site for one in self.places):
                self.places.append(place)
            if owner is not None:
                text = node_text(call.node, call.api)
                self.generators.add(text.rpartition(".")[0] if call.owner is owner else "generator")


class Running(NamedTuple):
    """A thread that was started, where it draws, and when the worker process began that it runs in."""

    thread: v.Value
    place: Where
    process: int


_GLOBAL = {"python": "`random`", "numpy": "`np.random`", "torch": "torch", "tensorflow": "TensorFlow"}
_EACH = "give every item its own generator: `rng = np.random.default_rng([seed, index])`"
_TORCH = "draw before the threads start, or give every item its own `generator=torch.Generator().manual_seed(seed + index)`"
_SEEDED = "seed for every item, in the function: `torch.manual_seed(seed + index)`"
_ESTIMATORS = "pass `random_state=` to the estimators"
_STATELESS = "pass each draw its own seed: `tf.random.stateless_uniform(shape, seed=[seed, index])`"

_MEANWHILE = {
    "python": "give each thread its own generator: `rng = random.Random(seed + index)`",
    "numpy": "give each thread its own generator: `rng = np.random.default_rng([seed, index])`",
    "torch": "give each thread its own `generator=torch.Generator().manual_seed(seed + index)`",
    "tensorflow": _STATELESS,
}
"""What to do where one of several threads draws from the generator of all."""


class Pools(Rule):
    """DET211: threads and processes that draw, or update, in an order that depends on scheduling."""

    codes = ("DET211",)
    models = remembered(list[Where])
    processes = remembered_table(Site, bool)
    """Where processes are made, and whether that is one process alone."""
    learning = remembered(bool)
    """A process or thread that the program starts trains."""
    learning_here = remembered(bool)
    """The program itself trains."""
    running = remembered_table(str, Running)
    """Generators that a thread draws from which was started and not waited for."""

    @on_method(*POOL_METHODS)
    def pool(self, call: CallEvent) -> None:
        """A pool runs a function."""
        owner = call.owner
        if not isinstance(owner, v.Obj) or not is_pool(owner):
            return
        name = call.api.rpartition(".")[2]
        size = next((x for key in _SIZES if (x := owner.args.get(key, 0)) is not None), None)
        if isinstance(size, v.Lit) and size.value == 1 and not size.option:
            # One worker takes the items in their order.
            return
        func = _function(call.args.pos[0] if call.args.pos else call.args.kw.get("func"))
        if func is None:
            return
        handed = given_to_task(call.api, call.args)
        func = v.Partial(func, v.Args([v.UNKNOWN], star="starmap" in name) if handed is None else handed)
        self.races(call, func, f"the function passed to `{name}`", name, is_process_pool(owner))

    def races(
        self,
        call: CallEvent,
        func: v.Func | v.Partial,
        what: str,
        name: str,
        processes: bool = False,
        thread: v.Value | None = None,
    ) -> None:
        """Several workers run a function, which has all its arguments: it must draw nothing that they share, and update
        no weights. ``thread``: an object that no other of them has."""
        given = func.args.values() if isinstance(func, v.Partial) else []
        made = [one for one in given if _made_for_item(self.run, call.node, one)]
        made += _made_by_constructor(thread)
        if processes and name in POOL_METHODS:
            # Each task is pickled with its function and gets a copy of what that holds, in the state that it had here.
            made += _pickled(func)
        log = RaceLog(self.run, processes, made)
        common = [] if processes else concurrent_updates.shared(self.run, call.node, func, thread)
        updates = concurrent_updates.UpdateLog(self.run, common)
        drawn = what_is_drawn(self.run, [func], log, updates, given=v.NO_ARGS) | log.weights() | log.sampled
        drawn &= self._in_common(processes) - log.own
        shared = [_GLOBAL[r] for r in sorted(drawn)] + sorted(f"`{one}`" for one in log.generators)
        if shared:
            self._raced(log, call.node, shared, _remedy(log, drawn), what, name)
        for place in updates.places:
            here = Where(self.run, call.node, name)
            self.report(
                "DET211",
                place.with_flow((*here.flow, Step(*here.site, f"`{name}` runs it here"))),
                "several threads update these weights: the order of updates depends on thread scheduling",
                "let the threads compute gradients, and apply them in one thread in a fixed order",
                subject=place.subject,
            )

    def _in_common(self, processes: bool) -> set[str]:
        """The global generators that workers draw from one after the other."""
        names = set(_GLOBAL)
        if processes or not self.run.kb_matches("tensorflow", ">=2.0"):
            # A graph has its own seeds, and so has each process that TensorFlow is used in.
            names.discard("tensorflow")
        return names

    def _raced(self, log: RaceLog, node: Any, shared: list[str], remedy: str, what: str, name: str) -> None:
        """Report what several workers draw from."""
        place: Any = node
        if log.places:
            # The draws are what has to change; how they are reached is in the flow.
            place, *others = log.places
            here = Where(self.run, node, name)
            more = [Step(*one.site, "draws here too") for one in others]
            place = place.with_flow((*here.flow, Step(*here.site, f"`{name}` runs it here"), *more))
        self.report(
            "DET211",
            place,
            f"{what} draws from {' and '.join(shared)}: "
            + ("which process draws for which item" if log.processes else "draw order")
            + f" depends on {'' if log.processes else 'thread '}scheduling",
            remedy,
            subject=name,
        )

    @on_call("joblib.Parallel.__call__")
    def parallel(self, call: CallEvent) -> None:
        """``Parallel(n_jobs=4)(delayed(f)(x) for x in xs)``."""
        owner = call.owner
        if not isinstance(owner, v.Obj) or not call.args.pos:
            return
        size = owner.args.get("n_jobs", 0)
        if size is None or v.is_none(size) is True or (isinstance(size, v.Lit) and size.value == 1):
            return
        threads = any(
            isinstance(one, v.Lit) and one.value in ("threading", "threads", "sharedmem")
            for one in owner.args.kw.values()
        )
        tasks = call.args.pos[0]
        for task in tasks.elts[:1] if isinstance(tasks, v.Items) else ():
            made = task.owner if isinstance(task, v.Obj) else None
            func = _function(made.args.get("function", 0) if isinstance(made, v.Obj) else None)
            if isinstance(task, v.Obj) and func is not None:
                self.races(
                    call,
                    v.Partial(func, task.args),
                    "the function that `Parallel` runs",
                    "Parallel",
                    not threads,
                )

    @on_call("asyncio.to_thread")
    def to_thread(self, call: CallEvent) -> None:
        """A coroutine hands a function to a thread."""
        func = _function(call.args.pos[0] if call.args.pos else None)
        if func is not None and several_at_once(self.run, call.node):
            given = call.args.rest()
            self.races(call, v.Partial(func, given), "the function passed to `to_thread`", "to_thread")

    @on_call("threading.Thread")
    def thread(self, call: CallEvent) -> None:
        """A thread is made."""
        func = _function(call.args.get("target", 1))
        if several_at_once(self.run, call.node) and func is not None:
            given = v.Partial(func, of_thread(call.args))
            method = argument_node(call.node, "target", 1)
            alone = func.receiver if isinstance(func, v.Func) and _is_of_each(self.run, method) else None
            self.races(call, given, "the function passed to `Thread`", "Thread", thread=alone)

    @on_method("start")
    def started(self, call: CallEvent) -> None:
        """A thread is started: several of a project class, or one beside others."""
        owner = call.owner
        if isinstance(owner, v.Inst):
            run = owner.cls.find("run")
            if "threading.Thread" not in owner.cls.external_bases() or not isinstance(run, v.Func):
                return
            if several_at_once(self.run, call.node):
                self.races(call, run.bind(owner), "`run()` of this thread", "start", thread=owner)
            else:
                self._beside_others(call.node, owner, run.bind(owner))
        elif isinstance(owner, v.Obj) and owner.type == "threading.Thread":
            func = _function(owner.args.get("target", 1))
            if func is not None and not several_at_once(self.run, call.node):
                self._beside_others(call.node, owner, v.Partial(func, of_thread(owner.args)))

    def _beside_others(self, node: Any, thread: v.Value, func: v.Value) -> None:
        """One thread is started: until it is waited for, nobody else may draw what it draws."""
        log = RaceLog(self.run, False, [])
        for name in sorted(what_is_drawn(self.run, [func], log, given=v.NO_ARGS) & self._in_common(False)):
            known = self._known(name)
            if log.places and known is not None:
                self._meanwhile(name, known, log.places[0].site)
            elif log.places:
                self.running[self._key(name)] = Running(thread, log.places[0], self.run.loading)

    def _key(self, name: str) -> str:
        """The worker processes of a loader have generators that the program does not see."""
        return f"{name} of a worker" if self.run.loading else name

    def _known(self, name: str) -> Running | None:
        """A thread of this process that draws from a generator."""
        known = self.running.get(self._key(name))
        return known if known is not None and known.process == self.run.loading else None

    @on_method("join")
    def joined(self, call: CallEvent) -> None:
        """A thread is waited for."""
        if isinstance(call.owner, (v.Obj, v.Inst)):
            for name in self.running.known():
                known = self.running.get(name)
                if known is not None and known.thread is call.owner:
                    self.running.pop(name)

    @on(GlobalDrawEvent)
    def drawn_meanwhile(self, event: GlobalDrawEvent) -> None:
        """The program draws while a thread that draws from the same generator may be running."""
        known = self._known(event.rng) if THREAD not in self.run.contexts else None
        if known is not None:
            self._meanwhile(event.rng, known, Where(self.run, event.node).site)

    def _meanwhile(self, name: str, known: Running, other: Site) -> None:
        """What a thread draws from is drawn from elsewhere, as far as is seen at the same time."""
        self.running.pop(self._key(name))
        self.report(
            "DET211",
            known.place.with_flow((*known.place.flow, Step(*other, "draws here meanwhile"))),
            f"a thread draws from {_GLOBAL[name]} while another one does: draw order depends on thread scheduling",
            _MEANWHILE[name],
            subject="Thread",
        )

    @on_method("share_memory")
    def shared(self, call: CallEvent) -> None:
        """A model's memory is shared."""
        if isinstance(call.owner, v.Inst) or (
            isinstance(call.owner, v.Obj) and call.owner.api.startswith("torch.nn")
        ):
            self.models.append(Where(self.run, call.node, "share_memory"))

    @on_method("backward")
    @on_call_if(lambda rule, api: rule.run.kb.role(api, "trains") is not None)
    def learns(self, call: CallEvent) -> None:
        """A step of training: by a worker, or by the program that waits for what its workers collect."""
        if THREAD in self.run.contexts:
            self.learning = True
        else:
            self.learning_here = True

    @on_call(*PROCESSES)
    @on_method("Process")
    def process(self, call: CallEvent) -> None:
        """Processes are started."""
        node = call.node
        # A class of the program makes one for each of its instances.
        alone = called_name(node) != "__init__" and not several_at_once(self.run, node)
        if call.api.endswith("spawn"):
            number = call.args.get("nprocs", 2)
            alone = number is None or (isinstance(number, v.Lit) and number.value == 1 and not number.option)
        site = self.run.here(node)
        self.processes[site] = alone and site not in self.processes

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        made = [self.processes[site] for site in self.processes.known()]
        if self.run.entry is None or not made:
            return
        if self.learning_here and not self.learning:
            return  # The workers use the shared parameters, and the program alone updates them.
        if made == [True] and not self.learning_here:
            return  # One process updates them.
        for place in self.models:
            self.report(
                "DET211",
                place,
                "several processes update these parameters concurrently: the order of updates differs between runs",
                "use `DistributedDataParallel` or a single process",
                subject=place.subject,
            )


def _remedy(log: RaceLog, drawn: set[str]) -> str:
    """What keeps the draws of one item apart from those of the others."""
    if drawn == {"tensorflow"}:
        return _STATELESS
    if log.places and log.fitted.issuperset(one.site for one in log.places):
        return _ESTIMATORS
    if "torch" not in drawn:
        return _EACH
    # Not all that draws from torch's generator can be given another one, but each process has one.
    return _SEEDED if log.processes else _TORCH


def _function(value: v.Value | None) -> v.Func | v.Partial | None:
    """The function that runs where a value is called: itself, the constructor of a class, or the method of an instance of a
    project class."""
    if isinstance(value, (v.Func, v.Partial)):
        return value
    if isinstance(value, v.Cls):
        return v.Partial(value, v.NO_ARGS)
    method = value.cls.find("__call__") if isinstance(value, v.Inst) else None
    return method.bind(value) if isinstance(method, v.Func) else None


def _pickled(func: v.Value) -> list[v.Value]:
    """What is pickled with a function: the arguments of a partial one, the receiver of a method, and what they hold."""
    found: list[v.Value] = []
    level: list[v.Value] = [func]
    for _ in range(_PICKLED_DEPTH):
        inner: list[v.Value] = []
        for one in level:
            if isinstance(one, v.Partial):
                inner += [one.func, *one.args.values()]
            elif isinstance(one, v.Func):
                inner += [one.receiver] if one.receiver is not None else []
            elif isinstance(one, v.Inst):
                inner += one.attrs.values()
            elif isinstance(one, v.Items):
                inner += one.elts
        found += inner
        level = inner
    return found


def _made_by_constructor(owner: v.Value | None) -> list[v.Value]:
    """What an object holds that was made after it: its constructor makes it, for each object again."""
    held = owner.attrs.values() if isinstance(owner, v.Inst) else ()
    return [
        one
        for one in held
        if isinstance(owner, v.Inst) and isinstance(one, v.Obj) and one.birth > owner.birth
    ]


def _is_of_each(run: RunView, method: m.Expr | None) -> bool:
    """Whether an expression is a method of the variable of a loop or comprehension over several objects."""
    if not isinstance(method, m.Name) or method.id.count(".") != 1:
        return False
    return method.id.partition(".")[0] in concurrent_updates.turns(running(run))


def _made_for_item(interp: RunView, node: Any, value: v.Value) -> bool:
    """Whether an argument is made where the work is handed out, or in the loop that does so."""
    if not isinstance(value, v.Obj):
        return False
    made = value.node
    within = made is not None and hasattr(node, "start") and node.start <= made.start and made.end <= node.end
    return within or any(loop.start < value.birth for loop in interp.loops)
