"""Seeds that a program sets only if they are true, so that 0 counts as no seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from d9mlint.base.findings import Finding
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


def _found(directory: Path, default: str, test: str, call: str) -> list[Finding]:
    (directory / "train.py").write_text(PROGRAM.format(default=default, test=test, call=call))
    overrides = {"cache": False, "jobs": 1, "select": ["DET101"]}
    result = check([str(directory)], load_settings(str(directory), overrides=overrides))
    return [one.finding for one in result.items]


def _help(directory: Path, default: str, test: str, call: str) -> list[str]:
    return [one.help for one in _found(directory, default, test, call)]


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


@pytest.mark.parametrize(
    ("default", "test"),
    [
        ("0", "args.seed"),
        ("0", "seed"),
        ("0", "args.seed > 0"),
        ("0", "args.seed != 0"),
        ("-1", "args.seed >= 0"),
        ("-1", "not args.seed < 0"),
    ],
)
def test_a_default_that_seeds_nothing_is_named(tmp_path: Path, default: str, test: str) -> None:
    name = "seed" if test == "seed" else "args.seed"
    (found,) = _found(tmp_path, default, test, f"set_seed(int({name}))")
    end = f", unless `--seed` is given a value other than its default {default}, which seeds nothing"
    assert found.message.endswith(end)
    if test == name:
        assert found.help == f"test `{name} is not None`, as `if {name}` {TAKES}"
    else:
        assert found.help == "give `--seed` a default value that is taken for a seed"


def test_a_default_that_seeds_is_not(tmp_path: Path) -> None:
    assert _found(tmp_path, "0", "args.seed is not None", "torch.manual_seed(args.seed)") == []
    for default in ("0", "None"):
        for test, call in (("args.fixed", "torch.manual_seed(0)"), ("args.seed", "set_seed(args.seed)")):
            (found,) = _found(tmp_path, default, test, call)
            assert ("which seeds nothing" in found.message) is (default == "0" and test == "args.seed")


def test_an_option_without_which_another_one_seeds_needs_no_default(tmp_path: Path) -> None:
    (found,) = _found(tmp_path, "7", "args.fixed", "torch.manual_seed(args.seed)")
    assert found.message.endswith(", unless `--fixed` is given")
    assert found.help == "call `torch.manual_seed(args.seed)` after the options are parsed"
    (found,) = _found(tmp_path, "None", "args.seed is not None or args.fixed", "torch.manual_seed(args.seed)")
    assert found.help == "give `--seed` or `--fixed` a default value"


def test_a_configuration_that_switches_the_seed_off(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "c.yaml").write_text("deterministic: false\nseed: 42\n")
    (tmp_path / "train.py").write_text(
        "import hydra\nimport torch\n\n\n@hydra.main(config_path='conf', config_name='c')\ndef main(cfg):\n"
        "    if cfg.deterministic:\n        torch.manual_seed(cfg.seed)\n    print(torch.rand(3))\n\n\n"
        "if __name__ == '__main__':\n    main()\n"
    )
    result = check([str(tmp_path)], load_settings(str(tmp_path), overrides={"cache": False, "jobs": 1}))
    (found,) = [one.finding for one in result.items if one.finding.code == "DET101"]
    assert found.message.endswith(", unless `deterministic` is set to another value")
    assert found.help == "call `torch.manual_seed(seed)` at the start of train.py"
