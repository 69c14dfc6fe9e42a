"""DET202, DET203, DET211, DET212: orders, epochs and workers of PyTorch loaders and process pools."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from d9mlint.base.findings import Severity, Step
from d9mlint.checks.base import Reporter, argument_node
from d9mlint.checks.data import GENERATOR_TYPES, what_is_drawn
from d9mlint.checks.order import enclosing_function
from d9mlint.interp import rng
from d9mlint.interp import values as v
from d9mlint.interp.context import NO_GRADIENT
from d9mlint.interp.data import is_entropy
from d9mlint.interp.heap import HEAP
from d9mlint.interp.library.loaders import LOADER
from d9mlint.interp.places import Where
from d9mlint.interp.rng import seed_value
from d9mlint.interp.state import SEEDED, UNSEEDED
from d9mlint.interp.text import call_text, node_text
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes, parents

if TYPE_CHECKING:
    from d9mlint.interp.hooks import CallEvent, Hooks
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import RngEntry

SAMPLERS = (
    "torch.utils.data.RandomSampler",
    "torch.utils.data.WeightedRandomSampler",
    "torch.utils.data.SubsetRandomSampler",
)
DISTRIBUTED_SAMPLER = "torch.utils.data.DistributedSampler"
# Libraries whose trainers call set_epoch themselves.
EPOCH_CALLERS = (
    "lightning",
    "pytorch_lightning",
    "accelerate",
    "transformers",
    "ignite",
)
PROCESSES = (
    "multiprocessing.Process",
    "torch.multiprocessing.Process",
    "torch.multiprocessing.spawn",
    "threading.Thread",
)


def register(hooks: Hooks, reporter: Reporter) -> None:
    """Listen to loaders, samplers and pools."""
    if reporter.on("DET202"):
        _generators(hooks, reporter)
    if reporter.on("DET203"):
        _epochs(hooks, reporter)
    if reporter.on("DET211"):
        _pools(hooks, reporter)
    if reporter.on("DET212"):
        _worker_init(hooks, reporter)


# -------------------------------------------------------------------------------------------- DET202


def _generators(hooks: Hooks, reporter: Reporter) -> None:
    def judge(interp: Interp, call: CallEvent, what: str) -> None:
        generator = call.args.kw.get("generator")
        if generator is not None and v.is_none(generator) is not True:
            return
        place = Where(interp, call.node, call.api)

        def later() -> None:
            level, option = interp.state.level("torch")[:2]
            if interp.entry is None or level not in (SEEDED, UNSEEDED):
                return
            seeded = level == SEEDED
            why = (
                "the shuffle order depends on every earlier random draw"
                if seeded
                else f"torch is seeded only if `{option}` is given, so by default the order differs between runs"
                if option
                else "torch is never seeded, so the order differs between runs"
            )
            reporter.report(
                interp,
                "DET202",
                place,
                f"`{what}` without `generator=`: {why}",
                "pass `generator=torch.Generator().manual_seed(0)`",
                subject=call.api,
                severity=Severity.ADVICE if seeded else Severity.ERROR,
                entry_wide=True,
            )

        interp.pending.append(later)

    @hooks.on_call(LOADER)
    def loader(interp: Interp, call: CallEvent) -> None:
        shuffle = call.args.get("shuffle", 2)
        if shuffle is not None and v.truth(shuffle) is True and not call.args.dstar:
            judge(interp, call, "DataLoader(shuffle=True)")

    @hooks.on_call(*SAMPLERS)
    def sampler(interp: Interp, call: CallEvent) -> None:
        judge(interp, call, call.api.rpartition(".")[2])


# -------------------------------------------------------------------------------------------- DET203


def _epochs(hooks: Hooks, reporter: Reporter) -> None:
    @hooks.on_call(DISTRIBUTED_SAMPLER)
    def made(interp: Interp, call: CallEvent) -> None:
        shuffle = call.args.get("shuffle", 3)
        if shuffle is not None and v.truth(shuffle) is not True:
            return
        if any(name in NO_GRADIENT for name in interp.contexts) or _evaluates(interp, call.node):
            # The order in which a model is evaluated changes nothing.
            return
        interp.notes.setdefault("distributed-samplers", []).append(Where(interp, call.node, call.api))

    @hooks.on_method("set_epoch")
    def set_epoch(interp: Interp, call: CallEvent) -> None:
        if not interp.uncertain:
            interp.notes["set-epoch"] = True

    def trainer(interp: Interp, call: CallEvent) -> None:
        head, _, rest = call.api.partition(".")
        if head in EPOCH_CALLERS and rest.rpartition(".")[2].endswith(_EPOCH_CALLS):
            # Importing such a library is not using it: its trainer is made, or its loader prepared.
            interp.notes["set-epoch"] = True

    hooks.any_call.append(trainer)

    def end(interp: Interp) -> None:
        if interp.entry is None or "set-epoch" in interp.notes or interp.exhausted:
            return
        for place in interp.notes.get("distributed-samplers", []):
            reporter.report(
                interp,
                "DET203",
                place,
                "`DistributedSampler` shuffles but `set_epoch()` is never called: every epoch uses the same order",
                "call `sampler.set_epoch(epoch)` at the start of each epoch",
                subject=place.subject,
            )

    hooks.ends.append(end)


_EPOCH_CALLS = (
    "Trainer",
    "Accelerator",
    "Fabric",
    "CLI",
    "Engine",
    "create_supervised_trainer",
    "auto_dataloader",
)
_EVALUATION = re.compile(r"(^|[._])(val|valid|validation|test|eval|dev)", re.IGNORECASE)


def _evaluates(interp: Interp, node: Any) -> bool:
    """Whether a sampler is made of, or kept as, something for evaluation, by name."""
    data = argument_node(node, "dataset", 0)
    names = [data.id] if isinstance(data, m.Name) else []
    stmt = interp.statement
    if isinstance(stmt, m.Assign):
        names += [t.id for t in stmt.targets if isinstance(t, m.Name)]
    return any(_EVALUATION.search(name) for name in names)


# -------------------------------------------------------------------------------------------- DET211

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


class RaceLog:
    """What a function draws that several workers run: from generators that were there before ``start``, or from
    global ones."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.places: list[Where] = []
        self.generators: set[str] = set()


def _pools(hooks: Hooks, reporter: Reporter) -> None:
    @hooks.on_method(*POOL_METHODS)
    def pool(interp: Interp, call: CallEvent) -> None:
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
        races(interp, call, func, f"the function passed to `{name}`", name)

    def races(interp: Interp, call: CallEvent, func: v.Value, what: str, name: str) -> None:
        log = RaceLog(HEAP.clock)
        drawn = what_is_drawn(interp, interp.frame, [func], log) & {"python", "numpy", "torch"}
        names = {"python": "`random`", "numpy": "`np.random`", "torch": "torch"}
        shared = [names[r] for r in sorted(drawn)] + sorted(f"`{one}`" for one in log.generators)
        if not shared:
            return
        place: Any = call.node
        if log.places:
            # The draws are what has to change; how they are reached is in the flow.
            place, *others = log.places
            here = Where(interp, call.node, name)
            more = [Step(*one.site, "draws here too") for one in others]
            place.flow = (*here.flow, Step(*here.site, f"`{name}` runs it here"), *more)
        reporter.report(
            interp,
            "DET211",
            place,
            f"{what} draws from {' and '.join(shared)}: draw order depends on thread scheduling",
            "give every item its own generator: `rng = np.random.default_rng([seed, index])`",
            subject=name,
        )

    def draws(interp: Interp, call: CallEvent) -> None:
        log = interp.notes.get("race-log")
        if not isinstance(log, RaceLog) or call.node is None:
            return
        owner = call.owner
        if isinstance(owner, v.Obj) and owner.type in GENERATOR_TYPES:
            shared = owner.birth <= log.start and call.api.rpartition(".")[2] not in _LOOKS
        else:
            shared = any(
                entry.draws and entry.kind not in ("init", "dropout") and rng.draws_now(call.args, entry)
                for entry in interp.kb.rng(call.api)
                if not {"own", "entropy"} & set(entry.draws)
            )
            owner = next(
                (x for x in call.args.kw.values() if isinstance(x, v.Obj) and x.type in GENERATOR_TYPES), None
            )
            if owner is not None:
                shared = owner.birth <= log.start
        if shared and len(log.places) < MOST_PLACES:
            place = Where(interp, call.node)
            if all(one.site != place.site for one in log.places):
                log.places.append(place)
            if owner is not None:
                text = node_text(call.node, call.api)
                log.generators.add(text.rpartition(".")[0] if call.owner is owner else "generator")

    hooks.any_call.append(draws)

    @hooks.on_call("threading.Thread")
    def thread(interp: Interp, call: CallEvent) -> None:
        func = call.args.get("target", 1)
        if _several_at_once(interp, call.node) and isinstance(func, (v.Func, v.Partial)):
            given = call.args.get("args", 3)
            rest = (
                v.Args(list(given.elts), star=given.open) if isinstance(given, v.Items) else v.Args(star=True)
            )
            races(interp, call, v.Partial(func, rest), "the function passed to `Thread`", "Thread")

    @hooks.on_method("start")
    def started(interp: Interp, call: CallEvent) -> None:
        if not isinstance(call.owner, v.Inst) or not _several_at_once(interp, call.node):
            return
        run = call.owner.cls.find("run")
        if "threading.Thread" in call.owner.cls.external_bases() and isinstance(run, v.Func):
            races(interp, call, run.bind(call.owner), "`run()` of this thread", "start")

    @hooks.on_method("share_memory")
    def shared(interp: Interp, call: CallEvent) -> None:
        if isinstance(call.owner, v.Inst) or (
            isinstance(call.owner, v.Obj) and call.owner.api.startswith("torch.nn")
        ):
            interp.notes.setdefault("shared-models", []).append(Where(interp, call.node, "share_memory"))

    @hooks.on_call(*PROCESSES)
    def process(interp: Interp, call: CallEvent) -> None:
        interp.notes["processes"] = True

    def end(interp: Interp) -> None:
        if interp.entry is None or "processes" not in interp.notes:
            return
        for place in interp.notes.get("shared-models", []):
            reporter.report(
                interp,
                "DET211",
                place,
                "several processes update these parameters concurrently: the order of updates differs between runs",
                "use `DistributedDataParallel` or a single process",
                subject=place.subject,
            )

    hooks.ends.append(end)


def _several_at_once(interp: Interp, node: Any) -> bool:
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


# -------------------------------------------------------------------------------------------- DET212


def _worker_init(hooks: Hooks, reporter: Reporter) -> None:
    @hooks.on_call(LOADER)
    def loader(interp: Interp, call: CallEvent) -> None:
        init = call.args.get("worker_init_fn", 9)
        if not isinstance(init, (v.Func, v.Partial)):
            return
        with interp.fork():
            interp.notes["in-worker-init"] = True
            interp.call(init, v.Args([v.Obj("worker id")]), None)

    def seeded(interp: Interp, entry: RngEntry, args: v.Args, node: Any, rngs: list[str]) -> None:
        if "in-worker-init" not in interp.notes:
            return
        value = seed_value(args, entry)
        if isinstance(value, v.Lit) and value.value is not None:
            text = "every worker gets the same seed"
        elif is_entropy(value) if value is not None else False:
            text = "the seed differs between runs"
        elif isinstance(value, v.Obj) and value.api == "torch.initial_seed" and "numpy" in rngs:
            text = "`torch.initial_seed()` has 64 bits but `np.random.seed` accepts 32: raises ValueError"
        else:
            return
        reporter.report(
            interp,
            "DET212",
            node,
            f"in `worker_init_fn`: {text}",
            "seed with `torch.initial_seed() % 2**32`, which differs by worker and epoch",
            subject=call_text_of(entry),
        )

    hooks.seeds.append(seeded)


def call_text_of(entry: RngEntry) -> str:
    """The name of a seeding API."""
    return entry.apis[0]


__all__ = ["call_text", "register"]
