"""``d9mlint dev``: for those who work on d9mlint's own rules."""

from __future__ import annotations

import os
from pathlib import Path

import click

from d9mlint.base.errors import UsageError

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

FRONT = """\
---
code: {code}
name: {name}
family: {family}
summary: {call} with `fast=True` gives results that differ between runs
severity: warning
confidence: high
default: true
since: {since}
libraries: [{library}]
"""

MATCH = """\
match:
  - apis: [{call}]
    when: [{{arg: fast, pos: 0, equals: true}}]
    message: "`{{call}}(fast=True)` gives results that differ between runs"
    help: "pass `fast=False`"
    provenance: ["where this was seen: a page, a file at a commit, a run and its versions"]
"""

BODY = """\
---
# {code} {name}

## What it does
Reports `{call}(fast=True)`.

## Why it matters
Say what differs between two runs, and why.

## Example
```python
import {library}

{call}(True)  # error: [{code}]
{call}(fast=False)  # ok
```

## Use instead
`fast=False`.

## When to suppress
Say when the finding does not matter.

## References
* the documentation of {library}
"""

EXAMPLES = """\
# {code} {name}: further examples

## Reported

```python
import {library} as other
from {library} import {function} as imported

other.{function}(fast=True)  # error: [{code}]
imported(True)  # error: [{code}]
```

## Not reported

```python
import {library}
from {library} import {function}

{call}()  # ok
{function}(unknown)  # ok


class {library}:
    @staticmethod
    def {function}(fast):
        return fast


{call}(fast=True)  # ok
```
"""

MODULE = '''\
"""{code}: {name}."""

from __future__ import annotations

from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import on_call


class {title}(Rule):
    """One object for each analysis run. State of the run is a field made by ``interp.memory.remembered``."""

    codes = ("{code}",)

    @on_call("{call}")
    def called(self, call: CallEvent) -> None:
        """The call is made."""
        fast = call.args.get("fast", 0)
        if isinstance(fast, v.Lit) and fast.value is True:
            self.report(
                "{code}",
                call.node,
                "`{call}(fast=True)` gives results that differ between runs",
                "pass `fast=False`",
                subject=call.api,
            )
'''


@click.group(context_settings=CONTEXT)
def dev() -> None:
    """Work on the rules of d9mlint, in a checkout of it."""


@dev.command("new-rule", context_settings=CONTEXT)
@click.argument("code")
@click.argument("name")
@click.option("--api", "call", default="acme.train", show_default=True, help="Call that the rule is about.")
@click.option("--family", default="settings", show_default=True, help="Family of the rule.")
@click.option("--with-code", is_flag=True, help="Write a module, for a rule that is not only a comparison.")
@click.option("--root", metavar="DIR", help="Checkout to write to (default: that of this d9mlint).")
def new_rule(code: str, name: str, call: str, family: str, with_code: bool, root: str | None) -> int:
    """Write the page of a new rule, further examples, and with --with-code its module.

    CODE is a free code such as DET320, NAME words with hyphens such as fast-mode. What is written is a working rule
    about a made-up argument, whose examples are tests; change it from there.
    """
    from d9mlint.knowledge.loader import rule_files, rules_directory
    from d9mlint.knowledge.pages import CODE, NAME

    top = Path(root) if root else rules_directory().parent
    rules = top / "rules"
    if not (rules / "knowledge").is_dir() or not (top / "d9mlint" / "checks").is_dir():
        raise UsageError(f"{top} is not a checkout of d9mlint; name one with --root.")
    library, dot, function = call.rpartition(".")
    if not CODE.fullmatch(code) or not code.startswith("DET"):
        raise UsageError(f"{code} is not DET and three digits.")
    if not NAME.fullmatch(name):
        raise UsageError(f"{name} is not words in lower case with hyphens.")
    if not dot or not all(part.isidentifier() for part in (library, function)):
        raise UsageError(f"--api {call} is not a function of a library, such as acme.train.")
    for path in rule_files(rules):
        if path.suffix == ".md" and (path.name.startswith(code) or path.stem.partition("-")[2] == name):
            raise UsageError(f"The code or the name is already used in {path.name}.")
    from d9mlint import __version__

    words = {
        "code": code,
        "name": name,
        "family": family,
        "call": call,
        "library": library,
        "function": function,
        "since": __version__,
        "title": "".join(word.capitalize() for word in name.split("-")),
    }
    front = FRONT + ("" if with_code else MATCH)
    texts = {
        rules / f"{code}-{name}.md": (front + BODY).format(**words),
        top / "tests" / "cases" / code / "examples.md": EXAMPLES.format(**words),
    }
    if with_code:
        checks = top / "d9mlint" / "checks"
        package = checks / family if (checks / family / "__init__.py").is_file() else checks
        texts[package / f"{name.replace('-', '_')}.py"] = MODULE.format(**words)
    for path in texts:
        if path.exists():
            raise UsageError(f"{path} exists already.")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        click.echo(f"Wrote {os.path.relpath(path)}")
    click.echo(f"Try: python -m pytest tests/test_rule_pages.py tests/test_cases.py -k {code}")
    return 0
