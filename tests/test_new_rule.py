"""Whoever follows ``CONTRIBUTING.md`` gets a rule with code, in two files."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import RULES, blocks, make_program, mismatches, split_files, write_program

from d9mlint import checks, knowledge
from d9mlint.checks.registry import all_rules
from d9mlint.knowledge import loader

PAGE = RULES.parent / "CONTRIBUTING.md"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The rule page of ``CONTRIBUTING.md``; the page and the module are in use for this test."""
    text = PAGE.read_text(encoding="utf-8")
    # A page contains blocks, so that its fence is longer.
    markdown = text.split("````markdown\n")[1].split("````")[0]
    module = text.split("many_generators.py`:\n\n```python\n")[1].split("```")[0]
    rules, modules = tmp_path / "rules", tmp_path / "checks"
    shutil.copytree(RULES, rules)
    (rules / "DET998-many-generators.md").write_text(markdown, encoding="utf-8")
    modules.mkdir()
    (modules / "many_generators.py").write_text(module, encoding="utf-8")
    monkeypatch.setattr(loader, "rules_directory", lambda: rules)
    monkeypatch.setattr(checks, "__path__", [*checks.__path__, str(modules)])
    knowledge.load.cache_clear()
    all_rules.cache_clear()
    yield markdown
    knowledge.load.cache_clear()
    all_rules.cache_clear()
    sys.modules.pop("d9mlint.checks.many_generators", None)


def test_a_page_and_a_module_are_a_rule(page: str, tmp_path: Path) -> None:
    example = next(block for block in blocks(page) if block.language == "python")
    program = make_program("DET998", split_files(example.text), {"extend-select": ["DET998"]})
    directory = tmp_path / "program"
    write_program(program, directory)
    assert mismatches(program, directory, {"DET998"}) == []
