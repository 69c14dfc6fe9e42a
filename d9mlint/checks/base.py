"""What every check uses: making findings with the flow from the entry point, each place once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.base.findings import Applicability, Confidence, Edit, Finding, Fix, Severity, Step
from d9mlint.interp.state import Site
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Frame, Interp
    from d9mlint.interp.link import Program


class Where:
    """A remembered place in a run: its site, the flow to it, and the function around it."""

    __slots__ = ("aside", "entry", "flow", "guessed", "option", "order", "scope", "site", "subject")

    def __init__(self, interp: Interp, node: Any, subject: str = "", option: str = "") -> None:
        self.site: Site = interp.here(node)
        self.flow = flow(interp)
        self.scope = scope(interp)
        self.entry = interp.entry.relative if interp.entry is not None else None
        self.subject = subject
        self.option = option
        self.guessed = interp.guessing > 0
        self.aside = interp.state.aside
        self.order = interp.steps


def scope(interp: Interp) -> str:
    """Qualified name of the function that is running, empty at module level."""
    frame: Frame | None = interp.frame
    while frame is not None and frame.func is None and frame.is_class:
        frame = frame.caller
    return frame.func.fn.qualname if frame is not None and frame.func is not None else ""


def flow(interp: Interp) -> tuple[Step, ...]:
    """The calls from the entry point to the present place."""
    steps: list[Step] = []
    for frame in interp.stack():
        if frame.caller is None or frame.call_site is None or frame.is_class:
            continue
        name = frame.label
        text = f"{name} starts here" if name.startswith("import of") else f"{name}() is called here"
        if frame.call_site.end:
            steps.append(Step(frame.call_site.path, frame.call_site.start, frame.call_site.end, text))
    return tuple(steps)


class Reporter:
    """Collects findings. The same finding at the same place is kept once; where several entry points lead
    to it, the first keeps its flow and the others are named in the message."""

    def __init__(self, program: Program, codes: frozenset[str]) -> None:
        self.program = program
        self.codes = codes
        self._found: dict[tuple[str, str, int, int, str], Finding] = {}
        self._entries: dict[tuple[str, str, int, int, str], list[str]] = {}

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
        entry_wide: bool = False,
    ) -> None:
        """Add a finding at a node or a remembered place. Level and confidence are the rule page's unless given.

        ``entry_wide`` findings are about a whole program: they are not made in the run over unreached code.
        """
        if code not in self.codes or (entry_wide and interp.entry is None):
            return
        if not isinstance(place, Where):
            if interp.entry is None and interp.frame is not None and self._seen_already(interp):
                return
            place = Where(interp, place, subject)
        page = self.program.knowledge.rules[code]
        level = severity or Severity(page.severity)
        sure = confidence or Confidence(page.confidence)
        if place.guessed and sure is Confidence.HIGH:
            sure = Confidence.MEDIUM
        key = (code, place.site.path, place.site.start, place.site.end, subject or place.subject)
        old = self._found.get(key)
        entries = self._entries.setdefault(key, [])
        if old is not None:
            # The surest telling of it stands, then the gravest; who is less sure is not named beside it.
            if old.confidence.rank > sure.rank:
                return
            if old.confidence.rank < sure.rank:
                entries.clear()
            if place.entry and place.entry not in entries:
                entries.append(place.entry)
            if old.confidence is sure and old.severity.rank >= level.rank:
                return
        elif place.entry:
            entries.append(place.entry)
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
            flow=place.flow,
            fix=fix,
            targets=targets,
            op=op,
        )

    def _seen_already(self, interp: Interp) -> bool:
        """In the run over unreached code: whether an entry point's run has judged this function before."""
        frame: Frame | None = interp.frame
        while frame is not None:
            if frame.func is not None:
                return id(frame.func.fn) in interp.already
            if not frame.is_class:
                facts = frame.file.facts
                return bool(facts.functions) and id(facts.functions[0]) in interp.already
            frame = frame.caller
        return False

    def withdraw(self, code: str, site: Site) -> None:
        """Take back the findings of a rule at a place."""
        for key in [k for k in self._found if k[0] == code and k[1:4] == tuple(site)]:
            del self._found[key]

    def findings(self) -> list[Finding]:
        """All findings in their total order."""
        result: list[Finding] = []
        for key, finding in self._found.items():
            others = [e for e in self._entries[key] if e != finding.entry_point]
            if others and finding.entry_point:
                named = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
                message = f"{finding.message} (also when {named} runs)"
                finding = _with_message(finding, message)
            result.append(finding)
        return sorted(result, key=lambda f: f.sort_key)


def _with_message(finding: Finding, message: str) -> Finding:
    import msgspec

    return msgspec.structs.replace(finding, message=message)


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
