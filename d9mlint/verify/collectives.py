"""Do collectives give the same bits in every run and on every rank? Run under torchrun, one process a rank.

``torchrun --nproc-per-node N -m d9mlint.verify --collectives``. All ranks do the same; rank 0 prints and writes
the evidence. Exit codes: 0 measured, whatever was found; 2 not measured, or a control failed (torchrun
itself ends with 1 whenever a process ends with another code than 0).
"""

from __future__ import annotations

import os
import platform
import signal
import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from d9mlint import __version__
from d9mlint.base.errors import UsageError
from d9mlint.evidence.model import (
    DIFFERS,
    EQUAL,
    NOT_RUN,
    Control,
    Evidence,
    Machine,
    Measurement,
    check_writable,
    write,
)
from d9mlint.verify.hardware import driver, processor

if TYPE_CHECKING:
    from d9mlint.verify.collective_ops import Op
    from d9mlint.verify.compare import Array
    from d9mlint.verify.ranks import Ranks

_PROGRAM = "d9mlint.verify --collectives"
THOROUGH = 30
DTYPES = ("float32", "bfloat16", "float16")
SIZES = (1 << 10, 1 << 16, 1 << 20)
LARGE = 1 << 24
"""Elements; the last on CUDA only."""

VARIABLES = (
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_NVLS_ENABLE",
    "NCCL_COLLNET_ENABLE",
    "NCCL_MIN_NCHANNELS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_NTHREADS",
    "NCCL_P2P_DISABLE",
)
"""What fixes or moves the way that NCCL sums: recorded in the evidence where set."""


class Options(NamedTuple):
    """What is asked for. ``device``: ``cuda`` or ``cpu``; ``timeout``: seconds a collective may take."""

    device: str = "cuda"
    runs: int = 5
    seed: int = 0
    timeout: float = 120.0
    evidence: Path | None = None
    require_device: bool = False


class Plan(NamedTuple):
    """What is run. None for what the module itself has: its ops, the sizes for the device, SHA-256."""

    ops: tuple[Op, ...] | None = None
    sizes: tuple[int, ...] | None = None
    dtypes: tuple[str, ...] = DTYPES
    digest: Callable[[Array], str] | None = None


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--device", type=click.Choice(["cuda", "cpu"]), default="cuda", show_default=True)
@click.option("--require-device", is_flag=True, help="Fail if --device cuda is not available.")
@click.option(
    "--runs", type=click.IntRange(2), help=f"Runs of each collective [default: 5, thorough: {THOROUGH}]."
)
@click.option("--thorough", is_flag=True, help="More runs.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "--timeout",
    type=click.FloatRange(1),
    default=120.0,
    show_default=True,
    help="Seconds a collective may take.",
)
@click.option("--evidence", type=click.Path(path_type=Path), help="Write what was measured to this file.")
def _command(
    device: str,
    require_device: bool,
    runs: int | None,
    thorough: bool,
    seed: int,
    timeout: float,
    evidence: Path | None,
) -> int:
    """Compare collectives run to run and rank to rank; under torchrun."""
    runs = runs or (THOROUGH if thorough else Options().runs)
    return run(Options(device, runs, seed, timeout, evidence, require_device))


def main(arguments: Sequence[str]) -> int:
    """Run with the arguments of the command line and return the exit code."""
    try:
        code = _command.main(list(arguments), prog_name=_PROGRAM, standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        return _refuse(error.format_message())
    except click.Abort:
        _refuse("Interrupted.")
        return _end_now(130)


def run(options: Options, plan: Plan | None = None) -> int:
    """Probe the collectives as one rank of a torchrun job and return the exit code."""
    world = os.environ.get("WORLD_SIZE", "")
    if not world or "RANK" not in os.environ:
        return _refuse(f"Collectives need several processes, started by torchrun.\n{_command_line(3)}")
    if world == "1":
        return _refuse(f"A single process has nothing to exchange.\n{_command_line(3)}")
    try:
        import torch.distributed as dist

        from d9mlint.verify import compare  # noqa: F401
    except ImportError as error:
        return _refuse(f"Collectives need PyTorch and NumPy: {error}.")
    if not dist.is_available():
        return _refuse("This build of PyTorch has no torch.distributed.")
    from d9mlint.verify.ranks import Lost, Ranks

    if options.evidence and os.environ["RANK"] == "0":
        try:
            check_writable(options.evidence)
        except UsageError as error:
            return _refuse(str(error))

    def stopped(number: int, frame: object) -> None:
        # Once: what is known by now is still to be reported.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Lost("torchrun stopped all ranks, as it does when one of them ends")

    signal.signal(signal.SIGTERM, stopped)
    try:
        ranks = Ranks(options.device, options.timeout)
    except Lost as error:
        _refuse(f"Not run: {error}.", everywhere=True)
        # A process group that was never made, or only in part, may wait for the others without end.
        return _end_now(2)
    if options.require_device and ranks.backend != "nccl":
        code = _refuse(f"Not run: {_device_missing(options, ranks)}.")
        return ranks.leave(code)
    code, whole = _session(ranks, options, plan or Plan())
    code = ranks.leave(code)
    # From here on nothing is lost: an exception of a signal inside of a destructor would abort this rank when
    # torchrun stops it because another one has ended first.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if whole:
        dist.destroy_process_group()
    return _end_now(code)


def _session(ranks: Ranks, options: Options, plan: Plan) -> tuple[int, bool]:
    """Controls and probes: the exit code, and whether the ranks got through to the end."""
    from d9mlint.verify.ranks import Lost

    say: Callable[[str], None] = _say if ranks.rank == 0 else _nothing
    controls: list[Control] = []
    measured: list[Measurement] = []
    machine: Machine | None = None
    lost = ""
    try:
        machine = _machine(ranks)
        say(_heading(options, ranks, machine))
        _measure(ranks, options, plan, say, controls, measured)
    except Lost as error:
        lost = str(error)
    evidence = Evidence(
        tool=f"d9mlint {__version__}",
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        runs=options.runs,
        seed=options.seed,
        timeout=options.timeout,
        machines=(machine,) if machine else (),
        controls=tuple(controls),
        measurements=tuple(measured),
    )
    say(_ending(evidence, lost))
    code = 0 if evidence.controls_passed and not lost else 2
    if options.evidence and ranks.rank == 0:
        try:
            write(options.evidence, evidence)
        except UsageError as error:
            code = _refuse(str(error))
    return code, not lost


def _measure(
    ranks: Ranks,
    options: Options,
    plan: Plan,
    say: Callable[[str], None],
    controls: list[Control],
    measured: list[Measurement],
) -> None:
    """Fill ``controls`` and ``measured``, telling each line as soon as it is known. Raises Lost."""
    from d9mlint.verify import collective_ops as co
    from d9mlint.verify.ranks import Lost

    sizes = plan.sizes or (SIZES if ranks.backend == "gloo" else (*SIZES, LARGE))

    def probe(op: Op, dtype: str, size: int) -> Measurement:
        return co.probe(ranks, op, dtype, size, options.runs, options.seed, plan.digest or co.digest_of)

    for op, what in co.NEGATIVE_CONTROLS:
        found = probe(op, "float32", sizes[-1])
        distinct = co.rank_to_rank(found) if what == co.RANKS else co.run_to_run(found)
        outcome = NOT_RUN if found.outcome == NOT_RUN else DIFFERS if (distinct or 0) > 1 else EQUAL
        controls.append(Control(recipe=op.name, expected=DIFFERS, outcome=outcome, detail=found.reason))
    say(_row("collective", "dtype", "elements", "run to run", "rank to rank"))
    ops = co.OPS if plan.ops is None else plan.ops
    lines = [(op, dtype, size) for op in ops for dtype in plan.dtypes for size in sizes]
    for number, (op, dtype, size) in enumerate(lines):
        try:
            found = probe(op, dtype, size)
        except Lost as error:
            measured.append(co.not_run(ranks, op, dtype, size, str(error)))
            say(_line(op, measured[-1], ranks.world))
            rest = lines[number + 1 :]
            measured += [co.not_run(ranks, *line, "the session ended before it") for line in rest]
            raise
        measured.append(found)
        say(_line(op, found, ranks.world))
        if not op.sums and (number + 1 == len(lines) or lines[number + 1][0] != op):
            controls += _positive(op, measured[-len(plan.dtypes) * len(sizes) :])


def _positive(op: Op, lines: Sequence[Measurement]) -> list[Control]:
    """The control that an op makes which only moves data: all of its lines are equal. None where a backend
    lacks one whose result the ranks need not share."""
    outcomes = {m.outcome for m in lines}
    outcome = DIFFERS if DIFFERS in outcomes else EQUAL if EQUAL in outcomes else NOT_RUN
    if outcome == NOT_RUN and not op.shared:
        return []
    bad = next((m for m in lines if m.outcome == outcome != EQUAL), None)
    detail = f"{bad.dtype}, {bad.sizes['x'][0]} elements. {bad.reason}".strip() if bad else ""
    return [Control(recipe=op.name, expected=EQUAL, outcome=outcome, detail=detail)]


def _machine(ranks: Ranks) -> Machine:
    """Where the ranks run: the devices of all of them, and what rank 0 knows of the rest. Raises Lost."""
    import torch

    name = "CPU"
    versions = {"torch": str(torch.__version__), "python": platform.python_version()}
    if ranks.backend == "nccl":
        name = torch.cuda.get_device_name(ranks.device)
        versions |= {
            "cuda": str(torch.version.cuda or torch.version.hip),
            "driver": driver(),
            "nccl": ".".join(map(str, torch.cuda.nccl.version())),
        }
    else:
        versions["cpu"] = processor()
    versions |= {
        "backend": ranks.backend,
        "world_size": str(ranks.world),
        "ranks_on_this_machine": str(ranks.local_world),
    }
    return Machine(
        library="torch",
        kind=ranks.device.type,
        name=", ".join(dict.fromkeys(ranks.exchange(name))),
        versions=versions | {f"env {v}": os.environ[v] for v in VARIABLES if v in os.environ},
        threads=torch.get_num_threads(),
    )


def _device_missing(options: Options, ranks: Ranks) -> str:
    if options.device == "cpu":
        return "the CPU was asked for"
    return f"{ranks.local_world} ranks on a machine need as many CUDA devices; NCCL can use {ranks.devices}"


def _heading(options: Options, ranks: Ranks, machine: Machine) -> str:
    """What is run, where, and what it cannot show."""
    lines = [
        f"{ranks.world} ranks, {ranks.backend} on {machine.name}, PyTorch {machine.versions['torch']}, "
        f"{options.runs} runs, seed {options.seed}"
    ]
    if ranks.backend == "gloo":
        lines.append(
            f"No NCCL: {_device_missing(options, ranks)}. gloo uses its own summation order; "
            "its results do not apply to NCCL."
        )
    if ranks.world == 2:
        lines.append(
            "Two ranks: a sum of two is the same in either order. "
            "At least 3 ranks are needed to see the order of a sum."
        )
    return "\n".join(lines) + "\n"


def _line(op: Op, found: Measurement, world: int) -> str:
    """A row of the table."""
    from d9mlint.verify.collective_ops import rank_to_rank, run_to_run

    name = op.name if op.sums else f"{op.name} (control)"
    where = (name, found.dtype, str(found.sizes["x"][0]))
    if found.outcome == NOT_RUN:
        return _row(*where, f"not run: {found.reason}", "")
    distinct = run_to_run(found)
    runs = (
        f"{distinct} of {found.runs} distinct" if distinct > 1 else f"equal in {found.runs} runs at this size"
    )
    across = rank_to_rank(found)
    if across is None:
        return _row(*where, runs, "-")
    return _row(*where, runs, f"{across} of {world} distinct" if across > 1 else f"equal on {world} ranks")


def _row(name: str, dtype: str, elements: str, runs: str, ranks: str) -> str:
    return f"{name:<24}{dtype:<10}{elements:>9}  {runs:<31}{ranks}".rstrip()


def _ending(evidence: Evidence, lost: str) -> str:
    """The controls, and what all of it comes to."""
    lines = ["", "controls"]
    for control in evidence.controls:
        word = "passed" if control.passed else "FAILED"
        text = f"{word:<8}{control.recipe}: must be {_WORDS[control.expected]}, was {_WORDS[control.outcome]}"
        lines.append(text + (f" ({control.detail})" if control.detail else ""))
    lines += ["", _summary([m for m in evidence.measurements if m.recipe.endswith("_sum")])]
    if lost:
        lines.append(f"The session ended early: {lost}.")
    if not evidence.controls_passed:
        lines.append("A control failed or was not run: the other lines are not evidence.")
    return "\n".join(lines)


def _summary(sums: Sequence[Measurement]) -> str:
    """How many of the lines with sums differ."""
    from d9mlint.verify.collective_ops import rank_to_rank, run_to_run

    done = [m for m in sums if m.outcome != NOT_RUN]
    shared = [count for m in done if (count := rank_to_rank(m)) is not None]
    text = (
        f"Sums: {sum(run_to_run(m) > 1 for m in done)} of {len(done)} differ between runs, "
        f"{sum(count > 1 for count in shared)} of {len(shared)} between ranks"
    )
    return text + (f"; {len(sums) - len(done)} not run." if len(done) < len(sums) else ".")


_WORDS = {DIFFERS: "different", EQUAL: "equal", NOT_RUN: "not run"}


def _say(text: str) -> None:
    print(text, flush=True)


def _nothing(text: str) -> None:
    """Only rank 0 prints."""


def _command_line(ranks: int) -> str:
    return f"  torchrun --standalone --nproc-per-node {ranks} -m {_PROGRAM}"


def _refuse(text: str, everywhere: bool = False) -> int:
    """Tell why nothing is measured, once and not on each rank."""
    if everywhere or os.environ.get("RANK", "0") == "0":
        print(text, file=sys.stderr, flush=True)
    return 2


def _end_now(code: int) -> int:
    """End without the destructors of process groups: they wait for ranks that will not answer."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
