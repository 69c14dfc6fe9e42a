"""``d9mlint trace``: two runs of a program, and the first operation at which they diverge. No framework is
imported here.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from d9mlint.base.errors import UsageError
from d9mlint.trace.blame import explained
from d9mlint.trace.compare import (
    Difference,
    Unequal,
    first_difference,
    frames,
    pair,
)
from d9mlint.trace.curve import lanes
from d9mlint.trace.journal import COMPILED, Journal, journals
from d9mlint.trace.model import DIVERGED, EQUAL, UNKNOWN, FlakySite, Replayed, Report
from d9mlint.trace.places import source_lines
from d9mlint.trace.program import NONE, SECOND, Perturbation, Program, environment
from d9mlint.trace.resume_session import resumed
from d9mlint.trace.runner import Ended, run
from d9mlint.trace.runs import Options, Session, info, unusable, versions
from d9mlint.trace.watcher import Watcher
from d9mlint.verify.workspace import workspace

PREFIX = "d9mlint-trace-"
"""How the temporary directories of sessions begin."""


def trace(program: Program, options: Options, progress: Callable[[str], None]) -> Report:
    """Run a program twice and compare. Raises UsageError, runner.Interrupted."""
    with workspace(PREFIX) as scratch:
        session = Session(program, options, scratch, progress)
        if options.resume_at:
            return resumed(session, options.resume_at, options.resume_args)
        return _trace(session)


def _trace(session: Session) -> Report:
    one, other = session.directory("first"), session.directory("second")
    options = session.options
    ended = session.first(one)
    first = list(journals(one))
    runs = [info(ended, first)]

    def report(outcome: str, reason: str = "", **more: Any) -> Report:
        return session.report(outcome, runs, reason, versions=versions(first), **more)

    trouble = unusable(one, first, ended, "first")
    if trouble:
        return report(UNKNOWN, trouble)
    watcher = Watcher(first, other)
    until = watcher.grown if options.picture else watcher.diverged
    session.progress("running a second time")
    perturbation = SECOND if options.perturb else NONE
    again, printed = session.further(other, perturbation, until)
    second = list(journals(other))
    runs.append(info(again, second, printed))
    trouble = "" if again.stopped else unusable(other, second, again, "second")
    try:
        difference = first_difference(pair(first, second), complete=not again.stopped and not trouble)
    except Unequal as error:
        return report(UNKNOWN, trouble or str(error))
    if difference is None:
        if trouble:
            return report(UNKNOWN, trouble)
        return report(EQUAL, notes=_equal_notes(first))
    grown = lanes(pair(first, second))
    confirmation = eager = None
    notes: tuple[str, ...] = ()
    more: dict[str, Any] = {}
    if difference.side.flags & COMPILED and difference.side.name.startswith("tf."):
        session.progress("running twice more with functions executed eagerly, to find the line")
        found, *recordings = _eager(session, perturbation)
        if found is not None:
            notes = (f"`{difference.side.name}` differs; found with tf.config.run_functions_eagerly(True)",)
            difference, more = found, {"eager": True}
            first, second = recordings
    elif difference.side.flags & COMPILED:
        session.progress("running twice more without torch.compile, to find the line")
        eager = _eager(session, perturbation)[0]
    if difference.side.flags & COMPILED:
        pass
    elif difference.verdict == "op" and options.confirm and options.level == "full":
        session.progress("running up to the difference again, to repeat the operation")
        difference, confirmation = confirmed(session, difference, perturbation, more)
    difference = explained(session, first, second, difference, more)
    return report(
        DIVERGED,
        difference=difference,
        confirmation=confirmation,
        eager=eager,
        lanes=grown,
        notes=notes,
        sources=source_lines(difference),
    )


def _equal_notes(first: Sequence[Journal]) -> tuple[str, ...]:
    ended = [j for j in first if (j.end or {}).get("ended") == "steps"]
    return (f"both runs were ended after {ended[0].end['steps']} steps",) if ended and ended[0].end else ()


def _eager(
    session: Session, perturbation: Perturbation
) -> tuple[Difference | None, list[Journal], list[Journal]]:
    """Where two runs without torch.compile and with eager tf.functions diverge, if they do; and their
    recordings."""
    one, other = session.directory("eager1"), session.directory("eager2")
    environment = {"TORCHDYNAMO_DISABLE": "1"}
    session.further(one, NONE, env=environment, eager=True)
    first = list(journals(one))
    session.further(other, perturbation, Watcher(first, other).diverged, env=environment, eager=True)
    second = list(journals(other))
    try:
        return first_difference(pair(first, second), complete=False), first, second
    except Unequal:
        return None, first, second


def confirmed(
    session: Session, difference: Difference, perturbation: Perturbation, more: Mapping[str, Any]
) -> tuple[Difference, dict[str, Any] | None]:
    """Repeat the operation of a difference on its inputs, in a further run."""
    found = _confirmation(session, difference, perturbation, "confirm1", more)
    if found is None or found["distinct"] != 1:
        return difference, found
    # Equal in every replay: perhaps its inputs were changed behind the tracer's back.
    other = _confirmation(session, difference, NONE, "confirm2", more)
    if other is not None:
        changed = [
            a["name"]
            for a, b in zip(found["inputs"], other["inputs"], strict=False)
            if a["digest"] != b["digest"]
        ]
        if changed:
            reason = (
                f"the operation reads `{changed[0]}`, which differs although no recorded operation wrote it"
            )
            return difference._replace(verdict="input", reason=reason), None
    return difference, found


def _confirmation(
    session: Session,
    difference: Difference,
    perturbation: Perturbation,
    name: str,
    more: Mapping[str, Any],
) -> dict[str, Any] | None:
    directory = session.directory(name)
    path = os.path.join(directory, "confirmation.json")
    target = {
        "process": difference.process,
        "stream": difference.stream,
        "ordinal": difference.ordinal,
        "name": difference.side.name,
    }
    session.further(
        directory,
        perturbation,
        lambda: os.path.exists(path),
        **{**more, "target": target, "confirmation": path, "steps": 0},
    )
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as stream:
        result: dict[str, Any] = json.load(stream)
    return result


def record(program: Program, options: Options, directory: str) -> int:
    """Run a program once and keep the recording; returns the program's exit code. Raises UsageError."""
    if os.path.exists(directory) and os.listdir(directory):
        raise UsageError(f"{directory} is not empty.")
    os.makedirs(directory, exist_ok=True)
    directory = os.path.abspath(directory)
    settings = Session(program, options, directory, lambda _: None).settings(directory)
    env = environment(settings, os.path.join(directory, "settings.json"), NONE, os.environ)
    ended = run(program.command, env=env, cwd=os.getcwd(), left_alone=True)
    with open(os.path.join(directory, "run.json"), "w", encoding="utf-8") as stream:
        json.dump({"command": program.command, "exit_code": ended.code, "level": options.level}, stream)
    return shell_code(ended.code)


def replay(program: Program, options: Options) -> Replayed:
    """Run a program once with every operation executed twice. Raises runner.Interrupted."""
    with workspace(PREFIX) as scratch:
        session = Session(program, options, scratch, say)
        directory = session.directory("replay")
        settings = session.settings(directory, replay=True)
        env = environment(settings, os.path.join(scratch, "replay.json"), NONE, os.environ)
        ended = run(program.command, env=env, cwd=session.cwd, left_alone=True)
        found = list(journals(directory))
        events = [(j, e) for j in found for e in j.events if "flaky" in e]
        sites = [
            FlakySite(
                one["name"],
                frames(one["path"]),
                frames(one["forward"]),
                str(j.header.get("key", "")),
                one["count"],
                one["first_step"],
            )
            for j, event in events
            for one in event["flaky"]
        ]
        count = sum(event["replayed"] for _, event in events)
        reason = unusable(directory, found, ended, "traced")
        return Replayed(shell_code(ended.code), count, tuple(sites), reason)


def compare(one: str, other: str) -> Report:
    """Compare two recordings. Raises UsageError."""
    found, runs, reasons = [], [], []
    command: tuple[str, ...] = ()
    level = "full"
    for directory, which in ((one, "first"), (other, "second")):
        path = os.path.join(directory, "run.json")
        try:
            with open(path, encoding="utf-8") as stream:
                about = json.load(stream)
        except (OSError, json.JSONDecodeError):
            about = {"command": [], "exit_code": None, "level": "full"}
            if not os.path.isdir(directory):
                raise UsageError(f"{directory} is not a recording.") from None
        recording = list(journals(directory))
        ended = Ended(about["exit_code"] if about["exit_code"] is not None else 1)
        reasons.append(unusable(directory, recording, ended, which))
        runs.append(info(ended, recording))
        found.append(recording)
        command, level = tuple(about["command"]) or command, about["level"]
    trouble = next((reason for reason in reasons if reason), "")
    try:
        difference = first_difference(pair(found[0], found[1]), complete=not trouble)
    except Unequal as error:
        return Report(UNKNOWN, command, level, trouble or str(error), tuple(runs))
    if difference is None:
        return Report(UNKNOWN if trouble else EQUAL, command, level, trouble, tuple(runs))
    source = next((part for part in command if part.endswith(".py")), "")
    return Report(
        DIVERGED,
        command,
        level,
        "",
        tuple(runs),
        difference=difference,
        sources=source_lines(difference),
        versions=versions(found[0]),
        source=os.path.abspath(source) if source and os.path.isfile(source) else "",
    )


def shell_code(code: int) -> int:
    """An exit code as a shell reports it."""
    return 128 - code if code < 0 else code


def say(text: str) -> None:
    """Progress, on standard error where it is a terminal."""
    if sys.stderr.isatty():
        print(f"d9mlint: {text}", file=sys.stderr)
