"""What every check uses: making findings with the flow from the entry point, each place once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from d9mlint.base.findings import (
    NO_GENERATOR,
    OF_OPS,
    RAISES,
    RECURRENT,
    REPEATED,
    VARIABLE,
    WARNED,
    WARNS,
    Applicability,
    Confidence,
    Edit,
    Finding,
    Fix,
    Severity,
    Step,
)
from d9mlint.base.options import A_GPU, GPU_TEST, given_in_words, quoted
from d9mlint.base.paths import TESTS
from d9mlint.base.terminal import listed, shortened
from d9mlint.interp import values as v
from d9mlint.interp.activity import HANDS_OVER, KEEPS, LOADS, TRAIN, where
from d9mlint.interp.places import Where
from d9mlint.interp.state import Site
from d9mlint.interp.violations import Violation
from d9mlint.ir import nodes as m
from d9mlint.ir.derived import asserts, is_asserted
from d9mlint.ir.forms import tests_form_only
from d9mlint.project.entry_points import has_main_guard

if TYPE_CHECKING:
    from d9mlint.base.known_calls import KnownCall
    from d9mlint.interp.listening import Listening
    from d9mlint.interp.memory import Memory
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge import Knowledge


_MAX_NOTED = 3
"""How many ops are named that may raise."""
MODE = "mode"
"""Stands in ``remedy`` of a violation whose help is to enable PyTorch's deterministic mode."""
OP_DETERMINISM_MISSING, TF_OPS = "DET306", "DET403"
"""The rule whose remedy is op determinism of TensorFlow, and the one that reports what raises with that."""


def silent(run: RunView, code: str, place: Where | Any, reason: str) -> None:
    """Say why a rule does not report a place that it has looked at. Only ``d9mlint explain`` asks."""
    if run.silences is not None:
        run.silences(code, place.site if isinstance(place, Where) else run.here(place), reason)


class Reporter:
    """Collects the findings of one analysis run. The same finding at the same place is kept once: the most
    confident, then the most severe."""

    def __init__(self, run: RunView, knowledge: Knowledge, codes: frozenset[str]) -> None:
        self.run = run
        self.knowledge = knowledge
        self.rules = knowledge.rules
        self.codes = codes
        self._found: dict[tuple[str, str, int, int, str], Finding] = {}
        self._causes: dict[tuple[str, str, int, int, str], tuple[str, ...]] = {}
        self._doubted: set[tuple[str, str]] = set()
        self._asides: dict[tuple[str, str, int, int, str], str] = {}
        # How many options have to be given.
        self._options: dict[tuple[str, str, int, int, str], int] = {}
        self._raising: dict[tuple[str, str, int, int, str], str] = {}
        self._unchanged: dict[tuple[str, str, int, int, str], str] = {}
        self._may_raise: dict[tuple[str, str, int, int, str], tuple[str, Site]] = {}
        self._libraries: dict[tuple[str, str, int, int, str], str] = {}
        self._only_with: dict[tuple[str, str, int, int, str], tuple[tuple[str, ...], str]] = {}
        self._spared: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._varies_warned = False

    def on(self, *codes: str) -> bool:
        """Whether any of these rules is wanted."""
        return any(code in self.codes for code in codes)

    def add(self, violation: Violation) -> None:
        """Add a violation as a finding.

        Those about a whole program are not made in the run over unreached code, whose findings are of medium
        confidence at most and say that no entry point leads to them.
        """
        run, code, place = self.run, violation.code, violation.place
        if code not in self.codes or (violation.entry_wide and run.entry is None):
            if violation.entry_wide and run.entry is None:
                silent(run, code, place, "it is about whole programs, and no entry point reaches this line")
            return
        run.memory.reported(violation)
        if run.entry is None and place.function not in run.judged:
            return
        page = self.rules[code]
        if run.entry is None and page.family == "seeds" and _in_test_of_form(run, place.function):
            silent(run, code, place, "the test asserts nothing but the form of what it computes")
            return
        level = violation.severity or Severity(page.severity)
        if run.entry is None and page.family == "seeds" and _is_unasserted(run, place):
            silent(
                run, code, place, "a test draws it, and nothing that the test asserts depends on it: advice"
            )
            level = Severity.ADVICE
        sure = violation.confidence or Confidence(page.confidence)
        if (place.guessed or place.aside or run.entry is None) and sure is Confidence.HIGH:
            sure = Confidence.MEDIUM
        steps = place.flow
        given = place.given
        unnamed = [one for one in map(quoted, given) if one not in violation.message]
        if unnamed:
            steps = (*steps, Step(*place.site, _only_if(unnamed)))
        if place.assumed:
            steps = (*steps, Step(*place.site, _assuming(place.assumed)))
        if run.entry is None:
            steps = (unreached_step(run, place.function), *steps)
        subject = violation.subject or place.subject
        key = (code, place.site.path, place.site.start, place.site.end, subject)
        old = self._found.get(key)
        if old is not None:
            # Of two equal ones, that which needs fewer options is kept: its note would be untrue of the other. The remedy
            # for what runs in each round of a loop also holds where it runs once.
            before = (old.confidence.rank, old.severity.rank, -self._options[key], REPEATED in old.remedy)
            if before >= (sure.rank, level.rank, -len(given), REPEATED in violation.remedy):
                return
        self._causes[key] = violation.cause
        self._asides[key] = place.aside
        self._options[key] = len(given)
        self._raising[key] = violation.raises if sure is not Confidence.LOW else ""
        self._unchanged[key] = violation.unchanged
        self._may_raise.pop(key, None)
        if violation.raises and sure is Confidence.LOW:
            self._may_raise[key] = violation.raises, place.site
        self._libraries[key] = violation.library
        self._only_with[key] = violation.only_with, violation.alone
        self._found[key] = Finding(
            code=code,
            path=place.site.path,
            start=place.site.start,
            end=place.site.end,
            message=violation.message,
            help=violation.help,
            severity=level,
            confidence=sure,
            subject=subject,
            scope=place.scope,
            entry_point=place.entry,
            flow=steps,
            fix=violation.fix,
            targets=violation.targets,
            op=violation.op,
            call=violation.call,
            remedy=violation.remedy,
            unless=violation.unless,
        )

    def doubt(self, code: str, subject: str) -> None:
        """Note that a finding of a rule would have low confidence, and so have those that it would cause."""
        self._doubted.add((code, subject))

    def spare(self, text: str, instead: str, options: tuple[str, ...]) -> None:
        """Note an op that raises in deterministic mode and is not reported because it is deterministic without it,
        what can be used instead, and the options that have to be given for it to run."""
        known = self._spared.get(text)
        if known is None or len(options) < len(known[1]):
            self._spared[text] = instead, options

    def varies_warned(self) -> None:
        """Note an op that is deterministic in deterministic mode, but not where the mode only warns."""
        self._varies_warned = True

    def withdraw(self, code: str, site: Site) -> bool:
        """Take back the findings of a rule at a place; whether there were any. Only at the end of a run: no import
        takes back anything."""
        keys = [k for k in self._found if k[0] == code and k[1:4] == tuple(site)]
        for key in keys:
            del self._found[key]
        return bool(keys)

    def sites(self, code: str) -> list[Site]:
        """The places of a rule's findings."""
        return [Site(*key[1:4]) for key in self._found if key[0] == code]

    def subjects(self, code: str) -> list[str]:
        """What a rule's findings are about."""
        return [f.subject for f in self._found.values() if f.code == code]

    def findings(self) -> list[Finding]:
        """All findings in their total order."""
        shown: dict[tuple[str, str], set[str]] = {}
        doubted = {one: {""} for one in self._doubted}
        for key, f in self._found.items():
            if f.severity is not Severity.ADVICE:
                kind = doubted if f.confidence is Confidence.LOW else shown
                kind.setdefault((f.code, f.subject), set()).add(self._asides[key])
        found: list[Finding] = []
        covered: dict[tuple[str, str], set[str]] = {}
        of_torch = [f for key, f in self._found.items() if self._may_hold(f) and self._is_of_torch(key, f)]
        codes = {f.code for f in of_torch}
        for key, f in self._found.items():
            needed, alone = self._only_with[key]
            if needed and codes.isdisjoint(needed):
                flow = (*f.flow, Step(f.path, f.start, f.end, alone, beside=True))
                found.append(msgspec.structs.replace(f, severity=Severity.ADVICE, flow=flow))
                continue
            if needed:
                f = self._naming_ops(f, [one for one in of_torch if one.code in needed])
            # A cause that takes an option says nothing of what happens without it.
            causes = {
                one
                for one in _pairs(self._causes[key])
                if not shown.get(one, _NOWHERE).isdisjoint(("", self._asides[key]))
            }
            if causes and f.op and self._counts(f):
                for cause in causes:
                    covered.setdefault(cause, set()).add(f.subject)
            if causes:
                f = msgspec.structs.replace(f, severity=Severity.ADVICE)
            elif any(self._asides[key] in doubted.get(one, _NOWHERE) for one in _pairs(self._causes[key])):
                # What makes the cause doubtful holds for all that it would fix.
                f = msgspec.structs.replace(f, severity=Severity.ADVICE, confidence=Confidence.LOW)
            found.append(f)
        if covered:
            found = [_covering(f, covered.get((f.code, f.subject), set())) for f in found]
        raises = {key: text for key, text in self._raising.items() if text and key in self._found}
        raising = {f"`{text}` ({key[0]})" for key, text in raises.items() if key[0] != TF_OPS}
        if raising_tf := tuple(
            sorted(f"`{text}` ({TF_OPS})" for key, text in raises.items() if key[0] == TF_OPS)
        ):
            found = [
                msgspec.structs.replace(f, raising=raising_tf) if f.code == OP_DETERMINISM_MISSING else f
                for f in found
            ]
        found = self._with_doubtful(found)
        unchanged = {
            f"`{text}` ({key[0]})"
            for key, text in self._unchanged.items()
            if text and key in self._found and self._counts(self._found[key])
        }
        if any(f.code == "DET405" and VARIABLE in f.remedy and self._counts(f) for f in found):
            found = [_for_recurrent(f) for f in found]
        if unchanged:
            found = [
                msgspec.structs.replace(f, unchanged=tuple(sorted(unchanged)))
                if MODE in f.remedy and not f.op
                else f
                for f in found
            ]
        if _only_demonstrates(self.run):
            found = [self._as_warning(f) for f in found]
        if self._spared and not raising and not self._varies_warned:
            # Without the warnings the program raises, and with them everything in it is deterministic.
            found = [f for f in found if WARNED not in f.remedy]
        if raising or self._spared:
            found = [self._with_raising(f, tuple(sorted(raising))) if MODE in f.remedy else f for f in found]
            # If it did more than warn, the program would raise.
            found = [
                msgspec.structs.replace(f, remedy=(*f.remedy, RAISES)) if WARNED in f.remedy else f
                for f in found
            ]
        return sorted(found, key=lambda f: f.sort_key)

    def _as_warning(self, finding: Finding) -> Finding:
        """A finding that numbers differ between runs where nothing keeps them."""
        differs = self.rules[finding.code].family in ("seeds", "data") and not finding.raising
        if not differs or finding.severity is not Severity.ERROR:
            return finding
        return msgspec.structs.replace(finding, severity=Severity.WARNING)

    def _naming_ops(self, finding: Finding, held: list[Finding]) -> Finding:
        """A finding that stands on others names the ops that they are about, if none of them is shown. It is
        advice if all of them are documented but rare."""
        if any(map(self._counts, held)) or not all(f.op and f.targets for f in held):
            return finding
        first = {f.subject: f for f in sorted(held, key=lambda f: f.sort_key, reverse=True)}
        ops = [first[name] for name in sorted(first)]
        # Of what class a receiver is may not be known.
        names = listed([f"`{f.subject.removeprefix('?.')}`" for f in ops])
        steps = [
            Step(
                f.path,
                f.start,
                f.end,
                f"`{f.subject.removeprefix('?.')}` may differ between runs with {spec}",
                beside=True,
            )
            for f in ops[:_MAX_NOTED]
            if (spec := self._varies_in(f.op))
        ]
        return msgspec.structs.replace(
            finding,
            message=f"{finding.message}; {OF_OPS} {names} may differ between runs ({ops[0].targets[0]})",
            targets=finding.targets or ops[0].targets[:2],
            flow=(*finding.flow, *steps),
            severity=finding.severity if any(self._is_practical(f.op) for f in ops) else Severity.ADVICE,
        )

    def _is_practical(self, op: str) -> bool:
        """Whether an op is more than documented."""
        entry = self.knowledge.op(op)
        return entry is None or entry.practical

    def _varies_in(self, op: str) -> str:
        """The releases in which an op varies as in the one that is assumed; empty if it does in all."""
        entry, targets = self.knowledge.op(op), self.run.targets
        if entry is None or targets is None or len(entry.history) < 2:
            return ""
        now = next((x for x in entry.history if targets.matches(entry.library, x.versions)), None)
        return f"{entry.library} {now.versions}" if now is not None and now.versions else ""

    def _with_doubtful(self, found: list[Finding]) -> list[Finding]:
        """Findings whose remedy is deterministic mode name the ops that may raise in it, which no finding names."""
        sure = {text for text in self._raising.values() if text}
        places: dict[str, Site] = {}
        for text, site in sorted(self._may_raise.values()):
            if text not in sure:
                places.setdefault(text, site)
        notes = tuple(
            Step(*site, f"`{text}` may raise RuntimeError in deterministic mode", beside=True)
            for text, site in list(places.items())[:_MAX_NOTED]
        )
        if not notes:
            return found
        return [msgspec.structs.replace(f, flow=(*f.flow, *notes)) if MODE in f.remedy else f for f in found]

    def _with_raising(self, finding: Finding, raising: tuple[str, ...]) -> Finding:
        """A finding whose remedy is deterministic mode, in a program with ops that raise in it."""
        remedy = finding.remedy
        if self._varies_warned:
            remedy = tuple(word for word in remedy if word != WARNS)
        spared = tuple(
            (f"`{text}`{f', run {_only_if(options)},' if options else ''}", instead)
            for text, (instead, options) in sorted(self._spared.items())
        )
        return msgspec.structs.replace(finding, raising=raising, spared=spared, remedy=remedy)

    def reported(self, code: str, *subjects: str) -> bool:
        """Whether this run has a finding of a rule that is more than advice, about one of these subjects if any are
        given."""
        return any(
            f.code == code and (not subjects or f.subject in subjects) and self._counts(f)
            for f in self._found.values()
        )

    def _may_hold(self, finding: Finding) -> bool:
        """Whether a finding is not one that a condition would have to make true which is seldom met where nothing is
        known of it."""
        if finding.confidence is not Confidence.LOW or not finding.op:
            return True
        entry = self.knowledge.op(finding.op)
        return entry is None or entry.if_unknown != "low" or not entry.static or entry.confidence == "low"

    def _is_of_torch(self, key: tuple[str, str, int, int, str], finding: Finding) -> bool:
        """Whether the modes of PyTorch may reach what a finding is about: they do not reach libraries with kernels of
        another kind."""
        entry = self.knowledge.op(finding.op) if finding.op else None
        library = self._libraries[key] if entry is None else entry.library
        # Of torch itself it is known op by op.
        return library == "torch" or self.knowledge.role(library, "mode-changes-nothing") is None

    @staticmethod
    def _counts(finding: Finding) -> bool:
        """Whether a finding is shown by default."""
        return finding.severity is not Severity.ADVICE and finding.confidence is not Confidence.LOW


def _only_demonstrates(run: RunView) -> bool:
    """Whether the program trains nothing, loads no weights and writes nothing, so that it leaves no result: it is a module
    that others import, which shows by itself that it works, or prints nothing but fixed texts and gives nothing to what is
    not known."""
    entry = run.entry
    if entry is None or run.exhausted or entry.notebook:
        return False
    if any(where(run, flag) is not None for flag in (TRAIN, LOADS, KEEPS)):
        return False
    imported = entry.path in run.used_files and has_main_guard(entry)
    return imported or where(run, HANDS_OVER) is None


def seeded_generator(run: RunView, api: str) -> tuple[str, tuple[str, ...]]:
    """What is to be done about a call that draws from torch's global generator, and the words for ``remedy``."""
    role = run.kb.role(api, "takes-generator")
    if role is not None and run.targets is not None and not run.targets.matches(role.library, role.versions):
        where = "before the loop" if run.repeating else "right before the first use"
        return f"call `torch.manual_seed(0)` once, {where}", (NO_GENERATOR,)
    if run.repeating:
        return "pass a `generator=` that is made and seeded once, before the loop", (REPEATED,)
    return "pass `generator=torch.Generator().manual_seed(0)`", ()


def _for_recurrent(finding: Finding) -> Finding:
    """A finding of a program with recurrent layers of cuDNN: the workspace that it asks for is the one that they need."""
    if _WORKSPACE not in finding.help:
        return finding
    help = finding.help.replace(_WORKSPACE, _OF_RECURRENT)
    return msgspec.structs.replace(finding, help=help, remedy=(*finding.remedy, RECURRENT))


_WORKSPACE, _OF_RECURRENT = '":4096:8"', '":16:8"'
"""The value of cuBLAS's variable that a help asks for, and the one that deterministic mode and recurrent layers take."""


def _covering(finding: Finding, ops: set[str]) -> Finding:
    """A finding that names the ops whose findings have its remedy."""
    if not ops:
        return finding
    named = shortened([f"`{op}`" for op in sorted(ops)], _MOST_COVERED)
    text = f"{finding.help} (also the remedy for {named})"
    return msgspec.structs.replace(finding, help=text)


_NOWHERE: frozenset[str] = frozenset()
_MOST_COVERED = 4
"""Ops that a help names."""


def _assuming(choices: Sequence[str]) -> str:
    """That the command line is taken to choose these parts of a configuration, which leaves them open."""
    return f"assuming {' and '.join(f'`{one}`' for one in choices)}, which the configuration leaves open"


def _only_if(options: Sequence[str]) -> str:
    """That these options have to be given, or chosen: ``data=mnist``."""
    chosen = [one for one in options if "=" in one]
    others = [one for one in options if "=" not in one and one != GPU_TEST]
    are, values = "is", "has another value than its default"
    if chosen[1:]:
        are = "are"
    if others[1:]:
        values = "have other values than their defaults"
    said = [
        *([f"{' and '.join(chosen)} {are} chosen"] if chosen else []),
        *([f"{' and '.join(others)} {values}"] if others else []),
        *([given_in_words(A_GPU)] if GPU_TEST in options else []),
    ]
    return f"only if {' and '.join(said)}"


def _pairs(cause: tuple[str, ...]) -> set[tuple[str, str]]:
    """The findings that a cause names: a rule and its subjects."""
    return {(cause[0], subject) for subject in cause[1:]}


class Rule:
    """A rule, or a few that belong together, in one run: its fields are the state of the run (see
    ``interp.memory``), its methods listen to events (see ``interp.listening``).

    It is started for a run where one of ``codes`` is wanted; without codes, always.
    """

    codes: ClassVar[tuple[str, ...]] = ()
    fixed_with: ClassVar[tuple[str, ...]] = ()
    """Codes of other rules whose findings decide about the fixes of this one: they are judged even where they are not
    wanted, so that a fix does not depend on the selection."""

    def __init__(self, run: RunView, reporter: Reporter) -> None:
        self.run = run
        self.reporter = reporter

    def also(self) -> Iterable[tuple[Listening, Callable[[Any], None]]]:
        """What the rule listens to besides, by names of the knowledge base."""
        return ()

    @property
    def memory(self) -> Memory:
        """Where the fields of the rule are remembered."""
        return self.run.memory

    def report(
        self,
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
        cause: tuple[str, ...] = (),
        raises: str = "",
        unchanged: str = "",
        unless: str = "",
        only_with: tuple[str, ...] = (),
        alone: str = "",
        library: str = "",
    ) -> None:
        """The rule is violated at a node or a remembered place; see ``interp.violations``."""
        if not isinstance(place, Where):
            place = Where(self.run, place, subject)
        self.reporter.add(
            Violation(
                code,
                place,
                message,
                help,
                subject,
                severity,
                confidence,
                fix,
                targets,
                op,
                call,
                entry_wide,
                remedy,
                cause,
                raises,
                unchanged,
                unless,
                only_with,
                alone,
                library,
            )
        )

    def silent(self, code: str, place: Where | Any, reason: str) -> None:
        """Say why a place that was looked at is not reported. Only ``d9mlint explain`` asks."""
        silent(self.run, code, place, reason)


def _in_test_of_form(interp: RunView, function: tuple[str, int] | None) -> bool:
    """Whether a function is a test that looks at forms only, so that what it draws does not matter."""
    if function is None or not function[1]:
        return False
    return tests_form_only(interp.modules.by_path[function[0]].facts.functions[function[1]])


def _is_unasserted(interp: RunView, place: Where) -> bool:
    """Whether a test draws something on which nothing depends that it asserts."""
    if place.function is None or not place.function[1] or place.site.path != place.function[0]:
        return False
    path, index = place.function
    function = interp.modules.by_path[path].facts.functions[index]
    if not function.name.startswith("test") or not TESTS.search(path) or not asserts(function):
        return False
    return not is_asserted(function, place.site.start)


def unreached_step(interp: RunView, function: tuple[str, int]) -> Step:
    """The note of a finding in an open world: nothing in the project shows how its function is called."""
    path, index = function
    fn = interp.modules.by_path[path].facts.functions[index]
    if not index:
        return Step(path, 0, 0, "no entry point runs this module")
    tested = path in interp.used_files and has_main_guard(interp.modules.by_path[path])
    but = " but its own module's test" if tested else ""
    return Step(
        path, fn.start, fn.end, f"no entry point{but} reaches `{fn.qualname}()`; its arguments are unknown"
    )


def replace_fix(
    node: Any, content: str, message: str, applicability: Applicability = Applicability.SAFE
) -> Fix:
    """A fix that replaces a node's text."""
    return Fix(applicability, message, (Edit(node.start, node.end, content),))


def called_api(run: RunView, call: m.Call) -> str:
    """The name in a library of what a call is written to call, as its names stand there; empty for anything else."""
    func = run.value_of(call.func)
    return run.kb.canonical(func.name) if isinstance(func, v.Ext) else ""


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
