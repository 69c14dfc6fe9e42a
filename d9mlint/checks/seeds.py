"""DET101-DET112: what is drawn before, without or beside a seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.checks import generators
from d9mlint.checks.activity import LOADS, PRODUCES, SAVES, trains, where
from d9mlint.checks.base import Reporter, Where, argument_node, scope
from d9mlint.checks.text import node_text
from d9mlint.facts import model as m
from d9mlint.findings import Confidence, Severity
from d9mlint.program import values as v
from d9mlint.program.data import is_entropy
from d9mlint.program.rng import seed_value
from d9mlint.program.state import SEEDED, UNSEEDED, Rng

if TYPE_CHECKING:
    from d9mlint.knowledge.model import RngEntry
    from d9mlint.program.hooks import CallEvent, Hooks
    from d9mlint.program.interp import Interp

MISSING = {
    "torch": "DET101",
    "torch_cuda": "DET101",
    "numpy": "DET102",
    "python": "DET103",
    "tensorflow": "DET104",
    "keras": "DET104",
}
NAMES = {
    "torch": "torch",
    "torch_cuda": "torch CUDA",
    "numpy": "NumPy",
    "python": "Python `random`",
    "tensorflow": "TensorFlow",
    "keras": "Keras",
    "cupy": "CuPy",
}
SEED_CALLS = {
    "torch": "torch.manual_seed(seed)",
    "torch_cuda": "torch.manual_seed(seed)",
    "numpy": "numpy.random.seed(seed)",
    "python": "random.seed(seed)",
    "tensorflow": "tf.random.set_seed(seed)",
    "keras": "keras.utils.set_random_seed(seed)",
}
# Draws whose outcome is overwritten when a program only loads weights and evaluates.
_TRAINING_ONLY = frozenset({"init", "dropout", "shuffle", "transform", "sampler"})


def register(hooks: Hooks, reporter: Reporter) -> None:
    """Listen to draws and seeds."""
    check = _Seeds(reporter)
    hooks.draws.append(check.drawn)
    hooks.seeds.append(check.seeded)
    hooks.ends.append(check.end)
    hooks.env.append(check.environment)
    generators.register(hooks, reporter)

    @hooks.on_call("torch.cuda.manual_seed", "torch.cuda.manual_seed_all")
    def cuda_seed(it: Interp, call: CallEvent) -> None:
        key = (id(it.frame.env), _argument_key(call))
        it.scratch.setdefault("cuda-seeds", []).append((key, Where(it, call.node, call.api)))

    @hooks.on_call("torch.utils.data.random_split")
    def split(it: Interp, call: CallEvent) -> None:
        level = it.state.level("torch").level
        if call.args.get("generator", 2) is None and level in (SEEDED, UNSEEDED):
            seeded = level == SEEDED
            reporter.report(
                it,
                "DET109",
                call.node,
                "random_split without generator=: which elements go where "
                + (
                    "hangs on everything drawn before"
                    if seeded
                    else "differs in every run, as torch is unseeded"
                ),
                "pass `generator=torch.Generator().manual_seed(0)`",
                subject=call.api,
                severity=Severity.ADVICE if seeded else Severity.WARNING,
                entry_wide=True,
            )

    @hooks.on_call("torch.manual_seed", "torch.random.manual_seed")
    def torch_seed(it: Interp, call: CallEvent) -> None:
        it.scratch.setdefault("torch-seeds", set()).add((id(it.frame.env), _argument_key(call)))
        it.scratch.setdefault("keep", []).append(it.frame.env)


class _Seeds:
    """Collects per run; decides at the end of the entry point, when it is known what the program does."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter

    def drawn(self, it: Interp, rng: str, level: Rng, entry: RngEntry, node: Any) -> None:
        """An unseeded RNG is drawn from."""
        if entry.kind == "split":
            self._split(it, rng, level, entry, node)
            return
        if entry.kind == "tf-shuffle":
            self._tf_shuffle(it, entry, node)
            return
        weak: bool | str = entry.kind in _TRAINING_ONLY or _initialises(it, entry, node)
        if it.guessing:
            weak = "guess"
        elif it.state.aside:
            weak = "aside"
        key = ("first-draw", rng, weak)
        place = it.scratch.get(key)
        if place is None:
            place = Where(it, node, rng, level.option)
            it.scratch[key] = place
            it.scratch[("draw-api", rng, weak)] = node_text(node, entry.apis[0])
            it.scratch[("draw-kind", rng, weak)] = entry.kind
        if not it.guessing:
            it.state.flags.setdefault(f"unseeded:{rng}", place)

    def _split(self, it: Interp, rng: str, level: Rng, entry: RngEntry, node: Any) -> None:
        api = node_text(node, entry.apis[0])
        argument = entry.unless[0].arg if entry.unless else "random_state"
        seeding = SEED_CALLS.get(rng, "a seed")
        aside = it.state.aside
        when = f"when `{aside}` is given" if aside else "in every run"
        self.reporter.report(
            it,
            "DET109",
            node,
            f"`{api}` splits or samples differently {when}: no `{argument}`, and no {NAMES.get(rng, rng)} seed before",
            f"pass `{argument}=0`, or call `{seeding}` first",
            subject=api,
            severity=Severity.WARNING if level.option or aside else None,
            entry_wide=True,
        )

    def _tf_shuffle(self, it: Interp, entry: RngEntry, node: Any) -> None:
        name = entry.apis[0].rpartition(".")[2]
        what = "shuffles by default" if name == "list_files" else "shuffles"
        self.reporter.report(
            it,
            "DET207",
            node,
            f"`{name}` {what}, without a seed and without a global TensorFlow seed before: another order in every run",
            "pass `seed=0`, or call `tf.random.set_seed(0)` first",
            subject=f"tf.data.Dataset.{name}",
            entry_wide=True,
        )

    def seeded(self, it: Interp, entry: RngEntry, args: v.Args, node: Any, rngs: list[str]) -> None:
        """A seeding call: its seed may differ from run to run, and it may come too late."""
        if "in-worker-init" in it.scratch:
            return
        value = seed_value(args, entry)
        if self._bad_seed(it, entry, value, args, node):
            for rng in rngs:
                it.scratch[("bad-seed", rng)] = True
            return
        for rng in rngs:
            place = it.state.flags.get(f"unseeded:{rng}")
            if isinstance(place, Where) and it.state.level(rng).level != SEEDED and it.entry is not None:
                late = it.scratch.setdefault("late", {})
                late.setdefault(rng, (Where(it, node, rng), place, it.state.aside))

    def _bad_seed(self, it: Interp, entry: RngEntry, value: v.Value | None, args: v.Args, node: Any) -> bool:
        api = node_text(node, entry.apis[0])
        if entry.kind == "anti-seed":
            self.reporter.report(
                it,
                "DET107",
                node,
                f"`{api}` draws a fresh random seed: every run gets another one",
                "use `manual_seed(0)` or another fixed number" if "torch" in api else "pass a fixed number",
                subject=api,
            )
            return True
        source = entropy_source(value)
        if source is not None:
            place = _source_place(it, source, node)
            self.reporter.report(
                it,
                "DET107",
                place,
                f"the seed given to `{api}` comes from `{source.api}`: it is another one in every run",
                "use a fixed number, or record the seed and allow it to be set by an option",
                subject=source.api,
            )
            _forgive_draw(it, place.site)
            return True
        if value is not None and v.is_none(value) and entry.none_seed == "entropy":
            option = v.option_of(value)
            why = f" by default (`{option}` is None)" if option else ""
            self.reporter.report(
                it,
                "DET107",
                node,
                f"`{api}` without a seed{why} takes one from the operating system: it is another one in every run",
                f"give `{option}` a number as its default" if option else "pass a fixed number",
                subject=api,
                severity=Severity.WARNING if option else None,
            )
            return True
        return False

    def end(self, it: Interp) -> None:
        """The program has ended: report what was drawn without a seed, and seeds that came too late."""
        self._redundant(it)
        if it.entry is None:
            return
        late: dict[str, tuple[Where, Where, str]] = it.scratch.get("late", {})
        training = trains(it)
        for rng, (place, draw, aside) in sorted(late.items()):
            loaded = where(it, LOADS) is not None
            if aside or (not training and loaded and it.scratch.get(("first-draw", rng, False)) is None):
                continue
            api = it.scratch.get(("draw-api", rng, True)) or it.scratch.get(("draw-api", rng, False)) or ""
            message = f"this {NAMES.get(rng, rng)} seed comes too late: `{api}` has drawn before it"
            steps = (*draw.flow, _draw_step(draw, api))
            place.flow = steps + place.flow
            self.reporter.report(
                it, "DET108", place, message, "move the seed to the start of the program", subject=rng
            )
        for rng, code in MISSING.items():
            if rng in late and not late[rng][2]:
                continue
            self._missing(it, rng, code, training)

    def _missing(self, it: Interp, rng: str, code: str, training: bool) -> None:
        strong: Where | None = it.scratch.get(("first-draw", rng, False))
        weak: Where | None = it.scratch.get(("first-draw", rng, True))
        imported = it.entry is not None and it.entry.path in it.imported_files
        place: Where | None
        if training:
            places = [p for p in (weak, strong) if p is not None]
            place = (
                min(places, key=lambda p: p.order) if places else it.scratch.get(("first-draw", rng, "aside"))
            )
        else:
            # Initial weights that are overwritten by loaded ones do not matter to a program that only evaluates.
            place = strong or (weak if where(it, LOADS) is None and not imported else None)
        if place is None:
            return
        confidence = None
        # A module's own smoke test, or a program that leaves nothing behind: nobody compares two runs of it.
        if imported and where(it, SAVES) is None:
            confidence = Confidence.LOW
        initial = place is weak and it.scratch[("draw-kind", rng, True)] not in (
            "transform",
            "shuffle",
            "sampler",
        )
        if not training and (imported or initial or where(it, PRODUCES) is None):
            # Initial weights that are never trained are as a rule overwritten by loaded or converted ones.
            confidence = Confidence.LOW
        severity: Severity | None = None
        api = it.scratch[("draw-api", rng, True if place is weak else False if place is strong else "aside")]
        seed = SEED_CALLS[rng]
        if place is not weak and place is not strong:
            message = f"no {NAMES[rng]} seed is set before `{api}`, which runs when `{place.aside}` is given"
            help = f"call `{seed}` at the start of {place.entry}"
            severity = Severity.WARNING
        elif place.option:
            message = (
                f"no {NAMES[rng]} seed by default before `{api}`: it is set only if `{place.option}` is given"
            )
            help = f"give `{place.option}` a default value"
            severity = Severity.WARNING
        else:
            message = f"no {NAMES[rng]} seed is set before `{api}` when {place.entry} runs"
            help = f"call `{seed}` at the start of {place.entry}"
        self.reporter.report(
            it,
            code,
            place,
            message,
            help,
            subject=rng,
            severity=severity,
            confidence=confidence,
            entry_wide=True,
        )

    def environment(self, it: Interp, name: str, value: v.Value, node: Any) -> None:
        """DET105: PYTHONHASHSEED is read when the interpreter starts."""
        if name != "PYTHONHASHSEED" or not self.reporter.on("DET105"):
            return
        it.scratch.setdefault("hashseed", []).append(Where(it, node, name))
        if it.entry is None:
            self._hash_seed(it)

    def _hash_seed(self, it: Interp) -> None:
        for place in it.scratch.pop("hashseed", []):
            if ("where", "exec") in it.scratch:
                continue
            self.reporter.report(
                it,
                "DET105",
                place,
                "PYTHONHASHSEED is set inside the running process: it was read when the interpreter started",
                "set it in the shell (`PYTHONHASHSEED=0 python ...`), and sort sets of strings before their order shows",
                subject="PYTHONHASHSEED",
            )

    def _redundant(self, it: Interp) -> None:
        self._hash_seed(it)
        beside: set[Any] = it.scratch.get("torch-seeds", set())
        for key, place in it.scratch.get("cuda-seeds", []):
            if key in beside:
                self.reporter.report(
                    it,
                    "DET112",
                    place,
                    f"`{place.subject}` beside `torch.manual_seed`, which seeds every GPU already",
                    "remove it",
                    subject=place.subject,
                )


def _initialises(it: Interp, entry: RngEntry, node: Any) -> bool:
    """Whether a draw makes parameters: inside a constructor, ``self.weight.data.uniform_()``, ``init_weights``."""
    if entry.kind != "draw" or entry.library != "torch":
        return False
    name = scope(it).rpartition(".")[2].lower()
    if name == "__init__":
        return True
    if entry.id != "torch.inplace":
        return False
    text = node_text(node, "").lower()
    return (
        any(word in text for word in ("weight", "bias", "param"))
        or "init" in name
        or "reset_param" in name
        or name.endswith("_")
    )


def _argument_key(call: CallEvent) -> str:
    """What a seeding call is given, as written: another seed for the devices is no repetition."""
    node = argument_node(call.node, "seed", 0)
    if isinstance(node, m.Name):
        return node.id
    return repr(node.value) if isinstance(node, m.Const) else type(node).__name__


def entropy_source(value: v.Value | None) -> v.Obj | None:
    """The call that makes a seed differ from run to run, if one does."""
    if value is None:
        return None
    for one in v.alternatives(value):
        if isinstance(one, v.Obj) and is_entropy(one):
            return one
    return None


def _source_place(it: Interp, source: v.Obj, node: Any) -> Where:
    place = Where(it, node)
    if source.node is not None and source.file is not None:
        from d9mlint.program.state import Site

        place.site = Site(source.file.path, source.node.start, source.node.end)
    return place


def _forgive_draw(it: Interp, site: Any) -> None:
    """A draw that only makes a seed is told once, as a seed that differs."""
    for key in [k for k in it.scratch if isinstance(k, tuple) and k and k[0] == "first-draw"]:
        place = it.scratch[key]
        if isinstance(place, Where) and place.site == site:
            del it.scratch[key]
    for name in [n for n, p in it.state.flags.items() if isinstance(p, Where) and p.site == site]:
        del it.state.flags[name]


def _draw_step(place: Where, api: str) -> Any:
    from d9mlint.findings import Step

    return Step(place.site.path, place.site.start, place.site.end, f"`{api}` draws here, before the seed")
