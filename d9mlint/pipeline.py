"""The pipeline as one function: paths in, a result out. The command line, editors and tests call it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from d9mlint.base.coverage import Coverage
from d9mlint.base.errors import UsageError
from d9mlint.base.findings import Finding, Severity
from d9mlint.base.paths import absolute, boundary, relative_to
from d9mlint.base.source import Source, Trouble, make_source, read_bytes
from d9mlint.config.discover import Discovery, discover
from d9mlint.config.entry_points import named_entries
from d9mlint.config.projects import Part, split
from d9mlint.config.selection import FileIgnores, fixed_codes, outdated, select, shown
from d9mlint.filters import baseline as baselines
from d9mlint.filters import suppressions as suppress
from d9mlint.store.cache_dir import CacheDir, own_directory
from d9mlint.store.results import Analysis, ResultCache, content_digest, run_key

if TYPE_CHECKING:
    from d9mlint.analysis import Runs, Share
    from d9mlint.config.settings import Settings
    from d9mlint.config.targets import Targets
    from d9mlint.evidence.model import Evidence
    from d9mlint.fix.builders import FixMemory
    from d9mlint.interp.entry_run import Project
    from d9mlint.ir.nodes import FileFacts, Unread
    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.layers import LayerFile
    from d9mlint.knowledge.plugins import Plugin
    from d9mlint.knowledge.schema import RulePage
    from d9mlint.store.facts_cache import Cache

INCOMPLETE = "DET004"
"""The rule that reports analysis runs that were cut off."""

SLOWEST = 3
"""How many of the files that took the longest are kept."""

STDIN = "<stdin>"
"""The name of standard input when no file name is given for it."""


class Item(NamedTuple):
    """A finding that is reported, with what reports add: its fingerprint and its rule's page."""

    finding: Finding
    fingerprint: str
    rule: RulePage


class Hidden(NamedTuple):
    """A finding that a comment in the code hides."""

    item: Item
    comment: str


class Result(NamedTuple):
    """What a run found. ``items`` are in total order; ``baselined`` counts what the baseline holds back;
    ``files`` are the reported files, ``read`` counts all; ``rules`` are those that ran; ``timings`` in
    seconds, ``slowest`` the files that took the most CPU seconds to parse and to analyze; ``evidence`` is
    what was measured for the findings, where that was asked for; ``warnings`` are about what was read
    beside the program, such as files of pinned versions; ``incomplete`` counts the analysis runs that were
    cut off, whether or not that is reported; ``stale`` counts entries of the baseline that match no
    finding any more; ``idle`` counts findings that are not reported because no program calls the function
    that they are in, which makes them advice, and not for want of confidence; ``left_out`` counts files that are
    not read because git ignores them."""

    root: str
    items: tuple[Item, ...]
    hidden: tuple[Hidden, ...]
    baselined: int
    files: tuple[str, ...]
    read: int
    rules: tuple[RulePage, ...]
    sources: Sources
    timings: dict[str, float]
    slowest: Mapping[str, Sequence[tuple[str, float]]]
    evidence: Evidence | None = None
    warnings: tuple[str, ...] = ()
    incomplete: int = 0
    stale: int = 0
    idle: int = 0
    coverage: tuple[Coverage, ...] = ()
    no_entry: bool = False
    left_out: int = 0


class Sources(Mapping[str, Source]):
    """The files of a run by path; a text is decoded when it is first asked for."""

    def __init__(self, data: Mapping[str, bytes | Trouble]) -> None:
        self._data: dict[str, bytes | Trouble | None] = dict(data)
        self._made: dict[str, Source] = {}

    def __getitem__(self, path: str) -> Source:
        source = self._made.get(path)
        if source is None:
            data = self._data[path]
            if isinstance(data, Trouble):
                source = Source(path, b"", "", "utf-8", problem=data)
            else:
                assert data is not None
                source = make_source(path, data)
            self._made[path] = source
            # The source has it.
            self._data[path] = None
        return source

    def replace(self, path: str, data: bytes | Trouble) -> None:
        """Let a file have another content from now on: one that is being edited."""
        self._data[path] = data
        self._made.pop(path, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)


def check(
    paths: Sequence[str],
    settings: Settings,
    *,
    stdin: str | None = None,
    overlay: Mapping[str, bytes] | None = None,
    revision: str | None = None,
    evidence: Sequence[str] = (),
    comments: bool = True,
    each_op: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Result:
    """Lint ``paths`` and return what is to be reported.

    ``overlay`` holds the content of files, by absolute path, that stands in for what is on disk; ``stdin``
    is the path of one of them, which is then linted instead of ``paths``. With ``revision`` only findings
    on rows that differ from that git revision are kept. ``evidence`` names files of measurements that are
    shown beside the findings they are about, before those shipped with the rules. With ``each_op`` ops are reported, too,
    whose remedy another finding asks for. ``progress`` gets what is being done.
    Raises UsageError for a request that cannot be carried out; what is wrong with a file is a finding.
    """
    clock = _Clock()
    known = _baseline(settings)
    found = _discover(paths, settings, stdin)
    clock.lap("discover")
    data: dict[str, bytes | Trouble] = {path: _content(path, found) for path in found.files}
    data.update({path: content for path, content in (overlay or {}).items() if path in data})
    sources = Sources(data)
    clock.lap("read")
    cache, trouble = usable_cache(settings, found.root)
    digests = {path: content_digest(value) for path, value in data.items()} if cache is not None else {}
    del data
    parts = split(found, settings)
    said: list[str] = []
    analysis = _analysis(found, digests, sources, parts, cache, clock, progress, said)
    rules = {page.code: page for page in analysis.rules}
    if not comments:
        analysis = msgspec.structs.replace(analysis, comments={})
    result = _merged(
        [_decide_part(found, part, settings, analysis, sources, rules, known, each_op) for part in parts]
    )
    if revision is not None:
        result = _only_changed(result, revision)
    with _placed(settings, "evidence"):
        result = with_known_evidence(result, [*evidence, *settings.evidence])
    clock.lap("decide")
    return result._replace(
        timings=clock.laps,
        slowest=clock.slowest,
        warnings=(*trouble, *found.warnings, *said, *analysis.warnings, *result.warnings),
    )


class Inspection(NamedTuple):
    """The parts of a run, for whoever asks about them and not only about the findings."""

    found: Discovery
    sources: Sources
    parts: list[Part]
    plan: Plan
    analysis: Analysis
    runs: Runs
    result: Result


class Prepared(NamedTuple):
    """A run that has been planned, and not yet made."""

    found: Discovery
    sources: Sources
    parts: list[Part]
    plan: Plan


def prepare(paths: Sequence[str], settings: Settings, overlay: Mapping[str, bytes] | None = None) -> Prepared:
    """Read a project and plan its analysis. ``overlay`` is as in ``check``; files of it that are not on disk
    are part of the project too. Raises UsageError for a request that cannot be carried out."""
    found = _discover(paths, settings, None)
    held: Mapping[str, bytes] = overlay or {}
    top = found.root.rstrip("/") + "/"
    extra = [path for path in held if path not in found.files and path.startswith(top)]
    if extra:
        files = tuple(sorted({*found.files, *extra}))
        found = found._replace(files=files, reported=found.reported | frozenset(extra))
    data = {path: held[path] if path in held else _content(path, found) for path in found.files}
    sources = Sources(data)
    directory, _ = usable_cache(settings, found.root)
    cache = ResultCache(directory) if directory is not None else None
    digests = {path: content_digest(value) for path, value in data.items()}
    parts = split(found, settings)
    own = [_own(part, boundary(found.root)) for part in parts]
    return Prepared(found, sources, parts, _plan(found, sources, parts, own, cache, digests, _Clock(), None))


def decide(
    found: Discovery, sources: Sources, parts: Sequence[Part], analysis: Analysis, settings: Settings
) -> Result:
    """What is reported of an analysis."""
    known = _baseline(settings)
    rules = {page.code: page for page in analysis.rules}
    return _merged([_decide_part(found, part, settings, analysis, sources, rules, known) for part in parts])


def inspect(paths: Sequence[str], settings: Settings) -> Inspection:
    """As ``check``, with all that leads to the result."""
    found, sources, parts, plan = prepare(paths, settings)
    analysis, runs = _judged(plan, found, sources, parts, _Clock(), [])
    result = decide(found, sources, parts, analysis, settings)
    return Inspection(found, sources, parts, plan, analysis, runs, result)


def check_program(path: str, settings: Settings, others: Sequence[str] = ()) -> Result:
    """Lint one program: of all programs in its project only this one is analyzed, with the modules that it imports.
    What it does in ``others`` is reported too. Raises UsageError for a request that cannot be carried out."""
    from d9mlint.analysis import analyze_shares

    found, sources, parts, plan = prepare([path, *others], settings)
    name = absolute(path)
    # A cache of analysis runs holds all of a project: it is read here, and not written.
    shares = [one._replace(own=frozenset({name}) if name in one.own else frozenset()) for one in plan.shares]
    runs = analyze_shares(shares)
    return decide(found, sources, parts, findings_of(plan, runs, found, sources, parts), settings)


def _baseline(settings: Settings) -> frozenset[str]:
    """The fingerprints of the baseline, if there is one. Raises UsageError."""
    with _placed(settings, "baseline"):
        return baselines.read_baseline(settings.baseline) if settings.baseline else frozenset[str]()


@contextmanager
def _placed(settings: Settings, key: str) -> Iterator[None]:
    """What is wrong with a file that the configuration names is said with the line that names it."""
    try:
        yield
    except UsageError as error:
        place = settings.origins.get(key, "")
        if not place.rpartition(":")[2].isdigit():
            raise
        text = str(error)
        raise UsageError(f"{place}: {text.removeprefix('The ')}") from None


def _decide_part(
    found: Discovery,
    part: Part,
    settings: Settings,
    analysis: Analysis,
    sources: Sources,
    rules: Mapping[str, RulePage],
    known: frozenset[str],
    each_op: bool = False,
) -> Result:
    """What is reported of one project's files."""
    own = part.settings
    if own.baseline and own.baseline != settings.baseline:
        known = _baseline(own)
    elif not own.baseline:
        known = frozenset()
    files = tuple(path for path in found.files if path in part.files)
    inside = found._replace(files=files, reported=found.reported & part.files)
    return _decide(inside, _with_severities(analysis, own, rules), sources, own, rules, known, each_op)


def _merged(results: Sequence[Result]) -> Result:
    """The results of several projects as one."""
    if len(results) == 1:
        return results[0]
    rules = {page.code: page for result in results for page in result.rules}
    return results[0]._replace(
        items=tuple(sorted((i for r in results for i in r.items), key=lambda i: i.finding.sort_key)),
        hidden=tuple(sorted((h for r in results for h in r.hidden), key=lambda h: h.item.finding.sort_key)),
        baselined=sum(r.baselined for r in results),
        files=tuple(sorted(path for r in results for path in r.files)),
        rules=tuple(rules[code] for code in sorted(rules)),
        incomplete=sum(r.incomplete for r in results),
        stale=sum(r.stale for r in results),
        coverage=tuple(sorted((c for r in results for c in r.coverage), key=lambda c: (c.entry, c.function))),
        warnings=tuple(dict.fromkeys(warning for r in results for warning in r.warnings)),
    )


def _content(path: str, found: Discovery) -> bytes | Trouble:
    """The bytes of a file, or why it is not read."""
    if path in found.outside:
        message = "the file is not read: it is a link that leads out of the project"
        return Trouble("DET002", message, 0, 0)
    return read_bytes(path)


def with_known_evidence(result: Result, files: Sequence[str]) -> Result:
    """What was measured before, beside the findings about it."""
    if not files and not any(item.finding.op for item in result.items):
        return result
    from d9mlint.evidence.model import load
    from d9mlint.evidence.verdicts import Source, join, shipped
    from d9mlint.knowledge.loader import rules_directory

    own = [Source(load(path), relative_to(absolute(path), absolute("."))) for path in files]
    return join(result, [*own, *shipped(rules_directory() / "evidence")])


class _Clock:
    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self.slowest: dict[str, list[tuple[str, float]]] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = self.laps.get(name, 0.0) + now - self._last
        self._last = now

    def rank(self, name: str, spent: Mapping[str, float]) -> None:
        """Keep what took the most CPU seconds in a step."""
        self.slowest[name] = sorted(spent.items(), key=lambda one: (-one[1], one[0]))[:SLOWEST]


def _discover(paths: Sequence[str], settings: Settings, stdin: str | None) -> Discovery:
    """What to read and to report; a file that comes from standard input need not exist."""
    exclude = (*settings.exclude, *settings.extend_exclude)
    if stdin is None:
        return discover(
            paths,
            exclude=exclude,
            exclude_base=settings.base,
            respect_gitignore=settings.respect_gitignore,
            force_exclude=settings.force_exclude,
        )
    path = absolute(stdin)
    directory = os.path.dirname(path)
    if os.path.basename(path) == STDIN:
        return Discovery(directory, (path,), frozenset({path}), {})
    while not os.path.isdir(directory):
        directory = os.path.dirname(directory)
    anchor = path if os.path.exists(path) else directory
    found = discover([anchor], exclude=exclude, exclude_base=settings.base)
    return found._replace(files=tuple(sorted({*found.files, path})), reported=frozenset({path}))


def _analysis(
    found: Discovery,
    digests: Mapping[str, str],
    sources: Sources,
    parts: Sequence[Part],
    directory: str | None,
    clock: _Clock,
    progress: Callable[[str], None] | None,
    said: list[str],
) -> Analysis:
    """The findings of the checks, from the cache when nothing that bears on them has changed. What is to be
    ``said`` about this run alone is no part of them."""
    cache = ResultCache(directory) if directory is not None else None
    own = [_own(part, boundary(found.root)) for part in parts]
    if cache is None:
        return _analyse(found, sources, parts, own, None, {}, clock, progress, said)
    key = "".join(
        run_key(found, digests, part.settings, _digest(mine.files))
        for part, mine in zip(parts, own, strict=True)
    )
    if len(parts) > 1:
        key = content_digest("\0".join([key, *(f"{p.directory}\0{p.pins}" for p in parts)]).encode())
    analysis = cache.read(key)
    clock.lap("cache")
    if analysis is None:
        analysis = _analyse(found, sources, parts, own, cache, digests, clock, progress, said)
        cache.write(key, analysis)
        clock.lap("cache")
    return analysis


class Plan(NamedTuple):
    """What is to be analyzed: the shares of the projects with their targets, the program that they have in common,
    its facts by path, and what is known of libraries. ``unknown`` are warnings about entry points that the
    configuration names and that are none; ``fixes`` are those of an earlier run. ``asked`` are the targets without the
    ``releases`` that the modules tell which the project imports."""

    shares: list[Share]
    targets: list[Targets]
    project: Project
    facts: dict[str, FileFacts]
    known: Knowledge
    rules: Mapping[str, RulePage]
    unknown: list[str]
    fixes: FixMemory | None
    asked: list[Targets]
    releases: dict[str, str]


def _analyse(
    found: Discovery,
    sources: Sources,
    parts: Sequence[Part],
    own: Sequence[Own],
    cache: ResultCache | None,
    digests: Mapping[str, str],
    clock: _Clock,
    progress: Callable[[str], None] | None,
    said: list[str],
) -> Analysis:
    plan = _plan(found, sources, parts, own, cache, digests, clock, progress)
    return _judged(plan, found, sources, parts, clock, said, progress)[0]


def _plan(
    found: Discovery,
    sources: Sources,
    parts: Sequence[Part],
    own: Sequence[Own],
    cache: ResultCache | None,
    digests: Mapping[str, str],
    clock: _Clock,
    progress: Callable[[str], None] | None,
) -> Plan:
    """Read the facts of all files and prepare the analysis."""
    from d9mlint.analysis import Share
    from d9mlint.checks.registry import Rules
    from d9mlint.config.targets import find_targets
    from d9mlint.interp.entry_run import Analyzer, Project, ProjectFile
    from d9mlint.project.releases import releases_of_project
    from d9mlint.store.entry_cache import EntryCache, KnownFile
    from d9mlint.store.facts_cache import Cache
    from d9mlint.store.fix_cache import FixCache
    from d9mlint.store.results import entries_key

    top = boundary(found.root)
    layered = _layered(own, top)
    known = layered[0]
    rules = {code: page for one in reversed(layered) for code, page in one.rules.items()}
    # A line is judged in the run of an entry point, and reported by the settings of its own file.
    codes = frozenset(code for part in parts for code in select(rules, part.settings).codes)
    targets = [
        find_targets(
            part.pins,
            torch_version=part.settings.torch_version,
            tensorflow_version=part.settings.tensorflow_version,
            prefix="" if part.pins == found.root else relative_to(part.pins, found.root) + "/",
        )
        for part in parts
    ]
    clock.lap("knowledge")
    if progress is not None:
        progress(f"reading {len(sources)} files")
    spent: dict[str, float] = {}
    facts_cache = Cache(cache.directory) if cache is not None else None
    by_path = _gather(sources, parts[0].settings, facts_cache, spent.__setitem__, progress)
    if facts_cache is not None:
        facts_cache.let_go()
    clock.lap("facts")
    clock.rank("facts", spent)
    asked, releases = targets, releases_of_project(known, by_path.values(), targets)
    targets = [one.with_inferred(releases) for one in asked]
    files = [ProjectFile(p, relative_to(p, found.root), f) for p, f in by_path.items()]
    named, unknown = named_entries(parts, by_path)
    libraries = known.importable | _asked_for(targets)
    project = Project(files, found.root, layered, libraries, named)
    # Files that a nested configuration excludes are still part of the program, under the root's settings.
    nested = frozenset(path for part in parts[1:] for path in part.files)
    shares: list[Share] = []
    # Builders of fixes read files with Python's own parser.
    keys = ["fixes", sys.version]
    for part, versions, mine, facts in zip(parts, targets, own, layered, strict=True):
        analyzer = Analyzer(
            project,
            facts,
            versions,
            part.settings.device,
            Rules(facts, codes, mine.plugins),
            device_given="device" in part.settings.origins,
        )
        kept = None
        if cache is not None and facts_cache is not None:
            # What a run sees of a file is its facts: a comment changes none.
            known_files = [
                KnownFile(file.path, file.facts.code or digests[file.path], file.facts)
                for file in project.modules.files
            ]
            key = entries_key(found, digests, part.settings, _digest(mine.files))
            if releases:
                key = content_digest(repr((key, sorted(releases.items()))).encode())
            if len(parts) > 1:
                # What one part knows of frameworks makes entry points of the project.
                layers = [_digest(one.files) for one in own]
                key = content_digest(repr((key, part.pins, sorted(codes), layers)).encode())
            kept = EntryCache(cache.place, key, known_files, facts_cache.get, len(parts))
            keys.append(key)
        shares.append(Share(analyzer, part.files if shares else frozenset(by_path) - nested, kept))
    fixes = None if cache is None else FixCache(cache.place, content_digest("\0".join(keys).encode()))
    return Plan(shares, targets, project, by_path, known, rules, unknown, fixes, asked, releases)


def _asked_for(targets: Iterable[Targets]) -> frozenset[str]:
    """Names of the libraries that a project asks for."""
    return frozenset().union(*(one.libraries for one in targets))


def _judged(
    plan: Plan,
    found: Discovery,
    sources: Sources,
    parts: Sequence[Part],
    clock: _Clock,
    said: list[str],
    progress: Callable[[str], None] | None = None,
) -> tuple[Analysis, Runs]:
    """The findings of all runs, with their fixes, and the runs themselves."""
    from d9mlint.analysis import analyze_shares
    from d9mlint.store.executors import executor_for

    shares = plan.shares
    spent: dict[str, float] = {}
    first = parts[0].settings
    executor = executor_for(_jobs(first), first.executor)
    finished = False
    try:
        runs = analyze_shares(shares, executor, spent, progress)
        finished = True
    finally:
        # A run that is ended by hand goes on from here next time.
        for share in shares:
            if share.cache is not None:
                share.cache.write(finished=finished)
    said += executor.warnings()
    clock.lap("checks")
    clock.rank("checks", spent)
    analysis = findings_of(plan, runs, found, sources, parts)
    clock.lap("fixes")
    return analysis, runs


def findings_of(
    plan: Plan,
    runs: Runs,
    found: Discovery,
    sources: Sources,
    parts: Sequence[Part],
    merged: list[Finding] | None = None,
) -> Analysis:
    """What the runs found, merged (unless that is given), with what is said of files and of what was not followed,
    and with fixes."""
    from d9mlint.checks.callers import left_by_callers
    from d9mlint.checks.coverage import coverage_of
    from d9mlint.checks.incomplete import failing, incomplete, not_followed
    from d9mlint.checks.never_called import Searching, never_called
    from d9mlint.checks.never_drawn import without_kept
    from d9mlint.checks.seeded_anywhere import without_seeded
    from d9mlint.checks.untaken import without_untaken

    _, targets, project, by_path, known, rules, unknown, fixes, *_ = plan
    findings = _read(runs.findings() if merged is None else list(merged), by_path)
    findings = without_seeded(findings, by_path.values(), known, bool(project.entries))
    findings = without_kept(findings, list(by_path.values()))
    if merged is None:
        searching = Searching(runs.reports, project)
        findings = left_by_callers(findings, runs.reports, project, known, searching)
        findings = without_untaken(findings, project, searching)
        findings = never_called(findings, project, searching)
    findings += incomplete(runs.entries, runs.unreached)
    covered = [coverage_of(project, report) for report in runs.entries]
    ends = failing(runs.entries, found.root)
    findings += [*ends, *not_followed(covered, found.root, ends)]
    findings += _problems(sources, by_path)
    # Of some findings alone not all fixes are seen that are to be kept.
    memory = fixes if merged is None else None
    findings, unfixed = _with_fixes(
        findings, found, sources, parts, targets, runs, known, memory, _unread(by_path)
    )
    return Analysis(
        findings=sorted(findings, key=lambda f: f.sort_key),
        comments={p: f.comments for p, f in by_path.items() if f.comments},
        config_files=sorted({path for report in runs.reports for path in report.config_files}),
        rules=[rules[code] for code in sorted(rules)],
        warnings=[
            *unknown,
            *(str(problem) for one in targets for problem in one.warnings),
            *_unknown(targets),
            *unfixed,
        ],
        coverage=covered,
        no_entry=not covered and any(one.count > 1 for one in by_path.values()),
    )


def _unknown(targets: Iterable[Targets]) -> list[str]:
    """Warnings about target versions of which no fact is known."""
    return list(dict.fromkeys(text for one in targets for text in one.unknown()))


class Own(NamedTuple):
    """What the configuration of a project adds to what is known: files of plugins, then the user's, and the
    plugins."""

    files: tuple[LayerFile, ...] = ()
    plugins: tuple[Plugin, ...] = ()


def _own(part: Part, top: str) -> Own:
    """What the configuration of a project names. Raises UsageError for what cannot be read or is not installed."""
    settings = part.settings
    if not settings.knowledge and not settings.plugins:
        return Own()
    from d9mlint.knowledge.layers import read_files
    from d9mlint.knowledge.plugins import find_plugins, plugin_files

    plugins = find_plugins(settings.plugins, settings.origins.get("plugins", "plugins"), top)
    files = read_files(settings.knowledge, settings.origins.get("knowledge", ""))
    return Own((*plugin_files(plugins), *files), plugins)


def _digest(files: Sequence[LayerFile]) -> str:
    """What changes when a user's own facts do; empty, at no cost, where there are none."""
    if not files:
        return ""
    from d9mlint.knowledge.layers import files_digest

    return files_digest(files)


def _with_fixes(
    findings: Sequence[Finding],
    found: Discovery,
    sources: Sources,
    parts: Sequence[Part],
    targets: Sequence[Targets],
    runs: Runs,
    known: Knowledge,
    memory: FixMemory | None,
    unread: Mapping[str, Sequence[Unread]],
) -> tuple[list[Finding], list[str]]:
    """The findings with their fixes, and a warning for each rule whose fixes could not be built."""
    from d9mlint.fix.builders import with_fixes

    releases: dict[str, dict[str, str]] = {}
    for report in runs.reports:
        releases.setdefault(report.entry, {}).update(report.releases)

    def versions(path: str) -> Targets:
        chosen = targets[0]
        for part, one in zip(parts[1:], targets[1:], strict=True):
            if path in part.files:
                chosen = one
        return chosen.with_inferred(releases.get(path, {}))

    entries = {relative_to(path, found.root): path for path in sources}
    ordered = sorted(findings, key=lambda f: f.sort_key)
    return with_fixes(ordered, sources, entries, versions, known, memory, unread)


def _jobs(settings: Settings) -> int:
    """How many processes may work: as many as were asked for, else one for each core."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 1 if settings.executor == "serial" else settings.jobs or cores


def _gather(
    sources: Sources,
    settings: Settings,
    cache: Cache | str | None,
    spent: Callable[[str, float], None] | None = None,
    progress: Callable[[str], None] | None = None,
) -> dict[str, FileFacts]:
    """The facts of every file that could be read, by path."""
    from d9mlint.store.gather import gather

    def count(done: int, total: int) -> None:
        if progress is not None:
            progress(f"reading files: {done} of {total}")

    readable: list[_Readable] = []
    for source in sources.values():
        source.let_go()
        if source.problem is None:
            readable.append(_Readable(source))
    facts = gather(readable, jobs=_jobs(settings), cache=cache, spent=spent, progress=count)
    return {source.path: one for source, one in zip(readable, facts, strict=True)}


class _Readable:
    """A file whose text is made when it is asked for, and not kept."""

    __slots__ = ("_source", "cells", "digest", "path")

    def __init__(self, source: Source) -> None:
        self._source = source
        self.path = source.path
        self.digest = source.digest
        self.cells = source.cells

    @property
    def text(self) -> str:
        return self._source.fresh_text()


def gather_files(paths: Sequence[str], settings: Settings) -> tuple[Discovery, Sources, dict[str, FileFacts]]:
    """Discovery and facts alone, for commands that ask about the program and not about its hazards."""
    found = _discover(paths, settings, None)
    sources = Sources({path: _content(path, found) for path in found.files})
    cache, _ = usable_cache(settings, found.root)
    return found, sources, _gather(sources, settings, cache)


def knowledge_of(found: Discovery, parts: Sequence[Part]) -> list[Knowledge]:
    """What each part of a project knows, with the user's own facts. Raises UsageError for what cannot be read."""
    top = boundary(found.root)
    return _layered([_own(part, top) for part in parts], top)


def _layered(own: Iterable[Own], top: str) -> list[Knowledge]:
    """What is known with what the configuration of each part of a project adds."""
    from d9mlint.knowledge import load_with

    return [load_with(mine.files, top) for mine in own]


def _problems(sources: Sources, facts: Mapping[str, FileFacts]) -> list[Finding]:
    """DET001 and DET002 for the files that have no facts, and for the statements that have none."""
    result: list[Finding] = []
    for path, source in sources.items():
        trouble = source.problem
        problem = facts[path].problem if path in facts else None
        if trouble is not None:
            place = trouble.start, trouble.end
            result.append(_failure(trouble.code, path, *place, trouble.message, trouble.remedy))
        elif problem is not None:
            result.append(_failure(problem.code, path, problem.start, problem.end, problem.message))
        elif path in facts:
            for group in _that_follow(facts[path].unread, source):
                why = group[0].problem
                number = len(group)
                help = (
                    f"{number} statements skipped; fix the errors"
                    if number > 1
                    else "statement skipped; fix the error"
                )
                result.append(Finding(why.code, path, why.start, why.end, why.message, help, Severity.ERROR))
    return result


def _that_follow(parts: Sequence[Unread], source: Source) -> list[list[Unread]]:
    """Parts of a file that do not parse, of a notebook those together that follow each other directly in one cell: the
    output of a program in a cell for code."""
    found: list[list[Unread]] = []
    for part in parts:
        before = found[-1][-1] if found and source.cells else None
        if (
            before is not None
            and not source.text[before.end : part.start].strip()
            and source.cell_at(before.start) is source.cell_at(part.start)
        ):
            found[-1].append(part)
        else:
            found.append([part])
    return found


def _unread(facts: Mapping[str, FileFacts]) -> dict[str, Sequence[Unread]]:
    """The parts of files that do not parse."""
    return {path: one.unread for path, one in facts.items() if one.unread}


def _read(findings: list[Finding], facts: Mapping[str, FileFacts]) -> list[Finding]:
    """The findings that are not about statements which could not be read."""
    parts = _unread(facts)
    return [f for f in findings if not any(p.start <= f.start < p.end for p in parts.get(f.path, ()))]


def _failure(code: str, path: str, start: int, end: int, message: str, remedy: str = "") -> Finding:
    remedy = remedy or ("fix the error" if code == "DET001" else "simplify it")
    help = f"file skipped; {remedy} or add it to `extend-exclude`"
    return Finding(code, path, start, end, message, help, Severity.ERROR)


def _decide(
    found: Discovery,
    analysis: Analysis,
    sources: Sources,
    settings: Settings,
    rules: Mapping[str, RulePage],
    known: frozenset[str],
    each_op: bool = False,
) -> Result:
    """Suppressions, per-file ignores, the baseline and the limits, in one place."""
    selection = select(rules, settings)
    fixed = fixed_codes(rules, settings)
    all_advice = msgspec.structs.replace(settings, min_severity=Severity.ADVICE)
    file_ignores = FileIgnores(rules, settings, found.root)
    by_path: dict[str, list[Finding]] = {}
    for finding in analysis.findings:
        if finding.path in found.reported and finding.code in selection.codes:
            by_path.setdefault(finding.path, []).append(finding)
    items: list[Item] = []
    hidden: list[Hidden] = []
    baselined = idle = 0
    present: set[str] = set()
    for path in sorted({*by_path, *(p for p in analysis.comments if p in found.reported)}):
        enabled = selection.codes - file_ignores.codes(path)
        findings = sorted((f for f in by_path.get(path, ()) if f.code in enabled), key=lambda f: f.sort_key)
        comments = analysis.comments.get(path)
        covered: list[suppress.Hidden] = []
        if comments:
            source = sources[path]
            pragmas = suppress.suppressions(comments, rules, source)
            findings, covered, used = suppress.apply(findings, pragmas, source)
            if suppress.UNUSED in enabled:
                findings += suppress.unused(path, pragmas, used, enabled, rules, source)
                findings.sort(key=lambda f: f.sort_key)
        every = sorted([*findings, *(c.finding for c in covered)], key=lambda f: f.sort_key)
        marks = dict(zip(map(id, every), baselines.fingerprints(every, found.root), strict=True))
        older = baselines.former_fingerprints(every, found.root, rules) if known else {}
        for one in covered:
            f = one.finding
            hidden.append(Hidden(Item(f, marks[id(f)], rules[f.code]), one.reason))
        visible = shown(findings, selection, settings, each_op=each_op)
        if any(f.idle for f in findings):
            advised = shown(findings, selection, all_advice, each_op=each_op)
            idle += sum(f.idle for f in advised) - sum(f.idle for f in visible)
        for f in visible:
            if f.fix is not None and f.code not in fixed:
                unfixed = msgspec.structs.replace(f, fix=None)
                marks[id(unfixed)], older[id(unfixed)] = marks[id(f)], older.get(id(f), [])
                f = unfixed
            # A baseline may have been written when the rule had another code.
            former = known.intersection(older.get(id(f), ())) if known else frozenset[str]()
            if marks[id(f)] in known or former:
                baselined += 1
                present |= {marks[id(f)], *former}
            else:
                items.append(Item(f, marks[id(f)], rules[f.code]))
    ran = tuple(rules[code] for code in sorted(selection.codes))
    files = tuple(p for p in found.files if p in found.reported)
    cut = sum(
        f.code == INCOMPLETE and f.severity is not Severity.ADVICE and f.path in found.reported
        for f in analysis.findings
    )
    stale = 0
    if settings.baseline:
        gone = baselines.stale(settings.baseline, present, found.root, files)
        stale = sum(entry["code"] in selection.codes for entry in gone)
    return Result(
        found.root,
        tuple(items),
        tuple(hidden),
        baselined,
        files,
        len(sources),
        ran,
        sources,
        {},
        {},
        incomplete=cut,
        stale=stale,
        idle=idle,
        coverage=tuple(c for c in analysis.coverage if c.entry in found.reported),
        no_entry=analysis.no_entry,
        warnings=tuple(outdated(rules, settings)),
        left_out=found.left_out,
    )


def _with_severities(analysis: Analysis, settings: Settings, rules: Mapping[str, RulePage]) -> Analysis:
    """The findings with the severities that the configuration gives to their rules."""
    if not settings.severity:
        return analysis
    from d9mlint.config.selection import expand, weight

    place = settings.origins.get("severity", "severity")
    chosen: dict[str, Severity] = {}
    said: dict[tuple[str, int, str], str] = {}
    for selector, level in sorted(settings.severity.items(), key=lambda pair: weight(pair[0])):
        where = settings.origins.get(f"severity.{selector}", place)
        for code in expand(selector, rules, where):
            # By its code, its name or a former one of either, in one file.
            same = (code, weight(selector), where.rpartition(":")[0])
            other = said.setdefault(same, selector)
            if settings.severity[other] != level:
                raise UsageError(
                    f"{where}: severity: {other} and {selector} are the same rule ({code}, {rules[code].name}), with the "
                    f"severities {settings.severity[other]} and {level}. Keep one of them."
                )
            chosen[code] = Severity(level)
    findings = [
        msgspec.structs.replace(f, severity=chosen[f.code]) if f.code in chosen else f
        for f in analysis.findings
    ]
    return msgspec.structs.replace(analysis, findings=findings)


def _only_changed(result: Result, revision: str) -> Result:
    """What is on rows that differ from a revision, and what keeps a file that differs from being judged."""
    from d9mlint.filters.changes import changes

    named = sorted({item.finding.path for item in result.items})
    changed = changes(revision, result.root, {path: result.sources[path] for path in named})

    def touched(item: Item) -> bool:
        f = item.finding
        if f.code in ("DET001", "DET002") and not changed[f.path].same:
            # The change may be far from the place at which the parser gives up.
            return True
        source = result.sources[f.path]
        first, last = source.row_column(f.start)[0], source.row_column(max(f.start, f.end - 1))[0]
        return changed[f.path].touch(first, last)

    return result._replace(items=tuple(i for i in result.items if touched(i)))


def usable_cache(settings: Settings, root: str) -> tuple[str | None, tuple[str, ...]]:
    """The directory of the cache, None where there is none, and a warning where one is in the way."""
    if not settings.cache:
        return None, ()
    path = own_directory(settings.cache_dir, root)
    problem = CacheDir(path).problem()
    return (None, (f"The cache directory {path} is not used: {problem}.",)) if problem else (path, ())
