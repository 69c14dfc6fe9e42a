"""Every code block of a rule page does what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import CASES, Example, example_mismatches, examples, page_paths

PAGES = examples(page_paths())
IDS = [f"{one.code}:{one.block.line}" for one in PAGES]


@pytest.mark.parametrize("example", PAGES, ids=IDS)
def test_block(example: Example, tmp_path: Path) -> None:
    wrong = example_mismatches(example, tmp_path)
    assert not wrong, "\n".join(wrong)


def test_what_can_be_fixed_is_said_by_the_blocks_alone() -> None:
    from d9mlint.knowledge.pages import fixable

    texts = {path.name[:6]: path.read_text(encoding="utf-8") for path in page_paths()}
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


def test_rules_have_examples_of_both_kinds() -> None:
    for path in page_paths():
        code = path.name[:6]
        if code.startswith("DET00"):
            continue
        further = CASES / code / "examples.md"
        text = path.read_text(encoding="utf-8") + (
            further.read_text(encoding="utf-8") if further.exists() else ""
        )
        assert len(re.findall(r"# (?:todo-)?error: \[", text)) >= 3, f"{code}: at least 3 lines with findings"
        assert len(re.findall(r"# ok\b", text)) >= 3, f"{code}: at least 3 lines without"


def test_pages_are_short() -> None:
    for path in page_paths():
        here = [one for one in PAGES if one.path == path and one.before is None]
        hazards = sum("# error: [" in one.block.text for one in here)
        assert hazards <= 2, f"{path.name}: further examples belong in {CASES.name}/{path.name[:6]}"
        assert len(here) - hazards <= 2, (
            f"{path.name}: further examples belong in {CASES.name}/{path.name[:6]}"
        )
