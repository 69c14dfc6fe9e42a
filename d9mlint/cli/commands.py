"""The smaller sub-commands: rule, recipe, config, graph, clean, version, completion."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from d9mlint import __version__
from d9mlint.base import terminal
from d9mlint.base.errors import UsageError, nearest
from d9mlint.base.paths import absolute, common_directory, find_root, relative_to
from d9mlint.config.settings import (
    EXTEND,
    KEYS,
    Key,
    config_schema,
    find_config,
    load_settings,
    show_settings,
)

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from d9mlint.knowledge.schema import RulePage


def rule_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completions of a rule: codes, names and families; after a comma the next one of a list."""
    from click.shell_completion import CompletionItem

    from d9mlint import knowledge

    before, comma, word = incomplete.rpartition(",")
    pages = knowledge.load().rules
    words = [*((c, p.name) for c, p in pages.items()), *((p.name, c) for c, p in pages.items())]
    words += [(family, "family") for family in sorted({p.family for p in pages.values()})]
    return [
        CompletionItem(before + comma + text, help=about)
        for text, about in words
        if text.lower().startswith(word.lower())
    ]


def key_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completions of a configuration key."""
    from click.shell_completion import CompletionItem

    words = {**{key: spec.about for key, spec in KEYS.items()}, "extend": EXTEND, "schema": "JSON schema"}
    return [CompletionItem(key, help=about) for key, about in words.items() if key.startswith(incomplete)]


def recipe_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completions of a recipe: its id, what it runs and the APIs that it stands for, as programs write them."""
    from click.shell_completion import CompletionItem

    from d9mlint import knowledge
    from d9mlint.verify.plan import WHOLE
    from d9mlint.verify.recipes import load_recipes

    head = incomplete.partition(".")[0]
    full = WHOLE.get(head, head)
    words: dict[str, str] = {}
    known = knowledge.load()
    for one in load_recipes():
        words.setdefault(one.id, f"{one.api}, {one.phase}")
        # By the abbreviation that the word begins with: `torch.Tensor.put_ (accumulate=True)`.
        names = [one.api.partition(" ")[0].partition("(")[0]]
        for name in (*names, *(api for op in one.ops if (entry := known.op(op)) for api in entry.apis)):
            if "." in name and "*" not in name:
                words.setdefault(head + name[len(full) :] if name.startswith(f"{full}.") else name, one.id)
    return [CompletionItem(word, help=about) for word, about in words.items() if word.startswith(incomplete)]


CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.command(context_settings=CONTEXT)
@click.argument("rules", nargs=-1, metavar="[CODE|NAME|PREFIX|FAMILY]...", shell_complete=rule_words)
@click.option("--all", "every", is_flag=True, help="List all rules.")
@click.option(
    "--output-format", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True
)
def rule(rules: tuple[str, ...], every: bool, output_format: str) -> int:
    """Explain rules by code or name, offline. A prefix (DET3) or a family (seeds) lists its rules."""
    from d9mlint.cli.own import known_here

    pages = known_here().rules
    if every:
        chosen = [pages[code] for code in sorted(pages)]
    elif rules:
        names = {word: code for code, page in pages.items() for word in (page.name, *page.replaces)}
        chosen = []
        for wanted in rules:
            known = (word for word in (wanted.upper(), wanted.lower()) if word in pages or word in names)
            word = next(known, "")
            code = names.get(word, word)
            codes = [code] if code else _expanded(wanted, pages)
            if not codes:
                words = [*pages, *names, *(page.family for page in pages.values())]
                raise UsageError(f"Unknown rule {wanted}.{nearest(wanted, words)}")
            every = every or not code
            chosen += [pages[c] for c in codes]
    else:
        raise UsageError("Name a rule, or use --all.")
    if output_format == "json":
        keys = (
            *("code", "name", "family", "summary", "severity", "confidence", "default", "fixable", "since"),
            *("preview", "replaces", "retired"),
        )
        data: list[dict[str, Any]] = [
            {**{k: getattr(p, k) for k in keys}, "libraries": list(p.libraries), "markdown": p.markdown}
            for p in chosen
        ]
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
    elif every and output_format == "text":
        for page in chosen:
            click.echo(f"{page.code}  {page.name}: {page.summary}{_state(page)}")
    else:
        from d9mlint.report import rule_page

        plain = output_format == "markdown" or not sys.stdout.isatty() or bool(os.environ.get("NO_COLOR"))
        show = rule_page.markdown if plain else rule_page.terminal
        click.echo("\n".join(map(show, chosen)), nl=False)
    return 0


def _state(page: RulePage) -> str:
    """Why a rule does not run by default, for a list."""
    if page.retired:
        return f" (retired in {page.retired})"
    words = ["preview"] * page.preview + ["off by default"] * (not page.default)
    return f" ({', '.join(words)})" if words else ""


def _expanded(wanted: str, pages: Mapping[str, RulePage]) -> list[str]:
    """The codes of a prefix or family; empty for anything else."""
    from d9mlint.config.selection import expand

    for word in (wanted, wanted.upper(), wanted.lower()):
        try:
            return expand(word, pages, "rule")
        except UsageError:
            continue
    return []


@click.command(context_settings=CONTEXT)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=recipe_words)
@click.option("--all", "every", is_flag=True, help="List all recipes.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def recipe(names: tuple[str, ...], every: bool, output_format: str) -> int:
    """Show what --verify runs for an op.

    NAME is an API as programs write it (F.pad), an op, a setting or a recipe's id, as `--op` takes it.
    """
    import msgspec

    from d9mlint import knowledge
    from d9mlint.verify import plan
    from d9mlint.verify.recipes import load_recipes

    chosen = load_recipes()
    if not every:
        if not names:
            raise UsageError("Name an op or a recipe, or use --all.")
        chosen = plan.named(names, chosen, knowledge.load())
    if output_format == "json":
        click.echo(json.dumps([msgspec.to_builtins(r) for r in chosen], indent=2, ensure_ascii=False))
    elif every:
        wide = max(len(r.id) for r in chosen)
        for r in chosen:
            click.echo(f"{r.id:<{wide}}  {r.api}, {r.phase}")
    else:
        click.echo("\n".join(map(plan.told, chosen)), nl=False)
    return 0


@click.command(context_settings=CONTEXT)
@click.argument("key", required=False, shell_complete=key_words)
@click.option("--show", is_flag=True, help="Show the values in effect here and where each one comes from.")
def config(key: str | None, show: bool) -> int:
    """List the configuration keys, or explain one.

    `d9mlint config schema` prints a JSON schema of the configuration, for editors.
    """
    if show:
        here = absolute(".")
        click.echo(terminal.clean(f"# {find_config(here) or 'no configuration file'}"))
        click.echo(show_settings(load_settings(here)), nl=False)
        return 0
    if key == "schema":
        click.echo(json.dumps(config_schema(), indent=2))
        return 0
    every = {**KEYS, "extend": Key(str, "path", EXTEND)}
    if key is not None and key not in every:
        raise UsageError(f"Unknown configuration key {key}.{nearest(key, [*every, 'schema'])}")
    for name in [key] if key else sorted(every):
        spec = every[name]
        choices = f" [{', '.join(spec.choices)}]" if spec.choices else ""
        click.echo(f"{name} ({spec.kind}){choices}: {spec.about}")
    return 0


@click.command(context_settings=CONTEXT)
@click.argument("paths", nargs=-1)
@click.option(
    "--output-format",
    type=click.Choice(["text", "json", "dot", "mermaid", "html"]),
    default="text",
    show_default=True,
)
@click.option("--output-file", "-o", metavar="FILE", help="Write to a file.")
@click.option("--coverage", is_flag=True, help="Show what each entry point follows, and what it does not.")
def graph(paths: tuple[str, ...], output_format: str, output_file: str | None, coverage: bool) -> int:
    """Show the entry points of a program, the project files that each one imports, and those that none imports.

    With --coverage, show how many statements each entry point follows, and in text and JSON what it does not follow.
    """
    from d9mlint.cli.check import write_text
    from d9mlint.cli.graph import entry_graph
    from d9mlint.report import graph as pictures

    paths = paths or (".",)
    settings = load_settings(common_directory([absolute(p) for p in paths]))
    result = None
    if coverage:
        from d9mlint.pipeline import check
        from d9mlint.report.coverage import coverage_data, coverage_text

        result = check(paths, settings)
        if output_format in ("text", "json"):
            text = coverage_text(result)
            if output_format == "json":
                text = json.dumps(coverage_data(result), indent=2, ensure_ascii=False) + "\n"
            write_text(text, output_file, output_format)
            return 0
    data = entry_graph(paths, settings)
    if output_format == "json":
        text = (
            json.dumps({"entries": data.entries, "unreached": data.unreached}, indent=2, ensure_ascii=False)
            + "\n"
        )
    else:
        text = getattr(pictures, output_format)(data, result)
    write_text(text, output_file, output_format)
    return 0


@click.command(context_settings=CONTEXT)
@click.argument("path", default=".")
@click.option("--cache-dir", metavar="DIR", help="The directory that holds the cache.")
def clean(path: str, cache_dir: str | None) -> int:
    """Remove the cache of the project around PATH: the files that d9mlint has written, and no others."""
    from d9mlint.report.common import count
    from d9mlint.store.cache_dir import CacheDir, own_directory

    if not os.path.exists(path):
        raise UsageError(f"{path} does not exist.")
    directory = common_directory([absolute(path)])
    root = find_root(directory)
    given = {"cache-dir": cache_dir} if cache_dir else {}
    cache = CacheDir(own_directory(load_settings(directory, overrides=given).cache_dir, root))
    if not os.path.lexists(cache.path):
        click.echo("No cache found.")
        return 0
    if problem := cache.problem():
        raise UsageError(f"{cache.path} is not a cache of d9mlint, {problem}; nothing was removed.")
    try:
        cleared = cache.clear()
    except OSError as error:
        raise UsageError(f"{cache.path} cannot be removed: {error.strerror or error}.") from error
    shown = relative_to(cache.path, absolute("."))
    if cleared.left:
        click.echo(
            f"Removed {count(cleared.removed, 'file')} from {shown}; {cleared.left[0]} was not written by d9mlint."
        )
    else:
        click.echo(f"Removed {shown}.")
    return 0


@click.command(context_settings=CONTEXT)
def version() -> int:
    """Show the versions of d9mlint, its parser and Python."""
    from importlib.metadata import version as installed

    click.echo(f"d9mlint {__version__}")
    click.echo(f"libcst {installed('libcst')}")
    click.echo(f"Python {sys.version.split()[0]}")
    return 0


@click.command(context_settings=CONTEXT)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> int:
    """Print a completion script for a shell."""
    from click.shell_completion import get_completion_class

    from d9mlint.cli.completion import install

    install()
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(ctx.find_root().command, {}, "d9mlint", terminal.COMPLETE).source())
    return 0
