"""DET211: threads and processes that draw, or update, in an order that depends on scheduling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.base.findings import Step
from d9mlint.checks.base import Rule
from d9mlint.checks.data.order import enclosing_function
from d9mlint.checks.drawing import GENERATOR_TYPES, Observer, what_is_drawn
from d9mlint.interp import rng
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, EndEvent
from d9mlint.interp.listening import on, on_call, on_method
from d9mlint.interp.memory import remembered
from d9mlint.interp.places import Where
from d9mlint.interp.text import node_text
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes, parents

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView


PROCESSES = (
    "multiprocessing.Process",
    "torch.multiprocessing.Process",
    "torch.multiprocessing.spawn",
    "threading.Thread",
)
POOL_TYPES = ("Pool", "ThreadPool", "ProcessPoolExecutor", "ThreadPoolExecutor")
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
# Methods of a generator that draw nothing.
_LOOKS = frozenset(
    {"get_state", "set_state", "getstate", "setstate", "seed", "manual_seed", "initial_seed", "spawn"}
)


class RaceLog(Observer):
    """What a function draws that several workers run: from generators that were there before ``start``, or from
    global ones."""

    def __init__(self, run: RunView, start: int) -> None:
        super().__init__(run)
        self.start = start
        self.places: list[Where] = []
        self.generators: set[str] = set()

    @on(CallEvent)
    def called(self, call: CallEvent) -> None:
        """Something is called, which may draw."""
        if call.node is None:
            return
        owner = call.owner
        if isinstance(owner, v.Obj) and owner.type in GENERATOR_TYPES:
            shared = owner.birth <= self.start and call.api.rpartition(".")[2] not in _LOOKS
        else:
            shared = any(
                entry.draws and entry.kind not in ("init", "dropout") and rng.draws_now(call.args, entry)
                for entry in self.run.kb.rng(call.api)
                if not {"own", "entropy"} & set(entry.draws)
            )
            owner = next(
                (x for x in call.args.kw.values() if isinstance(x, v.Obj) and x.type in GENERATOR_TYPES), None
            )
            if owner is not None:
                shared = owner.birth <= self.start
        if shared and len(self.places) < MOST_PLACES:
            place = Where(self.run, call.node)
            if all(one.site != place.site for one in self.places):
                self.places.append(place)
            if owner is not None:
                text = node_text(call.node, call.api)
                self.generators.add(text.rpartition(".")[0] if call.owner is owner else "generator")


class Pools(Rule):
    """DET211: threads and processes that draw, or update, in an order that depends on scheduling."""

    codes = ("DET211",)
    models = remembered(list[Where])
    processes = remembered(bool)

    @on_method(*POOL_METHODS)
    def pool(self, call: CallEvent) -> None:
        """A pool runs a function."""
        owner = call.owner
        if not isinstance(owner, v.Obj) or owner.type.rpartition(".")[2] not in POOL_TYPES:
            return
        name = call.api.rpartition(".")[2]
        size = next((x for key in _SIZES if (x := owner.args.get(key, 0)) is not None), None)
        if isinstance(size, v.Lit) and size.value == 1 and not size.option:
            # One worker takes the items in their order.
            return
        func = call.args.pos[0] if call.args.pos else call.args.kw.get("func")
        if not isinstance(func, (v.Func, v.Partial)):
            return
        if name == "submit":
            # The other arguments are those of the function: what it calls on them is known then.
            func = v.Partial(func, v.Args(call.args.pos[1:], call.args.kw, call.args.star, call.args.dstar))
        self.races(call, func, f"the function passed to `{name}`", name)

    def races(self, call: CallEvent, func: v.Value, what: str, name: str) -> None:
        """Several workers run a function: it must draw nothing that they share."""
        log = RaceLog(self.run, self.run.now)
        drawn = what_is_drawn(self.run, [func], log) & {"python", "numpy", "torch"}
        names = {"python": "`random`", "numpy": "`np.random`", "torch": "torch"}
        shared = [names[r] for r in sorted(drawn)] + sorted(f"`{one}`" for one in log.generators)
        if not shared:
            return
        place: Any = call.node
        if log.places:
            # The draws are what has to change; how they are reached is in the flow.
            place, *others = log.places
            here = Where(self.run, call.node, name)
            more = [Step(*one.site, "draws here too") for one in others]
            place.flow = (*here.flow, Step(*here.site, f"`{name}` runs it here"), *more)
        self.report(
            "DET211",
            place,
            f"{what} draws from {' and '.join(shared)}: draw order depends on thread scheduling",
            "give every item its own generator: `rng = np.random.default_rng([seed, index])`",
            subject=name,
        )

    @on_call("threading.Thread")
    def thread(self, call: CallEvent) -> None:
        """A thread is made."""
        func = call.args.get("target", 1)
        if _several_at_once(self.run, call.node) and isinstance(func, (v.Func, v.Partial)):
            given = call.args.get("args", 3)
            rest = (
                v.Args(list(given.elts), star=given.open) if isinstance(given, v.Items) else v.Args(star=True)
            )
            self.races(call, v.Partial(func, rest), "the function passed to `Thread`", "Thread")

    @on_method("start")
    def started(self, call: CallEvent) -> None:
        """A thread of a project class is started."""
        if not isinstance(call.owner, v.Inst) or not _several_at_once(self.run, call.node):
            return
        run = call.owner.cls.find("run")
        if "threading.Thread" in call.owner.cls.external_bases() and isinstance(run, v.Func):
            self.races(call, run.bind(call.owner), "`run()` of this thread", "start")

    @on_method("share_memory")
    def shared(self, call: CallEvent) -> None:
        """A model's memory is shared."""
        if isinstance(call.owner, v.Inst) or (
            isinstance(call.owner, v.Obj) and call.owner.api.startswith("torch.nn")
        ):
            self.models.append(Where(self.run, call.node, "share_memory"))

    @on_call(*PROCESSES)
    def process(self, call: CallEvent) -> None:
        """Processes are started."""
        self.processes = True

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        if self.run.entry is None or not self.processes:
            return
        for place in self.models:
            self.report(
                "DET211",
                place,
                "several processes update these parameters concurrently: the order of updates differs between runs",
                "use `DistributedDataParallel` or a single process",
                subject=place.subject,
            )


def _several_at_once(interp: RunView, node: Any) -> bool:
    """Whether a thread is made or started in a loop that does not wait for it. One alone draws in its own order."""
    function = enclosing_function(interp)
    if not interp.frame.jumps or function is None:
        return False
    above = parents(function)
    while node is not None and not isinstance(node, (m.For, m.While)):
        node = above.get(id(node))
    # The join of strings has an argument.
    return node is not None and not any(
        isinstance(one, m.Call) and called_name(one) == "join" and not one.args for one in nodes(node.body)
    )
