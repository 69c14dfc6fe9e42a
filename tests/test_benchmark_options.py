"""The option that decides whether a program sets cuDNN's benchmark mode, in what is reported."""

from __future__ import annotations

from pathlib import Path

from d9mlint.config.settings import load_settings
from d9mlint.pipeline import check

PROGRAM = """import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--all", action="store_true")
args = parser.parse_args()


def one():
    torch.backends.cudnn.benchmark = True
    net = torch.nn.Conv2d(3, 3, 3).cuda()
    net(torch.ones(1, 3, 9, 9).cuda()).sum().backward()


def every():
    print("all")
    {every}


if {test}:
    every()
else:
    one()
"""


def _found(directory: Path, every: str, test: str) -> list[str]:
    (directory / "train.py").write_text(PROGRAM.format(every=every, test=test))
    overrides = {"cache": False, "jobs": 1, "select": ["DET301"]}
    result = check([str(directory)], load_settings(str(directory), overrides=overrides))
    return [i.finding.message.partition(":")[0] for i in result.items]


def test_an_option_both_of_whose_branches_set_it_is_not_named(tmp_path: Path) -> None:
    for test in ("args.all", "not args.all"):
        assert _found(tmp_path, "one()", test) == ["`cudnn.benchmark = True`"]


def test_an_option_that_decides_is_named(tmp_path: Path) -> None:
    assert _found(tmp_path, "pass", "args.all") == [
        "`cudnn.benchmark = True` (unless `--all` says otherwise)"
    ]
    assert _found(tmp_path, "pass", "not args.all") == ["`cudnn.benchmark = True` when `--all` is given"]


def test_whether_there_is_a_gpu_is_no_option(tmp_path: Path) -> None:
    (tmp_path / "benchmark.py").write_text(
        "import torch\n\ntorch.backends.cudnn.benchmark = torch.cuda.is_available()\n"
    )
    (tmp_path / "seeds.py").write_text(
        "import torch\n\nseed = None if torch.cuda.is_available() else 1\n"
        "if seed is not None:\n    torch.manual_seed(seed)\nprint(torch.randn(3))\n"
    )
    overrides = {"cache": False, "jobs": 1, "select": ["DET101", "DET301"]}
    result = check([str(tmp_path)], load_settings(str(tmp_path), overrides=overrides))
    assert [i.finding.message for i in result.items] == [
        "`cudnn.benchmark = True`: autotuning may select different algorithms in each run",
        "`torch.randn` draws random numbers before torch is seeded, unless there is no GPU",
    ]
