"""DET111: environments that seed themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from d9mlint.base.findings import BY_METHOD, BY_RESET, Severity
from d9mlint.base.options import given_in_words
from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.activity import KEEPS, TRAIN, where
from d9mlint.interp.argtests import all_hold, any_holds
from d9mlint.interp.calls import owner_types
from d9mlint.interp.context import PLAYED
from d9mlint.interp.events import CallEvent, EndEvent, ObjectAttributeEvent, ResultEvent
from d9mlint.interp.examples import traced_only
from d9mlint.interp.frames import Frame
from d9mlint.interp.library.environments import INSIDE, is_own
from d9mlint.interp.listening import on, on_call_if, on_method, on_object_attribute
from d9mlint.interp.memory import remembered
from d9mlint.interp.named_sizes import assignments
from d9mlint.interp.naming import needs_form_only
from d9mlint.interp.places import Where, calls, function, running
from d9mlint.interp.rng import GENERATOR_TYPES, of_unknown_library
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.text import call_text, written
from d9mlint.interp.trail import FunctionKey
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import own_names
from d9mlint.ir.traversal import called_name, nodes, parents, receiver
from d9mlint.project.entry_points import imports_of

_GENERATORS = ("np_random", "_np_random")
"""The attributes of environments and spaces that hold what they draw from."""
_UNWRAPPED = "unwrapped"
"""The attribute of a wrapper with the environment in it."""


class Handed(NamedTuple):
    """Where an environment is made that a library resets, and what seeds it."""

    place: Where
    remedy: str


class Reset(NamedTuple):
    """Where the environments are made that a reset can be about, the option that leads to its path, and the call of the
    program from which its variable has the environment, where that is known."""

    ones: frozenset[Site]
    aside: str
    through: Site | None


class Environments(Rule):
    """DET111: environments that seed themselves."""

    codes = ("DET111",)
    made = remembered(bool)
    seeded = remembered(bool)
    """Whether something is seeded of which it is not known which environments it stands for."""
    seeded_ones = remembered(set[Site])
    """Where environments are made that are seeded."""
    seeded_through = remembered(set[tuple[Site, Site]])
    """The same for those that a variable has from a call of the program, as of a function that makes environments, with
    that call: others that the same place makes are not seeded by that."""
    seeded_aside = remembered(set[tuple[str, Site | None]])
    """Where environments are made that are seeded on a path that only an option leads to, with the option; None for an
    environment of which that is not known."""
    resets = remembered(dict[tuple[Reset, FunctionKey], Where])
    """The first reset without a seed of some environments in a function."""
    resets_written = remembered(dict[Site, str])
    """How environments are written where they are reset."""
    seeded_by_method = remembered(bool)
    """Whether an environment is seeded by a method ``seed``, which none has since `reset` takes a seed."""
    seeded_by_reset = remembered(bool)
    """Whether an environment of a library is seeded by its ``reset``, which shows that it takes a seed."""
    of_several = remembered(set[Site])
    """Where the environment that is reset, or the space that is sampled, is that of each round of a loop."""
    step_values = remembered(set[int])
    """How many values steps give: four when `reset` took no seed."""
    takes_no_seed = remembered(bool)
    """Whether environments are those of a release in which `reset` takes no seed."""
    may_take_none = remembered(str)
    """The first release in which it takes one, where the program may use an older one."""
    showing = remembered(set[FunctionKey])
    """The functions that show something."""
    vector_resets = remembered(set[Site])
    """Where vectors are reset whose `reset` takes no seed."""
    looked_at = remembered(list[tuple[frozenset[Site], Site | None, Where]])
    """Resets of which the program has only asked for the form of the observation, since the last step."""
    space_seeded = remembered(bool)
    """Whether a space is seeded of which it is not known whose it is."""
    spaces = remembered(set[Site])
    """Where environments are made whose spaces are seeded."""
    samples = remembered(dict[frozenset[frozenset[Site]], Where])
    """The first samples, by where the environments are made whose space it can be, each with those that are in it; nothing
    where it can be that of anything else."""
    spaces_written = remembered(dict[Site, str])
    """How spaces are written where they are sampled."""
    handed = remembered(dict[Site, Handed])
    """Environments that a library resets, not the program, by where they are made."""
    learned_in = remembered(dict[Site, str])
    """The first algorithm that an environment is given to, which seeds it if it is given a seed."""
    given = remembered(dict[frozenset[Site], Handed])
    """The first of the algorithms that environments are given to, which seed them if they are given a seed."""
    explorers = remembered(dict[frozenset[Site], Handed])
    """The first of the algorithms that choose random actions, unless they are given a seed, by their environments."""
    samples_own = remembered(bool)
    """Whether the space that is sampled is one that the program makes itself."""
    set_ones = remembered(dict[Site, frozenset[Site]])
    """Where the environments are made that algorithms are given after they are made, by where those are made."""
    with_spaces = remembered(set[Site])
    """Where environments are made that are seeded with their spaces."""
    own_draws = remembered(dict[tuple[str, str], Where])
    """The first draw from the generator that an environment of the project makes itself, unseeded, by its class."""
    own_seeded = remembered(set[tuple[str, str]])
    """The classes of the project whose environments a library resets, perhaps with a seed."""

    @on_method("reset", "seed", "sample")
    def use(self, call: CallEvent) -> None:
        """An environment, or something else, is reset, seeded or sampled."""
        name = call.api.rpartition(".")[2]
        if name == "seed" and isinstance(call.owner, v.Member) and call.owner.name in _GENERATORS:
            seed = call.args.get("seed", 0)
            if seed is not None and v.is_none(seed) is not True:
                self._seed_generator(call.owner.owner)
            return
        space = _space(call.owner)
        if space:
            if name == "seed":
                self._seed_space(call.owner)
            elif name == "sample" and self.made and not self._is_form(call.node):
                place = Where(self.run, call.node, space)
                self._sample(place, call.owner)
                text = receiver(call.node) if isinstance(call.node, m.Call) else ""
                if text.endswith(f".{space}"):
                    self.spaces_written.setdefault(place.site, text)
                if _of_each_round(self.run.frame, call.node):
                    self.of_several.add(place.site)
            return
        owner = call.owner
        for entry in self.run.kb.rng(call.api) if isinstance(owner, v.Obj) else ():
            # A space that the program makes for its own environment.
            if entry.kind == "seeder" and OWN in entry.seeds:
                self.space_seeded = True
                return
            if (
                entry.kind == "sampler"
                and OWN in entry.draws
                and frozenset() not in self.samples
                and not self._is_form(call.node)
            ):
                seed = owner.args.kw.get(entry.seed_arg) if isinstance(owner, v.Obj) else None
                if seed is None or v.is_none(seed) is True:
                    func = call.node.func if isinstance(call.node, m.Call) else None
                    text = written(func.value) if isinstance(func, m.Attr) else "space"
                    self._sample(Where(self.run, call.node, text), None)
                    self.samples_own = True
        if name == "sample":
            return
        if self._of_another_library(call.owner) or self._of_base(call):
            return
        vector = isinstance(owner, v.Obj) and owner.api.startswith(_VECTORS)
        if name == "seed" and not vector:
            self.seeded_by_method = True
        if vector and name == "reset":
            self.vector_resets.add(self.run.here(call.node))
        if owner is not None and _own(owner):
            owner = self._wrapped(owner) if name == "seed" else None
            if owner is None:
                return
        ones = self._made_at(owner)
        value = call.args.get("seed", 0)
        if PLAYED in self.run.contexts:
            # What the program resets itself is followed there.
            return
        if value is None or v.is_none(value) is True:
            if name == "reset" and self.made:
                option = v.option_of(value) if value is not None else ""
                place = self._left_out(call, option)
                if needs_form_only(self.run, call.node):
                    self.looked_at.append((ones, self._through(call.node, ones), place))
                else:
                    self._reset(place, ones, self._through(call.node, ones))
            return
        if name == "reset" and "seed" in call.args.kw and not vector and isinstance(owner, v.Obj):
            self.seeded_by_reset = True
        self._seed(ones, self._through(call.node, ones))

    @on_object_attribute(*_GENERATORS)
    def generator_set(self, event: ObjectAttributeEvent) -> None:
        """An environment or a space is given a generator."""
        self._seed_generator(event.owner)

    def _seed_generator(self, owner: v.Value) -> None:
        """The generator of an environment or a space is seeded, or replaced."""
        if _space(owner):
            self._seed_space(owner)
            return
        self._seed(self._made_at(owner))

    def _seed(self, ones: frozenset[Site], through: Site | None = None) -> None:
        """Environments are seeded: those that are made here, or some that are not known."""
        if aside := self.run.state.aside:
            self.seeded_aside.update((aside, one) for one in ones or (None,))
        elif ones and through is not None:
            self.seeded_through.update((one, through) for one in ones)
        elif ones:
            self.seeded_ones.update(ones)
        else:
            self.seeded = True

    def _through(self, node: Any, ones: frozenset[Site]) -> Site | None:
        """The call of the program that gives the variable an environment whose method is called, where that is the only
        value of the variable and the environment is made elsewhere: in a function that may be called again."""
        name = receiver(node) if isinstance(node, m.Call) else ""
        body = running(self.run)
        if (
            body is None
            or not ones
            or not name.isidentifier()
            or any(one.name == name for one in body.params)
        ):
            return None
        given = list(assignments(self.run, name))
        if len(given) != 1 or not isinstance(given[0], m.Call) or name not in own_names(body):
            return None
        through = self.run.here(given[0])
        if all(one.path == through.path and through.start <= one.start < through.end for one in ones):
            return None
        # What wraps an environment that is there gives it to others too.
        parts = (one for one in nodes([given[0]]) if isinstance(one, m.Name))
        return None if any(self._made_at(self.run.value_of(one)) & ones for one in parts) else through

    def _is_form(self, node: Any) -> bool:
        """Whether the program only asks a sample for its form, or gives it to a model as an example."""
        return needs_form_only(self.run, node) or traced_only(self.run, node)

    def _of_base(self, call: CallEvent) -> bool:
        """Whether a method of an environment of the project calls the library's one that it replaces: it is about this
        environment alone."""
        owner = call.owner
        if not isinstance(owner, v.Super) or not isinstance(owner.receiver, v.Inst):
            return False
        names = (f"{base}.{call.api.rpartition('.')[2]}" for base in owner_types(self.run, owner))
        role = next(
            (role for one in names if (role := self.run.kb.role(one, "seeds-attribute")) is not None), None
        )
        if role is None:
            return False
        seed = call.args.get(role.arg, role.pos)
        if seed is not None and v.is_none(seed) is None:
            self.own_seeded.add(_class_of(owner.receiver))
        return True

    @on_call_if(lambda rule, api: api.rpartition(".")[0] in GENERATOR_TYPES)
    def drawn(self, call: CallEvent) -> None:
        """An environment of the project draws from the generator that it has by itself."""
        owner = call.owner
        if not isinstance(owner, v.Obj) or not isinstance(owner.owner, v.Inst) or self.run.entry is None:
            return
        kind, _, name = owner.api.rpartition(".")
        if not self.run.kb.attribute_type(kind, name) or needs_form_only(self.run, call.node):
            return
        seed = owner.args.get("", 0)
        if seed is None or v.is_none(seed) is True:
            option = v.option_of(seed) if seed is not None else ""
            place = Where(self.run, call.node, call_text(call), option)
            self.own_draws.setdefault(_class_of(owner.owner), place)

    def _sample(self, place: Where, space: v.Value | None) -> None:
        """A space is sampled."""
        ones = frozenset(self._within(one, True) for one in _environments(space))
        self.samples.setdefault(ones, place)

    def _seed_space(self, space: v.Value | None) -> None:
        """A space is seeded. That of a wrapper is the one of what is in it; where the wrapper is made in a branch, what is
        in it is seeded there alone."""
        ones = _environments(space)
        if not ones:
            self.space_seeded = True
        for one in ones:
            self.spaces.update(self._within(one, self.run.in_doubt(one.birth)))

    def _within(self, one: v.Obj, everything: bool) -> frozenset[Site]:
        """Where an environment is made, and what is in it: everything, or what is there whichever branch is taken."""
        site = made_at(one)
        found = {site} if site is not None else set()
        for inner in v.alternatives(one.attrs[INSIDE]) if INSIDE in one.attrs else ():
            if isinstance(inner, v.Obj) and (everything or not self.run.in_doubt(inner.birth)):
                found |= self._within(inner, everything)
        return frozenset(found)

    def _wrapped(self, owner: v.Value) -> v.Value | None:
        """What a wrapper of the project hands a seed on to, where it has no own method for that; None for nothing."""
        found: list[v.Value] = []
        for one in v.alternatives(owner):
            inner: v.Value | None = None
            if isinstance(one, v.Inst) and one.cls.find("seed") is not None:
                continue
            if isinstance(one, (v.Obj, v.Inst)) and INSIDE in one.attrs:
                inner = one.attrs[INSIDE]
            elif isinstance(one, v.Inst):
                roles = (self.run.kb.role(base, "contains-environment") for base in one.cls.external_bases())
                if any(role is not None for role in roles):
                    inner = v.UNKNOWN
            if inner is not None:
                inner = self._wrapped(inner) if _own(inner) else inner
            if inner is not None:
                found.append(inner)
        return v.join(found) if found else None

    def _left_out(self, call: CallEvent, option: str) -> Where:
        """Where a seed is left out: at the call, or where the `reset` of a class of the project is called that hands on the
        one that it is given."""
        place = Where(self.run, call.node, "reset", option)
        frames, node, frame = calls(self.run), call.node, self.run.frame
        while frames and frames[-1] is frame and _takes_seed(frame) and _hands_seed_on(node):
            node = frame.began()
            place = place.called_by(frames.pop(), len(frames))
            if frame.caller is None:
                break
            frame = frame.caller
        if _takes_seed(frame) is False:
            place.subject = "own"
        if place.site in self.vector_resets:
            place.subject = "vector"
        # What a wrapper resets is seeded through the wrapper.
        text = receiver(node) if isinstance(node, m.Call) else ""
        inner = text.startswith("self.") and frame.func is not None and frame.func.fn.name == "reset"
        if _of_each_round(frame, node):
            self.of_several.add(place.site)
        if text and not inner:
            self.resets_written.setdefault(place.site, text)
        return place

    def _of_another_library(self, owner: v.Value | None) -> bool:
        """Whether something is surely no environment."""
        types = owner_types(self.run, owner) if owner is not None else []
        return any(t.startswith(("torch.", "random.", "numpy.", "tf.")) for t in types)

    def _reset(self, place: Where, ones: frozenset[Site], through: Site | None = None) -> None:
        self.resets.setdefault((Reset(ones, place.aside, through), place.function), place)

    def _first_resets(self) -> Iterator[tuple[Reset, Where]]:
        """For some environments and an option that leads there, the first reset without a seed: one on the path to
        training or to what is written before any other, and one in a function that shows nothing before one that does."""
        places = [place for flag in (TRAIN, KEEPS) if (place := where(self.run, flag)) is not None]
        found: dict[Reset, list[Where]] = {}
        for (reset, _), one in self.resets.items():
            found.setdefault(reset, []).append(one)
        for reset, several in found.items():
            on_path = [one for one in several if any(to.flow[: len(one.flow)] == one.flow for to in places)]
            quiet = [one for one in several if one.function not in self.showing]
            yield reset, (on_path or quiet or several)[0]

    @on_call_if(lambda rule, api: rule.run.kb.call_is("shows", api))
    def shown(self, call: CallEvent) -> None:
        """A function shows what happens, as `render` does."""
        self.showing.add(function(self.run))

    def _seeded_with(self, option: str, ones: frozenset[Site]) -> bool:
        """Whether the option that leads to a path leads to a seed of these environments, too."""
        return any(by == option and (one is None or not ones or one in ones) for by, one in self.seeded_aside)

    def _made_at(self, owner: v.Value | None) -> frozenset[Site]:
        """Where the environments are made that a value can be; nothing where it can be anything else, or one that is
        made of others."""
        found: set[Site] = set()
        for one in v.alternatives(owner) if owner is not None else ():
            wrapper = one.receiver if isinstance(one, v.Super) else one
            if isinstance(one, v.Member) and one.name == _UNWRAPPED:
                inner = self._made_at(one.owner)
                if not inner:
                    return frozenset()
                found |= inner
                continue
            if isinstance(wrapper, v.Inst) and INSIDE in wrapper.attrs:
                inner = self._made_at(wrapper.attrs[INSIDE])
                if not inner:
                    return frozenset()
                found |= inner
                continue
            site = made_at(one) if isinstance(one, v.Obj) else None
            if site is None:
                return frozenset()
            assert isinstance(one, v.Obj)
            if INSIDE in one.attrs and (contained := self._made_at(one.attrs[INSIDE])):
                # The seed of a vector is one for each of its environments.
                found |= contained
                if any(entry.kind == "environment" for entry in self.run.kb.rng(one.api)):
                    found.add(site)
                continue
            parts = [part for part in one.args.values() if not isinstance(part, (v.Lit, v.Ext))]
            if any(entry.kind == "environment" for entry in self.run.kb.rng(one.api)):
                if any(isinstance(part, (v.Items, v.Func, v.Partial, v.Obj, v.Inst)) for part in parts):
                    return frozenset()
                found.add(site)
                continue
            # What a library wraps around one environment passes on the seed.
            wraps = one.api.startswith(_RL_LIBRARIES) or of_unknown_library(self.run.kb, one.api)
            wrapped = self._made_at(parts[0]) if len(parts) == 1 and wraps else None
            if not wrapped:
                return frozenset()
            found |= wrapped
        return frozenset(found)

    @on(ResultEvent)
    def environment(self, event: ResultEvent) -> None:
        """Environments of a library are made."""
        call = event.call
        for entry in self.run.kb.rng(call.api):
            if entry.kind != "environment" or _own(event.result):
                continue
            self.made = True
            self._released(event)
            given = call.args.get(entry.seed_arg or "seed", entry.seed_pos)
            made = self.run.here(call.node)
            if entry.unless and any_holds(call.args, entry.unless) is not False:
                self.seeded_ones.add(made)
                return
            if given is not None and v.is_none(given) is not True:
                # It seeds what it makes, and no environment that is made elsewhere.
                self.seeded_ones.add(made)
                if entry.at == "use":
                    self.with_spaces.add(made)
                return
            if entry.at == "use":
                remedy = entry.why or f"pass `{entry.seed_arg}=0` to `{call_text(call)}`"
                self.handed.setdefault(made, Handed(Where(self.run, call.node, call.api), remedy))

    def _released(self, event: ResultEvent) -> None:
        """Whether the release of the library that the program imports tells how its environments are seeded."""
        role, result = self.run.kb.role(event.call.api, "seeded-by-method"), event.result
        if role is None or not isinstance(result, v.Obj) or result.package != role.library:
            return
        if self.run.kb_matches(role.library, role.versions):
            self.takes_no_seed = True
        elif self.run.targets is not None and self.run.targets.otherwise(role.library, role.versions):
            self.may_take_none = f"{role.library} {role.versions.lstrip('<')}"

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "begins-episode") is not None)
    def begun(self, call: CallEvent) -> None:
        """An episode begins in a simulator."""
        role = self.run.kb.role(call.api, "begins-episode")
        if self.made and role is not None:
            simulator = call.args.get(role.arg, role.pos) if role.arg else call.owner
            self._reset(Where(self.run, call.node, call.api), self._made_at(simulator))

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "seeds-environment") is not None)
    def simulator_seeded(self, call: CallEvent) -> None:
        """A simulator is seeded, or may be."""
        ones = self._made_at(call.owner)
        self.seeded_ones.update(ones)
        self.seeded = self.seeded or not ones

    @on_call_if(
        lambda rule, api: (
            bool(rule.run.kb.rng(api))
            or api.startswith(_RL_LIBRARIES)
            or rule.run.kb.role(api, "resets-environment") is not None
        )
    )
    def call(self, call: CallEvent) -> None:
        """Something of a library is called."""
        resets = self.run.kb.role(call.api, "resets-environment")
        if resets is not None and self.made:
            ones = self._made_at(call.args.get(resets.arg, resets.pos))
            own = self._own_seed(call.api)
            for one in ones if own else ():
                self.learned_in.setdefault(one, f"`{call_text(call)}`")
            if not own:
                self._reset(Where(self.run, call.node, call.api), ones)
            elif ones and ones.isdisjoint(self.handed):
                help = f"pass `{own}=0` to `{call_text(call)}`, which seeds its environment"
                self.given.setdefault(ones, Handed(Where(self.run, call.node, call.api), help))
            samples = self.run.kb.role(call.api, "samples-actions")
            if samples is not None and ones and own and not self._is_seeded(call, own):
                if all_hold(call.args, samples.when) is True:
                    help = f"pass `{own}=0` to `{call_text(call)}`, which seeds the action space too"
                    seed = call.args.kw.get(own)
                    option = v.option_of(seed) if seed is not None else ""
                    place = Where(self.run, call.node, call_text(call), option)
                    self.explorers.setdefault(ones, Handed(place, help))
        # Anything of an RL library that takes a seed may seed its environments.
        seed = call.args.kw.get("seed")
        if any(entry.kind == "environment" for entry in self.run.kb.rng(call.api)) or self._of_base(call):
            return
        if seed is not None and v.is_none(seed) is not True and call.api.startswith(_RL_LIBRARIES):
            given_ones = [ones for one in call.args.values() if (ones := self._made_at(one))]
            named = call.args.get(resets.arg, resets.pos) if resets is not None else None
            if given_ones:
                self.seeded_ones.update(*given_ones)
            elif not (isinstance(named, v.Lit) and isinstance(named.value, str)):
                # What is named by a text is made there, and no other one is seeded.
                self.seeded = self.seeded or not self._made_at(call.owner)

    @on_method("step")
    def step(self, call: CallEvent) -> None:
        """Something that may be an environment goes on from what a reset gave."""
        statement = self.run.statement
        vector = isinstance(call.owner, v.Obj) and call.owner.api.startswith(_VECTORS)
        if not vector and isinstance(statement, m.Assign) and statement.value is call.node:
            self.step_values.update(len(to.elts) for to in statement.targets if isinstance(to, m.Seq))
        if not self.looked_at or self._of_another_library(call.owner):
            return
        for ones, through, place in self.looked_at:
            if not ones or not (known := self._made_at(call.owner)) or known & ones:
                self._reset(place, ones, through)
        self.looked_at = []

    @on_method("set_env")
    def set_later(self, call: CallEvent) -> None:
        """An algorithm is given its environment, which replaces an earlier one."""
        owner, environment = call.owner, call.args.get("env", 0)
        if not isinstance(owner, v.Obj) or not owner.api.startswith(_RL_LIBRARIES):
            return
        site = made_at(owner)
        if site is not None and environment is not None:
            self.set_ones[site] = self._made_at(environment)

    @on_method("set_random_seed")
    def seeded_later(self, call: CallEvent) -> None:
        """An algorithm seeds its environment, whatever it was made with; of one that is loaded, the environment may be an
        argument, or be set later."""
        owner = call.owner
        if not isinstance(owner, v.Obj) or not owner.api.startswith(_RL_LIBRARIES):
            return
        site = made_at(owner)
        resets = self.run.kb.role(owner.api.removesuffix(LOADED), "resets-environment")
        ones = self.set_ones.get(site) if site is not None else None
        if ones is None and resets is not None:
            ones = self._made_at(owner.args.get(resets.arg, resets.pos))
        if ones:
            self.seeded_ones.update(ones)
            self.with_spaces.update(ones)

    def _is_seeded(self, call: CallEvent, argument: str) -> bool:
        """Whether a call is given a seed, or may be."""
        seed = call.args.kw.get(argument)
        return call.args.dstar if seed is None else v.is_none(seed) is not True

    def _own_seed(self, api: str) -> str:
        """The argument with which what resets an environment seeds it; empty where it has none."""
        return next((one.seed_arg for one in self.run.kb.rng(api) if one.kind == "seeder"), "")

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What is ever seeded is known."""
        sample = self._unseeded_sample()
        if sample is not None:
            space = sample.subject if self.samples_own else f"env.{sample.subject}"
            space = self.spaces_written.get(sample.site, space)
            self.report(
                "DET111",
                sample,
                f"`{sample.subject}.sample()` draws from the space's own generator, which is never seeded",
                # What a call gives may be another space each time.
                f"call `{space}.seed(...)` once{_EACH}"
                if sample.site in self.of_several
                else f"call `{space}.seed(0)` once"
                if "..." not in space
                else "pass `seed=0` where the space is made",
                subject="space",
                remedy=() if sample.site in self.of_several else (BY_METHOD,),
            )
        for kind, draw in self.own_draws.items():
            if kind not in self.own_seeded:
                self._own_never_seeded(draw)
        if self.seeded:
            return
        # The seed of one environment does not reach another.
        seeded_ones = {*self.seeded_ones, *(one for one, _ in self.seeded_through)}
        done = set(seeded_ones)
        resets = [
            (one, place)
            for one, place in self._first_resets()
            if not self._seeded_with(one.aside, one.ones)
            if one.through is None or self.seeded_through.isdisjoint((made, one.through) for made in one.ones)
        ]
        # A path that needs no option is what a program does.
        resets.sort(key=lambda one: bool(one[1].aside))
        if resets and not resets[0][0].ones:
            if not done:
                # It may be about any of them.
                self._never_seeded(resets[0][1], next(map(self._remedy, self.handed), ""))
                return
        options: set[str] = set()
        reported: set[Site] = set()
        for (ones, _, through), reset in resets:
            others = done if through is None else {*self.seeded_ones, *reported}
            if ones and others.isdisjoint(ones) and reset.option not in options:
                # An option that seeds several environments is one cause.
                options |= {reset.option} - {""}
                reported |= ones
                known = [self._remedy(one) for one in sorted(ones) if one in self.handed]
                self._never_seeded(reset, next(iter(known), ""), ones=ones)
                done |= ones
        for ones, given in self.given.items():
            if done.isdisjoint(ones):
                self._never_seeded(given.place, given.remedy, ones=ones)
                done |= ones
        for made, handed in self.handed.items():
            if made not in done:
                self._never_seeded(handed.place, self._remedy(made), ones=frozenset([made]))
                done.add(made)
        done -= seeded_ones
        seeded = self.space_seeded or bool(self.spaces)
        for ones, explorer in self.explorers.items():
            if done.isdisjoint(ones) and self.with_spaces.isdisjoint(ones) and not seeded:
                name = explorer.place.subject
                self.report(
                    "DET111",
                    explorer.place,
                    f"`{name}` samples random actions from the space's own generator, which is never seeded",
                    explorer.remedy,
                    subject="space",
                    severity=Severity.WARNING if explorer.place.option else None,
                )

    def _unseeded_sample(self) -> Where | None:
        """The first sample of a space that is never seeded."""
        if self.space_seeded:
            return None
        for ones, place in self.samples.items():
            if any(map(self.spaces.isdisjoint, ones)) or not (ones or self.spaces):
                return place
        return None

    def _remedy(self, made: Site) -> str:
        """What seeds an environment that a library resets."""
        handed, algorithm = self.handed[made], self.learned_in.get(made)
        entries = self.run.kb.rng(handed.place.subject)
        passed = algorithm is not None and any(one.kind == "environment" and not one.why for one in entries)
        return f"{handed.remedy}, or to {algorithm}" if passed else handed.remedy

    def _steps_beside(self, place: Where) -> set[int]:
        """How many values steps give in the file of a place and in those that it imports, of which the run has met none;
        nothing where they differ, or where steps may be those of several environments at once."""
        modules = self.run.modules
        found: set[int] = set()
        left, seen = [place.site.path], {place.site.path}
        while left:
            file = modules.by_path[left.pop()]
            facts = self.run.whole(file)
            found |= _step_values(facts)
            if any(library.partition(".")[0] in facts.words for library in _VECTORS):
                return set()
            more = imports_of(modules, file) - seen
            seen |= more
            left += sorted(more)
        return found if len(found) == 1 else set()

    def _own_never_seeded(self, draw: Where) -> None:
        why = f" by default (`{draw.option}` is None)" if draw.option else ""
        self.report(
            "DET111",
            draw,
            f"`{draw.subject}` draws from the environment's own generator, which is never seeded{why}: it starts from OS "
            "entropy, and global seeds do not affect it",
            "call `env.reset(seed=0)` once after creating the environment, and `super().reset(seed=seed)` in its `reset`",
            subject="handed",
            severity=Severity.WARNING if draw.option else None,
        )

    def _never_seeded(self, place: Where, remedy: str = "", ones: frozenset[Site] = frozenset()) -> None:
        option = place.option
        why = f" by default (`{option}` is None)" if option else ""
        # What an option seeds may be another environment.
        asides = (
            by for by, one in sorted(self.seeded_aside, key=str) if one is None or not ones or one in ones
        )
        aside = next(asides, "")
        why = why or (f" unless {given_in_words(aside)}" if aside and not place.aside else "")
        begins = self.run.kb.role(place.subject, "begins-episode")
        name = "reset" if begins is None else place.subject.rpartition(".")[2]
        source = "OS entropy" if begins is None else "another seed in each run"
        env = self.resets_written.get(place.site, "env")
        seeds: tuple[str, ...] = ()
        if begins is not None:
            remedy = f"call `env.{begins.more[0]}(0)` once, before the first episode"
        if not remedy:
            several = place.site in self.of_several
            once, number = (_EACH, "...") if several else (" after creating it", "0")
            remedy, seeds = f"call `{env}.reset(seed={number})` once{once}", (BY_RESET,)
            steps = self.step_values or self._steps_beside(place)
            older = (self.seeded_by_method or 4 in steps) and not self.seeded_by_reset
            no_seed = self.takes_no_seed or older
            if place.subject == "vector" or no_seed:
                seeds = (BY_METHOD,)
                remedy = f"call `{env}.seed({number})` once{once}: this `reset` takes no seed"
            elif place.subject == "own":
                seeds = ()
                handing = "pass on a different seed to each environment" if several else "pass it on"
                remedy = f"give this `reset` a parameter `seed`, {handing}, and pass `seed=0` once, after creating it"
            elif self.may_take_none and not steps:
                remedy = f"{remedy}; before {self.may_take_none}, call its method `seed` instead"
        self.report(
            "DET111",
            place,
            f"environment is never seeded{why}: `{name}()` uses {source}, and global seeds do not affect it",
            remedy,
            subject="environment" if place.subject in _RESETS else "handed",
            severity=Severity.WARNING if option else None,
            remedy=() if place.site in self.of_several else seeds,
        )


def _step_values(facts: m.FileFacts) -> set[int]:
    """How many values steps give, by the variables that code takes them apart into: four, or five since `reset` takes a
    seed."""
    if "step" not in facts.words:
        return set()
    sizes = {
        len(to.elts)
        for function in facts.functions
        for node in nodes(function.body)
        if isinstance(node, m.Assign) and called_name(node.value) == "step"
        for to in node.targets
        if isinstance(to, m.Seq)
    }
    return sizes & {4, 5}


def _takes_seed(frame: Frame) -> bool | None:
    """Whether the `reset` of a class of the project that runs takes a seed; None where none runs."""
    func = frame.func
    if func is None or func.receiver is None or func.fn.name != "reset":
        return None
    return any(param.name == "seed" or param.kind == "w" for param in func.fn.params)


def _of_each_round(frame: Frame, node: m.Call | None) -> bool:
    """Whether a method is called of what each round of a loop or comprehension takes: ``env.reset()``, or
    ``envs[i].reset()``."""
    func = node.func if node is not None else None
    if isinstance(func, m.Attr) and isinstance(func.value, m.Subscript):
        name = func.value.index.id if isinstance(func.value.index, m.Name) else ""
    else:
        name = func.id.partition(".")[0] if isinstance(func, m.Name) else ""
    above = parents(frame.function)
    user: Any = above.get(id(node)) if name else None
    while user is not None:
        rounds = [user] if isinstance(user, m.For) else user.generators if isinstance(user, m.Comp) else []
        targets = [one.target for one in rounds]
        if any(isinstance(one, m.Name) and one.id == name for one in nodes(targets)):
            return True
        user = above.get(id(user))
    return False


def _hands_seed_on(call: m.Call | None) -> bool:
    """Whether a call has a seed, or any keyword arguments that a function was given."""
    return call is not None and any(one.name in ("seed", None) for one in call.keywords)


def _class_of(inst: v.Inst) -> tuple[str, str]:
    return inst.cls.file.path, inst.cls.cls.qualname


def _own(value: v.Value) -> bool:
    """Whether an environment is surely one of the project, which draws what its own code does."""
    return all(is_own(one) for one in v.alternatives(value))


def _environments(space: v.Value | None) -> list[v.Obj]:
    """The environments whose attribute a space is; none where it may be that of something else."""
    found = (
        [one.owner for one in v.alternatives(space) if isinstance(one, v.Member)] if space is not None else []
    )
    ones = [one for owner in found for one in v.alternatives(owner)]
    known = [one for one in ones if isinstance(one, v.Obj) and made_at(one) is not None]
    return known if len(known) == len(ones) else []


def _space(owner: v.Value | None) -> str:
    """The space of an environment that a value is: an attribute or, with several agents, what a method gives."""
    if isinstance(owner, v.Member):
        return owner.name if owner.name in _SPACES else ""
    name = owner.api.rpartition(".")[2] if isinstance(owner, v.Obj) else ""
    return f"{name}(agent)" if name in _SPACES else ""


_EACH = " for each environment, with a different seed for each"
_SPACES = ("action_space", "observation_space", "single_action_space", "single_observation_space")
_RESETS = frozenset({"reset", "own", "vector"})
_VECTORS = ("stable_baselines3.", "sb3_contrib.", "stable_baselines.")
"""Libraries whose vectors of environments have a method ``seed``, and a `reset` without."""
OWN = "own"
LOADED = ".load"
"""The end of the class methods that give an algorithm as it was saved."""
_RL_LIBRARIES: tuple[str, ...] = (
    "stable_baselines3.",
    "sb3_contrib.",
    "stable_baselines.",
    "baselines.",
    "gym.",
    "gymnasium.",
    "ray.",
    "tianshou.",
    "pettingzoo.",
    "envpool.",
)
