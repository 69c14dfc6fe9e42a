"""DET201 and DET205: worker processes of loaders, and sharded tf.data pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.base.findings import Confidence, Severity
from d9mlint.checks.base import Reporter
from d9mlint.checks.seeds import LIBRARY_SEED
from d9mlint.interp import values as v
from d9mlint.interp.context import CPU_CONTEXT
from d9mlint.interp.library.loaders import LOADER, use
from d9mlint.interp.places import Where

if TYPE_CHECKING:
    from d9mlint.interp.hooks import CallEvent, Hooks
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import RngEntry

OWN_SEED = "own seed"
"""What is drawn from a generator that only an argument of its transform seeds."""
GENERATOR_TYPES = ("numpy.random.Generator", "numpy.random.RandomState", "random.Random")
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


def register(hooks: Hooks, reporter: Reporter) -> None:
    """Listen to loaders and shards."""
    if reporter.on("DET201"):

        @hooks.on_call(LOADER)
        def loader(interp: Interp, call: CallEvent) -> None:
            place = Where(interp, call.node, LOADER)
            frame, args = interp.frame, call.args
            interp.pending.append(lambda: _judge_loader(interp, reporter, place, frame, args))

    if reporter.on("DET205"):
        _shard(hooks, reporter)
    # What is drawn is asked by several rules, whichever of them are selected.
    hooks.any_draw.append(_record)
    hooks.any_call.append(_record_method)
    hooks.object_calls.append(_record_layer)


def _record_method(interp: Interp, call: CallEvent) -> None:
    log = interp.notes.get("draw-log")
    if log is not None and isinstance(call.owner, v.Obj) and call.owner.type in GENERATOR_TYPES:
        log.add("own")


def _record_layer(interp: Interp, obj: v.Obj, args: v.Args) -> None:
    """A Keras layer that draws keeps the state of its generator, with or without a seed."""
    log = interp.notes.get("draw-log")
    if log is None or not obj.api.startswith(("tf.keras.layers.", "keras.layers.")):
        return
    training = args.kw.get("training")
    active = v.truth(training) if training is not None else obj.api.rpartition(".")[2].startswith("Random")
    if active and any(entry.kind == "dropout" for entry in interp.kb.rng(obj.api)):
        log.add("keras")


def _record(interp: Interp, rng: str, entry: RngEntry) -> None:
    log = interp.notes.get("draw-log")
    # A model that is built draws its initial weights: that is nothing an item or a task depends on.
    if log is not None and entry.kind not in ("init", "dropout"):
        if rng == "own" and entry.kind == "augment" and any(test.arg == "seed" for test in entry.unless):
            # It has its own seed, without which DET106 reports it; nothing else reaches it.
            log.add(OWN_SEED)
            return
        other = rng == "own" and entry.kind in ("transform", "augment")
        library = rng in interp.kb.generators and interp.kb.generators[rng].rule == LIBRARY_SEED
        log.add("other" if other or library else rng)


def _judge_loader(interp: Interp, reporter: Reporter, place: Where, frame: Any, args: v.Args) -> None:
    workers = args.get("num_workers", 5)
    if workers is None or (isinstance(workers, v.Lit) and not workers.value):
        # Workers that an option would start are none by default.
        return
    init = args.get("worker_init_fn", 9)
    if init is not None and v.is_none(init) is not True:
        return
    if args.star or ("worker_init_fn" not in args.kw and args.dstar):
        return
    dataset = args.get("dataset", 0)
    drawn = what_is_drawn(interp, frame, [dataset, args.get("collate_fn")])
    # What is wrong with it is reported at the transform: `worker_init_fn` does not reach its generator.
    own_seed = OWN_SEED in drawn and drawn <= {OWN_SEED, "torch"}
    drawn.discard(OWN_SEED)
    visible = dataset is not None and is_visible(dataset)
    old_numpy = not interp.workers_seed_numpy()
    reasons: list[str] = []
    severity = Severity.WARNING
    if "numpy" in drawn and old_numpy:
        severity = Severity.ERROR
        reasons.append(
            "its dataset draws from `np.random`, and before torch 1.9 every worker starts with a copy of the same state"
        )
    if "own" in drawn:
        severity = Severity.ERROR
        reasons.append(
            "its dataset stores a generator, and every worker gets a copy that draws the same numbers"
        )
    if "other" in drawn:
        severity = Severity.ERROR
        reasons.append("its transforms use RNGs that are not seeded in worker processes")
    weak = sorted({"numpy": "`np.random`", "python": "`random`"}[r] for r in drawn & {"numpy", "python"})
    if not reasons and weak:
        reasons.append(
            f"its dataset draws from {' and '.join(weak)}; worker seeds depend on how many random "
            "numbers were drawn earlier"
        )
    confidence: Confidence | None = None
    if own_seed:
        severity = Severity.ADVICE
        reasons.append("its transform draws from its own generator, which only its `seed=` seeds")
    elif not reasons and visible:
        severity = Severity.ADVICE
        now = "only from torch, which seeds its workers" if "torch" in drawn else "no random numbers now"
        reasons.append(
            f"its dataset draws {now}; draws from NumPy or `random` that are added later would depend on "
            "every earlier draw"
        )
    elif not reasons:
        reasons.append("its dataset could not be resolved and may draw from NumPy or `random`")
        confidence = Confidence.MEDIUM
    generator = args.get("generator", 12)
    if (
        severity is not Severity.ERROR
        and generator is not None
        and v.is_none(generator) is not True
        and not old_numpy
    ):
        # A seeded generator= gives the base seed, and with it everything that workers reseed.
        return
    option = v.option_of(workers)
    count = _count_text(workers, option)
    target = interp.targets.version("torch") if interp.targets is not None else None
    reporter.report(
        interp,
        "DET201",
        place,
        f"`DataLoader` with {count} and no `worker_init_fn`: {reasons[0]}",
        "pass `seed=0` to the transform; `worker_init_fn` does not reach its generator"
        if own_seed
        else "pass `worker_init_fn=` that seeds NumPy, `random` and the dataset's generators from `torch.initial_seed()`, "
        "and a seeded `generator=`",
        subject=LOADER,
        severity=severity,
        confidence=confidence,
        targets=(f"torch {target.version}", target.source) if target is not None else (),
        remedy=() if own_seed else tuple(sorted(drawn)),
    )


def _count_text(workers: v.Value, option: str) -> str:
    if isinstance(workers, v.Lit) and isinstance(workers.value, int) and workers.value:
        return f"`num_workers={workers.value}`" + (f" (default of `{option}`)" if option else "")
    return f"workers (`{option}`)" if option else "worker processes"


def what_is_drawn(interp: Interp, frame: Any, parts: list[v.Value | None], races: Any = None) -> set[str]:
    """RNGs that a dataset and its helpers draw from when an item is made; ``own`` for kept generators,
    ``other`` for those of augmentation libraries. The state is as it was afterwards. ``races`` is for those who
    listen to the draws themselves."""
    log: set[str] = set()
    with interp.fork(frame=frame):
        interp.forget_seeds()
        interp.notes["draw-log"] = log
        interp.notes["race-log"] = races
        with interp.within(CPU_CONTEXT):
            for part in parts:
                if isinstance(part, (v.Func, v.Partial)):
                    interp.call(part, v.Args([v.UNKNOWN]), None)
                elif part is not None:
                    use(interp, part, None)
    return log


def is_visible(dataset: v.Value, depth: int = 0) -> bool:
    """Whether all code that makes an item is the project's own, or of libraries that draw nothing."""
    if depth > 5:
        return False
    if isinstance(dataset, v.Inst):
        return (
            dataset.cls.find("__getitem__") is not None
            or dataset.cls.find("__iter__") is not None
            or _quiet_bases(dataset)
        )
    if isinstance(dataset, v.Obj):
        if dataset.type == "torch.Tensor":
            return True
        if dataset.api.startswith("torch.utils.data."):
            # Wrappers of other datasets: as visible as what they wrap.
            return bool(dataset.args.pos or dataset.args.kw) and all(
                is_visible(a, depth + 1) for a in dataset.args.values()[:1]
            )
        if dataset.api.startswith(_QUIET_LIBRARIES):
            # Everything but paths and flags is a transform; those of the preparation do not run in workers.
            given = [*dataset.args.pos, *(x for k, x in dataset.args.kw.items() if not k.startswith("pre_"))]
            helpers = [a for a in given if isinstance(a, (v.Obj, v.Items, v.AnyOf))]
            hidden = dataset.args.kw.get("transform") is v.UNKNOWN or dataset.args.dstar
            return not hidden and all(_quiet_helper(a, depth + 1) for a in helpers)
        return False
    if isinstance(dataset, (v.Items, v.Mapping)):
        return True
    if isinstance(dataset, v.AnyOf):
        return all(is_visible(one, depth + 1) for one in dataset.values)
    return isinstance(dataset, v.Lit)


def _quiet_helper(value: v.Value, depth: int) -> bool:
    if isinstance(value, v.Obj) and not value.api.startswith(
        ("os.", "pathlib.", "builtins.", "?.", "str.", v.GIVEN)
    ):
        return is_visible(value, depth)
    if isinstance(value, v.AnyOf):
        return all(_quiet_helper(one, depth + 1) for one in value.values)
    if isinstance(value, v.Items):
        return all(_quiet_helper(one, depth + 1) for one in value.elts)
    return True


def _quiet_bases(inst: v.Inst) -> bool:
    bases = inst.cls.external_bases()
    return bool(bases) and all(base.startswith(_QUIET_LIBRARIES) for base in bases)


# -------------------------------------------------------------------------------------------- DET205


def _shard(hooks: Hooks, reporter: Reporter) -> None:
    @hooks.on_method("shard")
    def shard(interp: Interp, call: CallEvent) -> None:
        owner = call.owner
        known = isinstance(owner, v.Obj) and owner.type == "tf.data.Dataset"
        if isinstance(owner, v.Obj) and not known and not owner.type.startswith(("?", "tf.", "object")):
            return
        if isinstance(owner, (v.Inst, v.Cls, v.Super)) or (
            isinstance(owner, v.Obj) and owner.type.startswith("datasets")
        ):
            return
        if not known and (not interp.uses("tensorflow") or interp.uses("datasets")):
            return
        if not known and len(call.args.pos) + len(call.args.kw) < 2:
            return
        count = call.args.get("num_shards", 0)
        if isinstance(count, v.Lit) and count.value == 1:
            return
        old = interp.targets is not None and interp.targets.matches("tensorflow", "<2.2")
        target = interp.targets.version("tensorflow") if interp.targets is not None else None
        if old:
            text = "`Dataset.shard` was observed to be non-deterministic before TensorFlow 2.2"
        else:
            text = "elements selected by `Dataset.shard` depend on the upstream order"
        reporter.report(
            interp,
            "DET205",
            call.node,
            text + (f" (TensorFlow {target.version})" if target is not None else ""),
            "shard before any shuffle, and seed every `shuffle` and `list_files` upstream",
            subject="tf.data.Dataset.shard",
            severity=Severity.ERROR if old else Severity.WARNING,
            confidence=None if known else Confidence.MEDIUM,
            targets=(f"tensorflow {target.version}", target.source) if target is not None else (),
        )
