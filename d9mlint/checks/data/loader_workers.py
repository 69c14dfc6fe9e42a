"""DET201: worker processes of loaders, which have RNG states of their own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from d9mlint.base.entry_report import SEEDED_WORKERS
from d9mlint.base.findings import Confidence, Severity
from d9mlint.base.options import given_in_words
from d9mlint.checks.base import Rule, argument_node, seeded_generator
from d9mlint.checks.derivation import default
from d9mlint.checks.drawing import ITEM_SEED, KEPT, KeptGenerators, item_draws, seeded_at_start
from d9mlint.interp import values as v
from d9mlint.interp.activity import trains
from d9mlint.interp.containers import BASE
from d9mlint.interp.context import CPU_CONTEXT
from d9mlint.interp.device_names import given_option
from d9mlint.interp.events import CallEvent, IterationEvent, ResultEvent
from d9mlint.interp.given_instead import others
from d9mlint.interp.idle import is_idle
from d9mlint.interp.library.loaders import LOADER, is_seeded_before
from d9mlint.interp.listening import on, on_call, on_call_if
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.naming import for_others
from d9mlint.interp.places import Where
from d9mlint.interp.rng import GENERATOR_TYPES, valid
from d9mlint.interp.state import UNSEEDED, Rng, Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.switches import LIGHTNING_TRAINERS, SEEDED_BY_TRAINER
from d9mlint.interp.tensors import LOADING, loaded_by_call
from d9mlint.interp.usage import calls_unknown, flatten, handed_over, held
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from collections.abc import Callable

    from d9mlint.interp.frames import Frame
    from d9mlint.interp.view import RunView


# Datasets of libraries that draw nothing themselves; what their transforms draw is seen in their arguments.
_QUIET_LIBRARIES = (
    "torchvision.",
    "torch.utils.data.",
    "torchaudio.",
    "torchtext.",
    "datasets.",
    "torch_geometric.data.",
    "torch_geometric.datasets.",
    "ogb.",
)
# What holds its items: they are made before the workers start.
_CONTAINERS = (
    "builtins.list",
    "builtins.tuple",
    "builtins.dict",
    "builtins.sorted",
    "builtins.range",
    "numpy.",
)
_ARRAY = "values"
_GRAVE = {
    "numpy": "its dataset draws from `np.random`{when}, and before torch 1.9 every worker starts with a copy of the same "
    "state",
    "own": "its dataset stores a generator{when}, and every worker gets a copy that draws the same numbers",
    KEPT: "its transform keeps its own generator{when}, and every worker gets a copy that draws the same numbers",
    "other": "its transforms use RNGs{when} that are not seeded in worker processes",
}
"""What is wrong with the numbers of workers, by what is drawn from."""
_WEAK = {"numpy": "`np.random`", "python": "`random`"}
_SEEDS_WORKERS = "seeds-workers"


def _seeds_and_trains(run: RunView, api: str) -> bool:
    """Whether making an object of this class trains, and before that may set this mode."""
    return any(one.constructs for one in run.kb.runners(api)) and any(
        effect.name == SEEDED_BY_TRAINER for entry in run.kb.rng(api) for effect in entry.sets
    )


def _is_asked_by_trainer(run: RunView, frame: Frame | None) -> bool:
    """Whether code that no entry point reaches makes a loader in a method of a class whose methods a trainer of Lightning
    calls."""
    while run.entry is None and frame is not None:
        instance = frame.func.receiver if frame.func is not None else None
        for base in instance.cls.external_bases() if isinstance(instance, v.Inst) else ():
            hooks = run.kb.hooks(base)
            if hooks is not None and hooks.library == "lightning":
                return True
        frame = frame.caller
    return False


class LoaderWorkers(Rule):
    """DET201: worker processes of loaders, which have their own RNG states."""

    codes = ("DET201",)
    by_trainer = remembered(list[bool])
    """For each trainer that seeds the workers of its loaders."""
    set_up = remembered(set[Site])
    """Where loaders are made that get a function which seeds their workers later."""
    seeded_before = remembered_table(Site, bool)
    """For loaders that are iterated, whether torch is seeded each time before that."""
    by_command = remembered(bool)
    """Whether a trainer is made by what seeds first."""
    made_in_items = remembered(set[Site])
    """Where items make generators, with seeds that are not written there: the workers do not have the same ones."""

    @on_call(*LIGHTNING_TRAINERS)
    def trainer(self, call: CallEvent) -> None:
        """A trainer of Lightning is made, which gives its loaders a ``worker_init_fn`` where it is asked to."""
        if self.run.mode(SEEDED_BY_TRAINER).value:
            self.by_trainer.append(True)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, _SEEDS_WORKERS) is not None)
    def setup(self, call: CallEvent) -> None:
        """Loaders are given to what gives them a ``worker_init_fn`` where it is asked to."""
        if self.run.mode(SEEDED_BY_TRAINER).value:
            loaders = (one for one in handed_over(call.args) if isinstance(one, v.Obj) and one.type == LOADER)
            self.set_up.update(filter(None, map(made_at, loaders)))

    @on_call_if(lambda rule, api: _seeds_and_trains(rule.run, api))
    def command(self, call: CallEvent) -> None:
        """What seeds, makes its own trainer and trains is made: it asks the trainer for that itself."""
        self.by_command = True

    @on_call(LOADER)
    def loader(self, call: CallEvent) -> None:
        """A loader is made: judged when the program has ended."""
        if is_idle(self.run, call.node):
            return
        place = Where(self.run, call.node, LOADER)
        workers = call.args.get("num_workers", 5)
        if self.run.entry is None and workers is v.UNKNOWN:
            # Nobody is seen to ask for other workers than by default.
            known = default(self.run, argument_node(call.node, "num_workers", 5))
            workers = v.Lit(known) if isinstance(known, int) else workers
        idle, wanted = for_others(self.run, call.node), seeded_generator(self.run, LOADER)
        args = call.args
        declared = self._declared(argument_node(call.node, "dataset", 0))
        if declared is not None and args.get("dataset", 0) is v.UNKNOWN and not args.star:
            rest = {name: value for name, value in args.kw.items() if name != "dataset"}
            args = v.Args([declared, *args.pos[1:]], rest, args.star, args.dstar)
        made, seeds = self.run.state.level("torch"), self._seeds_items(call.node)
        unset, since = _unset(self.run, args.get("dataset", 0)), self.run.now
        judge = partial(
            self._judge, place, self.run.frame, args, workers, idle, wanted, made, seeds, unset, since
        )
        self.run.later(judge)

    @on(IterationEvent)
    def iterated(self, event: IterationEvent) -> None:
        """A loader is iterated."""
        found = is_seeded_before(event.value)
        if found is not None:
            self.seeded_before[found[0]] = found[1]

    @on(ResultEvent)
    def generator(self, event: ResultEvent) -> None:
        """A generator is made."""
        result = event.result
        if (
            not isinstance(result, v.Obj)
            or result.type not in GENERATOR_TYPES
            or CPU_CONTEXT not in self.run.contexts
        ):
            return
        site = made_at(result)
        if site is not None and not (result.args.values() and result.args.are_literals()):
            self.made_in_items.add(site)

    def _seeds_items(self, node: Any) -> frozenset[str]:
        """The generators that the loader of a library seeds from torch's, in workers with its own function."""
        made = self.run.value_of(node.func) if isinstance(node, m.Call) else None
        package = made.name.partition(".")[0] if isinstance(made, v.Ext) else ""
        entries = valid(self.run, self.run.kb.rng(LOADER), package)
        return frozenset(rng for one in entries if one.package for rng in one.seeds)

    def _declared(self, node: Any) -> v.Inst | None:
        """A dataset of the class of the project with which a class annotates one of its attributes."""
        if not isinstance(node, m.Name) or node.id.count(".") != 1:
            return None
        owner, _, name = node.id.partition(".")
        instance = self.run.value_of(m.Name(owner, node.start, node.end))
        for one in instance.cls.mro() if isinstance(instance, v.Inst) else ():
            for stmt in one.cls.body:
                target = stmt.target if isinstance(stmt, m.AnnAssign) else None
                if not isinstance(target, m.Name) or target.id != name or not isinstance(stmt, m.AnnAssign):
                    continue
                named = stmt.annotation.id if isinstance(stmt.annotation, m.Name) else ""
                cls = one.mod.env.vars.get(named)
                return v.Inst(cls) if isinstance(cls, v.Cls) else None
        return None

    def _judge(
        self,
        place: Where,
        frame: Frame,
        args: v.Args,
        workers: v.Value | None,
        idle: Callable[[], bool],
        wanted: tuple[str, tuple[str, ...]],
        made: Rng,
        seeds: frozenset[str],
        unset: list[tuple[v.Inst, str, v.Lit]],
        since: int,
    ) -> None:
        if idle():
            return
        if workers is None or (isinstance(workers, v.Lit) and not workers.value):
            # Workers that an option would start are none by default.
            return
        init = args.get("worker_init_fn", 9)
        reseeded: set[str] | None = None
        if init is not None and v.is_none(init) is not True:
            reseeded = seeded_at_start(self.run, init, frame)
            if reseeded is None or _WEAK.keys() <= reseeded:
                return
        if args.star or ("worker_init_fn" not in args.kw and args.dstar):
            return
        dataset = args.get("dataset", 0)
        never = (
            self.run.entry is not None
            and made.level == UNSEEDED
            and self.run.state.level("torch").level == UNSEEDED
            and not made.option
        )
        kept = KeptGenerators(self.run)
        parts = [dataset, args.get("collate_fn")]
        own = frozenset(self.made_in_items)
        found = item_draws(
            self.run, parts, kept, frame=frame, alone=True, seeded=seeds, made=own, unset=unset, since=since
        )
        drawn = found.drawn
        by_command = self.by_command and self.run.mode(SEEDED_BY_TRAINER).value
        by_trainer = bool(self.by_trainer) or place.site in self.set_up
        if (by_trainer or by_command) and not drawn & {"own", "other", KEPT}:
            return
        if seeds and not drawn - {"torch", ITEM_SEED}:
            return
        item_seed = ITEM_SEED in drawn
        drawn.discard(ITEM_SEED)
        if reseeded is not None:
            # The function seeds something else than what is drawn from, or nothing.
            drawn &= _WEAK.keys() - reseeded
            if not drawn:
                return
        visible = dataset is not None and is_visible(self.run, dataset)
        old_numpy = not self.run.workers_seed_numpy()

        def if_given(name: str) -> str:
            option = found.option(name)
            return f" when {given_in_words(option)}" if option not in ("", *place.given) else ""

        reasons: list[str] = []
        severity = Severity.WARNING
        # What is only drawn if an option is given comes after what always is.
        grave = sorted(
            (if_given(name), at, text.format(when=if_given(name)))
            for at, (name, text) in enumerate(_GRAVE.items())
            if name in drawn and (name != "numpy" or old_numpy)
        )
        if grave:
            severity = Severity.WARNING if grave[0][0] else Severity.ERROR
            reasons.append(grave[0][2])
        weak = sorted(f"{text}{if_given(name)}" for name, text in _WEAK.items() if name in drawn)
        if not reasons and weak:
            why = (
                "torch is never seeded, so worker seeds differ between runs"
                if never
                else "worker seeds depend on how many random numbers were drawn earlier"
            )
            reasons.append(f"its dataset draws from {' and from '.join(weak)}; {why}")
        confidence: Confidence | None = None
        if not reasons and visible:
            severity = Severity.ADVICE
            now = (
                "only from torch, which seeds its workers"
                if "torch" in drawn
                else "only from generators that it seeds itself"
                if item_seed
                else "nothing from global generators now"
            )
            unsure = not drawn and not item_seed
            libraries = " and ".join(f"`{name}`" for name in sorted(found.libraries))
            reasons.append(
                "its dataset calls what could not be resolved, which may draw from NumPy or `random`"
                if found.unknown and unsure
                else f"its dataset calls {libraries}, of which nothing is known and which may draw from NumPy or `random`"
                if libraries and unsure
                else f"its dataset draws {now}; draws from NumPy or `random` that are added later would depend on "
                "every earlier draw"
            )
        elif not reasons:
            if self.run.entry is None and not self._has_workers(workers):
                # A part of a library of which neither is known: whether it has workers, and what they would run.
                return
            reasons.append("its dataset could not be resolved and may draw from NumPy or `random`")
            confidence = Confidence.MEDIUM
            if self._only_reads(args):
                severity = Severity.ADVICE
        generator = args.get("generator", 12)
        if not grave and generator is not None and v.is_none(generator) is not True and not old_numpy:
            # A seeded generator= gives the base seed, and with it everything that workers reseed.
            return
        if not grave and not old_numpy and self.seeded_before.get(place.site):
            # So does a seed that is set each time before it is iterated.
            return
        given, words = wanted
        seeded = f"and {given}" if words else "and a seeded `generator=`"
        option = given_option(v.option_of(workers))
        sure = bool(option) or self._has_workers(workers)
        having = (
            f"with {_count_text(workers, option)} and no"
            if sure
            else "that may have worker processes and has no"
        )
        lacking = "`worker_init_fn`"
        if reseeded is not None:
            having = having.removesuffix(" no").removesuffix(" has") + (" a" if sure else " has a")
            lacking += f" that does not seed {' and '.join(_WEAK[name] for name in sorted(drawn))}"
        target = self.run.targets.version("torch") if self.run.targets is not None else None
        self.report(
            "DET201",
            place,
            f"`DataLoader` {having} {lacking}: {reasons[0]}",
            f"pass `worker_init_fn=` that calls `{min(kept.methods)}(torch.initial_seed() % 2**32)` of the transform in "
            f"`torch.utils.data.get_worker_info().dataset`, {seeded}"
            if KEPT in drawn
            else f"seed {' and '.join(_WEAK[name] for name in sorted(drawn))} in it from `torch.initial_seed()`, {seeded}"
            if reseeded is not None
            else "pass `worker_init_fn=` that seeds NumPy, `random` and the dataset's generators from "
            f"`torch.initial_seed()`, {seeded}",
            subject=LOADER,
            severity=severity,
            confidence=confidence,
            targets=(f"torch {target.version}", target.source) if target is not None else (),
            remedy=(*sorted(drawn), *words),
            unless=SEEDED_WORKERS
            if not drawn & {"own", "other", KEPT} and _is_asked_by_trainer(self.run, frame)
            else "",
        )

    def _only_reads(self, args: v.Args) -> bool:
        """Whether a program that does not train reads a dataset in its order: what augments or samples is for training."""
        order = [args.get(name, at) for name, at in (("shuffle", 2), ("sampler", 3), ("batch_sampler", 4))]
        return (
            self.run.entry is not None
            and not args.dstar
            and all(one is None or v.truth(one) is False for one in order)
            and not trains(self.run)
        )

    def _has_workers(self, workers: v.Value) -> bool:
        """Whether a number of workers is known not to be the default of zero: it is written, or that of the processors."""
        return isinstance(workers, v.Lit) or (
            isinstance(workers, v.Obj) and self.run.kb.role(workers.api, "processor-count") is not None
        )


def _unset(run: RunView, dataset: v.Value | None) -> list[tuple[v.Inst, str, v.Lit]]:
    """The attributes of a dataset, or of those that it is made of, that say that something is still to be done."""
    given = flatten(dataset) if dataset is not None else []
    given += [one.value for meant in given for one in others(run, meant)]
    given += [
        one for part in given if isinstance(part, v.Obj) for held in part.args.pos for one in flatten(held)
    ]
    return [
        (one, name, value)
        for one in given
        if isinstance(one, v.Inst)
        for name, value in list(one.attrs.items())
        if isinstance(value, v.Lit) and value.value is False
    ]


def _count_text(workers: v.Value, option: str) -> str:
    if isinstance(workers, v.Lit) and isinstance(workers.value, int) and workers.value:
        return f"`num_workers={workers.value}`" + (f" (default of `{option}`)" if option else "")
    return f"workers (`{option}`)" if option else "worker processes"


def is_visible(run: RunView, dataset: v.Value, depth: int = 0) -> bool:
    """Whether all code that makes an item is the project's own, or of libraries that draw nothing."""
    if depth > 5:
        return False
    if isinstance(dataset, v.Inst):
        return (
            dataset.cls.find("__getitem__") is not None
            or dataset.cls.find("__iter__") is not None
            or (_quiet_bases(dataset) and not _has_hidden(run, dataset.attrs.get(BASE), depth))
        )
    if isinstance(dataset, v.Obj):
        if dataset.type == "torch.Tensor" or dataset.api.startswith(_CONTAINERS):
            return True
        if _has_hidden(run, dataset, depth):
            return False
        if dataset.api.startswith("torch.utils.data."):
            # Wrappers of other datasets: as visible as what they wrap.
            return bool(dataset.args.pos or dataset.args.kw) and all(
                is_visible(run, a, depth + 1) for a in dataset.args.values()[:1]
            )
        quiet = dataset.api.startswith(_QUIET_LIBRARIES) or _is_augmentation(run, dataset.api)
        if quiet or run.kb.role(dataset.api, "quiet-datasets") is not None:
            # Everything but paths and flags is a transform; those of the preparation do not run in workers.
            args = held(run, dataset)
            given = [*args.pos, *(x for k, x in args.kw.items() if not k.startswith("pre_"))]
            helpers = [a for a in given if isinstance(a, (v.Obj, v.Items, v.AnyOf))]
            hidden = args.kw.get("transform") is v.UNKNOWN or args.dstar or calls_unknown(run, dataset)
            return not hidden and all(_quiet_helper(run, a, depth + 1) for a in helpers)
        return False
    if isinstance(dataset, (v.Items, v.Mapping)):
        return True
    if isinstance(dataset, v.Member):
        # The array of a column, of whatever table.
        return dataset.name == _ARRAY
    if isinstance(dataset, v.AnyOf):
        # What a file holds where the program else makes the dataset is what an earlier run has made so.
        made = [one for one in dataset.values if not _is_read_back(run, one)]
        known = made if any(isinstance(one, (v.Inst, v.Obj)) for one in made) else dataset.values
        return all(is_visible(run, one, depth + 1) for one in known)
    return isinstance(dataset, v.Lit)


def _is_read_back(run: RunView, value: v.Value) -> bool:
    """Whether a value is what was loaded from a file, or an item of it."""
    if not isinstance(value, v.Obj):
        return False
    api = loaded_by_call(value) or value.api
    return api in LOADING or run.kb.role(api, "reads-data") is not None


def _quiet_helper(run: RunView, value: v.Value, depth: int) -> bool:
    if isinstance(value, v.Obj) and not value.api.startswith(
        ("os.", "pathlib.", "builtins.", "?.", "str.", v.GIVEN)
    ):
        return is_visible(run, value, depth)
    if isinstance(value, v.AnyOf):
        return all(_quiet_helper(run, one, depth + 1) for one in value.values)
    if isinstance(value, v.Items):
        return all(_quiet_helper(run, one, depth + 1) for one in value.elts)
    return True


def _is_augmentation(run: RunView, api: str) -> bool:
    """Whether it is known from which generators a transform draws where it is used: from no others."""
    return any(entry.kind == "augment" and entry.at == "use" for entry in run.kb.rng(api))


def _has_hidden(run: RunView, dataset: v.Value | None, depth: int) -> bool:
    """Whether a dataset gives the items of several others, of which one is not known."""
    if not isinstance(dataset, v.Obj) or run.kb.role(dataset.api, "takes-several") is None:
        return False
    several = next(iter(dataset.args.values()), None)
    return isinstance(several, v.Items) and not all(is_visible(run, one, depth + 1) for one in several.elts)


def _quiet_bases(inst: v.Inst) -> bool:
    bases = inst.cls.external_bases()
    return bool(bases) and all(base.startswith(_QUIET_LIBRARIES) for base in bases)
