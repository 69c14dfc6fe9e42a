"""Where two recordings first differ, and of what kind the difference is. No framework is imported here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from d9mlint.trace import journal
from d9mlint.trace.journal import (
    BACKWARD,
    BATCH,
    COLLECTIVE,
    COMPILED,
    DRAWS,
    INPUT,
    NOTE,
    OP,
    RNG,
    STATE,
    STEP,
    UNINITIALIZED,
    Journal,
    Record,
)

Verdict = Literal["op", "rng", "input", "scalar", "uninitialized", "structure", "collective", "state"]
VERDICTS: tuple[Verdict, ...] = (
    "op",
    "rng",
    "input",
    "scalar",
    "uninitialized",
    "structure",
    "collective",
    "state",
)


class Frame(NamedTuple):
    """A line of the user's program. ``columns`` is what of it was running, where that is known: the column of its
    beginning, the line and the column of its end."""

    filename: str
    row: int
    function: str
    columns: tuple[int, ...] = ()


class Side(NamedTuple):
    """A record in words. ``path`` is innermost first."""

    kind: str
    name: str
    path: tuple[Frame, ...]
    forward: tuple[Frame, ...]
    shape: str
    args: str
    digest: str
    flags: int


class Cause(NamedTuple):
    """What explains the difference: a seed, a draw, a directory listing, with its line."""

    kind: str
    text: str
    path: tuple[Frame, ...]


class Difference(NamedTuple):
    """The first record that differs. ``step`` counts the optimizer steps before it, plus one; ``second`` is
    None where the second run has no such record, ``first`` where the first has none."""

    verdict: Verdict
    process: str
    stream: str
    ordinal: int
    position: int
    step: int
    first: Side | None
    second: Side | None
    reason: str
    cause: Cause | None

    @property
    def side(self) -> Side:
        """What is shown: the first run's record, or the second's where there is none."""
        side = self.first or self.second
        assert side is not None
        return side

    @property
    def place(self) -> tuple[Frame, ...]:
        """The call path to blame: that of the cause where there is one, the forward line of a backward
        operation, the line itself."""
        if self.cause is not None and self.cause.path:
            return self.cause.path
        return self.side.forward or self.side.path


class Unequal(Exception):
    """Two recordings cannot be compared; the text says why."""


def frames(text: str) -> tuple[Frame, ...]:
    """The frames of a path in a journal."""
    found = []
    for part in text.split("\t") if text else ():
        filename, row, function = part.rsplit(":", 2)
        line, *columns = map(int, row.split(","))
        found.append(Frame(filename, line, function, tuple(columns)))
    return tuple(found)


class Streams(NamedTuple):
    """The compared records of a journal by stream, each with its place in the journal."""

    by_name: dict[str, list[int]]

    @staticmethod
    def of(found: Journal) -> Streams:
        """Sort the records of a journal by thread."""
        names = found.tables["stream"]
        result: dict[int, list[int]] = {}
        for index, record in enumerate(found.records):
            if record.kind != NOTE:
                result.setdefault(record.stream, []).append(index)
        return Streams({names[number]: indices for number, indices in result.items()})


def pair(first: Sequence[Journal], second: Sequence[Journal]) -> list[tuple[Journal, Journal]]:
    """The journals of the same process in both recordings. Raises Unequal where a training process of one has
    no partner, and where the recordings have different kinds of digests."""
    by_key = [_keyed(found) for found in (first, second)]
    missing = [k for k in by_key[0] if k not in by_key[1] and not by_key[0][k].header.get("worker")]
    extra = [k for k in by_key[1] if k not in by_key[0] and not by_key[1][k].header.get("worker")]
    if missing or extra:
        which, run = (missing[0], "second") if missing else (extra[0], "first")
        raise Unequal(f"the {run} run has no recording of process {which}")
    for key in by_key[0].keys() & by_key[1].keys():
        one, other = (found[key].header.get("digest") for found in by_key)
        if one != other:
            if "sum" in (one, other):
                run = "first" if one == "sum" else "second"
                why = f"the {run} recording was made without the package xxhash"
            else:
                why = "other releases of d9mlint have made them"
            raise Unequal(f"the digests of the recordings cannot be compared: {why}")
    return [(by_key[0][k], by_key[1][k]) for k in by_key[0] if k in by_key[1]]


def _keyed(found: Sequence[Journal]) -> dict[str, Journal]:
    result: dict[str, Journal] = {}
    for one in sorted(found, key=lambda j: int(j.header.get("pid", 0))):
        key = str(one.header.get("key", ""))
        count = 1
        while key in result:
            count += 1
            key = f"{one.header.get('key', '')} #{count}"
        result[key] = one
    return result


class Names:
    """Numbers of the second journal's tables as numbers of the first's."""

    def __init__(self, first: Journal, second: Journal) -> None:
        self._maps: dict[str, list[int]] = {}
        for table in ("name", "shape", "args"):
            numbers = {text: number for number, text in enumerate(first.tables[table])}
            entries = second.tables[table]
            self._maps[table] = [numbers.get(text, -1 - n) for n, text in enumerate(entries)]

    def key(self, record: Record) -> tuple[int, ...]:
        """What is compared of a record of the second journal."""
        maps = self._maps
        return (
            record.kind,
            maps["name"][record.name],
            maps["shape"][record.shape],
            maps["args"][record.args],
            record.inputs,
            record.digest,
        )


def record_key(record: Record) -> tuple[int, ...]:
    """What is compared of a record of the first journal."""
    return (record.kind, record.name, record.shape, record.args, record.inputs, record.digest)


def first_difference(pairs: Sequence[tuple[Journal, Journal]], complete: bool) -> Difference | None:
    """The earliest difference of all processes. ``complete``: both runs have ended on their own, so a record
    that only one has is a difference too."""
    found = []
    for first, second in pairs:
        whole = complete and not first.header.get("worker")
        one = _of_process(first, second, whole)
        if one is not None:
            found.append(one)
    if not found:
        return None
    return min(found, key=_order)


def _order(difference: Difference) -> tuple[int, int, int]:
    """A worker's difference explains the batch that it made; a collective spreads what one rank has."""
    worker = "/fork" in difference.process or "Process" in difference.process
    late = difference.verdict == "collective"
    return (0 if worker and "rank" not in difference.process else difference.step, late, difference.position)


def _of_process(first: Journal, second: Journal, complete: bool) -> Difference | None:
    names = Names(first, second)
    one, other = Streams.of(first).by_name, Streams.of(second).by_name
    found = []
    for name in one:
        ordinal = next(differing(first, second, one[name], other.get(name, []), names), None)
        if ordinal is None:
            short = min(len(one[name]), len(other.get(name, [])))
            if not complete or len(one[name]) == len(other.get(name, [])):
                continue
            ordinal = short
        a = one[name][ordinal] if ordinal < len(one[name]) else None
        b = other[name][ordinal] if name in other and ordinal < len(other[name]) else None
        found.append((a if a is not None else len(first.records), name, ordinal, a, b))
    if not found:
        return None
    _, name, ordinal, a, b = min(found)
    return _judge(first, second, name, ordinal, a, b)


def differing(
    first: Journal, second: Journal, one: Sequence[int], other: Sequence[int], names: Names
) -> Iterator[int]:
    """The ordinals of the records of a stream that differ.

    Memory that was never written has other contents in every run. An operation may read it without effect: a
    permutation is written over all of it, an index selects what has been written. It counts where the result of the
    operation differs too. An operation that writes only a part of such memory leaves the rest as it was: what reads
    it later decides."""
    left, right = first.records, second.records
    unwritten: list[int] = []
    for ordinal, (a, b) in enumerate(zip(one, other, strict=False)):
        record, partner = left[a], right[b]
        mine, theirs = record_key(record), names.key(partner)
        if mine == theirs:
            if unwritten and record.kind == OP:
                unwritten.clear()
            continue
        contents = mine[:-1] == theirs[:-1] and record.flags & UNINITIALIZED
        if contents and record.kind == INPUT:
            unwritten.append(ordinal)
            continue
        if record.kind == OP:
            if contents and unwritten:
                unwritten.clear()
                continue
            yield from unwritten
            unwritten.clear()
        yield ordinal


def side(found: Journal, index: int) -> Side:
    """A record in words."""
    record = found.records[index]
    return Side(
        journal.KINDS[record.kind],
        found.text("name", record.name),
        frames(found.text("path", record.path)),
        frames(found.text("path", record.forward)),
        found.text("shape", record.shape),
        found.text("args", record.args),
        f"{record.digest:016x}",
        record.flags,
    )


def _judge(
    first: Journal, second: Journal, stream: str, ordinal: int, a: int | None, b: int | None
) -> Difference:
    left = side(first, a) if a is not None else None
    right = side(second, b) if b is not None else None
    verdict, reason = _verdict(left, right, first, second, a, b)
    cause = None
    overtaken = _overtaken(first, second, a) if verdict == "op" and a is not None else ""
    if overtaken:
        verdict, reason = "rng", overtaken
    elif verdict in ("rng", "input", "scalar", "structure", "op"):
        explained = _explain(first, second, stream, a, b, verdict)
        if explained is not None:
            verdict, reason, cause = explained[0], explained[1] or reason, explained[2]
    index = a if a is not None else len(first.records)
    steps = sum(1 for r in first.records[:index] if r.kind == STEP)
    process = str(first.header.get("key", ""))
    return Difference(verdict, process, stream, ordinal, index, steps + 1, left, right, reason, cause)


def _verdict(
    left: Side | None, right: Side | None, first: Journal, second: Journal, a: int | None, b: int | None
) -> tuple[Verdict, str]:
    if left is None or right is None or a is None or b is None:
        which = "first" if left is None else "second"
        return "structure", f"the {which} run ended earlier"
    one, other = first.records[a], second.records[b]
    if (left.kind, left.name) != (right.kind, right.name):
        if {one.kind, other.kind} == {RNG, OP}:
            return "structure", "only one of the runs draws random numbers here"
        return "structure", f"the first run has `{left.name}` where the second has `{right.name}`"
    if one.kind == RNG:
        return "rng", f"the state of the {left.name} differs before this draw"
    if one.kind == STEP:
        return "structure", "another optimizer step"
    if one.kind in (INPUT, BATCH, STATE):
        if one.flags & UNINITIALIZED:
            return "uninitialized", "memory is read that nothing has written since it was allocated"
        if one.flags & COLLECTIVE:
            return "collective", "the result of a collective differs"
        if left.shape != right.shape:
            return "input", f"the data has another shape: {left.shape} and {right.shape}"
        if one.kind == STATE:
            return "op", f"the {left.name} differs; `--level full` finds the operation"
        return "input", "the data that enters here differs"
    if left.args != right.args:
        return "scalar", f"an argument differs: {_changed(left.args, right.args)}"
    if one.inputs != other.inputs:
        return "input", "the operation reads other tensors than in the first run"
    if left.shape != right.shape:
        return "structure", f"the result has another shape: {left.shape} and {right.shape}"
    if one.flags & COLLECTIVE:
        return "collective", "the collective differs"
    if one.flags & COMPILED:
        return "op", "the result of a compiled function differs for the same inputs"
    return "op", "the result differs for the same inputs"


def _overtaken(first: Journal, second: Journal, a: int) -> str:
    """Why a draw differs although its generator was in the same state when it was looked at: another thread drew
    between that and the draw itself. Empty where only one thread draws from the generator."""
    record = first.records[a]
    if record.kind != OP or not record.flags & DRAWS:
        return ""
    # The state is recorded just before the operation, in its thread.
    drawn = next(
        (r for r in reversed(first.records[:a]) if r.stream == record.stream and r.kind != NOTE), None
    )
    if drawn is None or drawn.kind != RNG:
        return ""
    name = first.text("name", drawn.name)
    threads = dict.fromkeys([*_threads_that_draw(first, name), *_threads_that_draw(second, name)])
    return _several_threads(name, list(threads)) if len(threads) > 1 else ""


def _several_threads(name: str, threads: Sequence[str]) -> str:
    return f"the {name} is used by several threads ({', '.join(threads)}); their order differs"


def _changed(one: str, other: str) -> str:
    """The arguments that differ, of two texts ``a=1, b=2``."""
    parts = [(a, b) for a, b in zip(one.split(", "), other.split(", "), strict=False) if a != b]
    if not parts or len(one.split(", ")) != len(other.split(", ")):
        return f"{one} and {other}"
    return "; ".join(f"{a} and {b.partition('=')[2] or b}" for a, b in parts)


def _notes(found: Journal, index: int | None) -> list[tuple[int, Record]]:
    """The notes before a record, oldest first."""
    until = len(found.records) if index is None else index
    return [(n, r) for n, r in enumerate(found.records[:until]) if r.kind == NOTE]


def _explain(
    first: Journal, second: Journal, stream: str, a: int | None, b: int | None, verdict: Verdict
) -> tuple[Verdict, str, Cause | None] | None:
    """What was noted before the difference and explains it."""
    left, right = _notes(first, a), _notes(second, b)
    unseeded = _unseeded(first, left, a) if a is not None and verdict in ("input", "op") else None
    if unseeded is not None:
        return unseeded
    if verdict == "rng" and a is not None:
        return _explain_draw(first, second, left, right, a)
    return _explain_value(first, second, left, right, a)


def _unseeded(
    first: Journal, left: list[tuple[int, Record]], a: int
) -> tuple[Verdict, str, Cause | None] | None:
    """A graph of TensorFlow that draws without a seed, where what a graph has made differs."""
    record = first.records[a]
    if record.kind != BATCH and not record.flags & COMPILED:
        return None
    found = [r for _, r in left if first.text("name", r.name) == journal.UNSEEDED]
    if not found:
        return None
    path = frames(first.text("path", found[-1].path))
    text = f"`{first.text('args', found[-1].args)}` is in the graph without a seed"
    return "rng", "the TensorFlow generator is used without a seed", Cause("draw", text, path)


def _explain_seed(
    first: Journal, second: Journal, one: Record, other: Record
) -> tuple[Verdict, str, Cause | None]:
    """A generator was seeded differently in the two runs."""
    called = first.text("name", one.name).removeprefix("seed ")
    values = first.text("args", one.args), second.text("args", other.args)
    if any(values):
        reason = f"`{called}` is called with another value in every run"
        text = f"seeded with {values[0]} and {values[1]}"
    else:
        reason = f"`{called}` draws a new seed in every run"
        text = "seeded by the operating system"
    return "rng", reason, Cause("seed", text, frames(first.text("path", one.path)))


def _explain_draw(
    first: Journal,
    second: Journal,
    left: list[tuple[int, Record]],
    right: list[tuple[int, Record]],
    a: int,
) -> tuple[Verdict, str, Cause | None]:
    name = first.text("name", first.records[a].name)
    seeds = [r for _, r in left if _seeds(first, r, name)]
    others = [r for _, r in right if _seeds(second, r, name)]
    for one, other in zip(seeds, others, strict=False):
        if one.digest != other.digest:
            return _explain_seed(first, second, one, other)
    threads = _threads_that_draw(first, name)
    if len(threads) > 1 and seeds:
        return "rng", _several_threads(name, threads), None
    if not seeds:
        later = [r for r in first.records[a:] if r.kind == NOTE and _seeds(first, r, name)]
        # Libraries put a state back that they have kept: that is no late seed.
        later = [r for r in later if not first.text("name", r.name).endswith("set_rng_state")]
        if later:
            path = frames(first.text("path", later[0].path))
            called = first.text("name", later[0].name).removeprefix("seed ")
            row = f" at line {path[0].row}" if path else ""
            return "rng", f"the {name} is used before `{called}` is called{row}", None
        if name == "torch.Generator":
            return "rng", "this torch.Generator is seeded differently in every run", None
        return "rng", f"the {name} is used without a seed", None
    return "rng", f"the state of the {name} differs before this draw", None


def _seeds(found: Journal, record: Record, generator: str) -> bool:
    name = found.text("name", record.name)
    if generator == "torch CPU generator":
        return name in ("seed torch.manual_seed", "seed torch.seed", "seed torch.set_rng_state")
    if generator.startswith("torch generator of"):
        return name.startswith("seed torch")
    if generator == "TensorFlow generator":
        return name.startswith("seed tensorflow")
    if generator in ("python generator", "numpy generator"):
        short = "seed random." if generator.startswith("python") else "seed numpy."
        return name.startswith(short)
    return False


def _threads_that_draw(found: Journal, generator: str) -> list[str]:
    """The threads that draw from a generator."""
    draws = (r for r in found.records if r.kind == RNG and found.text("name", r.name) == generator)
    numbers = dict.fromkeys(r.stream for r in draws)
    return [found.text("stream", number) for number in numbers]


def _explain_value(
    first: Journal,
    second: Journal,
    left: list[tuple[int, Record]],
    right: list[tuple[int, Record]],
    a: int | None,
) -> tuple[Verdict, str, Cause | None] | None:
    """A draw of Python's or NumPy's generators whose state differs, just before a value that differs."""
    since = _last_compared(first, a)
    pairs = zip(left, right, strict=False)
    differing = [(n, one) for (n, one), (_, other) in pairs if one.digest != other.digest]
    # What a library draws when it is imported stands before the first data of most programs.
    recent = [(n, r) for n, r in differing if n > since and not (_is_seed(first, r) or _at_import(first, r))]
    if not recent:
        return None
    _, note = recent[0]
    name = first.text("name", note.name)
    path = frames(first.text("path", note.path))
    if name.startswith(("drew ", "made ")):
        generator = name.partition(" ")[2]
        text = "`default_rng()` without a seed"
        return (
            "rng",
            f"a NumPy Generator that differs between runs was used: {generator}",
            Cause("rng", text, path),
        )
    before = [(n, r) for n, r in left if n < recent[0][0]]
    seeds = [r for _, r in before if _seeds(first, r, name)]
    others = [r for _, r in right if _seeds(second, r, name)]
    for one, other in zip(seeds, others, strict=False):
        if one.digest != other.digest:
            return _explain_seed(first, second, one, other)
    libraries = {"python generator": "Python's `random`", "numpy generator": "`numpy.random`"}
    library = libraries.get(name, f"the {name}")
    seeded = "was seeded differently or used in another order" if seeds else "is used without a seed"
    return "rng", f"{library} {seeded}", Cause("draw", f"{library} is drawn from here", path)


_LIBRARIES = (("python generator", "Python's `random`"), ("numpy generator", "`numpy.random`"))


def with_shared_draw(pairs: Sequence[tuple[Journal, Journal]], difference: Difference) -> Difference:
    """The same difference, explained by a generator that several threads draw from in another order."""
    for first, second in pairs:
        if first.header.get("key", "") != difference.process:
            continue
        for name, library in _LIBRARIES:
            draws, others = _draws(first, second, name, difference.position)
            shared = _shared(first, second, draws, others)
            if shared is not None:
                threads = list(dict.fromkeys(first.text("stream", r.stream) for r in draws))
                return _drawn(difference, first, shared, library, _several_threads(library, threads))
    return difference


def with_earlier_draw(pairs: Sequence[tuple[Journal, Journal]], difference: Difference) -> Difference:
    """The same difference, perhaps explained by a draw without a seed long before the data enters: weights that a
    library draws when a model is made. Whether the draw has to do with it is not known."""
    for first, second in pairs:
        if first.header.get("key", "") != difference.process:
            continue
        left = [r for _, r in _notes(first, difference.position)]
        for name, library in _LIBRARIES:
            if any(_seeds(first, r, name) for r in left):
                continue
            pairs_of_draws = zip(*_draws(first, second, name, difference.position), strict=False)
            differing = [one for one, other in pairs_of_draws if one.path and one.digest != other.digest]
            if differing:
                drawn = min(differing, key=lambda r: _at_import(first, r))
                return _drawn(difference, first, drawn, library, f"{library} is used without a seed")
    return difference


def _draws(
    first: Journal, second: Journal, name: str, until: int | None
) -> tuple[list[Record], list[Record]]:
    """The draws from a generator of Python or NumPy: those before a record, and all of the second run."""
    draws = [r for _, r in _notes(first, until) if first.text("name", r.name) == name]
    return draws, [r for r in second.records if r.kind == NOTE and second.text("name", r.name) == name]


def _drawn(difference: Difference, found: Journal, draw: Record, library: str, reason: str) -> Difference:
    cause = Cause("draw", f"{library} is drawn from here", frames(found.text("path", draw.path)))
    return difference._replace(verdict="rng", reason=reason, cause=cause)


def _shared(
    first: Journal, second: Journal, draws: Sequence[Record], others: Sequence[Record]
) -> Record | None:
    """The first draw of a thread that finds a generator in another state, where several threads draw from it.

    ``draws`` and ``others`` are the draws from it in both recordings."""
    threads = dict.fromkeys(first.text("stream", r.stream) for r in draws)
    if len(threads) < 2:
        return None
    for thread in threads:
        own = [r for r in draws if first.text("stream", r.stream) == thread]
        same = [r for r in others if second.text("stream", r.stream) == thread]
        for one, other in zip(own, same, strict=False):
            if one.digest != other.digest and one.path and not _at_import(first, one):
                return one
    return None


def _at_import(found: Journal, record: Record) -> bool:
    return found.text("args", record.args) == journal.AT_IMPORT


def _is_seed(found: Journal, record: Record) -> bool:
    return found.text("name", record.name).startswith(("seed ", "made ", "os."))


def _last_compared(found: Journal, index: int | None) -> int:
    """The place of the last compared record before one."""
    until = len(found.records) if index is None else index
    for n in range(until - 1, -1, -1):
        if found.records[n].kind != NOTE:
            return n
    return -1


def backward(side: Side) -> bool:
    """Whether a record is of a backward pass."""
    return bool(side.flags & BACKWARD)


def draws(side: Side) -> bool:
    """Whether an operation draws random numbers."""
    return bool(side.flags & DRAWS)
