"""Recordings as they are written and compared, without running torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from d9mlint.trace import journal
from d9mlint.trace.compare import Unequal, first_difference, frames, pair, with_earlier_draw
from d9mlint.trace.journal import DRAWS, INPUT, NOTE, OP, RNG, STEP, UNINITIALIZED, Journal, Writer

ADD, MUL, GENERATOR, SEED = 1, 2, 3, 4
NAMES = {
    name: number
    for number, name in enumerate(
        [
            "aten.add",
            "aten.mul",
            "torch CPU generator",
            "seed torch.manual_seed",
            "python generator",
            "seed random.seed",
        ],
        1,
    )
}
TABLES = {
    "stream": ["main", "Thread-1"],
    "name": list(NAMES),
    "path": ["/p/train.py:3:train\t/p/train.py:9:<module>", "/p/train.py:1:<module>"],
    "shape": ["float32[4]", "float32[5]"],
    "args": ["alpha=1", "alpha=2", journal.AT_IMPORT],
}


def record(
    kind: int = OP,
    name: int = ADD,
    digest: int = 7,
    *,
    args: int = 0,
    inputs: int = 0,
    shape: int = 1,
    flags: int = 0,
    stream: int = 1,
) -> bytes:
    return journal.RECORD.pack(kind, flags, stream, name, 1, 0, shape, args, inputs, digest)


def written(
    path: Path, *records: bytes, key: str = "main", end: bool = True, digest: str = "xxh3"
) -> Journal:
    writer = Writer(str(path), {"key": key, "pid": 1, "digest": digest})
    writer.json(b"T", TABLES)
    writer.records(b"".join(records))
    if end:
        writer.json(b"E", {"steps": 0})
    writer.close()
    return Journal(str(path)).update()


def verdict(tmp_path: Path, one: list[bytes], other: list[bytes]) -> str:
    pairs = [(written(tmp_path / "a", *one), written(tmp_path / "b", *other))]
    found = first_difference(pairs, complete=True)
    return found.verdict if found is not None else "equal"


UNWRITTEN, OTHER_UNWRITTEN = (record(INPUT, flags=UNINITIALIZED, digest=n) for n in (7, 8))
IN_PLACE, OTHER_IN_PLACE = (record(flags=UNINITIALIZED, digest=n) for n in (7, 8))
"""An operation that leaves a part of memory that nobody has written."""


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([record()], [record()], "equal"),
        ([record()], [record(digest=8)], "op"),
        ([record()], [record(name=MUL)], "structure"),
        ([record()], [record(shape=2)], "structure"),
        ([record()], [record(), record()], "structure"),
        ([record(args=1)], [record(args=2)], "scalar"),
        ([record()], [record(inputs=5)], "input"),
        ([record(INPUT)], [record(INPUT, digest=8)], "input"),
        ([UNWRITTEN, record()], [OTHER_UNWRITTEN, record(digest=8)], "uninitialized"),
        ([UNWRITTEN, record()], [OTHER_UNWRITTEN, record()], "equal"),
        ([UNWRITTEN, IN_PLACE, record()], [OTHER_UNWRITTEN, OTHER_IN_PLACE, record()], "equal"),
        ([UNWRITTEN, IN_PLACE, record()], [OTHER_UNWRITTEN, OTHER_IN_PLACE, record(digest=8)], "op"),
        (
            [UNWRITTEN, IN_PLACE, UNWRITTEN, record()],
            [OTHER_UNWRITTEN, OTHER_IN_PLACE, OTHER_UNWRITTEN, record(digest=8)],
            "uninitialized",
        ),
        ([UNWRITTEN, IN_PLACE], [UNWRITTEN, OTHER_IN_PLACE], "op"),
        ([UNWRITTEN, record(), IN_PLACE], [OTHER_UNWRITTEN, record(), OTHER_IN_PLACE], "op"),
        ([record(RNG, GENERATOR)], [record(RNG, GENERATOR, 8)], "rng"),
        ([record(), record(NOTE, SEED), record()], [record(), record()], "equal"),
    ],
)
def test_verdicts(tmp_path: Path, one: list[bytes], other: list[bytes], expected: str) -> None:
    assert verdict(tmp_path, one, other) == expected


def test_lines_do_not_decide(tmp_path: Path) -> None:
    one = written(tmp_path / "a", record())
    other = written(tmp_path / "b", record())
    other.tables["path"] = ["", "/elsewhere/train.py:77:train"]
    assert first_difference([(one, other)], complete=True) is None


def test_a_seed_that_differs_is_the_cause(tmp_path: Path) -> None:
    one = [record(NOTE, SEED, 1, args=1), record(RNG, GENERATOR, 1)]
    other = [record(NOTE, SEED, 2, args=2), record(RNG, GENERATOR, 2)]
    pairs = [(written(tmp_path / "a", *one), written(tmp_path / "b", *other))]
    found = first_difference(pairs, complete=True)
    assert found is not None and found.cause is not None
    assert (found.verdict, found.cause.text) == ("rng", "seeded with alpha=1 and alpha=2")


def test_a_seed_without_arguments_comes_from_the_system(tmp_path: Path) -> None:
    one = [record(NOTE, SEED, 1), record(RNG, GENERATOR, 1)]
    other = [record(NOTE, SEED, 2), record(RNG, GENERATOR, 2)]
    pairs = [(written(tmp_path / "a", *one), written(tmp_path / "b", *other))]
    found = first_difference(pairs, complete=True)
    assert found is not None and found.cause is not None
    assert (found.reason, found.cause.text) == (
        "`torch.manual_seed` draws a new seed in every run",
        "seeded by the operating system",
    )


@pytest.mark.parametrize(("stream", "expected"), [(1, "op"), (2, "rng")])
def test_a_draw_that_another_thread_overtakes_is_no_race_of_the_operation(
    tmp_path: Path, stream: int, expected: str
) -> None:
    """The state is looked at before the draw; a thread that draws in between changes what the operation gets."""
    seed, elsewhere = record(NOTE, SEED), record(RNG, GENERATOR, 9, stream=stream)
    state = record(RNG, GENERATOR)
    one = [seed, state, elsewhere, record(flags=DRAWS)]
    other = [seed, state, elsewhere, record(flags=DRAWS, digest=8)]
    if stream == 1:
        one, other = ([seed, elsewhere, state, record(flags=DRAWS, digest=n)] for n in (7, 8))
    pairs = [(written(tmp_path / "a", *one), written(tmp_path / "b", *other))]
    found = first_difference(pairs, complete=True)
    assert found is not None and found.verdict == expected
    assert ("Thread-1" in found.reason) == (expected == "rng")


def test_a_draw_long_before_the_data_explains_it_unless_there_is_a_seed(tmp_path: Path) -> None:
    draw = NAMES["python generator"]
    pairs = []
    for seeds in ([], [record(NOTE, NAMES["seed random.seed"])]):
        one = [*seeds, record(NOTE, draw, 5), record(), record(INPUT)]
        other = [*seeds, record(NOTE, draw, 6), record(), record(INPUT, digest=8)]
        name = f"seeds{len(seeds)}"
        pairs.append([(written(tmp_path / f"a{name}", *one), written(tmp_path / f"b{name}", *other))])
    verdicts = []
    for pair_ in pairs:
        found = first_difference(pair_, complete=True)
        assert found is not None and (found.verdict, found.cause) == ("input", None)
        verdicts.append(with_earlier_draw(pair_, found).verdict)
    assert verdicts == ["rng", "input"]


@pytest.mark.parametrize(("at_import", "expected"), [(0, "rng"), (3, "input")])
def test_what_a_library_draws_when_it_is_imported_does_not_explain_the_first_data(
    at_import: int, expected: str, tmp_path: Path
) -> None:
    draw = NAMES["python generator"]
    one = [record(NOTE, draw, 5, args=at_import), record(INPUT)]
    other = [record(NOTE, draw, 6, args=at_import), record(INPUT, digest=8)]
    pairs = [(written(tmp_path / "a", *one), written(tmp_path / "b", *other))]
    found = first_difference(pairs, complete=True)
    assert found is not None and found.verdict == expected


def test_the_step_is_counted_from_one(tmp_path: Path) -> None:
    one = [record(), record(STEP), record()]
    other = [record(), record(STEP), record(digest=9)]
    pairs = [(written(tmp_path / "a", *one), written(tmp_path / "b", *other))]
    found = first_difference(pairs, complete=True)
    assert found is not None and found.step == 2


def test_of_several_ranks_the_one_with_the_cause_is_named(tmp_path: Path) -> None:
    spread = journal.COLLECTIVE
    pairs = [
        (
            written(tmp_path / "a0", record(INPUT, flags=spread), key="rank 0"),
            written(tmp_path / "b0", record(INPUT, flags=spread, digest=1), key="rank 0"),
        ),
        (
            written(tmp_path / "a1", record(), record(), key="rank 1"),
            written(tmp_path / "b1", record(), record(digest=1), key="rank 1"),
        ),
    ]
    found = first_difference(pairs, complete=True)
    assert found is not None and (found.verdict, found.process) == ("op", "rank 1")


def test_a_process_without_a_partner_cannot_be_compared(tmp_path: Path) -> None:
    one = [written(tmp_path / "a", record(), key="rank 0"), written(tmp_path / "b", record(), key="rank 1")]
    with pytest.raises(Unequal, match="second run has no recording of process rank 1"):
        pair(one, [written(tmp_path / "c", record(), key="rank 0")])


def test_a_journal_that_was_cut_short_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = written(tmp_path / "a", record(), record())
    data = (tmp_path / "a").read_bytes()
    for size in range(0, len(data), 7):
        (tmp_path / "b").write_bytes(data[:size])
        cut = Journal(str(tmp_path / "b")).update()
        assert cut.end is None
        assert cut.records == whole.records[: len(cut.records)]


def test_frames_of_a_path_on_a_drive() -> None:
    found = frames("C:\\p\\train.py:3:train")
    assert found[0].filename == "C:\\p\\train.py" and found[0].row == 3


def test_recordings_with_different_digests_are_not_compared(tmp_path: Path) -> None:
    one, other = written(tmp_path / "a", record()), written(tmp_path / "b", record(), digest="sum")
    for first, second, run in ((one, other, "second"), (other, one, "first")):
        with pytest.raises(Unequal, match=f"the {run} recording was made without the package xxhash"):
            pair([first], [second])
    newer = written(tmp_path / "c", record(), digest="xxh3 of another kind")
    with pytest.raises(Unequal, match="other releases of d9mlint have made them"):
        pair([one], [newer])
