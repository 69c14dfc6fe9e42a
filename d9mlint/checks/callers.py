"""Findings about gradients in functions that no entry point reaches, and that the project calls without gradients.

Such a function is looked at with unknown arguments. Where other functions of the project call it, they say what it is
given: a schedule of a diffusion model, which is a buffer, has no gradient wherever it is gathered.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from d9mlint.base.entry_report import NO_GRADIENT, EntryReport
from d9mlint.base.findings import Finding
from d9mlint.checks.never_called import Function, Search
from d9mlint.ir.bodies import at_once

if TYPE_CHECKING:
    from d9mlint.interp.entry_run import Project


def without_gradients(
    findings: Iterable[Finding], reports: Iterable[EntryReport], project: Project
) -> list[Finding]:
    """The findings without those about gradients that no caller in the project takes."""
    kept = list(findings)
    if not any(one.unless.startswith(NO_GRADIENT) and one.path in project.index for one in kept):
        return kept
    callers = _Callers(project, list(reports))
    return [one for one in kept if not (one.unless.startswith(NO_GRADIENT) and callers.give_no_gradient(one))]


class _Callers:
    """What the functions of a project give to those that they call."""

    def __init__(self, project: Project, reports: list[EntryReport]) -> None:
        self.project = project
        self.search = Search(project, [one for one in reports if one.files])
        # What is known of the code that no entry point reaches, by the file that it is in.
        self.unreached: dict[int, list[EntryReport]] = {}
        for one in reports:
            if not one.files and one.entry in project.index:
                self.unreached.setdefault(project.index[one.entry], []).append(one)

    def give_no_gradient(self, finding: Finding) -> bool:
        """Whether all callers of the function around give it tensors that do not require grad."""
        file = self.project.index.get(finding.path)
        if file is None:
            return False
        names = set(finding.unless.removeprefix(NO_GRADIENT).split(","))
        with at_once():
            around = [
                (one.start, index)
                for index, one in enumerate(self.project.modules.files[file].facts.functions)
                if index and one.start <= finding.start < one.end_of_body
            ]
        if not around:
            return False
        function = (file, max(around)[1])
        calls = self._calls(function)
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
            named = uses.attributes.get(one.name, set())
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
