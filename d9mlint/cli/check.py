"""The ``check`` command: what is done with a run's result."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from d9mlint.base.errors import UsageError
from d9mlint.base.files import write_output
from d9mlint.base.paths import absolute, boundary, relative_to
from d9mlint.base.terminal import (
    clean,
    clean_patch,
    close_stream,
    encode,
    in_workflow,
    inert,
    say,
    wants_color,
)
from d9mlint.config.settings import Settings
from d9mlint.pipeline import INCOMPLETE, STDIN, Result, check
from d9mlint.report import render
from d9mlint.report.common import Options, count
from d9mlint.report.joined import joined

if TYPE_CHECKING:
    from d9mlint.base.findings import Finding
    from d9mlint.evidence.model import Evidence
    from d9mlint.fix.write import NotWritten
    from d9mlint.verify.command import Session, Wanted

_RANK = {"advice": 0, "warning": 1, "error": 2}


class CheckOptions(NamedTuple):
    """What the command line asks for beyond the settings."""

    paths: tuple[str, ...]
    output_file: str | None = None
    statistics: bool = False
    exit_zero: bool = False
    show_diff: bool = False
    fix_only: bool = False
    show_fixes: bool = False
    exit_non_zero_on_fix: bool = False
    add_noqa: str | None = None
    noqa_style: str = "d9mlint"
    ignore_noqa: bool = False
    show_files: bool = False
    verbose: bool = False
    prune_baseline: bool = False
    update_baseline: bool = False
    diff_from: str | None = None
    stdin_filename: str | None = None
    show_settings: bool = False
    quiet: bool = False
    evidence: str | None = None
    measure: Wanted | None = None


def run_check(request: CheckOptions, settings: Settings) -> int:
    """Lint, fix or write what was asked for, print the report, and return the exit code."""
    if request.measure is not None:
        _refuse_beside_verify(request, settings)
    if request.measure is not None and not request.paths:
        return _measure_only(request, settings)
    stdin, overlay = _standard_input(request)
    if request.update_baseline or request.prune_baseline:
        return _update_baseline(request, settings, stdin, overlay)
    progress = Progress(enabled=not request.quiet and sys.stderr.isatty())

    def lint(contents: Mapping[str, bytes]) -> Result:
        return check(
            request.paths,
            settings,
            stdin=stdin,
            overlay=contents,
            revision=request.diff_from,
            evidence=[request.evidence] if request.evidence and request.measure is None else [],
            progress=progress.say,
            comments=not request.ignore_noqa,
            each_op=request.measure is not None or request.evidence is not None,
        )

    try:
        if settings.fix or request.fix_only or request.show_diff:
            return _fix(request, settings, stdin, overlay, lint, progress)
        result = lint(overlay)
    finally:
        progress.close()
    if request.show_files:
        write_text("".join(f"{path}\n" for path in result.files), request.output_file)
        return 0
    if request.add_noqa is not None:
        _warn(request, result)
        return _add_noqa(request, result)
    return _tell(request, settings, result)


def _tell(request: CheckOptions, settings: Settings, result: Result) -> int:
    """Report findings, with what was measured where that is wanted."""
    if request.measure is not None:
        return _verify(request, settings, result)
    _report(request, settings, result)
    return _exit_code(request, settings, result)


def _refuse_beside_verify(request: CheckOptions, settings: Settings) -> None:
    """Raises UsageError for what reports no findings that a measurement could stand beside."""
    silent = {
        "--diff": request.show_diff,
        "--fix-only": request.fix_only,
        "--add-noqa": request.add_noqa is not None,
        "--update-baseline": request.update_baseline,
        "--fix of standard input": settings.fix and "-" in request.paths,
        "--statistics without paths": request.statistics and not request.paths,
    }
    for name, given in silent.items():
        if given:
            raise UsageError(f"{name} does not report findings and cannot be combined with --verify.")


def _verify(request: CheckOptions, settings: Settings, result: Result) -> int:
    """Run what the findings flag, and report them with what was measured."""
    from d9mlint.evidence.verdicts import join_measured

    session = _session(request, [item.finding for item in result.items])
    if session.evidence is None or not session.evidence.machines:
        _report(request, settings, result)
        if session.evidence is not None:
            return 2
        if not request.quiet:
            say("None of the findings is about an op that can be run.")
        return _exit_code(request, settings, result)
    result = join_measured(result, session.evidence, session.findings)
    kept = _keep(request, session.evidence)
    _report(request, settings, result)
    return _say_failure(session) or kept or _exit_code(request, settings, result)


def _measure_only(request: CheckOptions, settings: Settings) -> int:
    """Run what is named, with nothing linted."""
    from d9mlint.evidence.model import NOT_RUN
    from d9mlint.report import html
    from d9mlint.report.evidence import tables as measured

    options = report_options(settings, to_file=request.output_file is not None)
    renderers: dict[str, Callable[[Evidence], str]] = {
        "full": lambda evidence: "\n".join(measured.table(evidence, options)) + "\n",
        "json": measured.evidence_json,
        "html": html.evidence_page,
    }
    render_evidence = renderers.get(settings.output_format)
    if render_evidence is None:
        raise UsageError(
            f"--output-format {settings.output_format} needs findings: give paths to lint, or use full, json or html."
        )
    session = _session(request, [])
    assert session.evidence is not None
    if not session.evidence.machines:
        return 2
    kept = _keep(request, session.evidence)
    write_text(render_evidence(session.evidence), request.output_file)
    failed = _say_failure(session) or kept
    outcomes = {m.outcome for m in session.evidence.measurements}
    outcomes |= {s.outcome for s in session.evidence.settings}
    if not failed and outcomes == {NOT_RUN}:
        say("error: none of the named ops and settings could be run.")
        return 2
    return failed


def _session(request: CheckOptions, findings: Sequence[Finding]) -> Session:
    """Measure, saying what is being run."""
    from d9mlint.evidence.model import check_writable
    from d9mlint.verify.command import failure, verify

    assert request.measure is not None
    # Minutes of measuring are not to end in a file that cannot be written.
    for file in (request.evidence, request.output_file):
        if file:
            check_writable(file)
    terminal = sys.stderr.isatty()
    progress = Progress(enabled=not request.quiet and terminal)

    def tell(message: str) -> None:
        # A log of a long session shows how far it is; a terminal shows it in one line.
        note = message.startswith("note: ")
        if not request.quiet and (note or not (terminal or message.startswith("starting "))):
            say(message)
        if not note:
            progress.say(message)

    try:
        session = verify(findings, request.measure, tell)
    finally:
        progress.close()
    if session.evidence is not None and not session.evidence.machines and not session.interrupted:
        say(f"error: {failure(session.evidence)}")
    return session


def _keep(request: CheckOptions, evidence: Evidence) -> int:
    """Write the evidence where a file is named: 2 when that fails, which is said, else 0. The report is due
    all the same."""
    from d9mlint.evidence.model import write

    if request.evidence:
        try:
            write(request.evidence, evidence)
        except UsageError as error:
            say(f"error: {error}")
            return 2
    return 0


def _say_failure(session: Session) -> int:
    """130 when the session was interrupted and 2 when it is no evidence, which is said, else 0."""
    from d9mlint.verify.command import failure

    assert session.evidence is not None
    if session.interrupted:
        say("Interrupted: some ops were not run.")
        return 130
    text = failure(session.evidence)
    if text:
        say(f"error: {text}")
    return 2 if text else 0


def _standard_input(request: CheckOptions) -> tuple[str | None, dict[str, bytes]]:
    if "-" not in request.paths:
        return None, {}
    if len(request.paths) > 1:
        raise UsageError("- (standard input) cannot be combined with other paths.")
    name = absolute(request.stdin_filename or STDIN)
    return name, {name: sys.stdin.buffer.read()}


def _exit_code(request: CheckOptions, settings: Settings, result: Result) -> int:
    least = _RANK[settings.fail_on]
    # A run that was cut off is no hazard of the program.
    failing = any(i.finding.severity.rank >= least and i.finding.code != INCOMPLETE for i in result.items)
    return 1 if failing and not request.exit_zero else 0


def report_options(settings: Settings, to_file: bool = False) -> Options:
    """How to print, by the settings, the terminal and the environment."""
    color = not to_file and _wants_color(settings.color)
    columns = shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() and not to_file else 120
    return Options(absolute("."), color, max(columns, 60), settings.unsafe_fixes)


def _wants_color(choice: str) -> bool:
    if choice != "auto":
        return choice == "always"
    return wants_color(sys.stdout)


def _report(request: CheckOptions, settings: Settings, result: Result) -> None:
    _warn(request, result)
    if (
        result.incomplete
        and not request.quiet
        and settings.output_format not in ("full", "concise", "grouped")
    ):
        say(
            f"warning: {count(result.incomplete, 'analysis run')} cut off ({INCOMPLETE}): findings may be missing."
        )
    if not request.quiet and settings.output_format not in ("full", "concise", "grouped", "html"):
        from d9mlint.report.coverage import coverage_line, idle_line, left_out_line

        if line := coverage_line(result):
            say(f"warning: {line}")
        for line in (idle_line(result), left_out_line(result)):
            if line:
                say(f"note: {line}")
    if request.verbose and not request.quiet:
        laps = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in result.timings.items())
        read = f"{count(result.read, 'file')} read, {count(len(result.files), 'file')} reported"
        say(f"{read}, project root {result.root}; {laps}")
        for name, files in result.slowest.items():
            slow = ", ".join(f"{relative_to(path, result.root)} {seconds:.2f} s" for path, seconds in files)
            if slow:
                say(f"most CPU time in {name}: {slow}")
    options = report_options(settings, to_file=request.output_file is not None)
    result = joined(result)
    if request.statistics:
        from d9mlint.report import statistics

        if settings.output_format in ("json", "json-lines"):
            text = statistics.render_json(result)
        else:
            text = statistics.render(result, options)
    else:
        text = render(result, settings.output_format, options)
    write_text(text, request.output_file, settings.output_format)


def _warn(request: CheckOptions, result: Result) -> None:
    """Say what was noticed beside the findings."""
    if request.quiet:
        return
    for warning in result.warnings:
        say(f"warning: {warning}")
    if not result.files:
        places = ", ".join("the working directory" if path == "." else path for path in request.paths)
        say(f"warning: No Python files or notebooks were found in {places}.")


def write_text(text: str, output_file: str | None, output_format: str = "") -> None:
    """Print a text, or write it to a file; always UTF-8, so that output does not depend on the locale."""
    if output_file is None:
        _print(encode(inert(text, output_format) if in_workflow() else text))
        return
    try:
        write_output(absolute(output_file), encode(text))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{output_file} cannot be written: {getattr(error, 'strerror', None) or error}."
        ) from error


def _print(data: bytes) -> None:
    """Write bytes to standard output. Raises UsageError where that is not possible."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        close_stream(1)
        raise UsageError(f"Standard output cannot be written: {error.strerror or error}.") from error


def _update_baseline(
    request: CheckOptions, settings: Settings, stdin: str | None, overlay: Mapping[str, bytes]
) -> int:
    import msgspec

    from d9mlint.filters.baseline import add_to_baseline, prune_baseline, read_baseline, write_baseline

    option = "--update-baseline" if request.update_baseline else "--prune-baseline"
    if not settings.baseline:
        raise UsageError(f"{option} needs --baseline FILE, or baseline in the configuration.")
    plain = msgspec.structs.replace(settings, baseline="")
    result = check(request.paths, plain, stdin=stdin, overlay=overlay)
    _warn(request, result)
    known = {i.fingerprint: i.finding for i in result.items}
    shown = clean(relative_to(settings.baseline, absolute(".")))
    if not request.update_baseline:
        removed = prune_baseline(settings.baseline, set(known), result.root, result.files)
        print(f"Removed {count(removed, 'entry', 'entries')} from {shown}.")
        return 0
    if request.diff_from is not None:
        # Only what is new on changed lines is added; what the baseline holds elsewhere stays as it is.
        old = read_baseline(settings.baseline) if os.path.exists(settings.baseline) else frozenset[str]()
        changed = check(request.paths, plain, stdin=stdin, overlay=overlay, revision=request.diff_from)
        touched = {i.fingerprint for i in changed.items}
        added = add_to_baseline(
            settings.baseline, [(known[m], m) for m in sorted(touched - old) if m in known], result.root
        )
        removed = prune_baseline(
            settings.baseline, set(known), result.root, sorted(_changed(request, result))
        )
        print(
            f"Added {count(added, 'finding')} to {shown}"
            + (f" and removed {count(removed, 'entry', 'entries')}." if removed else ".")
        )
        return 0
    write_baseline(settings.baseline, [(f, m) for m, f in known.items()], result.root, result.files)
    print(f"Wrote {count(len(result.items), 'finding')} to {shown}.")
    return 0


def _changed(request: CheckOptions, result: Result) -> set[str]:
    """The reported files that differ from the revision: entries about others are not judged."""
    from d9mlint.filters.changes import changes

    assert request.diff_from is not None
    found = changes(request.diff_from, result.root, {path: result.sources[path] for path in result.files})
    return {path for path, change in found.items() if not change.same}


def _fix(
    request: CheckOptions,
    settings: Settings,
    stdin: str | None,
    overlay: Mapping[str, bytes],
    lint: Callable[[Mapping[str, bytes]], Result],
    progress: Progress,
) -> int:
    from d9mlint.fix_rounds import fix, unified_diff

    writer = _Writer()
    writes = not request.show_diff and stdin is None
    fixed = fix(lint, overlay, settings.unsafe_fixes, writer.may_write if writes else lambda path: True)
    progress.close()
    cwd = absolute(".")
    if request.show_diff or request.fix_only:
        _warn(request, fixed.result)
    if request.show_diff:
        text = "".join(
            unified_diff(path, fixed.originals[path], data, clean(relative_to(path, cwd)))
            for path, data in sorted(fixed.changes.items())
        )
        # To be looked at on standard output, exact in a file.
        write_text(text if request.output_file else clean_patch(text), request.output_file, "diff")
        if not request.quiet and fixed.number:
            say(f"Would fix {count(fixed.number, 'finding')}.")
            _show_fixes(request, fixed.applied)
        return 1 if fixed.changes and not request.exit_zero else 0
    if stdin is not None:
        _print(fixed.changes.get(stdin, overlay[stdin]))
        if fixed.number and not request.quiet:
            say(f"Fixed {count(fixed.number, 'finding')}.")
            _show_fixes(request, fixed.applied)
        if fixed.changes and request.exit_non_zero_on_fix:
            return 1
        return 0 if request.fix_only else _exit_code(request, settings, fixed.result)
    lost = [p for p, data in sorted(fixed.changes.items()) if not writer.write(p, data, fixed.originals[p])]
    result = lint(overlay) if lost else fixed.result
    progress.close()
    code = 0 if request.fix_only else _tell(request, settings, result)
    if fixed.number and not request.quiet:
        done = (
            f"findings in {count(len(fixed.changes) - len(lost), 'file')}"
            if lost
            else count(fixed.number, "finding")
        )
        say(f"Fixed {done}.")
        _show_fixes(request, [one for one in fixed.applied if one[0] not in lost])
    if request.exit_non_zero_on_fix and len(lost) < len(fixed.changes):
        code = code or 1
    return 2 if writer.failed else code


def _show_fixes(request: CheckOptions, applied: Sequence[tuple[str, str, str]]) -> None:
    """List what was fixed: the files, and the rules with how often each."""
    if not request.show_fixes:
        return
    for path in sorted({path for path, _, _ in applied}):
        rules = [(code, name) for file, code, name in applied if file == path]
        for code, name in sorted(set(rules)):
            say(f"{relative_to(path, absolute('.'))}: {rules.count((code, name))} x {code} ({name})")


class _Writer:
    """Writes source files, and says on standard error which of them stay as they are, each once."""

    def __init__(self) -> None:
        self.failed = False
        self._tops: dict[str, str] = {}

    def may_write(self, path: str) -> bool:
        """Whether a file may be rewritten."""
        from d9mlint.fix.write import NotWritten, check_writable

        try:
            check_writable(path, self._top(path))
        except NotWritten as error:
            return self._say(path, error)
        return True

    def write(self, path: str, data: bytes, expected: bytes) -> bool:
        """Rewrite a file; False where it stays as it is."""
        from d9mlint.fix.write import NotWritten, write_source

        try:
            write_source(path, data, expected, self._top(path))
        except NotWritten as error:
            return self._say(path, error)
        return True

    def _top(self, path: str) -> str:
        directory = os.path.dirname(path)
        if directory not in self._tops:
            self._tops[directory] = boundary(directory)
        return self._tops[directory]

    def _say(self, path: str, error: NotWritten) -> bool:
        self.failed = self.failed or error.failed
        level = "error" if error.failed else "warning"
        say(f"{level}: {relative_to(path, absolute('.'))} was left unchanged: {error}.")
        return False


def _add_noqa(request: CheckOptions, result: Result) -> int:
    from d9mlint.filters.add_noqa import comment_row, noqa_edits
    from d9mlint.fix.edits import BrokenFix, apply_edits

    rows: dict[str, dict[int, set[str]]] = {}
    for item in result.items:
        f = item.finding
        source = result.sources[f.path]
        if source.problem is None and f.code not in ("DET001", "DET002", "DET003"):
            rows.setdefault(f.path, {}).setdefault(comment_row(source, f.start), set()).add(f.code)
    added = files = 0
    writer = _Writer()
    failed = False
    for path, codes in sorted(rows.items()):
        source = result.sources[path]
        reason = " ".join((request.add_noqa or "").split())
        edits = noqa_edits(source, codes.items(), reason, request.noqa_style)
        try:
            data = apply_edits(source, edits)
        except BrokenFix as error:
            say(f"error: {path} was left unchanged: {error}.")
            failed = True
            continue
        if writer.write(path, data, source.data):
            added += sum(map(len, codes.values()))
            files += 1
    print(f"Added {count(added, 'suppression')} in {count(files, 'file')}.")
    return 2 if failed or writer.failed else 0


class Progress:
    """One line on standard error that says what is being done, when the run lasts over a second."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._began = time.monotonic()
        self._shown = False
        self._message = ""
        self._timer: threading.Timer | None = None

    def say(self, message: str) -> None:
        """Show a message now or, early in the run, when a second has passed."""
        if not self._enabled:
            return
        self._message = message
        wait = 1.0 - (time.monotonic() - self._began)
        if wait <= 0:
            self._show()
        elif self._timer is None:
            self._timer = threading.Timer(wait, self._show)
            self._timer.daemon = True
            self._timer.start()

    def _show(self) -> None:
        self._shown = True
        with contextlib.suppress(OSError):
            sys.stderr.write(f"\r\x1b[K{clean(self._message)} ...")
            sys.stderr.flush()

    def close(self) -> None:
        """Take the line away."""
        self._enabled = False
        if self._timer is not None:
            self._timer.cancel()
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False
