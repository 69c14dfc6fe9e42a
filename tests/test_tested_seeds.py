"""Seeds that a program sets only if they are true, so that 0 counts as no seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from d9mlint.config.settings import load_settings
from d9mlint.pipeline import check

PROGRAM = """import argparse
import torch


def set_seed(number, other=None):
    torch.manual_seed(number)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default={default})
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()
seed = args.seed
if {test}:
    {call}
print(torch.rand(3))
"""
TAKES = "takes the seed 0 for none"


def _help(directory: Path, default: str, test: str, call: str) -> list[str]:
    (directory / "train.py").write_text(PROGRAM.format(default=default, test=test, call=call))
    overrides = {"cache": False, "jobs": 1, "select": ["DET101"]}
    result = check([str(directory)], load_settings(str(directory), overrides=overrides))
    return [one.finding.help for one in result.items]


@pytest.mark.parametrize(
    ("test", "call"),
    [
        ("args.seed", "torch.manual_seed(args.seed)"),
        ("seed", "torch.manual_seed(seed)"),
        ("args.seed", "set_seed(args.seed)"),
        ("args.seed", "torch.manual_seed(int(args.seed))"),
    ],
)
def test_the_test_is_named(tmp_path: Path, test: str, call: str) -> None:
    for default in ("None", "0"):
        (found,) = _help(tmp_path, default, test, call)
        assert found.startswith(f"test `{test} is not None`, as `if {test}` {TAKES}")


def test_other_tests_are_not(tmp_path: Path) -> None:
    for test in ("args.seed is not None", "args.fixed"):
        (found,) = _help(tmp_path, "None", test, "torch.manual_seed(args.seed)")
        assert TAKES not in found
    assert _help(tmp_path, "1", "args.seed", "torch.manual_seed(args.seed)") == []
