"""DET602: training in Keras that goes on from weights alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.checks.base import Rule
from d9mlint.checks.checkpoints.path_names import path_name
from d9mlint.checks.checkpoints.stages import Test, exclude, tests_around
from d9mlint.checks.checkpoints.weights import models_made
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.events import CallEvent, EndEvent
from d9mlint.interp.listening import on, on_method
from d9mlint.interp.memory import Table, remembered, remembered_table
from d9mlint.interp.places import Where
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.usage import flatten

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

_WITHOUT_OPTIMIZER = (".h5", ".hdf5")
"""Formats of files that hold the weights alone in all releases."""


class InFile(NamedTuple):
    """A file that holds a model, as ``path_name`` calls it, and the loops that are running when it is read or written."""

    file: tuple[str, ...]
    loops: frozenset[str]


class KerasWeights(Rule):
    """DET602: models of Keras that are given weights, and trained from a later epoch on."""

    codes = ("DET602",)
    loaded = remembered_table(Site, str)
    """Models that go on from weights alone, and why."""
    given_where = remembered(set[tuple[Site, frozenset[Test]]])
    """What holds, by the tests around, where models are given weights."""
    stateful = remembered(set[Site])
    """Models that are compiled with an optimizer that keeps a state."""
    compiled_in = remembered_table(Site, frozenset[str])
    """The loops in whose every round models get a new optimizer."""
    loaded_from = remembered_table(Site, frozenset[InFile])
    """The files that held the weights which models were given before they were trained."""
    saved_in = remembered_table(Site, frozenset[InFile])
    """Those of them in which the same models are saved before they are trained."""
    fitted = remembered_table(Site, tuple[Where, str])
    """Where models are trained that keep the state of an optimizer, and by which call."""
    whole_in = remembered(set[Site])
    """The trainings that go on from a whole model, if only where an option is given."""
    by_option = remembered(list[tuple[Site, Site, Where, str]])
    """The trainings whose first epoch an option gives, which is the first of all by default, that go on from weights alone:
    the place, the model, and the call."""

    @on_method("load_weights")
    def load(self, call: CallEvent) -> None:
        """A model is given weights."""
        role = self.run.kb.role(call.api, "restores-weights")
        path = call.args.get(role.arg, role.pos) if role is not None else None
        if path is not None and (self.run.kb_matches("tensorflow", ">=2.16") or _is_hdf5(path)):
            self._given(call, [self._file(path)])

    @on_method("set_weights")
    def copied(self, call: CallEvent) -> None:
        """A model is given the weights of another one, which a file may have held."""
        role = self.run.kb.role(call.api, "restores-weights")
        weights = call.args.get(role.arg, role.pos) if role is not None else None
        if not isinstance(weights, v.Obj) or self.run.kb.role(weights.api, "gives-weights") is None:
            return
        for one in v.alternatives(weights.owner) if weights.owner is not None else ():
            if not isinstance(one, v.Obj):
                continue
            if self.run.kb.role(one.api, "restores-model") is not None:
                self._given(call, [self._held_by(one)])
            elif (site := made_at(one)) is not None and site in self.loaded:
                self._given(call, [one.file for one in self.loaded_from.get(site) or ()])

    def _given(self, call: CallEvent, files: Iterable[tuple[str, ...] | None]) -> None:
        """The models whose method is called are given the weights that files hold."""
        why = f"`{call.api.rpartition('.')[2]}` restores no optimizer state"
        for site in models_made(call.owner):
            self.loaded[site] = why
            self.given_where.add((site, tests_around(self.run, call.node)))
            # After training, the best weights are loaded to test them.
            for file in files if site not in self.fitted else ():
                if file is not None:
                    self._add(self.loaded_from, site, file)

    @on_method("save", "save_weights")
    def save(self, call: CallEvent) -> None:
        """A model, or its weights, is saved."""
        self._saved(call.args.get("filepath", 0), list(models_made(call.owner)))

    @on_method("compile")
    def compiled(self, call: CallEvent) -> None:
        """A model is compiled: the optimizer of one that was loaded is replaced."""
        optimizer = call.args.get("optimizer", 0)
        if optimizer is None or not any(map(self._keeps_state, v.alternatives(optimizer))):
            return
        fresh = self._loops_of_new(optimizer)
        for model in models_made(call.owner):
            self.stateful.add(model)
            known = self.compiled_in.get(model)
            self.compiled_in[model] = fresh if known is None else fresh & known
        for one in v.alternatives(call.owner) if call.owner is not None else ():
            if not isinstance(one, v.Obj):
                continue
            role, site = self.run.kb.role(one.api, "restores-model"), made_at(one)
            if role is None or site is None or site in self.fitted:
                continue
            self.loaded[site] = "`compile` replaces the optimizer of the model that was loaded"
            if (file := self._held_by(one)) is not None:
                self._add(self.loaded_from, site, file)

    @on_method("fit", "fit_generator")
    def fit(self, call: CallEvent) -> None:
        """A model is trained."""
        role = self.run.kb.role(call.api, "resumes-epochs")
        models = list(models_made(call.owner))
        if role is not None and self.run.entry is not None:
            self._trained(call, models)
            for one in flatten(call.args.kw.get("callbacks", v.NONE)):
                saves = self.run.kb.role(one.api, "saves-in-training") if isinstance(one, v.Obj) else None
                if isinstance(one, v.Obj) and saves is not None and saves.arg:
                    self._saved(one.args.get(saves.arg, saves.pos), models)
        first = call.args.get(role.arg, role.pos) if role is not None else None
        if role is None or first is None or self.run.entry is None:
            return
        if isinstance(first, v.Lit) and not first.value and not first.option:
            return
        here = self.run.here(call.node)
        if any(map(self._is_whole, v.alternatives(call.owner) if call.owner is not None else ())):
            self.whole_in.add(here)
        found = next((site for site in models if site in self.loaded and site in self.stateful), None)
        if found is None:
            return
        if isinstance(first, v.Lit) and first.option and not first.value:
            self.by_option.append((here, found, Where(self.run, call.node), call.api))
        else:
            self._report(found, call.node, f"{call.api.rpartition('.')[2]}({role.arg}=...)", call.api)

    @on_method("train_on_batch")
    def step(self, call: CallEvent) -> None:
        """A model is trained on one batch, in a loop of the program's own."""
        if self.run.entry is not None:
            self._trained(call, models_made(call.owner))

    def _trained(self, call: CallEvent, models: Iterable[Site]) -> None:
        """Models are trained, which were given weights alone, and where that is for the first time."""
        tests = tests_around(self.run, call.node) if self.loaded.known() else frozenset[Test]()
        for site in models:
            if site in self.loaded and site in self.stateful and site not in self.fitted:
                given = [one for model, one in self.given_where if model == site]
                if given and all(exclude(one, tests) for one in given):
                    # It is given weights where it is not trained so: before it is trained further.
                    continue
                self.fitted[site] = Where(self.run, call.node), call.api
                if self._saved_next_round(site):
                    self._report(site, call.node, call.api.rpartition(".")[2], call.api)

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """The program has ended: where a whole model goes on in its place, weights alone are those of a new training."""
        for here, model, place, api in self.by_option:
            role = self.run.kb.role(api, "resumes-epochs")
            if here not in self.whole_in and role is not None:
                self._report(model, place, f"{api.rpartition('.')[2]}({role.arg}=...)", api)

    def _is_whole(self, model: v.Value) -> bool:
        """Whether a model was loaded as a whole, and goes on with its optimizer."""
        if not isinstance(model, v.Obj) or self.run.kb.role(model.api, "restores-model") is None:
            return False
        site = made_at(model)
        return site is None or site not in self.loaded

    def _saved(self, path: v.Value | None, models: list[Site]) -> None:
        """Weights of models are saved: where they were given those of the same file before they were trained, the next run
        goes on from them."""
        file, running = self._file(path) if path is not None else None, self._loops()
        for site in models:
            earlier = [one for one in self.loaded_from.get(site) or () if one.file == file]
            if file is None or not earlier:
                continue
            anew = self.compiled_in.get(site)
            if running and anew is not None and all(running <= anew & one.loops for one in earlier):
                # Each round begins with these weights and a new optimizer, whether or not the program was started again.
                continue
            if site in self.fitted:
                place, api = self.fitted[site]
                self._report(site, place, api.rpartition(".")[2], api)
            else:
                self._add(self.saved_in, site, file)

    def _saved_next_round(self, model: Site) -> bool:
        """Whether what a training makes of a model is saved by a call before it, in the next round of a loop: one in whose
        rounds the model is not given the weights again."""
        running = self._loops()
        return any(
            saved.file == loaded.file and not running.isdisjoint(saved.loops - loaded.loops)
            for saved in self.saved_in.get(model) or ()
            for loaded in self.loaded_from.get(model) or ()
        )

    def _add(self, files: Table[Site, frozenset[InFile]], model: Site, file: tuple[str, ...]) -> None:
        files[model] = (files.get(model) or frozenset()) | {InFile(file, self._loops())}

    def _loops_of_new(self, optimizer: v.Value) -> frozenset[str]:
        """The running loops in whose rounds an optimizer is made: each has another one."""
        births = [one.birth for one in v.alternatives(optimizer) if isinstance(one, v.Obj)]
        return frozenset(loop.key for loop in self.run.loops if all(birth >= loop.start for birth in births))

    def _loops(self) -> frozenset[str]:
        """The loops that are running."""
        return frozenset(loop.key for loop in self.run.loops)

    def _report(self, model: Site, place: Any, call: str, api: str) -> None:
        self.report(
            "DET602",
            place,
            f"`{call}` goes on from weights alone: {self.loaded[model]}, so resumed training continues from a different "
            "state",
            "save the whole model with `model.save`, and load it with `keras.models.load_model` without compiling it again",
            subject=api,
        )

    def _held_by(self, model: v.Obj) -> tuple[str, ...] | None:
        """The file that held a model which is loaded as a whole."""
        role = self.run.kb.role(model.api, "restores-model")
        path = model.args.get(role.arg, role.pos) if role is not None else None
        return self._file(path) if path is not None else None

    def _file(self, path: v.Value) -> tuple[str, ...] | None:
        """What the file of a path is called, in the same words however it is written."""
        known = path_name(self.run, path)
        return known.key() if known is not None else None

    def _keeps_state(self, optimizer: v.Value) -> bool:
        """Whether an optimizer, or that of a name, keeps a state."""
        kb = self.run.kb
        if isinstance(optimizer, v.Lit):
            plain = {name for one in kb.role_entries() for name in one.more if one.role == "keeps-no-state"}
            return isinstance(optimizer.value, str) and optimizer.value.lower() not in plain
        return isinstance(optimizer, v.Obj) and keeps_state(self.run, optimizer)


def keeps_state(run: RunView, optimizer: v.Obj) -> bool:
    """Whether an object is an optimizer that keeps a state."""
    if run.kb.role(optimizer.api, "optimizes") is None:
        return False
    role = run.kb.role(optimizer.api, "keeps-no-state")
    return role is None or all_hold(optimizer.args, role.when) is False


def _is_hdf5(path: v.Value) -> bool:
    """Whether a path is one of a file in a format that holds the weights alone."""
    while isinstance(path, v.Obj):
        end = path.args.kw.get("end") or (path.args.pos[-1] if path.args.pos else None)
        if end is None:
            return False
        path = end
    return isinstance(path, v.Lit) and isinstance(path.value, str) and path.value.endswith(_WITHOUT_OPTIMIZER)
