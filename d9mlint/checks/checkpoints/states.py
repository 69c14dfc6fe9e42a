"""DET601 and DET602: checkpoints that do not carry, or do not restore, everything a run goes on from."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from d9mlint.base.entry_report import AND, EVALUATED, LESS_IF_EVALUATED, NEVER_LOADS
from d9mlint.base.findings import LOADED_AT
from d9mlint.base.options import given_in_words
from d9mlint.base.terminal import listed
from d9mlint.checks.base import Rule, argument_node
from d9mlint.checks.checkpoints.averaged import AveragedWeights
from d9mlint.checks.checkpoints.carried_on import carried_on, saved_in, stored_with
from d9mlint.checks.checkpoints.continued import Start, counter_of, counters_of, number_of, start_of
from d9mlint.checks.checkpoints.drawn_between import Drawn, DrawnBetween
from d9mlint.checks.checkpoints.failed_loads import LOAD, FailedLoads
from d9mlint.checks.checkpoints.filled import FilledLists
from d9mlint.checks.checkpoints.first_again import Fate, begins_anew, epoch_keys, fate
from d9mlint.checks.checkpoints.first_numbers import last_of, owner_of
from d9mlint.checks.checkpoints.made_later import MadeLater
from d9mlint.checks.checkpoints.own_draws import OwnDraws
from d9mlint.checks.checkpoints.own_states import carried as own_state
from d9mlint.checks.checkpoints.own_states import counted as counted_by
from d9mlint.checks.checkpoints.own_states import keeps_nothing, named_elsewhere
from d9mlint.checks.checkpoints.own_states import own as own_part
from d9mlint.checks.checkpoints.reordered import reordered
from d9mlint.checks.checkpoints.rounds import InRound, in_round, is_never
from d9mlint.checks.checkpoints.stages import Test, exclude, tests_around
from d9mlint.checks.checkpoints.stopping import best_of, ends_by, stoppers
from d9mlint.checks.checkpoints.trained import TrainedModels
from d9mlint.checks.checkpoints.training_objects import STATE_OF_JAX, training_in
from d9mlint.checks.checkpoints.unread_parts import Part, UnreadParts
from d9mlint.checks.checkpoints.weights import (
    WHOLE,
    File,
    Loaded,
    Saved,
    file_of,
    is_numbered_by,
    key_of,
    models_made,
    names_of,
    sources,
    weights_in,
)
from d9mlint.interp import values as v
from d9mlint.interp.activity import fits_alone, may_be_given_cuda, may_use_cuda, trains
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.calls import has_model
from d9mlint.interp.context import CPU_CONTEXT, NO_GRADIENT, THREAD
from d9mlint.interp.events import (
    AnyDrawEvent,
    CallEvent,
    EndEvent,
    IterationEvent,
    Loop,
    LoopEvent,
    ObjectAttributeEvent,
    RepeatedEvent,
    SeedEvent,
)
from d9mlint.interp.file_names import Field, template_of
from d9mlint.interp.library.loaders import LOADER
from d9mlint.interp.library.options import NAMESPACE
from d9mlint.interp.library.weights import OF_ONE_MODULE
from d9mlint.interp.listening import on, on_call, on_call_if, on_method, on_object_attribute
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.named_sizes import assignments
from d9mlint.interp.naming import kept_layer
from d9mlint.interp.optimizers import STEPS
from d9mlint.interp.places import Moment, Where
from d9mlint.interp.rng import Saved as RngState
from d9mlint.interp.rng import draws_now
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.tensors import READ
from d9mlint.interp.text import call_text
from d9mlint.ir import nodes as m
from d9mlint.ir.liveness import stored_names
from d9mlint.ir.scopes import assignments as counted
from d9mlint.ir.traversal import called_name, children, nodes, receiver
from d9mlint.knowledge.rng_states import state_given, state_restored
from d9mlint.project.modules import ModuleFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from d9mlint.interp.view import RunView
    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.schema import RoleEntry

_Found = TypeVar("_Found")

NAMES = {"torch": "torch", "cuda": "CUDA", "numpy": "NumPy", "python": "Python"}
_DRAWN = "drawn:"
"""What is noted of loops in which an RNG is drawn from, with the RNG behind it."""
_ASIDE = "drawn aside:"
"""The same, where that is after a seed that is for this alone."""
_FOLDER = "pretrained_model_name_or_path"
"""The argument of ``from_pretrained`` that may name a folder."""
_BESIDE = frozenset({"epoch", "scheduler", "scaler", *NAMES})
"""What may as well stand in another file than the optimizer."""
RESTORE_CALLS = {
    "torch": "torch.set_rng_state",
    "cuda": "torch.cuda.set_rng_state_all",
    "numpy": "np.random.set_state",
    "python": "random.setstate",
}
_EPOCH = re.compile(r"epoch|step|iter|itr", re.IGNORECASE)
_OPTIMIZER = re.compile(r"optim|(^|[._])opt([._]|$|_?[a-z]?$)", re.IGNORECASE)
_SCHEDULER = re.compile(r"sched|lr_s", re.IGNORECASE)
_SCALER = re.compile(r"scaler|(?<![a-z])amp(?![a-z])", re.IGNORECASE)

_OF_RANKS = (
    ", the RNG states of each rank on that rank: with those of one rank, all ranks draw the same numbers"
)
_WITHOUT_WORKERS = "leave out `persistent_workers=True`: the states of workers cannot be saved"
_AND_WITHOUT_WORKERS = ", and leave out `persistent_workers=True`: the states of workers cannot be saved"
_SAVE = "torch.save"
_JAX = ("flax", "orbax", "equinox")
"""Libraries whose checkpoints hold no objects: what a program goes on with is what it has loaded."""
_OPTAX = "optax."
_MADE_BY_JAX = ("jax.", _OPTAX, "flax.")
_KEY = re.compile(r"(^|[._])(prng|rng|key)(s?$|_)", re.IGNORECASE)
_PLAIN = ("builtins.int", "builtins.str", "builtins.float", "builtins.bool", v.GIVEN)


def _taken_apart(run: RunView, node: Any) -> bool:
    """Whether a statement takes an item of what a call gives, which can restore nothing."""
    return any(isinstance(one, m.Subscript) and one.value is node for one in nodes([run.statement]))


def shuffled_with(loader: v.Value) -> v.Obj | None:
    """The generator that a loader of PyTorch, or its sampler, was given to shuffle with."""
    return shuffles_with(loader.args) if isinstance(loader, v.Obj) and loader.type == LOADER else None


def shuffles_with(args: v.Args) -> v.Obj | None:
    """The same for the arguments with which a loader is made."""
    sampler = args.get("sampler", 3)
    if isinstance(sampler, v.Obj):
        given = sampler.args.kw.get("generator")
    elif _shuffles_itself(args):
        given = args.get("generator", 12)
    else:
        given = None
    return given if isinstance(given, v.Obj) and made_at(given) is not None else None


def _shuffles_itself(args: v.Args) -> bool:
    """Whether a loader is made without a sampler, and shuffles."""
    return args.get("sampler", 3) is None and v.truth(args.get("shuffle", 2) or v.FALSE) is True


def _keeps_workers(loader: v.Value) -> bool:
    """Whether a loader keeps its workers, with what they have drawn."""
    if not isinstance(loader, v.Obj) or loader.type != LOADER:
        return False
    kept = loader.args.kw.get("persistent_workers")
    return kept is not None and v.truth(kept) is True


def _persists(loader: v.Obj) -> bool:
    """Whether a loader shuffles, and keeps its workers. It draws their seed where it is gone through for the first time
    only, after which what it shuffles with is elsewhere than in a run that begins there."""
    return _keeps_workers(loader) and _shuffles_itself(loader.args)


_OF_WORKERS = "the RNG states of the loader's persistent workers"


class Passed(NamedTuple):
    """An object of the program that a loop goes through, or that ends it: its class and the place of that, and the
    attributes that are its state. What ends a loop also has the name that the loop calls it by."""

    name: str
    place: tuple[str, int, int]
    attributes: tuple[str, ...]
    called: str = ""


def _place_of(cls: v.Cls) -> tuple[str, int, int]:
    """Where a class is defined: its file, and where it begins and ends there."""
    return (cls.file.path, cls.cls.start, cls.cls.end)


def passed_over(value: v.Value) -> list[v.Inst]:
    """The objects of the program that give what a loop goes through: it, or what a loader takes its batches in the order
    of."""
    if isinstance(value, v.Inst):
        return [value]
    if not isinstance(value, v.Obj) or value.type != LOADER:
        return []
    given = [value.args.get("sampler", 3), value.args.get("batch_sampler", 4)]
    return [
        one
        for several in given
        if several is not None
        for one in v.alternatives(several)
        if isinstance(one, v.Inst)
    ]


def _is_statement_of(run: RunView, loop: Loop, node: Any) -> bool:
    """Whether something runs because of a call that is a statement of a loop itself, in no branch and in no other loop."""
    frame, at = run.frame, node.start if isinstance(node, m.Call) else None
    while frame is not loop.frame:
        site = frame.call_site
        if frame.caller is None or site is None:
            return False
        frame, at = frame.caller, site.start
    return at is not None and any(
        isinstance(one, m.ExprStmt) and one.start <= at < one.end for one in loop.stmt.body
    )


def _wrapped(value: v.Value, depth: int = 0) -> Iterator[v.Value]:
    """A value, and what the calls that gave it were given, as by ``enumerate`` and progress bars."""
    for one in v.alternatives(value):
        yield one
        if isinstance(one, v.Obj) and depth < _DEEPEST:
            for given in one.args.pos:
                yield from _wrapped(given, depth + 1)


_DEEPEST = 3


def is_scheduler(api: str) -> bool:
    """Whether a call makes a scheduler of PyTorch, or is one of its methods."""
    return api.startswith("torch.optim.lr_scheduler.")


def makes_scheduler(run: RunView, api: str) -> bool:
    """Whether a call gives a scheduler of PyTorch, or is one of its methods."""
    return is_scheduler(run.kb.result_type(api) or api)


def _with(args: v.Args, before: v.Value, now: v.Value) -> v.Args:
    """Arguments with another value in the place of one."""
    pos = [now if one is before else one for one in args.pos]
    return v.Args(pos, {k: now if x is before else x for k, x in args.kw.items()}, args.star, args.dstar)


def is_scaler(api: str) -> bool:
    """Whether a call makes a scaler of losses of PyTorch, or is one of its methods."""
    return api.startswith("torch.") and api.rpartition(".")[2] == "GradScaler"


def saves(rule: Rule, api: str) -> bool:
    """Whether a call writes what it is given into a file."""
    return rule.run.kb.role(api, "saves-checkpoint") is not None


def saved(run: RunView, call: CallEvent) -> v.Value | None:
    """What such a call is given to save."""
    role = run.kb.role(call.api, "saves-checkpoint")
    given = call.args.get(role.arg, role.pos) if role is not None else None
    # What a library holds itself, it saves without being given anything.
    if given is None:
        return v.Mapping({}) if role is not None and role.more else None
    if isinstance(given, v.Mapping):
        held = {key: training_in(run, one) for key, one in given.items.items()}
        parts: dict[Any, v.Value] = {key: one for key, one in held.items() if one is not None}
        return v.Mapping({**dict(given.items.items()), **parts}, given.open) if parts else given
    return training_in(run, given) or given


def made_by_paths(run: RunView, content: v.Value) -> tuple[v.Value, ...]:
    """What is saved, as each of the paths that lead to the call has made it; where not all of them make a collection, as
    one value. What one of them has loaded is what a run that began on another path has saved."""
    found = v.alternatives(content)
    made = tuple(one for one in found if not _is_loaded(run, one)) or found
    return made if all(isinstance(one, v.Mapping | v.Items) for one in made) else (content,)


def _is_loaded(run: RunView, value: v.Value) -> bool:
    """Whether a value is all that a file holds."""
    if not isinstance(value, v.Obj):
        return False
    return value.api == LOAD or run.kb.role(value.api, "reads-data") is not None


class Checkpoints(
    AveragedWeights,
    DrawnBetween,
    FailedLoads,
    FilledLists,
    MadeLater,
    OwnDraws,
    TrainedModels,
    UnreadParts,
    Rule,
):
    """DET601: what a checkpoint does not save. DET602: what is saved and never restored."""

    codes = ("DET601", "DET602")
    uses = remembered_table(str, bool)
    saved = remembered_table(str, bool)
    restored = remembered_table(str, bool)
    """RNGs, and what else has a state, that the program uses, and whose states it saves and restores."""
    draws_itself = remembered(bool)
    """Whether anything else is drawn from torch than the seeds of workers."""
    drawn_in = remembered_table(tuple[str, str], bool)
    """RNGs, and the loops in which they are drawn from."""
    seeded_in = remembered(set[tuple[str, str]])
    """RNGs that a loop seeds in each round before it draws from them, and the loops."""
    innermost = remembered_table(Site, str)
    """The innermost loop in which something is saved."""
    taken_here = remembered_table(tuple[str, tuple[str, int]], Site)
    """RNGs whose state a function has taken, and the call that gives it."""
    seeded_aside = remembered_table(tuple[str, Site | None], Site)
    """RNGs that such a function seeds then, and the seed: the state that it has taken."""
    seeded_aside_in = remembered(set[tuple[str, Site, str]])
    """The same, with the loops in which that happens: each round draws then what it draws, whatever came before."""
    drawn_aside = remembered(set[tuple[str, Site, str]])
    """RNGs that are drawn from after such a seed, the state, and the loops in which they are."""
    drawn_aside_by = remembered(set[tuple[str, Site, tuple[str, int]]])
    """The same, with the generator functions."""
    put_back = remembered(set[Site])
    """The states that an RNG is given back."""
    drawn_by = remembered_table(tuple[str, tuple[str, int]], bool)
    """RNGs, and the generator functions that draw from them, by file and place."""
    taken_in = remembered_table(tuple[tuple[str, int], str], bool)
    """Generator functions, and the loops in which the program takes what they yield; empty for a thread, which does beside
    all loops."""
    shuffled = remembered(set[tuple[Site, str]])
    """Where generators were made with which loaders shuffle, or seed workers that draw, and which loops go through them."""
    persistent = remembered(set[str])
    """The loops that go through loaders made before them, which shuffle, or whose items draw, and keep their workers."""
    runs = remembered(list[tuple[Where, frozenset[str]]])
    """Where a library saves the whole state of a run, and in which loops,"""
    run_restored = remembered(bool)
    """and whether one restores it."""
    passed_over = remembered(set[tuple[Passed, str]])
    """Objects of the program that loops go through, or that end them, each with a state, and in which loops."""
    shuffled_parts = remembered(set[tuple[str, int, str]])
    """Attributes that methods of a class shuffle in place."""
    anew = remembered(set[str])
    """Loops that count from a first number that is written there."""
    epoch_keys = remembered(set[tuple[str, str]])
    """Under which keys loops save the numbers of their epochs."""
    ending = remembered(set[tuple[str, str]])
    """Variables that say when loops end which save something, and the loops."""
    best = remembered(set[tuple[str, str]])
    """Variables that hold the best score so far by which loops decide to save something, and the loops."""
    carried_on = remembered(set[tuple[str, str]])
    """Variables with which loops go on from round to round, and on which their training depends, and the loops."""
    in_models = remembered(set[tuple[str, tuple[str, int], bool, str]])
    """Attributes of models with which loops go on so, the classes, whether they are a part of the states, and the loops."""
    held_names = remembered(set[str])
    """Variables of loops that have what is saved under some key."""
    reordered = remembered(set[tuple[str, str]])
    """What loops shuffle in place that was made before them."""
    loaders = remembered_table(Site, frozenset[tuple[str, str]])
    """Where loaders are made, the variables that hold them."""
    shuffled_if = remembered(set[tuple[str, str]])
    """Variables that hold a loader which shuffles with the generator of PyTorch, if an option is given."""
    whole = remembered(set[tuple[str, int]])
    """Classes of objects that are saved whole, or whose states are,"""
    pickled = remembered(set[tuple[str, int]])
    """and of those that are saved whole."""
    carried = remembered(set[Site])
    """Where generators were made that are seeded in a loop, or whose state the program keeps."""
    scalers = remembered_table(Site, tuple[ModuleFile, str, frozenset[tuple[str, int]], str])
    """Where scalers of losses are made, the attributes that hold them, and the options with which they are made."""
    made_in = remembered_table(tuple[str, Site], frozenset[str])
    """Where schedulers and scalers are made, and the loops that make them in each of their rounds."""
    optional = remembered_table(tuple[str, str], bool)
    """What has a state and is made only where an option is given, with the option."""
    checkpoints = remembered(list[tuple[Where, set[str], frozenset[str], str]])
    alone = remembered(list[tuple[Where, set[str], frozenset[str]]])
    """States that are saved alone, each in a file."""
    numbers = remembered(list[frozenset[str]])
    """The loops in which the number of the epoch or step is saved under a key, and nothing beside it, or is that of what is
    saved."""
    beside = remembered(list[tuple[set[str], frozenset[str]]])
    """What files hold in which no model or optimizer is saved, and in which loops they are written."""
    restored_at = remembered(list[Where])
    """Where checkpoints are loaded that hold no objects."""
    given = remembered(list[tuple[Where, frozenset[str], str]])
    """Where objects are given their states, in which loops, and what they are: empty where that is not known."""
    entries = remembered(list[tuple[str, Site, str]])
    """The entries of files that models and optimizers were given as their states: where the file was loaded, and the key,
    empty where it is not known."""
    given_whole = remembered_table(Site, bool)
    """Where files are loaded that something is given as its state, and whether all of each is that of a model."""
    held = remembered(set[str])
    """The kinds of what checkpoints hold the states of."""
    stepped_in = remembered(set[str])
    """The innermost loops in which schedulers take steps; empty for none."""
    advanced = remembered(set[tuple[str, str, InRound]])
    """Schedulers and scalers that take steps in rounds, the calls, and where they are."""
    objects = remembered(bool)
    """Whether a checkpoint may hold more than states: objects themselves, which need not be given any."""
    trains_in = remembered_table(str, bool)
    """The loops in which it trains."""
    forwarded = remembered(bool)
    """Whether a loop does nothing but let a scheduler take its steps, whose learning rate follows from their number."""
    goes_on = remembered(bool)
    """Whether a scheduler is given the epoch from which it goes on."""
    stepped = remembered_table(tuple[Site, str], tuple[str, bool])
    """Where optimizers and averages of weights were made that the program updates, in which loops that began
    later, what it calls them (empty for what keeps no state), and whether they are optimizers."""
    kept_names = remembered(set[str])
    """Variables and keys that are written where something is saved."""
    kept_objects = remembered(set[str])
    """What is saved there, and what has the methods that give what is saved."""
    kept = remembered(set[Site])
    """Those of them whose state is saved, in whatever file."""
    weights = remembered(list[Saved])
    """Weights that are saved alone, or with a number, in a loop."""
    loaded = remembered(list[Loaded])
    """Models that are given the weights that a file has."""
    folders = remembered(list[tuple[str, str, Loaded]])
    """Variables that are given models out of what they may have saved by ``save_pretrained``, with their files."""
    models_loaded = remembered_table(tuple[str, str], Loaded)
    """Variables of files into which what may be a whole model is loaded."""
    loaded_if = remembered(set[str])
    """Options with which something is loaded that is not loaded by default."""
    numbered = remembered(set[str])
    """The loops whose rounds, in the names of the files that they write, are counted from a number that such an option
    gives."""
    files = remembered_table(Site, File)
    """What the files are called that are loaded."""
    tests = remembered_table(Site, frozenset[Test])
    """The tests around the places of checkpoints, and around those where something is loaded."""
    names = remembered(set[tuple[Site, str]])
    """What the files are called that are saved and loaded, as far as that is known."""
    named = remembered(set[str])
    """What the files are called in which weights are saved, and nothing that trains."""
    written = remembered_table(str, int)
    """When the program first writes files, by what they are called."""
    read = remembered_table(Site, tuple[Where, frozenset[str]])
    """Where data is read that may hold states, and in which loops."""
    of_jax = remembered(set[Site])
    """Where what a program of JAX goes on with is written as data."""
    split_in = remembered_table(tuple[str, str], bool)
    """JAX keys that loops go on splitting."""
    stepped_by_jax = remembered_table(tuple[str, str], bool)
    """What a program calls the states of optimizers of JAX that loops update, and the loops."""
    data = remembered_table(Site, frozenset[str])
    """Where what loops go on from is saved as data, and the names in what is saved."""
    replaced = remembered(list[tuple[Where, set[str], frozenset[str], str]])
    """Weights that are written into a file from which the program has read them."""
    of_managers = remembered(list[tuple[Where, set[str], frozenset[str], str]])
    """What libraries of JAX save of which no state of an optimizer is a part."""
    managers = remembered(set[Site])
    """Where managers of checkpoints were made that have restored one,"""
    managed = remembered(set[str])
    """and the loops that save with them, under the number of a step."""
    in_ranks = remembered(bool)
    """Whether the program runs in several processes, each with its own random states."""
    began = remembered_table(str, int)
    """When loops began after a model was given weights."""
    resumed = remembered_table(str, Start)
    """The loops that go on from a number that was loaded,"""
    any_resumed = remembered(bool)
    """and whether there are any: an import that asks a table for all of its keys cannot be taken over."""
    in_names = remembered_table(Site, frozenset[str])
    """Where files are saved whose names hold the number of a loop's round, and the loops."""
    in_files = remembered_table(Site, tuple[str | Field, ...])
    """The parts of the names of these files."""
    hidden = remembered(set[str])
    """The keys under which something is saved of which it is not known what it is; empty for no key."""

    @on(AnyDrawEvent)
    def drawn(self, event: AnyDrawEvent) -> None:
        """An RNG is drawn from."""
        rng, entry, node = event
        if entry.in_place and isinstance(node, m.Call) and node.args:
            self._shuffles(node.args[0])
            if entry.kind == "draw" and not entry.method and self.run.entry is not None:
                self.reordered.update(reordered(self.run, node.args[0]))
        if entry.kind not in ("init", "split") and rng in ("torch", "numpy", "python"):
            # What a worker draws goes on from the generator that has given it its seed.
            parent = self.run.state.level(rng).parent
            if CPU_CONTEXT in self.run.contexts:
                self._drawn_for_items()
            if parent and self._drawn_with_generator():
                return
            makers = [
                frame.func.key
                for frame in self.run.stack()
                if frame.func is not None and frame.func.fn.is_generator
            ]
            held = None if parent else self.seeded_aside.get((rng, self.run.state.level(rng).site))
            if held is not None:
                self.drawn_aside.add((rng, held, ""))
                self._drawn_aside_in_loops(rng)
                self.drawn_aside_by.update((rng, held, maker) for maker in makers)
                return
            if rng == "torch" and not parent:
                self.draws_itself = True
            rng = parent or rng
            self.uses[rng] = True
            self._drawn_in_loops(rng)
            for maker in makers:
                self.drawn_by[rng, maker] = True

    @on(RepeatedEvent)
    def drawn_again(self, event: RepeatedEvent) -> None:
        """A call that draws is taken over from an earlier one."""
        for rng in event.named(_DRAWN):
            self._drawn_in_loops(rng)
        for rng in event.named(_ASIDE):
            self._drawn_aside_in_loops(rng)

    def _drawn_aside_in_loops(self, rng: str) -> None:
        for key in self.run.loops.marked(f"{_ASIDE}{rng}", self.run.process_began):
            found = {state for one, state, loop in self.seeded_aside_in if (one, loop) == (rng, key)}
            self.drawn_aside.update((rng, held, key) for held in found)
            if not found:
                # The seed is for all rounds of this loop.
                self.uses[rng] = self.drawn_in[rng, key] = True

    def _drawn_in_loops(self, rng: str) -> None:
        # A generator of a process does not go on in the loops of the program that has started it.
        for key in self.run.loops.marked(f"{_DRAWN}{rng}", self.run.process_began):
            self.drawn_in[rng, key] = True

    def _drawn_with_generator(self) -> bool:
        """Whether the seeds of the workers in which something is drawn come from a generator that their loader was given."""
        given = [one.args.get("generator", 12) for one in self.run.used if one.type == LOADER]
        own = given[-1] if given else None
        if own is None or v.is_none(own) is True:
            return False
        self._goes_on_with(own)
        return True

    def _goes_on_with(self, own: v.Value) -> None:
        """Loops that began when there was a generator go on drawing from it for their loaders."""
        site = made_at(own) if isinstance(own, v.Obj) else None
        if site is not None and isinstance(own, v.Obj):
            self.shuffled.update((site, loop.key) for loop in self.run.loops if own.birth < loop.start)

    def _drawn_for_items(self) -> None:
        """Something is drawn for the items of a loader: where it keeps its workers, these go on from there."""
        if self.run.contexts.within(NO_GRADIENT):
            return
        for one in self.run.used:
            if _keeps_workers(one):
                self.persistent.update(loop.key for loop in self.run.loops if one.birth < loop.start)

    @on_call("builtins.next")
    def taken(self, call: CallEvent) -> None:
        """The next value of an iterator is taken."""
        for one in call.args.pos[:1]:
            self._taken(one)

    @on_method("__next__", "send")
    def taken_by_hand(self, call: CallEvent) -> None:
        """The next value of an iterator is taken, by the method that does it."""
        self._taken(call.owner or v.UNKNOWN)

    def _taken(self, iterator: v.Value) -> None:
        """What a generator yields is taken here."""
        for one in _wrapped(iterator):
            if isinstance(one, v.Items) and one.maker is not None:
                for key in [""] if THREAD in self.run.contexts else [loop.key for loop in self.run.loops]:
                    self.taken_in[one.maker, key] = True

    @on_call_if(
        lambda rule, api: (
            bool(state_given(rule.run.kb, api) or state_restored(rule.run.kb, api))
            or makes_scheduler(rule.run, api)
            or is_scaler(api)
        )
    )
    def call(self, call: CallEvent) -> None:
        """Something is made, saved or restored that has a state."""
        if makes_scheduler(self.run, call.api):
            made_here = isinstance(call.owner, v.Obj) and is_scheduler(call.owner.api)
            if not made_here and continues_from_epoch(self.run, call):
                # Where it is made from nothing elsewhere, the run is a new one.
                self.goes_on = True
            elif not made_here and not self._is_stateless(call) and not self._reads_its_number():
                self._made("scheduler", call.node)
            if call.api.endswith(".step") and self._only_counts(call):
                self.forwarded = True
            elif call.api.endswith(".step"):
                self.stepped_in.add(self.run.loops[-1].key if self.run.loops else "")
                self._advances("scheduler", call)
        elif is_scaler(call.api):
            if self._is_stateless(call) and not any(v.option_of(one) for one in call.args.kw.values()):
                # One that is switched off has no state, whatever options are given.
                return
            if call.api.endswith(".update"):
                self._advances("scaler", call)
            kept = kept_layer(self.run, call.node)
            if kept is None:
                self._made("scaler", call.node)
            else:
                made = self.run.here(call.node)
                self.scalers[made] = (*kept, self.run.state.aside)
        state = state_given(self.run.kb, call.api)
        if state and self.run.frame.func is not None:
            function = self.run.frame.func.key
            self.taken_here[state, function] = self.run.here(call.node)
        if state and not _taken_apart(self.run, call.node):
            self.saved[state] = True
        restore = state_restored(self.run.kb, call.api)
        if restore:
            self.put_back.update(site for one in call.args.values() for site in _calls_that_gave(one))
            self.restored[restore] = True

    def _only_counts(self, call: CallEvent) -> bool:
        """Whether a scheduler takes a step in a loop that does nothing else, and that no written number ends."""
        loop = self.run.loops[-1].stmt if self.run.loops else None
        held = v.alternatives(call.owner) if call.owner is not None else ()
        kinds = [one.type or one.api if isinstance(one, v.Obj) else "" for one in held]
        if not kinds or any(self.run.kb.role(kind, "follows-count") is None for kind in kinds):
            return False
        if (
            not isinstance(loop, m.For)
            or called_name(loop.iter) != "range"
            or not isinstance(loop.iter, m.Call)
        ):
            return False
        if not loop.iter.args or not all(map(self._is_of_optimizer, loop.body)):
            return False
        count = self.run.value_of(loop.iter.args[min(1, len(loop.iter.args) - 1)])
        return not isinstance(count, v.Lit) or bool(count.option)

    def _is_of_optimizer(self, stmt: m.Stmt) -> bool:
        """Whether a statement only calls a method of an optimizer or a scheduler, which is given nothing to compute with."""
        called = stmt.value if isinstance(stmt, m.ExprStmt) else None
        if not isinstance(called, m.Call) or called.args:
            return False
        methods = v.alternatives(self.run.value_of(called.func))
        owners = [one.owner if isinstance(one, v.Member) else None for one in methods]
        return all(isinstance(one, v.Obj) and one.type.startswith("torch.optim.") for one in owners)

    def _advances(self, what: str, call: CallEvent) -> None:
        """A scheduler or scaler takes a step in a round."""
        at = in_round(self.run, self.run.loops[-1], call.node) if self.run.loops else None
        if at is not None and self.run.entry is not None:
            self.advanced.add((what, call_text(call), at))

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "makes-scaler") is not None)
    def scales(self, call: CallEvent) -> None:
        """Something is made that scales losses, or does so where an option has one of its other values."""
        role = self.run.kb.role(call.api, "makes-scaler")
        if role is None:
            return
        if all_hold(call.args, role.when):
            self._used("scaler")
        for one in call.args.values():
            if (
                isinstance(one, v.Lit)
                and one.option
                and any(all_hold(_with(call.args, one, v.Lit(choice)), role.when) for choice in one.choices)
            ):
                self._used("scaler", one.option)

    def _is_stateless(self, call: CallEvent) -> bool:
        """Whether what a call makes goes on from the state of something else."""
        role = self.run.kb.role(call.api, "keeps-no-state")
        return role is not None and all_hold(call.args, role.when) is True

    def _use_scalers(self) -> None:
        """Scalers in attributes that the program reads are used."""
        for made in self.scalers.known():
            file, name, classes, option = self.scalers[made]
            if self.run.reads_attribute(file, name, classes):
                self._used("scaler", option)

    def _reads_its_number(self) -> bool:
        """Whether the constructor that runs is that of a class of the program whose steps take what they need from the
        optimizer, or from what they are given: nothing of it is kept in the scheduler."""
        func = self.run.frame.func
        if func is None or func.fn.name != "__init__" or not isinstance(func.receiver, v.Inst):
            return False
        return keeps_nothing(self.run, func.receiver.cls, "step")

    def _made(self, what: str, node: Any) -> None:
        """What has a state is made, in each round of the loops around it if that is in no branch."""
        self._used(what)
        key = what, self.run.here(node)
        chosen: list[Any] = [
            one for one in nodes([self.run.statement]) if isinstance(one, m.BoolOp | m.IfExp)
        ]
        branching = self.run.branching or any(one is node for one in nodes(chosen))
        around = frozenset[str]() if branching else frozenset(loop.key for loop in self.run.loops)
        known = self.made_in.get(key)
        self.made_in[key] = around if known is None else around & known

    def _used(self, what: str, option: str | None = None) -> None:
        option = self.run.state.aside if option is None else option
        if option:
            self.optional[what, option] = True
        else:
            self.uses[what] = True

    @on_method("step", "update", "update_parameters")
    def updated(self, call: CallEvent) -> None:
        """An optimizer takes a step, or an average of weights is updated."""
        owner = call.owner
        stepped = (
            call.args.get("optimizer", 0) if isinstance(owner, v.Obj) and is_scaler(owner.type) else owner
        )
        if isinstance(stepped, v.Obj) and optimizes(stepped) and call.api.endswith(".step"):
            self.models_stepped(stepped)
            if isinstance(call.node, m.Call):
                self.optimizer_steps(stepped, _stepped_name(call.node, by_scaler=stepped is not owner))
            # A scaler takes the step of the optimizer that it is given.
            owner = stepped
        if isinstance(owner, v.Obj) and owner.api.startswith(_OPTAX):
            state = argument_node(call.node, "state", 1)
            name = state.id if isinstance(state, m.Name) else ""
            role = self.run.kb.role(owner.api, "keeps-no-state")
            stateless = role is not None and all_hold(owner.args, role.when) is True
            for loop in self.run.loops if name else ():
                self.stepped_by_jax["" if stateless else name, loop.key] = True
            return
        if not isinstance(owner, v.Obj) or not (optimizes(owner) or self.run.kb.role(owner.api, "averages")):
            return
        site = made_at(owner)
        if site is not None and isinstance(call.node, m.Call):
            role = self.run.kb.role(owner.api, "keeps-no-state")
            stateless = role is not None and all_hold(owner.args, role.when) is True
            averages = self.run.kb.role(owner.api, "averages") is not None
            by_scaler = owner is not call.owner
            name = "" if stateless else _stepped_name(call.node, by_scaler=by_scaler)
            found = name, not averages and optimizes(owner)
            for loop in self.run.loops:
                # Of several classes of which the program chooses one, the first may be one that keeps no state.
                here = site, loop.key
                if owner.birth < loop.start and (here not in self.stepped or not self.stepped[here][0]):
                    self.stepped[here] = found

    @on(SeedEvent)
    def seeds(self, event: SeedEvent) -> None:
        """RNGs are seeded: by a statement of a loop, that is done in each round."""
        if any(map(self._is_drawn, event.args.values())):
            return
        func = self.run.frame.func
        for rng in event.rngs if func is not None else ():
            held = self.taken_here.get((rng, func.key)) if func is not None else None
            if held is not None:
                place = self.run.here(event.node)
                self.seeded_aside[rng, place] = held
                self.seeded_aside_in.update((rng, held, loop.key) for loop in self.run.loops)
        for loop in self.run.loops:
            if _is_statement_of(self.run, loop, event.node):
                found = (rng for rng in event.rngs if (rng, loop.key) not in self.drawn_in)
                self.seeded_in.update((rng, loop.key) for rng in found)

    def _is_drawn(self, value: v.Value) -> bool:
        """Whether a seed is itself drawn."""
        return any(
            isinstance(one, v.Obj) and any(entry.draws for entry in self.run.kb.rng(one.api))
            for one in v.alternatives(value)
        )

    def _shuffles(self, shuffled: m.Expr) -> None:
        """A method shuffles something in place: it may be a part of its object."""
        function = self.run.frame.func
        one = function.receiver if function is not None else None
        if function is None or not isinstance(one, v.Inst) or not function.fn.params:
            return
        name = own_part(shuffled, function.fn.params[0].name)
        if not name:
            value = self.run.value_of(shuffled)
            held = [
                known
                for known, part in one.attrs.items()
                if part is value and isinstance(value, v.Items | v.Obj)
            ]
            name = held[0] if held else ""
        if name:
            self.shuffled_parts.add((one.cls.file.path, one.cls.cls.start, name))

    @on_call(LOADER)
    def loader(self, call: CallEvent) -> None:
        """A loader is made: where an option asks for it, in the place of the one by default."""
        stmt = self.run.statement
        if isinstance(stmt, m.Assign) and stmt.value is call.node:
            here = self.run.here(call.node)
            held = frozenset((here.path, name) for name in stored_names(stmt))
            self.loaders[here] = held
            entries = self.run.kb.rng(call.api) if self.run.state.aside else ()
            if any("torch" in one.draws and draws_now(self.run, call.args, one) for one in entries):
                self.shuffled_if.update(held)

    def _shuffled_instead(self, loader: v.Value) -> bool:
        """Whether a variable holds another loader, which shuffles, where an option is given."""
        site = made_at(loader) if isinstance(loader, v.Obj) else None
        return site is not None and not (self.loaders.get(site) or frozenset()).isdisjoint(self.shuffled_if)

    @on(IterationEvent)
    def iterated(self, event: IterationEvent) -> None:
        """A loader that was given a generator is gone through, in loops that began when there was that generator."""
        for one in passed_over(event.value) if self.run.loops and self.run.entry is not None else ():
            place = _place_of(one.cls)
            names = tuple(name for path, start, name in self.shuffled_parts if (path, start) == place[:2])
            found = own_state(self.run, one.cls, names)
            if found:
                known = Passed(one.cls.cls.name, place, found)
                self.passed_over.update(
                    (known, loop.key) for loop in self.run.loops if one.birth < loop.start
                )
        if self.shuffled_if and self._shuffled_instead(event.value):
            self.uses["torch"] = self.draws_itself = True
            self._drawn_in_loops("torch")
        persistent = event.value if isinstance(event.value, v.Obj) and _persists(event.value) else None
        own = shuffled_with(event.value)
        # Asked last, because a call that asks for the gradient mode runs once for each mode.
        if (own is None and persistent is None) or self.run.contexts.within(NO_GRADIENT):
            return
        if persistent is not None:
            birth = persistent.birth
            self.persistent.update(loop.key for loop in self.run.loops if birth < loop.start)
        if own is not None:
            self._goes_on_with(own)

    @on_method("manual_seed", "seed", "get_state")
    def seeded(self, call: CallEvent) -> None:
        """A generator is seeded again, or its state is asked for."""
        site = made_at(call.owner) if isinstance(call.owner, v.Obj) else None
        if site is not None and (self.run.loops or call.api.endswith("get_state")):
            self.carried.add(site)

    @on_method("backward", "step", "minimize", "fit")
    def training(self, call: CallEvent) -> None:
        """The program trains."""
        if call.api.endswith(".step") and not (isinstance(call.owner, v.Obj) and optimizes(call.owner)):
            # Of a scheduler, or of the environment of an agent.
            return
        if call.api.endswith(".fit") and fits_alone(self.run, call.owner):
            return
        self._trains()

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "trains") is not None)
    def training_by_function(self, call: CallEvent) -> None:
        """The program trains with a library that has no objects for it."""
        self._trains()

    def _trains(self) -> None:
        self.trained = Moment(self.run.steps)
        for loop in self.run.loops:
            self.trains_in[loop.key] = True

    @on(LoopEvent)
    def loop(self, event: LoopEvent) -> None:
        """A loop begins or ends."""
        loop, begins = event
        if not begins and loop.key in self.trains_in and self.run.entry is not None:
            self._stopped_by(loop)
            if self.loads:
                self._carries(loop)
        if begins and loop.over is not None and self.run.entry is not None:
            self._taken(loop.over)
        start = start_of(self.run, loop) if begins else None
        # Nothing is asked of a table where nothing was loaded: imports with loops are taken over by other runs.
        loaded = bool(self.loaded or (self.loads and self.models_loaded.known()))
        if begins and start is None and loaded:
            start = counter_of(self.run, loop)
        if start is not None:
            self.any_resumed = True
            self.resumed.setdefault(loop.key, lambda: start)
        elif begins and loaded and begins_anew(loop):
            self.anew.add(loop.key)
        if begins and (loaded or self.folders):
            self.began[loop.key] = Moment(self.run.steps)

    def _carries(self, loop: Loop) -> None:
        """A loop that trains goes on with variables."""
        names, of_models, on_weights = carried_on(self.run, loop)
        self.carried_on.update((name, loop.key) for name in names)
        for around in {one.key: one for one in (*self.run.loops, loop)}.values():
            self.carried_on.update((name, around.key) for name, birth in on_weights if birth < around.start)
        self.in_models.update(
            (name, _place_of(cls)[:2], in_state, loop.key) for name, cls, in_state in of_models
        )

    def _stopped_by(self, loop: Loop) -> None:
        """A loop that trains ends when objects of the program say so, which may count for that."""
        for name, one, methods in stoppers(self.run, loop):
            found = counted_by(self.run, one.cls, methods) if one.birth < loop.start else ()
            if found:
                place = _place_of(one.cls)
                self.passed_over.add((Passed(one.cls.cls.name, place, found, name), loop.key))

    @on_object_attribute("last_epoch")
    def continued(self, event: ObjectAttributeEvent) -> None:
        """A scheduler is made to go on from an epoch."""
        if isinstance(event.owner, v.Obj) and is_scheduler(event.owner.api) and not _is_start(event.value):
            self.goes_on = True

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "saves-run") is not None)
    def save_run(self, call: CallEvent) -> None:
        """A library saves the whole state of a run."""
        place = Where(self.run, call.node, call_text(call))
        self.runs.append((place, frozenset(loop.key for loop in self.run.loops)))

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "restores-run") is not None)
    def restore_run(self, call: CallEvent) -> None:
        """A library restores it."""
        role = self.run.kb.role(call.api, "restores-run")
        self.run_restored = self.run_restored or (role is not None and all_hold(call.args, role.when) is True)

    @on_call_if(saves)
    def save(self, call: CallEvent) -> None:
        """Something is saved."""
        self.lists_stored(call)
        role = self.run.kb.role(call.api, "saves-checkpoint")
        content = saved(self.run, call)
        self.keys_unknown = self.keys_unknown or content is None
        if content is not None and not is_never(self.run, call.node):
            itself = role is not None and (role.library in _JAX or bool(role.more))
            subject = call.api if itself else _SAVE
            self._save(call, content, Where(self.run, call.node, subject), role)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "numbers-saved") is not None)
    def numbered_in_name(self, call: CallEvent) -> None:
        """Something is saved under a number, by which it is found again."""
        role = self.run.kb.role(call.api, "numbers-saved")
        if role is not None and call.args.get(role.arg, role.pos) is not None:
            self.numbers.append(frozenset(loop.key for loop in self.run.loops))
            if isinstance(call.owner, v.Obj) and made_at(call.owner) in self.managers:
                self.managed.update(loop.key for loop in self.run.loops)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "stores-data") is not None)
    def store(self, call: CallEvent) -> None:
        """Data is written into a file, as ``pickle.dump`` does, which is a checkpoint where states are in it."""
        role = self.run.kb.role(call.api, "stores-data")
        content = call.args.get(role.arg, role.pos) if role is not None else None
        if content is None or is_never(self.run, call.node):
            return
        self.models_saved(content)
        if self.run.loops:
            self.models_kept(content)
        made = made_by_paths(self.run, content)
        if (
            _is_state(content)
            or any(_holds_state(one) or _of_jax(one) for one in made)
            or self._drawing_on(made, as_data=True)
        ):
            self._save(call, content, Where(self.run, call.node, call.api), role)
        elif any(map(_by_jax, v.alternatives(content))):
            self._replaces(call, role)
        elif counting := self._counting_on(made, as_data=True):
            self.numbers.append(frozenset(counting))

    def _replaces(self, call: CallEvent, role: RoleEntry | None) -> None:
        """Weights of JAX are written into the file from which the program has read them."""
        place, names = Where(self.run, call.node, call.api), names_of(self.run, call, "f", 1)
        read = {site for site in self.read.known() if self.read[site][0].order < place.order}
        if any(site in read and name in names for site, name in self.names):
            loops = frozenset(loop.key for loop in self.run.loops)
            self.data[place.site] = frozenset(_written(_given(call, role)))
            self.replaced.append((place, {"epoch"}, loops, self.run.state.aside))

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "stores-arrays") is not None)
    def store_arrays(self, call: CallEvent) -> None:
        """Arrays are written into a file under names, which is a checkpoint where a loop goes on from one of them."""
        made = v.Mapping(dict(call.args.kw), call.args.dstar)
        if not is_never(self.run, call.node) and self._drawing_on((made,), as_data=True):
            self._save(call, made, Where(self.run, call.node, call.api), None)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "makes-key") is not None)
    def split(self, call: CallEvent) -> None:
        """A loop splits the JAX key that it has split in the round before."""
        key, stmt = argument_node(call.node, "key", 0), self.run.statement
        if not isinstance(key, m.Name) or not isinstance(stmt, m.Assign):
            return
        if not any(isinstance(one, m.Name) and one.id == key.id for one in nodes(list(stmt.targets))):
            return
        for loop in self.run.loops:
            # An attribute may be split by a method that the loop calls.
            if "." in key.id or (loop.frame is self.run.frame and counted(loop.stmt.body, key.id) == 1):
                self.split_in[key.id, loop.key] = True

    def _save(self, call: CallEvent, content: v.Value, place: Where, role: RoleEntry | None) -> None:
        self.stored_between(call, content)
        self.models_saved(content)
        sites, hidden = owners(content)
        self.kept.update(sites)
        given = _given(call, role)
        written = [*_written(given), *_put_in(self.run, given)]
        self.kept_names.update(written)
        self.kept_objects.update(saved_in([] if given is None else [given]))
        self.ending.update((name, loop.key) for loop in self.run.loops for name in ends_by(self.run, loop))
        self.best.update(
            (name, loop.key) for loop in self.run.loops for name in best_of(self.run, loop, call.node)
        )
        self.hidden.update(hidden)
        if self.run.loops:
            # What is saved when all loops have ended is a result.
            self.models_kept(content)
        self.whole.update(_classes(content))
        self.pickled.update(_classes(content, states=False))
        # Paths that meet have each made their own; what any of them holds is not missing.
        made = made_by_paths(self.run, content)
        self.notes_keys(made)
        self.notes_parts(made)
        found: set[str] = set().union(*(contents(self.run.kb, one, written) for one in made))
        found.update(self._saved_itself(place))
        mappings = [one for one in made if isinstance(one, v.Mapping)]
        if len(mappings) == len(made):
            keys = [key for one in mappings for key in epoch_keys(one)]
            self.epoch_keys.update((key, loop.key) for loop in self.run.loops for key in keys)
        self.kept_names.update(str(key) for one in mappings for key in dict.keys(one.items))
        saved = [part for one in mappings for part in one.items.values()]
        self.held_names.update(
            name
            for loop in self.run.loops
            for name, value in loop.frame.env.vars.items()
            if any(value is part for part in saved)
        )
        names = names_of(self.run, call, "f", 1)
        self.names.update((self.run.here(call.node), name) for name in names)
        if self.run.entry is None and any(map(_may_hold_more, saved)):
            # Whoever calls this may give the number in it.
            found.add("epoch")
        counters = self._counters(place.site.path)
        if not counters.isdisjoint(written) or self._is_only_number(mappings):
            found.add("epoch")
        if any(map(_of_jax, made)):
            self.of_jax.add(place.site)
        if not self._is_of_jax(place):
            found.discard("key")
        elif any(
            map(self._is_key, (x for one in made if isinstance(one, v.Mapping) for x in one.items.values()))
        ):
            found.add("key")
        loops = frozenset(loop.key for loop in self.run.loops)
        path = argument_node(call.node, "f", 1)
        numbered = [
            one
            for one in self.run.loops
            if path is not None and is_numbered_by(self.run, path, call.args.get("f", 1), one)
        ]
        if numbered:
            self.in_names[place.site] = frozenset(one.key for one in numbered)
            self.in_files[place.site] = template_of(self.run, call.args.get("f", 1))
        if role is not None and role.library in _JAX and found.isdisjoint({"optimizer", "unknown"}):
            self.data[place.site] = frozenset(written)
            self.of_managers.append((place, {*found}, loops, self.run.state.aside))
        if self.run.loops:
            self.innermost[place.site] = self.run.loops[-1].key
        if "optimizer" not in found and not any(_kind(self.run, one) == "model" for one in _states_in(made)):
            self.beside.append((found & _BESIDE, loops))
        if not all(isinstance(one, v.Mapping | v.Items) for one in made):
            # One state alone, in a file of its own: the rest may stand in others.
            known = isinstance(content, v.Obj | v.Inst | v.Lit) or _counts(given, counters)
            self.alone.append((place, found if known else {*found, "unknown"}, loops))
            self._weights(call, content, found, place, loops)
            return
        going_on = self._going_on(made)
        if going_on:
            # Whatever its key, the number from which a loop goes on is that of the epoch or step.
            found.add("epoch")
        if not going_on:
            if found <= {"epoch"} and weights_in(self.run, content):
                self.named.update(names)
            elif found == {"epoch"}:
                self.numbers.append(loops)
            self._weights(call, content, found, place, loops)
        if ("optimizer" in found or going_on) and "unknown" not in found:
            loops |= going_on
            if "optimizer" not in found and not any(map(_holds_state, made)):
                self.data[place.site] = frozenset(written)
            self.held.update(kind for one in made for kind in _kinds_held(one))
            self.checkpoints.append((place, found, loops, self.run.state.aside))
            self._tested(place, call.node)
            if not all(_only_states(one) for one in made if isinstance(one, v.Mapping | v.Items)):
                self.objects = True

    def _weights(
        self, call: CallEvent, content: v.Value, found: set[str], place: Where, loops: frozenset[str]
    ) -> None:
        """Weights may be saved alone, or with a number."""
        models = weights_in(self.run, content)
        file = file_of(self.run, call, "f", 1) if models else None
        if models and self._is_counted_on(argument_node(call.node, "f", 1)):
            self.numbered.update(loops or self.trains_in.known())
        self._weights_in(call, file, argument_node(call.node, "obj", 0), models, found, place, loops)

    def _weights_in(
        self,
        call: CallEvent,
        file: File | None,
        written: Any,
        models: frozenset[tuple[object, Site]],
        found: set[str],
        place: Where,
        loops: frozenset[str],
    ) -> None:
        """Weights of models, written as an expression, may be saved in a file."""
        if file is not None:
            self.written.setdefault(file.name, lambda: Moment(self.run.steps))
        # A file that is written once, after a loop that trains, holds what that loop has come to.
        after = frozenset[str]() if loops else frozenset(self.trains_in.known())
        loops = loops or frozenset(key for key in after if self._counts_on(key))
        if found <= {"epoch"} and (loops or after) and models:
            self._loaded_whole(written, frozenset(site for _, site in models))
            option = self.run.state.aside
            tests = tests_around(self.run, call.node)
            self.weights.append(Saved(place, frozenset(found), loops, option, models, file, tests, after))

    def _is_counted_on(self, path: Any) -> bool:
        """Whether the name of a file has the sum of a number that an option gives with which the program loads something."""
        if path is None or not self.loaded_if:
            return False
        named = [one.id for one in nodes([path]) if isinstance(one, m.Name)]
        return any(
            isinstance(one, v.Lit) and type(one.value) is int and one.option in self.loaded_if
            for added in nodes([path, *(one for name in named for one in assignments(self.run, name))])
            if isinstance(added, m.BinOp) and added.op == "+"
            for name in nodes([added])
            if isinstance(name, m.Name)
            for one in v.alternatives(self.run.value_of(name))
        )

    @on_method("save_pretrained")
    def save_pretrained(self, call: CallEvent) -> None:
        """A model saves its weights in a folder."""
        models = weights_in(self.run, call.owner) if call.owner is not None else frozenset()
        if models and isinstance(call.node, m.Call) and not is_never(self.run, call.node):
            file = file_of(self.run, call, "save_directory", 0)
            loops = frozenset(loop.key for loop in self.run.loops)
            place = Where(self.run, call.node, call_text(call))
            saved = frozenset(site for _, site in models)
            here = (self.run.frame.file.path, receiver(call.node))
            self.loaded.extend(
                one._replace(models=saved) for *variable, one in self.folders if (*variable,) == here
            )
            self._weights_in(call, file, call.node.func, models, set(), place, loops)

    @on_call_if(lambda rule, api: api.endswith(".from_pretrained"))
    def load_pretrained(self, call: CallEvent) -> None:
        """A model may be loaded from a folder in which it was saved."""
        stmt = self.run.statement
        if not isinstance(stmt, m.Assign) or stmt.value is not call.node:
            return
        file, tests = file_of(self.run, call, _FOLDER, 0), tests_around(self.run, call.node)
        loops = frozenset(loop.key for loop in self.run.loops)
        known = Loaded(Moment(self.run.steps), loops, frozenset(), WHOLE, file, tests)
        path = self.run.frame.file.path
        names = [one.id for one in stmt.targets if isinstance(one, m.Name)]
        self.folders.extend((path, name, known) for name in names if file is not None)

    def _loaded_whole(self, content: Any, models: frozenset[Site]) -> None:
        """Models are saved from a variable into which a model was loaded, in the place of its state."""
        while isinstance(content, m.Call):
            content = content.func
        if not isinstance(content, m.Name):
            return
        path = self.run.frame.file.path
        for name in accumulate(content.id.split("."), "{}.{}".format):
            known = self.models_loaded.get((path, name))
            if known is not None:
                self.loaded.append(known._replace(models=models))

    def _gone_on_with(self) -> list[tuple[Where, set[str], frozenset[str], str]]:
        """Weights that the program saves in a loop that trains, and goes on from: the loop begins with a number that was
        read, or that an option gives, or else the program loads the file that it saves."""
        found: list[tuple[Where, set[str], frozenset[str], str]] = []
        for saved in self.weights:
            for loop in saved.loops | saved.after:
                if loop not in self.trains_in:
                    continue
                began = self.began.get(loop)
                earlier = saved.before(loop, self.loaded, began)
                first = self.written.get(saved.file.name) if saved.file is not None else None
                counts = loop in saved.loops and self._counts_on(loop)
                if counts and any(loop not in one.loops for one in earlier):
                    found.append((saved.place, {*saved.found, "epoch"}, frozenset({loop}), saved.option))
                elif any(saved.replaces(one, loop, first) for one in earlier):
                    if self._not_kept(frozenset({loop})):
                        found.append((saved.place, {*saved.found, "epoch"}, frozenset({loop}), saved.option))
        return found

    def _is_only_number(self, saved: list[v.Mapping]) -> bool:
        """Whether the number of the only loop that runs is saved, whatever it is called."""
        if len(self.run.loops) != 1:
            return False
        known = number_of(self.run.loops[0])
        own = counters_of(self.run.loops[0]) if known is None else [known]
        return any(part is one for held in saved for part in held.items.values() for one in own)

    def _counts_on(self, loop: str) -> bool:
        """Whether a loop goes on from a number that was read, or that an option gives."""
        return loop in self.numbered or (loop in self.resumed and self.resumed[loop].from_first)

    def _going_on(self, made: tuple[v.Value, ...]) -> frozenset[str]:
        """The training loops that go on from a number that is saved, with the state of something else, or which draw."""
        if not any(map(_holds_state, made)):
            return self._drawing_on(made)
        return frozenset(loop for loop in self._counting_on(made) if loop in self.trains_in)

    def _drawing_on(self, made: tuple[v.Value, ...], as_data: bool = False) -> frozenset[str]:
        """The loops that go on from a number that is saved, and draw random numbers or update the state of an optimizer of
        JAX."""
        # The number alone stands beside what is saved in another file.
        more = tuple(one for one in made if isinstance(one, v.Mapping) and len(dict.keys(one.items)) > 1)
        counting = self._counting_on(more, as_data)
        if not counting:
            return frozenset()
        drawn = {loop for _, loop in [*self.drawn_in.known(), *self.stepped_by_jax.known()]}
        return frozenset(drawn.intersection(counting))

    def _counting_on(self, made: tuple[v.Value, ...], as_data: bool = False) -> list[str]:
        """The loops that go on from a number that is saved; ``as_data``, as JSON is, from what PyTorch does not load."""
        keys: set[object] = {
            key for one in made if isinstance(one, v.Mapping) for key in dict.keys(one.items)
        }
        if not keys or not self.any_resumed:
            return []
        starts = [(loop, self.resumed[loop]) for loop in self.resumed.known()]
        return [loop for loop, start in starts if start.is_kept(self.run, keys, LOAD if as_data else "")]

    def _counters(self, path: str) -> set[str]:
        """Variables of the running loops of a file in which an optimizer has taken steps."""
        trained = {key for _, key in [*self.stepped.known(), *self.stepped_by_jax.known()]}
        return {
            one.id
            for loop in self.run.loops
            if loop.path == path and loop.key in trained and isinstance(loop.stmt, m.For)
            for one in nodes([loop.stmt.target])
            if isinstance(one, m.Name)
        }

    @on_method("load_state_dict", OF_ONE_MODULE)
    def state_given(self, call: CallEvent) -> None:
        """An object is given its state."""
        loops = frozenset(loop.key for loop in self.run.loops)
        of_module = call.api.endswith(OF_ONE_MODULE)
        kind = "model" if of_module else _kind(self.run, call.owner or v.UNKNOWN)
        self.given.append((Where(self.run, call.node, "load_state_dict"), loops, kind))
        self.gives_state(call.owner)
        if kind == "optimizer":
            self.optimizer_given(call.owner, self.given[-1][0])
        state = call.args.get("state_dict", 0)
        models = frozenset(models_made(call.owner)) if kind == "model" else frozenset()
        for site in sources(state) if state is not None and kind in ("model", "optimizer") else ():
            key = key_of(state) if state is not None else None
            self.entries.append((kind, site, key if isinstance(key, str) else ""))
        for site in sources(state) if state is not None else ():
            whole = kind == "model" and state is not None and key_of(state) == WHOLE
            self.given_whole[site] = whole and self.given_whole.get(site) is not False
            if site in self.read and all(one.site != site for one, _ in self.loads):
                self.loads.append(self.read[site])
        if models and state is not None and not _is_state(state):
            file = next((self.files[one] for one in sources(state) if one in self.files), None)
            tests = tests_around(self.run, call.node)
            self.loaded.append(Loaded(Moment(self.run.steps), loops, models, key_of(state), file, tests))

    def _tested(self, place: Where, node: Any) -> None:
        """Something is saved or loaded behind tests: what holds however the program comes there counts."""
        around = tests_around(self.run, node, alone=True)
        known = self.tests.get(place.site)
        self.tests[place.site] = around if known is None else known & around

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "starts-ranks") is not None)
    def ranks(self, call: CallEvent) -> None:
        """The program runs in several processes."""
        self.in_ranks = True

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "loads-checkpoint") is not None)
    def restores(self, call: CallEvent) -> None:
        """A checkpoint is loaded whose items are what the program goes on with."""
        role = self.run.kb.role(call.api, "loads-checkpoint")
        if role is None or all_hold(call.args, role.when) is not True:
            return
        place = Where(self.run, call.node, call.api)
        self.restored_at.append(place)
        manager = made_at(call.owner) if isinstance(call.owner, v.Obj) and not self.run.loops else None
        if manager is not None:
            self.managers.add(manager)
        if role.arg:
            # The states stand in the argument, as in what ``torch.load`` gives.
            self.loads.append((place, frozenset(loop.key for loop in self.run.loops)))

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "reads-data") is not None)
    def read_data(self, call: CallEvent) -> None:
        """Data is read, which may be that of a checkpoint."""
        place = Where(self.run, call.node, call.api)
        self.read.setdefault(place.site, lambda: (place, frozenset(loop.key for loop in self.run.loops)))
        self._loaded_from(call, place)
        self.restored_at.append(place)

    @on_call(LOAD)
    def load(self, call: CallEvent) -> None:
        """Something is loaded."""
        loops = frozenset(loop.key for loop in self.run.loops)
        place = Where(self.run, call.node, LOAD)
        self.loads.append((place, loops))
        self._loaded_from(call, place)
        stmt = self.run.statement
        if isinstance(stmt, m.Assign) and _is_given_by(stmt.value, call.node):
            file, tests = self.files.get(place.site), tests_around(self.run, call.node)
            known = Loaded(Moment(self.run.steps), loops, frozenset(), WHOLE, file, tests)
            for name in stored_names(stmt):
                self.models_loaded.setdefault((place.site.path, name), lambda: known)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "fills-from-file") is not None)
    def filled_from_file(self, call: CallEvent) -> None:
        """A model is given the weights in a file."""
        role = self.run.kb.role(call.api, "fills-from-file")
        if role is None or role.pos is None:
            return
        place = Where(self.run, call.node, LOAD)
        loops = frozenset(loop.key for loop in self.run.loops)
        self.loads.append((place, loops))
        self.given.append((place, loops, "model"))
        self._loaded_from(call, place, role.more[0], role.pos + 1)
        models, file = frozenset(models_made(call.args.get(role.arg, role.pos))), self.files.get(place.site)
        tests = tests_around(self.run, call.node)
        self.loaded.append(Loaded(Moment(self.run.steps), loops, models, WHOLE, file, tests))

    def _loaded_from(self, call: CallEvent, place: Where, argument: str = "f", position: int = 0) -> None:
        """What the file is called in which something stands that is loaded."""
        self._tested(place, call.node)
        if self.run.state.aside:
            self.loaded_if.add(self.run.state.aside)
        self.names.update((place.site, name) for name in names_of(self.run, call, argument, position))
        file = file_of(self.run, call, argument, position)
        if file is not None:
            self.files[place.site] = file

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        open_world = self.run.entry is None
        if not open_world:
            self._whole_runs()
        self._use_scalers()
        for rng, held, key in sorted(self.drawn_aside):
            if held not in self.put_back:
                self.uses[rng] = True
                self.drawn_in[rng, key] = True
        for rng, held, maker in sorted(self.drawn_aside_by):
            if held not in self.put_back:
                self.drawn_by[rng, maker] = True
        if self.forwarded and self.loads:
            self.goes_on = True
        uses = set(self.uses.known()) - ({"scheduler"} if self.goes_on else set())
        going_on = {
            loop for one in [*self.checkpoints, *self.replaced] if one[0].site in self.data for loop in one[2]
        }
        going_on |= {loop for one in self.of_managers for loop in one[2] if loop in self.managed}
        in_training = {
            rng for rng, loop in self.drawn_in.known() if loop in self.trains_in or loop in going_on
        }
        fed = {
            maker
            for maker, loop in self.taken_in.known()
            if not loop or loop in self.trains_in or loop in going_on
        }
        in_training |= {rng for rng, maker in self.drawn_by.known() if maker in fed}
        if not open_world and (going_on or self.trains_in.known()):
            # What is drawn before the loop that trains is drawn again by a resumed run.
            uses -= set(NAMES) - in_training
        if open_world:
            # Who calls this is not known. What trains with an optimizer draws from torch: shuffling, dropout.
            uses.add("torch")
        on_cuda = may_use_cuda(self.run) or (open_world and may_be_given_cuda(self.run))
        if "torch" in uses and (self.draws_itself or open_world) and on_cuda:
            uses.add("cuda")
        reported: set[tuple[str, str]] = set()
        loads = self._of_checkpoints()
        evaluated = not open_world and self._only_evaluated(loads)
        stages = not open_world and bool(loads) and not self.alone
        checkpoints = [*self.checkpoints, *self._in_several_files()]
        updated = {loop for _, loop in self.stepped_by_jax.known()}
        checkpoints += [one for one in self.replaced if not updated.isdisjoint(one[2])]
        checkpoints += [one for one in self.of_managers if not updated.isdisjoint(one[2] & set(self.managed))]
        weights: list[tuple[Where, set[str], frozenset[str], str]] = []
        if self.all_fail() and not self.restored_at:
            for place, *_ in checkpoints:
                self.silent("DET601", place, "what would load it raises an exception")
            return
        if not checkpoints and not open_world:
            # Nothing else is saved that could be gone on with.
            checkpoints = weights = self._gone_on_with()
        # What is saved by default comes before what options ask for, which is the same on another way to the same place.
        for place, found, loops, option in sorted(checkpoints, key=lambda one: len(one[0].given)):
            # What an option asks for is kept, or not, where it is given.
            here = uses | {what for what, one in self.optional.known() if one == option}
            inner = self.innermost.get(place.site) or ""
            fresh = {rng for rng in NAMES if (rng, inner) in self.seeded_in}
            here -= {*fresh, *(["cuda"] if "torch" in fresh else [])}
            here -= {what for what in ("scheduler", "scaler") if self._is_made_anew(what, inner)}
            # Several files from one place (last, best, every n epochs) are reported once.
            if (place.site.path, place.scope) in reported:
                continue
            if not open_world and not trains(self.run) and place.site not in self.data:
                continue
            itself = self._saved_itself(place)
            asks = bool(itself) or self._is_of_jax(place)
            if asks and not any(one.order < place.order for one in self.restored_at):
                self.silent("DET601", place, "the program loads no checkpoint before")
                continue
            if evaluated and self._may_be_loaded(place):
                self.silent("DET601", place, "what the program loads, it loads after it has trained")
                continue
            if stages and all(self._is_of_other_stage(place, one) for one, _ in loads):
                self.silent("DET601", place, "no run that saves this loads anything")
                continue
            found = found.union(*(held for held, others in self.beside if not loops.isdisjoint(others)))
            counted = "epoch" in found or self._is_counted(loops) or self._is_in_name(place)
            lacks = [] if counted else ["the epoch or step"]
            wanted = [
                *(["epoch"] if lacks else []),
                *(p for p in ("scheduler", "scaler") if p in here - found),
            ]
            wanted += [rng for rng in NAMES if rng in here - found]
            lacks += [
                f"the {what} state" for what in ("scheduler", "scaler") if what in here and what not in found
            ]
            lacks += rng_states([rng for rng in NAMES if rng in here and rng not in found])
            made = [] if option or open_world else self._made_if_given()
            if_given = {what: one for what, one in made if what not in here | found}
            for one in sorted(set(if_given.values())):
                kinds = [what for what in sorted(if_given) if if_given[what] == one]
                states = "state" if len(kinds) == 1 else "states"
                lacks.append(f"the {listed(kinds)} {states} when {given_in_words(one)}")
            if "key" not in found and self._is_of_jax(place):
                split = sorted({name for name, loop in self.split_in.known() if loop in loops})
                lacks += [f"the JAX key `{name}`" for name in split]
            others = [] if open_world else self._not_kept(loops)
            lacks += [f"the state of `{name}`" for name in others]
            if place.site in self.data:
                kept = self.data[place.site]
                named = sorted({name for name, loop in self.stepped_by_jax.known() if loop in loops})
                lacks += [
                    f"the state of the optimizer `{name}`" for name in named if name and name not in kept
                ]
            generators = self._in_training(self.shuffled, loops)
            if not open_world and not generators <= self.carried:
                others = [*others, "generator"]
                lacks.append("the state of the loader's generator")
            for known in [] if open_world else self._own_states(place, loops):
                others = [*others, known.name]
                lacks.append(
                    f"the state of `{known.name}` ({listed([f'`{one}`' for one in known.attributes])})"
                )
            ending = [] if open_world else self._ending(place, loops)
            if ending:
                others = [*others, *ending]
                variables = "variable" if len(ending) == 1 else "variables"
                lacks.append(f"the early-stopping {variables} {listed([f'`{one}`' for one in ending])}")
            drawn = [] if open_world else self._generators(loops)
            if drawn:
                others = [*others, *drawn]
                states = "state of the generator" if len(drawn) == 1 else "states of the generators"
                lacks.append(f"the {states} {listed([f'`{one}`' for one in drawn])}")
            averages = [] if open_world or not loads else self._averages_of(place, loops)
            averages = sorted({*averages, *([] if open_world else self._trained_models(place, loops))})
            if averages:
                others = [*others, *averages]
                lacks += [f"the weights of `{name}`" for name in averages]
            memories = [] if open_world else self._memories(place, loops)
            if memories:
                others = [*others, *memories]
                lacks.append(f"the items of {listed([f'`{one}`' for one in memories])}")
            best = [] if open_world or not loads else self._best(place, loops, ending)
            if best:
                others = [*others, *best]
                scores = "score" if len(best) == 1 else "scores"
                lacks.append(f"the best {scores} so far {listed([f'`{one}`' for one in best])}")
            carried = [] if open_world or not loads else self._variables(place, loops, {*best, *ending})
            if carried:
                others = [*others, *carried]
                nouns = "variable" if all(map(str.isidentifier, carried)) else "value"
                nouns += "s" if len(carried) > 1 else ""
                lacks.append(
                    f"the {nouns} {listed([f'`{one}`' for one in carried])}, on which training depends"
                )
            orders = [] if open_world else self._orders(loops)
            only_orders = bool(orders) and not lacks
            if orders:
                others = [*others, *orders]
                lacks.append(f"the order of {listed([f'`{one}`' for one in orders])} (shuffled in place)")
            persistent = not open_world and self._workers_go_on(loops)
            only_workers = persistent and not lacks
            if persistent:
                others = [*others, "workers"]
                lacks.append(_OF_WORKERS)
            if lacks:
                reported.add((place.site.path, place.scope))
                ranked = self.in_ranks and any(rng in NAMES for rng in wanted)
                between = [] if open_world else self._between_help(place, wanted)
                self.report(
                    "DET601",
                    place,
                    f"checkpoint does not save {listed(lacks)}; a resumed run diverges from an uninterrupted one",
                    "; ".join(
                        [
                            _remedy(
                                orders if only_orders else [],
                                only_workers,
                                persistent,
                                ranked,
                                self._given_to(place),
                            ),
                            *between,
                        ]
                    ),
                    subject=place.subject,
                    # An edit that saves a part of it would only seem to be enough.
                    remedy=()
                    if others
                    or if_given
                    or weights
                    or ranked
                    or between
                    or place.subject != _SAVE
                    or self._loaded_elsewhere(place)
                    else (*wanted, *(() if open_world else self._loaded_here(place))),
                    unless=self._unless(found) if not weights else "",
                )
        if open_world:
            # What is saved here may be restored elsewhere.
            return
        for place, _ in loads[:1]:
            for key, shown in self._idle_epochs():
                self.report(
                    "DET602",
                    place,
                    f"the number of an epoch that is loaded as `{key}` does not say where the loop begins, so resumed "
                    "training begins with the first epoch again"
                    if shown
                    else f"the number of the epoch is saved as `{key}` but never read, so resumed training begins with the "
                    "first epoch again",
                    "save the number of the last epoch, and begin the loop with the one after it"
                    if shown
                    else f"begin the loop with the number that is loaded as `{key}`",
                    subject=key,
                )
        self._between_rounds()
        resumed = set(self.resumed.known()) & set(self.trains_in.known())
        later = self.made_later(resumed) if loads and resumed else None
        if later is not None:
            name, place = later
            self.report(
                "DET602",
                place,
                f"this state is loaded into an optimizer that takes no steps: `{name}`, which trains, is created after "
                "it, so resumed training continues from a different state",
                f"load the state into `{name}`: create it before, and only once",
                subject=name,
            )
        missing = set(self.saved.known()) - set(self.restored.known())
        forgotten = self._forgotten()
        parts = self._unread_parts(forgotten)
        if missing or forgotten or parts:
            for place in [self.place_of(parts)] if parts else [one for one, _ in loads[:1]]:
                rngs = [rng for rng in NAMES if rng in missing]
                lacking = [one.state for one in parts]
                lacking += [*(f"the {kind} state" for kind in forgotten), *rng_states(rngs)]
                single = len(rngs) + len(forgotten) + len(parts) == 1 and not any(
                    one.is_model for one in parts
                )
                states = f"{listed(lacking)} {'is' if single else 'are'}"
                early = self.drawn_after_load(rngs, set(self.trains_in.known()))
                calls = [f"`{one.name}.load_state_dict`" for one in parts]
                calls += [f"`load_state_dict` of the {kind}" for kind in forgotten]
                calls += [f"`{RESTORE_CALLS[rng]}`" for rng in rngs]
                self.report(
                    "DET602",
                    place,
                    f"{states} saved but never restored, so resumed training continues from a different state",
                    f"restore on load with {listed(calls)}{_OF_RANKS if self.in_ranks and rngs else ''}"
                    f"{f', {_before_loop(early)}' if early else ''}",
                    subject=place.subject,
                    remedy=()
                    if forgotten or parts or early or self.in_ranks or place.subject != LOAD
                    else tuple(rngs),
                )

    def _between_rounds(self) -> None:
        """States of RNGs that are saved before a round draws for the last time, or restored too early."""
        training = set(self.trains_in.known())
        for drawn in self.drawn_late(training, self.seeded_in):
            self.report(
                "DET601",
                drawn.place,
                f"{drawn.name} draws from the {NAMES[drawn.rng]} RNG after the checkpoint of the same round has saved its "
                "state: a resumed run goes on with the state from before this draw",
                "save the checkpoint at the end of the round",
                subject=drawn.name.strip("`"),
            )
        for restored, seeded in self.seeded_early(training):
            self.report(
                "DET602",
                restored.place,
                f"the {NAMES[seeded.rng]} RNG state is restored before {seeded.name} seeds the RNG again, so resumed "
                "training continues from a different state",
                f"restore it right before the loop that trains, after {seeded.name}",
                subject=RESTORE_CALLS[seeded.rng],
            )
        for restored, drawn in self.drawn_early(training):
            self.report(
                "DET602",
                restored.place,
                f"the {NAMES[drawn.rng]} RNG state is restored before {drawn.name} draws from it, so resumed training "
                "continues from a different state",
                f"restore it right before the loop that trains, after {drawn.name}",
                subject=RESTORE_CALLS[drawn.rng],
            )

    def _between_help(self, place: Where, wanted: list[str]) -> list[str]:
        """What else to do about RNG states that a checkpoint lacks: when to save and restore them."""
        training = set(self.trains_in.known())
        late = self.drawn_after_save(place, wanted, training)
        early = self.drawn_after_load(wanted, training)
        saved = [at for site, at in self.saved_in if site == place.site and at.loop in training]
        stepped = sorted(
            call
            for what, call, at in self.advanced
            if what in wanted and any(at.loop == one.loop for one in saved) and all(map(at.follows, saved))
        )
        after = [one.name for one in late] + [f"`{call}`" for call in stepped]
        return [
            *([f"save it at the end of the round, after {after[0]}"] if after else []),
            *([f"restore the RNG states {_before_loop(early)}"] if early else []),
        ]

    def _unless(self, found: set[str]) -> str:
        """What other programs may show, so that there is less to report of a checkpoint that holds something."""
        # With the number of the epoch it may be kept to go on from, whoever else reads its weights.
        evaluated = LESS_IF_EVALUATED if "epoch" in found else EVALUATED
        loads = self.run.entry is None or self.loads or self.restored_at
        return evaluated if loads else f"{evaluated}{AND}{NEVER_LOADS}"

    def _made_if_given(self) -> list[tuple[str, str]]:
        """The schedulers and scalers that are made where an option is given, with the option."""
        kinds = ("scaler",) if self.goes_on else ("scheduler", "scaler")
        return [one for one in sorted(self.optional.known()) if one[0] in kinds]

    def _workers_go_on(self, loops: frozenset[str]) -> bool:
        """Whether workers that draw go on from one round of these loops to the next, while the program trains."""
        return any(loop in loops and loop in self.trains_in for loop in self.persistent)

    def _whole_runs(self) -> None:
        """What a library saves of a run lacks what workers have drawn."""
        scopes: set[tuple[str, str]] = set()
        # What the program adds to what a library saves is reported with that.
        added = {place.site for place, *_ in self.checkpoints}
        for place, loops in self.runs if self.run_restored else ():
            scope = (place.site.path, place.scope)
            if place.site not in added and scope not in scopes and self._workers_go_on(loops):
                scopes.add(scope)
                self.report(
                    "DET601",
                    place,
                    f"`{place.subject}` does not save {_OF_WORKERS}; a resumed run diverges from an uninterrupted one",
                    _remedy([], True, True, False, ""),
                    subject=place.subject,
                )

    def _is_made_anew(self, what: str, loop: str) -> bool:
        """Whether each round of a loop makes what has a state: a resumed run does so too."""
        made = [self.made_in[key] for key in self.made_in.known() if key[0] == what]
        kept = what == "scaler" and bool(self.scalers.known())
        return bool(made) and not kept and all(loop in around for around in made)

    def _that_train(self, loops: Iterable[str]) -> set[str]:
        """Those of some loops that train."""
        return {loop for loop in loops if loop in self.trains_in}

    def _in_training(self, found: Iterable[tuple[_Found, str]], loops: Iterable[str]) -> set[_Found]:
        """What was found in those of some loops that train."""
        training = self._that_train(loops)
        return {one for one, loop in found if loop in training}

    def _own_states(self, place: Where, loops: frozenset[str]) -> list[Passed]:
        """What loops that train go through or are ended by, whose states nothing saves or restores that is seen to."""
        files = {place.site.path, *(one.site.path for one, _ in self.loads)}
        by_path = self.run.modules.by_path
        kept = {last_of(one) for one in self.kept_names}
        found = sorted(self._in_training(self.passed_over, loops))
        parts = [tuple(name for name in one.attributes if name not in kept) for one in found]
        return [
            one._replace(attributes=left)
            for one, left in zip(found, parts, strict=True)
            if left
            and one.place[:2] not in self.whole
            and not (one.called and not self._unsaved(place, loops, {one.called}))
            and not any(
                named_elsewhere(self.run, by_path[path], one.place, one.attributes)
                for path in sorted(files)
                if path in by_path
            )
        ]

    def _orders(self, loops: frozenset[str]) -> list[str]:
        """What loops that train shuffle in place in each round, and nothing saves."""
        known = {name for one, _ in self.passed_over for name in one.attributes}
        found = self._in_training(self.reordered, loops)
        return sorted(name for name in found - set(self.kept_names) if name.rpartition(".")[2] not in known)

    def _memories(self, place: Where, loops: frozenset[str]) -> list[str]:
        """The lists that loops which train fill and draw from, and that nothing saves."""
        return self._unsaved(place, loops, set(self.unsaved_lists(self._that_train(loops))))

    def _averages_of(self, place: Where, loops: frozenset[str]) -> list[str]:
        """The models and collections that loops which train update as averages, and whose weights nothing saves."""
        return self._unsaved(place, loops, set(self.unsaved_averages(self._that_train(loops))))

    def _trained_models(self, place: Where, loops: frozenset[str]) -> list[str]:
        """The models that loops train, and whose weights nothing saves."""
        known = all(_EPOCH.search(key) for key in self.hidden)
        if not self.loads or not known or self.runs:
            return []
        return self._unsaved(place, loops, self.unsaved_models(self._that_train(loops)))

    def _generators(self, loops: frozenset[str]) -> list[str]:
        """The generators of the program that loops which train draw from, and whose states nothing saves."""
        return self.unsaved_generators(self._that_train(loops), {*self.kept, *self.carried})

    def _ending(self, place: Where, loops: frozenset[str]) -> list[str]:
        """The numbers that say when loops end that train, and that nothing saves."""
        return self._unsaved(place, loops, self._in_training(self.ending, loops))

    def _best(self, place: Where, loops: frozenset[str], ending: list[str]) -> list[str]:
        """The best scores so far of loops that train, which say whether the next weights replace the best ones."""
        found = self._in_training(self.best, loops)
        return self._unsaved(place, loops, found - {*ending})

    def _variables(self, place: Where, loops: frozenset[str], named: set[str]) -> list[str]:
        """The other numbers with which loops go on that train, and that nothing saves."""
        found = self._in_training(self.carried_on, loops)
        known = self._unsaved(place, loops, found - {*self.held_names, *named})
        training = self._that_train(loops)
        in_models = {
            name
            for name, cls, in_state, loop in self.in_models
            if loop in training
            and cls not in (self.whole if in_state else self.pickled)
            and not (in_state and self._is_in_state(name))
        }
        return sorted({*known, *self._unsaved(place, loops, in_models, of_models=True)})

    def _unsaved(
        self, place: Where, loops: frozenset[str], found: set[str], of_models: bool = False
    ) -> list[str]:
        """Those of some variables, attributes and items that no file holds, and nothing does that a file holds: the state
        of a model does not hold its attributes."""
        kept = {last_of(one) for one in self.kept_names}
        found = {one for one in found if last_of(one) not in kept}
        objects = set(self.kept_objects)
        paths = {place.site.path, *(loop.rpartition(":")[0] for loop in loops)}
        by_path = self.run.modules.by_path
        for path in sorted(paths) if found else ():
            if path in by_path:
                objects |= stored_with(self.run.whole(by_path[path]), kept)
        return sorted(
            one for one in found if one not in objects and (of_models or owner_of(one) not in objects)
        )

    def _is_in_state(self, name: str) -> bool:
        """Whether the program saves the state of something of which an attribute is a part."""
        while name := owner_of(name):
            if name in self.kept_objects:
                return True
        return False

    def _is_key(self, value: v.Value) -> bool:
        return any(
            isinstance(one, v.Obj) and self.run.kb.role(one.api, "makes-key") is not None
            for one in v.alternatives(value)
        )

    def _given_to(self, place: Where) -> str:
        """Where a library takes what it does not save itself."""
        role = self.run.kb.role(place.subject, "saves-checkpoint")
        return f" in `{role.arg}=`" if role is not None and role.more else ""

    def _saved_itself(self, place: Where) -> list[str]:
        """What the library saves itself that writes a checkpoint, beside what it is given."""
        role = self.run.kb.role(place.subject, "saves-checkpoint")
        return role.more if role is not None else []

    def _is_of_jax(self, place: Where) -> bool:
        """Whether a checkpoint holds what a program of JAX goes on with, which is nothing that has a state."""
        role = self.run.kb.role(place.subject, "saves-checkpoint")
        return place.site in self.of_jax or (role is not None and role.library in _JAX)

    def _is_counted(self, loops: frozenset[str]) -> bool:
        """Whether the number of the epoch or step is saved in its own file beside a checkpoint, or a text from which the
        loop goes on has it."""
        alone = [others for _, found, others in self.alone if found == {"epoch"}]
        if any(not loops.isdisjoint(others) for others in [*alone, *self.numbers]):
            return True
        return any(self.resumed[one].key == READ.value for one in loops if one in self.resumed)

    def _is_in_name(self, place: Where) -> bool:
        """Whether a checkpoint has its number in its name, from which, or from the option that says which one to load, a
        resumed run takes the number of its first round."""
        loops = [one for one in self.in_names.get(place.site) or () if one not in self.anew]
        starts = [self.resumed[one] for one in loops if one in self.resumed]
        if any(one.option or one.key == READ.value for one in starts):
            return True
        saved, loaded = self.in_files.get(place.site), map(self.files.get, self.files.known())
        # A loop that goes on from a number in a file has that, wherever it is saved.
        return any(one not in self.resumed for one in loops) and any(
            one is not None and len(one.template) > 1 and one.template == saved for one in loaded
        )

    def _idle_epochs(self) -> list[tuple[str, bool]]:
        """The keys of epochs by which no loop goes on, and whether something reads them, where a loop that trains begins
        with the first epoch after a model and its optimizer were given their states."""
        given = {kind for _, _, kind in self.given}
        if "" in given or not {"model", "optimizer"} <= given:
            return []
        if any(loop in self.trains_in for loop in self.resumed.known()):
            return []
        begun = {loop for loop in self.anew if loop in self.trains_in and loop in self.began}
        found = sorted({key for key, loop in self.epoch_keys if loop in begun})
        fates = {key: fate(self.run, key) for key in found}
        if Fate.SHOWN not in fates.values():
            return [(key, False) for key in found if fates[key] is Fate.UNREAD]
        # Another number may say where the loop begins.
        others = [key for key in sorted(set(self.kept_names)) if key not in fates and _EPOCH.search(key)]
        if Fate.USED in fates.values() or any(fate(self.run, one) is Fate.USED for one in others):
            return []
        return [next((key, True) for key in found if fates[key] is Fate.SHOWN)]

    def _forgotten(self) -> list[str]:
        """What keeps a state that is saved, and is not given it where training goes on."""
        trained = self.trained
        given = {kind for _, _, kind in self.given}
        if "" in given or not trained:
            return []
        if self._takes_weights():
            given.discard("optimizer")
        resumes = any(loop in self.trains_in for loop in self.resumed.known())
        kinds = set(self.held) - given
        if "optimizer" not in given:
            # Weights alone are evaluated, or are those with which another training begins.
            return ["optimizer"] if resumes and "model" in given and "optimizer" in kinds else []
        if not any(
            kind == "optimizer" and (place.order < trained or any(key in self.trains_in for key in loops))
            for place, loops, kind in self.given
        ):
            return []
        ahead = any(loop not in self.trains_in for loop in self.stepped_in)
        uses = set(self.uses.known()) - ({"scheduler"} if self.goes_on or ahead else set())
        return [kind for kind in ("scheduler", "scaler") if kind in kinds & uses]

    def _unread_parts(self, forgotten: list[str]) -> list[Part]:
        """Models and optimizers that are not given their states where training goes on: one of their kind is, or the number
        from which a loop goes on is read."""
        training, trained = set(self.trains_in.known()), self.trained
        if any(not kind for _, _, kind in self.given) or not trained:
            return []
        resumes = any(loop in training for loop in self.resumed.known()) or any(
            kind == "optimizer" and (place.order < trained or not training.isdisjoint(loops))
            for place, loops, kind in self.given
        )
        found = self.unread_parts(training) if resumes and self.loads else []
        return [one for one in found if one.is_model or "optimizer" not in forgotten]

    def _takes_weights(self) -> bool:
        """Whether all that optimizers are given as their states is what models are given: the weights."""
        weights = {(site, key) for kind, site, key in self.entries if kind == "model" and key}
        given = [(site, key) for kind, site, key in self.entries if kind == "optimizer"]
        return len(given) == sum(kind == "optimizer" for _, _, kind in self.given) and weights.issuperset(
            given
        )

    def _loaded_elsewhere(self, place: Where) -> bool:
        """Whether all that the program loads, it loads in other files: what loads beside a place is not what resumes."""
        return bool(self.loads) and all(one.site.path != place.site.path for one, _ in self.loads)

    def _loaded_here(self, place: Where) -> list[str]:
        """Where the program loads something in the file of a place."""
        starts = {one.site.start for one, _ in self.loads if one.site.path == place.site.path}
        return [f"{LOADED_AT}{start}" for start in sorted(starts)]

    def _is_late(self, place: Where, loops: frozenset[str]) -> bool:
        """Whether the program never trains after a place."""
        return place.order > self.trained and not any(key in self.trains_in for key in loops)

    def _of_checkpoints(self) -> list[tuple[Where, frozenset[str]]]:
        """Where what may be a checkpoint is loaded: not a file that is the state of a model as a whole, such as one with
        pretrained weights, where all that the program saves has several states by keys."""
        loads = list(self.loads)
        if self.run.entry is None or not self.checkpoints or self.alone:
            return loads
        return [one for one in loads if self.given_whole.get(one[0].site) is not True]

    def _only_evaluated(self, loads: list[tuple[Where, frozenset[str]]]) -> bool:
        """Whether the program loads what it has saved, and never trains after that. Where it saves something else too,
        that may be what it loads. What is loaded earlier is no checkpoint where all checkpoints hold states of objects,
        and no object is given its state before the program has trained."""
        if not (loads and self.trained) or self.alone:
            return False
        if all(self._is_late(*one) for one in loads):
            return True
        return (
            not self.objects
            and any(self._is_late(place, loops) for place, loops, _ in self.given)
            and all(self._is_late(place, loops) for place, loops, _ in self.given)
        )

    def _is_of_other_stage(self, checkpoint: Where, load: Where) -> bool:
        """Whether no run comes both to a checkpoint and to a place where something is loaded."""
        around = self.tests.get(checkpoint.site), self.tests.get(load.site)
        return around[0] is not None and around[1] is not None and exclude(around[0], around[1])

    def _may_be_loaded(self, checkpoint: Where) -> bool:
        """Whether a checkpoint may be what the program loads after it has trained: that is not known to be a file in which
        it saves weights alone."""
        own = self._named(checkpoint)
        late = [self._named(place) for place, loops in self.loads if self._is_late(place, loops)]
        return not late or any(not names or not names <= self.named or bool(names & own) for names in late)

    def _named(self, place: Where) -> set[str]:
        """What the file is called that is saved or loaded at a place."""
        return {name for site, name in self.names if site == place.site}

    def _in_several_files(self) -> list[tuple[Where, set[str], frozenset[str], str]]:
        """The checkpoint of a program that saves its states in one file each, and resumes. The names of the files may hold
        the epoch."""
        together: set[str] = {"epoch", *self.saved.known()}
        together.update(*(found for _, found, _ in self.alone))
        if not self.loads or self.run.entry is None or "unknown" in together:
            return []
        kept = [(place, loops) for place, found, loops in self.alone if "optimizer" in found]
        return [(place, together, loops, "") for place, loops in kept[:1]]

    def _not_kept(self, loops: frozenset[str]) -> list[str]:
        """Optimizers and averages of weights that are updated in one of some loops, and whose state no file holds."""
        optimizer_hidden = any(not key or _OPTIMIZER.search(key) for key in self.hidden)
        average_hidden = any(not _EPOCH.search(key) for key in self.hidden)
        found: dict[str, None] = {}
        for site, loop in self.stepped.known():
            name, optimizes = self.stepped[site, loop]
            hidden = optimizer_hidden if optimizes else average_hidden
            if name and loop in loops and site not in self.kept and not hidden:
                found[name] = None
        return list(found)


def _kind(run: RunView, value: v.Value) -> str:
    """What something that has a state is: empty where it may be anything."""
    found = {_kind_of(run, one) for one in v.alternatives(value)}
    return found.pop() if len(found) == 1 else ""


def _kind_of(run: RunView, one: v.Value) -> str:
    if isinstance(one, v.Obj):
        if is_scheduler(one.type):
            return "scheduler"
        if is_scaler(one.type):
            return "scaler"
        if optimizes(one):
            return "optimizer"
    return "model" if has_model(run, [one]) else ""


def _states_in(made: tuple[v.Value, ...]) -> Iterator[v.Value]:
    """What has the states that are saved, or is saved itself."""
    for content in made:
        for one in content.items.values() if isinstance(content, v.Mapping) else (content,):
            owner = one.attrs.get("@owner") if isinstance(one, v.Obj) else None
            yield one if owner is None else owner


def _kinds_held(content: v.Value) -> set[str]:
    """The kinds of the optimizers, schedulers and scalers whose states are items of a dictionary."""
    items = content.items.values() if isinstance(content, v.Mapping) else ()
    owners = [one.attrs.get("@owner") for one in items if isinstance(one, v.Obj)]
    kinds = [
        ("scheduler" if is_scheduler(one.type) else "scaler" if is_scaler(one.type) else "optimizer")
        for one in owners
        if isinstance(one, v.Obj) and (is_scheduler(one.type) or is_scaler(one.type) or optimizes(one))
    ]
    return set(kinds)


def _holds_state(content: v.Value) -> bool:
    return isinstance(content, v.Mapping) and any(map(_is_state, content.items.values()))


def _may_hold_more(part: v.Value) -> bool:
    """Whether a part of what is saved is not known, or a dictionary with more than is seen."""
    held = v.alternatives(part)
    return any(one is v.UNKNOWN or (isinstance(one, v.Mapping) and one.open) for one in held)


def _is_given_by(value: m.Expr, call: Any) -> bool:
    """Whether a value is what a call gives, or what methods of that give: ``torch.load(path).to(device)``."""
    while value is not call and isinstance(value, m.Call) and isinstance(value.func, m.Attr):
        value = value.func.value
    return value is call


def _of_jax(content: v.Value) -> bool:
    """Whether a dictionary has the state of an optimizer, or something that is called so, beside what libraries of JAX have
    made."""
    items = content.items if isinstance(content, v.Mapping) else {}
    named = any(
        (_OPTIMIZER.search(str(key)) and not isinstance(one, v.Lit)) or _is_state_of_jax(one)
        for key, one in items.items()
    )
    return named and any(_by_jax(part) for one in items.values() for part in v.alternatives(one))


def _is_state_of_jax(value: v.Value) -> bool:
    return any(isinstance(one, v.Obj) and one.type == STATE_OF_JAX for one in v.alternatives(value))


def _by_jax(value: v.Value) -> bool:
    return isinstance(value, v.Obj) and value.api.startswith(_MADE_BY_JAX)


def _is_state(value: v.Value) -> bool:
    return any(isinstance(one, v.Obj) and "@owner" in one.attrs for one in v.alternatives(value))


def optimizes(value: v.Obj) -> bool:
    """Whether an object is an optimizer of PyTorch, or one that takes steps with the parameters that it was made of."""
    return STEPS in value.attrs or (value.type.startswith("torch.optim.") and not is_scheduler(value.type))


def owners(value: v.Value, key: str = "", depth: int = 0) -> tuple[set[Site], set[str]]:
    """Where the objects were made whose states are in a value, and the keys of what is not known."""
    parts: list[tuple[str, v.Value]] = []
    if isinstance(value, v.Mapping):
        parts = [(str(name), one) for name, one in value.items.items()]
    elif isinstance(value, v.Items):
        parts = [(key, one) for one in value.elts]
    elif isinstance(value, v.AnyOf):
        parts = [(key, one) for one in value.values]
    elif isinstance(value, v.Obj):
        owner = value.attrs.get("@owner", value)
        site = made_at(owner) if isinstance(owner, v.Obj) else None
        if site is not None:
            return {site}, set()
        known = isinstance(owner, v.Inst) or isinstance(value.data, RngState)
        return set(), set() if known else {key}
    elif isinstance(value, v.Inst) and value.cls.find("forward") is not None:
        # A model that is saved whole has its parameters, and what else it keeps.
        parts = [(key, one) for one in value.attrs.values() if isinstance(one, v.Obj) and optimizes(one)]
    elif not isinstance(value, v.Lit):
        return set(), {key}
    sites: set[Site] = set()
    hidden = {key} if depth > 4 or (isinstance(value, v.Mapping | v.Items) and value.open) else set()
    for name, one in parts if depth <= 4 else ():
        more, unknown = owners(one, name, depth + 1)
        sites |= more
        hidden |= unknown
    return sites, hidden


def _classes(value: v.Value, depth: int = 0, states: bool = True) -> set[tuple[str, int]]:
    """The classes of the objects that are in a value, or whose ``states`` are."""
    if isinstance(value, v.Obj) and states:
        value = value.attrs.get("@owner", value)
    if isinstance(value, v.Inst):
        return {(value.cls.file.path, value.cls.cls.start)}
    if isinstance(value, v.Mapping):
        held = list(value.items.values())
    else:
        held = (
            value.elts
            if isinstance(value, v.Items)
            else list(value.values)
            if isinstance(value, v.AnyOf)
            else []
        )
    return set().union(*(_classes(one, depth + 1, states) for one in held)) if depth <= 4 else set()


def _only_states(content: v.Mapping | v.Items) -> bool:
    """Whether an optimizer is in a checkpoint only as its state."""
    parts = content.items.items() if isinstance(content, v.Mapping) else (("", one) for one in content.elts)

    def harmless(name: str, one: v.Value) -> bool:
        if isinstance(one, v.Obj) and "@owner" in one.attrs:
            return one.api.endswith(".state_dict")
        whole = isinstance(one, v.Obj) and optimizes(one)
        return not (whole or isinstance(one, v.AnyOf | v.Mapping | v.Items) or _OPTIMIZER.search(name))

    return not content.open and all(harmless(str(name), one) for name, one in parts)


def continues_from_epoch(interp: RunView, call: CallEvent) -> bool:
    """Whether a scheduler is made to go on from an epoch, which is all of its state."""
    last = call.args.kw.get("last_epoch")
    if last is None or not _is_start(last):
        return last is not None
    node = argument_node(call.node, "last_epoch")
    return isinstance(node, m.Name) and any(
        not (isinstance(one, m.Const) and one.value == -1) for one in assignments(interp, node.id)
    )


def _calls_that_gave(value: v.Value) -> list[Site]:
    """The calls that gave the state of an RNG."""
    made = [made_at(one) for one in v.alternatives(value) if isinstance(one, v.Obj)]
    return [site for site in made if site is not None]


def _is_start(epoch: v.Value) -> bool:
    return isinstance(epoch, v.Lit) and epoch.value == -1


def _before_loop(early: list[Drawn]) -> str:
    """When to restore states from which something is drawn before the loop."""
    return f"right before the loop that trains, after {early[0].name}"


def rng_states(rngs: list[str]) -> list[str]:
    """RNG states as one item of a sentence; empty for none."""
    if not rngs:
        return []
    names = listed([NAMES[rng] for rng in rngs])
    return [f"the {names} RNG state" + ("s" if len(rngs) > 1 else "")]


def _remedy(shuffled: list[str], only_workers: bool, persistent: bool, ranked: bool, into: str) -> str:
    """What to do about what a checkpoint lacks: that is the order alone of what is ``shuffled``, or the workers alone; what
    it goes into."""
    if only_workers:
        return _WITHOUT_WORKERS
    help = f"save the missing state{into} and restore it when resuming{_OF_RANKS if ranked else ''}"
    if shuffled:
        help = f"shuffle a copy of {listed([f'`{one}`' for one in shuffled])} in each epoch"
    return f"{help}{_AND_WITHOUT_WORKERS if persistent else ''}"


def _given(call: CallEvent, role: RoleEntry | None) -> m.Expr | None:
    """The expression for what a call saves; its first argument where the call does not say."""
    given = argument_node(call.node, role.arg, role.pos) if role is not None and role.arg else None
    return given or (call.node.args[0] if isinstance(call.node, m.Call) and call.node.args else None)


def _written(given: m.Expr | None) -> list[str]:
    """Names written in the saved expression: keys and variables."""
    names: list[str] = []
    stack: list[Any] = [] if given is None else [given]
    while stack:
        one = stack.pop()
        if isinstance(one, m.Name):
            names.append(one.id)
        stack.extend(children(one))
    return names


def _put_in(run: RunView, given: m.Expr | None) -> Iterator[str]:
    """Names written in the lists and dictionaries that the running function assigns to the variable that is saved, and in
    what it appends to that."""
    if not isinstance(given, m.Name):
        return
    for value in assignments(run, given.id):
        if isinstance(value, m.Seq | m.Dict):
            yield from _written(value)
    for one in nodes(run.frame.body):
        if isinstance(one, m.Call) and called_name(one) == "append" and receiver(one) == given.id:
            yield from (name for part in one.args for name in _written(part))


def _counts(given: m.Expr | None, counters: set[str]) -> bool:
    """Whether the saved expression is computed from nothing but variables of running loops."""
    parts = [] if given is None else list(nodes([given]))
    names = {one.id for one in parts if isinstance(one, m.Name)}
    return (
        bool(names)
        and names <= counters
        and all(isinstance(one, m.Name | m.Const | m.BinOp) for one in parts)
    )


def contents(kb: Knowledge, value: v.Value, written: list[str]) -> set[str]:
    """What a saved value carries: ``optimizer``, ``scheduler``, ``scaler``, ``epoch``, RNG names; ``unknown``
    when there may be more than can be seen."""
    found: set[str] = set()
    _collect(kb, value, "", found, 0)
    for name in written:
        last = name.rpartition(".")[2]
        if _EPOCH.search(last):
            found.add("epoch")
    return found


def _collect(kb: Knowledge, value: v.Value, key: str, found: set[str], depth: int) -> None:
    if depth > 4:
        return
    if isinstance(value, v.Mapping):
        if value.open and depth == 0:
            found.add("unknown")
        for name, item in value.items.items():
            _collect(kb, item, str(name), found, depth + 1)
        if not all(isinstance(item, v.Lit) for item in value.items.values()):
            # What a class of the program gives for its state.
            found.update(
                what for what, named in (("scheduler", _SCHEDULER), ("scaler", _SCALER)) if named.search(key)
            )
        return
    if isinstance(value, v.Items):
        for item in value.elts:
            _collect(kb, item, key, found, depth + 1)
        return
    if _EPOCH.search(key):
        found.add("epoch")
    if _KEY.search(key) and not isinstance(value, v.Lit):
        found.add("key")
    if isinstance(value, v.AnyOf):
        for one in value.values:
            _collect(kb, one, key, found, depth + 1)
        return
    if isinstance(value, v.Obj):
        state = state_given(kb, value.api)
        if state:
            found.add(state)
        owner = value.attrs.get("@owner")
        kind = owner.type if isinstance(owner, v.Obj) else value.type
        # The options of the program and plain values have no state, whatever they are called. Of a class that is known, it
        # is known what it is, and a model has its own state.
        plain = (
            kind == NAMESPACE or kind.startswith(_PLAIN) or (owner is not None and kind.startswith("torch."))
        )
        plain = plain or (isinstance(owner, v.Inst) and owner.cls.find("forward") is not None)
        text = "" if plain else f"{key}.{_receiver(value.node)}"
        if kind.startswith("torch.optim.lr_scheduler") or _SCHEDULER.search(text):
            found.add("scheduler")
        elif kind.startswith("torch.optim.") or kind == STATE_OF_JAX or _OPTIMIZER.search(text):
            found.add("optimizer")
        elif kind.endswith("GradScaler") or _SCALER.search(text):
            found.add("scaler")
    elif isinstance(value, v.Lit) and value.value is None:
        # By the defaults of options there is none, and with other values its state is kept under this key.
        found.update(
            what for what, named in (("scheduler", _SCHEDULER), ("scaler", _SCALER)) if named.search(key)
        )
    elif value is v.UNKNOWN or isinstance(value, v.Member | v.Inst):
        if _SCHEDULER.search(key):
            found.add("scheduler")
        elif _OPTIMIZER.search(key):
            found.add("optimizer")
        elif _SCALER.search(key):
            found.add("scaler")
        elif re.search(r"rng|random", key, re.IGNORECASE):
            found.update(NAMES)


def _stepped_name(node: m.Call, *, by_scaler: bool) -> str:
    """What the program calls the optimizer that a call steps: the receiver, or what a scaler of losses is given."""
    return getattr(argument_node(node, "optimizer", 0), "id", "") if by_scaler else _receiver(node)


def _receiver(node: Any) -> str:
    if isinstance(node, m.Call) and isinstance(node.func, m.Name):
        return node.func.id.rpartition(".")[0]
    return ""
