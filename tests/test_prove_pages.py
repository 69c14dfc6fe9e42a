"""A sample of the rules' examples is run: what is marked as a hazard differs between processes, the rest does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from breadth.prove_pages import SERVERS, example_blocks, is_hazard, run, verdict, with_releases
from support import CASES, RULES, Block

FILES = [
    *((code, path) for code in ("DET210", "DET213") for path in RULES.glob(f"{code}-*.md")),
    ("DET209", CASES / "DET209" / "examples.md"),
]
SAMPLE = [(code, block) for code, path in FILES for block in example_blocks(path)]


@pytest.fixture(scope="module", autouse=True)
def servers() -> Iterator[None]:
    yield
    SERVERS.stop()


@pytest.mark.parametrize(("code", "block"), SAMPLE, ids=[f"{code}:{block.line}" for code, block in SAMPLE])
def test_example(code: str, block: Block, tmp_path: Path) -> None:
    said = verdict(code, block, run(block, code, tmp_path, runs=3))
    if said.startswith("needs: module"):
        pytest.skip(said)
    assert said == ("shown" if is_hazard(block) else "equal")


def test_the_sample_has_both_kinds() -> None:
    assert sum(is_hazard(block) for _, block in SAMPLE) > 3
    assert sum(not is_hazard(block) for _, block in SAMPLE) > 3


def test_a_wrong_example_is_told(tmp_path: Path) -> None:
    """A program without a finding whose result differs, and a hazard that does not differ."""
    differs = Block("python", (), "import random\nprint(random.random())  # ok\n", 1, ())
    same = Block("python", (), "print(sorted({'a', 'b'}))  # error: [DET210]\n", 1, ())
    assert verdict("DET103", differs, run(differs, "DET103", tmp_path / "a")) == "WRONG"
    assert verdict("DET210", same, run(same, "DET210", tmp_path / "b")) == "not shown"


def test_what_an_advice_is_about_may_differ(tmp_path: Path) -> None:
    """It holds under a condition, which the processes may bring about; another line of the block changes nothing."""
    text = "import random\nprint(random.random())  # advice: [DET103]\nprint(1)  # ok\n"
    differs = Block("python", (), text, 1, ())
    assert verdict("DET103", differs, run(differs, "DET103", tmp_path)) == "shown"


RESUMES = """
import os
import torch

torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
start = 0
if os.path.exists("last.pt"):
    state = torch.load("last.pt")
    model.load_state_dict(state["model"])
    {load}
    start = state["epoch"] + 1
for epoch in range(start, 4):
    optimizer.zero_grad()
    model(torch.ones(1, 2)).square().sum().backward()
    optimizer.step()
    torch.save({{"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}}, "last.pt")
"""


@pytest.mark.parametrize(
    ("load", "expected"), [('optimizer.load_state_dict(state["optimizer"])', "equal"), ("pass", "differs")]
)
@pytest.mark.full
def test_a_program_that_resumes_is_interrupted(load: str, expected: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    block = Block("python", (), RESUMES.format(load=load), 1, ())
    assert run(block, "DET601", tmp_path).verdict == expected


def test_what_a_program_lacks_is_told(tmp_path: Path) -> None:
    """A file that is made for it has another content; a fixed program is for the releases of the one before it."""
    text = 'import json\nwith open("c.json") as file:\n    print(json.load(file)["size"])\n'
    reads = Block("python", (), text, 1, ())
    assert verdict("DET103", reads, run(reads, "DET103", tmp_path)) == "needs: the content of c.json"
    old = Block("python", ("tensorflow=1.15",), "", 1, ())
    assert [one.info for one in with_releases([old, Block("python", ("fixed",), "", 2, ())])] == [
        ("tensorflow=1.15",),
        ("fixed", "tensorflow=1.15"),
    ]
