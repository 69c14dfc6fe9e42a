"""The documentation site: its pages, what they include, and what is made from the code."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from support import ROOT, RULES, block_settings, blocks, make_program, mismatches, split_files, write_program

from d9mlint import knowledge
from d9mlint.cli.app import SUBCOMMANDS
from d9mlint.config.settings import KEYS

SITE = RULES / "site"
PAGES = sorted(SITE.glob("*.md"))


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_hook", RULES / "site_hook.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def targets(nav: Any) -> Iterator[str]:
    for entry in nav:
        for target in entry.values() if isinstance(entry, dict) else [entry]:
            yield from targets(target) if isinstance(target, list) else [target]


def test_every_page_is_in_the_navigation() -> None:
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = set(targets(config["nav"]))
    assert {page.name for page in PAGES} <= listed | {config["exclude_docs"]}
    assert ROOT / config["docs_dir"] == SITE and (ROOT / config["hooks"][0]).is_file()


def test_the_navigation_has_all_rules_and_no_page_that_does_not_exist(hook: ModuleType) -> None:
    class Config:
        nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]

    found = set(targets(hook.on_config(Config).nav))
    rules = {f"rules/{page.path}" for page in knowledge.load().rules.values()}
    assert rules <= found
    assert all(
        (SITE / target).is_file() for target in found - rules - {"rules/index.md", *hook.COPIED.values()}
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_what_a_page_includes_exists(hook: ModuleType, page: Path) -> None:
    text = hook.filled(page.read_text(encoding="utf-8"), page.name)
    assert not re.search(r"^<!--|# error: \[", text, flags=re.M)


def test_links_of_included_texts_lead_to_pages_of_the_site(hook: ModuleType) -> None:
    text = hook.relinked("[a](rules/CONTRIBUTING.md#x) [b](SECURITY.md)", "README.md", "trace.md")
    assert text == "[a](contributing/facts.md#x) [b](security.md)"
    assert (
        hook.relinked("[a](../SECURITY.md)", "rules/CONTRIBUTING.md", "contributing/facts.md")
        == "[a](../security.md)"
    )
    with pytest.raises(KeyError):
        hook.relinked("[a](tests/cases/README.md)", "README.md", "trace.md")


def test_the_references_have_every_key_option_and_command(hook: ModuleType) -> None:
    settings = hook.filled((SITE / "configuration.md").read_text(encoding="utf-8"), "configuration.md")
    assert all(f"### `{key}`" in settings for key in [*KEYS, "extend"])
    assert "* Default: `medium`" in settings and 'one of `"cpu"`, `"cuda"`' in settings
    commands = hook.filled((SITE / "command-line.md").read_text(encoding="utf-8"), "command-line.md")
    assert all(f"`d9mlint {name}`" in commands for name in SUBCOMMANDS)
    assert "`--fix --no-fix`" in commands and "--collectives" in commands
    # A table row is one line, and a bar in an option's values does not end its cell.
    assert all(
        len(re.findall(r"(?<!\\)\|", line)) == 3 for line in commands.splitlines() if line.startswith("| `-")
    )


def test_the_index_lists_every_rule_once(hook: ModuleType) -> None:
    text = hook.index(hook.rules())
    assert all(text.count(f"[{page.code} {page.name}]({page.path})") == 1 for page in hook.rules())


def test_the_examples_of_the_pages_are_reported_as_they_say(tmp_path: Path) -> None:
    number = 0
    for page in PAGES:
        for block in blocks(page.read_text(encoding="utf-8")):
            if block.language == "python":
                number += 1
                program = make_program(
                    f"{page.name}-{number}", split_files(block.text), block_settings(block.info)
                )
                directory = tmp_path / str(number)
                write_program(program, directory)
                assert mismatches(program, directory, set(knowledge.load().rules)) == [], page
    assert number
