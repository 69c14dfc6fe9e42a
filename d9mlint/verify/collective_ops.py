"""Collectives that are probed, and the probe: the same inputs several times, results compared byte for byte."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
import torch
import torch.distributed as dist

from d9mlint.evidence.model import DIFFERS, EQUAL, NOT_RUN, Measurement, Output
from d9mlint.verify.compare import Array, Distance, distance
from d9mlint.verify.ranks import Lost, NoAnswer, Ranks, first_line

RANKS = "ranks"
"""Name of the output whose results are counted over the ranks of one run instead of over the runs."""


class Op(NamedTuple):
    """A collective.

    ``start`` is given the ranks and a tensor that it may overwrite, of as many elements as asked for; it
    returns the work that it started and the tensor that will hold the result. ``api`` is what it calls.
    ``sums``: it does arithmetic; one that only moves data is a control. ``shared``: every rank must hold the
    same result. ``root``: only rank 0 holds a result. ``spoil`` changes a result before it is compared (given
    the result, the rank and the run, both from 0): for controls that must differ.
    """

    name: str
    api: str
    start: Callable[[Ranks, Any], tuple[Any, Any]]
    sums: bool = False
    shared: bool = False
    root: bool = False
    spoil: Callable[[Any, int, int], None] | None = None


def _all_reduce(ranks: Ranks, x: Any) -> tuple[Any, Any]:
    return dist.all_reduce(x, group=ranks.group, async_op=True), x


def _reduce_scatter(ranks: Ranks, x: Any) -> tuple[Any, Any]:
    out = x.new_empty(x.numel() // ranks.world)
    return getattr(dist, _REDUCE_SCATTER)(out, x, group=ranks.group, async_op=True), out


def _reduce(ranks: Ranks, x: Any) -> tuple[Any, Any]:
    return dist.reduce(x, 0, group=ranks.group, async_op=True), x


def _broadcast(ranks: Ranks, x: Any) -> tuple[Any, Any]:
    return dist.broadcast(x, 0, group=ranks.group, async_op=True), x


def _all_gather(ranks: Ranks, x: Any) -> tuple[Any, Any]:
    part = x[: x.numel() // ranks.world].clone()
    out = x.new_empty(ranks.world, part.numel())
    return dist.all_gather(list(out.unbind(0)), part, group=ranks.group, async_op=True), out


def _all_to_all(ranks: Ranks, x: Any) -> tuple[Any, Any]:
    out = torch.empty_like(x)
    return dist.all_to_all_single(out, x, group=ranks.group, async_op=True), out


# torch 2.13 renamed it and warns of the older name.
_REDUCE_SCATTER = (
    "reduce_scatter_single" if hasattr(dist, "reduce_scatter_single") else "reduce_scatter_tensor"
)

_API = "torch.distributed."
BROADCAST = Op("broadcast", f"{_API}broadcast", _broadcast, shared=True)
OPS = (
    BROADCAST,
    Op("all_gather", f"{_API}all_gather", _all_gather, shared=True),
    Op("all_to_all", f"{_API}all_to_all_single", _all_to_all),
    Op("all_reduce", f"{_API}all_reduce", _all_reduce, sums=True, shared=True),
    Op("reduce_scatter", f"{_API}{_REDUCE_SCATTER}", _reduce_scatter, sums=True),
    Op("reduce", f"{_API}reduce", _reduce, sums=True, root=True),
)
"""Controls first: what only moves data must be equal."""


def _flip(result: Any) -> None:
    """Change the last bit of the last element."""
    result.view(torch.int32)[-1] ^= 1


def _flip_in_a_run(result: Any, rank: int, run: int) -> None:
    if rank == 0 and run == 1:
        _flip(result)


def _flip_on_a_rank(result: Any, rank: int, run: int) -> None:
    if rank == 1:
        _flip(result)


NEGATIVE_CONTROLS = (
    (BROADCAST._replace(name="broadcast, one bit changed on rank 0 in run 2", spoil=_flip_in_a_run), "runs"),
    (
        BROADCAST._replace(name="broadcast, one bit changed on rank 1 in all runs", spoil=_flip_on_a_rank),
        RANKS,
    ),
)
"""Float32 only. With each: what must be seen to differ, the runs or the ranks."""


class _Note(NamedTuple):
    """What a rank tells of a step: the digest and the shape of its result (empty: it holds none), its distance
    to an earlier one; or what went wrong, after how many seconds, and whether that was silence."""

    digest: str = ""
    shape: tuple[int, ...] = ()
    distance: Distance | None = None
    error: str = ""
    seconds: float = 0.0
    silence: bool = False


def digest_of(array: Array) -> str:
    """SHA-256 of dtype, shape and bytes."""
    return array.digest


def run_to_run(measurement: Measurement) -> int:
    """The largest number of distinct results that a rank had over the runs."""
    return max((o.distinct for o in measurement.outputs if o.name != RANKS), default=0)


def rank_to_rank(measurement: Measurement) -> int | None:
    """The largest number of distinct results that the ranks had in one run. None: they need not agree."""
    return next((o.distinct for o in measurement.outputs if o.name == RANKS), None)


def probe(
    ranks: Ranks,
    op: Op,
    dtype: str,
    elements: int,
    runs: int,
    seed: int,
    digest: Callable[[Array], str] = digest_of,
) -> Measurement:
    """Run a collective on the same inputs ``runs`` times; all ranks call this and get the same answer.

    ``elements``: of the input of a rank, for all_gather of the result; made a multiple of the number of ranks.
    No result is held against a sum computed elsewhere: another order is no difference between runs. An error
    on any rank ends the probe on all of them, and the process group is made anew. Raises Lost.
    """
    about = not_run(ranks, op, dtype, elements)
    elements = about.sizes["x"][0]
    x: Any = None
    first: Array | None = None
    result: Any = None

    def once(run: int) -> _Note:
        nonlocal x, first, result
        x = inputs(ranks, dtype, elements, seed) if x is None else x
        work, result = op.start(ranks, x.clone())
        ranks.finish(work)
        if op.spoil:
            op.spoil(result, ranks.rank, run)
        if op.root and ranks.rank:
            return _Note()
        array = to_array(result)
        first = first or array
        return _Note(digest=digest(array), shape=array.shape, distance=distance(first, array))

    what = f"{op.name} of {elements} {dtype}"
    seen: list[list[_Note]] = []
    across: list[_Note] = []
    for run in range(runs):
        notes, reason = _step(ranks, what, partial(once, run))
        if op.shared and not reason and len({n.digest for n in notes}) > 1:
            apart, reason = _step(ranks, what, lambda: _Note(distance=_from_rank_0(ranks, result)))
            across += apart
        if reason:
            return msgspec.structs.replace(about, reason=reason, runs=run)
        seen.append(notes)
    outputs = [
        _output(f"rank{rank}", dtype, [notes[rank] for notes in seen], len({n[rank].digest for n in seen}))
        for rank in range(ranks.world)
        if seen[0][rank].digest
    ]
    if op.shared:
        distinct = max(len({n.digest for n in notes}) for notes in seen)
        outputs.append(_output(RANKS, dtype, [*across, *seen[0]], distinct))
    outcome = DIFFERS if any(o.distinct > 1 for o in outputs) else EQUAL
    return msgspec.structs.replace(about, outcome=outcome, runs=runs, outputs=tuple(outputs))


def not_run(ranks: Ranks, op: Op, dtype: str, elements: int, reason: str = "") -> Measurement:
    """What is known of a measurement before it was made, or when it could not be."""
    return Measurement(
        recipe=f"{op.name}_sum" if op.sums else op.name,
        api=op.api,
        library="torch",
        phase="forward",
        dtype=dtype,
        outcome=NOT_RUN,
        reason=reason,
        sizes={"x": (-(-elements // ranks.world) * ranks.world,)},
    )


def inputs(ranks: Ranks, dtype: str, elements: int, seed: int) -> Any:
    """What a rank puts in: normal * 10**U(-3, 3), so that the order of a sum shows, different on each rank."""
    generator = torch.Generator().manual_seed(seed * ranks.world + ranks.rank)
    magnitude = 10 ** (torch.rand(elements, generator=generator) * 6 - 3)
    values = torch.randn(elements, generator=generator) * magnitude
    return values.to(getattr(torch, dtype)).to(ranks.device)


def to_array(tensor: Any) -> Array:
    """A tensor's bytes on the host."""
    host = tensor.detach().cpu().contiguous()
    data = host.reshape(-1).view(torch.uint8).numpy().tobytes()
    return Array(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), data)


def _from_rank_0(ranks: Ranks, result: Any) -> Distance:
    """How far a result that the ranks should share is from that of rank 0."""
    other = result.clone()
    ranks.finish(dist.broadcast(other, 0, group=ranks.group, async_op=True))
    return distance(to_array(other), to_array(result))


def _step(ranks: Ranks, what: str, call: Callable[[], _Note]) -> tuple[list[_Note], str]:
    """Do one thing on all ranks: what each of them tells, and why it failed (empty where it did not).

    After a failure the ranks are out of step: the process group is made anew. With NCCL a collective that
    gave no answer still occupies the device. Raises Lost then.
    """
    start = time.monotonic()
    try:
        with ranks.watch(what):
            note = call()
    except Lost:
        raise
    except Exception as error:
        seconds = time.monotonic() - start
        silence = isinstance(error, NoAnswer) or seconds >= ranks.timeout
        note = _Note(error=first_line(error), seconds=seconds, silence=silence)
    notes = ranks.exchange(note, time.monotonic() - start)
    failed = [(n.seconds, rank, n) for rank, n in enumerate(notes) if n.error]
    if not failed:
        return notes, ""
    # Where one rank fails at once, the others wait for it in vain: the first to fail knows why.
    _, rank, cause = min(failed)
    alike = len(failed) == ranks.world and len({n.error for n in notes}) == 1
    reason = cause.error if alike else f"rank {rank}: {cause.error}"
    if cause.silence:
        reason = f"no answer in {ranks.timeout:g} s" + ("" if "no answer" in cause.error else f" ({reason})")
    if ranks.backend == "nccl" and any(n.silence for n in notes):
        raise Lost(f"{what}: {reason}; NCCL cannot go on after that")
    ranks.renew()
    return notes, reason


def _output(name: str, dtype: str, notes: Sequence[_Note], distinct: int) -> Output:
    """One output, with the largest of the distances that were reported."""
    found = [n.distance for n in notes if n.distance]
    shape = next((n.shape for n in notes if n.shape), ())
    return Output(
        name=name,
        dtype=dtype,
        shape=shape,
        distinct=distinct,
        v_ermv=max((d.v_ermv for d in found if d.v_ermv is not None), default=None),
        v_c=max((d.v_c for d in found), default=0.0),
        ulp=max((d.ulp for d in found if d.ulp is not None), default=None),
    )
