"""DET601: what a checkpoint of TensorFlow does not save from which the program resumes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from d9mlint.base.terminal import listed
from d9mlint.checks.base import Rule
from d9mlint.checks.checkpoints.keras import keeps_state
from d9mlint.interp import values as v
from d9mlint.interp.activity import trains
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.context import CPU_CONTEXT
from d9mlint.interp.emptiness import RANGES
from d9mlint.interp.events import AnyDrawEvent, CallEvent, EndEvent, Loop
from d9mlint.interp.library.own_paths import literal_path
from d9mlint.interp.listening import on, on_call_if, on_method
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.places import Moment, Where
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

_STATES = {"tensorflow": "TensorFlow", "numpy": "NumPy", "python": "Python"}
_DEEPEST = 3
_STAGES = 32
"""So many stages of a dataset are looked at."""
_KEPT = frozenset({"init", "split", "dropout", "tf-shuffle"})
"""Kinds of draws that a resumed run repeats anyway, whose state may be part of the model, or is that of an iterator."""


class TensorFlowCheckpoints(Rule):
    """DET601: the checkpoints of TensorFlow that a program saves, and restores, while it trains."""

    codes = ("DET601",)
    places = remembered_table(Site, Where)
    """Where checkpoints are made."""
    uses = remembered_table(str, bool)
    """The RNGs that are drawn from, and ``order`` for datasets that are shuffled in another way in each epoch; whether
    something else than the functions of a dataset draws."""
    in_datasets = remembered(bool)
    """Whether functions of a dataset draw: no iterator of it can be saved then."""
    saved = remembered(set[Site])
    incomplete = remembered(set[Site])
    """Those that hold an optimizer, and no iterator."""
    restored = remembered(set[Site])
    """Those that are restored; a loop may train after that."""
    restored_at = remembered_table(Site, int)
    """When others were restored first, outside all loops."""
    counters = remembered(set[Site])
    """Where variables are made that loops count with."""
    stepped = remembered_table(Site, str)
    """Where optimizers are made that take steps in loops, and what they are called."""
    kept = remembered(set[Site])
    """Those that a checkpoint, or a model that is compiled, has."""
    uncounted = remembered(set[Site])
    """Those that a loop saves which counts from zero, and that hold no number."""
    own = remembered(set[Site])
    """Those that are restored from where they are saved."""
    saved_in = remembered(set[tuple[Site, str]])
    """In which folders they are saved,"""
    restored_from = remembered(set[tuple[Site, str]])
    """and of which folders the latest one is restored."""
    alone = remembered_table(Site, frozenset[Site])
    """Checkpoints without an optimizer that are saved in loops, and where what they hold is made."""
    trained = remembered(int)
    """When the program has trained last."""
    passing = remembered(set[tuple[Site, str]])
    """The checkpoints that are saved in a loop that goes through a dataset from its beginning, and the loop."""
    trained_in = remembered(set[str])
    """The loops in which the program trains."""

    @on(AnyDrawEvent)
    def drawn(self, event: AnyDrawEvent) -> None:
        """An RNG is drawn from."""
        rng, entry, _ = event
        if rng in _STATES and entry.kind not in _KEPT:
            # What Python draws before the loops begin, a resumed run draws again.
            if rng == "tensorflow" or self.run.loops:
                in_dataset = CPU_CONTEXT in self.run.contexts
                if not in_dataset or rng not in self.uses:
                    self.uses[rng] = not in_dataset
                self.in_datasets = self.in_datasets or in_dataset
        elif entry.kind == "tf-shuffle":
            self.uses["order"] = True

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "reorders") is not None)
    def shuffled(self, call: CallEvent) -> None:
        """A dataset is shuffled."""
        role = self.run.kb.role(call.api, "reorders")
        if role is not None and all_hold(call.args, role.when):
            self.uses["order"] = True

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "holds-states") is not None)
    def made(self, call: CallEvent) -> None:
        """A checkpoint is made."""
        self.places.setdefault(self.run.here(call.node), lambda: Where(self.run, call.node, call.api))
        for one in call.args.values():
            self._keep(one)
            if isinstance(one, v.Inst):
                for attribute in one.attrs.values():
                    self._keep(attribute)

    @on_method("compile")
    def compiled(self, call: CallEvent) -> None:
        """A model is made to train with an optimizer, which is saved with it."""
        self._keep(call.args.get("optimizer", 0))

    @on_method("assign_add")
    def counts(self, call: CallEvent) -> None:
        """A variable counts."""
        variable = variable_of(self.run, call.owner) if self.run.loops else None
        site = made_at(variable) if variable is not None else None
        if site is not None:
            self.counters.add(site)

    @on_method("save", "write")
    def save(self, call: CallEvent) -> None:
        """A checkpoint is saved."""
        found = checkpoint_of(self.run, call.owner)
        site = made_at(found) if found is not None else None
        if found is None or site is None:
            return
        self.saved.add(site)
        if folder := _folder_saved(found, call):
            self.saved_in.add((site, folder))
        if self._lacks_iterator(found):
            self.incomplete.add(site)
            self.passing.update((site, loop.key) for loop in self.run.loops if self._begins_anew(loop))
            if self.run.loops and counts_from_zero(self.run.loops[0]) and not self._holds_number(found):
                self.uncounted.add(site)
        held = self._held(found)
        if held and self.run.loops:
            self.alone[site] = held

    @on_method("restore", "read", "restore_or_initialize")
    def restore(self, call: CallEvent) -> None:
        """A checkpoint is restored."""
        found = checkpoint_of(self.run, call.owner)
        site = made_at(found) if found is not None else None
        if site is not None and found is not None and self._is_own(call, found):
            self.own.add(site)
        if site is not None:
            self.restored_from.update((site, folder) for folder in self._folders(call))
        if site is not None and self.run.loops:
            self.restored.add(site)
        elif site is not None:
            self.restored_at.setdefault(site, lambda: Moment(self.run.steps))

    @on_method("apply_gradients", "minimize", "fit", "fit_generator", "train_on_batch")
    def training(self, call: CallEvent) -> None:
        """The program trains."""
        self.trained = Moment(self.run.steps)
        self.trained_in.update(loop.key for loop in self.run.loops)
        owner = call.owner
        site = made_at(owner) if isinstance(owner, v.Obj) and self.run.loops else None
        if site is not None and isinstance(owner, v.Obj) and keeps_state(self.run, owner):
            written = call.node.func.id.rpartition(".")[0] if isinstance(call.node.func, m.Name) else ""
            self.stepped.setdefault(site, lambda: written or "the optimizer")

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        if self.run.entry is None or not trains(self.run):
            return
        used = set(self.uses.known())
        lacks = ["the iterator of the dataset"] if "order" in used else []
        names = [name for rng, name in _STATES.items() if rng in used]
        if names:
            lacks.append(f"the {listed(names)} RNG state" + ("s" if len(names) > 1 else ""))
        # What is restored after all training is evaluated.
        before = {
            x for x in self.restored_at.known() if not self.trained or self.restored_at[x] < self.trained
        }
        for site in sorted(set(self.incomplete) & set(self.saved) & (set(self.restored) | before)):
            counted = site not in self.uncounted or site in self.restored
            passing = any(one == site and loop in self.trained_in for one, loop in self.passing)
            position = ["the position in the dataset"] if passing and "order" not in used else []
            lacking = [*([] if counted else ["the epoch or step"]), *position, *lacks]
            if lacking and site in self.places:
                self.report(
                    "DET601",
                    self.places[site],
                    f"checkpoint does not save {listed(lacking)}; a resumed run diverges from an uninterrupted one",
                    self._remedy(used | {"order"} if position else used, counted),
                    subject=self.places[site].subject,
                )

        self._without_optimizer(before)

    def _remedy(self, used: set[str], counted: bool) -> str:
        """What to do about what is used."""
        done = [] if counted else ["count the epochs in a `tf.Variable`"]
        done += ["iterate the dataset through an iterator"] if "order" in used or self.in_datasets else []
        outside = any(self.uses[rng] for rng in used - {"order"})
        done += ["draw from a `tf.random.Generator`"] if outside else []
        kept = "that is" if len(done) == 1 else "that are"
        text = f"{' and '.join(done)} {kept} in the checkpoint"
        if not self.in_datasets:
            return text
        return (
            f"{text}; it cannot be saved while functions of the dataset draw: let them call `stateless_random_*` ops, with "
            "a number of `Dataset.enumerate()` in the seed, counted behind `repeat()`"
        )

    def _without_optimizer(self, before: set[Site]) -> None:
        """Checkpoints that hold weights and the number of a step with which a loop goes on."""
        lost = sorted({self.stepped[site] for site in self.stepped.known() if site not in self.kept})
        own = {*self.own, *(site for site, _ in set(self.saved_in) & set(self.restored_from))}
        for site in sorted(set(self.alone.known()) & set(self.saved) & before):
            if lost and site in self.places and (self.alone[site] & self.counters or site in own):
                states = "the state of " + listed([f"`{name}`" for name in lost])
                self.report(
                    "DET601",
                    self.places[site],
                    f"checkpoint does not save {states}; a resumed run diverges from an uninterrupted one",
                    "pass the optimizer to the checkpoint, as `optimizer=`",
                    subject=self.places[site].subject,
                )

    def _keep(self, value: v.Value | None) -> None:
        """What a checkpoint or a model has."""
        for one in v.alternatives(value) if value is not None else ():
            site = made_at(one) if isinstance(one, v.Obj) else None
            if site is not None:
                self.kept.add(site)

    def _held(self, checkpoint: v.Obj) -> frozenset[Site]:
        """Where what a checkpoint holds is made, if all of it is known and no optimizer is among it."""
        kb, held = self.run.kb, _all_known(checkpoint)
        inner = [one for inst in held if isinstance(inst, v.Inst) for one in inst.attrs.values()]
        made = [one for one in (*held, *inner) if isinstance(one, v.Obj)]
        if any(kb.role(one.api, "optimizes") is not None for one in made):
            return frozenset()
        return frozenset(site for site in map(made_at, made) if site is not None)

    def _holds_number(self, checkpoint: v.Obj) -> bool:
        """Whether a variable is among what a checkpoint holds, or in an object that it holds."""
        held = _all_of(checkpoint)
        held += [one for inst in held if isinstance(inst, v.Inst) for one in inst.attrs.values()]
        return any(isinstance(one, v.Obj) and one.api.endswith(".Variable") for one in held)

    def _is_own(self, call: CallEvent, checkpoint: v.Obj) -> bool:
        """Whether what is restored is the latest file that the manager of a checkpoint has written."""
        if call.api.endswith(".restore_or_initialize"):
            return True
        for one in v.alternatives(call.args.get("save_path", 0) or v.NONE):
            if isinstance(one, v.Member) and one.name == "latest_checkpoint":
                if checkpoint_of(self.run, one.owner) is checkpoint:
                    return True
        return False

    def _folders(self, call: CallEvent) -> Iterator[str]:
        """The folders of which the latest checkpoint is restored."""
        for one in v.alternatives(call.args.get("save_path", 0) or v.NONE):
            if isinstance(one, v.Obj) and self.run.kb.role(one.api, "names-last-checkpoint") is not None:
                if folder := _path(one.args.get("checkpoint_dir", 0)):
                    yield folder

    def _begins_anew(self, loop: Loop) -> bool:
        """Whether a loop goes through a dataset from its beginning, whatever was restored, passes over nothing, and is not
        seen to wait for the end of a pass."""
        if not isinstance(loop.stmt, m.For) or _skips(loop.stmt) or self._waits_for_end(loop.stmt):
            return False
        found = list(_datasets(self.run, loop.over))
        return bool(found) and not any(_leaves_out(self.run, one) for one in found)

    def _waits_for_end(self, stmt: m.For) -> bool:
        """Whether something in a loop waits for rounds that may be the last ones of a pass: of each so many, where that
        number is not known, or of as many as something has elements."""
        for one in nodes(stmt.body):
            for part in nodes([one.test]) if isinstance(one, m.If) else ():
                if isinstance(part, m.Call) and isinstance(part.func, m.Name) and part.func.id == "len":
                    return True
                if isinstance(part, m.BinOp) and part.op == "%":
                    if not isinstance(self.run.value_of(part.right), v.Lit):
                        return True
        return False

    def _lacks_iterator(self, checkpoint: v.Obj) -> bool:
        """Whether a checkpoint has an optimizer in it, and nothing that is an iterator, or may be one."""
        kb = self.run.kb
        made = [one for one in _all_known(checkpoint) if isinstance(one, v.Obj)]
        if any(kb.role(name, "iterates") is not None for one in made for name in (one.api, one.type)):
            return False
        return any(kb.role(one.api, "optimizes") is not None for one in made)


def checkpoint_of(run: RunView, owner: v.Value | None) -> v.Obj | None:
    """The checkpoint that an object is, or manages."""
    kb = run.kb
    if isinstance(owner, v.Obj) and (manager := kb.role(owner.api, "manages-states")) is not None:
        owner = owner.args.get(manager.arg, manager.pos)
    return owner if isinstance(owner, v.Obj) and kb.role(owner.api, "holds-states") else None


def variable_of(run: RunView, value: v.Value | None) -> v.Obj | None:
    """The variable that a value is, also as an attribute of the checkpoint that holds it."""
    if isinstance(value, v.Member):
        checkpoint = checkpoint_of(run, value.owner)
        value = checkpoint.args.kw.get(value.name) if checkpoint is not None else None
    return value if isinstance(value, v.Obj) and value.node is not None else None


def _folder_saved(checkpoint: v.Obj, call: CallEvent) -> str:
    """The folder in which a checkpoint, or its manager, saves it; an empty text for an unknown one."""
    if call.owner is checkpoint:
        return os.path.dirname(_path(call.args.get("file_prefix", 0)))
    return _path(call.owner.args.get("directory", 1)) if isinstance(call.owner, v.Obj) else ""


def _path(value: v.Value | None) -> str:
    """A path of which each part is known, in its plain form; an empty text for others."""
    written = literal_path(value)
    return os.path.normpath(written) if written else ""


def _all_of(checkpoint: v.Obj) -> list[v.Value]:
    """What a checkpoint is given by name, each that it may be."""
    held = (*checkpoint.args.kw.values(), *checkpoint.attrs.values())
    return [one for value in held for one in v.alternatives(value)]


def _all_known(checkpoint: v.Obj) -> list[v.Value]:
    """The same, if all that a checkpoint is given is known; nothing otherwise."""
    args, held = checkpoint.args, _all_of(checkpoint)
    known = not (args.star or args.dstar or args.pos)
    return held if known and all(isinstance(one, v.Lit | v.Inst | v.Obj) for one in held) else []


def _skips(stmt: m.For) -> bool:
    """Whether a loop may pass over rounds."""
    return any(
        isinstance(one, m.Jump) and one.kind == "continue"
        for branch in stmt.body
        if isinstance(branch, m.If)
        for one in branch.body
    )


def _datasets(run: RunView, value: v.Value | None, depth: int = 0) -> Iterator[v.Obj]:
    """The datasets that a loop goes through, which may be counted or shown as progress."""
    if not isinstance(value, v.Obj) or depth > _DEEPEST:
        return
    if run.kb.role(value.type, "begins-anew") is not None:
        yield value
    elif value.owner is None:
        for one in value.args.values():
            yield from _datasets(run, one, depth + 1)


def _leaves_out(run: RunView, dataset: v.Obj) -> bool:
    """Whether a dataset may be the rest of another one, or is not known from its beginning on."""
    known: v.Value | None = dataset
    for _ in range(_STAGES):
        if not isinstance(known, v.Obj):
            return False
        if (role := run.kb.role(known.api, "leaves-out-items")) is not None:
            number = known.args.get(role.arg, role.pos)
            if not isinstance(number, v.Lit) or number.option:
                return True
        known = known.owner
    return True


def counts_from_zero(loop: Loop) -> bool:
    """Whether a loop counts its rounds from zero whatever was restored, and leaves out none of them."""
    over, stmt = loop.over, loop.stmt
    if not isinstance(stmt, m.For) or not isinstance(over, v.Obj) or over.api not in RANGES:
        return False
    skips = _skips(stmt)
    first = over.args.pos[:-1][:1]
    begins = all(isinstance(one, v.Lit) and one.value in (0, 1) and not one.option for one in first)
    # What is done already may be taken off the number to which it counts.
    less = any(isinstance(one, m.BinOp) and one.op == "-" for one in nodes([stmt.iter]))
    return bool(over.args.pos) and begins and not less and not skips
