"""Of several programs that a finding is about, the first that is named trains."""

from __future__ import annotations

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
