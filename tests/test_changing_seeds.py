"""A seed that differs in every run, unless an option of the program gives another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from d9mlint.config.settings import load_settings
from d9mlint.pipeline import check

PROGRAM = """import argparse
import random
import time

import numpy as np
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
parser.add_argument("--trials", type=int, default=1)
args = parser.parse_args()


def drawn():
    return random.randint(1, 10000)


def seeded(seed):
    torch.manual_seed(seed)


{body}
print(torch.rand(2), np.random.rand())
"""


def _found(directory: Path, body: str) -> list[tuple[str, str, bool]]:
    (directory / "train.py").write_text(PROGRAM.format(body=body))
    overrides = {"cache": False, "jobs": 1, "select": ["DET107"]}
    result = check([str(directory)], load_settings(str(directory), overrides=overrides))
    return [(i.finding.severity.value, i.finding.help, "`--seed`" in i.finding.message) for i in result.items]


@pytest.mark.parametrize(
    "body",
    [
        "if args.seed is None:\n    args.seed = random.randint(1, 10000)\ntorch.manual_seed(args.seed)",
        "if not args.seed:\n    args.seed = drawn()\nseeded(args.seed)",
        "seed = args.seed\nif seed is None:\n    seed = int(time.time()) % 1000\ntorch.manual_seed(seed)",
        "seed = args.seed if args.seed is not None else random.randint(1, 9)\ntorch.manual_seed(seed)",
        "seed = args.seed or random.randint(1, 9)\ntorch.manual_seed(seed)",
        "if args.seed is not None:\n    seeded(args.seed)\nelse:\n    seeded(int(time.time()))",
        "if args.seed is None:\n    args.seed = drawn()\nrng = np.random.default_rng(args.seed)\nprint(rng.random())",
    ],
)
def test_an_option_that_is_not_given_is_named(tmp_path: Path, body: str) -> None:
    assert _found(tmp_path, body) == [("warning", "give `--seed` a fixed default", True)]


@pytest.mark.parametrize(
    "body",
    [
        "torch.manual_seed(random.randint(1, 10000))",
        "if args.trials == 1:\n    print('once')\nseeded(drawn())",
        "if args.seed is not None:\n    print(drawn())\nseeded(drawn())",
    ],
)
def test_a_seed_that_no_option_replaces_is_an_error(tmp_path: Path, body: str) -> None:
    assert [(severity, named) for severity, _, named in _found(tmp_path, body)] == [("error", False)]


def test_a_generator_that_only_an_option_seeds_is_drawn_from(tmp_path: Path) -> None:
    body = "if args.seed is not None:\n    random.seed(args.seed)\ntorch.manual_seed(drawn())"
    assert _found(tmp_path, body) == [("warning", "give `--seed` a default value", True)]


def test_an_option_that_lets_a_seed_be_set_is_no_seed(tmp_path: Path) -> None:
    body = "if args.trials > 1:\n    torch.manual_seed(int(time.time()))"
    ((severity, help, named),) = _found(tmp_path, body)
    assert (severity, help.partition(",")[0], named) == ("warning", "use a fixed number", False)


ROUNDS = "seed with a fixed number once, before the rounds, or with one that is different in each of them"
ONCE = "use a fixed number, or make the seed an option and log it"
SHUFFLED = "def shuffled():\n    np.random.seed({seed})\n    return np.random.permutation(9)\n\n\n"
EPOCHS = "for epoch in range(args.trials):\n    "


@pytest.mark.parametrize(
    ("body", "help", "fixed"),
    [
        (f"{EPOCHS}np.random.seed(int(time.time()))\n    print(np.random.rand())", ROUNDS, False),
        (SHUFFLED.format(seed="int(time.time())") + f"{EPOCHS}print(shuffled())", ROUNDS, False),
        (
            SHUFFLED.format(seed="int(time.time())") + f"print(shuffled())\n{EPOCHS}print(shuffled())",
            ROUNDS,
            False,
        ),
        (SHUFFLED.format(seed="") + f"{EPOCHS}print(shuffled())", ROUNDS, False),
        (SHUFFLED.format(seed="int(time.time())") + "print(shuffled())", ONCE, True),
        (f"seed = int(time.time())\n{EPOCHS}np.random.seed(seed)\n    print(np.random.rand())", ONCE, True),
        (SHUFFLED.format(seed="") + "print(shuffled())", "pass a fixed number", True),
    ],
)
def test_one_number_is_no_seed_for_each_round(tmp_path: Path, body: str, help: str, fixed: bool) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.format(body=body))
    overrides = {"cache": False, "jobs": 1, "select": ["DET107"]}
    result = check([str(tmp_path)], load_settings(str(tmp_path), overrides=overrides))
    assert [(i.finding.help, i.finding.fix is not None) for i in result.items] == [(help, fixed)]


@pytest.mark.parametrize("seed", ["0", "epoch"])
def test_a_seed_that_no_run_changes_is_no_finding(tmp_path: Path, seed: str) -> None:
    assert _found(tmp_path, f"{EPOCHS}np.random.seed({seed})\n    print(np.random.rand())") == []


@pytest.mark.parametrize(
    ("default", "body", "condition"),
    [
        (
            1,
            "if args.seed == -1:\n    args.seed = random.randint(1, 9)\ntorch.manual_seed(args.seed)",
            "for some values of",
        ),
        (
            1,
            "if args.seed < 0:\n    args.seed = int(time.time())\ntorch.manual_seed(args.seed)",
            "for some values of",
        ),
        (
            1,
            "if args.seed == 0:\n    torch.seed()\nelse:\n    torch.manual_seed(args.seed)",
            "for some values of",
        ),
        (1, "if args.trials > 1:\n    args.seed = drawn()\nseeded(args.seed)", "when `--trials` is given"),
        (
            None,
            "if args.seed is None:\n    args.seed = torch.seed() % 9\nseeded(args.seed)",
            "unless `--seed` is given",
        ),
    ],
)
def test_a_seed_that_changes_where_an_option_is_given_is_a_warning(
    tmp_path: Path, default: int | None, body: str, condition: str
) -> None:
    program = PROGRAM.format(body=body).replace("type=int)", f"type=int, default={default})")
    (tmp_path / "train.py").write_text(program)
    overrides = {"cache": False, "jobs": 1, "select": ["DET107"]}
    result = check([str(tmp_path)], load_settings(str(tmp_path), overrides=overrides))
    assert [i.finding.severity.value for i in result.items] == ["warning"]
    assert condition in result.items[0].finding.message
