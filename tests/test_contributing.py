"""Whoever follows ``rules/CONTRIBUTING.md`` gets an op that is reported."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import RULES, block_settings, blocks, make_program, mismatches, split_files, write_program

from d9mlint import knowledge
from d9mlint.knowledge import loader
from d9mlint.knowledge.__main__ import main

PAGE = RULES / "CONTRIBUTING.md"


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the rules with the entry of the page added, in use for this test."""
    root = tmp_path / "rules"
    shutil.copytree(RULES, root)
    entry = next(block.text for block in blocks(PAGE.read_text()) if block.language == "yaml")
    with (root / "knowledge/ops/torch.yaml").open("a") as stream:
        stream.write(entry)
    monkeypatch.setattr(loader, "rules_directory", lambda: root)
    knowledge.load.cache_clear()
    yield root
    knowledge.load.cache_clear()


def test_an_op_in_ten_lines(rules: Path, tmp_path: Path) -> None:
    block = next(block for block in blocks(PAGE.read_text()) if block.language == "python")
    program = make_program("contributing", split_files(block.text), block_settings(block.info))
    directory = tmp_path / "program"
    write_program(program, directory)
    assert mismatches(program, directory, {"DET401", "DET402"}) == []


def test_the_entry_is_as_long_as_the_page_says() -> None:
    entry = next(block.text for block in blocks(PAGE.read_text()) if block.language == "yaml")
    assert len(entry.splitlines()) == 10


def test_the_check_is_content_or_names_the_line(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(rules)]) == 0
    path = rules / "knowledge/ops/torch.yaml"
    before = path.read_text()
    line = before.count("\n", 0, before.index("torch.blur_backward")) + 1
    path.write_text(before.replace('    remedy: mode="gather"', '    remedi: mode="gather"'))
    capsys.readouterr()
    assert main([str(rules)]) == 1
    said = capsys.readouterr().out
    assert said.startswith(f"knowledge/ops/torch.yaml:{line + 8}:")
    assert "unknown key `remedi`, did you mean `remedy`?" in said


def test_the_recipe_is_one(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = [block.text for block in blocks(PAGE.read_text()) if block.language == "yaml"][1]
    path = rules / "recipes/torch.yaml"
    path.write_text(path.read_text() + recipe)
    assert main([str(rules)]) == 0
    path.write_text(path.read_text().replace("ops: [torch.blur_backward]", "ops: [torch.blur_backwards]"))
    capsys.readouterr()
    assert main([str(rules)]) == 1
    said = capsys.readouterr().out
    assert "recipe blur_backward stands for torch.blur_backwards" in said
    assert "Did you mean torch.blur_backward?" in said
