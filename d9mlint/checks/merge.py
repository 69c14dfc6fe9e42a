"""From the reports of all analysis runs to findings, whatever the order of the reports."""

from __future__ import annotations

from collections.abc import Container, Iterable

import msgspec

from d9mlint.base.entry_report import (
    AND,
    DETERMINISTIC_MODE,
    EVALUATED,
    IF_SAVED,
    LESS_IF_EVALUATED,
    NEVER_CALLS,
    NEVER_LOADS,
    OP_DETERMINISM,
    WORKSPACE,
)
from d9mlint.base.findings import (
    OF_OPS,
    RAISES,
    SWITCHED,
    VARIABLE,
    WARNED,
    WARNS,
    Confidence,
    Finding,
    Severity,
    Step,
)
from d9mlint.base.terminal import listed, shortened
from d9mlint.checks.base import MODE, OP_DETERMINISM_MISSING

MAX_NAMED = 3
"""Entry points that a message names beside the one whose flow is shown."""
_START = "at the start of "
MAX_OPS = 6
"""Ops that a help names."""
_SWITCHES = {SWITCHED: OP_DETERMINISM, MODE: DETERMINISTIC_MODE, VARIABLE: WORKSPACE}
"""Words for remedies, with what programs show that have done so."""


def merge(
    found: Iterable[Iterable[Finding]],
    training: Container[str] = (),
    shown: Container[str] = (),
    trials: Container[str] = (),
) -> list[Finding]:
    """One finding for each place and subject: the most confident, then the most severe, then that of an entry point in
    ``training``, then that of a script before that of a notebook, then that of the first by name. A program comes before
    ``trials``, which only try a module out, also where its finding depends on an option. Other entry points that lead to it
    with the same confidence, or more, are named, and those of which the same is said with less confidence, unless it is mere
    advice for them, of another reason. What the programs of the project have ``shown`` together leaves nothing to report of
    some."""
    groups: dict[tuple[str, str, int, int, str], list[Finding]] = {}
    reports = [list(findings) for findings in found]
    asked = _asked(reports, shown)
    for findings in reports:
        for one in findings:
            if one.entry_point is None and one.scope and not asked.isdisjoint(one.remedy):
                # A function: all programs that may call it have the switch, or are asked for it.
                one = msgspec.structs.replace(one, severity=Severity.ADVICE)
            if one.unless.startswith(IF_SAVED):
                if one.unless not in shown:
                    continue
            elif any(condition in shown for condition in one.unless.split(AND)):
                continue
            if LESS_IF_EVALUATED in one.unless.split(AND) and EVALUATED in shown:
                one = msgspec.structs.replace(one, severity=Severity.ADVICE)
            groups.setdefault((one.code, one.path, one.start, one.end, one.subject), []).append(one)
    # What reads alike is said once, whatever it is about.
    alike: dict[tuple[str, str, int, int, str], list[Finding]] = {}
    for group in map(_going_on, groups.values()):
        best = _best(group, training, trials)
        alike.setdefault((best.code, best.path, best.start, best.end, best.message), []).extend(group)
    return sorted((_joined(group, training, trials) for group in alike.values()), key=lambda f: f.sort_key)


def _going_on(group: list[Finding]) -> list[Finding]:
    """The findings of the programs that go on with what they save, and those of the programs that call a layer, if there
    are such."""
    for condition in (NEVER_LOADS, NEVER_CALLS):
        group = [one for one in group if condition not in one.unless.split(AND)] or group
    return group


def _asked(reports: list[list[Finding]], shown: Container[str]) -> set[str]:
    """The words for remedies that are switches of whole programs which a program of the project has on, or that
    something asks it for."""
    asked = {word for word, switch in _SWITCHES.items() if switch in shown}
    for findings in reports:
        for one in findings:
            if one.code == OP_DETERMINISM_MISSING:
                asked.add(SWITCHED)
            elif one.entry_point and VARIABLE in one.remedy and one.severity is not Severity.ADVICE:
                asked.add(VARIABLE)
    return asked


def _ranked(group: list[Finding], training: Container[str]) -> list[Finding]:
    shown = any(f.severity is not Severity.ADVICE and f.confidence is not Confidence.LOW for f in group)
    return sorted(
        group,
        key=lambda f: (
            # What one program shows is not hidden behind mere advice for another.
            f.severity is Severity.ADVICE and f.confidence is not Confidence.LOW and shown,
            -f.confidence.rank,
            -f.severity.rank,
            f.entry_point not in training,
            *_scripts_first(f.entry_point or "~"),
            f.message,
            f.flow,
        ),
    )


def _scripts_first(entry_point: str) -> tuple[bool, str]:
    """The order in which programs are named: notebooks are the last ones."""
    return entry_point.endswith(".ipynb"), entry_point


def _best(group: list[Finding], training: Container[str], trials: Container[str]) -> Finding:
    ranked = _ranked(group, training)
    best = ranked[0]
    if best.entry_point not in trials:
        return best
    programs = (
        f
        for f in ranked
        if f.entry_point
        and f.entry_point not in trials
        and f.confidence is not Confidence.LOW
        and f.severity.rank >= best.severity.rank
    )
    return next(programs, best)


def _joined(group: list[Finding], training: Container[str], trials: Container[str]) -> Finding:
    best = _of_most_ops(_best(group, training, trials), group)
    message, _, ops = _of_any_program(best).partition(f"; {OF_OPS}")
    sure = {
        f.entry_point
        for f in group
        if f.entry_point
        and (f.confidence.rank >= best.confidence.rank or _is_said_of_program(f, message, ops))
        and (f.severity is not Severity.ADVICE or f.message == best.message)
    }
    others = sorted(sure - {best.entry_point}, key=_scripts_first)
    best = _naming_unchanged(_after_fixing(best, group), group)
    if not others or not best.entry_point:
        return best
    same = {f.entry_point for f in group if _is_said_of(f, message, ops)}
    # What is wrong in another program may be something else: its message says it.
    apart = {f.entry_point or "": f for f in reversed(_ranked(group, training)) if f.entry_point not in same}
    fewer = {f.entry_point or "": f for f in group if not ops and _few_ops(f)}
    notes = [
        Step(f.path, f.start, f.end, text, beside=True)
        for one in others
        if (f := apart.get(one) or fewer.get(one)) is not None
        and (text := _in_program(f) if one in apart else f"when {one} runs, {_few_ops(f)}")
    ][:MAX_NAMED]
    best = msgspec.structs.replace(best, flow=(*best.flow, *notes))
    others = [one for one in others if one not in apart]
    if not others:
        return best
    named = shortened(others, MAX_NAMED)
    verb = "runs" if len(others) == 1 else "run"
    help = _at_each_start(best, [f for f in group if f.entry_point in others])
    return msgspec.structs.replace(best, message=f"{best.message} (also when {named} {verb})", help=help)


def _at_each_start(best: Finding, also: list[Finding]) -> str:
    """The help of a finding that asks for something at the start of its program, where it is needed in others too."""
    starts = {f.entry_point for f in also if f.entry_point and f"{_START}{f.entry_point}" in f.help}
    if not starts:
        return best.help
    names = [best.entry_point or "", *sorted(starts, key=_scripts_first)]
    named = listed(names) if len(names) <= MAX_NAMED + 1 else shortened(names, MAX_NAMED + 1)
    return best.help.replace(f"{_START}{best.entry_point}", f"{_START}{named}", 1)


def _of_most_ops(best: Finding, group: list[Finding]) -> Finding:
    """Of one program that has something in another way than the best finding: what it says is then true of the program of
    the best one too, of which only a few ops may vary."""
    if not _few_ops(best):
        return best
    message = _of_any_program(best).partition(f"; {OF_OPS}")[0]
    wider = (
        f
        for f in sorted(group, key=lambda f: (f.entry_point or "~", f.flow))
        if _of_any_program(f) == message and f.confidence is best.confidence and f.severity is best.severity
    )
    return next(wider, best)


def _few_ops(finding: Finding) -> str:
    """What a message says of the ops of a program, where only few of them may vary."""
    _, found, ops = finding.message.partition(f"; {OF_OPS}")
    return f"{OF_OPS}{ops}" if found else ""


def _is_said_of(finding: Finding, message: str, ops: str) -> bool:
    """Whether a message is true of the program of a finding too: that of one with all its ops says it of few as well."""
    said, _, of_ops = _of_any_program(finding).partition(f"; {OF_OPS}")
    return said == message and ops in ("", of_ops)


def _is_said_of_program(finding: Finding, message: str, ops: str) -> bool:
    """Whether a message is true of a program that its finding is less sure of, as one that others import too."""
    return finding.confidence is not Confidence.LOW and _is_said_of(finding, message, ops)


def _of_any_program(finding: Finding) -> str:
    """The message of a finding without the name of the program."""
    return finding.message.replace(finding.entry_point or "\n", "")


def _in_program(finding: Finding) -> str:
    """What a finding says, with the name of the program in which it is so."""
    name = finding.entry_point or ""
    return finding.message if name in finding.message else f"when {name} runs: {finding.message}"


def _after_fixing(best: Finding, group: list[Finding]) -> Finding:
    """A finding whose remedy is deterministic mode, with what its programs have that raises in that mode."""
    raising = sorted({op for f in group for op in f.raising})
    # What raises where it requires a gradient may stand elsewhere without one.
    fixed = {op.rpartition(" (")[0] for op in raising}
    # Without options an op runs in any case.
    spare = {
        op[0].partition(",")[0]: op
        for op in sorted((op for f in group for op in f.spared), key=lambda op: (-len(op[0]), op))
    }
    spared = sorted(op for name, op in spare.items() if name not in fixed)
    if not raising and not spared:
        return best
    names = _listed([*(op for op, _ in spared)])
    warns = all(WARNS in f.remedy for f in group)
    if not raising and warns and (help := _warning(best.help)):
        verb = "raise" if len(spared) > 1 else "raises"
        help = f"{help} (in deterministic mode {names} {verb} RuntimeError without it)"
        return msgspec.structs.replace(best, help=help, remedy=(*best.remedy, WARNED))
    steps = [f"fix {_listed(raising)}"] if raising else []
    steps += [f"replace {names}"] if spared else []
    verb = "raise" if len(raising) + len(spared) > 1 else "raises"
    # With an option, the last one ends in a comma.
    error = (
        "UnimplementedError with op determinism"
        if best.code == OP_DETERMINISM_MISSING
        else "RuntimeError in deterministic mode"
    )
    first = f"first {' and '.join(steps).removesuffix(',')}, which {verb} {error}"
    if spared and not raising:
        ways = list(dict.fromkeys(_lower(instead).rstrip(".") for _, instead in spared))
        first += f" ({'; '.join(ways)})"
    remedy = (*best.remedy, RAISES)
    return msgspec.structs.replace(best, help=f"{first}; then {_lower(best.help)}", remedy=remedy)


def _naming_unchanged(best: Finding, group: list[Finding]) -> Finding:
    """A finding whose remedy is deterministic mode, with what its programs have that differs in that mode too."""
    unchanged = sorted({op for f in group for op in f.unchanged})
    if not unchanged:
        return best
    them = "them" if len(unchanged) > 1 else "it"
    help = f"{best.help}; deterministic mode does not change {_listed(unchanged)}: fix {them} too"
    return msgspec.structs.replace(best, help=help)


def _listed(names: list[str]) -> str:
    """Names of ops, in words."""
    return shortened(names, MAX_OPS) if len(names) > MAX_OPS else listed(names)


def _warning(help: str) -> str:
    """A remedy that switches deterministic mode on, so that it only warns of what would raise; empty where it cannot be
    written so."""
    for strict, lenient in _LENIENT:
        if strict in help:
            return help.replace(strict, lenient).replace(*_SINCE)
    return ""


def _lower(sentence: str) -> str:
    """A sentence as the rest of another one."""
    return sentence[:1].lower() + sentence[1:]


_LENIENT = (
    ("use_deterministic_algorithms(True)", "use_deterministic_algorithms(True, warn_only=True)"),
    ("`deterministic=True`", '`deterministic="warn"`'),
)
"""How deterministic mode is switched on, and how so that it only warns."""
_SINCE = ("with torch 1.8 or later", "with torch 1.11 or later")
"""Since when it can be switched on, and since when so that it only warns."""
