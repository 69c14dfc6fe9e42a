"""``d9mlint trace``: reads options, runs the session, prints its report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from d9mlint.base.errors import UsageError
from d9mlint.cli.options import CONTEXT, Choice

if TYPE_CHECKING:
    from d9mlint.trace.model import Report

FORMATS = ("text", "json", "html")
LEVELS = ("full", "light")


class _Program(click.Command):
    """A command whose options end where those of the program begin: after the script, or after ``-m MODULE``, as
    Python itself reads its arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments."""
        return super().parse_args(ctx, self._split(args))

    def _split(self, args: list[str]) -> list[str]:
        valued = {
            name
            for param in self.params
            if isinstance(param, click.Option) and not param.is_flag
            for name in param.opts
        }
        position = 0
        while position < len(args) and args[position].startswith("-") and args[position] not in ("-", "--"):
            argument = args[position]
            position += 2 if argument in valued else 1
            if argument.startswith("-m") and position <= len(args):
                return [*args[:position], "--", *args[position:]]
        return args


@click.command(
    "trace",
    cls=_Program,
    context_settings={**CONTEXT, "allow_interspersed_args": False},
    epilog="`trace record -o DIR PROGRAM` keeps the recording of one run; `trace compare DIR DIR` compares two.",
)
@click.argument("program", nargs=-1, metavar="PROGRAM [ARGS]...", type=click.UNPROCESSED)
@click.option("-m", "module", metavar="MODULE", help="Run a module, as python -m does.")
@click.option(
    "--level", type=Choice(LEVELS), default="full", help="Every operation (full), or steps (light)."
)
@click.option("--steps", type=click.IntRange(1), metavar="N", help="End the program after N optimizer steps.")
@click.option(
    "--replay", is_flag=True, help="Run once, execute every operation twice, list those that differ."
)
@click.option(
    "--resume-at",
    type=click.IntRange(1),
    metavar="STEP",
    help="Compare with a run that is ended after optimizer step STEP and resumed.",
)
@click.option(
    "--resume-args", metavar="ARGS", help="Added to the command when it is resumed: '--resume ckpt.pt'."
)
@click.option("--no-perturb", is_flag=True, help="Change nothing on purpose in the second run.")
@click.option("--output-format", type=Choice(FORMATS), default="text", help="How the report is printed.")
@click.option("--output-file", "-o", metavar="FILE", help="Write the report to a file (record: a directory).")
def trace(program: tuple[str, ...], **options: Any) -> int:
    """Run PROGRAM twice and name the first operation at which the runs diverge.

    PROGRAM is a training script and its arguments, or a launcher such as torchrun. The second run has another
    hash seed, order of directory listings and clock, and works on its own view of the files.

    Exit codes: 0 equal, 1 diverged, 2 could not tell.
    """
    from d9mlint.trace.command import say
    from d9mlint.trace.command import trace as traced
    from d9mlint.trace.program import program as named
    from d9mlint.trace.runner import Interrupted, interruptible
    from d9mlint.trace.runs import Options

    asked = Options(
        options["level"],
        options["steps"] or 0,
        not options["no_perturb"],
        resume_at=options["resume_at"] or 0,
        resume_args=_split(options["resume_args"] or ""),
        picture=options["output_format"] == "html",
    )
    if options["resume_args"] and not options["resume_at"]:
        raise UsageError("--resume-args needs --resume-at.")
    try:
        with interruptible():
            if program and program[0] == "compare" and options["module"] is None:
                return _compare(program[1:], options)
            if program and program[0] == "record" and options["module"] is None:
                return _record(program[1:], asked)
            if options["replay"]:
                if options["output_format"] == "html":
                    raise UsageError("--replay has no HTML report: use text or json.")
                return _replay(named(program, options["module"]), asked, options)
            report = traced(named(program, options["module"]), asked, say)
    except Interrupted as error:
        return 128 + int(error.args[0])
    return _print(report, options)


def _split(text: str) -> tuple[str, ...]:
    import shlex

    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--resume-args {text!r}: {error}.") from error


def _print(report: Report, options: dict[str, Any]) -> int:
    from d9mlint.cli.trace_finding import with_finding
    from d9mlint.trace import report as reports
    from d9mlint.trace.model import CODES

    report = with_finding(report)
    if options["output_format"] == "html":
        written = as_html(report)
    else:
        written = reports.as_json(report) if options["output_format"] == "json" else reports.text(report)
    _write(written, options)
    return CODES[report.outcome]


def as_html(report: Report) -> str:
    """The report as one page."""
    from d9mlint.report.templating import document
    from d9mlint.trace import page

    return document("d9mlint trace", page.body(report), page.STYLE)


def _replay(program: Any, asked: Any, options: dict[str, Any]) -> int:
    """``trace --replay PROGRAM``: the program's own exit status."""
    from d9mlint.trace import report as reports
    from d9mlint.trace.command import replay

    found = replay(program, asked._replace(level="full"))
    as_json = options["output_format"] == "json"
    _write(reports.replayed_json(found) if as_json else reports.replayed(found), options)
    return found.exit_code


def _write(written: str, options: dict[str, Any]) -> None:
    if options["output_file"]:
        try:
            with open(options["output_file"], "w", encoding="utf-8") as stream:
                stream.write(written)
        except OSError as error:
            raise UsageError(f"{options['output_file']} cannot be written: {error.strerror}.") from error
    else:
        click.echo(written, nl=False)


@click.command("record", cls=_Program, context_settings={**CONTEXT, "allow_interspersed_args": False})
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
@click.option("-m", "module", metavar="MODULE")
@click.option("--output-file", "-o", metavar="DIR", required=True)
@click.option("--level", type=Choice(LEVELS))
@click.option("--steps", type=click.IntRange(1))
def _recording(**options: Any) -> dict[str, Any]:
    return options


def _record(arguments: tuple[str, ...], asked: Any) -> int:
    """``trace record -o DIR PROGRAM``."""
    from d9mlint.trace.command import record
    from d9mlint.trace.program import program as named

    given = _recording.main(list(arguments), prog_name="d9mlint trace record", standalone_mode=False)
    if isinstance(given, int):
        return given
    asked = asked._replace(level=given["level"] or asked.level, steps=given["steps"] or asked.steps)
    return record(named(given["program"], given["module"]), asked, given["output_file"])


def _compare(arguments: tuple[str, ...], options: dict[str, Any]) -> int:
    """``trace compare DIR DIR``."""
    from d9mlint.trace.command import compare

    if len(arguments) != 2:
        raise UsageError("trace compare takes two recordings.")
    return _print(compare(*arguments), options)
