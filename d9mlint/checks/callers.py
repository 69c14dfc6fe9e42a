"""Findings that the callers of the function around them make false: they take no gradient, or do not pass a parameter.

A function that no entry point reaches is looked at with unknown arguments. Where other functions of the project call it,
they say what it is given: a schedule of a diffusion model, which is a buffer, has no gradient wherever it is gathered. A
parameter that is None by default, and that no call passes, is no tensor. The callers of any function say what they do
with its result: a renderer detaches the positions that it samples. And where the programs that run a file train on the
CPU, what else the file defines is not given a GPU, such as a class that an option may choose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from d9mlint.base.entry_report import AND, NO_GRADIENT, NOT_GIVEN, ON_GPU, RETURNED, EntryReport
from d9mlint.base.findings import Finding
from d9mlint.checks.never_called import MATERIAL, Function, Searching
from d9mlint.checks.ops.consumers import WHOLE, Consumers, by_name
from d9mlint.interp.tensors import TENSOR
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import at_once
from d9mlint.ir.traversal import called_name, functions_around, is_none, nodes, parents
from d9mlint.project.entry_points import is_built, is_main_test

if TYPE_CHECKING:
    from d9mlint.interp.entry_run import Project
    from d9mlint.knowledge import Knowledge


_RUN_BY_CALLS = frozenset({"forward", "__call__", "call"})
"""Methods that run where an instance is called."""
_DEPTH = 3
"""From caller to caller a result is followed at most so often."""


def left_by_callers(
    findings: Iterable[Finding],
    reports: Iterable[EntryReport],
    project: Project,
    known: Knowledge,
    searching: Searching,
) -> list[Finding]:
    """The findings without those about gradients that no caller in the project takes, and about what none passes."""
    kept = list(findings)
    if not any(_conditions(one) and one.path in project.index for one in kept):
        return kept
    callers = _Callers(project, reports, known, searching)
    return [one for one in kept if not any(callers.show(one, condition) for condition in _conditions(one))]


def _conditions(finding: Finding) -> list[str]:
    return [
        one for one in finding.unless.split(AND) if one.startswith((NO_GRADIENT, NOT_GIVEN, RETURNED, ON_GPU))
    ]


class _Callers:
    """What the functions of a project give to those that they call."""

    def __init__(
        self, project: Project, reports: Iterable[EntryReport], known: Knowledge, searching: Searching
    ) -> None:
        self.project = project
        self.known = known
        self.search = searching.search
        self.programs = searching.programs
        # What is known of the code that no entry point reaches, by the file that it is in.
        self.unreached: dict[int, list[EntryReport]] = {}
        self._left_out: dict[tuple[int, int, str], bool] = {}
        for one in reports:
            if not one.files and one.entry in project.index:
                self.unreached.setdefault(project.index[one.entry], []).append(one)

    def show(self, finding: Finding, condition: str) -> bool:
        """Whether the callers of the function around show what makes a finding false."""
        if finding.path not in self.project.index:
            return False
        if condition == ON_GPU:
            return self.runs_on_cpu(self.project.index[finding.path])
        if condition.startswith(RETURNED):
            places = {int(one) for one in condition.removeprefix(RETURNED).split(",")}
            function = self._around(finding)
            with at_once():
                return function is not None and self._ends(function, places, 0)
        names = condition.removeprefix(NO_GRADIENT).removeprefix(NOT_GIVEN)
        if condition.startswith(NO_GRADIENT) and self.give_no_gradient(finding, names):
            return True
        return self.leave_out(finding, names)

    def runs_on_cpu(self, file: int) -> bool:
        """Whether programs of the project run a file, one of them trains on the CPU, and none may use anything else."""
        programs = [one for one in self.programs if file in one.files]
        devices = {one.device for one in programs}
        if "cpu" not in devices or "other" in devices or any(one.cuts or one.failure for one in programs):
            return False
        if any(gap.kind in MATERIAL for one in programs for gap in one.gaps):
            return False
        return not is_built(self.project.modules, self.project.modules.files[file])

    def _ends(self, function: Function, places: set[int], depth: int) -> bool:
        """Whether no gradient comes back to what a function returns at some places, whoever calls it."""
        one = self.project.modules.files[function[0]].facts.functions[function[1]]
        if one.cls >= 0 and one.name in _RUN_BY_CALLS:
            # Calls of instances do not name it.
            return False
        callers = self._calls(function)
        if not callers or depth > _DEPTH:
            return False
        name = one.name
        for at, around in callers:
            returned = self._returned((at, around), name, places)
            if returned is None or (returned and not self._ends((at, around), returned, depth + 1)):
                return False
        return True

    def _returned(self, caller: Function, name: str, places: set[int]) -> set[int] | None:
        """Where a caller returns what calls of a function give at some places; None where it may take a gradient of it."""
        file = self.project.modules.files[caller[0]]
        facts = file.facts
        function = facts.functions[caller[1]]
        imported = file.path in self.project.imported
        consumers = Consumers(self.known, lambda: facts, function, TENSOR, imported)
        consumers.called = by_name(self.known, facts, TENSOR)
        for call in nodes(list(function.body)):
            if not isinstance(call, m.Call) or called_name(call) != name:
                continue
            if not all(
                consumers.all_end(call) if place == WHOLE else consumers.part_ends(call, place)
                for place in places
            ):
                return None
        return consumers.returned

    def _around(self, finding: Finding) -> Function | None:
        """The function that a finding is in."""
        file = self.project.index.get(finding.path)
        if file is None:
            return None
        with at_once():
            around = functions_around(self.project.modules.files[file].facts.functions, finding.start)
        return (file, around[-1]) if around else None

    def leave_out(self, finding: Finding, name: str) -> bool:
        """Whether the function around is called, and no call passes the parameter that is None by default."""
        function = self._around(finding)
        if function is None:
            return False
        key = (*function, name)
        if key not in self._left_out:
            with at_once():
                self._left_out[key] = self._is_left_out(function, name)
        return self._left_out[key]

    def _is_left_out(self, function: Function, name: str) -> bool:
        file, index = function
        facts = self.project.modules.files[file].facts
        one = facts.functions[index]
        place = next((at for at, param in enumerate(one.params) if param.name == name), None)
        if place is None or not is_none(one.params[place].default) or one.parent > 0:
            return False
        if any(
            keyword.name == name and not is_none(keyword.value)
            for call in self._calls_in(name)
            for keyword in call.keywords
        ):
            return False
        called = {one.name}
        if one.cls >= 0:
            place -= 1
            called |= self._instances(facts.classes[one.cls].name)
        calls = [
            call for word in sorted(called) for call in self._calls_in(word) if called_name(call) == word
        ]
        # What hands its own arguments on to a method of the same object is called like the object.
        handed = f"self.{one.name}"
        own = [call for call in calls if isinstance(call.func, m.Name) and call.func.id == handed]
        others = [call for call in calls if not any(call is forwarding for forwarding in own)]
        return (
            bool(others)
            and all(len(call.args) <= place and not _is_open(call) for call in others)
            and all(len(call.args) <= place for call in own)
        )

    def _instances(self, cls: str) -> set[str]:
        """The last parts of the names of what holds an instance of a class."""
        found: set[str] = set()
        for at in self.search.with_word(cls):
            for function in self.project.modules.files[at].facts.functions:
                for node in nodes(list(function.body)):
                    if isinstance(node, m.Assign) and called_name(node.value) == cls:
                        found.update(
                            one.id.rpartition(".")[2] for one in node.targets if isinstance(one, m.Name)
                        )
        return found

    def _calls_in(self, word: str) -> Iterator[m.Call]:
        """The calls in all functions of the files that use a word."""
        for at in self.search.with_word(word):
            for function in self.project.modules.files[at].facts.functions:
                yield from (node for node in nodes(list(function.body)) if isinstance(node, m.Call))

    def give_no_gradient(self, finding: Finding, given: str) -> bool:
        """Whether all callers of the function around give it tensors that do not require grad."""
        function = self._around(finding)
        if function is None:
            return False
        names = set(given.split(","))
        calls = self._calls(function)
        facts = self.project.modules.files[function[0]].facts
        one = facts.functions[function[1]]
        if calls is not None and one.cls >= 0 and one.name in _RUN_BY_CALLS:
            of_instances = self._calls_of_instances(facts.classes[one.cls].name)
            calls = None if of_instances is None else calls | of_instances
        return (
            calls is not None
            and bool(calls)
            and all(self._gives_none(caller, function, names) for caller in calls)
        )

    def _calls(self, function: Function) -> set[Function] | None:
        """The functions that call one; None where something else may."""
        file, index = function
        module = self.project.modules.files[file]
        one = module.facts.functions[index]
        if one.parent > 0 or one.name == "<lambda>" or one.is_generator:
            return None
        parts = frozenset(module.relative.removesuffix(".py").split("/"))
        found: set[Function] = set()
        for at in self.search.with_word(one.name):
            uses = self.search.uses_of(at)
            if one.name in uses.texts:
                return None
            named = self.search.attributes(at, one.name, file, method=one.cls >= 0)
            if one.cls < 0:
                if at != file and parts.isdisjoint(uses.imported):
                    # What has an attribute of this name is no module that this file knows.
                    named = set()
                if self.search.may_mean(at, one.name, file):
                    named = named | uses.names.get(one.name, set())
            if not all(plain and around >= 0 for around, plain in named):
                return None
            found.update((at, around) for around, _ in named)
        return found

    def _calls_of_instances(self, cls: str) -> set[Function] | None:
        """The functions that call what holds an instance of a class; None where something else may. What modules do when
        they are started is left out: it is looked at as a program."""
        found: set[Function] = set()
        pending: list[tuple[str, Function | None]] = []
        for at in self.search.with_word(cls):
            classes = self.project.modules.files[at].facts.classes
            if any(_ends_in(base, cls) for one in classes for base in one.bases):
                return None
        for caller, function in self._functions_with(cls):
            above = parents(function)
            for node in self._unguarded(function):
                if not _ends_in(node, cls):
                    continue
                made = above.get(id(node))
                # The class itself may be handed on.
                is_made = isinstance(made, m.Call) and made.func is node
                whole = self._chained(above, made)
                holders = self._holders(above, whole, caller, found) if is_made else None
                if holders is None:
                    return None
                pending += holders
        known: set[tuple[str, Function | None]] = set()
        while pending:
            name, scope = pending.pop()
            if (name, scope) in known:
                continue
            known.add((name, scope))
            for caller, function in self._functions_with(name):
                if scope is not None and not self._is_within(caller, scope):
                    continue
                above = parents(function)
                for node in self._unguarded(function):
                    if not _ends_in(node, name) or (scope is not None and not isinstance(node, m.Name)):
                        continue
                    if scope is not None and node.id != name:
                        continue
                    holders = self._holders(above, node, caller, found)
                    if holders is None:
                        return None
                    pending += holders
        return found

    def _is_within(self, function: Function, scope: Function) -> bool:
        """Whether a function is one in which a local variable of another is known: that one itself, or one defined in it."""
        if function[0] != scope[0]:
            return False
        functions = self.project.modules.files[scope[0]].facts.functions
        at = function[1]
        while at > scope[1]:
            at = functions[at].parent
        return at == scope[1]

    def _functions_with(self, word: str) -> Iterator[tuple[Function, m.Function]]:
        for at in self.search.with_word(word):
            for index, function in enumerate(self.project.modules.files[at].facts.functions):
                yield (at, index), function

    @staticmethod
    def _unguarded(function: m.Function) -> Iterator[Any]:
        for stmt in function.body:
            if not (isinstance(stmt, m.If) and is_main_test(stmt.test)):
                yield from nodes([stmt])

    def _holders(
        self, above: dict[int, Any], node: Any, caller: Function, found: set[Function]
    ) -> list[tuple[str, Function | None]] | None:
        """The names that are given an instance at a node, local variables with their function; a call of it is added to
        those that were found. None where the instance is handed on."""
        user = above.get(id(node))
        if isinstance(user, m.Call) and user.func is node:
            found.add(caller)
            return []
        if isinstance(user, m.ExprStmt):
            return []
        if not isinstance(user, m.Assign):
            return None
        if not all(isinstance(target, m.Name) for target in user.targets):
            return None
        if any(target is node for target in user.targets):
            return []
        names = [target.id for target in user.targets if isinstance(target, m.Name)]
        return [(one.rpartition(".")[2], caller if self._is_local(caller, one) else None) for one in names]

    def _is_local(self, function: Function, name: str) -> bool:
        """Whether a name that a function assigns to is a variable of it alone."""
        one = self.project.modules.files[function[0]].facts.functions[function[1]]
        shared = (node.names for node in nodes(list(one.body)) if isinstance(node, m.ScopeDecl))
        return function[1] > 0 and "." not in name and not any(name in names for names in shared)

    def _chained(self, above: dict[int, Any], node: Any) -> Any:
        """The whole of `DataParallel(Net()).to(device).eval()`, for the first call in it."""
        while True:
            user = above.get(id(node))
            if isinstance(user, m.Attr):
                call = above.get(id(user))
                if not isinstance(call, m.Call) or call.func is not user:
                    break
                node = call
            elif isinstance(user, m.Call) and user.args[:1] == [node] and called_name(user) in self._wrapping:
                node = user
            else:
                break
        return node

    @cached_property
    def _wrapping(self) -> frozenset[str]:
        """The last parts of the names of what is called like the model that it is made with."""
        wrapping = (one for one in self.known.role_entries() if one.role == "wraps" and one.arg == "module")
        return frozenset(api.rpartition(".")[2] for one in wrapping for api in one.apis)

    def _gives_none(self, caller: Function, function: Function, names: set[str]) -> bool:
        """Whether a caller that no entry point reaches gives these parameters nothing that requires grad."""
        at, around = caller
        reports = self.unreached.get(at, [])
        return bool(reports) and all(
            not one.cuts
            and not one.failure
            and around in one.functions_reached().get(at, [])
            and names.issubset(one.parameters_without_gradient().get(function[0], {}).get(function[1], []))
            for one in reports
        )


def _ends_in(node: Any, name: str) -> bool:
    """Whether an expression is a variable or an attribute of this name."""
    if isinstance(node, m.Name):
        return node.id.rpartition(".")[2] == name
    return isinstance(node, m.Attr) and node.name.rpartition(".")[2] == name


def _is_open(call: m.Call) -> bool:
    """Whether a call hands arguments on that are not written."""
    return any(isinstance(one, m.Star) for one in call.args) or any(one.name is None for one in call.keywords)
