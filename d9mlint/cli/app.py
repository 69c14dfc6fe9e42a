"""The command line. Thin: it reads options, calls ``run.check`` and prints a report.

Exit status: 0 clean, 1 findings, 2 usage or configuration error.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from d9mlint import __version__
from d9mlint.base.errors import UsageError, nearest
from d9mlint.base.paths import absolute
from d9mlint.base.terminal import COMPLETE, say
from d9mlint.cli.options import CONTEXT, Choice, configuring, measure_for, measuring, path_words, settings_for
from d9mlint.config.settings import (
    show_settings,
)

if TYPE_CHECKING:
    from d9mlint.cli.check import CheckOptions

SUBCOMMANDS = (
    "check",
    "clean",
    "completion",
    "config",
    "dev",
    "explain",
    "graph",
    "knows",
    "recipe",
    "rule",
    "server",
    "trace",
    "verify",
    "version",
)


class Commands(click.Group):
    """The sub-commands, each imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBCOMMANDS)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """As of any group; completion sees the same command that ``run`` calls for the bare form."""
        if extra.get("resilient_parsing") and args and _is_bare(args[0]):
            args.insert(0, "check")
        return super().make_context(info_name, args, parent, **extra)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Commands, and what may follow in the bare form: options of ``check`` and paths."""
        from click.shell_completion import CompletionItem

        found = super().shell_complete(ctx, incomplete)
        found += check_command.shell_complete(click.Context(check_command, parent=ctx), incomplete)
        return found if incomplete.startswith("-") else [*found, CompletionItem(incomplete, type="file")]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = self._command(cmd_name)
        if command is not None and COMPLETE in os.environ:
            from d9mlint.cli.completion import complete_paths

            return complete_paths(command)
        return command

    def _command(self, cmd_name: str) -> click.Command | None:
        if cmd_name == "check":
            return check_command
        if cmd_name not in SUBCOMMANDS:
            return None
        if cmd_name == "trace":
            from d9mlint.cli.trace import trace

            return trace
        if cmd_name == "verify":
            from d9mlint.cli.verify import verify

            return verify
        if cmd_name == "explain":
            from d9mlint.cli.explain import explain

            return explain
        if cmd_name == "server":
            from d9mlint.cli.server import server

            return server
        if cmd_name == "dev":
            from d9mlint.cli.dev import dev

            return dev
        if cmd_name == "knows":
            from d9mlint.cli.knows import knows

            return knows
        from d9mlint.cli import commands

        command: click.Command = getattr(commands, cmd_name)
        return command


@click.group(cls=Commands, context_settings=CONTEXT)
@click.version_option(__version__, "--version", "-V", message="d9mlint %(version)s")
def group() -> None:
    """A linter for determinism hazards in deep-learning code.

    `d9mlint PATHS` is short for `d9mlint check PATHS`; a sub-command name wins over a path of the same name.
    See `d9mlint check --help` for its options, such as --fix and --verify.
    """


def _is_bare(word: str) -> bool:
    """Whether a command line that begins with this word is short for ``check``."""
    return word not in SUBCOMMANDS and word not in ("-h", "--help", "--version", "-V")


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit status."""
    arguments = list(arguments)
    if COMPLETE in os.environ:
        from d9mlint.cli.completion import install

        install()
    if not arguments or _is_bare(arguments[0]):
        arguments.insert(0, "check")
    options = arguments.index("--") if "--" in arguments else len(arguments)
    for place, word in enumerate(arguments[:options]):
        if word == "--add-noqa":
            # A reason is written behind `=`: the next word is a path.
            arguments[place] = "--add-noqa="
    try:
        code = group.main(arguments, prog_name="d9mlint", standalone_mode=False, obj=tuple(arguments))
        return code if isinstance(code, int) else 0
    except click.exceptions.NoSuchOption as error:
        known = [
            o for p in (error.ctx.command.params if error.ctx else []) for o in p.opts if o.startswith("--")
        ]
        hint = nearest(error.option_name, known) or _other_command(error)
        return _fail(f"Unknown option {error.option_name}.{hint}" + _try_help(error.ctx))
    except click.UsageError as error:
        return _fail(error.format_message() + _try_help(error.ctx))
    except click.ClickException as error:
        return _fail(error.format_message())
    except click.exceptions.Abort:
        raise KeyboardInterrupt from None
    except UsageError as error:
        return _fail(str(error) + _command_hint(arguments[1:], str(error)))
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except MemoryError:
        return _fail("There is not enough memory to lint this.")
    except OSError as error:
        # The system's answer, not a mistake of the tool: a full disk, no more files, a directory that is gone.
        if error.filename is None and error.errno in (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT):
            raise
        return _fail(f"{error.filename + ': ' if error.filename else ''}{error.strerror or error}.")
    except Exception as error:
        from d9mlint.knowledge.errors import KnowledgeError

        if isinstance(error, KnowledgeError):
            return _fail(f"The rules cannot be read: {error}")
        if isinstance(error, RuntimeError) and "start new thread" in str(error):
            return _fail("There is not enough memory, or there are too many threads, to lint this.")
        # A mistake of the tool must not look like findings, and must not be hidden either.
        import traceback

        traceback.print_exc()
        return _fail(f"internal error ({type(error).__name__}). This is a bug in d9mlint; please report it.")


def _other_command(error: click.exceptions.NoSuchOption) -> str:
    """A clause that names the commands that have an option, where there are any."""
    here = click.Context(group)
    names = [
        name
        for name in SUBCOMMANDS
        if (command := group.get_command(here, name)) is not None
        and any(error.option_name in p.opts for p in command.params)
    ]
    return f" It is an option of `d9mlint {names[0]}`." if len(names) == 1 else ""


def _command_hint(arguments: Sequence[str], message: str) -> str:
    """A word that is not a path may be a misspelled sub-command, or one that stands behind options."""
    if behind := next((one for one in arguments if one in SUBCOMMANDS), ""):
        if message == f"{behind} does not exist.":
            return f" A command is the first word: `d9mlint {behind}`, then its options."
    word = arguments[0] if arguments else ""
    if message != f"{word} does not exist.":
        return ""
    return nearest(word, SUBCOMMANDS).replace("Did you mean", "Did you mean the command")


def _try_help(ctx: click.Context | None) -> str:
    return f"\nTry '{ctx.command_path} --help' for help." if ctx is not None else ""


def _fail(message: str) -> int:
    say(f"error: {message}")
    return 2


@click.command("check", context_settings=CONTEXT)
@click.argument("paths", nargs=-1, metavar="[PATHS]...", shell_complete=path_words)
@configuring
@measuring
@click.option("--output-file", "-o", metavar="FILE", help="Write the report to a file.")
@click.option("--statistics", is_flag=True, help="Show the number of findings per rule.")
@click.option("--exit-zero", is_flag=True, help="Exit with status 0 even if findings are reported.")
@click.option(
    "--diff", "show_diff", is_flag=True, help="Show the changes that --fix would make, without writing them."
)
@click.option("--fix-only", is_flag=True, help="Apply fixes without reporting the remaining findings.")
@click.option("--show-fixes", is_flag=True, help="List what was fixed by file and rule.")
@click.option(
    "--exit-non-zero-on-fix", is_flag=True, help="Exit with status 1 if a file was changed, whatever is left."
)
@click.option(
    "--add-noqa",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[=REASON]",
    help="Add a suppression comment for every finding.",
)
@click.option(
    "--noqa-style",
    type=Choice(("d9mlint", "noqa")),
    default="d9mlint",
    help="Comments that --add-noqa writes: `# d9mlint: ignore[...]` (default) or `# noqa: ...`. For the latter, "
    'set `lint.external = ["DET"]` in ruff\'s configuration, which otherwise removes them.',
)
@click.option("--ignore-noqa", is_flag=True, help="Report findings that suppression comments hide.")
@click.option(
    "--prune-baseline", is_flag=True, help="Remove entries without a finding from the baseline file."
)
@click.option("--show-files", is_flag=True, help="List the files that would be reported on, and exit.")
@click.option(
    "--verbose", "-v", is_flag=True, help="Print what was read and how long each step took to stderr."
)
@click.option("--update-baseline", is_flag=True, help="Write all current findings to the baseline file.")
@click.option("--diff-from", metavar="REV", help="Report only lines that differ from a git revision.")
@click.option("--stdin-filename", metavar="FILE", help="File name of the code read from standard input (-).")
@click.option("--show-settings", is_flag=True, help="Show the settings and where each one comes from.")
@click.option("--quiet", "-q", is_flag=True, help="Print only errors to stderr.")
@click.option("--watch", is_flag=True, help="Run again whenever a file of the project changes, until Ctrl-C.")
@click.pass_obj
def check_command(arguments: Sequence[str], /, paths: tuple[str, ...], watch: bool, **options: Any) -> int:
    """Report determinism hazards in PATHS (default: the working directory).

    PATHS select which files are reported; the whole project is always analyzed.
    """
    from d9mlint.cli import check

    measure = measure_for(options)
    if not paths and not (measure is not None and (measure.ops or measure.every)):
        paths = (".",)
    own = [name for name in check.CheckOptions._fields if name not in ("paths", "measure")]
    request = check.CheckOptions(paths=paths, measure=measure, **{name: options.pop(name) for name in own})
    if watch:
        return _watch(arguments, request, options)
    anchor = [p for p in request.paths if p != "-"]
    if request.stdin_filename and "-" in request.paths:
        anchor = [os.path.dirname(absolute(request.stdin_filename))]
    settings = settings_for(anchor or ["."], options)
    if request.show_settings:
        click.echo(show_settings(settings), nl=False)
        return 0
    return check.run_check(request, settings)


ONCE = ("measure", "add_noqa", "update_baseline", "prune_baseline", "show_files", "show_settings")
"""What has nothing to do again when a file changes."""


def _watch(arguments: Sequence[str], request: CheckOptions, options: Mapping[str, Any]) -> int:
    from d9mlint.cli.watch import watch, without_watch

    for name in ONCE:
        if getattr(request, name) not in (None, False):
            option = "verify" if name == "measure" else name.replace("_", "-")
            raise UsageError(f"--watch cannot be combined with --{option}.")
    if "-" in request.paths:
        raise UsageError("--watch needs files: standard input does not change.")
    for path in request.paths:
        if not os.path.exists(path):
            raise UsageError(f"{path} does not exist.")
    return watch(without_watch(arguments), request, options)
