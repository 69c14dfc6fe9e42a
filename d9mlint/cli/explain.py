"""``d9mlint explain FILE:LINE``: what the analysis knows at a line, and why rules report it or not."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import click

from d9mlint.base.errors import UsageError
from d9mlint.cli.options import configuring, settings_for

OWN = frozenset({"torch_version", "tensorflow_version", "device", "knowledge", "config", "isolated", "cache", "cache_dir",
                 "jobs"})  # fmt: skip


def _rules(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> tuple[str, ...]:
    return tuple(part for text in value for part in (p.strip() for p in text.split(",")) if part)


def _kept(function: Any) -> Any:
    """Of the options that set settings, those that change what the analysis knows."""
    own = list(getattr(function, "__click_params__", []))
    function = configuring(function)
    function.__click_params__ = [p for p in function.__click_params__ if p.name in OWN or p in own]
    return function


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@_kept
@click.argument("place", metavar="FILE:LINE")
@click.option("--rule", "rules", multiple=True, callback=_rules, metavar="RULES",
              help="Also say what these rules (codes, names, prefixes or families) make of the line.")  # fmt: skip
@click.option("--entry", default="", metavar="FILE", help="Entry point to look at (default: the first four).")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def explain(place: str, rules: tuple[str, ...], entry: str, output_format: str, **options: Any) -> int:
    """Show what the analysis knows at a line, and why each rule reports it or not.

    Shown are the entry points that reach the line with the calls on the way, seeds, modes and variables that are
    set there, what is known of its values (device, gradient, dtype, order), the facts of the knowledge base about
    its calls with their conditions, and what every rule that is concerned says. In a notebook the line is given
    as FILE.ipynb:CELL:LINE.
    """
    from d9mlint.cli.knows import condition_text
    from d9mlint.explain import explain as explained
    from d9mlint.report.explanation import Explained

    path, cell, row = _parsed(place)
    if not os.path.isfile(path):
        raise UsageError(f"{path} does not exist.")
    settings = settings_for([os.path.dirname(path) or "."], options)
    if path.endswith(".ipynb"):
        row = _joined_row(path, cell, row)
    found = Explained(explained(path, row, settings, rules=rules, entry=entry), condition_text)
    if output_format == "json":
        click.echo(json.dumps(found.data(), indent=2, ensure_ascii=False, default=str))
    else:
        click.echo(found.text(), nl=False)
    return 0


def _parsed(place: str) -> tuple[str, int, int]:
    """The file, the cell of a notebook (0: none) and the line of ``FILE:LINE``; a column after it is ignored."""
    parts = place.split(":")
    numbers: list[int] = []
    while len(parts) > 1 and parts[-1].isdecimal():
        numbers.insert(0, int(parts.pop()))
    path = ":".join(parts)
    if not numbers or not path:
        raise UsageError(f"{place} is not of the form FILE:LINE.")
    if path.endswith(".ipynb"):
        if len(numbers) < 2:
            raise UsageError(f"{place} is not of the form FILE.ipynb:CELL:LINE.")
        return path, numbers[0], numbers[1]
    return path, 0, numbers[0]


def _joined_row(path: str, cell: int, row: int) -> int:
    """The row of a notebook's cell, counted over all cells."""
    from d9mlint.base.source import read_source

    source = read_source(path)
    for one in source.cells or ():
        if one.number == cell:
            return one.row + row - 1
    raise UsageError(f"{path} has no code cell {cell}.")
