"""What every check uses: making findings with the flow from the entry point, each place once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.base.findings import Applicability, Confidence, Edit, Finding, Fix, Severity, Step
from d9mlint.interp.places import Where
from d9mlint.interp.state import Site
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.base.known_calls import KnownCall
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge import Knowledge


def silent(interp: Interp, code: str, place: Where | Any, reason: str) -> None:
    """Say why a rule does not report a place that it has looked at. Only ``d9mlint explain`` listens."""
    if interp.hooks.silences:
        site = place.site if isinstance(place, Where) else interp.here(place)
        for hook in interp.hooks.silences:
            hook(interp, code, site, reason)


class Reporter:
    """Collects the findings of one analysis run. The same finding at the same place is kept once: the most
    confident, then the most severe."""

    def __init__(self, knowledge: Knowledge, codes: frozenset[str]) -> None:
        self.knowledge = knowledge
        self.rules = knowledge.rules
        self.codes = codes
        self._found: dict[tuple[str, str, int, int, str], Finding] = {}

    def on(self, *codes: str) -> bool:
        """Whether any of these rules is wanted."""
        return any(code in self.codes for code in codes)

    def report(
        self,
        interp: Interp,
        code: str,
        place: Where | Any,
        message: str,
        help: str,
        *,
        subject: str = "",
        severity: Severity | None = None,
        confidence: Confidence | None = None,
        fix: Fix | None = None,
        targets: tuple[str, ...] = (),
        op: str = "",
        call: KnownCall | None = None,
        entry_wide: bool = False,
        remedy: tuple[str, ...] = (),
    ) -> None:
        """Add a finding at a node or a remembered place. Level and confidence are the rule page's unless given.

        ``entry_wide`` findings are about a whole program: they are not made in the run over unreached code, whose
        findings are of medium confidence at most and say that no entry point leads to them.
        """
        if code not in self.codes or (entry_wide and interp.entry is None):
            if entry_wide and interp.entry is None:
                silent(
                    interp, code, place, "it is about whole programs, and no entry point reaches this line"
                )
            return
        if not isinstance(place, Where):
            place = Where(interp, place, subject)
        where: Where = place
        options: dict[str, Any] = {
            "subject": subject,
            "severity": severity,
            "confidence": confidence,
            "fix": fix,
            "targets": targets,
            "op": op,
            "call": call,
            "entry_wide": entry_wide,
            "remedy": remedy,
        }
        interp.notes.reported(
            lambda run, name, depth: run.hooks.report(
                run, code, where.replayed(run, name, depth), message, help, **options
            )
        )
        if interp.entry is None and place.function not in interp.judged:
            return
        page = self.rules[code]
        level = severity or Severity(page.severity)
        sure = confidence or Confidence(page.confidence)
        if (place.guessed or interp.entry is None) and sure is Confidence.HIGH:
            sure = Confidence.MEDIUM
        steps = place.flow
        if interp.entry is None:
            steps = (unreached_step(interp, place.function), *steps)
        key = (code, place.site.path, place.site.start, place.site.end, subject or place.subject)
        old = self._found.get(key)
        if old is not None and (old.confidence.rank, old.severity.rank) >= (sure.rank, level.rank):
            return
        self._found[key] = Finding(
            code=code,
            path=place.site.path,
            start=place.site.start,
            end=place.site.end,
            message=message,
            help=help,
            severity=level,
            confidence=sure,
            subject=subject or place.subject,
            scope=place.scope,
            entry_point=place.entry,
            flow=steps,
            fix=fix,
            targets=targets,
            op=op,
            call=call,
            remedy=remedy,
        )

    def withdraw(self, code: str, site: Site) -> bool:
        """Take back the findings of a rule at a place; whether there were any. Only at the end of a run: no import
        takes back anything."""
        keys = [k for k in self._found if k[0] == code and k[1:4] == tuple(site)]
        for key in keys:
            del self._found[key]
        return bool(keys)

    def findings(self) -> list[Finding]:
        """All findings in their total order."""
        return sorted(self._found.values(), key=lambda f: f.sort_key)


def unreached_step(interp: Interp, function: tuple[str, int]) -> Step:
    """The note of a finding in an open world: nothing in the project shows how its function is called."""
    path, index = function
    fn = interp.modules.by_path[path].facts.functions[index]
    if not index:
        return Step(path, 0, 0, "no entry point runs this module")
    return Step(
        path, fn.start, fn.end, f"no entry point reaches `{fn.qualname}()`; its arguments are unknown"
    )


def replace_fix(
    node: Any, content: str, message: str, applicability: Applicability = Applicability.SAFE
) -> Fix:
    """A fix that replaces a node's text."""
    return Fix(applicability, message, (Edit(node.start, node.end, content),))


def argument_node(node: Any, name: str, pos: int | None = None) -> m.Expr | None:
    """The expression that a call gives an argument by keyword or position; None when it is not written."""
    if not isinstance(node, m.Call):
        return None
    for keyword in node.keywords:
        if keyword.name == name:
            return keyword.value
    if (
        pos is not None
        and pos < len(node.args)
        and not any(isinstance(a, m.Star) for a in node.args[: pos + 1])
    ):
        return node.args[pos]
    return None
