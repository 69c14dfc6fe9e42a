"""Where a resumed run differs from an uninterrupted one. No framework is imported here.

Three recordings: the uninterrupted run, the run that was ended, the run that was started again. Steps are matched
by number: the first step of the resumed run follows the step after which the checkpoint it has read was written.
Within a step the state that a checkpoint should have kept is compared before what follows from it: parameters and
optimizer, then generators, then batches, then single operations.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from d9mlint.trace.compare import Cause, Difference, Frame, Unequal, Verdict, frames, pair, side
from d9mlint.trace.journal import BATCH, NOTE, OP, RNG, STATE, STEP, Journal

CERTAIN = ("parameter", "optimizer", "scheduler", "hyperparameter", "scaler", "averaged", "frozen")
"""State that nothing in a step changes before it is recorded: where it differs, it was not restored."""
GLOBAL_GENERATORS = {
    "torch CPU generator": "seed torch",
    "python generator": "seed random.",
    "numpy generator": "seed numpy.",
}
"""The generators of libraries, with the notes of calls that set their state."""
_NUMBER = re.compile(r" #\d+(?= |$)")


class Item(NamedTuple):
    """A piece of state that differs: what it is, and how it looks in both runs where that is known."""

    kind: str
    name: str
    first: str
    second: str


class Resume(NamedTuple):
    """How a run was ended and started again. ``checkpoint`` is the step after which what the resumed run has
    read was written; ``items`` is all state that differs at the first step that does."""

    step: int
    checkpoint: int
    compared: int
    saved: tuple[Frame, ...]
    loaded: tuple[Frame, ...]
    items: tuple[Item, ...] = ()


class Recorded(NamedTuple):
    """What a record of state says: its digest, its value as text where it is a number, its place."""

    digest: int
    text: str
    place: int


State = dict[str, list[Recorded]]
"""Records by name without the number of the object."""


class Timeline:
    """A journal by optimizer steps; step 1 is the first of this process."""

    def __init__(self, found: Journal) -> None:
        self.journal = found
        ends = [n for n, r in enumerate(found.records) if r.kind == STEP]
        self.windows = [(start, end) for start, end in zip([0, *(e + 1 for e in ends)], ends, strict=False)]
        self._states: list[dict[str, Recorded]] = []

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return len(self.windows)

    def state(self, step: int) -> dict[str, Recorded]:
        """The state before a step is taken, by the records' names."""
        while len(self._states) < step:
            current = dict(self._states[-1]) if self._states else {}
            start, end = self.windows[len(self._states)]
            for index in range(start, end):
                record = self.journal.records[index]
                if record.kind == STATE:
                    name = self.journal.text("name", record.name)
                    text = self.journal.text("args", record.args)
                    current[name] = Recorded(record.digest, text, index)
            self._states.append(current)
        return self._states[step - 1]

    def batches(self, step: int) -> list[tuple[int, tuple[int, str, str]]]:
        """The batches that were handed out in a step: place and content."""
        found = self.journal
        start, end = self.windows[step - 1]
        return [
            (n, (r.digest, found.text("shape", r.shape), found.text("args", r.args)))
            for n, r in enumerate(found.records[start:end], start)
            if r.kind == BATCH
        ]

    def operations(self, step: int) -> dict[str, list[int]]:
        """The places of the operations of a step by thread."""
        found = self.journal
        start, end = self.windows[step - 1]
        result: dict[str, list[int]] = {}
        for n in range(start, end):
            record = found.records[n]
            if record.kind in (OP, RNG):
                result.setdefault(found.text("stream", record.stream), []).append(n)
        return result


def grouped(state: dict[str, Recorded]) -> State:
    """State by names without the numbers of objects."""
    result: State = {}
    for name, recorded in state.items():
        result.setdefault(_NUMBER.sub("", name), []).append(recorded)
    return result


def checkpoint_step(ended: Sequence[Journal], resumed: Sequence[Journal], stop: int) -> tuple[int, str, str]:
    """After which step the files were written that the resumed run has read, with the call paths of both."""
    written: dict[str, list[Any]] = {}
    read: dict[str, list[Any]] = {}
    for found, kind, into in ((ended, "written", written), (resumed, "read", read)):
        for one in found:
            for event in one.events:
                for name, entry in event.get(kind, {}).items():
                    if name not in into or entry[0] > into[name][0]:
                        into[name] = entry
    both = [name for name in read if name in written]
    if not both:
        return stop, "", ""
    latest = max(both, key=lambda name: (written[name][0], name))
    return written[latest][0], written[latest][1], read[latest][1]


def compare(
    first: Sequence[Journal], ended: Sequence[Journal], resumed: Sequence[Journal], stop: int, complete: bool
) -> tuple[Difference | None, Resume]:
    """The first difference of a resumed run. Raises compare.Unequal."""
    pairs = [(Timeline(a), Timeline(b)) for a, b in pair(first, resumed) if not a.header.get("worker")]
    pairs = [(a, b) for a, b in pairs if a.steps]
    step, saved, loaded = checkpoint_step(ended, resumed, stop)
    if not pairs or not all(b.steps for _, b in pairs):
        raise Unequal("the resumed run took no optimizer step")
    matched = _step_of_parameters(*pairs[0])
    if matched is not None and step not in matched and max(matched) > 0:
        step = max(m for m in matched)
    resume = Resume(stop, step, min(b.steps for _, b in pairs), frames(saved), frames(loaded))
    unstable = {str(a.header.get("key")): _unstable(Timeline(a), Timeline(b)) for a, b in pair(first, ended)}
    found: list[tuple[Difference, tuple[Item, ...]]] = []
    for one, other in pairs:
        left_out = unstable.get(str(one.journal.header.get("key")), frozenset())
        one_found = _of_process(one, other, resume, left_out, complete)
        if one_found is not None:
            found.append(one_found)
    if not found:
        return None, resume
    difference, items = min(found, key=lambda pair: pair[0].step)
    return difference, resume._replace(items=items)


def _step_of_parameters(first: Timeline, resumed: Timeline) -> list[int] | None:
    """The steps after which the uninterrupted run had the parameters that the resumed run begins with."""

    def parameters(state: dict[str, Recorded]) -> dict[str, int]:
        return {n: r.digest for n, r in state.items() if n.startswith("parameter: ")}

    start = parameters(resumed.state(1))
    return [k - 1 for k in range(1, first.steps + 1) if parameters(first.state(k)) == start] or None


def _unstable(first: Timeline, ended: Timeline) -> frozenset[str]:
    """The names of state that differs before the run is resumed: generators and attributes of libraries that
    nothing depends on, or the operations would differ too."""
    if not ended.steps:
        return frozenset()
    step = min(first.steps, ended.steps)
    one, other = grouped(first.state(step)), grouped(ended.state(step))
    return frozenset(
        name
        for name, recorded in one.items()
        if Counter(r.digest for r in recorded) != Counter(r.digest for r in other.get(name, []))
    )


def _of_process(
    first: Timeline, resumed: Timeline, resume: Resume, left_out: frozenset[str], complete: bool
) -> tuple[Difference, tuple[Item, ...]] | None:
    offset = resume.checkpoint
    for step in range(offset + 1, first.steps + 1):
        if step - offset > resumed.steps:
            break
        found = _Step(first, resumed, resume, left_out, step).difference()
        if found is not None:
            return found
    left = first.steps - offset
    if complete and resumed.steps != left:
        reason = f"the resumed run takes {resumed.steps} optimizer steps where {left} were left"
        number = min(left, resumed.steps)
        place = first.windows[min(offset + number, first.steps) - 1][1]
        here = side(first.journal, place)
        key = str(first.journal.header.get("key", ""))
        cause = _cause(resume)
        step = offset + number + 1
        return Difference("structure", key, here.name, 0, place, step, here, None, reason, cause), ()
    return None


def _cause(resume: Resume) -> Cause | None:
    if not resume.saved:
        return None
    return Cause(
        "checkpoint", f"this checkpoint holds the state after step {resume.checkpoint}", resume.saved
    )


class Batch(NamedTuple):
    """A batch that differs. ``explained``: it is known why, and no generator has to do with it."""

    difference: Difference
    items: tuple[Item, ...]
    explained: bool


class _Step:
    """The comparison of one step."""

    def __init__(
        self, first: Timeline, resumed: Timeline, resume: Resume, left_out: frozenset[str], step: int
    ) -> None:
        self.first, self.resumed, self.resume = first, resumed, resume
        self.left_out = left_out
        self.step, self.other = step, step - resume.checkpoint
        self.states = first.state(step), resumed.state(self.other)
        self.one, self.two = grouped(self.states[0]), grouped(self.states[1])

    def difference(self) -> tuple[Difference, tuple[Item, ...]] | None:
        """The first difference of this step and all state that differs with it. A generator or an attribute that
        differs explains what is computed from it; alone it is no difference."""
        certain = [name for kind in CERTAIN for name in self.differing(kind)]
        batch = self.batch()
        buffers = self.differing("buffer")
        operation = self.operation() or self.plain()
        if not certain and batch is None and not buffers and operation is None:
            return None
        generators = [name for name in self.differing("generator") if self.matters(name)]
        items = tuple(self.item(name) for name in [*certain, *generators])
        if certain:
            return self.state(certain[0], "state"), items
        # A generator of the loader that was not restored repeats the batches of an earlier epoch.
        own = any(name.partition(": ")[2] not in GLOBAL_GENERATORS for name in generators)
        if batch is not None and batch.explained and (batch.items or not own):
            return batch.difference, batch.items
        if generators:
            return self.state(generators[0], "rng"), items
        if batch is not None:
            return batch.difference, batch.items
        attributes = self.differing("attribute")
        if attributes:
            return self.state(attributes[0], "state"), tuple(map(self.item, attributes))
        if buffers:
            return self.state(buffers[0], "state"), tuple(map(self.item, buffers))
        assert operation is not None
        return operation, ()

    def differing(self, kind: str) -> list[str]:
        """The names of a kind that differ. What one of the runs has more of is left out, unless the resumed run
        has none at all of what a checkpoint keeps."""
        found = []
        for name, recorded in self.one.items():
            if not name.startswith(f"{kind}: ") or name in self.left_out:
                continue
            other = self.two.get(name)
            if other is None:
                if kind in ("optimizer", "scaler"):
                    found.append(name)
                continue
            mine = Counter(r.digest for r in recorded)
            theirs = Counter(r.digest for r in other)
            if mine - theirs and theirs - mine:
                found.append(name)
        return found

    def matters(self, name: str) -> bool:
        """Whether a generator that differs was not restored, and is drawn from after the checkpoint."""
        plain = name.partition(": ")[2]
        before = self.first.state(self.resume.checkpoint) if self.resume.checkpoint else {}
        after = before.get(f"{plain} after the step")
        known = [r.digest for r in grouped(before).get(name, [])]
        known += [after.digest] if after is not None else []
        moved = any(
            r.digest not in known
            for k in range(self.step, self.first.steps + 1)
            for r in grouped(self.first.state(k)).get(name, [])
        )
        return (moved or not known) and not self.restored(plain, after)

    def restored(self, name: str, after: Recorded | None) -> bool:
        """Whether the resumed run has set a generator to its state after the checkpoint's step: it differs now
        because it was drawn from another number of times."""
        if after is None:
            return False
        found = self.resumed.journal
        until = self.resumed.windows[self.other - 1][1]
        prefix = GLOBAL_GENERATORS.get(name)
        return prefix is not None and any(
            r.kind == NOTE and r.digest == after.digest and found.text("name", r.name).startswith(prefix)
            for r in found.records[:until]
        )

    def item(self, name: str) -> Item:
        """A name as the report shows it."""
        kind, _, text = name.partition(": ")
        one, other = self.one.get(name, []), self.two.get(name, [])
        return Item(kind, text, _shown(one), _shown(other) if other else "missing")

    def state(self, name: str, verdict: Verdict) -> Difference:
        """The difference that a name is."""
        item = self.item(name)
        others = self.two.get(name, [])
        other = others[0] if others else None
        theirs = {r.digest for r in others}
        one = next((r for r in self.one[name] if r.digest not in theirs), self.one[name][0])
        left = side(self.first.journal, one.place)
        right = side(self.resumed.journal, other.place) if other is not None else None
        return self.made(verdict, one.place, left, right, self.reason(item))

    def reason(self, item: Item) -> str:
        """What a reader has to know of a difference."""
        first_step = self.step == self.resume.checkpoint + 1
        if not first_step and item.kind != "generator":
            return (
                f"the {_noun(item)} differs before step {self.step}, and was equal when the run was resumed"
            )
        text = f"the {_noun(item)} is not restored: {_values(item)}"
        if item.kind == "parameter":
            known = _step_of_parameters(self.first, self.resumed)
            if known:
                return f"{text}; the resumed run begins with the parameters after step {known[-1]}"
        return text

    def batch(self) -> Batch | None:
        """The batches of this step, where they differ."""
        mine, theirs = self.first.batches(self.step), self.resumed.batches(self.other)
        # A resumed run may have skipped batches before.
        theirs = theirs[max(0, len(theirs) - len(mine)) :]
        differing = [n for n, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a[1] != b[1]]
        if len(mine) == len(theirs) and not differing:
            return None
        place = differing[0] if differing else 0
        if not mine:
            return None
        left = side(self.first.journal, mine[place][0])
        right = side(self.resumed.journal, theirs[place][0]) if place < len(theirs) else None
        explained, reason, items = self.reason_of_batch([content for _, content in theirs])
        return Batch(self.made("input", mine[place][0], left, right, reason), items, explained)

    def reason_of_batch(self, theirs: list[tuple[int, str, str]]) -> tuple[bool, str, tuple[Item, ...]]:
        """Why a batch differs, and whether that is certain."""
        items = tuple(item for item in map(self.item, self.differing("data")) if item.first != item.second)
        epoch = next((item for item in items if "`epoch`" in item.name), None)
        if epoch is not None:
            return True, f"the {_noun(epoch)} is not restored: {_values(epoch)}", items
        datasets = [r.text for r in self.one.get("dataset:", [])]
        iterable = [t for text in datasets for t in text.split(", ") if t.startswith("iterable ")]
        text = "the position in the data"
        if iterable:
            text = f"the position in the IterableDataset `{iterable[0].partition(' ')[2]}`, or its shuffle order,"
        for step in range(1, self.first.steps + 1):
            if step != self.step and theirs and [c for _, c in self.first.batches(step)] == theirs:
                return True, f"{text} is not restored: this is the batch of step {step}", items
        if items:
            return False, f"the {_noun(items[0])} is not restored: {_values(items[0])}", items
        if iterable:
            return False, f"{text} is not restored", items
        return (
            False,
            "the batch differs: the order of the data, or the position in it, is not restored",
            items,
        )

    def operation(self) -> Difference | None:
        """The first operation of this step whose result or argument differs. The windows of the first step begin
        differently, so its operations are matched from the end."""
        one, other = self.first.operations(self.step), self.resumed.operations(self.other)
        found: list[Difference] = []
        for stream, mine in one.items():
            theirs = other.get(stream, [])
            left, right = self.aligned(mine, theirs)
            for a, b in zip(left, right, strict=True):
                difference = self.operations_differ(stream, a, b)
                if difference is not None:
                    found.append(difference)
                    break
            else:
                if self.other > 1 and not len(left) == len(mine) == len(theirs):
                    at = min(len(left), len(mine) - 1)
                    here = side(self.first.journal, mine[at])
                    reason = "the resumed run executes other operations in this step"
                    found.append(self.made("structure", mine[at], here, None, reason))
        return min(found, key=lambda d: d.position) if found else None

    def aligned(self, mine: list[int], theirs: list[int]) -> tuple[list[int], list[int]]:
        """The operations of both runs that correspond to each other."""
        if self.other > 1:
            count = 0
            for a, b in zip(mine, theirs, strict=False):
                if self.form(self.first, a) != self.form(self.resumed, b):
                    break
                count += 1
            return mine[:count], theirs[:count]
        count = 0
        for a, b in zip(reversed(mine), reversed(theirs), strict=False):
            if self.form(self.first, a) != self.form(self.resumed, b):
                break
            count += 1
        return mine[len(mine) - count :], theirs[len(theirs) - count :]

    def form(self, line: Timeline, index: int) -> tuple[int, str, str]:
        """What makes two operations the same one."""
        record = line.journal.records[index]
        return record.kind, line.journal.text("name", record.name), line.journal.text("shape", record.shape)

    def operations_differ(self, stream: str, a: int, b: int) -> Difference | None:
        """The difference of two operations that correspond to each other."""
        one, other = self.first.journal.records[a], self.resumed.journal.records[b]
        left, right = side(self.first.journal, a), side(self.resumed.journal, b)
        if left.args != right.args:
            return self.made("scalar", a, left, right, _arguments(left.args, right.args))
        if one.digest == other.digest or one.kind == RNG:
            return None
        reason = (
            "a tensor that this operation reads is not restored, or the operation itself is not deterministic"
        )
        return self.made("state", a, left, right, reason)

    def plain(self) -> Difference | None:
        """The loss or a gradient, at the light level."""
        for name in (*self.states[0],):
            if name != "loss" and not name.startswith("gradient "):
                continue
            a, b = self.states[0][name], self.states[1].get(name)
            if b is not None and a.digest != b.digest:
                left, right = side(self.first.journal, a.place), side(self.resumed.journal, b.place)
                reason = f"the {name} differs; `--level full` finds the operation"
                return self.made("state", a.place, left, right, reason)
        return None

    def made(self, verdict: Verdict, index: int, left: Any, right: Any, reason: str) -> Difference:
        """A difference of this step."""
        key = str(self.first.journal.header.get("key", ""))
        stream = self.first.journal.text("stream", self.first.journal.records[index].stream)
        operation = left is not None and left.kind == "operation"
        cause = None if operation else _cause(self.resume)
        return Difference(verdict, key, stream, 0, index, self.step, left, right, reason, cause)


def _arguments(one: str, other: str) -> str:
    return f"an argument differs: {one or 'the default'} and {other or 'the default'}"


def _shown(recorded: Iterable[Recorded]) -> str:
    found = list(recorded)
    return found[0].text if found and found[0].text else ""


def _values(item: Item) -> str:
    if item.second == "missing":
        return "the resumed run has none"
    if item.first and item.second:
        return f"{item.first} in the uninterrupted run, {item.second} in the resumed one"
    return "its content differs"


def _noun(item: Item) -> str:
    words = {
        "parameter": f"parameter {item.name}",
        "optimizer": f"optimizer state {item.name}",
        "scheduler": f"scheduler state {item.name}",
        "hyperparameter": f"hyperparameter {item.name}",
        "scaler": f"gradient scaler's {item.name}",
        "averaged": f"copy of the model ({item.name.removeprefix('parameters of ')}) that no optimizer updates",
        "frozen": f"state of the {item.name} that no optimizer updates",
        "generator": f"state of the {item.name}",
        "buffer": f"buffer {item.name}",
        "attribute": f"attribute {item.name}",
        "data": f"attribute {item.name}",
    }
    return words[item.kind]
