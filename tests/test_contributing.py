"""Whoever follows ``rules/CONTRIBUTING.md`` gets an op that is reported."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import ROOT, RULES, block_settings, blocks, make_program, mismatches, split_files, write_program

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


@pytest.mark.full
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
    path.write_text(before.replace('    remedy: Pass mode="gather"', '    remedi: Pass mode="gather"'))
    capsys.readouterr()
    assert main([str(rules)]) == 1
    said = capsys.readouterr().out
    assert said.startswith(f"knowledge/ops/torch.yaml:{line + 8}:")
    assert "unknown key `remedi`, did you mean `remedy`?" in said


SECTIONS = {"seeder": "DET101", "data": "DET320", "code": "DET321", "framework": "DET302"}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout in which somebody has done all that the page shows."""
    root = tmp_path_factory.mktemp("checkout")
    for name in ("d9mlint", "rules"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for block in blocks(PAGE.read_text()):
        for word in block.info:
            if word.startswith("file="):
                name = word.partition("=")[2]
                path = root / name if name.startswith("d9mlint/") else root / "rules" / name
                known = path.read_text() if path.exists() else ""
                path.write_text(known + block.text)
    return root


def in_checkout(checkout: Path, *arguments: str, cwd: Path, codes: tuple[int, ...] = (0, 1)) -> str:
    """What a module of a checkout prints; both streams where it is to fail."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(checkout)},
    )
    assert done.returncode in codes and "Traceback" not in done.stderr, done.stdout + done.stderr
    return done.stdout if done.returncode in (0, 1) else done.stdout + done.stderr


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.full
def test_what_each_section_shows(checkout: Path, tmp_path: Path, section: str) -> None:
    (block,) = [one for one in blocks(PAGE.read_text()) if section in one.info]
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "train.py").write_text(block.text)
    out = in_checkout(
        checkout,
        "d9mlint",
        "--output-format=json",
        "--no-cache",
        f"--select={SECTIONS[section]}",
        cwd=tmp_path,
    )
    found = {(one["location"]["row"], one["code"]) for one in json.loads(out)}
    rows = [row.partition("# error: [")[2][:6] for row in block.text.split("\n")]
    assert found == {(number, code) for number, code in enumerate(rows, 1) if code}


def test_the_facts_of_all_sections_are_well_formed(checkout: Path) -> None:
    assert "all good" in in_checkout(checkout, "d9mlint.knowledge", str(checkout / "rules"), cwd=checkout)


@pytest.mark.parametrize("options", [(), ("--with-code",)])
@pytest.mark.full
def test_a_scaffolded_rule_passes_the_tests_of_pages(tmp_path: Path, options: tuple[str, ...]) -> None:
    root = tmp_path / "checkout"
    for name in ("d9mlint", "rules"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "tests").mkdir()
    for name in ("support.py", "conftest.py", "test_rule_pages.py"):
        shutil.copy(ROOT / "tests" / name, root / "tests")
    shutil.copytree(ROOT / "tests" / "cases", root / "tests" / "cases")
    (root / "pyproject.toml").write_text("")
    arguments = ("d9mlint", "dev", "new-rule", "DET399", "quick-mode", "--api=acme.train", *options)
    said = in_checkout(root, *arguments, cwd=root)
    assert "Wrote rules/DET399-quick-mode.md" in said and "Wrote tests/cases/DET399/examples.md" in said
    assert ("Wrote d9mlint/checks/settings/quick_mode.py" in said) == bool(options)
    chosen = "DET399 or examples_of_both or short or fixed_is_said"
    out = in_checkout(
        root, "pytest", "-q", "-p", "no:cacheprovider", "tests/test_rule_pages.py", "-k", chosen, cwd=root
    )
    assert "passed" in out and "failed" not in out, out
    again = in_checkout(root, *arguments, cwd=root, codes=(2,))
    assert "already used in DET399-quick-mode.md" in again


def test_the_recipe_is_one(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = [
        block.text for block in blocks(PAGE.read_text()) if block.language == "yaml" and not block.info
    ][1]
    path = rules / "recipes/torch.yaml"
    path.write_text(path.read_text() + recipe)
    assert main([str(rules)]) == 0
    path.write_text(path.read_text().replace("ops: [torch.blur_backward]", "ops: [torch.blur_backwards]"))
    capsys.readouterr()
    assert main([str(rules)]) == 1
    said = capsys.readouterr().out
    assert "recipe blur_backward stands for torch.blur_backwards" in said
    assert "Did you mean torch.blur_backward?" in said
