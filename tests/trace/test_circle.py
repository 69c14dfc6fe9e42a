"""From a finding to a proof: the linter finds, ``--fix`` repairs, ``trace`` proves; and what only ``trace`` finds
becomes a fact with which the linter finds it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import needs, until_it_strikes

from tests.trace.test_fact_for_linter import codes

pytestmark = [needs("torch"), pytest.mark.full]

PROGRAM = """\
import os
import pathlib
import torch

torch.manual_seed(0)
os.makedirs("data", exist_ok=True)
for number in range(5):
    pathlib.Path(f"data/{number}.txt").write_text(str(number))
model = torch.nn.Linear(1, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for name in os.listdir("data"):
    value = float(pathlib.Path("data", name).read_text())
    loss = model(torch.tensor([value])).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LIBRARY = """\
import torch

def pool(values, index):
    return torch.zeros(1000).index_put((index,), values, accumulate=True)
"""
SILENT = """\
import torch
import fastscatter

torch.manual_seed(0)
torch.set_num_threads(2)
weight = torch.nn.Parameter(torch.ones(1))
opt = torch.optim.SGD([weight], lr=0.1)
index = torch.randint(0, 1000, (1 << 22,))
values = torch.randn(1 << 22)
for step in range(2):
    pooled = fastscatter.pool(values, index)
    loss = (weight * pooled).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def d9mlint(directory: Path, *arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "d9mlint", *arguments],
        cwd=directory,
        env={**os.environ, "OMP_NUM_THREADS": "2", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=900,
    )


def traced(directory: Path, path: str = "") -> dict[str, Any]:
    report = directory / "report.json"
    done = d9mlint(directory, "trace", "--output-format", "json", "-o", str(report), "train.py", path=path)
    assert report.exists(), done.stderr
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def test_what_the_linter_finds_is_repaired_and_proven(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    before = traced(tmp_path)
    assert (before["outcome"], before["difference"]["verdict"]) == ("diverged", "input")
    assert (before["finding"]["code"], before["finding"]["row"]) == ("DET209", 11)
    found = json.loads(d9mlint(tmp_path, "--output-format=json", "train.py").stdout)
    assert [(one["code"], one["location"]["row"]) for one in found] == [("DET209", 11)]
    d9mlint(tmp_path, "--fix", "train.py")
    assert json.loads(d9mlint(tmp_path, "--output-format=json", "train.py").stdout) == []
    after = traced(tmp_path)
    assert after["outcome"] == "equal", after["difference"]


def test_what_only_a_trace_finds_becomes_a_fact_of_the_linter(tmp_path: Path) -> None:
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "fastscatter.py").write_text(LIBRARY)
    directory = tmp_path / "project"
    directory.mkdir()
    program = directory / "train.py"
    program.write_text(SILENT)
    report = until_it_strikes(lambda: traced(directory, str(library)), "op")
    assert report["difference"]["verdict"] == "op" and report["finding"] is None
    assert report["difference"]["place"][0]["row"] == 11
    assert "apis: [fastscatter.pool]" in report["fact"]
    assert codes(program, "") == []
    assert codes(program, report["fact"]) == ["DET407"]
