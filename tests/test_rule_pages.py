"""Every code block of a rule page does what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import (
    RULES,
    Block,
    block_settings,
    blocks,
    expectations,
    make_program,
    mismatches,
    split_files,
    write_program,
)

from d9mlint.config.settings import load_settings
from d9mlint.fix.rounds import fix
from d9mlint.pipeline import check


def _pages() -> list[tuple[str, Path, Block, Block | None]]:
    found = []
    for path in sorted(RULES.glob("DET*.md")):
        previous: Block | None = None
        for block in blocks(path.read_text(encoding="utf-8")):
            if block.language != "python" or "ignore" in block.info:
                continue
            found.append((path.name[:6], path, block, previous if "fixed" in block.info else None))
            previous = block
    return found


PAGES = _pages()
IDS = [f"{code}:{block.line}" for code, _, block, _ in PAGES]


@pytest.mark.parametrize(("code", "path", "block", "before"), PAGES, ids=IDS)
def test_block(code: str, path: Path, block: Block, before: Block | None, tmp_path: Path) -> None:
    settings = {"extend-select": [code], **block_settings(block.info)}
    if before is not None:
        _check_fixed(code, block, before, tmp_path)
        return
    program = make_program(code, split_files(block.text), settings)
    write_program(program, tmp_path)
    mentioned = {code} | {c.split()[0] for codes in program.errors.values() for c in codes}
    wrong = mismatches(program, tmp_path, only=mentioned)
    assert not wrong, f"{path.name}:{block.line}\n" + "\n".join(wrong)


def _check_fixed(code: str, block: Block, before: Block, directory: Path) -> None:
    overrides = {
        "select": [code, "DET101", "DET301"] if code == "DET003" else [code],
        "cache": False,
        "jobs": 1,
    }
    overrides.update(block_settings(before.info))
    program = make_program(code, split_files(before.text), {})
    write_program(program, directory)
    settings = load_settings(str(directory), overrides=overrides)
    fixed = fix(
        lambda overlay: check([str(directory)], settings, overlay=overlay), {}, "unsafe" in block.info
    )
    for name, text in split_files(block.text).items():
        wanted = expectations(text)[0]
        got = fixed.changes.get(
            (directory / name).resolve().as_posix(), (directory / name).read_bytes()
        ).decode()
        assert got == wanted


def test_what_can_be_fixed_is_said_by_the_blocks_alone() -> None:
    from d9mlint.knowledge.pages import fixable

    texts = {path.name[:6]: path.read_text(encoding="utf-8") for path in sorted(RULES.glob("DET*.md"))}
    kinds = {code: fixable(text) for code, text in texts.items()}
    assert (kinds["DET112"], kinds["DET101"], kinds["DET312"], kinds["DET205"]) == (
        "safe",
        "unsafe",
        "both",
        "no",
    )
    assert sum(kind != "no" for kind in kinds.values()) >= 40
    wrong = [code for code, text in texts.items() if (kinds[code] == "no") == ("## Fix safety" in text)]
    assert not wrong, "pages with fixes say how safe they are"


def test_pages_have_examples_of_both_kinds() -> None:
    for path in sorted(RULES.glob("DET*.md")):
        text = path.read_text(encoding="utf-8")
        if path.name.startswith("DET00"):
            continue
        assert len(re.findall(r"# (?:todo-)?error: \[", text)) >= 3, (
            f"{path.name}: at least 3 lines with findings"
        )
        assert len(re.findall(r"# ok\b", text)) >= 3, f"{path.name}: at least 3 lines without"
