"""Whole programs in Markdown: ``tests/cases/*.md``, and further examples of rules: ``tests/cases/DETnnn/*.md``."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from support import (
    CASES,
    RULES,
    Example,
    Program,
    blocks,
    example_mismatches,
    examples,
    further_paths,
    make_program,
    mismatches,
    write_program,
)


def _cases() -> list[Program]:
    found: list[Program] = []
    for path in sorted(CASES.glob("*.md")):
        if path.name == "README.md":
            continue
        text = path.read_text(encoding="utf-8")
        front: dict[str, object] = {}
        if text.startswith("---\n"):
            head = text.split("---\n")[1]
            front = yaml.safe_load(head) or {}
        programs: dict[str, tuple[dict[str, str], dict[str, object]]] = {}
        for block in blocks(text):
            title = block.headings[1] if len(block.headings) > 1 else block.headings[0]
            files, settings = programs.setdefault(title, ({}, dict(front)))
            heading = block.headings[-1]
            if heading.startswith("file: "):
                name = heading.removeprefix("file: ").strip("`")
                assert name not in files, f"{path.name}:{block.line}: {name} is given twice"
                files[name] = block.text
            elif block.language == "yaml" and "settings" in block.info:
                settings.update(yaml.safe_load(block.text))
            else:
                raise AssertionError(f"{path.name}:{block.line}: no '### file:' line stands before the block")
        for title, (files, settings) in programs.items():
            found.append(make_program(f"{path.stem}: {title}", files, settings))
    return found


@pytest.mark.parametrize("program", _cases(), ids=lambda p: p.name)
def test_case(program: Program, tmp_path: Path) -> None:
    write_program(program, tmp_path)
    wrong = mismatches(program, tmp_path)
    assert not wrong, program.name + "\n" + "\n".join(wrong)


FURTHER = examples(further_paths())


@pytest.mark.parametrize("example", FURTHER, ids=[f"{one.code}:{one.block.line}" for one in FURTHER])
def test_further_example(example: Example, tmp_path: Path) -> None:
    wrong = example_mismatches(example, tmp_path)
    assert not wrong, "\n".join(wrong)


def test_folders_are_named_after_rules() -> None:
    pages = {path.name[:6] for path in RULES.glob("DET*.md")}
    assert {path.parent.name for path in further_paths()} <= pages
    assert len(FURTHER) >= 80
