"""Environments that are seeded, and others beside them that are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import lint

TWO = "import gymnasium as gym\nenv = gym.make('CartPole-v1')\ntrial = gym.make('CartPole-v1')\n"

NOT_REACHED = {
    "another variable": f"{TWO}s, _ = env.reset(seed=0)\nt, _ = trial.reset()\nprint(s, t)\n",
    "its own method": f"{TWO}env.seed(0)\ns = env.reset()\nt = trial.reset()\nprint(s, t)\n",
    "in a function": (
        "import gym\n\ndef trial():\n    env = gym.make('CartPole-v1')\n    return env.reset()\n\n"
        "env = gym.make('CartPole-v1')\nenv.seed(1)\nprint(env.reset(), trial())\n"
    ),
    "in another process": (
        "import gym\nimport multiprocessing as mp\n\ndef worker(rank):\n    env = gym.make('CartPole-v1')\n"
        "    env.seed(rank)\n    print(env.reset())\n\nif __name__ == '__main__':\n"
        "    mp.Process(target=worker, args=(1,)).start()\n    trial = gym.make('CartPole-v1')\n    print(trial.reset())\n"
    ),
}

REACHED = {
    "both": f"{TWO}for e in (env, trial):\n    e.reset(seed=0)\ns = trial.reset()\nprint(s)\n",
    "one function makes them": (
        "import gymnasium as gym\n\ndef make(seed):\n    env = gym.make('CartPole-v1')\n    env.reset(seed=seed)\n"
        "    return env\n\nenv, trial = make(0), make(1)\nprint(env.reset(), trial.reset())\n"
    ),
    "wrapped afterwards": (
        "import gymnasium as gym\nenv = gym.make('CartPole-v1')\nenv.reset(seed=0)\n"
        "env = gym.wrappers.RecordEpisodeStatistics(env)\nprint(env.reset())\n"
    ),
    "through the vector of both": (
        f"{TWO}both = gym.vector.SyncVectorEnv([lambda: env, lambda: trial])\nboth.reset(seed=3)\n"
        "print(env.reset(), trial.reset())\n"
    ),
    "in a list": (
        "import gymnasium as gym\nenvs = [gym.make('CartPole-v1') for _ in range(3)]\n"
        "for i, env in enumerate(envs):\n    env.reset(seed=i)\nprint([env.reset() for env in envs])\n"
    ),
}


def found(tmp_path: Path, text: str) -> list[int]:
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    found = [one.finding for one in lint(tmp_path, {}).items if one.finding.code == "DET111"]
    return [text.count("\n", 0, one.start) + 1 for one in found]


@pytest.mark.parametrize("case", NOT_REACHED)
def test_the_seed_of_one_environment_does_not_reach_another(tmp_path: Path, case: str) -> None:
    text = NOT_REACHED[case]
    (line,) = found(tmp_path, text)
    shown = text.splitlines()[line - 1]
    assert "trial" in shown or "return env.reset()" in shown


@pytest.mark.parametrize("case", REACHED)
def test_environments_that_are_all_seeded_are_silent(tmp_path: Path, case: str) -> None:
    assert found(tmp_path, REACHED[case]) == []


def test_the_remedy_of_a_wrapped_environment_passes_no_seed_to_reset(tmp_path: Path) -> None:
    text = (
        "from tf_agents.environments import suite_gym, tf_py_environment\n"
        "env = tf_py_environment.TFPyEnvironment(suite_gym.load('CartPole-v0'))\nprint(env.reset())\n"
    )
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    (one,) = [one.finding for one in lint(tmp_path, {}).items if one.finding.code == "DET111"]
    assert "before it is wrapped" in one.help
    assert one.fix is None


@pytest.mark.parametrize("same", [False, True])
def test_an_option_that_seeds_another_environment_is_no_way_out(tmp_path: Path, same: bool) -> None:
    again = "" if same else "    env = gym.make('CartPole-v1')\n"
    text = (
        "import argparse\nimport gymnasium as gym\n\nif __name__ == '__main__':\n"
        "    parser = argparse.ArgumentParser()\n    parser.add_argument('--sized', action='store_true')\n"
        "    env = gym.make('CartPole-v1')\n    if parser.parse_args().sized:\n        env.reset(seed=0)\n"
        f"{again}    print(env.reset())\n"
    )
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    (one,) = [one.finding for one in lint(tmp_path, {}).items if one.finding.code == "DET111"]
    assert ("unless `--sized` is given" in one.message) is same


SPACES = {
    "space.sample()": ("space.sample()", "call `space.seed(0)` once"),
    "env.spaces['a'].sample()": ("env.spaces[...].sample()", "pass `seed=0` where the space is made"),
    "env.space_of('a').sample()": ("env.space_of(...).sample()", "pass `seed=0` where the space is made"),
}


@pytest.mark.parametrize("sample", SPACES)
def test_a_space_that_the_program_makes_is_named_as_it_is_written(tmp_path: Path, sample: str) -> None:
    text = (
        "from gymnasium.spaces import Discrete\n\nclass Env:\n    spaces = {'a': Discrete(4)}\n\n"
        "    def space_of(self, agent):\n        return Discrete(4)\n\n"
        f"env, space = Env(), Discrete(4)\nprint({sample})\n"
    )
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    (one,) = [one.finding for one in lint(tmp_path, {}).items if one.finding.code == "DET111"]
    written, remedy = SPACES[sample]
    assert one.message.startswith(f"`{written}` draws")
    assert one.help == remedy
    (tmp_path / "train.py").write_text(text.replace("Discrete(4)", "Discrete(4, seed=0)"), encoding="utf-8")
    assert [one for one in lint(tmp_path, {}).items if one.finding.code == "DET111"] == []


EPISODES = {
    "once": ("    env = gym.make('CartPole-v1')\n    print(env.reset())\n\nplay()\n", True),
    "in a loop": (
        "    env = gym.make('CartPole-v1')\n    print(env.reset())\n\nfor _ in range(3):\n    play()\n",
        False,
    ),
    "by a pool": (
        "    env = gym.make('CartPole-v1')\n    print(env.reset())\n\n"
        "import multiprocessing\nmultiprocessing.Pool(2).map(play, range(3))\n",
        False,
    ),
}


@pytest.mark.parametrize("case", EPISODES)
def test_one_seed_is_not_given_to_every_episode(tmp_path: Path, case: str) -> None:
    text, fixed = EPISODES[case]
    (tmp_path / "train.py").write_text(
        f"import gymnasium as gym\n\ndef play(*args):\n{text}", encoding="utf-8"
    )
    (one,) = [one.finding for one in lint(tmp_path, {}).items if one.finding.code == "DET111"]
    assert (one.fix is not None) is fixed


AGENT = """\
class Agent:
    def __init__(self, env):
        self.env = env
        self.state = env.reset()

    def act(self, policy):
        action = policy(self.state)
        state, reward, {more}, info = self.env.step(action)
        self.state = state
        print(reward)
        return info
"""
LEARN = """\
import gym
from agent import Agent

def learn():
    env = gym.make("CartPole-v1")
    print(env.reset(), Agent(env).act(len))
"""


@pytest.mark.parametrize("more", ["done", "ended, cut"])
def test_how_environments_are_seeded_is_seen_where_steps_are_taken(tmp_path: Path, more: str) -> None:
    files = {"agent.py": AGENT.format(more=more), "learn.py": LEARN, "requirements.txt": "gym\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (one,) = [item.finding for item in lint(tmp_path, {}).items if item.finding.path.endswith("learn.py")]
    assert ("env.seed(0)" in one.help) == (more == "done")
