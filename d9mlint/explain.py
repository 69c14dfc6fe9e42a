"""``d9mlint explain FILE:LINE``: what the analysis knows at a line, and what each rule says of it and why.

The analysis runs as always and says which entry points reach the function around the line. Those runs are made
once more with a recorder (see ``interp.recording``), by all rules; their findings are then followed through
selection, comments, thresholds and the baseline, as far as each of them comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.base.errors import UsageError
from d9mlint.base.paths import absolute
from d9mlint.base.terminal import count
from d9mlint.checks.seeded_anywhere import why_seeded
from d9mlint.config.selection import FileIgnores, expand, select, shown
from d9mlint.interp.recording import Blocked, Match, Recording, Spot, find_spot, statements_of
from d9mlint.interp.state import Site
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes

if TYPE_CHECKING:
    from d9mlint.analysis import Share
    from d9mlint.base.entry_report import EntryReport
    from d9mlint.base.findings import Finding
    from d9mlint.base.source import Source
    from d9mlint.config.projects import Part
    from d9mlint.config.settings import Settings
    from d9mlint.config.targets import Target
    from d9mlint.ir.nodes import FileFacts
    from d9mlint.pipeline import Inspection
    from d9mlint.project.entry_points import Entry
    from d9mlint.project.modules import ModuleFile

MOST_ENTRIES = 4
"""So many entry points that reach the line are looked at, unless one is named."""
MOST_PLACES = 6
"""So many places that name a function are looked at."""
PROGRAM_RULES = frozenset({"DET302", "DET305", "DET306"})
"""Rules about a program as a whole, which stand where it trains."""
MODE = "torch.deterministic"
REPORTED, SUPPRESSED, HELD_BACK, NOT_SELECTED, SILENT = (
    "reported",
    "suppressed",
    "held back",
    "not selected",
    "silent",
)


class Verdict(NamedTuple):
    """What a rule says of the line: ``state`` is one of the words above; ``finding`` what it would report."""

    code: str
    name: str
    state: str
    reasons: tuple[str, ...]
    finding: Finding | None = None


class Run(NamedTuple):
    """An entry point that reaches the line (None: the run over code that none reaches), and what it noted."""

    entry: Entry | None
    recording: Recording
    targets: tuple[tuple[str, Target], ...]
    verdicts: tuple[Verdict, ...]
    budget: bool
    failure: str


class Caller(NamedTuple):
    """A place that names the function around a line that no entry point reaches, or the class of a method that is not
    called by name, and ``how``: it is "called" there, or only "named". ``entry`` is the one that reaches the
    function around the call (empty: none does), ``runs`` whether it runs there, and ``blocked`` why it does not."""

    site: Site
    code: str
    how: str
    function: str
    entry: str
    runs: bool
    blocked: tuple[Blocked, ...]


class Explanation(NamedTuple):
    """All about a line. ``rows`` are the first and the last one of its statement. ``others`` are further entry points
    that reach it; ``passing`` are the names of the entry points that run the file without reaching the function around
    the line, and ``callers`` the calls that would reach it."""

    source: Source
    row: int
    rows: tuple[int, int]
    function: str
    runs: tuple[Run, ...]
    others: tuple[str, ...]
    passing: tuple[str, ...]
    callers: tuple[Caller, ...]
    inspection: Inspection


def explain(
    path: str, row: int, settings: Settings, *, rules: Sequence[str] = (), entry: str = ""
) -> Explanation:
    """What is known at a row (1-based, cells of a notebook joined) of a file. ``rules`` are asked about in any
    case; ``entry`` names the entry point to look at. Raises UsageError where there is no such line."""
    from d9mlint.pipeline import inspect

    seen = inspect([path], settings)
    name = absolute(path)
    source = seen.sources[name]
    problem = source.problem or seen.plan.facts[name].problem
    if problem is not None:
        raise UsageError(f"{path} cannot be analyzed: {problem.message}.")
    facts = seen.plan.facts[name]
    spot = _spot(path, name, source, facts, row)
    share, part = _share(seen, name)
    asked = [code for word in rules for code in expand(word, seen.plan.rules, "--rule")]
    index = seen.plan.project.index[name]
    reaching = _reaching(seen, index, spot.function, entry)
    passing = _passing(seen, index, spot.function)
    runs: list[Run] = []
    told = {_entry_name(seen, at) for at, _ in reaching[:MOST_ENTRIES]}
    for at, of_entry in reaching[:MOST_ENTRIES]:
        report, recording = _loud(seen, of_entry).record_entry(at, spot)
        one = seen.plan.project.entries[at]
        # What is reported for an entry point is listed with it; for one that is not among these, with the first.
        others = told - {_entry_name(seen, at)}
        runs.append(_run(seen, part, of_entry, one, report, recording, spot, asked, others, first=not runs))
    if not reaching:
        reached = {i for report in seen.runs.entries for i in report.functions_reached().get(index, ())}
        report, recording = _loud(seen, share).record_unreached((index, tuple(sorted(reached))), spot)
        runs.append(_run(seen, part, share, None, report, recording, spot, asked, set(), first=True))
    further = [_entry_name(seen, at) for at, _ in reaching[MOST_ENTRIES:]]
    qualname = facts.functions[spot.function].qualname if spot.function else ""
    callers = () if reaching else tuple(_callers(seen, index, spot.function))
    return Explanation(
        source, row, _rows(source, spot), qualname, tuple(runs), tuple(further), tuple(passing), callers, seen
    )


def _spot(path: str, name: str, source: Source, facts: FileFacts, row: int) -> Spot:
    # Behind the last line end there is no line any more.
    last = source.lines - (source.lines > 1 and not source.line(source.lines))
    if not 1 <= row <= last:
        raise UsageError(f"{path} has {count(last, 'line')}; there is no line {row}.")
    start = source.starts[row - 1]
    end = source.starts[row] if row < source.lines else len(source.text)
    text = source.text[start:end]
    found = find_spot(facts, name, start + len(text) - len(text.lstrip()), start + len(text.rstrip()))
    if found is not None:
        return found
    rows = sorted({source.row_column(stmt.start)[0] for stmt, _, _ in statements_of(facts)})
    near = min(rows, key=lambda one: (abs(one - row), one), default=0)
    hint = f" The nearest line with one is {near}." if near else ""
    raise UsageError(f"No statement stands at {path}:{row}.{hint}")


def _rows(source: Source, spot: Spot) -> tuple[int, int]:
    """The rows of the innermost statement of a line, of its header where statements stand in it."""
    inner = max(spot.statements, key=lambda stmt: int(stmt.start))
    first = source.row_column(inner.start)[0]
    row = source.row_column(spot.start)[0]
    body = getattr(inner, "body", None) or isinstance(inner, (m.FunctionDef, m.ClassDef, m.Try))
    last = row if body else source.row_column(max(inner.start, inner.end - 1))[0]
    return min(first, row), max(last, row)


def _callers(seen: Inspection, index: int, function: int) -> Iterator[Caller]:
    """The places by which a function would be reached, back to those in code that an entry point reaches."""
    files = seen.plan.project.modules.files
    wanted = [(index, function)]
    done: set[tuple[int, int]] = set()
    while wanted and len(done) < MOST_ENTRIES:
        at, of = wanted.pop(0)
        done.add((at, of))
        name, places = _named(seen, at, of)
        for where, around, node, how in places:
            facts, path = files[where].facts, files[where].path
            site = Site(path, node.start, node.end)
            title = facts.functions[around].qualname if around else ""
            found = find_spot(facts, path, node.start, node.end)
            reaching = _reaching(seen, where, around, "")
            if found is not None and reaching:
                entry, share = reaching[0]
                _, recording = _loud(seen, share).record_entry(entry, found)
                runs = bool(recording.visits)
                yield Caller(site, name, how, title, _entry_name(seen, entry), runs, recording.blocked)
            elif (where, around) != (at, of):
                yield Caller(site, name, how, title, "", False, ())
                if around and (where, around) not in {*done, *wanted}:
                    wanted.append((where, around))


def _named(seen: Inspection, at: int, of: int) -> tuple[str, list[tuple[int, int, Any, str]]]:
    """The name of a function, or of its class where that says more, and the places that name it."""
    files = seen.plan.project.modules.files
    fn = files[at].facts.functions[of]
    if not of or fn.name.startswith("<"):
        return fn.name, []
    names = [] if fn.name.startswith("__") else [f"{fn.name}()"]
    names += [files[at].facts.classes[fn.cls].name] if fn.cls >= 0 else []
    for name in names:
        found = list(_places_of(files, name.removesuffix("()")))
        found = [one for one in found if one[3] == "called"] or found
        # Where many places name something like this function, most of them mean something else.
        if found and (len(found) <= MOST_PLACES or not name.endswith("()")):
            found.sort(key=lambda one: not _reaching(seen, one[0], one[1], ""))
            return name, found[:MOST_PLACES]
    return fn.name, []


def _places_of(files: Sequence[ModuleFile], name: str) -> Iterator[tuple[int, int, Any, str]]:
    """The places that call or name something of a name, with their file and the function that they stand in."""
    for where, file in enumerate(files):
        for around, fn in enumerate(file.facts.functions):
            called: set[int] = set()
            found = [
                node
                for node in nodes(fn.body)
                if isinstance(node, (m.Call, m.Name, m.Attr)) and _name_of(node) == name
            ]
            for node in found:
                if isinstance(node, m.Call):
                    called.add(id(node.func))
                    yield where, around, node, "called"
            for node in found:
                if not isinstance(node, m.Call) and id(node) not in called:
                    yield where, around, node, "named"


def _name_of(node: m.Call | m.Name | m.Attr) -> str:
    """The last part of the name that a node is, or calls."""
    if isinstance(node, m.Call):
        return called_name(node)
    return node.id if isinstance(node, m.Name) else node.name.rpartition(".")[2]


def _share(seen: Inspection, path: str) -> tuple[Share, Part]:
    """The project that a file belongs to."""
    pairs = list(zip(seen.plan.shares, seen.parts, strict=True))
    return next((pair for pair in reversed(pairs) if path in pair[1].files), pairs[0])


def _loud(seen: Inspection, share: Share) -> Any:
    """The analysis of a project by all rules, also those that are not selected."""
    from d9mlint.checks.registry import Rules
    from d9mlint.interp.entry_run import Analyzer

    quiet = share.analyzer
    rules = Rules(quiet.knowledge, quiet.knowledge.rules, quiet.rules.plugins)
    return Analyzer(
        quiet.project,
        quiet.knowledge,
        quiet.targets,
        quiet.device,
        rules,
        device_given=quiet.device_given,
    )


def _entry_name(seen: Inspection, at: int) -> str:
    entry = seen.plan.project.entries[at]
    return entry.file.relative + (f":{entry.function}" if entry.function else "")


def _reaching(seen: Inspection, index: int, function: int, wanted: str) -> list[tuple[int, Share]]:
    """The entry points whose runs reach a function of a file (0: its module body)."""
    found: list[tuple[int, Share]] = []
    names: list[str] = []
    reports = {(r.entry, r.function): r for r in seen.runs.entries}
    for at, entry in enumerate(seen.plan.project.entries):
        report = reports.get((entry.file.path, entry.function or ""))
        name = _entry_name(seen, at)
        names.append(name)
        if report is None or function not in report.functions_reached().get(index, ()):
            continue
        if not wanted or wanted in (name, entry.file.relative, entry.file.path, absolute(wanted)):
            found.append((at, _share(seen, entry.file.path)[0]))
    if wanted and not found:
        known = ", ".join(names[:MOST_ENTRIES]) or "none"
        raise UsageError(f"No entry point {wanted} reaches this line. Entry points of the project: {known}.")
    # The file's own program first, then by name.
    own = seen.plan.project.modules.files[index].path
    found.sort(key=lambda one: (seen.plan.project.entries[one[0]].file.path != own, one[0]))
    return found


def _passing(seen: Inspection, index: int, function: int) -> list[str]:
    """Entry points that run the file, but not the function."""
    names: list[str] = []
    for at, entry in enumerate(seen.plan.project.entries):
        for report in seen.runs.entries:
            same = (report.entry, report.function) == (entry.file.path, entry.function or "")
            if same and index in report.files and function not in report.functions_reached().get(index, ()):
                names.append(_entry_name(seen, at))
    return names


def _run(
    seen: Inspection,
    part: Part,
    share: Share,
    entry: Entry | None,
    report: EntryReport,
    recording: Recording,
    spot: Spot,
    asked: Sequence[str],
    others: set[str],
    first: bool,
) -> Run:
    libraries = {m.library for v in recording.visits for c in v.calls for m in c.entries if m.library}
    # The releases that the program was judged by.
    targets = share.analyzer.targets.with_inferred(report.releases)
    versions = [(name, targets.version(name)) for name in sorted(libraries)]
    verdicts = _verdicts(seen, part, entry is None, report, recording, spot, asked, others, first)
    known = tuple((name, target) for name, target in versions if target.version)
    return Run(entry, recording, known, tuple(verdicts), recording.exhausted, report.failure)


# -------------------------------------------------------------------------------------------- verdicts


def _verdicts(
    seen: Inspection,
    part: Part,
    unreached: bool,
    report: EntryReport,
    recording: Recording,
    spot: Spot,
    asked: Sequence[str],
    others: set[str],
    first: bool,
) -> list[Verdict]:
    """What each rule that has to do with the line says of it."""
    rules = seen.plan.rules
    here = [f for f in report.findings if f.path == spot.path and f.start < spot.end and f.end > spot.start]
    # What is found for the file as a whole, such as a comment that hides nothing, no run has found; what a rule
    # finds by looking ahead, a run finds that does not reach the line itself.
    for finding in (item.finding for item in seen.result.items if first or not item.finding.entry_point):
        if finding.entry_point in others:
            continue
        if finding.path == spot.path and finding.start < spot.end and finding.end > spot.start:
            same = (finding.code, finding.start, finding.subject)
            if all(same != (one.code, one.start, one.subject) for one in here):
                here.append(finding)
    silences: dict[str, list[str]] = {}
    for code, reason in recording.silences:
        silences.setdefault(code, []).append(reason)
    matched: dict[str, list[Match]] = {}
    for visit in recording.visits:
        for call in visit.calls:
            for match in call.entries:
                if match.rule:
                    matched.setdefault(match.rule, []).append(match)
        for draw in visit.draws:
            matched.setdefault(seen.plan.known.generators[draw.level.generator].rule, [])
    verdicts = [_followed(seen, part, finding) for finding in here]
    done = {one.code for one in verdicts}
    reported = ", ".join(sorted({one.code for one in verdicts if one.state == REPORTED}))
    for code in sorted({*silences, *matched, *asked} - done):
        if code not in rules:
            continue
        found = [*silences.get(code, ()), *_reasons(seen, code, matched.get(code, ()), recording)]
        found += _elsewhere(seen, code, report, recording)
        if not found and code in matched:
            found = _general(seen, code, unreached, recording)
            found += [f"the line is reported as {reported}"] if reported else []
        verdicts.append(Verdict(code, rules[code].name, SILENT, tuple(dict.fromkeys(found)) or (_NOTHING,)))
    return sorted(verdicts, key=lambda one: (one.code, one.state))


def _general(seen: Inspection, code: str, unreached: bool, recording: Recording) -> list[str]:
    """Reasons that lie in what a rule is about, where nothing else is known."""
    own = {name for name, generator in seen.plan.known.generators.items() if generator.rule == code}
    if unreached and (own or code in PROGRAM_RULES):
        return ["it is about whole programs, and no entry point reaches this line"]
    drawn = {draw.level.generator for visit in recording.visits for draw in visit.draws}
    if own and not own & drawn:
        return ["no draw of numbers that a seed would decide was seen here"]
    modes = [setting for visit in recording.visits for name, setting in visit.modes if name == MODE]
    if code == "DET305" and not any(setting.value for setting in modes):
        return ["it is about deterministic mode, which is not on here"]
    return []


_NOTHING = "nothing on this line is what it looks for, as far as the analysis sees"


def _followed(seen: Inspection, part: Part, finding: Finding) -> Verdict:
    """How far a finding comes on its way to the report."""
    rules = seen.plan.rules
    name = rules[finding.code].name
    same = (finding.code, finding.path, finding.start, finding.subject)
    for item in seen.result.items:
        one = item.finding
        if (one.code, one.path, one.start, one.subject) == same:
            return Verdict(finding.code, name, REPORTED, (), one)
    for hidden in seen.result.hidden:
        one = hidden.item.finding
        if (one.code, one.path, one.start, one.subject) == same:
            return Verdict(finding.code, name, SUPPRESSED, (f"the comment `{hidden.comment}` hides it",), one)
    selection = select(rules, part.settings)
    if finding.code not in selection.codes:
        why = (
            "it is not selected" if rules[finding.code].default else "it is off by default, and not selected"
        )
        return Verdict(finding.code, name, NOT_SELECTED, (why,), finding)
    if finding.code in FileIgnores(rules, part.settings, seen.found.root).codes(finding.path):
        return Verdict(finding.code, name, HELD_BACK, ("`per-file-ignores` names this file",), finding)
    if not shown([finding], selection, part.settings):
        limits = f"severity {finding.severity.value}, confidence {finding.confidence.value}"
        least = f"min-severity {part.settings.min_severity or 'warning'}, min-confidence {part.settings.min_confidence}"
        return Verdict(finding.code, name, HELD_BACK, (f"it has {limits}; to be shown: {least}",), finding)
    if part.settings.baseline:
        return Verdict(finding.code, name, HELD_BACK, ("the baseline has it",), finding)
    plan = seen.plan
    seeded = why_seeded(finding, plan.facts, plan.known, bool(plan.project.entries))
    if seeded:
        return Verdict(finding.code, name, HELD_BACK, (seeded,), finding)
    return Verdict(finding.code, name, HELD_BACK, ("another finding of this line stands for it",), finding)


def _reasons(seen: Inspection, code: str, matches: Sequence[Match], recording: Recording) -> list[str]:
    """Why a rule is silent as far as entries of the knowledge base and seeds say it."""
    reasons: list[str] = []
    unmet = dict.fromkeys(match.id for match in matches if match.applies and match.holds is False)
    if unmet:
        reasons.append(f"the conditions of {', '.join(unmet)} are not met")
    open_ones = [one for one in matches if one.kind in ("hazard", "op") and one.applies and one.holds is None]
    absent = dict.fromkeys(one.id for one in open_ones if not one.is_asked)
    if absent:
        reasons.append(f"the call does not give the argument that {', '.join(absent)} is about")
    unsure = dict.fromkeys(one.id for one in open_ones if one.is_asked)
    if unsure:
        reasons.append(f"whether the conditions of {', '.join(unsure)} are met is unknown")
    for match in matches:
        if not match.applies and match.kind != "op":
            version = f"{match.library} {match.target}".strip()
            wanted = f" (the entry is about {match.versions})" if match.versions else ""
            reasons.append(f"{match.id} does not apply to {version}{wanted}")
    for draw in (one for visit in recording.visits for one in visit.draws):
        level = draw.level
        if seen.plan.known.generators[level.generator].rule != code:
            continue
        if level.level == "seeded":
            reasons.append(f"{level.title} is seeded here{_at(seen, level.site)}")
        elif level.level == "maybe" and (level.site or level.helper):
            by = f" by `{level.helper}`" if level.helper else ""
            reasons.append(f"{level.title} may be seeded here{by}{_at(seen, level.site)}")
    return reasons


def _elsewhere(seen: Inspection, code: str, report: EntryReport, recording: Recording) -> list[str]:
    """Where else a rule that reports once for a program has reported a draw of the same generator."""
    drawn = {draw.level.generator for visit in recording.visits for draw in visit.draws}
    trains = [site for text, site in recording.activity if text == "trains"]
    for finding in report.findings:
        if finding.code == code and (finding.subject in drawn or (code in PROGRAM_RULES and trains)):
            return [f"it reports the program once{_at(seen, finding)}"]
    if code in PROGRAM_RULES and not trains:
        return ["the program is not seen to train"]
    for other, site, reason in recording.elsewhere:
        if other == code and (code in PROGRAM_RULES or drawn):
            return [f"it reports a program once, and not this one{_at(seen, site)}: {reason}"]
    return []


def _at(seen: Inspection, place: Any) -> str:
    if place is None or place.path not in seen.sources:
        return ""
    from d9mlint.base.paths import relative_to

    row, _ = seen.sources[place.path].row_column(place.start)
    return f" at {relative_to(place.path, seen.found.root)}:{row}"
