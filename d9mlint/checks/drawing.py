"""What functions of the program draw, found by running them in speculation."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from d9mlint.checks.coverage import is_unknown
from d9mlint.interp import values as v
from d9mlint.interp.argtests import any_holds
from d9mlint.interp.containers import layers
from d9mlint.interp.context import CPU_CONTEXT, HANDED, LOADER_WORKER, THREAD
from d9mlint.interp.device_names import given_option
from d9mlint.interp.events import AnyDrawEvent, CallEvent, ObjectCallEvent, SeedEvent
from d9mlint.interp.listening import on
from d9mlint.interp.rng import GENERATOR_TYPES, draws_now, valid
from d9mlint.interp.single_use import seeds_only
from d9mlint.interp.state import SEEDED, Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.usage import calls_unknown, flatten

if TYPE_CHECKING:
    from d9mlint.interp.frames import Frame
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import RngEntry

_OF_KERAS = ("tensorflow", "keras")
LIBRARY_SEED = "DET113"
"""The rule of generators that libraries keep for themselves."""
ITEM_SEED = "item seed"
"""What is drawn from a global generator that the item has seeded."""
UNKNOWN_CALL = "?"
"""The name under which listeners hear of a call of something that is not known."""
KEPT = "kept"
"""What is drawn from a generator that a transform keeps."""
FITTING = ("fit", "fit_predict", "fit_transform")
"""Methods of estimators that fit them."""
FOR_EACH_ITEM = frozenset({"__call__", "__getitem__", "__iter__", "__next__"})
"""Methods that Python's protocols call for each item, or each time that all are gone through."""


def runs_again(run: RunView) -> bool:
    """Whether what is running runs again and again: in a loop, for each item of a dataset, or called by a library."""
    if run.repeating or run.loops or HANDED in run.contexts:
        return True
    functions = [frame.func.fn for frame in run.stack() if frame.func is not None]
    return any(fn.is_generator or fn.name in FOR_EACH_ITEM for fn in functions)


class Observer:
    """Hears of what happens in a speculation."""

    def __init__(self, run: RunView) -> None:
        self.run = run


class ItemDraws(Observer):
    """The RNGs that are drawn from when an item is made; ``own`` for kept generators, ``other`` for those of
    augmentation libraries. ``alone`` says that no other item is made at the same time in the process: what an item
    seeds, it draws from as from its own generator. The ``seeded`` RNGs are those to which the loader gives seeds that it
    draws from torch. ``made`` are the places where items make generators that they keep, so that no worker has a copy."""

    def __init__(
        self,
        run: RunView,
        alone: bool = False,
        seeded: frozenset[str] = frozenset(),
        made: frozenset[Site] = frozenset(),
    ) -> None:
        super().__init__(run)
        self.alone = alone
        self.seeded = seeded
        self.made = made
        self.drawn: set[str] = set()
        self._sites: dict[str, set[Site]] = {}
        """Where the RNGs are drawn from, as far as that is known."""
        self._certain: set[str] = set()
        """Those that are drawn from elsewhere too."""
        self._options: dict[str, set[str]] = {}
        """The options that have to be given for the RNGs to be drawn from; an empty text where none has to be."""
        self.by_python: set[str] = set()
        """Those that are drawn from by a function of Python that a graph calls for each element."""
        self.op_seeds = False
        """Whether an op of TensorFlow is called that has its own seed: such an op keeps one state for all its calls."""
        self.unknown = False
        """Whether something is called that is not known."""
        self.libraries: set[str] = set()
        """Libraries that are called and of which nothing is known."""
        self._for_seeds: set[str] = set()
        """Those from which the item draws what it does nothing with but seed others, or themselves."""
        self._calls: set[Site] = set()
        self._began = run.now

    def _draw(self, name: str, site: Site | None = None) -> None:
        self.drawn.add(name)
        self._options.setdefault(name, set()).add(given_option(self.run.state.noted_aside))
        if site is None:
            self._certain.add(name)
        else:
            self._sites.setdefault(name, set()).add(site)
        frame: Frame | None = self.run.frame if self._calls else None
        while frame is not None:
            if frame.call_site in self._calls:
                self.by_python.add(name)
                return
            frame = frame.caller

    @on(AnyDrawEvent)
    def drew(self, event: AnyDrawEvent) -> None:
        """An RNG is drawn from."""
        rng, entry, node = event
        if entry.kind == "draw" and not (entry.in_place or entry.trains) and self.run.unread(node):
            return
        if self.alone and self.run.state.level(rng).level == SEEDED:
            self._draw(ITEM_SEED)
            for name in self._for_seeds:
                self._draw(name)
            return
        if self.alone and entry.kind == "draw" and seeds_only(self.run, node):
            # The item depends on it if something is drawn that it seeds.
            self._for_seeds.add(rng)
            return
        # A model that is built draws its initial weights: that is nothing an item or a task depends on.
        # A generator is one that workers copy if it is older than the item, see `called`.
        if entry.kind not in ("init", "dropout", "mask", "generator"):
            if rng == "own" and entry.seeded_by:
                self._draw(KEPT)
                return
            other = rng == "own" and entry.kind in ("transform", "augment")
            generators = self.run.kb.generators
            library = rng in generators and generators[rng].rule == LIBRARY_SEED
            name = "torch" if rng in self.seeded else "other" if other or library else rng
            self._draw(name, self.run.here(node))

    def option(self, name: str) -> str:
        """The option without which an RNG is not drawn from."""
        return min(self._options.get(name, ()), default="")

    def forget_lost(self) -> None:
        """The RNGs are not drawn from of which nothing matters that is drawn."""
        lost = self.run.overwritten_draws if self._sites else frozenset()
        self.drawn -= {
            name
            for name, sites in self._sites.items()
            if name not in self._certain and all(site in lost for site in sites)
        }

    @on(CallEvent)
    def called(self, call: CallEvent) -> None:
        """A method of a generator draws from it. One that is made for the item has nothing to do with workers. A seed may
        come from that of the worker."""
        if call.api == UNKNOWN_CALL:
            self.unknown = True
            return
        root = call.api.partition(".")[0]
        kb = self.run.kb
        if root != UNKNOWN_CALL and is_unknown(kb, call.api) and not kb.call_is("draws-nothing", call.api):
            self.libraries.add(root)
        role = self.run.kb.role(call.api, "worker-seed")
        if self.alone and role is not None:
            self._draw(role.library)
        if self.run.kb.role(call.api, "runs-python") is not None:
            self._calls.add(self.run.here(call.node))
        self.op_seeds |= any(self._keeps_state(call, entry) for entry in kb.rng(call.api))
        if fits_unseeded(self.run, call, self._began):
            self._draw("numpy", self.run.here(call.node))
        owner = call.owner
        if not isinstance(owner, v.Obj) or owner.type not in GENERATOR_TYPES or owner.birth > self._began:
            return
        if made_at(owner) not in self.made:
            self._draw("own")

    def _keeps_state(self, call: CallEvent, entry: RngEntry) -> bool:
        """Whether an op draws from the state that it keeps, since it is given a seed."""
        if entry.library != "tensorflow" or entry.kind not in ("draw", "dropout") or entry.at == "use":
            return False
        seeded = any_holds(call.args, entry.unless, call.owner) is not False
        return (
            bool(entry.draws)
            and seeded
            and self._applies(entry)
            and draws_now(self.run, call.args, structs.replace(entry, unless=[]), call.owner)
            and not self.run.unread(call.node)
        )

    @on(ObjectCallEvent)
    def layer(self, event: ObjectCallEvent) -> None:
        """A Keras layer that draws keeps the state of its generator, with or without a seed."""
        obj, args, _ = event
        root = obj.api.partition(".")[0]
        self.unknown |= root not in self.run.kb.libraries and root not in sys.stdlib_module_names
        self.unknown |= calls_unknown(self.run, obj)
        training = args.kw.get("training")
        asked = v.truth(training) if training is not None else None
        if training is not None and not asked:
            return
        for one in layers(obj):
            for entry in self.run.kb.rng(one.api):
                if entry.kind == "augment" and entry.at == "use" and self._applies(entry):
                    augmenting = set(filter(self._of_tensorflow, entry.draws))
                    for name in augmenting:
                        self._draw(name)
            active = asked or one.api.rpartition(".")[2].startswith("Random")
            known = self.run.kb.rng(one.api) if active else ()
            if any(entry.kind == "dropout" and entry.library in _OF_KERAS for entry in known):
                self._draw("keras")

    def _applies(self, entry: RngEntry) -> bool:
        return not entry.versions or self.run.kb_matches(entry.library, entry.versions)

    def _of_tensorflow(self, rng: str) -> bool:
        generator = self.run.kb.generators.get(rng)
        return generator is not None and generator.library == "tensorflow"


RANDOM_STATE = "random_state"
_MOST_NESTED = 6


def parts_of(args: v.Args) -> list[v.Obj]:
    """The objects of libraries among some arguments, and in lists and mappings among them."""
    return [one for value in args.values() for one in flatten(value) if isinstance(one, v.Obj)]


def unseeded_estimators(run: RunView, one: v.Obj, depth: int = 0) -> Iterator[v.Obj]:
    """The estimators among an estimator and its parts that draw from NumPy's generator where they are fitted."""
    known = [
        entry
        for entry in valid(run, run.kb.rng(one.api), one.package)
        if entry.kind == "split" and "numpy" in entry.draws
    ]
    if known:
        # One that has a seed gives its parts theirs.
        if RANDOM_STATE not in one.attrs and any(draws_now(run, one.args, entry) for entry in known):
            yield one
    elif depth < _MOST_NESTED and run.kb.call_is("fits-parts", one.api):
        for part in parts_of(one.args):
            yield from unseeded_estimators(run, part, depth + 1)


def fits_unseeded(run: RunView, call: CallEvent, since: int) -> bool:
    """Whether an estimator is fitted that was made before, and draws from NumPy's generator then."""
    owner = call.owner
    if call.api.rpartition(".")[2] not in FITTING or not isinstance(owner, v.Obj) or owner.birth > since:
        return False
    return run.kb.call_is("fits-parts", owner.api) and any(unseeded_estimators(run, owner))


class SeededAtStart(Observer):
    """The RNGs that a function seeds, and whether all that it calls is known."""

    def __init__(self, run: RunView) -> None:
        super().__init__(run)
        self.seeded: set[str] = set()
        self.known = True

    @on(SeedEvent)
    def seeds(self, event: SeedEvent) -> None:
        """RNGs are seeded."""
        self.seeded.update(event.rngs)

    @on(CallEvent)
    def called(self, call: CallEvent) -> None:
        """Something is called that may seed what is not known."""
        kb = self.run.kb
        root = call.api.partition(".")[0]
        if root == UNKNOWN_CALL or (is_unknown(kb, call.api) and not kb.call_is("draws-nothing", call.api)):
            self.known = False


def seeded_at_start(run: RunView, function: v.Value, frame: Frame | None = None) -> set[str] | None:
    """The RNGs that the function of a loader seeds in each of its workers when they start; None where that is not known."""
    if not isinstance(function, (v.Func, v.Partial)):
        return None
    found = SeededAtStart(run)
    with run.fork(found, frame=frame, worker=True) as fork:
        fork.call(function, v.Args([v.Obj("worker id")]), None)
    return found.seeded if found.known else None


class KeptGenerators(Observer):
    """The methods that seed the generators that transforms keep."""

    def __init__(self, run: RunView) -> None:
        super().__init__(run)
        self.methods: set[str] = set()

    @on(AnyDrawEvent)
    def drew(self, event: AnyDrawEvent) -> None:
        """An RNG is drawn from."""
        self.methods.update(event.entry.seeded_by[:1])


class GlobalDraws(Observer):
    """All RNGs that are drawn from."""

    def __init__(self, run: RunView) -> None:
        super().__init__(run)
        self.drawn: set[str] = set()

    @on(AnyDrawEvent)
    def drew(self, event: AnyDrawEvent) -> None:
        """An RNG is drawn from."""
        if event.entry.kind != "init":
            self.drawn.add(event.rng)


_ITEM = v.Args([v.UNKNOWN])


def what_is_drawn(
    run: RunView,
    parts: Sequence[v.Value | None],
    *observers: Observer,
    frame: Frame | None = None,
    alone: bool = False,
    given: v.Args = _ITEM,
) -> set[str]:
    """RNGs that a dataset and its helpers draw from when an item is made; see ``ItemDraws``. ``observers`` hear of
    the same. Functions are ``given`` an item, or what is known of their arguments."""
    return item_draws(run, parts, *observers, frame=frame, alone=alone, given=given).drawn


def item_draws(
    run: RunView,
    parts: Sequence[v.Value | None],
    *observers: Observer,
    frame: Frame | None = None,
    alone: bool = False,
    given: v.Args = _ITEM,
    seeded: frozenset[str] = frozenset(),
    made: frozenset[Site] = frozenset(),
    unset: Sequence[tuple[v.Inst, str, v.Lit]] | None = None,
    since: int | None = None,
) -> ItemDraws:
    """The same, with what else is known of them, of a loader that gives seeds to the ``seeded`` RNGs, that was made at the
    time ``since``, and whose items make generators in the places ``made``. ``unset`` where its workers make them, each of
    which begins with a copy of the dataset: attributes that were not set when the loader was made."""
    draws = ItemDraws(run, alone, seeded, made)
    with run.fork(draws, *observers, frame=frame) as fork:
        fork.forget_seeds()
        if since is not None:
            fork.forget_later_variables(since)
        for one, name, value in unset or ():
            one.attrs[name] = value
        with fork.within(CPU_CONTEXT, THREAD, *([LOADER_WORKER] if unset is not None else [])):
            for part in parts:
                if isinstance(part, (v.Func, v.Partial)):
                    fork.call(part, given, None)
                elif part is not None:
                    fork.use(part)
                    if isinstance(part, v.Obj):
                        draws.layer(ObjectCallEvent(part, v.NO_ARGS, None))
        draws.forget_lost()
    return draws


def draws(run: RunView, function: v.Value | None) -> set[str] | None:
    """The global RNGs that a function or module draws from when it is called; None where it is not known."""
    if isinstance(function, v.Items) and not function.open:
        found = [draws(run, one) for one in function.elts]
        seen = {name for one in found if one for name in one}
        return seen if seen or None not in found else None
    if isinstance(function, v.AnyOf):
        return draws(run, v.Items("t", list(function.values)))
    own = isinstance(function, (v.Func, v.Partial, v.Inst))
    if function is None or (
        not own and not (isinstance(function, v.Obj) and function.api.startswith("torch.nn."))
    ):
        return None
    observer = GlobalDraws(run)
    with run.fork(observer) as fork:
        fork.forget_seeds()
        fork.call(function, v.Args([v.UNKNOWN], star=True), None)
    return observer.drawn
