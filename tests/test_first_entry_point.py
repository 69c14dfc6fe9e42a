"""Of several programs that a finding is about, the first that is named trains."""

from __future__ import annotations

import json
from pathlib import Path

from support import lint

AGENT = """
from ray.rllib.algorithms.ppo import PPO, PPOConfig


def agent():
    return PPO(PPOConfig().to_dict(), "CartPole-v1")
"""
PLAY = """
from agent import agent

algorithm = agent()
algorithm.restore("checkpoint")
print(algorithm.compute_single_action([0.0] * 4, explore=False))
"""
TRAIN = """
from agent import agent

algorithm = agent()
for _ in range(5):
    algorithm.train()
algorithm.save()
"""


def test_program_that_trains_is_named_first(tmp_path: Path) -> None:
    for name, text in {"agent": AGENT, "play": PLAY, "train": TRAIN}.items():
        (tmp_path / f"{name}.py").write_text(text)
    (found,) = (item.finding for item in lint(tmp_path, {"select": ["DET113"]}).items)
    assert found.message.endswith("(also when play.py runs)")


NET = """
import torch


def net():
    return torch.nn.Linear(4, 4)
"""
SAVES = """
import torch
from net import net

torch.save(net().state_dict(), "net.pt")
"""
NOTEBOOK = {
    "cells": [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": SAVES}],
    "metadata": {"language_info": {"name": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}


def test_help_names_all_programs_to_seed_and_scripts_first(tmp_path: Path) -> None:
    for name, text in {"net": NET, "second": SAVES, "third": SAVES}.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "first.ipynb").write_text(json.dumps(NOTEBOOK))
    (found,) = (item.finding for item in lint(tmp_path, {"select": ["DET101"]}).items)
    assert found.message.endswith("(entry point second.py) (also when third.py, first.ipynb run)")
    assert found.help.endswith("at the start of second.py, third.py and first.ipynb")
