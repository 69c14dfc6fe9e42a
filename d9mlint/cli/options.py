"""Options that several commands share, and what they mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from d9mlint.base.errors import UsageError, nearest
from d9mlint.base.paths import absolute, common_directory
from d9mlint.config.settings import (
    COLORS,
    CONFIDENCES,
    DEVICES,
    FORMATS,
    SEVERITIES,
    Settings,
    load_settings,
)

if TYPE_CHECKING:
    from d9mlint.verify.command import Wanted

    ParamType = click.ParamType[Any]
else:
    # Not generic in older versions of click.
    ParamType = click.ParamType

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def path_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def codes(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> tuple[str, ...] | None:
    """Comma-separated values of an option that may be given several times; None when it is not."""
    if not value:
        return None
    return tuple(part for text in value for part in (p.strip() for p in text.split(",")) if part)


def rule_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    from d9mlint.cli import commands

    return list(commands.rule_words(ctx, param, incomplete))


def per_file(
    ctx: click.Context, param: click.Parameter, value: Sequence[str]
) -> dict[str, tuple[str, ...]] | None:
    """``PATTERN:RULE`` pairs as a table; a rule without a pattern belongs to the pattern before it."""
    if not value:
        return None
    table: dict[str, tuple[str, ...]] = {}
    pattern = ""
    for part in (p.strip() for text in value for p in text.split(",")):
        head, colon, rule = part.rpartition(":")
        pattern = head if colon else pattern
        if not pattern or not rule:
            raise click.BadParameter(f"{part!r} is not of the form PATTERN:RULE.", ctx, param)
        table[pattern] = (*table.get(pattern, ()), rule)
    return table


class Choice(ParamType):
    """One of some words; the nearest is named for any other."""

    name = "choice"

    def __init__(self, choices: Sequence[str]) -> None:
        self.choices = choices

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "[" + "|".join(self.choices) + "]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value not in self.choices:
            self.fail(
                f"{value!r} is not one of {', '.join(self.choices)}.{nearest(value, self.choices)}",
                param,
                ctx,
            )
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(c) for c in self.choices if c.startswith(incomplete)]


class Device(ParamType):
    """``cuda``, a GPU by number, or another device of ``names``."""

    name = "device"

    def __init__(self, names: Sequence[str] = ("cuda", "cpu")) -> None:
        self.names = names
        self.forms = [names[0], "cuda:N", *names[1:]]

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "[" + "|".join(self.forms) + "]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value not in self.names and not (value.startswith("cuda:") and value[5:].isdecimal()):
            known = ", ".join(self.forms)
            self.fail(f"{value!r} is not one of {known}.{nearest(value, self.names)}", param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in self.names if name.startswith(incomplete)]


def _rules_option(name: str, help: str) -> Callable[..., Any]:
    return click.option(
        name, multiple=True, callback=codes, shell_complete=rule_words, metavar="RULES", help=help
    )


def configuring(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that set settings; each is named as the configuration key it overrides."""
    options = [
        _rules_option("--select", "Comma-separated codes, prefixes, names or families to enable (or ALL)."),
        _rules_option("--ignore", "Rules to disable."),
        _rules_option("--extend-select", "Rules to enable in addition."),
        _rules_option("--extend-ignore", "Rules to disable in addition."),
        click.option(
            "--per-file-ignores",
            multiple=True,
            callback=per_file,
            metavar="PATTERN:RULE,...",
            help="Rules to ignore in files that match a pattern.",
        ),
        click.option(
            "--preview/--no-preview",
            default=None,
            help="Use preview rules, which are new and may still change.",
        ),
        click.option("--min-severity", type=Choice(SEVERITIES), help="Minimum severity to report."),
        click.option("--min-confidence", type=Choice(CONFIDENCES), help="Minimum confidence to report."),
        click.option(
            "--exclude",
            multiple=True,
            callback=codes,
            metavar="PATTERNS",
            help="Patterns to exclude, replacing the defaults (comma-separated).",
        ),
        click.option(
            "--extend-exclude",
            multiple=True,
            callback=codes,
            metavar="PATTERNS",
            help="Patterns to exclude in addition.",
        ),
        click.option(
            "--respect-gitignore/--no-respect-gitignore", default=None, help="Skip files that git ignores."
        ),
        click.option(
            "--force-exclude/--no-force-exclude",
            default=None,
            help="Apply exclusions to files that are named on the command line, too.",
        ),
        click.option("--torch-version", metavar="VERSION", help="PyTorch version to check against."),
        click.option("--tensorflow-version", metavar="VERSION", help="TensorFlow version to check against."),
        click.option(
            "--device",
            type=Device(DEVICES),
            help="Device that the program runs on; with --verify, the device to run ops on.",
        ),
        click.option("--output-format", type=Choice(FORMATS), help="Output format."),
        click.option(
            "--fail-on", type=Choice(SEVERITIES), help="Minimum severity that causes exit status 1."
        ),
        click.option("--baseline", metavar="FILE", help="File of known findings, which are not reported."),
        click.option(
            "--knowledge",
            multiple=True,
            callback=codes,
            metavar="FILE",
            help="YAML files of facts about your own functions and libraries.",
        ),
        click.option("--jobs", "-j", type=int, metavar="N", help="Number of worker processes."),
        click.option(
            "--executor",
            metavar="NAME[:ADDRESS]",
            help="Where programs are analyzed: serial, processes (default), dask or ray, with the address of a cluster "
            "or on this machine.",
        ),
        click.option("--cache/--no-cache", default=None, help="Cache results."),
        click.option("--cache-dir", metavar="DIR", help="Directory that holds .d9mlint_cache."),
        click.option("--color", type=Choice(COLORS), help="When to use colors in text output."),
        click.option("--fix/--no-fix", default=None, help="Apply safe fixes."),
        click.option("--unsafe-fixes/--no-unsafe-fixes", default=None, help="Also apply unsafe fixes."),
        _rules_option("--fixable", "Rules whose fixes are offered (default: ALL)."),
        _rules_option("--unfixable", "Rules whose fixes are not offered."),
        click.option("--config", metavar="FILE", help="Configuration file to use."),
        click.option("--isolated", is_flag=True, help="Ignore all configuration files."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


MEASURING = {
    "ops": "--op",
    "every": "--all",
    "runs": "--runs",
    "thorough": "--thorough",
    "require_device": "--require-device",
    "seed": "--seed",
    "timeout": "--timeout",
}
"""Options that say how to measure, by their names in ``verify.command.Wanted``."""


def measuring(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of ``--verify``."""
    options = [
        click.option(
            "--verify",
            is_flag=True,
            help="Run each flagged op several times and report whether its results differ.",
        ),
        click.option(
            "--op",
            "ops",
            multiple=True,
            metavar="NAME",
            help="With --verify: run this op (see `d9mlint recipe --all`).",
        ),
        click.option("--all", "every", is_flag=True, help="With --verify: run every op that has a recipe."),
        click.option("--runs", type=click.IntRange(2), help="With --verify: runs of each op (default: 5)."),
        click.option("--thorough", is_flag=True, help="With --verify: 30 runs and more sizes."),
        click.option(
            "--require-device",
            is_flag=True,
            help="With --verify: fail if there is no GPU instead of running on the CPU.",
        ),
        click.option(
            "--seed",
            type=click.IntRange(0, 2**32 - 1),
            metavar="N",
            help="With --verify: seed of the inputs (default: 0).",
        ),
        click.option(
            "--timeout",
            type=click.FloatRange(0, 1e6, min_open=True),
            metavar="SECONDS",
            help="With --verify: time limit per op and process (default: 120).",
        ),
        click.option(
            "--evidence",
            metavar="FILE",
            help="With --verify: write the evidence to FILE. Otherwise: show the evidence in FILE next to the findings.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def measure_for(options: dict[str, Any]) -> Wanted | None:
    """What ``--verify`` is to do, taken out of the options; None without it. Raises UsageError."""
    verify = options.pop("verify")
    given = {name: value for name in MEASURING if (value := options.pop(name)) not in (None, (), False)}
    device = options["device"]
    if not verify:
        if given:
            raise UsageError(f"{MEASURING[next(iter(given))]} requires --verify.")
        options["device"] = device and device.partition(":")[0]
        return None
    if math.isnan(given.get("timeout", 0)):
        raise UsageError("--timeout must be a number of seconds.")
    if device in ("xpu", "mps"):
        raise UsageError(f"--verify runs ops on CUDA GPUs and on the CPU, not on {device}.")
    from d9mlint.verify.command import Wanted

    # What the program may run on stays as configured: on a CPU alone there would be nothing to verify.
    options["device"] = None
    return Wanted(**given, device=device or "auto")


def settings_for(paths: Sequence[str], options: Mapping[str, Any]) -> Settings:
    """The settings of a run about ``paths`` with the options of the command line."""
    overrides = {
        name.replace("_", "-"): value
        for name, value in options.items()
        if value is not None and name not in ("config", "isolated")
    }
    directory = common_directory([absolute(p) for p in paths])
    return load_settings(
        directory, config=options.get("config"), isolated=bool(options.get("isolated")), overrides=overrides
    )
