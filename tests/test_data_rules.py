"""Rules that are data: `match` in the front matter of a page, in a user's page and in a user's YAML."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import RULES

from d9mlint.knowledge.errors import KnowledgeError
from d9mlint.knowledge.loader import compile_rules

Run = Callable[..., Any]
Project = Callable[[dict[str, str]], Path]

PAGE = """\
---
code: ACM001
name: acme-fast-mode
summary: acme's fast mode picks kernels by timing
severity: error
libraries: [acme]
match:
  - apis: [acme.Engine]
    when: [{arg: fast, pos: 0, default: true, equals: true}]
    versions: ">=2"
    message: "`{call}(fast={fast})` picks kernels by timing in acme {version}"
    help: "pass `fast=False`"
  - attributes: [acme.config.fast]
    when: [{arg: value, equals: true}]
    literal: true
    message: "`{call} = True` picks kernels by timing"
    help: "leave it at `False`"
  - env: [ACME_FAST]
    when: [{arg: value, not_equals: "0"}]
    message: "`{call}={value}` picks kernels by timing"
    help: "do not set it"
---
# ACM001 acme-fast-mode

## What it does
Reports acme's fast mode.
"""
FACTS = """\
rules:
  - code: ACM002
    name: acme-legacy
    summary: the legacy sampler is not seeded
    why: It draws from the clock.
    severity: warning
    match:
      - apis: [acme.legacy_sample]
        message: "`{call}` draws from the clock"
        help: "use `acme.sample`"
"""
CODE = """\
import argparse
import os
import acme
import acme as short
from acme import Engine as E

parser = argparse.ArgumentParser()
parser.add_argument("--fast", default=True)
args = parser.parse_args()
acme.Engine()
E(True)
short.Engine(fast=False)
acme.config.fast = True
acme.config.fast = args.fast
os.environ["ACME_FAST"] = "1"
short.legacy_sample(3)


def Engine():
    pass


Engine()
"""
FILES = {
    "train.py": CODE,
    "acme_rules/fast.md": PAGE,
    "facts.yaml": FACTS,
    "requirements.txt": "acme==2.1\n",
    "d9mlint.toml": 'knowledge = ["acme_rules/fast.md", "facts.yaml"]\n',
}


def found(run: Run, root: Path, *arguments: str) -> list[tuple[str, int]]:
    done = run("--output-format", "json", *arguments, cwd=root)
    assert done.code in (0, 1), done.err
    return [(one["code"], one["location"]["row"]) for one in json.loads(done.out)]


def test_rules_of_a_user(run: Run, project: Project) -> None:
    root = project(FILES)
    expected = [("ACM001", 10), ("ACM001", 11), ("ACM001", 13), ("ACM001", 15), ("ACM002", 16)]
    assert found(run, root) == expected
    assert found(run, root) == expected, "from the cache"
    assert found(run, root, "--isolated") == []
    assert found(run, root, "--select=ACM002") == expected[-1:]
    assert found(run, root, "--ignore=acme-fast-mode", "--min-severity=warning") == expected[-1:]
    (root / "train.py").write_text(CODE.replace("E(True)", "E(True)  # noqa: ACM001"))
    assert ("ACM001", 11) not in found(run, root)
    out = run("--output-format=full", cwd=root).out
    assert "`acme.Engine(fast=True)` picks kernels by timing in acme 2.1" in out
    (root / "requirements.txt").write_text("acme==1.9\n")
    assert ("ACM001", 10) not in found(run, root)
    assert "Reports acme's fast mode." in run("rule", "ACM001", cwd=root).out
    assert "It draws from the clock." in run("rule", "acme-legacy", cwd=root).out
    assert json.loads(run("--output-format=sarif", cwd=root).out)["runs"][0]["results"]


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("fast.md", '    help: "do', '    hepl: "do', "fast.md:21: unknown key `hepl`, did you mean `help`?"),
        (
            "fast.md",
            'not_equals: "0"',
            'equal: "0"',
            "fast.md:19: unknown key `equal`, did you mean `equals`?",
        ),
        ("fast.md", "{value}` picks", "{vale}` picks", "fast.md:20: `message` has no value for `{vale}`"),
        (
            "fast.md",
            "severity: error",
            "severety: error",
            "fast.md:5: unknown key `severety`. Did you mean severity?",
        ),
        (
            "fast.md",
            "code: ACM001",
            "code: DET999",
            "fast.md:2: codes that begin with DET are those of d9mlint",
        ),
        (
            "fast.md",
            "code: ACM001",
            "code: ACME1",
            "fast.md:2: `code` is three capital letters and three digits",
        ),
        ("fast.md", "name: acme-fast-mode", "name: cudnn-benchmark", "the code or the name of ACM001"),
        (
            "fast.md",
            "  - env: [ACME_FAST]",
            "  - env: []",
            "fast.md:18: one of `apis`, `attributes` and `env` is needed",
        ),
        (
            "fast.md",
            "  - env: [ACME_FAST]",
            "  - rule: DET301",
            "fast.md:18: an entry of `match` has no `rule`",
        ),
        (
            "facts.yaml",
            "severity: warning",
            "severity: waning",
            "facts.yaml:6: `severity` is one of error, warning, advice, not `waning`. Did you mean",
        ),
        ("facts.yaml", "    match:", "    mach:", "facts.yaml:7: unknown key `mach`. Did you mean match?"),
        ("facts.yaml", 'help: "use', 'helf: "use', "facts.yaml:10: unknown key `helf`, did you mean `help`?"),
        (
            "facts.yaml",
            "rules:",
            "hazards:\n  - {apis: [a.b], rule: ACM003, message: m, help: h}\nrules:",
            "facts.yaml:2: there is no rule `ACM003`. Did you mean",
        ),
    ],
)
def test_mistakes_are_named_by_file_line_and_nearest_word(
    run: Run, project: Project, file: str, old: str, new: str, message: str
) -> None:
    name = file if file == "facts.yaml" else f"acme_rules/{file}"
    assert old in FILES[name]
    root = project({**FILES, name: FILES[name].replace(old, new)})
    done = run(cwd=root)
    assert done.code == 2 and done.err.count("\n") == 1
    assert message in done.err


def test_mistakes_in_a_page_of_d9mlint(tmp_path: Path) -> None:
    root = tmp_path / "rules"
    shutil.copytree(RULES, root, ignore=shutil.ignore_patterns("evidence"))
    page = next(root.glob("DET303-*.md"))
    text = page.read_text()
    line = text[: text.index("equals: false")].count("\n") + 1
    page.write_text(text.replace("equals: false", "eqals: false", 1))
    with pytest.raises(KnowledgeError) as error:
        compile_rules(root)
    assert str(error.value) == f"{page.name}:{line}: unknown key `eqals`, did you mean `equals`?"


def test_what_an_option_decides_is_not_what_the_program_has_chosen(run: Run, project: Project) -> None:
    code = """\
    import argparse
    import torch
    parser = argparse.ArgumentParser()
    parser.add_argument("--deterministic", action="store_true")
    args = parser.parse_args()
    torch.backends.cudnn.deterministic = args.deterministic
    torch.use_deterministic_algorithms(args.deterministic)
    torch.use_deterministic_algorithms(False)
    """
    root = project({"train.py": textwrap.dedent(code)})
    assert found(run, root, "--select=DET303") == [("DET303", 8)]
