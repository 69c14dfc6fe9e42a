"""Findings in branches that no call in the project takes, and in defaults that every call replaces.

A function that no entry point reaches is looked at with unknown arguments, and both branches of a test of a parameter are
judged. Where every call that is written in the project leaves the parameter at its default or gives it a constant, one of
the branches never runs. Where every call gives the parameter something, nothing uses what its default draws. A class may
keep the parameter of its constructor in an attribute, and hand it on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from d9mlint.base.findings import Finding
from d9mlint.checks.never_called import Function, Searching
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import at_once
from d9mlint.ir.scopes import assignments
from d9mlint.ir.traversal import called_name, functions_around, nodes, statements
from d9mlint.project.entry_points import is_built

if TYPE_CHECKING:
    from d9mlint.interp.entry_run import Project

_DEPTH = 4
"""From a call to the calls of the function around it, a parameter is followed at most so often."""

Constants = frozenset[Any]


def without_untaken(findings: Iterable[Finding], project: Project, searching: Searching) -> list[Finding]:
    """The findings without those in functions with unknown arguments, in branches that no call takes, and without those in
    defaults that no call uses."""
    calls = _Calls(project, searching)
    with at_once():
        return [
            one
            for one in findings
            if not calls.is_replaced(one) and (one.entry_point or not calls.leave_out(one))
        ]


class _Calls:
    """What the calls in a project give to parameters."""

    def __init__(self, project: Project, searching: Searching) -> None:
        self.project = project
        self.files = project.modules.files
        self._searching = searching
        self._running: set[tuple[Function, str]] = set()
        self._called: dict[tuple[int, str], list[tuple[Function, m.Call]] | None] = {}

    def leave_out(self, finding: Finding) -> bool:
        """Whether a finding is in a branch that no call takes."""
        function = self._around(finding)
        return function is not None and any(
            self._never(function, test, taken)
            for test, taken in _tests(self._facts(function).body, finding.start)
        )

    def is_replaced(self, finding: Finding) -> bool:
        """Whether a finding is in the default of a parameter to which every call gives another value."""
        function = self._around(finding)
        if function is None:
            return False
        for param in self._facts(function).params:
            drawn = nodes([param.default]) if param.default is not None else ()
            if any(isinstance(one, m.Call) and one.start <= finding.start < one.end for one in drawn):
                given = self._given(function, param.name)
                return given is not None and None not in given
        return False

    def _around(self, finding: Finding) -> Function | None:
        """The function around a finding."""
        file = self.project.index.get(finding.path)
        around = functions_around(self.files[file].facts.functions, finding.start) if file is not None else []
        return (file, around[-1]) if file is not None and around else None

    def _facts(self, function: Function) -> m.Function:
        return self.files[function[0]].facts.functions[function[1]]

    def _never(self, function: Function, test: m.Expr, taken: bool) -> bool:
        """Whether a test in a function never has an outcome."""
        if isinstance(test, m.Unary) and test.op == "not":
            return self._never(function, test.operand, not taken)
        if isinstance(test, m.BoolOp) and (test.op == "and") == taken:
            # One part is enough.
            return self._never(function, test.left, taken) or self._never(function, test.right, taken)
        if isinstance(test, m.Compare) and test.ops in (["=="], ["!="], ["is"], ["is not"]):
            other = test.comparators[0]
            if not isinstance(other, m.Const) or not isinstance(test.left, m.Name):
                return False
            equal = taken == (test.ops[0] in ("==", "is"))
            given = self._value(function, test.left, 0)
            return given is not None and all((one == _key(other)) != equal for one in given)
        if not isinstance(test, m.Name):
            return False
        given = self._value(function, test, 0)
        return given is not None and all(bool(one[1]) != taken for one in given)

    def _value(self, function: Function, node: m.Expr, depth: int) -> Constants | None:
        """The constants that an expression in a function may give, None for others."""
        if isinstance(node, m.Const):
            return frozenset([_key(node)])
        if not isinstance(node, m.Name) or depth > _DEPTH:
            return None
        facts = self.files[function[0]].facts
        one = facts.functions[function[1]]
        owner, _, name = node.id.partition(".")
        if not name:
            known = any(param.name == owner for param in one.params) and not assignments(one.body, owner)
            return self._parameter(function, owner, depth) if known else None
        if one.cls < 0 or not one.params or owner != one.params[0].name or "." in name:
            return None
        return self._attribute(function[0], one.cls, name, depth)

    def _attribute(self, file: int, cls: int, name: str, depth: int) -> Constants | None:
        """What an attribute of an object may be that only its constructor assigns."""
        facts = self.files[file].facts
        found: tuple[int, m.Expr] | None = None
        for at in self._searching.search.with_word(name):
            for index, one in enumerate(self.files[at].facts.functions):
                for stmt in statements(one.body):
                    if not any(_ends_in(target, name) for target in _targets(stmt)):
                        continue
                    own = at == file and one.cls == cls and one.name == "__init__"
                    if not own or found is not None or not isinstance(stmt, m.Assign):
                        return None
                    found = index, stmt.value
        if found is None or facts.classes[cls].cls >= 0:
            return None
        return self._value((file, found[0]), found[1], depth + 1)

    def _parameter(self, function: Function, name: str, depth: int) -> Constants | None:
        if (function, name) in self._running:
            # What hands its own parameter on to itself adds nothing.
            return frozenset()
        self._running.add((function, name))
        found = self._by_calls(function, name, depth)
        self._running.remove((function, name))
        return found

    def _by_calls(self, function: Function, name: str, depth: int) -> Constants | None:
        given = self._given(function, name)
        if given is None:
            return None
        found: set[Any] = set()
        for one in given:
            values = self._value(one[0], one[1], depth + 1) if one is not None else None
            if values is None:
                return None
            found |= values
        return frozenset(found)

    def _given(self, function: Function, name: str) -> list[tuple[Function, m.Expr] | None] | None:
        """What the calls in the project give to a parameter, each with the function around; None for a call that does not
        show it, and None where the function may be called in other ways."""
        file, index = function
        facts = self.files[file].facts
        one = facts.functions[index]
        place = next(at for at, param in enumerate(one.params) if param.name == name)
        param = one.params[place]
        if param.kind not in ("p", "a", "k") or one.decorators or one.parent > 0:
            return None
        word = one.name
        if one.cls >= 0:
            if one.name != "__init__" or not self._is_called_by_name(file, one.cls):
                return None
            word = facts.classes[one.cls].name
            place -= 1
        if (file, word) not in self._called:
            self._called[file, word] = self._calls_of(file, word)
        calls = self._called[file, word]
        if not calls:
            return None
        found: list[tuple[Function, m.Expr] | None] = []
        for caller, call in calls:
            given = _argument(call, name, place if param.kind != "k" else None, param.default)
            found.append((caller, given) if given is not None else None)
        return found

    def _is_called_by_name(self, file: int, cls: int) -> bool:
        """Whether nothing makes objects of a class but what names it."""
        module = self.files[file]
        one = module.facts.classes[cls]
        own = [decorator for fn in module.facts.functions if fn.cls == cls for decorator in fn.decorators]
        return (
            not one.decorators
            and not one.keywords
            and one.cls < 0
            and not any(isinstance(x, m.Name) and x.id == "classmethod" for x in own)
            and file not in self._searching.search.with_word("__class__")
        )

    def _calls_of(self, file: int, word: str) -> list[tuple[Function, m.Call]] | None:
        """The calls of a function or class of a module, each with the function around; None where it may be called in
        other ways."""
        search = self._searching.search
        if file in search.configured or is_built(self.project.modules, self.files[file]):
            return None
        parts = frozenset(self.files[file].relative.removesuffix(".py").split("/"))
        found: list[tuple[Function, m.Call]] = []
        for at in search.with_word(word):
            uses = search.uses_of(at)
            if word in uses.texts or uses.any_name:
                return None
            named = search.attributes(at, word, file)
            if at != file and parts.isdisjoint(uses.imported):
                # What has an attribute of this name is no module that this file knows.
                named = set()
            if search.may_mean(at, word, file):
                named = named | uses.names.get(word, set())
            if not all(plain and around >= 0 for around, plain in named):
                return None
            if not named and at != file:
                continue
            for around, function in enumerate(self.files[at].facts.functions):
                for node in nodes(function.body):
                    if isinstance(node, m.ImportFrom) and any(
                        alias.name == word and alias.asname not in (None, word) for alias in node.names
                    ):
                        return None
                    if isinstance(node, m.Call) and called_name(node) == word:
                        found.append(((at, around), node))
        return found


def _key(node: m.Const) -> tuple[str, Any]:
    """A constant; ``1`` is not ``True``."""
    return type(node.value).__name__, node.value


def _tests(body: list[m.Stmt], place: int) -> Iterator[tuple[m.Expr, bool]]:
    """The tests around a place, each with the outcome that leads there."""
    for stmt in statements(body):
        if isinstance(stmt, m.If):
            for branch, taken in ((stmt.body, True), (stmt.orelse, False)):
                if any(one.start <= place < one.end for one in statements(branch)):
                    yield stmt.test, taken


def _targets(stmt: m.Stmt) -> list[m.Expr]:
    if isinstance(stmt, m.Assign):
        return stmt.targets
    return [stmt.target] if isinstance(stmt, (m.AnnAssign, m.AugAssign, m.For)) else []


def _ends_in(target: m.Expr, name: str) -> bool:
    """Whether something assigns an attribute of this name."""
    return any(
        (isinstance(one, m.Name) and one.id.endswith(f".{name}"))
        or (isinstance(one, m.Attr) and one.name.rpartition(".")[2] == name)
        for one in nodes([target])
    )


def _argument(call: m.Call, name: str, place: int | None, default: m.Expr | None) -> m.Expr | None:
    """What a call gives a parameter; None where it is not written."""
    if any(isinstance(one, m.Star) for one in call.args) or any(one.name is None for one in call.keywords):
        return None
    for keyword in call.keywords:
        if keyword.name == name:
            return keyword.value
    if place is not None and len(call.args) > place:
        return call.args[place]
    return default if isinstance(default, m.Const) else None
