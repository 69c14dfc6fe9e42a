"""What the analysis knows at a line, as text and as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from d9mlint.base.options import A_GPU, given_in_words, quoted
from d9mlint.base.paths import relative_to
from d9mlint.base.terminal import clean
from d9mlint.report.common import count

if TYPE_CHECKING:
    from d9mlint.base.findings import Step
    from d9mlint.explain import Caller, Explanation, Run, Verdict
    from d9mlint.interp.recording import Blocked, CallFact, Level, Match, Test, ValueFact, Visit
    from d9mlint.interp.state import Setting
    from d9mlint.knowledge.schema import Condition

Words = Callable[["Condition"], str]
"""A condition of the knowledge base in words."""
ANSWERS = {True: "yes", False: "no", None: "unknown"}
AROUND = 4
"""So many lines of a long statement are shown before and after the one that is asked about."""


class Explained:
    """An explanation with the words for its conditions."""

    def __init__(self, explanation: Explanation, words: Words) -> None:
        self.of = explanation
        self.words = words
        self.root = explanation.inspection.found.root
        self.sources = explanation.inspection.sources

    # --------------------------------------------------------------------------------------- places

    def place(self, site: Any) -> str:
        """A site as ``file:row``."""
        if site is None:
            return ""
        source = self.sources.get(site.path)
        row = source.row_column(site.start)[0] if source is not None else 1
        return f"{relative_to(site.path, self.root)}:{row}"

    def _blocked(self, blocked: Blocked) -> dict[str, Any]:
        test = self._text(blocked.site.path, *blocked.test) if blocked.test else None
        return {"reason": blocked.reason, "test": test, "at": self._site(blocked.site)}

    def _because(self, blocked: Blocked) -> str:
        """Why a line does not run."""
        if blocked.test is None:
            return f"{self.place(blocked.site)}: {blocked.reason}"
        test = self._text(blocked.site.path, *blocked.test)
        return f"{self.place(blocked.site)}: {blocked.reason.replace('this test', f'the test `{test}`', 1)}"

    def _site(self, site: Any) -> dict[str, Any] | None:
        if site is None:
            return None
        source = self.sources.get(site.path)
        row, column = source.row_column(site.start) if source is not None else (1, 1)
        return {"filename": relative_to(site.path, self.root), "row": row, "column": column}

    def _code(self, start: int, end: int) -> str:
        return self._text(self.of.source.path, start, end)

    def _text(self, path: str, start: int, end: int) -> str:
        """Code on one line, cut if it is long."""
        source = self.sources.get(path)
        text = " ".join(source.raw[start:end].split()) if source is not None else ""
        text = text.replace("( ", "(").replace(", )", ")").replace(" )", ")")
        return text if len(text) <= 60 else text[:57] + "..."

    # ----------------------------------------------------------------------------------------- data

    def data(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        one = self.of
        return {
            "filename": one.source.path,
            "row": one.row,
            "statement": {"row": one.rows[0], "end_row": one.rows[1]},
            "code": one.source.line(one.row).strip(),
            "function": one.function or None,
            "runs": [self._run(run) for run in one.runs],
            "other_entry_points": list(one.others),
            "entry_points_that_pass_by": list(one.passing),
            "calls_that_do_not_run": [
                {
                    **(self._site(x.site) or {}),
                    "name": x.code,
                    "how": x.how,
                    "function": x.function or None,
                    "entry_point": x.entry or None,
                    "runs": x.runs,
                    "not_run_because": [self._blocked(b) for b in x.blocked],
                }
                for x in one.callers
            ],
        }

    def _run(self, run: Run) -> dict[str, Any]:
        return {
            "entry_point": self.entry(run),
            "device": run.recording.devices,
            "program": [{"what": what, "at": self._site(site)} for what, site in run.recording.activity],
            "versions": {name: {"version": t.version, "source": t.source} for name, t in run.targets},
            "times": run.recording.times,
            "cut_off": run.budget,
            "failure": run.failure or None,
            "not_run_because": [self._blocked(b) for b in run.recording.blocked],
            "visits": [self._visit(visit) for visit in run.recording.visits],
            "rules": [self._verdict(verdict) for verdict in run.verdicts],
        }

    def entry(self, run: Run) -> str | None:
        """The name of an entry point."""
        if run.entry is None:
            return None
        return run.entry.file.relative + (f":{run.entry.function}" if run.entry.function else "")

    def _visit(self, visit: Visit) -> dict[str, Any]:
        return {
            "call_path": [{**(self._site(step) or {}), "message": step.message} for step in visit.flow],
            "function": visit.scope or None,
            "generators": {
                x.generator: {
                    "state": x.level,
                    "at": self._site(x.site),
                    "option": x.option or None,
                    "helper": x.helper or None,
                }
                for x in visit.generators
            },
            "modes": {name: self._setting(x) for name, x in visit.modes},
            "environment": {name: self._setting(x) for name, x in visit.variables},
            "contexts": list(visit.contexts),
            "options": list(visit.options),
            "only_with_option": visit.aside or None,
            "receiver_guessed": visit.guessed,
            "may_not_happen": visit.uncertain,
            "arbitrary_loops": [{"rule": rule, "at": self._site(site)} for rule, site in visit.loops],
            "sets": list(visit.changes),
            "calls": [self._call(call) for call in visit.calls],
            "draws": [
                {"generator": d.level.generator, "state": d.level.level, "entry": d.entry, "kind": d.kind}
                for d in visit.draws
            ],
            "values": [{"code": self._code(x.start, x.end), **self._value(x.value)} for x in visit.values],
        }

    def _setting(self, setting: Setting) -> dict[str, Any]:
        return {"value": setting.value, "at": self._site(setting.site), "option": setting.option or None}

    def _call(self, call: CallFact) -> dict[str, Any]:
        return {
            "api": call.api,
            "code": self._code(call.start, call.end),
            "receiver": self._value(call.receiver) if call.receiver is not None else None,
            "arguments": {name: self._value(x) for name, x in call.arguments},
            "knowledge": [self._match(match) for match in call.entries],
        }

    def _match(self, match: Match) -> dict[str, Any]:
        return {
            "kind": match.kind,
            "id": match.id,
            "library": match.library,
            "rule": match.rule or None,
            "versions": match.versions,
            "version": match.target or None,
            "applies": match.applies,
            "holds": match.holds,
            "conditions": [
                {"condition": self.words(t.condition), "answer": t.answer, "must_not_hold": t.unless}
                for t in match.tests
            ],
            "detail": match.detail,
        }

    def _value(self, fact: ValueFact) -> dict[str, Any]:
        return {
            "what": fact.what,
            "device": fact.device or None,
            "requires_grad": fact.grad,
            "dtype": fact.dtype or None,
            "sizes": list(fact.sizes) if fact.sizes is not None else None,
            "order": [{"rule": rule, "at": self._site(site)} for rule, site in fact.order],
            "differs_between_runs": fact.entropy,
            "option": fact.option or None,
        }

    def _verdict(self, verdict: Verdict) -> dict[str, Any]:
        found = verdict.finding
        return {
            "code": verdict.code,
            "name": verdict.name,
            "state": verdict.state,
            "message": found.message if found is not None else None,
            "reasons": list(verdict.reasons),
        }

    # ----------------------------------------------------------------------------------------- text

    def text(self) -> str:
        """Lines for people."""
        one = self.of
        where = f"{relative_to(one.source.path, self.root)}:{one.row}"
        inside = f" in `{one.function}()`" if one.function else ""
        lines = [f"{where}{inside}", *self._statement(), ""]
        for run in one.runs:
            lines += self._run_lines(run)
        if one.others:
            lines += [f"Also reached from {', '.join(one.others)}; see one of them with --entry."]
        if not any(run.entry for run in one.runs) and one.passing:
            lines += [
                f"These entry points run the file without reaching this function: {', '.join(one.passing)}."
            ]
        for caller in one.callers:
            lines += self._caller(caller)
        return "".join(clean(line.rstrip()) + "\n" for line in lines)

    def _statement(self) -> Iterator[str]:
        """The lines of the statement, the one that is asked about marked if there are several."""
        (first, last), row = self.of.rows, self.of.row
        if first == last:
            yield f"    {self.of.source.line(row).strip()}"
            return
        shown = [one for one in range(first, last + 1) if one in (first, last) or abs(one - row) <= AROUND]
        texts = [self.of.source.line(one).rstrip() for one in shown]
        indent = min((len(text) - len(text.lstrip()) for text in texts if text), default=0)
        before = first
        for one, text in zip(shown, texts, strict=True):
            if one > before + 1:
                yield "    ..."
            yield f"{'  > ' if one == row else '    '}{text[indent:]}"
            before = one

    def _caller(self, caller: Caller) -> Iterator[str]:
        call = f"`{caller.code}` is {caller.how} at {self.place(caller.site)}"
        inside = f" in `{caller.function}()`" if caller.function else ""
        if not caller.entry:
            yield f"{call}{inside}, which no entry point reaches."
        elif caller.runs:
            yield f"{call}{inside}, which {caller.entry} reaches, but it was not followed from there to this line."
        else:
            yield f"{call}{inside}, which {caller.entry} reaches, but this line does not run"
            for blocked in caller.blocked:
                yield f"  because of {self._because(blocked)}"

    def _run_lines(self, run: Run) -> Iterator[str]:
        recording = run.recording
        if run.entry is None:
            yield "No entry point reaches this line: its arguments and what ran before it are unknown."
        else:
            yield f"Entry point {self.entry(run)}"
        for what, site in recording.activity:
            yield f"  the program {what} at {self.place(site)}"
        for name, target in run.targets:
            yield f"  {name} {target.version} ({target.source})"
        if run.budget:
            yield "  the step budget of the analysis was used up before this line: calls are no longer followed"
        if run.failure:
            yield f"  the analysis was cut off: {run.failure}"
        if not recording.visits:
            yield "  the line does not run here"
            for blocked in recording.blocked:
                yield f"  because of {self._because(blocked)}"
        cases: dict[tuple[str, ...], tuple[str, ...]] = {}
        for visit in recording.visits:
            # What is the same but for what is not shown is shown once.
            cases.setdefault(tuple(self._visit_lines(visit)), tuple(self._flow_lines(visit)))
        for number, (lines, way) in enumerate(cases.items(), 1):
            if len(cases) > 1:
                yield f"  Case {number} of {len(cases)}"
            yield from (f"  {line}" for line in (*way, *lines))
        yield ""
        yield from self._verdict_lines(run.verdicts)

    def _flow_lines(self, visit: Visit) -> Iterator[str]:
        for step in visit.flow:
            code = f": `{self._text(step.path, step.start, step.end)}`" if self._is_long(step) else ""
            yield f"{self.place(step)}: {step.message}{code}"

    def _visit_lines(self, visit: Visit) -> Iterator[str]:
        if visit.guessed:
            yield "the receiver of a call on the way is guessed from the method's name"
        if visit.aside:
            yield (
                f"this path is taken only if {given_in_words(visit.aside)}"
                if visit.aside == A_GPU
                else f"this path is taken only with the option {quoted(visit.aside)}"
            )
        elif visit.uncertain:
            yield "a call on the way may not happen"
        named = [x for x in visit.generators if x.level != "unseeded" or x.option]
        if all(x.level == "maybe" and x.site is None for x in visit.generators):
            yield "random: what is seeded before this line is unknown"
            named = []
        rest = [
            x for x in visit.generators if x.generator in _MAIN and x.level == "unseeded" and x not in named
        ]
        for level in named:
            yield f"random: {self._level(level)}"
        if rest:
            yield f"random: {', '.join(x.title for x in rest)} not seeded before this line"
        for name, setting in visit.modes:
            yield f"mode: {name} is {self._set(setting)}"
        for name, setting in visit.variables:
            yield f"variable: {name} is {self._set(setting)}"
        if visit.contexts:
            yield f"inside: {', '.join(visit.contexts)}"
        for rule, site in visit.loops:
            yield f"order: a loop around this line runs in an arbitrary order ({rule}, from {self.place(site)})"
        values = [(self._code(x.start, x.end), x.value.what, self._facts(x.value)) for x in visit.values]
        for text, what, facts in dict.fromkeys(values):
            if facts or what.startswith(("function ", "class ")):
                yield f"value: `{text}` is {what}{facts}"
        for call in visit.calls:
            yield f"call: `{self._code(call.start, call.end)}` is {_api(call)}"
            if call.receiver is not None and call.receiver.what != "unknown":
                yield f"  receiver: {call.receiver.what}{self._facts(call.receiver)}"
            for match in call.entries:
                yield from (f"  {line}" for line in self._match_lines(match))
            if not call.entries:
                yield "  no entry of the knowledge base is about it"
        for draw in visit.draws:
            yield f"draws: {self._level(draw.level)} ({draw.kind}, {draw.entry})"
        if visit.changes:
            yield f"sets: {', '.join(visit.changes)}"

    def _is_long(self, step: Step) -> bool:
        source = self.sources.get(step.path)
        return source is not None and source.row_column(step.start)[0] != source.row_column(step.end)[0]

    def _match_lines(self, match: Match) -> Iterator[str]:
        rule = f", rule {match.rule}" if match.rule else ""
        detail = f": {match.detail}" if match.detail else ""
        yield f"knowledge: {match.kind} {match.id}{rule}{detail}"
        if not match.applies:
            versions = f", the entry is about {match.versions}" if match.versions else ""
            yield f"  not for {match.library} {match.target}{versions}"
        for test in match.tests:
            yield f"  {self._test(test)}"

    def _test(self, test: Test) -> str:
        word = "not when" if test.unless else "only when"
        answer = ANSWERS[test.answer] if test.given or test.answer is not None else "not given"
        return f"{word} {self.words(test.condition)}: {answer}"

    def _level(self, level: Level) -> str:
        where = f" at {self.place(level.site)}" if level.site is not None else ""
        if level.level == "seeded":
            return f"{level.title} is seeded{where}"
        if level.level == "maybe":
            by = f" by `{level.helper}`, of which only the name is known," if level.helper else ""
            return f"{level.title} may be seeded{by}{where}"
        if level.option:
            return f"{level.title} is not seeded unless {given_in_words(level.option)}{where}"
        return f"{level.title} is not seeded"

    def _set(self, setting: Setting) -> str:
        value = "unknown" if setting.value is None else repr(setting.value)
        option = f", by the default of {quoted(setting.option)}" if setting.option else ""
        where = f", set at {self.place(setting.site)}" if setting.site is not None else ""
        return f"{value}{option}{where}"

    def _facts(self, fact: ValueFact) -> str:
        parts: list[str] = []
        if fact.device:
            parts.append(f"on {fact.device}")
        if fact.grad is not None:
            parts.append("requires grad" if fact.grad else "does not require grad")
        if fact.dtype:
            parts.append(fact.dtype)
        if fact.sizes is not None:
            parts.append("sizes (" + ", ".join("?" if n is None else str(n) for n in fact.sizes) + ")")
        if fact.option:
            variable = fact.option.startswith("$")
            kind, name = ("environment variable", fact.option[1:]) if variable else ("option", fact.option)
            parts.append(f"the default of the {kind} `{name}`")
        if fact.with_gpu:
            parts.append("where there is a GPU")
        if fact.entropy:
            parts.append("differs between runs")
        parts += [f"in arbitrary order ({rule}, from {self.place(site)})" for rule, site in fact.order]
        return ", " + ", ".join(parts) if parts else ""

    def _verdict_lines(self, verdicts: Sequence[Verdict]) -> Iterator[str]:
        for verdict in verdicts:
            found = verdict.finding
            message = f": {found.message}" if found is not None else ""
            yield f"  {verdict.code} {verdict.name} is {verdict.state}{message}"
            for reason in verdict.reasons:
                yield f"    because {reason}" if verdict.state != "reported" else f"    {reason}"
        if not verdicts:
            yield "  No rule has anything to do with this line, as far as the analysis sees."
        yield ""


_MAIN = frozenset({"torch", "numpy", "python"})


def _api(call: CallFact) -> str:
    head, _, rest = call.api.partition(".")
    if head == "?":
        return f"the method `{rest}` of an unknown receiver" if rest else "unknown"
    return f"`{call.api}`"


def counted(explanation: Explanation) -> str:
    """How many entry points reach the line."""
    return count(
        sum(run.entry is not None for run in explanation.runs) + len(explanation.others), "entry point"
    )
