"""Hazards that are data: calls, attributes and variables of libraries, as ``rules/knowledge/hazards`` states them."""

from __future__ import annotations

import fnmatch
from functools import partial
from typing import TYPE_CHECKING, Any

from d9mlint.base.findings import Confidence, Severity
from d9mlint.checks.base import Reporter, silent
from d9mlint.checks.data import what_is_drawn
from d9mlint.interp import values as v
from d9mlint.interp.activity import may_use_cuda
from d9mlint.interp.calls import owner_types
from d9mlint.interp.places import Where
from d9mlint.interp.rng import all_hold, any_holds, plain
from d9mlint.interp.state import UNSEEDED
from d9mlint.interp.text import call_text
from d9mlint.knowledge.versions import split

if TYPE_CHECKING:
    from d9mlint.interp.hooks import CallEvent, Hooks
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import Condition, HazardEntry, ReadAt, SettingEntry

VALUE = "value"
"""The argument by which conditions on attributes and variables name what is assigned."""
CALLED = "called"
"""The note of names that take hazards back and were called."""


def register(hooks: Hooks, reporter: Reporter) -> None:
    """Listen to the calls, attributes and variables of entries whose rules are wanted."""
    wanted = [entry for entry in reporter.knowledge.hazards if reporter.on(entry.rule)]
    taking_back = sorted({name for entry in wanted for name in entry.unless_called})

    only: dict[str, list[tuple[str, ReadAt]]] = {}
    for entry in wanted:
        for test in entry.only_called:
            for name in test.apis:
                only.setdefault(name, []).append((entry.id, test))

    def any_call(interp: Interp, call: CallEvent) -> None:
        names = [call.api, *_names_of_class(interp, call)]
        for pattern in taking_back:
            if any(fnmatch.fnmatchcase(name, pattern) for name in names):
                interp.notes[(CALLED, pattern)] = True
        for name, test in only.get(call.api, ()):
            if all_hold(call.args, test.when, call.owner) is not False:
                interp.notes[(CALLED, name)] = True
        done: set[str] = set()
        for name in names:
            for entry in interp.kb.hazards_of(name):
                if entry.id not in done and reporter.on(entry.rule):
                    done.add(entry.id)
                    _judge(
                        interp, reporter, entry, call.args, call.node, call_text(call), call.owner, call.api
                    )

    if wanted:
        hooks.any_call.append(any_call)
    for entry in wanted:
        for name in entry.attributes:
            hooks.attributes.setdefault(name, []).append(partial(_assigned, reporter=reporter, entry=entry))
    by_variable: dict[str, list[HazardEntry]] = {}
    for entry in wanted:
        for name in entry.env:
            by_variable.setdefault(name, []).append(entry)

    def variable(interp: Interp, name: str, value: v.Value, node: Any) -> None:
        for entry in by_variable.get(name, ()):
            _judge(interp, reporter, entry, v.Args([], {VALUE: value}), node, name)

    if by_variable:
        hooks.env.append(variable)
    if reporter.on("DET308"):
        _late(hooks, reporter, [one for one in reporter.knowledge.settings() if one.read_at])


def _names_of_class(interp: Interp, call: CallEvent) -> list[str]:
    """A method by the library classes that its receiver, of a class of the project, is derived from."""
    if not isinstance(call.owner, (v.Inst, v.Super)):
        return []
    method = call.api.rpartition(".")[2]
    return [f"{one}.{method}" for one in owner_types(interp, call.owner)[1:]]


def _assigned(
    interp: Interp, name: str, value: v.Value, node: Any, *, reporter: Reporter, entry: HazardEntry
) -> None:
    _judge(interp, reporter, entry, v.Args([], {VALUE: value}), interp.statement, name)


def _judge(
    interp: Interp,
    reporter: Reporter,
    entry: HazardEntry,
    args: v.Args,
    node: Any,
    name: str,
    owner: v.Value | None = None,
    api: str = "",
) -> None:
    if interp.targets is not None and not interp.targets.matches(entry.library, entry.versions):
        return
    if all_hold(args, entry.when, owner) is not True or any_holds(args, entry.unless, owner) is not False:
        return
    if entry.literal and any(
        v.option_of(one) for test in _tests(entry.when) if (one := args.get(test.arg, test.pos)) is not None
    ):
        silent(interp, entry.rule, node, "an option of the program decides")
        return
    if _unseen(args, [*entry.when, *entry.unless]):
        silent(interp, entry.rule, node, "an argument that decides may be in `*args` or `**kwargs`")
        return
    context = (
        entry.unless_called
        or entry.unless_env
        or entry.unless_mode
        or entry.unless_seeded
        or entry.only_called
    )
    if context and interp.entry is None:
        silent(
            interp,
            entry.rule,
            node,
            "what the rest of the program does decides, and no entry point reaches it",
        )
        return
    if any(interp.state.level(rng).level != UNSEEDED for rng in entry.unless_seeded):
        silent(interp, entry.rule, node, "the generator is seeded, or may be")
        return
    if entry.callback is not None:
        function = args.get(entry.callback.arg, entry.callback.pos)
        if not isinstance(function, (v.Func, v.Partial, v.Inst)):
            silent(interp, entry.rule, node, "the function that is passed is not one of the project")
            return
        if not what_is_drawn(interp, interp.frame, [function]) & set(entry.callback.draws):
            silent(interp, entry.rule, node, "the function that is passed draws no random numbers")
            return
    place = Where(interp, node, f"{entry.id}")
    given = {test.arg: args.get(test.arg, test.pos) or v.Lit(test.default) for test in _tests(entry.when)}
    text = {
        **{arg: plain(value) for arg, value in given.items()},
        "call": name,
        "api": api or name,
        "version": "",
    }
    targets: tuple[str, ...] = ()
    if entry.versions and interp.targets is not None:
        library = split(entry.versions)[0] or entry.library
        target = interp.targets.version(library)
        targets = (f"{library} {target.version}", target.source)
        text["version"] = target.version

    def report() -> None:
        if _taken_back(interp, entry):
            silent(interp, entry.rule, place, "a call, a mode, a variable or the device makes it harmless")
            return
        reporter.report(
            interp,
            entry.rule,
            place,
            entry.message.format(**text),
            entry.help.format(**text),
            subject=entry.subject.format(**text) or name,
            targets=targets,
            severity=Severity(entry.severity) if entry.severity else None,
            confidence=Confidence(entry.confidence) if entry.confidence else None,
            entry_wide=bool(context),
        )

    if context or entry.devices:
        interp.pending.append(report)
    else:
        report()


def _unseen(args: v.Args, tests: list[Condition]) -> bool:
    """Whether an argument that a condition looks at may be in ``*args`` or ``**kwargs``."""
    if not (args.star or args.dstar):
        return False
    return any(
        _unseen(args, [*(test.all_of or ()), *(test.any_of or ()), *(test.none_of or ())])
        or (bool(test.arg) and args.get(test.arg, test.pos) is None)
        for test in tests
    )


def _tests(conditions: list[Condition]) -> list[Condition]:
    """The tests of arguments, also those inside of combined conditions."""
    found: list[Condition] = []
    for one in conditions:
        inner = [*(one.all_of or ()), *(one.any_of or ()), *(one.none_of or ())]
        found += [*([one] if one.arg else []), *_tests(inner)]
    return found


def _taken_back(interp: Interp, entry: HazardEntry) -> bool:
    """Whether the rest of the program makes it harmless, or cannot be known not to."""
    if entry.devices and "cuda" in entry.devices and not may_use_cuda(interp):
        return True
    if any((CALLED, pattern) in interp.notes for pattern in entry.unless_called):
        return True
    if entry.only_called and (CALLED, entry.id) not in interp.notes:
        return True
    for name, values in entry.unless_env.items():
        setting = interp.state.env.get(name)
        if setting is not None and (setting.value is None or setting.value in values or "*" in values):
            return True
    return any(interp.mode(mode).value in (True, None) for mode in entry.unless_mode)


# -------------------------------------------------------------------------------------------- DET308


def _late(hooks: Hooks, reporter: Reporter, settings: list[SettingEntry]) -> None:
    """A variable that is set after a call that has read it for good."""
    readers: dict[str, list[tuple[str, ReadAt]]] = {}
    for setting in settings:
        for name in setting.names:
            for reader in setting.read_at:
                for api in reader.apis:
                    readers.setdefault(api, []).append((name, reader))

    def read(interp: Interp, call: CallEvent, found: list[tuple[str, ReadAt]]) -> None:
        for name, reader in found:
            if all_hold(call.args, reader.when, call.owner) is not False:
                interp.state.flags.setdefault(f"read:{name}:{call.api}", True)

    for api, found in readers.items():
        hooks.on_call(api)(partial(read, found=found))

    def variable(interp: Interp, name: str, value: v.Value, node: Any) -> None:
        by = next((flag for flag, _ in interp.state.flags.starting(f"read:{name}:")), "").rpartition(":")[2]
        if by:
            reporter.report(
                interp,
                "DET308",
                node,
                f"`{name}` is set too late: `{by}` has read it before this line",
                f"set it before `{by}`, or in the shell",
                subject=name,
            )

    if readers:
        hooks.env.append(variable)
