"""DET101-DET112: what is drawn before, without or beside a seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.base.findings import Confidence, Severity
from d9mlint.checks import generators
from d9mlint.checks.base import Reporter, argument_node, silent
from d9mlint.interp import values as v
from d9mlint.interp.activity import LOADS, SAVES, trains, where
from d9mlint.interp.context import TRAINING_CONTEXT
from d9mlint.interp.data import is_entropy
from d9mlint.interp.places import Where, scope
from d9mlint.interp.rng import seed_value
from d9mlint.interp.state import SEEDED, UNSEEDED, Rng, Site
from d9mlint.interp.text import node_text
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.hooks import CallEvent, Hooks
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import GeneratorEntry, RngEntry

LIBRARY_SEED = "DET113"
"""The rule of generators that libraries keep for themselves."""
MOST_DRAWS = 6
"""So many draws before a seed are listed."""
# Draws whose outcome is overwritten when a program only loads weights and evaluates.
_TRAINING_ONLY = frozenset({"init", "dropout", "shuffle", "transform", "sampler"})


def register(hooks: Hooks, reporter: Reporter) -> None:
    """Listen to draws and seeds."""
    check = _Seeds(reporter)
    hooks.draws.append(check.drawn)
    hooks.seeds.append(check.seeded)
    hooks.doubtful_draws.append(check.doubtful)
    hooks.late_seeds.append(check.late_seed)
    hooks.ends.append(check.end)
    hooks.env.append(check.environment)
    generators.register(hooks, reporter)

    @hooks.on_call("torch.cuda.manual_seed", "torch.cuda.manual_seed_all")
    def cuda_seed(interp: Interp, call: CallEvent) -> None:
        key = (interp.frame.env, _argument_key(call))
        interp.notes.setdefault("cuda-seeds", []).append((key, Where(interp, call.node, call.api)))

    @hooks.on_call("torch.utils.data.random_split")
    def split(interp: Interp, call: CallEvent) -> None:
        level = interp.state.level("torch").level
        if call.args.get("generator", 2) is None and level in (SEEDED, UNSEEDED):
            seeded = level == SEEDED
            reporter.report(
                interp,
                "DET109",
                call.node,
                "`random_split` without `generator=`: the split "
                + (
                    "depends on every earlier random draw"
                    if seeded
                    else "differs between runs because torch is not seeded"
                ),
                "pass `generator=torch.Generator().manual_seed(0)`",
                subject=call.api,
                severity=Severity.ADVICE if seeded else Severity.WARNING,
                entry_wide=True,
            )

    @hooks.on_call("torch.manual_seed", "torch.random.manual_seed")
    def torch_seed(interp: Interp, call: CallEvent) -> None:
        interp.notes.setdefault("torch-seeds", set()).add((interp.frame.env, _argument_key(call)))


class Late(NamedTuple):
    """A seed that is set after a draw: its place and text, whether it is a call that can be moved, the first draw,
    all draws that came before with their texts, and the option without which it is not set."""

    place: Where
    text: str
    movable: bool
    draw: Where
    draws: tuple[tuple[Where, str, Any], ...]
    aside: str


class _Seeds:
    """Collects per run; decides at the end of the entry point, when it is known what the program does."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter

    def drawn(self, interp: Interp, rng: str, level: Rng, entry: RngEntry, node: Any) -> None:
        """An unseeded RNG is drawn from."""
        if entry.kind == "split":
            self._split(interp, rng, level, entry, node)
            return
        if entry.kind == "tf-shuffle":
            self._tf_shuffle(interp, entry, node)
            return
        if entry.kind == "sampling":
            self._sampling(interp, rng, level, entry, node)
            return
        weak: bool | str = entry.kind in _TRAINING_ONLY or _initialises(interp, entry, node)
        if entry.kind == "dropout" and TRAINING_CONTEXT in interp.contexts:
            weak = False
        if interp.guessing:
            weak = "guess"
        elif interp.state.aside:
            weak = "aside"
        key = ("first-draw", rng, weak)
        place = interp.notes.get(key)
        if place is None:
            place = Where(interp, node, rng, level.option)
            interp.notes[key] = place
            interp.notes[("draw-api", rng, weak)] = node_text(node, entry.apis[0])
            interp.notes[("draw-kind", rng, weak)] = entry.kind
        if not interp.guessing:
            interp.state.flags.setdefault(f"unseeded:{rng}", place)
            early = interp.notes.setdefault(("early-draws", rng), [])
            if len(early) < MOST_DRAWS and all(one.site != interp.here(node) for one, _, _ in early):
                here = place if place.site == interp.here(node) else Where(interp, node, rng, level.option)
                early.append((here, node_text(node, entry.apis[0]), weak))

    def doubtful(self, interp: Interp, rng: str, level: Rng, entry: RngEntry, node: Any) -> None:
        """An RNG is drawn from that a helper may have seeded of which only the name is known."""
        generator = interp.kb.generators[rng]
        key = ("doubtful", rng)
        if interp.guessing or interp.notes.get(key) is not None or generator.rule == LIBRARY_SEED:
            return
        interp.notes[key] = True
        self.reporter.report(
            interp,
            generator.rule,
            node,
            f"`{node_text(node, entry.apis[0])}` draws random numbers: whether `{level.helper}` seeds "
            f"{generator.title} could not be determined",
            f"call `{generator.seed}` in the program itself, or lint it together with the source of `{level.helper}`",
            subject=rng,
            severity=Severity.ADVICE,
            entry_wide=True,
        )

    def _split(self, interp: Interp, rng: str, level: Rng, entry: RngEntry, node: Any) -> None:
        api = node_text(node, entry.apis[0])
        argument = entry.unless[0].arg if entry.unless else "random_state"
        generator = interp.kb.generators[rng]
        aside = interp.state.aside
        when = f" when `{aside}` is given" if aside else ""
        self.reporter.report(
            interp,
            "DET109",
            node,
            f"`{api}` without `{argument}=` and without a {generator.title} seed: the result differs between runs{when}",
            f"pass `{argument}=0`, or call `{generator.seed}` first",
            subject=api,
            severity=Severity.WARNING if level.option or aside else None,
            entry_wide=True,
            remedy=(argument, "0"),
        )

    def _sampling(self, interp: Interp, rng: str, level: Rng, entry: RngEntry, node: Any) -> None:
        generator = interp.kb.generators[rng]
        what = entry.why or "what is sampled differs between runs"
        unless = f", unless `{level.option}` is given" if level.option else ""
        own = next((test.arg for test in entry.unless if test.given is True), "")
        self.reporter.report(
            interp,
            "DET701",
            node,
            f"`{node_text(node, entry.apis[0])}` draws before {generator.title} is seeded{unless}: {what}",
            f"pass `{own}=`, or call `{generator.seed}` first" if own else f"call `{generator.seed}` first",
            subject=entry.apis[0].rpartition(".")[2],
            severity=Severity.WARNING if level.option else None,
            entry_wide=True,
            remedy=("rng", rng),
        )

    def _tf_shuffle(self, interp: Interp, entry: RngEntry, node: Any) -> None:
        name = entry.apis[0].rpartition(".")[2]
        what = " (shuffles by default)" if name == "list_files" else ""
        self.reporter.report(
            interp,
            "DET207",
            node,
            f"`{name}`{what} without `seed=` and without a global TensorFlow seed: the order differs between runs",
            "pass `seed=0`, or call `tf.random.set_seed(0)` first",
            subject=f"tf.data.Dataset.{name}",
            entry_wide=True,
        )

    def seeded(self, interp: Interp, entry: RngEntry, args: v.Args, node: Any, rngs: list[str]) -> None:
        """A seeding call: its seed may differ from run to run, and it may follow a draw."""
        if "in-worker-init" in interp.notes:
            return
        value = seed_value(args, entry)
        if self._bad_seed(interp, entry, value, args, node):
            for rng in rngs:
                interp.notes[("bad-seed", rng)] = True
            return
        for rng in rngs:
            place = interp.state.flags.get(f"unseeded:{rng}")
            if (
                isinstance(place, Where)
                and interp.state.level(rng).level != SEEDED
                and interp.entry is not None
            ):
                late = interp.notes.setdefault("late", {})
                early = interp.notes.get(("early-draws", rng), [])
                seed = Late(
                    Where(interp, node, rng),
                    node_text(node, entry.apis[0]),
                    entry.kind == "seeder" and bool(entry.seed_arg or entry.seed_pos is not None),
                    place,
                    tuple(early),
                    interp.state.aside,
                )
                late.setdefault(rng, seed)

    def late_seed(self, interp: Interp, rng: str, entry: RngEntry, node: Any, site: Site) -> None:
        """A default argument is used that was drawn before a seed that has been set since."""
        draw = interp.state.flags.pop(f"unseeded:{rng}", None)
        if isinstance(draw, Where):
            seed = Where(interp, node, rng)
            seed.site = site
            early = ((draw, node_text(node, entry.apis[0]), False),)
            late = interp.notes.setdefault("late", {})
            late.setdefault(rng, Late(seed, "", True, draw, early, interp.state.aside))

    def _bad_seed(
        self, interp: Interp, entry: RngEntry, value: v.Value | None, args: v.Args, node: Any
    ) -> bool:
        api = node_text(node, entry.apis[0])
        if entry.kind == "anti-seed":
            self.reporter.report(
                interp,
                "DET107",
                node,
                f"`{api}` draws a new random seed in every run",
                "use `manual_seed(0)` or another fixed number" if "torch" in api else "pass a fixed number",
                subject=api,
                remedy=("anti-seed",),
            )
            return True
        source = entropy_source(value)
        if source is not None:
            place = _source_place(interp, source, node)
            self.reporter.report(
                interp,
                "DET107",
                place,
                f"`{api}` is seeded from `{source.api}`, which changes every run",
                "use a fixed number, or make the seed an option and log it",
                subject=source.api,
            )
            _forgive_draw(interp, place.site)
            return True
        if value is not None and v.is_none(value) and entry.none_seed == "entropy":
            option = v.option_of(value)
            why = f" by default (`{option}` is None)" if option else ""
            self.reporter.report(
                interp,
                "DET107",
                node,
                f"`{api}` without a seed{why} is seeded from OS entropy and differs between runs",
                f"give `{option}` a fixed default" if option else "pass a fixed number",
                subject=api,
                severity=Severity.WARNING if option else None,
                remedy=() if option else ("seed",),
            )
            return True
        return False

    def end(self, interp: Interp) -> None:
        """The program has ended: report what was drawn without a seed, and seeds that are set after a draw."""
        self._redundant(interp)
        if interp.entry is None:
            return
        late: dict[str, Late] = interp.notes.get("late", {})
        training = trains(interp)
        for rng, seed in sorted(late.items()):
            loaded = where(interp, LOADS) is not None
            if seed.aside or (
                not training and loaded and interp.notes.get(("first-draw", rng, False)) is None
            ):
                continue
            self._late(interp, interp.kb.generators[rng], seed)
        for generator in interp.kb.generators.values():
            if generator.id in late and not late[generator.id].aside:
                continue
            self._missing(interp, generator, training)

    def _late(self, interp: Interp, generator: GeneratorEntry, seed: Late) -> None:
        """DET108 stands where the first draw is; the others, and the seed, are in its flow."""
        place = seed.draw
        api = next((text for one, text, _ in seed.draws if one is place), generator.id)
        others = [one for one in seed.draws if one[0] is not place]
        steps = [_step(one, f"`{text}` draws before the seed too") for one, text, _ in others]
        what = f"`{seed.text}` sets the seed here" if seed.text else "the seed is set here"
        place.flow = (*place.flow, *steps, _step(seed.place, what))
        before = (
            f"`{seed.text}` seeds {generator.title}: they differ"
            if seed.text
            else f"{generator.title} is seeded, when the function is defined: the default differs"
        )
        self.reporter.report(
            interp,
            "DET108",
            place,
            f"`{api}` draws random numbers before {before} between runs",
            "draw in the body of the function, with None as the default"
            if not seed.text
            else "move the seed to the start of the program"
            if seed.movable
            else f"call `{generator.seed}` at the start of the program",
            subject=generator.id,
        )

    def _missing(self, interp: Interp, generator: GeneratorEntry, training: bool) -> None:
        rng, title = generator.id, generator.title
        strong: Where | None = interp.notes.get(("first-draw", rng, False))
        weak: Where | None = interp.notes.get(("first-draw", rng, True))
        imported = interp.entry is not None and interp.entry.path in interp.imported_files
        place: Where | None
        if training:
            places = [p for p in (weak, strong) if p is not None]
            place = (
                min(places, key=lambda p: p.order)
                if places
                else interp.notes.get(("first-draw", rng, "aside"))
            )
        else:
            # Initial weights that are overwritten by loaded ones do not matter to a program that only evaluates.
            place = strong or (weak if where(interp, LOADS) is None and not imported else None)
        if place is None:
            if weak is not None:
                reason = "the program does not train, and loads weights over the initial ones or is a module of others"
                silent(interp, generator.rule, weak, reason)
            return
        confidence = None
        # The smoke test of a module that other files import: nobody compares two runs of it.
        if imported and (where(interp, SAVES) is None or not training):
            confidence = Confidence.LOW
        severity: Severity | None = None
        api = interp.notes[
            ("draw-api", rng, True if place is weak else False if place is strong else "aside")
        ]
        seed = generator.seed
        if rng == "tensorflow" and interp.kb_matches("tensorflow", "<2.0"):
            seed = "tf.set_random_seed(seed)"
        where_to_seed = generator.where or f"at the start of {place.entry}"
        if place is not weak and place is not strong:
            message = f"`{api}` draws random numbers without a {title} seed when `{place.aside}` is given"
            help = f"call `{seed}` {where_to_seed}"
            severity = Severity.WARNING
        elif place.option:
            message = (
                f"`{api}` draws random numbers before {title} is seeded, unless `{place.option}` is given"
            )
            help = f"give `{place.option}` a default value"
            severity = Severity.WARNING
        else:
            message = f"`{api}` draws random numbers before {title} is seeded (entry point {place.entry})"
            help = f"call `{seed}` {where_to_seed}"
            if generator.rule == LIBRARY_SEED:
                message += ": seeds of other libraries do not reach it"
        self.reporter.report(
            interp,
            generator.rule,
            place,
            message,
            help,
            subject=rng,
            severity=severity,
            confidence=confidence,
            entry_wide=True,
        )

    def environment(self, interp: Interp, name: str, value: v.Value, node: Any) -> None:
        """DET105: PYTHONHASHSEED is read when the interpreter starts."""
        if name != "PYTHONHASHSEED" or not self.reporter.on("DET105"):
            return
        interp.notes.setdefault("hashseed", []).append(Where(interp, node, name))
        if interp.entry is None:
            self._hash_seed(interp)

    def _hash_seed(self, interp: Interp) -> None:
        for place in interp.notes.pop("hashseed", []):
            if "exec" in interp.places:
                continue
            self.reporter.report(
                interp,
                "DET105",
                place,
                "setting `PYTHONHASHSEED` in a running process has no effect: Python reads it only at start-up",
                "set it in the shell (`PYTHONHASHSEED=0 python ...`), and sort sets of strings before iterating over them",
                subject="PYTHONHASHSEED",
            )

    def _redundant(self, interp: Interp) -> None:
        self._hash_seed(interp)
        beside: set[Any] = interp.notes.get("torch-seeds", set())
        for key, place in interp.notes.get("cuda-seeds", []):
            if key in beside:
                self.reporter.report(
                    interp,
                    "DET112",
                    place,
                    f"`{place.subject}` is redundant: `torch.manual_seed` already seeds every GPU",
                    "remove it",
                    subject=place.subject,
                )


def _initialises(interp: Interp, entry: RngEntry, node: Any) -> bool:
    """Whether a draw makes parameters: inside a constructor, ``self.weight.data.uniform_()``, ``init_weights``."""
    if entry.kind != "draw" or entry.library != "torch":
        return False
    name = scope(interp).rpartition(".")[2].lower()
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


def _source_place(interp: Interp, source: v.Obj, node: Any) -> Where:
    place = Where(interp, node)
    if source.node is not None and source.file is not None:
        from d9mlint.interp.state import Site

        place.site = Site(source.file.path, source.node.start, source.node.end)
    return place


def _forgive_draw(interp: Interp, site: Any) -> None:
    """A draw that only makes a seed is reported once, as a seed that differs."""
    for key in [k for k in interp.notes if isinstance(k, tuple) and k and k[0] == "first-draw"]:
        place = interp.notes[key]
        if isinstance(place, Where) and place.site == site:
            del interp.notes[key]
    for name in [n for n, p in interp.state.flags.items() if isinstance(p, Where) and p.site == site]:
        del interp.state.flags[name]


def _step(place: Where, message: str) -> Any:
    from d9mlint.base.findings import Step

    return Step(place.site.path, place.site.start, place.site.end, message)
