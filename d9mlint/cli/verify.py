"""``d9mlint verify``: the runtime half as its own command. ``d9mlint check --verify`` is its short form."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from d9mlint.base.errors import UsageError
from d9mlint.cli.options import Choice, Device, codes, settings_for
from d9mlint.config.settings import COLORS, CONFIDENCES, FORMATS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def recipe_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completions of an op, those of `d9mlint recipe`."""
    from d9mlint.cli import commands

    return commands.recipe_words(ctx, param, incomplete)


def setting_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completions of a setting."""
    from click.shell_completion import CompletionItem

    from d9mlint.verify.settings import PROBES

    return [CompletionItem(one.id, help=one.title) for one in PROBES if one.id.startswith(incomplete)]


CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.command(context_settings=CONTEXT)
@click.argument("paths", nargs=-1, metavar="[PATHS]...")
@click.option(
    "--op",
    "ops",
    multiple=True,
    metavar="NAME",
    shell_complete=recipe_words,
    help="Run this op (`d9mlint recipe --all` lists them).",
)
@click.option("--all", "every", is_flag=True, help="Run every op that has a recipe.")
@click.option(
    "--setting",
    "settings",
    multiple=True,
    metavar="NAME",
    shell_complete=setting_words,
    help="Run the synthetic training run of this setting, with and without its remedy.",
)
@click.option("--settings", "every_setting", is_flag=True, help="Run the training runs of all settings.")
@click.option(
    "--collectives", is_flag=True, help="Compare collectives between runs and ranks; under torchrun."
)
@click.option(
    "--runs", type=click.IntRange(2), metavar="N", help="Runs of each op.  [default: 5; settings: 3]"
)
@click.option("--thorough", is_flag=True, help="30 runs of each op, at more sizes.")
@click.option("--device", type=Device(), help="Device to run on.  [default: a GPU if there is one]")
@click.option("--require-device", is_flag=True, help="Fail if no GPU is found instead of running on the CPU.")
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), metavar="N", help="Seed of the inputs.  [default: 0]"
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, 1e6, min_open=True),
    metavar="SECONDS",
    help="Time limit of an op in one process.  [default: 120]",
)
@click.option("--evidence", metavar="FILE", help="Write the measurements to a file.")
@click.option("--output-format", type=Choice(FORMATS), help="Output format.")
@click.option("--output-file", "-o", metavar="FILE", help="Write the report to a file.")
@click.option("--select", multiple=True, callback=codes, metavar="RULES", help="Rules to enable.")
@click.option("--ignore", multiple=True, callback=codes, metavar="RULES", help="Rules to disable.")
@click.option("--min-confidence", type=Choice(CONFIDENCES), help="Minimum confidence to report.")
@click.option("--config", metavar="FILE", help="Configuration file to use.")
@click.option("--isolated", is_flag=True, help="Ignore all configuration files.")
@click.option("--color", type=Choice(COLORS), help="Colors in text output.")
@click.option("--exit-zero", is_flag=True, help="Exit with status 0 even if findings are reported.")
@click.option("--quiet", "-q", is_flag=True, help="Print only errors to stderr.")
def verify(paths: tuple[str, ...], **options: Any) -> int:
    """Run the ops and settings that findings in PATHS are about, and report whether results differ.

    Without PATHS, what --op, --all, --setting and --settings name is run, else the findings in the working
    directory. No code of the linted program is executed. Results on a CPU do not apply to GPUs.

    With several processes, under torchrun:

        torchrun --nproc-per-node 4 -m d9mlint.verify --collectives
    """
    if options.pop("collectives"):
        return _collectives(paths, options)
    from d9mlint.cli import check
    from d9mlint.verify.command import Wanted

    names = (*options.pop("settings"), *(["all"] if options.pop("every_setting") else []))
    given = {
        name: value
        for name in ("ops", "every", "runs", "thorough", "require_device", "seed", "timeout")
        if (value := options.pop(name)) not in (None, (), False)
    }
    if math.isnan(given.get("timeout", 0)):
        raise UsageError("--timeout must be a number of seconds.")
    wanted = Wanted(**given, settings=names, device=options.pop("device") or "auto")
    named = bool(wanted.ops or wanted.every or wanted.settings)
    own = {name: options.pop(name) for name in ("evidence", "output_file", "exit_zero", "quiet")}
    request = check.CheckOptions(paths=paths or (() if named else (".",)), measure=wanted, **own)
    return check.run_check(request, settings_for(list(request.paths) or ["."], options))


def _collectives(paths: tuple[str, ...], options: dict[str, Any]) -> int:
    """Compare collectives, with the options that they have. Raises UsageError for any other."""
    from d9mlint.verify import collectives

    takes = ("runs", "thorough", "device", "require_device", "seed", "timeout", "evidence")
    other = [name for name, value in options.items() if value not in (None, (), False) and name not in takes]
    if paths or other:
        spelled = {"ops": "op", "every": "all", "settings": "setting", "every_setting": "settings"}
        what = paths[0] if paths else f"--{spelled.get(other[0], other[0]).replace('_', '-')}"
        raise UsageError(f"--collectives cannot be combined with {what}.")
    arguments: list[str] = []
    for name in takes:
        value = options[name]
        if value is True:
            arguments.append(f"--{name.replace('_', '-')}")
        elif value not in (None, False):
            arguments += [f"--{name}", str(value)]
    return collectives.main(arguments)
