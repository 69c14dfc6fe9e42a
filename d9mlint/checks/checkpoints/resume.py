"""DET603: resumed runs that see other batches than an uninterrupted one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from d9mlint.base.entry_report import are_other_files
from d9mlint.base.findings import Confidence
from d9mlint.checks.base import Rule, argument_node
from d9mlint.checks.checkpoints.continued import counter_of, counters_of, number_of, start_of
from d9mlint.checks.checkpoints.failed_loads import LOAD
from d9mlint.checks.checkpoints.rounds import is_last, is_never
from d9mlint.checks.checkpoints.states import contents, made_by_paths, optimizes, saved, saves
from d9mlint.checks.checkpoints.weights import weights_in
from d9mlint.interp import tensors
from d9mlint.interp import values as v
from d9mlint.interp.activity import RESUMES
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.data import COUNTED_AFTER, COUNTED_FROM, ENDED, NEXT_COUNTED
from d9mlint.interp.events import CallEvent, EndEvent, ImportEvent, Loop, LoopEvent
from d9mlint.interp.file_names import Template, begins_otherwise, ends_of, template_of
from d9mlint.interp.library.loaders import LOADER
from d9mlint.interp.listening import on, on_call, on_call_if, on_method
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.passed_on import PASS_THROUGH
from d9mlint.interp.places import Where
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.tensors import LOADING, in_place_of, loaded_before, loaded_by
from d9mlint.interp.text import call_text, node_text
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import assigned_names, assignments
from d9mlint.ir.traversal import called_name, nodes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.schema import RoleEntry

_POSITION = re.compile(
    r"batch|sampler|loader|consumed|cursor|position|offset|samples|seen|data|indices", re.IGNORECASE
)
_DEEPEST = 3
_SAVED = (
    "save the position (the `state_dict()` of a `StatefulDataLoader`, or the number of batches with the seed of the "
    "order)"
)
_HELP = "skip in the first epoch only: `skip = start_step if epoch == start_epoch else 0`"


class Resume(Rule):
    """DET603: resumed runs that see other batches."""

    codes = ("DET603",)
    batches = remembered_table(str, bool)
    """Running loops over batches that skip none by hand."""
    over_loaders = remembered_table(str, bool)
    """Loops over batches."""
    trained = remembered_table(str, bool)
    """Running loops in whose present round a loop over batches has ended, and whether an optimizer took steps in it."""
    updated = remembered_table(str, bool)
    """Running loops in whose present round an optimizer has taken a step."""
    goes_on = remembered_table(str, bool)
    """Loops that go on from a number that was loaded."""
    inside = remembered(list[tuple[Where, bool]])
    """Checkpoints that are saved within an epoch, and whether a resumed run begins with the one after it."""
    streamed = remembered(set[tuple[str, ...]])
    """Loops that take batches of an iterator which is older than they are, outermost first."""
    stepped_in = remembered_table(str, bool)
    """Loops in which an optimizer takes steps."""
    unstepped = remembered(list[tuple[Where, str, str, bool, frozenset[str], str]])
    """Where a number is saved after loops over batches in which no optimizer takes a step: what is wrong with it if they
    train, and the loop that counts it."""
    early = remembered(list[tuple[Where, str, str, str]])
    """Where the number of a round is saved before its steps, and a resumed run begins with the next one: the key, what is
    counted, and the loop."""
    streams = remembered(list[tuple[Where, frozenset[str]]])
    """Checkpoints that are saved in such loops."""
    passes = remembered(list[tuple[Where, str]])
    """Checkpoints that are saved within the only pass over the data, and the loop that makes it."""
    passed = remembered_table(str, Where)
    """Where a separate pass leaves out batches of a loader."""
    kept = remembered(bool)
    """Whether the position in the data is kept."""
    loads = remembered(bool)
    loaded = remembered(set[str])
    """How the files that are loaded end; an empty text for those of which that is not known."""
    named = remembered(set[Template])
    """The names of the files that are loaded; an empty one for those of which nothing is known."""
    made = remembered_table(Site, bool)
    """Where loaders are made."""
    with_optimizer = remembered(bool)
    """Whether a checkpoint holds the state of an optimizer and the number of the epoch."""
    weights_in = remembered(set[str])
    """The loops in which weights are saved."""
    beside = remembered(list[tuple[Where, str, str, frozenset[str]]])
    """Where the number of a round is saved beside weights alone, or in its own file, with what is wrong with it and the
    loops around."""

    @on_call(LOADER)
    def loader(self, call: CallEvent) -> None:
        """A loader is made, which the header of a loop may do."""
        site = self.run.here(call.node)
        self.made[site] = True

    @on_call_if(lambda rule, api: bool(rule.run.kb.roles(api)))
    def call(self, call: CallEvent) -> None:
        """Something is called that may keep the position in the data."""
        for entry in self.run.kb.roles(call.api):
            if entry.role == "discards-batches" and _discards(entry, call):
                self.kept = True
                _skipped_here(self, entry, call)
            elif entry.role == "saves-loader":
                self.kept = True

    @on_method("step")
    def stepped(self, call: CallEvent) -> None:
        """An optimizer takes a step, which something may do for it."""
        taken = [call.owner, *call.args.pos]
        if any(isinstance(one, v.Obj) and optimizes(one) for one in taken):
            for loop in self.run.loops:
                self.stepped_in[loop.key] = True
                self.updated[loop.key] = True

    @on_call("builtins.next")
    def taken(self, call: CallEvent) -> None:
        """The next batch of an iterator is taken."""
        iterator = call.args.pos[0] if call.args.pos else None
        if not isinstance(iterator, v.Obj | v.Items) or not _gives_batches(iterator):
            return
        loops = [loop for loop in self.run.loops if iterator.birth < loop.start]
        if any(self._skips_to_position(loop) for loop in loops):
            self.kept = True
        elif loops:
            self.streamed.add(tuple(loop.key for loop in loops))

    def _skips_to_position(self, loop: Loop) -> bool:
        """Whether a loop does nothing with batches by a number that was loaded, or that an option gives."""
        tests: list[Any] = [
            one.test
            for one in loop.stmt.body
            if isinstance(one, m.If) and any(_is_continue(x) for x in one.body)
        ]
        with self.run.in_frame(loop.frame):
            return any(
                isinstance(one, m.Name | m.Attr | m.Subscript) and _is_position(self.run.value_of(one))
                for one in nodes(tests)
            )

    @on(LoopEvent)
    def loop(self, event: LoopEvent) -> None:
        """A loop begins or ends."""
        loop, begins = event
        if not begins:
            if loop.key in self.batches:
                for one in self.run.loops:
                    if one is not loop:
                        stepped = loop.key in self.stepped_in
                        self.trained[one.key] = stepped or self.trained.get(one.key) is True
            return
        self.trained.pop(loop.key)
        self.updated.pop(loop.key)
        if start_of(self.run, loop) is not None or counter_of(self.run, loop) is not None:
            self.goes_on[loop.key] = True
        if not isinstance(loop.stmt, m.For):
            return
        self.batches.pop(loop.key)
        header: list[Any] = [loop.stmt.iter]
        skips = loop.over is not None and _is_loader(loop.over)
        for node in nodes(header):
            if isinstance(node, m.Call) and self.run.here(node) in self.made:
                skips = True
            value = self.run.value_of(node) if isinstance(node, m.Name) else None
            if isinstance(value, v.Obj):
                skips = skips or value.type == LOADER
                entry = self.run.kb.role(value.api, "discards-batches")
                if entry is not None and all_hold(value.args, entry.when) is True:
                    if _goes_on(entry, value.args):
                        _skipped_again(self, value, loop)
        if skips:
            self.over_loaders[loop.key] = True
            if not _skips_by_hand(loop.stmt):
                self.batches[loop.key] = True
        if skips and self.loads:
            _passed_over(self, loop)
            self._passed_alone(loop)

    def _passed_alone(self, loop: Loop) -> None:
        """A loop over a loader begins: one that only counts, up to a number that was loaded, or one after such a loop."""
        loader = _loader_of(loop.over)
        site = made_at(loader) if loader is not None else None
        if site is None:
            return
        test = _counts_only(loop.stmt)
        if test is not None:
            if any(_is_position(self.run.value_of(limit)) for limit in _compared(test)):
                self.passed[str(site)] = Where(self.run, loop.stmt, "next")
        elif str(site) in self.passed:
            self._wrong(
                self.passed[str(site)],
                "this loop only skips batches: the loop that trains iterates the loader again from its beginning, so a "
                "resumed run repeats them",
                "skip in the loop that trains, in its first epoch only",
            )

    @on_call_if(saves)
    def save(self, call: CallEvent) -> None:
        """Something is saved."""
        content = saved(self.run, call)
        made = made_by_paths(self.run, content) if content is not None else ()
        held = [one for one in made if isinstance(one, v.Mapping)]
        if is_never(self.run, call.node) or self._is_not_loaded(call):
            return
        if content is not None and weights_in(self.run, content):
            self.weights_in.update(loop.key for loop in self.run.loops)
        # One without the number of the epoch is a part of a checkpoint in several files.
        if any({"optimizer", "epoch"} <= contents(self.run.kb, one, []) for one in made):
            self.with_optimizer = True
        if len(held) == len(made):
            self._counted(call, held)
        if self.streamed and content is not None and _holds_optimizer(self.run.kb, content):
            # Where a loop over a loader trains too, its batches are counted by that.
            around = [one.key for one in self.run.loops]
            if not any(key in self.batches or self.trained.get(key) for key in around):
                self.streams.append((Where(self.run, call.node, "torch.save"), frozenset(around)))
        inner = [
            one for one in self.run.loops if one.key in self.batches and not is_last(self.run, one, call.node)
        ]
        if self.run.entry is None or not inner or not held or len(held) < len(made):
            return
        if any(one.open or "optimizer" not in contents(self.run.kb, one, []) for one in held):
            return
        keys = {key for one in held for key in dict.keys(one.items)}
        if any(isinstance(key, str) and _POSITION.search(key) for key in keys):
            return
        place = Where(self.run, call.node, "torch.save")
        if self.run.loops[0] is inner[0]:
            # The header of a loop over epochs may ask a loader for its length.
            if inner[0].over is not None and _is_loader(inner[0].over):
                self.passes.append((place, inner[0].key))
        else:
            self.inside.append((place, any(self._is_passed(one) for one in held)))

    def _is_passed(self, saved: v.Mapping) -> bool:
        """Whether a resumed run begins with the epoch after the one that runs when its number is saved."""
        marks = self.run.marks
        for key, value in saved.items.items():
            for attributes in map(_attributes, v.alternatives(value)):
                after = attributes.get(COUNTED_AFTER) or attributes.get(ENDED)
                first, following = attributes.get(COUNTED_FROM), attributes.get(NEXT_COUNTED)
                if isinstance(after, v.Lit) and after.value == key:
                    return True
                if isinstance(first, v.Lit) and first.option and loaded_before(first.option, key) in marks:
                    return True
                if isinstance(following, v.Lit) and (
                    loaded_by(following.option, key) in marks if following.option else following.value == key
                ):
                    return True
        return False

    def _is_not_loaded(self, call: CallEvent) -> bool:
        """Whether the file that is saved is none of those that the program has loaded: it resumes from another one."""
        if not self.loaded:
            return False
        path = call.args.get("f", 1)
        ends = ends_of(self.run, path)
        if ends and are_other_files(ends, self.loaded):
            return True
        # What ends alike may begin otherwise: `latest.pt`, and `step_100.pt`.
        names = [template_of(self.run, one) for one in v.alternatives(path)] if path is not None else []
        return bool(names) and all(begins_otherwise(one, self.named) for one in names)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "stores-data") is not None)
    def store(self, call: CallEvent) -> None:
        """Data is written into a file, which may be the number of the epoch."""
        role = self.run.kb.role(call.api, "stores-data")
        content = call.args.get(role.arg, role.pos) if role is not None else None
        made = made_by_paths(self.run, content) if content is not None else ()
        held = [one for one in made if isinstance(one, v.Mapping)]
        if held and len(held) == len(made) and not is_never(self.run, call.node):
            start = start_of(self.run, self.run.loops[-1]) if self.run.loops else None
            # What PyTorch has loaded, it does not load from JSON and its like.
            if start is None or start.reader != LOAD:
                self._counted(call, held)

    def _counted(self, call: CallEvent, made: list[v.Mapping]) -> None:
        """The number of the epoch that has just ended is saved where a resumed run takes that of its first one."""
        running = self.run.loops
        if not running:
            return
        if running[-1].key not in self.updated and self.trained.get(running[-1].key) is not True:
            self._counted_early(call, running[-1], made)
        steps = running[-1].key in self.updated and running[-1].key in self.goes_on
        if running[-1].key not in self.trained and not steps:
            return
        # Without a loop over batches it is one over steps, or does without a loader: only its own number is known to be.
        # Where it goes over batches itself, the loop in it was one for validation: the epoch goes on.
        within = running[-1].key in self.over_loaders and not is_last(self.run, running[-1], call.node)
        own = None if running[-1].key in self.trained and not within else _numbers_of(running[-1])
        for one in made:
            self._numbered(call, one, own, "optimizer" in contents(self.run.kb, one, []))

    def _counted_early(self, call: CallEvent, loop: Loop, made: list[v.Mapping]) -> None:
        """No optimizer has taken a step in the present round of a loop, whose number is saved."""
        own = [one for number in _numbers_of(loop) for one in v.alternatives(number)]
        for one in made:
            if "optimizer" not in contents(self.run.kb, one, []):
                continue
            for key, kept in one.items.items():
                for value in v.alternatives(_whole(kept)):
                    if any(value is number for number in own) and self._begins_after(value, key):
                        what = "epoch" if "epoch" in str(key) else "step"
                        self.early.append(
                            (Where(self.run, call.node, "torch.save"), str(key), what, loop.key)
                        )

    def _begins_after(self, number: v.Value, key: object) -> bool:
        """Whether a loop begins with the number after the one that is saved under a key."""
        first = _attributes(number).get(COUNTED_FROM)
        if isinstance(first, v.Lit) and first.option:
            return loaded_before(first.option, key) in self.run.marks
        after = _attributes(number).get(COUNTED_AFTER) or tensors.key_before(number)
        return isinstance(after, v.Lit) and after.value == key

    def _numbered(self, call: CallEvent, saved: v.Mapping, own: list[v.Value] | None, whole: bool) -> None:
        """Each number in a checkpoint, or beside one, that a resumed run may begin with."""
        counted = counters_of(self.run.loops[-1])
        for key, kept in saved.items.items():
            value = _whole(kept)
            if own is not None:
                if all(value is not one for one in own):
                    continue
                value = next(
                    (one for one in v.alternatives(value) if COUNTED_FROM in _attributes(one)), value
                )
            ended = value.attrs.get(ENDED) if isinstance(value, v.Obj) else None
            if isinstance(ended, v.Lit) and ended.value == key:
                self._is_off(
                    call,
                    f"checkpoint saves the number of the next epoch as `{key}`, and a resumed run starts with the one "
                    "after it: an epoch is left out",
                    "save the number of the epoch that has just ended, or do not add one to the number that is loaded",
                    whole,
                )
                continue
            first = value.attrs.get(COUNTED_FROM) if isinstance(value, v.Obj) else None
            if not isinstance(first, v.Lit) and any(value is one for one in counted):
                # A number that the loop counts by itself, and has not yet counted up.
                first = tensors.loaded_as(value)
            if not isinstance(first, v.Lit):
                continue
            what = "epoch" if own is None or "epoch" in str(key) else "step"
            flag = in_place_of(loaded_by(first.option, key), first.value)
            if flag in self.run.marks if first.option else first.value == key:
                self._is_off(
                    call,
                    f"checkpoint saves the {what} that has just ended as `{key}`, and a resumed run starts with it: "
                    f"that {what} is repeated",
                    f"save the number of the next {what}, or add one to the number that is loaded",
                    whole,
                )

    def _is_off(self, call: CallEvent, message: str, help: str, whole: bool) -> None:
        """A saved number is not that of the round with which a resumed run is to begin; whether the state of an optimizer
        is saved with it."""
        place = Where(self.run, call.node, "torch.save")
        around, counting = frozenset(loop.key for loop in self.run.loops), self.run.loops[-1].key
        if self.trained.get(counting) is False and counting not in self.updated:
            self.unstepped.append((place, message, help, whole, around, counting))
        else:
            self._off(place, message, help, whole, around)

    def _off(self, place: Where, message: str, help: str, whole: bool, around: frozenset[str]) -> None:
        """A number is known to be wrong."""
        if whole:
            self._wrong(place, message, help)
        else:
            self.beside.append((place, message, help, around))

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        for place, message, help, whole, around, counting in self.unstepped:
            # The optimizer takes its steps after the number is saved: the loops over batches before it validate.
            if counting not in self.stepped_in:
                self._off(place, message, help, whole, around)
        for place, key, what, counting in self.early:
            if counting in self.stepped_in:
                self._wrong(
                    place,
                    f"checkpoint saves the {what} that has just begun as `{key}`, and a resumed run starts with the one "
                    f"after it: a{'n' if what == 'epoch' else ''} {what} is left out",
                    f"save at the end of the {what}, or do not add one to the number that is loaded",
                )
        if self.loads and not self.with_optimizer:
            for place, message, help, around in self.beside:
                if not around.isdisjoint(self.weights_in):
                    self._wrong(place, message, help)
        # A program that only begins with weights that were trained before gives no optimizer a state.
        if self.kept or not self.loads or RESUMES not in self.run.places:
            return
        for place, passed in self.inside:
            other = "leaves out the rest of the epoch" if passed else "repeats the batches of the epoch"
            self._wrong(
                place,
                f"checkpoint is saved within an epoch without the position in the data: a resumed run {other}",
                f"{_SAVED} and skip to it when resuming, or save at the end of epochs",
                "position",
            )
        for place, only in self.passes:
            if only in self.stepped_in:
                self._begins_anew(place)
        if any(loops[0] not in self.stepped_in for loops in self.streamed):
            # What it takes without training, it leaves out.
            return
        # The innermost loop that trains: it may take several batches for a step.
        training = {
            next((loop for loop in reversed(loops) if loop in self.stepped_in), "") for loops in self.streamed
        }
        for place, around in self.streams:
            if not training.isdisjoint(around):
                self._begins_anew(place)

    def _begins_anew(self, place: Where) -> None:
        """What is saved within a pass over the data does not say how far it is."""
        self._wrong(
            place,
            "checkpoint is saved within a pass over the data without the position in it: a resumed run begins a new pass",
            f"{_SAVED} and skip to it when resuming",
            "position",
        )

    def _wrong(self, place: Where, message: str, help: str, subject: str = "torch.save") -> None:
        """What is saved leads a resumed run to other batches: by the number in it, or by the position that it lacks."""
        self.report("DET603", place, message, help, subject=subject, confidence=Confidence.MEDIUM)

    @on(ImportEvent)
    def imported(self, event: ImportEvent) -> None:
        """A library is imported."""
        if self.run.kb.role(f"import:{event.name}", "saves-loader") is not None:
            self.kept = True

    @on_call("torch.load")
    def load(self, call: CallEvent) -> None:
        """Something is loaded."""
        self.loads = True
        path = call.args.get("f", 0)
        self.loaded.update(ends_of(self.run, path) or {""})
        self.named.update(template_of(self.run, one) for one in v.alternatives(path or v.UNKNOWN))


def _gives_batches(iterator: v.Obj | v.Items) -> bool:
    """Whether an iterator gives batches of a loader: its own iterator, or a generator that the program wrote."""
    if isinstance(iterator, v.Items):
        return any(isinstance(one, v.Obj) and tensors.BATCH_OF in one.attrs for one in iterator.elts)
    return iterator.api in PASS_THROUGH and _is_loader(iterator)


def _holds_optimizer(kb: Knowledge, content: v.Value) -> bool:
    """Whether the state of an optimizer is saved, and nothing that may be a position in the data."""
    for one in v.alternatives(content):
        if isinstance(one, v.Mapping):
            if one.open or any(
                isinstance(key, str) and _POSITION.search(key) for key in dict.keys(one.items)
            ):
                return False
            if "optimizer" in contents(kb, one, []):
                return True
        owner = one.attrs.get("@owner") if isinstance(one, v.Obj) else None
        if isinstance(owner, v.Obj) and optimizes(owner):
            return True
    return False


def _attributes(value: v.Value) -> dict[str, v.Value]:
    return value.attrs if isinstance(value, v.Obj) else {}


def _whole(number: v.Value) -> v.Value:
    """What ``int`` was given: the same number, where that is one that a loop counts."""
    given = number
    while isinstance(given, v.Obj) and given.api == "builtins.int" and len(given.args.pos) == 1:
        given = given.args.pos[0]
    return given


def _numbers_of(loop: Loop) -> list[v.Value]:
    """The numbers that a loop counts in its present round."""
    known = number_of(loop)
    return [known] if known is not None else counters_of(loop)


def _is_loader(value: v.Value, depth: int = 0) -> bool:
    """Whether a value is a loader, or what a call made of one, as a progress bar."""
    if not isinstance(value, v.Obj):
        return False
    return value.type == LOADER or (
        depth < _DEEPEST and any(_is_loader(one, depth + 1) for one in value.args.pos)
    )


def _discards(entry: RoleEntry, call: CallEvent) -> bool:
    """Whether a call leaves out batches: one of Python's leaves out whatever it is given, by a number that may not be
    known."""
    if not _goes_on(entry, call.args):
        return False
    holds = all_hold(call.args, entry.when, call.owner)
    first = call.args.pos[0] if call.args.pos else None
    return holds is True or (holds is None and isinstance(first, v.Obj) and first.type == LOADER)


def _goes_on(entry: RoleEntry, args: v.Args) -> bool:
    """Whether batches are left out to go on where a run ended, by a number that was loaded where that is asked."""
    return "loaded" not in entry.more or _is_position(args.get(entry.arg, entry.pos) or v.UNKNOWN)


def _loader_of(over: v.Value | None) -> v.Obj | None:
    """The loader that a loop iterates from its beginning."""
    depth = 0
    while isinstance(over, v.Obj) and over.type != LOADER:
        if over.api in _ITERATORS or depth >= _DEEPEST or not over.args.pos:
            return None
        over, depth = over.args.pos[0], depth + 1
    return over if isinstance(over, v.Obj) else None


_ITERATORS = frozenset({"builtins.iter", "itertools.cycle"})


def _counts_only(stmt: m.For) -> m.Expr | None:
    """The test with which a loop ends that does nothing else but count."""
    ends = [one for one in stmt.body if isinstance(one, m.If)]
    others = [one for one in stmt.body if one not in ends]
    if len(ends) != 1 or not all(isinstance(one, m.AugAssign) for one in others):
        return None
    body = ends[0].body
    leaves = len(body) == 1 and isinstance(body[0], m.Jump) and body[0].kind == "break"
    return ends[0].test if leaves and not ends[0].orelse else None


def _compared(test: m.Expr) -> list[m.Expr]:
    """The names that a test compares."""
    sides = [test.left, *test.comparators] if isinstance(test, m.Compare) else []
    return [one for one in sides if isinstance(one, m.Name | m.Attr)]


def _skips_by_hand(stmt: m.For) -> bool:
    """Whether a loop over batches passes over some of them."""
    return any(map(_is_continue, nodes(list(stmt.body))))


def _is_continue(node: Any) -> bool:
    return isinstance(node, m.Jump) and node.kind == "continue"


def _passed_over(rule: Rule, loop: Loop) -> None:
    """The first batches are passed over in every round of a loop over epochs, by a number that was loaded or that an
    option gives."""
    around = [one for one in rule.run.loops if one is not loop and one.frame.env is loop.frame.env]
    counter = _counter(loop.stmt)
    if rule.run.branching or not counter:
        return
    helper = _called_in_rounds(rule, loop) if not around else None
    if not around and helper is None:
        return
    for stmt in loop.stmt.body:
        if not isinstance(stmt, m.If):
            continue
        for limit, parts in _limits(stmt, counter, stmt is loop.stmt.body[-1]):
            if not _is_position(rule.run.value_of(limit)):
                continue
            used = {one.id.partition(".")[0] for one in nodes(parts) if isinstance(one, m.Name)} - {counter}
            if helper is not None:
                if _text(limit) not in helper or used != {_text(limit)}:
                    continue
            elif used & _changing(around) or _is_reset(rule, limit):
                continue
            _report(rule, Where(rule.run, stmt, "continue"), f"{counter} < {_text(limit)}", "continue")


def _changing(around: Iterable[Loop]) -> set[str]:
    """The variables that are others in each round of some loops."""
    return {
        name
        for one in around
        for name in (*assigned_names(one.stmt), *_names(getattr(one.stmt, "target", None)))
    }


def _called_in_rounds(rule: Rule, loop: Loop) -> set[str] | None:
    """The parameters of the function of a loop, which it does not assign, that are the same in each round of a loop
    that calls the function; None where nothing calls it in a loop."""
    frame = loop.frame
    if frame.func is None or frame.caller is None or frame.call_site is None:
        return None
    around = [one for one in rule.run.loops if one.frame.env is frame.caller.env]
    call = next(
        (
            one
            for one in nodes([x for outer in around for x in outer.stmt.body])
            if isinstance(one, m.Call) and (one.start, one.end) == frame.call_site[1:3]
        ),
        None,
    )
    if call is None:
        return None
    function = frame.func.fn
    bound = 1 if frame.func.receiver is not None else 0
    same: set[str] = set()
    for index, parameter in enumerate(function.params):
        given = argument_node(call, parameter.name, index - bound if index >= bound else None)
        if not isinstance(given, (m.Name, m.Attr, m.Subscript)) or assignments(function.body, parameter.name):
            continue
        if not {one.partition(".")[0] for one in _names(given)} & _changing(around):
            same.add(parameter.name)
    return same


def _names(target: Any) -> set[str]:
    return {one.id for one in nodes([target]) if isinstance(one, m.Name)} if target is not None else set()


def _text(limit: m.Name | m.Attr) -> str:
    return limit.id if isinstance(limit, m.Name) else limit.name


def _counter(stmt: m.For) -> str:
    """The variable that counts the batches of a loop from 0."""
    header: list[Any] = [stmt.iter]
    counting = [one for one in nodes(header) if isinstance(one, m.Call) and called_name(one) == "enumerate"]
    if len(counting) != 1 or len(counting[0].args) != 1 or counting[0].keywords:
        return ""
    first = stmt.target.elts[0] if isinstance(stmt.target, m.Seq) and stmt.target.elts else None
    return first.id if isinstance(first, m.Name) else ""


_BELOW, _ABOVE = ("<", "<="), (">", ">=")


def _limits(stmt: m.If, counter: str, last: bool) -> list[tuple[m.Name | m.Attr, list[Any]]]:
    """What a test compares the counter with where batches below it are passed over, with all parts of the test."""
    continues = len(stmt.body) == 1 and _is_continue(stmt.body[0])
    if not continues and (not last or stmt.orelse):
        return []
    parts: list[Any] = []
    stack: list[Any] = [stmt.test]
    while stack:
        one = stack.pop()
        if isinstance(one, m.BoolOp) and one.op == "and":
            stack += [one.left, one.right]
        else:
            parts.append(one)
    found: list[tuple[m.Name | m.Attr, list[Any]]] = []
    for one in parts:
        if not isinstance(one, m.Compare) or len(one.ops) != 1:
            continue
        left, right = one.left, one.comparators[0]
        for this, other, ops in (
            (left, right, _BELOW if continues else _ABOVE),
            (right, left, _ABOVE if continues else _BELOW),
        ):
            if isinstance(this, m.Name) and this.id == counter and isinstance(other, (m.Name, m.Attr)):
                if one.ops[0] in ops and (continues or len(parts) == 1):
                    found.append((other, parts))
    return found


def _is_position(value: v.Value) -> bool:
    """Whether a number was loaded, or is given by an option that is left out for a new run."""
    for one in v.alternatives(value):
        while isinstance(one, v.Obj) and one.api == "builtins.int" and one.args.pos:
            one = one.args.pos[0]
        if (isinstance(one, v.Obj) and (one.api == v.BATCH or one.api in LOADING)) or (
            isinstance(one, v.Lit) and one.option and not one.value
        ):
            return True
    return (
        tensors.loaded_as(value) is not None
        or tensors.key_before(value) is not None
        or tensors.computed_from(value) is not None
    )


def _is_reset(rule: Rule, limit: m.Name | m.Attr) -> bool:
    """Whether a program sets an attribute to a constant anywhere but in a constructor."""
    name = _text(limit).rpartition(".")
    if not name[1]:
        return False
    for fn in rule.run.whole(rule.run.frame.file).functions:
        for one in nodes(fn.body) if fn.name != "__init__" else ():
            if isinstance(one, m.Assign) and isinstance(one.value, m.Const):
                if any(isinstance(x, m.Name) and x.id.endswith(f".{name[2]}") for x in one.targets):
                    return True
    return False


def _skipped_again(rule: Rule, skipping: v.Obj, loop: Loop) -> None:
    """A loader without its first batches, made before a loop over epochs, is iterated in it."""
    around = rule.run.loops[:-1] if rule.run.loops and rule.run.loops[-1] is loop else rule.run.loops
    if (
        not any(one.start > skipping.birth for one in around)
        or skipping.node is None
        or skipping.file is None
    ):
        return
    place = Where(rule.run, skipping.node, skipping.api)
    place.site = place.site._replace(path=skipping.file.path)
    _report(rule, place, node_text(skipping.node, skipping.api), skipping.api)


def _skipped_here(rule: Rule, entry: RoleEntry, call: CallEvent) -> None:
    """Batches are left out in every round of a loop over epochs, by a number that does not depend on the round."""
    epochs = [one for one in rule.run.loops if one.frame.env is rule.run.frame.env]
    if not epochs or rule.run.branching:
        return
    count = argument_node(call.node, entry.arg, entry.pos)
    if count is None or isinstance(count, m.IfExp):
        return
    value = call.args.get(entry.arg, entry.pos)
    if isinstance(value, v.Lit) and not value.value:
        return
    expression: list[Any] = [count]
    used = {one.id.partition(".")[0] for one in nodes(expression) if isinstance(one, m.Name)}
    if any(used & set(assigned_names(one.stmt)) for one in epochs) or not used:
        return
    _report(rule, Where(rule.run, call.node, call.api), call_text(call), call.api)


def _report(rule: Rule, place: Where, name: str, api: str) -> None:
    rule.report(
        "DET603",
        place,
        f"`{name}` leaves out the first batches of every epoch, not only of the one that is resumed",
        _HELP,
        subject=api,
    )
