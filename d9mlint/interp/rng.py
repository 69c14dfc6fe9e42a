"""What library calls do to random number generators: seeding, drawing, and the modes they imply."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from d9mlint.interp import graphs
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold, any_holds, equal, holds, item, plain
from d9mlint.interp.containers import BASE
from d9mlint.interp.context import ASKED_FOR_FORM
from d9mlint.interp.environment import DEFAULT_BACKEND, keras_backend, of_keras, permits, read_anew
from d9mlint.interp.events import (
    AnyDrawEvent,
    DefaultGeneratorEvent,
    DoubtfulDrawEvent,
    DrawEvent,
    GlobalDrawEvent,
    LateSeedEvent,
    Loop,
    SeedEvent,
)
from d9mlint.interp.heap import HEAP
from d9mlint.interp.single_use import delays_only
from d9mlint.interp.state import MAYBE, RNG, SEEDED, UNSEEDED, Rng, Setting, Site
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.schema import RngEntry
    from d9mlint.project.modules import ModuleFile


GENERATOR_TYPES = ("numpy.random.Generator", "numpy.random.RandomState", "random.Random")
"""Types of generators that do nothing but draw."""


def apply(
    interp: Interp,
    entries: tuple[RngEntry, ...],
    args: v.Args,
    node: Any,
    *,
    at: str = "call",
    package: str = "",
    owner: v.Value | None = None,
) -> bool:
    """Let the call have its effect on the state; ``at`` is ``call`` or ``use`` (of an object made before), ``package`` that
    from which the program imports what it calls, ``owner`` the receiver of a method.

    Returns whether an unseeded RNG was drawn from.
    """
    unseeded = False
    for entry in _of_package(interp, entries, package):
        if not _in_range(interp, entry.library, entry.versions):
            continue
        if entry.only_env and permits(interp, entry.only_env) is False:
            continue
        if entry.unless_inside and interp.contexts.within(frozenset(entry.unless_inside)):
            continue
        if at == "call" and (entry.seeds or entry.kind in ("seeder", "anti-seed")):
            _seed(interp, entry, args, node)
        elif at == "call" and entry.kind == "generator":
            differs(interp, args.get(entry.seed_arg, entry.seed_pos))
        if entry.draws and (entry.at == "use") == (at == "use") and draws_now(interp, args, entry, owner):
            if entry.only_env and permits(interp, entry.only_env) is None:
                continue
            for rng in entry.draws:
                unseeded = draw(interp, rng, entry, node) or unseeded
        if at == "call" and entry.at != "use":
            switch(interp, entry, args, node)
    return unseeded


def use_given(interp: Interp, api: str, args: v.Args, node: Any) -> None:
    """A call of a library is given something that draws then, as an initializer is by a layer."""
    if api.partition(".")[0] in _KEEPING:
        return
    for value in (*args.kw.values(), *args.pos):
        if value.__class__ is v.Obj:
            entries = tuple(one for one in interp.kb.rng(value.api) if one.at_first_use)
            if entries:
                apply(interp, entries, value.args, node, at="use", package=value.package)


_KEEPING = frozenset({*sys.stdlib_module_names, "builtins"})
"""Libraries that do no more than keep what they are given."""


def valid(interp: RunView, entries: tuple[RngEntry, ...], package: str) -> list[RngEntry]:
    """Those of some entries that hold for what is imported from a package, in the release that is installed."""
    found = _of_package(interp, entries, package)
    return [one for one in found if _in_range(interp, one.library, one.versions)]


def _of_package(interp: RunView, entries: tuple[RngEntry, ...], package: str) -> tuple[RngEntry, ...]:
    """Those of some entries that hold for what is imported from a package."""
    if not any(one.package for one in entries):
        return entries
    own = tuple(
        one for one in entries if one.package == package and _in_range(interp, one.library, one.versions)
    )
    return own or tuple(one for one in entries if not one.package)


def _in_range(interp: RunView, library: str, versions: str) -> bool:
    """Whether something that is said of some releases holds for the one that the program is checked for."""
    return not versions or interp.targets is None or interp.targets.matches(library, versions)


def assumed(interp: RunView, entry: RngEntry) -> tuple[str, ...]:
    """The release that an entry about some releases was judged by, and how that is known; empty where it is about all, and
    where Keras runs on another backend, which it does from 3 on, whatever release of TensorFlow there is."""
    if not entry.versions or interp.targets is None:
        return ()
    by_keras = entry.library == DEFAULT_BACKEND and all(map(of_keras, entry.apis))
    if by_keras and keras_backend(interp) not in ("", DEFAULT_BACKEND):
        return ()
    target = interp.targets.version(entry.library)
    return (f"{entry.library} {target.version}", target.source) if target.version else ()


def switch(interp: Interp, entry: RngEntry, args: v.Args, node: Any) -> None:
    """Set the modes and variables that an entry says a call sets; ``with`` does it for one that is used."""
    for effect in entry.sets:
        if _in_range(interp, entry.library, effect.versions):
            _effect(interp, effect, args, node)


SEEDED_IN_ROUND = "seeded in a round: "
"""Before an RNG: stands among the modes for the begin of the innermost loop over an arbitrary order in which it was
seeded last."""


NOT_DRAWN_SINCE = "not drawn since: "
"""Before an RNG: stands among the modes for the begin of the innermost loop in which it was seeded last, and when it was, if
nothing has been drawn from it since."""
_DRAWN = Setting(None, None)
_OF_LOADERS = frozenset({"torch"})
"""RNGs from which loaders draw the order of their items and the seeds of their workers."""


def begins_alike(interp: Interp, rng: str, loops: Sequence[Loop], since: int) -> bool:
    """Whether an RNG is in the state that a seed gave it in this very round of running loops, after some time: whatever was
    drawn before, what is drawn now is the same. It counts as drawn from after that."""
    seeded = interp.state.modes.get(f"{NOT_DRAWN_SINCE}{rng}")
    _drawn_from(interp, rng)
    return bool(seeded and seeded.value and seeded.value[0] == _round(loops) and seeded.value[1] > since)


def _drawn_from(interp: Interp, rng: str) -> None:
    """An RNG is no longer in the state that a seed gave it. Where none did, nothing changes: what an import draws does not
    keep other runs from taking it over."""
    name = f"{NOT_DRAWN_SINCE}{rng}"
    seeded = interp.state.modes.get(name)
    if seeded is not None and seeded.value is not None:
        interp.state.modes[name] = _DRAWN


def _round(loops: Sequence[Loop]) -> int:
    return loops[-1].start if loops else 0


_OF_MODELS = frozenset({"weak", "head", "init"})
"""Kinds of draws that give a model its initial weights."""


class Saved(NamedTuple):
    """``Obj.data`` of the state of an RNG that was saved: how it was seeded then."""

    level: Rng


def draws_now(interp: RunView, args: v.Args, entry: RngEntry, owner: v.Value | None = None) -> bool:
    """Whether a call surely draws from a global RNG: its conditions hold, nothing overrides them."""
    if entry.quiet_parts and is_quiet(interp, args, entry):
        return False
    return all_hold(args, entry.when, owner) is not False and any_holds(args, entry.unless, owner) is False


def is_quiet(interp: RunView, args: v.Args, entry: RngEntry) -> bool:
    """Whether all parts that an object is made of are applied always and alike, as far as they are known: by name, or
    because nothing that is known of the part draws as it was made."""
    parts = args.get("transforms", 0)
    if not isinstance(parts, v.Items) or parts.open or not _always(args.kw.get("p")):
        return False
    for one in (one for part in parts.elts for one in v.alternatives(part)):
        if isinstance(one, v.Inst) and (
            _is_asked_always(one.args)
            or _decides_itself(one)
            or all(base == "object" for base in one.cls.external_bases())
            or _is_quiet_itself(interp, one, entry)
        ):
            # What a class of the program draws is seen where it is drawn.
            continue
        if not isinstance(one, v.Obj) or not all(
            _is_quiet_part(interp, one.api, args, entry) for args in _by_chance(one)
        ):
            return False
    return True


def _is_quiet_part(interp: RunView, api: str, args: v.Args, entry: RngEntry) -> bool:
    """Whether a part of a library is never applied, or always and alike, as far as is known."""
    probability = args.kw.get("p")
    if isinstance(probability, v.Lit) and probability.value == 0:
        return True
    if api in entry.quiet_parts and _always(probability):
        return True
    if of_unknown_library(interp.kb, api):
        # Whether it draws is not known.
        return True
    draws = [known for known in interp.kb.rng(api) if known.draws]
    return bool(draws) and not any(_draws_as_made(interp, args, known) for known in draws)


def _by_chance(part: v.Obj) -> Iterator[v.Args]:
    """What a part is made with, for each probability of being applied that it may be given: ``p=1.0 if train else 0.0``."""
    probability = part.args.kw.get("p")
    if not isinstance(probability, v.AnyOf):
        yield part.args
        return
    for one in v.alternatives(probability):
        yield v.Args(part.args.pos, {**part.args.kw, "p": one}, part.args.star, part.args.dstar)


def of_unknown_library(kb: Knowledge, api: str) -> bool:
    """Whether nothing is known of the library that has a function, or a method of an object."""
    root, _, rest = api.partition(".")
    known = root in kb.libraries or root in sys.stdlib_module_names or root in _NO_LIBRARIES
    return bool(rest) and not known and not kb.roles(api)


_NO_LIBRARIES = frozenset(
    {"?", "builtins", "object", "super", *(kind.__name__ for kind in (tuple, list, set, dict, str, bytes))}
)


def _draws_as_made(interp: RunView, args: v.Args, entry: RngEntry) -> bool:
    """Whether something may draw of which an entry says that it does."""
    if not _in_range(interp, entry.library, entry.versions):
        return False
    if entry.quiet_parts and is_quiet(interp, args, entry):
        return False
    return all_hold(args, entry.when) is not False and any_holds(args, entry.unless) is not True


def _decides_itself(part: v.Inst) -> bool:
    """Whether the class of the program says what is done when a part is called, not the one of the library that it is
    derived from, or asks that one to be applied each time."""
    base, call = part.attrs.get(BASE), part.cls.find("__call__")
    if isinstance(base, v.Obj) and _is_asked_always(base.args):
        return True
    return isinstance(call, v.Func) and not any(
        isinstance(one, m.Call) and called_name(one) in ("super", "__call__") for one in nodes(call.fn.body)
    )


def _is_quiet_itself(interp: RunView, part: v.Inst, entry: RngEntry) -> bool:
    """Whether a part of a class that the program derives from quiet ones is applied always and alike: what the class adds
    to these calls nothing but builtins and what it has itself."""
    base = part.attrs.get(BASE)
    made = [part.args, base.args] if isinstance(base, v.Obj) else [part.args]
    if not all(_always(args.kw.get("p")) for args in made):
        return False
    if not all(interp.kb.canonical(one) in entry.quiet_parts for one in part.cls.external_bases()):
        return False
    methods = [one for cls in part.cls.mro() for one in cls.env.all().values() if isinstance(one, v.Func)]
    return all(
        _is_of_itself(one, method)
        for method in methods
        for one in nodes(interp.body(method))
        if isinstance(one, m.Call)
    )


def _is_of_itself(call: m.Call, method: v.Func) -> bool:
    """Whether a call in a method is that of a builtin, or of a method of the object or of the class above."""
    func = call.func
    if isinstance(func, m.Attr):
        return isinstance(func.value, m.Call) and _is_of_itself(func.value, method)
    own = tuple(f"{one.name}." for one in method.fn.params[:1])
    return isinstance(func, m.Name) and (func.id.startswith(own) or hasattr(builtins, func.id))


def _is_asked_always(args: v.Args) -> bool:
    """Whether arguments say that something is applied each time, whatever is the default of its class."""
    asked = args.kw.get("always_apply")
    return (asked is not None and v.truth(asked) is True) or ("p" in args.kw and _always(args.kw["p"]))


def _always(probability: v.Value | None) -> bool:
    """Whether something is applied each time: its default is 1, as is what it is given."""
    return probability is None or (isinstance(probability, v.Lit) and probability.value == 1)


def draw(interp: Interp, rng: str, entry: RngEntry, node: Any) -> bool:
    """An RNG is drawn from here; True when it is surely unseeded."""
    if entry.kind == "draw" and delays_only(interp, node):
        return False
    if ASKED_FOR_FORM in interp.contexts:
        return False
    interp.listeners.tell(AnyDrawEvent(rng, entry, node))
    if rng in ("own", "entropy"):
        if rng == "own" and interp.captured is not None:
            interp.captured.append(Draw(rng, Rng(UNSEEDED), entry, node, interp.frame.file))
        return False
    rng = meant_here(interp, rng)
    if rng in _OF_LOADERS:
        _drawn_from(interp, rng)
    if interp.orders.loops or interp.orders.lone:
        # Who draws first gets other numbers, unless each round begins with the same ones.
        seeded = interp.state.modes.get(f"{SEEDED_IN_ROUND}{rng}")
        since = seeded.value if seeded is not None else None
        in_graph = rng == graphs.GENERATOR and graphs.built(interp)
        (interp.orders.add_draw if in_graph else interp.orders.decide_loops)(since)
    level = interp.partings.level(interp, rng, interp.state.level(rng))
    generator = interp.kb.generators[rng]
    interp.listeners.tell(GlobalDrawEvent(rng, level, entry, node))
    if generator.starts == "constant":
        return False
    if level.level == UNSEEDED and generator.seeded_from:
        # It takes its seed from another generator when it is first used, and is then as good as that one.
        unseeded = draw(interp, generator.seeded_from, entry, node)
        if not unseeded:
            interp.state.rng[rng] = interp.state.level(generator.seeded_from)
        return unseeded
    if level.parent:
        # What is drawn varies with the seed that this process was given: a seed set in the program does not reach it.
        rng = level.parent
    if interp.captured is not None:
        interp.captured.append(Draw(rng, level, entry, node, interp.frame.file))
        return level.level == UNSEEDED
    if level.some_ranks and entry.kind in _OF_MODELS:
        # Data parallelism takes the weights of the first rank for all.
        return False
    if interp.is_unparsed(node):
        # Whether it draws, and whether that is run, is not known: what draws next is reported.
        return False
    interp.state.flags.setdefault(f"draw:{rng}", interp.here(node))
    if level.helper and interp.entry is not None:
        interp.listeners.tell(DoubtfulDrawEvent(rng, level, entry, node))
    if level.level == UNSEEDED and interp.entry is not None and not interp.exhausted:
        interp.listeners.tell(DrawEvent(rng, level, entry, node))
    elif interp.entry is None and entry.kind == "split" and level.level == MAYBE and level.site is None:
        # Nothing that was seen seeds it: whether anything in the project does is asked at the end.
        interp.listeners.tell(DrawEvent(rng, level, entry, node))
    return level.level == UNSEEDED


class Draw(NamedTuple):
    """A draw of a default argument: it counts where the default is used."""

    rng: str
    level: Rng
    entry: RngEntry
    node: Any
    file: ModuleFile


def use_default(interp: Interp, drawn: list[Draw]) -> None:
    """A default argument is used that was drawn, or is a generator that was made, when its function was defined."""
    for one in drawn:
        if one.rng == "own":
            with interp.in_file(one.file):
                interp.listeners.tell(DefaultGeneratorEvent(one.entry, one.node))
    drawn = [one for one in drawn if one.rng != "own"]
    if interp.entry is None or interp.exhausted:
        return
    for one in drawn:
        with interp.in_file(one.file):
            now = interp.state.level(one.rng)
            if one.level.level != UNSEEDED:
                continue
            interp.listeners.tell(DrawEvent(one.rng, one.level, one.entry, one.node))
            if now.level == SEEDED and now.site is not None:
                # It was seeded after the function had been defined.
                interp.listeners.tell(LateSeedEvent(one.rng, one.entry, one.node, now.site))


def may_seed(interp: Interp, name: str, args: v.Args, node: Any, *, method: bool) -> None:
    """A call of which only the name is known: a helper that is named like one that seeds, and is given a value,
    may seed everything."""
    if not interp.kb.may_seed(name.rpartition(".")[2], method) or interp.entry is None:
        return
    if not args.star and not args.dstar and all(v.is_none(value) is True for value in args.values()):
        return
    site = interp.here(node)
    for generator in interp.kb.generators.values():
        if generator.rule != "DET113" and interp.state.level(generator.id).level == UNSEEDED:
            interp.state.rng[generator.id] = Rng(MAYBE, "", site, name)


def meant_here(interp: Interp, rng: str) -> str:
    """The generator that a name means: compiled functions have generators of their own."""
    for other in interp.kb.replacing(rng):
        if interp.contexts.within(frozenset(other.inside)):
            return other.id
    return rng


def seed_value(args: v.Args, entry: RngEntry) -> v.Value | None:
    """The seed that a seeding call is given; None when it takes none."""
    if not entry.seed_arg and entry.seed_pos is None:
        return v.Lit(None) if entry.seed_from and entry.seed_default is None else v.UNKNOWN
    value = args.get(entry.seed_arg, entry.seed_pos)
    if entry.seed_attribute and value is not None:
        value = _attribute(value, entry.seed_attribute)
    if value is None:
        if entry.seed_default is msgspec.UNSET:
            return v.UNKNOWN
        value = v.Lit(entry.seed_default)
    if isinstance(value, v.Lit) and any(equal(value.value, one) for one in entry.random_seeds):
        return v.Lit(None, value.option)
    return value


def _attribute(value: v.Value, name: str) -> v.Value | None:
    """An attribute, or item, that the program gave a configuration, or with which it made it; None where there is none."""
    if isinstance(value, v.Mapping):
        return item(value, name)
    if isinstance(value, v.Obj) and not value.api.startswith(("?", "parameter")):
        found: v.Value | None = value.attrs.get(name)
        return value.args.kw.get(name) if found is None else found
    return v.UNKNOWN


def takes_over(interp: RunView, entry: RngEntry) -> bool:
    """Whether a call that is given no seed takes that of another RNG, or may."""
    return bool(entry.seed_from) and interp.state.level(entry.seed_from).level != UNSEEDED


def differs(interp: Interp, seed: v.Value | None) -> None:
    """Something gets this seed: one that depends on a hash is reported as a seed that differs."""
    if isinstance(seed, v.Obj) and seed.order is not None:
        interp.orders.excused.update(seed.order.keys)


def _seed(interp: Interp, entry: RngEntry, args: v.Args, node: Any) -> None:
    if all_hold(args, entry.when) is False:
        return
    meant = [meant_here(interp, r) for r in entry.seeds if r != "own"]
    rngs: list[str] = [one for r in meant for one in interp.kb.seeded_with(r)]
    value = seed_value(args, entry)
    anti = entry.kind == "anti-seed"
    option = ""
    if not anti and value is not None and v.is_none(value):
        option = v.option_of(value)
        if entry.none_seed == "entropy":
            anti = not takes_over(interp, entry)
        elif entry.none_seed == "ignored":
            if option:
                for rng in rngs:
                    if interp.state.level(rng).level == UNSEEDED:
                        interp.state.rng[rng] = Rng(UNSEEDED, option, interp.here(node))
            return
    differs(interp, value)
    saved = next((x.data for x in args.values() if isinstance(x, v.Obj) and isinstance(x.data, Saved)), None)
    if saved is not None and saved.level.level != SEEDED:
        # A state that entropy made is no seed.
        interp.state.rng.update(dict.fromkeys(rngs, saved.level))
        return
    interp.listeners.tell(SeedEvent(entry, args, node, rngs))
    site = interp.here(node)
    if saved is not None:
        interp.state.rng.update(dict.fromkeys(rngs, saved.level))
        return
    for rng in rngs:
        if anti:
            # Reported as a seed that differs (DET107): what is drawn afterwards is not reported again.
            interp.state.rng[rng] = Rng(MAYBE, option, site)
        elif value is not None and isinstance(value, v.AnyOf) and v.is_none(value) is None:
            if interp.state.level(rng).level != SEEDED:
                interp.state.rng[rng] = Rng(MAYBE, "", site)
        else:
            interp.state.rng[rng] = Rng(SEEDED, "", site)
            again = f"seeded:{rng}" in interp.state.flags
            interp.state.flags.setdefault(f"seeded again:{rng}" if again else f"seeded:{rng}", site)
            if rng in _OF_LOADERS:
                if interp.importing:
                    # Times of a module that is imported are those of the run that has imported it first.
                    _drawn_from(interp, rng)
                else:
                    HEAP.clock += 1
                    now = Setting((_round(interp.loops), HEAP.clock), site)
                    interp.state.modes[f"{NOT_DRAWN_SINCE}{rng}"] = now
            if interp.orders.loops and getattr(value, "order", None) is None:
                began = Setting(interp.orders.loops[-1].start, site)
                interp.state.modes[f"{SEEDED_IN_ROUND}{rng}"] = began
    interp.left_by_modules(RNG, *rngs)


def _effect(interp: Interp, effect: Any, args: v.Args, node: Any) -> None:
    answer = all_hold(args, effect.when)
    if answer is False:
        return
    value: v.Value
    if isinstance(effect.value, dict) and "arg" in effect.value:
        given = args.get(effect.value["arg"], effect.value.get("pos"))
        value = given if given is not None else v.Lit(effect.value.get("default"))
    else:
        value = v.Lit(effect.value)
    if answer is None:
        value = v.UNKNOWN
    if effect.name.startswith("env:"):
        if answer:
            interp.set_env(effect.name[4:], value, node)
            read_anew(interp, effect.name[4:])
    else:
        interp.set_mode(effect.name, value, node)


OF_WORKERS = "seed of workers"
"""The mark of a path on which a worker that starts asks for the seed that the process of the program has given it."""


def gives_new_seed(interp: Interp, api: str) -> bool:
    """Whether a call gives the number from which a generator was started that nothing has seeded. The worker of a loader
    gets its own from the process of the program."""
    if interp.starting_worker:
        asked_for_seed(interp, api)
        return False
    role = interp.kb.role(api, "gives-seed")
    if role is None or interp.entry is None or interp.in_worker:
        return False
    levels = [interp.state.level(rng) for rng in role.more]
    return all(one.level == UNSEEDED and not one.parent for one in levels)


def asked_for_seed(interp: Interp, api: str) -> None:
    """A worker that starts calls a function or reads an attribute: it may give the seed of the worker."""
    if interp.kb.role(api, "gives-seed") is not None:
        interp.state.flags.setdefault(OF_WORKERS, Site("", 0, 0))


def entropy_result(entry_kinds: set[str], unseeded: bool) -> bool:
    """Whether a call's result differs from run to run."""
    return "entropy" in entry_kinds or unseeded


__all__ = ["all_hold", "any_holds", "apply", "draw", "holds", "plain", "seed_value"]
