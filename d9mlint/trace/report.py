"""Text and JSON of what ``trace`` found. No framework is imported here."""

from __future__ import annotations

import json
import os
from typing import Any

from d9mlint.trace.compare import Difference, Frame, Side
from d9mlint.trace.curve import by_step
from d9mlint.trace.facts import CUBLAS, fact
from d9mlint.trace.journal import BACKWARD, COMPILED
from d9mlint.trace.model import DIVERGED, EQUAL, Replayed, Report
from d9mlint.trace.resume import Item, Resume

VERDICTS = {
    "op": "the result of this operation differs between the runs, and its inputs are equal",
    "rng": "random numbers differ between the runs",
    "input": "the data differs between the runs",
    "scalar": "a Python number that an operation receives differs between the runs",
    "uninitialized": "memory is read that was never written",
    "structure": "the runs execute different operations",
    "collective": "the result of a collective differs",
    "state": "the resumed run does not continue with the state of the uninterrupted run",
}


CONFIRMED = "this operation gives different results for the same inputs"
"""What is said instead where replays of an operation differ: two runs alone do not show where the cause is."""

REMEDIES = {
    "hash seed": "iterate over sorted(...) instead of the set",
    "addresses": "iterate over a list or a dict instead of the set of objects",
    "listing": "sort the listing: sorted(os.listdir(...))",
    "clock": "take the value from an option instead of the clock",
    "entropy": "seed the generator; write to data nothing that comes from uuid4(), secrets, or os.urandom()",
    "seed": "use a fixed number, or make the seed an option and log it",
    "op": "enable deterministic mode, or use an operation that has no race",
    "op not confirmed": "compare runs on one thread and runs in deterministic mode; check for uninitialized memory",
    "rng": "seed the generator before its first use",
    "input": "give the data a fixed order",
    "scalar": "find out where this number comes from: a clock, a race, an unordered container",
    "uninitialized": "write to the memory before it is read: torch.zeros instead of torch.empty",
    "structure": "find out which condition or loop depends on something that differs between runs",
    "collective": "compare the inputs of the ranks; fix the algorithm and the order of reduction",
    "state": "save the missing state in the checkpoint and restore it when resuming",
}


def text(report: Report) -> str:
    """The report for a terminal."""
    if report.outcome == EQUAL:
        return _equal(report)
    if report.outcome != DIVERGED or report.difference is None:
        return f"could not tell: {report.reason}\n{_output(report)}"
    difference = report.difference
    side = difference.side
    lines = [headline(report)]
    lines += _frame(difference.place, report)
    lines.append(f"  {what(difference)}")
    lines.append(f"  {difference.reason}")
    if difference.cause is not None:
        lines.append(f"  {difference.cause.text}")
    if side.flags & BACKWARD and side.forward:
        lines.append("note: this is the backward operation of the line above")
    lines += called(difference)
    for name, one in (("first run: ", difference.first), ("second run:", difference.second)):
        lines.append(f"note: {name} {_side(one)}")
    lines += facts(report)
    lines += _finding(report)
    advice = remedy(report)
    if advice and (report.finding is None or not report.finding.help):
        lines.append(f"help: {advice}")
    known = fact(report)
    if known:
        lines.append("note: the linter does not report this line; with this fact it does:")
        lines += [f"  {line}" for line in known.splitlines()]
    lines.append(_count(report))
    return "\n".join(lines) + "\n"


def headline(report: Report) -> str:
    """The first line of the report of a difference."""
    difference = report.difference
    assert difference is not None
    meaning = VERDICTS[difference.verdict]
    if difference.verdict == "op" and difference.side.kind == "state":
        meaning = "a value of the training step differs"
    elif difference.verdict == "op" and confirmed(report):
        meaning = CONFIRMED
    return f"diverged: {difference.verdict}: {meaning}"


def confirmed(report: Report) -> bool | None:
    """Whether replays of the operation on its inputs differ; None where there were none."""
    found = report.confirmation
    return None if found is None or found["raises"] else found["distinct"] > 1


def facts(report: Report) -> list[str]:
    """What is known beside the difference itself: further runs, replays, how it grows."""
    lines: list[str] = []
    if report.eager is not None:
        found = report.eager
        frame = found.place[0] if found.place else None
        where = f" at {shown(frame.filename)}:{frame.row} in {frame.function}" if frame else ""
        lines.append(f"note: without torch.compile: {found.verdict}: `{found.side.name}`{where}")
    lines += _resume(report)
    lines += _confirmation(report)
    for lane in report.lanes:
        if report.difference is not None and lane[:2] == (
            report.difference.process,
            report.difference.stream,
        ):
            steps = [f"step {n}: {differing} of {records}" for n, records, differing in by_step(lane)]
            lines.append(f"note: records that differ: {'; '.join(steps[:12])}")
    return lines


def remedy(report: Report) -> str:
    """What to do about a difference: the help of the static finding, or what the verdict asks for."""
    difference = report.difference
    if difference is None:
        return ""
    if report.finding is not None and (report.finding.fix or report.finding.help):
        return report.finding.fix or report.finding.help
    if report.advice:
        return report.advice
    kind = difference.cause.kind if difference.cause is not None else ""
    if kind in REMEDIES:
        return REMEDIES[kind]
    if difference.verdict == "op" and report.confirmation is not None:
        mode = report.confirmation["deterministic"]
        if mode["raises"] and CUBLAS in mode["raises"]:
            return f"set {CUBLAS}=:4096:8 in the environment and enable deterministic mode"
        if mode["raises"]:
            return "replace the operation, which has no deterministic implementation"
        if mode["distinct"] > 1:
            return "replace the operation, which differs in deterministic mode too"
        if confirmed(report) is False:
            return REMEDIES["op not confirmed"]
    return REMEDIES.get(difference.verdict, "")


def _equal(report: Report) -> str:
    first = report.runs[0]
    steps = f"{first.steps} optimizer step{'' if first.steps == 1 else 's'}"
    lines = [f"equal: {first.operations} records in {steps}, level {report.level}"]
    lines += [f"note: {note}" for note in report.notes]
    return "\n".join(lines) + "\n"


def _frame(place: tuple[Frame, ...], report: Report) -> list[str]:
    if not place:
        return ["  --> (no line of the program)"]
    frame = place[0]
    lines = [f"  --> {shown(frame.filename)}:{frame.row} in {frame.function}"]
    source = report.sources.get(f"{frame.filename}:{frame.row}")
    if source:
        number = str(frame.row)
        lines += [f"  {' ' * len(number)} |", f"  {number} | {source}", f"  {' ' * len(number)} |"]
    return lines


def what(difference: Difference) -> str:
    """The record that differs, in words."""
    side = difference.side
    where = f"optimizer step {difference.step}"
    process = difference.process.removesuffix(" (TensorFlow)")
    if process not in ("", "main"):
        where += f", process {process}"
    if difference.stream not in ("", "main"):
        where += f", thread {difference.stream}"
    name = side.name if "`" in side.name else f"`{side.name}`"
    return f"{side.kind} {name} {side.shape} in {where}".replace("  ", " ")


def called(difference: Difference) -> list[str]:
    """The call path, as notes."""
    lines = []
    if difference.place != difference.side.path and difference.side.path:
        frame = difference.side.path[0]
        lines.append(f"note: first seen at {shown(frame.filename)}:{frame.row} in {frame.function}")
    for frame in difference.place[1:]:
        lines.append(f"note: called at {shown(frame.filename)}:{frame.row} in {frame.function}")
    return lines


def _side(side: Side | None) -> str:
    if side is None:
        return "nothing here"
    arguments = f" ({side.args})" if side.args else ""
    return f"{side.name} {side.shape}{arguments} digest {side.digest}".replace("  ", " ")


def _resume(report: Report) -> list[str]:
    resume = report.resume
    notes = [f"note: {note}" for note in report.notes]
    if resume is None:
        return notes
    lines = [
        *notes,
        f"note: ended after step {resume.step}, resumed from the state after step {resume.checkpoint}",
    ]
    if resume.loaded:
        frame = resume.loaded[0]
        lines.append(f"note: the checkpoint is read at {shown(frame.filename)}:{frame.row}")
    lines += [f"note: differs at this step: {one.kind}: {one.name}{_pair(one)}" for one in resume.items[:20]]
    if len(resume.items) > 20:
        lines.append(f"note: and {len(resume.items) - 20} more")
    return lines


def _pair(item: Item) -> str:
    return f" ({item.first} and {item.second})" if item.first and item.second else ""


def _confirmation(report: Report) -> list[str]:
    found = report.confirmation
    if found is None:
        difference = report.difference
        if difference is None or difference.side.flags & COMPILED:
            return []
        if difference.verdict == "op" and report.level == "full":
            return ["note: not confirmed: a further run did not reach this operation"]
        return []
    lines = []
    if found["raises"]:
        lines.append(f"note: repeating the operation raises {found['raises']}")
    elif found["distinct"] > 1:
        lines.append(f"confirmed: {found['distinct']} distinct results in {found['runs']} replays")
        lines += [f"note: {_distance(output)}" for output in found["outputs"] if output["distinct"] > 1]
        if found.get("values"):
            index, (one, other) = found["values"]["index"], found["values"]["values"]
            lines.append(f"note: element {index} is {one} and {other}")
    else:
        lines.append(
            f"note: not confirmed: equal in {found['runs']} replays on the same inputs in one process"
        )
        lines.append(
            "note: possible causes: the number or timing of threads, memory that the operation does not initialize, "
            "state inside the operation"
        )
    mode = found["deterministic"]
    if mode["raises"]:
        lines.append(f"note: in deterministic mode: raises {mode['raises']}")
    elif not confirmed(report):
        # Equal without it too: nothing follows from that.
        pass
    elif mode["distinct"] == 1:
        lines.append(f"note: in deterministic mode: equal in {found['runs']} replays")
    else:
        lines.append(f"note: in deterministic mode: {mode['distinct']} distinct results")
    return lines


def _distance(output: dict[str, Any]) -> str:
    parts = [f"{output['dtype']}{output['shape']}"]
    if output["v_ermv"] is not None:
        parts.append(f"V_ermv {output['v_ermv']:.3g}")
    parts.append(f"V_c {output['v_c']:.3g}")
    if output["ulp"] is not None:
        parts.append(f"largest distance {output['ulp']} ulp")
    return ", ".join(parts)


def _finding(report: Report) -> list[str]:
    found = report.finding
    if found is None:
        return []
    lines = [f"{found.code} {found.message}", f"  --> {shown(found.filename)}:{found.row}"]
    if found.fix:
        lines.append(f"fix: {found.fix}")
    if found.help:
        lines.append(f"help: {found.help}")
    return lines


def _count(report: Report) -> str:
    codes = [
        f"{r.exit_code}" if r.exit_code is not None else "stopped at the difference" for r in report.runs
    ]
    return f"note: exit status of the program: {', '.join(codes)}"


def _output(report: Report) -> str:
    if len(report.runs) < 2 or not report.runs[1].output_tail.strip():
        return ""
    shown_lines = report.runs[1].output_tail.strip().splitlines()[-10:]
    return "output of the second run:\n" + "".join(f"  {line}\n" for line in shown_lines)


def shown(path: str) -> str:
    """A path relative to the working directory where it is inside of it."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def as_json(report: Report) -> str:
    """The report as one JSON object."""
    return json.dumps(as_dict(report), indent=2) + "\n"


def as_dict(report: Report) -> dict[str, Any]:
    """The fields of the JSON report."""
    difference = report.difference
    return {
        "outcome": report.outcome,
        "headline": None if difference is None else headline(report),
        "reason": report.reason or None,
        "command": list(report.command),
        "level": report.level,
        "difference": None if difference is None else _difference(difference),
        "confirmed": confirmed(report),
        "confirmation": report.confirmation,
        "without_compile": None if report.eager is None else _difference(report.eager),
        "remedy": remedy(report) or None,
        "fact": fact(report) or None,
        "curve": [
            {"process": lane.process, "thread": lane.stream, "bins": [one._asdict() for one in lane.bins]}
            for lane in report.lanes
        ],
        "finding": report.finding._asdict() if report.finding is not None else None,
        "resume": None if report.resume is None else _resume_dict(report.resume),
        "runs": [run._asdict() for run in report.runs],
        "notes": list(report.notes),
    }


def _resume_dict(resume: Resume) -> dict[str, Any]:
    return {
        "step": resume.step,
        "checkpoint_step": resume.checkpoint,
        "steps_compared": resume.compared,
        "saved": [frame._asdict() for frame in resume.saved],
        "loaded": [frame._asdict() for frame in resume.loaded],
        "differs": [item._asdict() for item in resume.items],
    }


def _difference(difference: Difference) -> dict[str, Any]:
    cause = difference.cause
    return {
        "verdict": difference.verdict,
        "reason": difference.reason,
        "step": difference.step,
        "process": difference.process,
        "thread": difference.stream,
        "place": [frame._asdict() for frame in difference.place],
        "cause": None
        if cause is None
        else {"kind": cause.kind, "text": cause.text, "path": [frame._asdict() for frame in cause.path]},
        "first": _side_dict(difference.first),
        "second": _side_dict(difference.second),
    }


def _side_dict(side: Side | None) -> dict[str, Any] | None:
    if side is None:
        return None
    return {
        "kind": side.kind,
        "name": side.name,
        "shape": side.shape,
        "args": side.args,
        "digest": side.digest,
        "path": [frame._asdict() for frame in side.path],
        "forward": [frame._asdict() for frame in side.forward],
        "backward": bool(side.flags & BACKWARD),
    }


def replayed(found: Replayed) -> str:
    """The operations that ``--replay`` found, for a terminal."""
    lines = [
        f"{len(found.sites)} of the operations differ when they are executed again ({found.operations} replayed)"
    ]
    for site in found.sites:
        place = site.forward or site.path
        where = f"{shown(place[0].filename)}:{place[0].row} in {place[0].function}" if place else "(no line)"
        kind = "backward of " if site.forward else ""
        lines.append(
            f"{where}: {kind}`{site.name}` differs {site.times} times, first in step {site.first_step}"
        )
        lines += [f"note: called at {shown(f.filename)}:{f.row} in {f.function}" for f in place[1:]]
    if found.reason:
        lines.append(f"note: incomplete: {found.reason}")
    return "\n".join(lines) + "\n"


def replayed_json(found: Replayed) -> str:
    """The same as one JSON object."""
    sites = [
        {
            **site._asdict(),
            "path": [frame._asdict() for frame in site.path],
            "forward": [frame._asdict() for frame in site.forward],
        }
        for site in found.sites
    ]
    return json.dumps({**found._asdict(), "sites": sites, "reason": found.reason or None}, indent=2) + "\n"
