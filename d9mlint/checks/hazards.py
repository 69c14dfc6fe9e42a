"""Hazards that are data: calls, attributes and variables of libraries, as ``rules/knowledge/hazards`` states them."""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from d9mlint.base.findings import Confidence, Severity
from d9mlint.base.options import given_in_words
from d9mlint.checks.asked import never_asked
from d9mlint.checks.base import Reporter, Rule, argument_node
from d9mlint.checks.derivation import derives
from d9mlint.checks.drawing import what_is_drawn
from d9mlint.checks.in_memory import is_held_in_memory
from d9mlint.interp import values as v
from d9mlint.interp.activity import may_use_cuda
from d9mlint.interp.calls import owner_types
from d9mlint.interp.context import EACH_ELEMENT
from d9mlint.interp.device_names import given_option
from d9mlint.interp.environment import permits
from d9mlint.interp.events import (
    AttributeEvent,
    CallEvent,
    DecoratedCallEvent,
    DecoratorEvent,
    EnvironmentEvent,
    ObjectAttributeEvent,
)
from d9mlint.interp.listening import Listening, on
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.places import Where
from d9mlint.interp.rng import all_hold, any_holds, plain
from d9mlint.interp.state import UNSEEDED, Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.text import call_text, node_text
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes
from d9mlint.knowledge.patterns import Patterns
from d9mlint.knowledge.versions import split

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.schema import Condition, HazardEntry, ReadAt


CALLED = ".__call__"
_SEVERAL = v.Lit(2)
"""Stands for the number of processors of a machine."""
VALUE = "value"
"""The argument by which conditions on attributes and variables name what is assigned."""


class _Index:
    """What is known of the hazards that are wanted; it is the same in all runs."""

    def __init__(self, kb: Knowledge, codes: frozenset[str]) -> None:
        self._kb = kb
        self.wanted = [entry for entry in kb.hazards if entry.rule in codes or entry.late in codes]
        self.makers = frozenset(name for entry in self.wanted for name in entry.made_by)
        self.kept = frozenset(rng for entry in self.wanted if entry.made_by for rng in entry.unless_seeded)
        self.taking_back = sorted({name for entry in self.wanted for name in entry.unless_called})
        self.assigned = tuple(sorted({name for entry in self.wanted for name in entry.unless_assigned}))
        self._only: Patterns[tuple[str, ReadAt]] = Patterns()
        self._only_of: dict[str, tuple[tuple[str, ReadAt], ...]] = {}
        self.variables: dict[str, list[HazardEntry]] = {}
        # Objects that are called: events of which only those hear who listen to the name.
        self.objects = frozenset(
            name
            for entry in self.wanted
            for name in (*entry.apis, *entry.unless_called)
            if name.endswith(CALLED)
        )
        for entry in self.wanted:
            for test in entry.only_called:
                for name in test.apis:
                    self._only.add(name, (entry.id, test))
            for name in entry.env:
                self.variables.setdefault(name, []).append(entry)
        self._matters: dict[str, bool] = {}

    def only(self, name: str) -> tuple[tuple[str, ReadAt], ...]:
        """The entries that count with a call of this name only, and what has to hold of it."""
        known = self._only_of.get(name)
        if known is None:
            known = self._only_of[name] = self._only.of(name)
        return known

    def matters(self, name: str) -> bool:
        """Whether a call of this name says anything of a hazard."""
        known = self._matters.get(name)
        if known is None:
            known = self._matters[name] = (
                bool(self.only(name))
                or name in self.makers
                or bool(self._kb.hazards_of(name))
                or any(fnmatch.fnmatchcase(name, pattern) for pattern in self.taking_back)
            )
        return known


def _assigned(name: str) -> str:
    """What stands for an attribute among the patterns of calls."""
    return f".{name} ="


@functools.lru_cache(maxsize=2)
def _index(kb: Knowledge, codes: frozenset[str]) -> _Index:
    return _Index(kb, codes)


class Hazards(Rule):
    """Any rule whose entries are data: the calls, attributes and variables of those that are wanted."""

    reported = remembered(set[str])
    """The entries of which a call was reported."""
    called = remembered_table(str, str)
    """Patterns of calls that take hazards back, and entries that count with some call only: those that were called, each
    with the option that has to be given for that."""
    made = remembered_table(Site, tuple[Where, frozenset[str]])
    """Where objects were made that keep the states of generators, and which of those were seeded, or may have been."""

    def __init__(self, run: RunView, reporter: Reporter) -> None:
        super().__init__(run, reporter)
        self._index = _index(run.kb, reporter.codes)

    def also(self) -> Iterable[tuple[Listening, Callable[[Any], None]]]:
        found: list[tuple[Listening, Callable[[Any], None]]] = [
            (Listening(AttributeEvent, (name,)), partial(self.assigned, entry))
            for entry in self._index.wanted
            for name in entry.attributes
        ]
        if self._index.wanted:
            found.append((Listening(CallEvent), self.plain_call))
        if self._index.objects:
            found.append((Listening(CallEvent, tuple(sorted(self._index.objects))), self.call))
        if self._index.assigned:
            found.append((Listening(ObjectAttributeEvent, self._index.assigned), self.set_on_object))
        if self._index.variables:
            found.append((Listening(EnvironmentEvent), self.variable))
        return found

    def plain_call(self, call: CallEvent) -> None:
        """Something is called that is not known as an object of these."""
        if call.api not in self._index.objects:
            self.call(call)

    def set_on_object(self, event: ObjectAttributeEvent) -> None:
        """An attribute is set that takes hazards back."""
        self._happened(_assigned(event.name))

    def _happened(self, pattern: str) -> None:
        """What takes hazards back happens: whatever options are given, or if one is."""
        if self.called.get(pattern) != "":
            self.called[pattern] = given_option(self.run.state.aside)

    def call(self, call: CallEvent) -> None:
        """A function, a method or an object is called."""
        names = [call.api]
        matters = self._index.matters
        if isinstance(call.owner, (v.Inst, v.Super)):
            names += _names_of_class(self.run, call)
            if not any(map(matters, names)):
                return
        elif not matters(call.api):
            return
        for pattern in self._index.taking_back:
            if any(fnmatch.fnmatchcase(name, pattern) for name in names):
                self._happened(pattern)
        if call.api in self._index.makers:
            seeded = frozenset(rng for rng in self._index.kept if self.run.state.level(rng).level != UNSEEDED)
            site = self.run.here(call.node)
            self.made[site] = (Where(self.run, call.node, call.api), seeded)
        for name, test in self._index.only(call.api):
            # Who runs the program may give an option another value than its default.
            given = [call.args.get(one.arg, one.pos) for one in _tests(test.when)]
            chosen = any(one is not None and v.option_of(one) for one in given)
            if chosen or all_hold(call.args, test.when, call.owner) is not False:
                self.called[name] = ""
        done: set[str] = set()
        for name in names:
            for entry in self.run.kb.hazards_of(name):
                if (
                    not entry.decorates
                    and entry.id not in done
                    and any(map(self.reporter.on, filter(None, (entry.rule, entry.late))))
                ):
                    done.add(entry.id)
                    self._judge(entry, call.args, call.node, call_text(call), call.owner, call.api)

    @on(DecoratorEvent)
    def decorated(self, event: DecoratorEvent) -> None:
        """A decorator is given a function."""
        for name, given, entry in self._of_decorator(event.decorator):
            if entry.callback is not None:
                args = given.replaced(v.Args(None, {entry.callback.arg: event.decorated}))
                text = event.node.id if isinstance(event.node, m.Name) else node_text(event.node, name)
                self._judge(entry, args, event.node, text, api=name)

    @on(DecoratedCallEvent)
    def decorated_call(self, event: DecoratedCallEvent) -> None:
        """A decorated function is called."""
        for decorator in event.function.decorated:
            for name, given, entry in self._of_decorator(decorator):
                if event.node is not None and not event.args.kw.keys().isdisjoint(entry.decorates):
                    args = v.Args(None, {**given.kw, **event.args.kw}, dstar=given.dstar or event.args.dstar)
                    self._judge(entry, args, event.node, node_text(event.node, name), api=name)

    def _of_decorator(self, used: v.Value) -> Iterator[tuple[str, v.Args, HazardEntry]]:
        """The entries about a decorator, by its name and with its own arguments."""
        if isinstance(used, v.Member):
            names = [f"{one}.{used.name}" for one in owner_types(self.run, used.owner)]
        else:
            names = [self.run.kb.canonical(used.name)] if isinstance(used, v.Ext) else []
        names += [used.api] if isinstance(used, v.Obj) else []
        given = used.args if isinstance(used, v.Obj) else v.Args()
        entries = {entry.id: (name, entry) for name in names for entry in self.run.kb.hazards_of(name)}
        for name, entry in entries.values():
            if self.reporter.on(entry.rule):
                yield name, given, entry

    def assigned(self, entry: HazardEntry, event: AttributeEvent) -> None:
        """An attribute is set."""
        self._judge(entry, v.Args([], {VALUE: event.value}), self.run.statement, event.name)

    def variable(self, event: EnvironmentEvent) -> None:
        """A variable is set."""
        for entry in self._index.variables.get(event.name, ()):
            self._judge(entry, v.Args([], {VALUE: event.value}), event.node, event.name)

    def _judge(
        self,
        entry: HazardEntry,
        args: v.Args,
        node: Any,
        name: str,
        owner: v.Value | None = None,
        api: str = "",
    ) -> None:
        if self.run.targets is not None and not self.run.targets.matches(entry.library, entry.versions):
            return
        if entry.only_env and permits(self.run, entry.only_env) is not True:
            return
        holding, counted = all_hold(args, entry.when, owner), dict[str, str]()
        if holding is None and (counted := self._of_machine(entry, node)):
            args = args.replaced(v.Args(None, dict.fromkeys(counted, _SEVERAL)))
            holding = all_hold(args, entry.when, owner)
        if holding is not True or any_holds(args, entry.unless, owner) is not False:
            return
        if _unseen(args, [*entry.when, *entry.unless]):
            self.silent(entry.rule, node, "an argument that decides may be in `*args` or `**kwargs`")
            return
        if entry.literal and any(
            v.option_of(one)
            for test in _tests(entry.when)
            if (one := args.get(test.arg, test.pos)) is not None
        ):
            self.silent(entry.rule, node, "an option of the program decides")
            return
        if entry.literal and self.run.branching and _is_chosen(self.run, node):
            self.silent(
                entry.rule, node, "the other branch does it with another value: the program lets one choose"
            )
            return
        if entry.unless_in_memory and is_held_in_memory(self.run, api, args, owner):
            self.silent(entry.rule, node, "the data is held in memory, where a later run finds none of it")
            return
        context = (
            entry.unless_called
            or entry.unless_assigned
            or entry.unless_env
            or entry.unless_mode
            or entry.unless_seeded
            or entry.only_called
        )
        if context and self.run.entry is None:
            self.silent(
                entry.rule,
                node,
                "what the rest of the program does decides, and no entry point reaches it",
            )
            return
        place, rule = Where(self.run, node, f"{entry.id}"), entry.rule
        seeded = any(self.run.state.level(rng).level != UNSEEDED for rng in entry.unless_seeded)
        if entry.made_by:
            site = made_at(owner) if isinstance(owner, v.Obj) else None
            if site is None or site not in self.made:
                self.silent(entry.rule, node, "where the object was made is not known")
                return
            place, before = self.made[site]
            if seeded and entry.late:
                rule = entry.late
            seeded = not before.isdisjoint(entry.unless_seeded)
        if seeded:
            self.silent(entry.rule, node, "the generator is seeded, or may be")
            return
        if entry.callback is not None:
            function = args.get(entry.callback.arg, entry.callback.pos)
            if not isinstance(function, (v.Func, v.Partial, v.Inst)):
                self.silent(entry.rule, node, "the function that is passed is not one of the project")
                return
            if not what_is_drawn(self.run, [function]) & set(entry.callback.draws):
                self.silent(entry.rule, node, "the function that is passed draws no random numbers")
                return
        if entry.drawn is not None and (reason := never_asked(self.run, node, entry.drawn)):
            self.silent(entry.rule, node, reason)
            return
        given = {test.arg: args.get(test.arg, test.pos) or v.Lit(test.default) for test in _tests(entry.when)}
        text = {
            **{arg: plain(value) for arg, value in given.items()},
            **counted,
            "call": name,
            "api": api or name,
            "version": "",
        }
        beside = bool(entry.beside) and all_hold(args, entry.beside, owner) is not False
        advice = entry.help_beside if beside else entry.help
        targets: tuple[str, ...] = ()
        if entry.versions and self.run.targets is not None:
            library = split(entry.versions)[0] or entry.library
            target = self.run.targets.version(library)
            targets = (f"{library} {target.version}".strip(), target.source)
            text["version"] = target.version

        level = entry.for_each if entry.for_each and _for_each(self.run) else entry.severity

        def report() -> None:
            option = self._taken_back(entry)
            if option is not None and option in ("", *place.given):
                self.silent(rule, place, "a call, a mode, a variable or the device makes it harmless")
                return
            if entry.once and entry.id in self.reported:
                self.silent(
                    rule, place, "the first such call of the program is reported, and its remedy is for all"
                )
                return
            self.reported.add(entry.id)
            unless = f" unless {given_in_words(option)}" if option else ""
            self.report(
                rule,
                place,
                entry.message.format(**text) + unless,
                advice.format(**text),
                subject=entry.subject.format(**text) or name,
                targets=targets,
                severity=Severity(level) if level else None,
                confidence=Confidence(entry.confidence) if entry.confidence else None,
                entry_wide=bool(context),
                # For generation a seed of the program is the remedy.
                remedy=("rng", *entry.unless_seeded[:1])
                if entry.rule == "DET701" and entry.unless_seeded
                else tuple(map(str, next(iter(entry.passes.items()), ()))),
                cause=self._seed_of(entry),
                library=entry.library,
            )

        if context or entry.devices:
            self.run.later(report)
        else:
            report()

    def _seed_of(self, entry: HazardEntry) -> tuple[str, ...]:
        """The rule about the seed that makes something harmless, and the generator that it seeds."""
        if len(entry.unless_seeded) != 1:
            return ()
        (rng,) = entry.unless_seeded
        return self.run.kb.generators[rng].rule, rng

    def _of_machine(self, entry: HazardEntry, node: Any) -> dict[str, str]:
        """The arguments with which conditions compare a number and which are computed from how many processors the
        machine has, each with the call that gives their number."""
        tests = [
            one for one in _tests(entry.when) if one.equals == 1 or one.not_equals == 1 or one.greater == 1
        ]
        sources = {
            one.arg: derives(self.run, argument_node(node, one.arg, one.pos), "processor-count")
            for one in tests
        }
        return {arg: f"{source}()" for arg, source in sources.items() if source}

    def _taken_back(self, entry: HazardEntry) -> str | None:
        """Whether the rest of the program makes it harmless, or cannot be known not to: an empty text, or the option that
        has to be given for that; None if it does not."""
        if entry.devices and "cuda" in entry.devices and not may_use_cuda(self.run):
            return ""
        if entry.only_called and entry.id not in self.called:
            return ""
        for name, values in entry.unless_env.items():
            setting = self.run.state.env.get(name)
            if setting is not None and (setting.value is None or setting.value in values or "*" in values):
                return ""
        if any(self.run.mode(mode).value in (True, None) for mode in entry.unless_mode):
            return ""
        options = [
            self.called.get(one) for one in (*entry.unless_called, *map(_assigned, entry.unless_assigned))
        ]
        return min((one for one in options if one is not None), default=None)


def _for_each(run: RunView) -> bool:
    """Whether something runs for each element of what a ``for`` statement, a comprehension or a function such as ``map``
    goes through, and does not only count."""
    return EACH_ELEMENT in run.contexts or any(
        isinstance(one.stmt, m.For) and called_name(one.stmt.iter) != "range" for one in run.loops
    )


def _names_of_class(interp: RunView, call: CallEvent) -> list[str]:
    """A method by the library classes that its receiver, of a class of the project, is derived from."""
    if not isinstance(call.owner, (v.Inst, v.Super)):
        return []
    method = call.api.rpartition(".")[2]
    return [f"{one}.{method}" for one in owner_types(interp, call.owner)[1:]]


def _is_chosen(run: RunView, node: Any) -> bool:
    """Whether the other branch of an ``if`` makes the same call, or the same assignment, with another value."""
    mine = _written(node)
    if not mine:
        return False
    for one in nodes(run.frame.body):
        if isinstance(one, m.If) and one.orelse:
            branches = [list(nodes(one.body)), list(nodes(one.orelse))]
            here = [any(part is node for part in branch) for branch in branches]
            if here[0] != here[1]:
                others = [_written(part) for part in branches[here[0]]]
                if any(other[:1] == mine[:1] and other != mine for other in others if other):
                    return True
    return False


def _written(node: Any) -> tuple[Any, ...]:
    """What a call or an assignment sets, as it is written, and to which constant; empty for anything else."""
    if isinstance(node, m.Call) and isinstance(node.func, m.Name) and node.args:
        target, value = node.func, node.args[0]
    elif isinstance(node, m.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], m.Name):
        target, value = node.targets[0], node.value
    else:
        return ()
    return (target.id, value.value) if isinstance(value, m.Const) else ()


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
