"""DET601 and DET603: weights of Keras that a training loop of the program saves, and goes on from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from d9mlint.base.terminal import listed
from d9mlint.checks.base import Rule, argument_node
from d9mlint.checks.checkpoints.continued import Start, first_of, start_of
from d9mlint.checks.checkpoints.keras import keeps_state
from d9mlint.checks.checkpoints.stages import tests_around
from d9mlint.checks.checkpoints.weights import WHOLE, Loaded, Saved, file_of, models_made, numbered_as_counted
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, EndEvent, Loop, LoopEvent, ResultEvent
from d9mlint.interp.listening import on, on_call_if, on_method
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.places import Moment, Where
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at
from d9mlint.ir import nodes as m


class KerasLoops(Rule):
    """DET601: weights of Keras that a training loop of the program saves, and goes on from. DET603: it begins with the
    round at whose end they were saved."""

    codes = ("DET601", "DET603")
    saved = remembered(list[Saved])
    """Weights that are saved in loops."""
    loaded = remembered(list[Loaded])
    """Models that are given the weights of a file."""
    written = remembered_table(str, int)
    """When the program first writes files, by what they are called."""
    began = remembered_table(str, int)
    """When loops began after a model was given weights."""
    resumed = remembered_table(str, Start)
    """The loops that go on from a number that was read, or that an option gives."""
    stepped = remembered_table(tuple[Site, str], str)
    """Where optimizers were made that take steps in loops which began later, and what they are called."""
    first = remembered_table(str, int)
    """The first numbers that are given to loops over ranges, where they are known."""
    in_round = remembered(set[str])
    """Loops in whose rounds an optimizer has taken a step."""
    at_end = remembered(set[tuple[Where, str]])
    """Where weights are saved behind the steps of a round, under its number, and the loop."""
    kept = remembered(set[Site])
    """Those that a checkpoint has."""

    @on_method("load_weights")
    def load(self, call: CallEvent) -> None:
        """A model is given weights."""
        self._loads(call, frozenset(models_made(call.owner)))

    @on(ResultEvent)
    def made(self, event: ResultEvent) -> None:
        """A file gives a whole model: a loop of the program's own has another optimizer."""
        if self.run.kb.role(event.call.api, "restores-model") is not None:
            self._loads(event.call, frozenset(models_made(event.result)))

    def _loads(self, call: CallEvent, models: frozenset[Site]) -> None:
        if models:
            loops = frozenset(loop.key for loop in self.run.loops)
            file, tests = file_of(self.run, call, "filepath", 0), tests_around(self.run, call.node)
            self.loaded.append(Loaded(Moment(self.run.steps), loops, models, None, file, tests))

    @on_method("save_weights", "save")
    def save(self, call: CallEvent) -> None:
        """A model, or its weights, is saved."""
        models = frozenset((WHOLE, site) for site in models_made(call.owner))
        file = file_of(self.run, call, "filepath", 0)
        if file is not None:
            self.written.setdefault(file.name, lambda: Moment(self.run.steps))
        loops = frozenset(loop.key for loop in self.run.loops)
        if models and loops:
            place = Where(self.run, call.node, call.api)
            tests = tests_around(self.run, call.node)
            self.saved.append(Saved(place, frozenset(), loops, self.run.state.aside, models, file, tests))
            node = argument_node(call.node, "filepath", 0)
            self.at_end.update(
                (place, loop.key)
                for loop in self.run.loops
                if loop.key in self.in_round and numbered_as_counted(self.run, node, loop)
            )

    @on_method("apply_gradients", "minimize")
    def step(self, call: CallEvent) -> None:
        """An optimizer takes a step."""
        owner = call.owner
        self.in_round.update(loop.key for loop in self.run.loops)
        site = made_at(owner) if isinstance(owner, v.Obj) and keeps_state(self.run, owner) else None
        name = call.node.func.id.rpartition(".")[0] if _is_named(call.node) else ""
        if site is not None and isinstance(owner, v.Obj) and name:
            for loop in self.run.loops:
                if owner.birth < loop.start:
                    self.stepped.setdefault((site, loop.key), lambda: name)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "holds-states") is not None)
    def checkpoint(self, call: CallEvent) -> None:
        """A checkpoint is made of objects."""
        for value in call.args.values():
            self.kept.update(site for site in (made_at(one) for one in _objects(value)) if site is not None)

    @on_method("compile")
    def compiled(self, call: CallEvent) -> None:
        """A model is made to train with an optimizer, which may be saved with it."""
        optimizer = call.args.get("optimizer", 0)
        if optimizer is not None:
            self.kept.update(
                site for site in (made_at(one) for one in _objects(optimizer)) if site is not None
            )

    @on(LoopEvent)
    def loop(self, event: LoopEvent) -> None:
        """A loop begins or ends."""
        loop, begins = event
        if begins and self.loaded:
            self.began[loop.key] = Moment(self.run.steps)
            number = _first_number(loop)
            if number is not None:
                self.first[loop.key] = number
            start = start_of(self.run, loop)
            if start is not None and start.from_first:
                self.resumed.setdefault(loop.key, lambda: start)

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        if self.run.entry is None:
            return
        for saved in self.saved:
            self._repeats(saved)
        reported: set[str] = set()
        for saved in self.saved:
            names = self._lost(saved)
            if names and saved.place.site.path not in reported:
                reported.add(saved.place.site.path)
                states = "the state of " + listed([f"`{name}`" for name in names])
                self.report(
                    "DET601",
                    saved.place,
                    f"checkpoint does not save {states}; a resumed run diverges from an uninterrupted one",
                    "save the model and the optimizer in a `tf.train.Checkpoint`, and restore both",
                    subject=saved.place.subject,
                )

    def _repeats(self, saved: Saved) -> None:
        """The loop begins with the round that has ended when the weights were saved which the program loads."""
        for loop in saved.loops:
            if saved.file is None or (saved.place, loop) not in self.at_end or loop not in self.first:
                continue
            number = self.first[loop]
            for one in saved.before(loop, self.loaded, self.began.get(loop)):
                if one.file is not None and one.file.number_in(saved.file) == number:
                    self.report(
                        "DET603",
                        saved.place,
                        f"`{one.file.constant}`, which is loaded, is saved at the end of epoch {number}, and the loop "
                        "begins with it: that epoch is repeated",
                        f"begin with epoch {number + 1}",
                        subject=saved.place.subject,
                    )
                    return

    def _lost(self, saved: Saved) -> list[str]:
        """The optimizers that begin from nothing where a run goes on from these weights."""
        for loop in saved.loops:
            earlier = saved.before(loop, self.loaded, self.began.get(loop))
            first = self.written.get(saved.file.name) if saved.file is not None else None
            counts = loop in self.resumed and any(loop not in one.loops for one in earlier)
            if counts or any(saved.replaces(one, loop, first) for one in earlier):
                found = [
                    self.stepped[site, key]
                    for site, key in self.stepped.known()
                    if key == loop and site not in self.kept
                ]
                if found:
                    return list(dict.fromkeys(found))
        return []


def _first_number(loop: Loop) -> int | None:
    """The number that is given for the first round of a loop over a range; None where that is not known."""
    first = first_of(loop.over)
    known = isinstance(first, v.Lit) and not first.option and type(first.value) is int
    return first.value if isinstance(first, v.Lit) and known else None


def _objects(value: v.Value) -> Iterator[v.Obj]:
    for one in v.alternatives(value):
        if isinstance(one, v.Obj):
            yield one


def _is_named(node: Any) -> bool:
    return isinstance(node, m.Call) and isinstance(node.func, m.Name)
