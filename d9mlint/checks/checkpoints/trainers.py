"""DET602, DET603: trainers that go on from a checkpoint without the states of RNGs, or from one within an epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from d9mlint.base.findings import Confidence
from d9mlint.base.options import given_in_words
from d9mlint.base.terminal import listed
from d9mlint.checks.base import Rule, argument_node
from d9mlint.checks.checkpoints.own_draws import OF_TORCH, OwnDraws
from d9mlint.checks.checkpoints.path_names import called_by_default, with_ending
from d9mlint.checks.checkpoints.states import rng_states, shuffles_with
from d9mlint.checks.checkpoints.weights import models_made
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.calls import has_model
from d9mlint.interp.context import CPU_CONTEXT, NO_GRADIENT
from d9mlint.interp.events import AnyDrawEvent, CallEvent, DrawEvent, EndEvent, ImportEvent
from d9mlint.interp.library.loaders import LOADER
from d9mlint.interp.listening import on, on_call, on_call_if, on_method
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.naming import running
from d9mlint.interp.places import Where
from d9mlint.interp.rng import GENERATOR_TYPES
from d9mlint.interp.state import UNSEEDED, Site
from d9mlint.interp.storage import made_at
from d9mlint.ir import nodes as m
from d9mlint.ir.branches import left_by_branch, truth_in

if TYPE_CHECKING:
    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.schema import RoleEntry

_RNGS = ("torch", "numpy", "python")
_DROPS_LOADED = "<2.1"
"""The releases of Lightning of which a model loads a file into a new one that nobody takes; later ones raise TypeError."""


class ResumedTrainers(OwnDraws, Rule):
    """DET602: what a trainer does not restore from its checkpoints. DET603: those that it saves within epochs."""

    codes = ("DET602", "DET603")
    uses = remembered_table(str, bool)
    """The RNGs that are drawn from once training goes on."""
    splits = remembered(list[str])
    """What has split the examples, drawing from an RNG that is not seeded."""
    generators = remembered(set[Site])
    """Where generators are made with which loaders shuffle,"""
    carried = remembered(set[Site])
    """and those among them whose seeds are computed, or whose state the program asks for."""
    places = remembered(list[tuple[Where, str, frozenset[str]]])
    """Where training goes on, with the call that says from what, and the RNGs that are seeded then."""
    own_names = remembered_table(Site, str)
    """Generators of the program that are drawn from once training goes on, and what it calls them."""
    made_later = remembered(set[Site])
    """Where those are made that are made once training goes on."""
    inside = remembered_table(Site, tuple[Where, str])
    """Where trainers are asked to save within epochs, and by which argument."""
    other = remembered(bool)
    """Whether a trainer may be asked to save at other times only, or keeps the position in the data."""
    loads = remembered_table(Site, Where)
    """Where trainers are loaded."""
    read_from = remembered_table(Site, frozenset[str])
    """What the files are called that those were loaded from which train, by the defaults of options."""
    loaded = remembered_table(Site, tuple[str, ...])
    """Where the trainers are loaded that go on with training, and the RNGs that they draw from."""
    put_back = remembered_table(Site, bool)
    """Where the trainers are loaded that are given what their files leave out."""
    alone = remembered(set[Site])
    """Where trainers go on whose callbacks save weights alone, from which they cannot,"""
    whole = remembered(bool)
    """and whether the program may save more than weights."""
    dropped = remembered_table(Site, Where)
    """The models for which a file was loaded into another one, which nothing takes, and where."""

    @on(AnyDrawEvent)
    def drawn(self, event: AnyDrawEvent) -> None:
        """An RNG is drawn from. What is drawn before a trainer goes on is drawn again by a program that resumes."""
        rng, entry, _ = event
        if self.places and entry.kind not in ("init", "split") and rng in _RNGS:
            self.uses[rng] = True

    @on_call_if(lambda rule, api: (rule.run.kb.result_type(api) or api) in (*GENERATOR_TYPES, OF_TORCH))
    def generator_made(self, call: CallEvent) -> None:
        """A generator is made."""
        if self.places:
            self.made_later.add(self.run.here(call.node))

    def _in_rounds(self) -> bool:
        return bool(self.places)

    def _own_drawn(self, generator: v.Obj, name: str) -> None:
        site = made_at(generator)
        # The items of a loader may be made by workers, which have their own copies.
        if site is None or not name or not self.places or CPU_CONTEXT in self.run.contexts:
            return
        if not self.run.contexts.within(NO_GRADIENT):
            self.own_names.setdefault(site, lambda: name)

    @on_call(LOADER)
    def loader(self, call: CallEvent) -> None:
        """A loader is made, which may shuffle with a generator that it is given."""
        own = shuffles_with(call.args)
        site = made_at(own) if own is not None else None
        if site is not None:
            self.generators.add(site)

    @on_method("manual_seed", "get_state")
    def seeded(self, call: CallEvent) -> None:
        """A generator is seeded, which may be by the number of the epoch, or its state is asked for."""
        site = made_at(call.owner) if isinstance(call.owner, v.Obj) else None
        if site is not None and not isinstance(call.args.get("seed", 0), v.Lit):
            self.carried.add(site)

    @on(DrawEvent)
    def unseeded(self, event: DrawEvent) -> None:
        """An RNG is drawn from that is not seeded."""
        name = next((one for one in event.entry.apis if self.run.kb.role(one, "splits-examples")), "")
        if name:
            self.splits.append(name.rpartition(".")[2])

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "resumes-training") is not None)
    def resumed(self, call: CallEvent) -> None:
        """A trainer trains, which may go on from a checkpoint."""
        owner = call.owner
        if self.run.entry is None:
            return
        if not isinstance(owner, v.Obj):
            self.loads.setdefault(self.run.here(call.node), lambda: Where(self.run, call.node, call.api))
            return
        self._unused(call)
        kept = [*self._objects(call.args), *self._objects(owner.args)]
        if any(one.cls.find(name) is not None for one in kept for name in _HOOKS):
            # It may keep them itself.
            return
        goes_on = self.run.kb.role(call.api, "resumes-training")
        if goes_on is not None and goes_on.arg == "self":
            self._read(owner)
            if all_hold(call.args, goes_on.when) is None:
                self._gone_on(owner, self._in_branch(owner, call, goes_on), goes_on)
            else:
                self._gone_on(owner, call.args, goes_on)
            return
        for args, api in ((call.args, call.api), (owner.args, owner.api)):
            role = self.run.kb.role(api, "resumes-training")
            if role is None or not all_hold(args, role.when):
                continue
            if self.run.targets is not None and not self.run.targets.may_match(role.library, role.versions):
                # The argument raises TypeError.
                continue
            # That `**options` may have it is no sign that it does.
            shown = role.arg in args.kw or (role.pos is not None and role.pos < len(args.pos))
            path = args.get(role.arg, role.pos) if shown else None
            if path is not None and self._names_file(path):
                seeded = frozenset(rng for rng in _RNGS if self.run.state.level(rng).level != UNSEEDED)
                option = v.option_of(path) if v.is_none(path) is True else ""
                given = f", if {given_in_words(option)}," if option else ""
                name = f"`{api.rpartition('.')[2]}({role.arg}=...)`{given}"
                place = Where(self.run, call.node, api)
                self.places.append((place, name, seeded))
                if self._saves_weights_alone(owner):
                    self.alone.add(place.site)
                if any(
                    one.cls.find("state_dict") is not None for one in kept if not has_model(self.run, [one])
                ):
                    self.other = True

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "saves-in-epochs") is not None)
    def saves_inside(self, call: CallEvent) -> None:
        """A trainer is to save checkpoints, within epochs or at their ends."""
        role = self.run.kb.role(call.api, "saves-in-epochs")
        if role is None or call.args.dstar or call.args.star:
            self.other = True
            return
        asked = all_hold(call.args, role.when)
        written = argument_node(call.node, role.arg)
        if asked is None and isinstance(written, m.BinOp) and written.op == "//":
            # A part of some number of steps, which is hardly one for each epoch.
            asked = True
        if asked is not True:
            self.other = True
            return
        name = next((one for one in (role.arg, *role.more) if one in call.args.kw), role.arg)
        place = Where(self.run, call.node, call.api)
        self.inside[place.site] = place, f"{call.api.rpartition('.')[2]}({name}=...)"

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "saves-states") is not None)
    def saves_states(self, call: CallEvent) -> None:
        """What a trainer saves is decided: its states, or the weights alone."""
        role = self.run.kb.role(call.api, "saves-states")
        if role is None or call.args.star or call.args.dstar or all_hold(call.args, role.when) is not False:
            self.whole = True

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "saves-loader") is not None)
    def keeps_position(self, call: CallEvent) -> None:
        """The position in the data is kept."""
        self.other = True

    @on(ImportEvent)
    def imported(self, event: ImportEvent) -> None:
        """A library is imported."""
        if self.run.kb.role(f"import:{event.name}", "saves-loader") is not None:
            self.other = True

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "gives-loaded") is not None)
    def loaded_for_nothing(self, call: CallEvent) -> None:
        """A method of a model loads a file into a new one, which may be dropped."""
        statement, targets = self.run.statement, self.run.targets
        if self.run.entry is None or not isinstance(call.owner, v.Inst):
            return
        if not isinstance(statement, m.ExprStmt) or statement.value is not call.node:
            return
        if targets is None or not (
            targets.matches("lightning", _DROPS_LOADED) or targets.differs("lightning", _DROPS_LOADED)
        ):
            self.silent(
                "DET602", call.node, "Lightning raises TypeError from 2.1 on, as it is called on an instance"
            )
            return
        for site in models_made(call.owner):
            self.dropped[site] = Where(self.run, call.node, call.api)

    def _unused(self, call: CallEvent) -> None:
        """A trainer trains models, of which one may have its own weights though a file was loaded for it."""
        role = self.run.kb.role(call.api, "resumes-training")
        path = call.args.get(role.arg, role.pos) if role is not None else None
        if call.args.dstar or (path is not None and v.is_none(path) is not True):
            return
        for site in {site for model in self._objects(call.args) for site in models_made(model)}:
            if site in self.dropped:
                targets = self.run.targets
                now = targets is not None and targets.matches("lightning", _DROPS_LOADED)
                self.report(
                    "DET602",
                    self.dropped[site],
                    "`load_from_checkpoint` returns a new model, which is dropped: this one keeps its weights, so resumed "
                    f"training starts from the beginning{'' if now else ', before Lightning 2.1, which raises TypeError'}",
                    "pass the checkpoint to the trainer, which restores optimizers and loops too: `fit(ckpt_path=...)`, "
                    "before Lightning 1.5 `Trainer(resume_from_checkpoint=...)`",
                    subject="load_from_checkpoint",
                )

    def _gone_on(self, trainer: v.Inst | v.Obj, args: v.Args, goes_on: RoleEntry) -> None:
        """A trainer trains, which goes on with training if it was loaded."""
        made_by = self.run.kb.role(trainer.api, "resumes-training") if isinstance(trainer, v.Obj) else None
        if made_by is None or not isinstance(trainer, v.Obj) or all_hold(args, goes_on.when) is not True:
            return
        site = made_at(trainer)
        if site is not None:
            self.loaded.setdefault(site, lambda: tuple(made_by.more))
            apart = self.run.kb.role(trainer.api, "leaves-out")
            if apart is not None and apart.more[0] in trainer.attrs:
                self.put_back[site] = True

    def _read(self, trainer: v.Obj) -> None:
        """A trainer trains, which may have been loaded."""
        made_by, site = self.run.kb.role(trainer.api, "resumes-training"), made_at(trainer)
        file = trainer.args.get(made_by.arg, made_by.pos) if made_by is not None else None
        if made_by is None or site is None or file is None or not made_by.more:
            return
        names = called_by_default(self.run, file)
        if names:
            self.read_from.setdefault(site, lambda: frozenset(names))

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "saves-trained") is not None)
    def saved(self, call: CallEvent) -> None:
        """A trainer is saved."""
        role = self.run.kb.role(call.api, "saves-trained")
        file = call.args.get(role.arg, role.pos) if role is not None else None
        if role is None or file is None:
            return
        ending = role.more[0] if role.more else ""
        names = {with_ending(one, ending) for one in called_by_default(self.run, file)}
        for site in self.read_from.known():
            read = {with_ending(one, ending) for one in self.read_from[site]}
            place = self.loads.get(site)
            made_by = self.run.kb.role(place.subject, "resumes-training") if place is not None else None
            if made_by is not None and not read.isdisjoint(names):
                # The next run goes on from there.
                self.loaded[site] = tuple(made_by.more)

    @on_call_if(lambda rule, api: _puts_back(rule.run.kb, api))
    def restored_apart(self, call: CallEvent) -> None:
        """What was loaded gets back what the file leaves out."""
        site = made_at(call.owner) if isinstance(call.owner, v.Obj) else None
        if site is not None:
            self.put_back[site] = True

    def _in_branch(self, trainer: v.Obj, call: CallEvent, goes_on: RoleEntry) -> v.Args:
        """The arguments of a call with the values that they have if the branch was taken in which a trainer is made: what
        that branch assigns to the variables they are made of."""
        function = running(self.run)
        if function is None or trainer.node is None or trainer.file is not self.run.frame.file:
            return call.args
        left = left_by_branch(function, trainer.node)
        given: dict[str, v.Value] = {}
        for one in goes_on.when:
            node = argument_node(call.node, one.arg, one.pos)
            known = truth_in(node, left) if node is not None else None
            if known is not None:
                given[one.arg] = v.Lit(known)
        return call.args.replaced(v.Args([], given)) if given else call.args

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        for site in self.loaded.known():
            if site in self.loads:
                place = self.loads[site]
                name = ".".join(place.subject.split(".")[-2:])
                apart = self.run.kb.role(place.subject, "leaves-out") if site not in self.put_back else None
                lacks, remedy = rng_states(list(self.loaded[site])), ""
                if apart is not None:
                    attribute, saves = apart.more
                    lacks = [f"the {attribute.replace('_', ' ')}", *lacks]
                    remedy = f"save the {attribute.replace('_', ' ')} with `{saves}()` and load it with `{apart.arg}()`; "
                self.report(
                    "DET602",
                    place,
                    f"`{name}` does not restore {listed(lacks)}, so resumed training continues from a different state",
                    f"{remedy}save the RNG states beside the file and restore them before training goes on",
                    subject=place.subject,
                )
        places = [one for one in self.places if self.whole or one[0].site not in self.alone]
        if len(places) < len(self.places):
            for place, _, _ in self.places:
                reason = "the program saves weights alone, and a trainer that is to go on from them raises KeyError"
                self.silent("DET602", place, reason)
        if places and not self.other:
            for site in self.inside.known():
                place, name = self.inside[site]
                self.report(
                    "DET603",
                    place,
                    f"`{name}` saves checkpoints within an epoch without the position in the data: a resumed run repeats "
                    "batches of the epoch, or leaves some out",
                    "save at the end of epochs, or use a loader that keeps its position (`StatefulDataLoader`)",
                    subject=place.subject,
                    confidence=Confidence.MEDIUM,
                )
        for place, name, seeded in places:
            if self.splits:
                self.report(
                    "DET602",
                    place,
                    f"{name} resumes training, but `{self.splits[0]}` is not seeded: the resumed run trains on examples on "
                    "which the model was validated, and validates on examples on which it was trained",
                    f"seed the RNG that `{self.splits[0]}` draws from, or save the indices of the split",
                    subject=place.subject,
                )
                continue
            rngs = [rng for rng in _RNGS if rng in seeded and rng in set(self.uses.known())]
            lacks = rng_states(rngs)
            what = "the RNG states" if rngs else "it"
            if not set(self.generators) <= set(self.carried):
                lacks.append("the state of the loader's generator")
                what = "the RNG states, and that of the generator," if rngs else what
            known = {*self.own_kept.known(), *self.carried, *self.made_later}
            own = sorted({self.own_names[site] for site in self.own_names.known() if site not in known})
            if own:
                several = len(own) > 1
                states = "states of the generators" if several else "state of the generator"
                lacks.append(f"the {states} {listed([f'`{one}`' for one in own])}")
                what = "the states of all generators" if rngs or several or len(lacks) > 1 else what
            if lacks:
                self.report(
                    "DET602",
                    place,
                    f"{name} does not restore {listed(lacks)}, so resumed training continues from a different state",
                    f"save {what} in `on_save_checkpoint` and restore {'it' if what == 'it' else 'them'} in "
                    "`on_load_checkpoint`",
                    subject=place.subject,
                )

    def _saves_weights_alone(self, trainer: v.Obj) -> bool:
        """Whether the callbacks of a trainer are known, and one of them saves the weights alone."""
        given = trainer.args.kw.get(_CALLBACKS)
        if given is None or trainer.args.dstar:
            return False
        parts = given.elts if isinstance(given, v.Items) and not given.open else [given]
        if not all(isinstance(one, v.Obj) for part in parts for one in v.alternatives(part)):
            return False
        # Any of them that saves more has said so when it was made.
        return any(
            self.run.kb.role(one.api, "saves-states") is not None
            for part in parts
            for one in v.alternatives(part)
            if isinstance(one, v.Obj)
        )

    def _objects(self, args: v.Args) -> Iterator[v.Inst]:
        """The objects of the program's own classes among arguments, also in lists."""
        for value in args.values():
            for one in v.alternatives(value):
                for part in one.elts if isinstance(one, v.Items) else (one,):
                    if isinstance(part, v.Inst):
                        yield part

    def _names_file(self, path: v.Value) -> bool:
        """Whether a value names a file, if only where an option is given."""
        for one in v.alternatives(path):
            if isinstance(one, v.Lit) and (bool(one.value) or one.option):
                return True
            if isinstance(one, v.Obj) and self.run.kb.role(one.api, "makes-text") is not None:
                return True
            if one is v.UNKNOWN or isinstance(one, v.Member | v.Ext):
                # An item of the configuration or of the command line, or what a function has found.
                return True
        return False


_CALLBACKS = "callbacks"
_HOOKS = ("on_save_checkpoint", "on_load_checkpoint")


def _puts_back(kb: Knowledge, api: str) -> bool:
    """Whether a method of what was loaded puts back what its file leaves out."""
    loads, _, method = api.rpartition(".")
    apart = kb.role(loads, "leaves-out")
    return apart is not None and apart.arg == method
