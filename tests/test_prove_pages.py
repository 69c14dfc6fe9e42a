"""A sample of the rule pages' examples is run: what is marked as a hazard differs between processes, the rest does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from breadth.prove_pages import examples, is_hazard, run
from support import RULES, Block

SAMPLE = [
    (code, block)
    for code in ("DET103", "DET210")
    for path in RULES.glob(f"{code}-*.md")
    for block in examples(code, path)
]


@pytest.mark.parametrize(("code", "block"), SAMPLE, ids=[f"{code}:{block.line}" for code, block in SAMPLE])
def test_example(code: str, block: Block, tmp_path: Path) -> None:
    outcome = run(block, tmp_path, runs=3)
    if outcome.verdict == "not run":
        pytest.skip(outcome.reason)
    assert outcome.verdict == ("differs" if is_hazard(block) else "equal")


def test_sample_is_run() -> None:
    assert any(is_hazard(block) for _, block in SAMPLE)
    assert any(not is_hazard(block) for _, block in SAMPLE)
