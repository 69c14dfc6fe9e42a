"""What a finding says that is there only if an option has another value than its default."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import argparse
import os

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="plain")
args = parser.parse_args()


def data():
    return torch.stack([torch.load(n) for n in os.listdir("d")])


if args.model == "other":
    torch.save(data(), "x.pt")
if args.model == "plain":
    torch.save(torch.stack([torch.load(n) for n in os.listdir("e")]), "x.pt")
"""


def test_another_option_than_the_default(
    run: Callable[..., Any], project: Callable[[dict[str, str]], Path]
) -> None:
    root = project({"train.py": PROGRAM})
    found = json.loads(run("--output-format=json", cwd=root).out)
    assert [(one["code"], one["confidence"]) for one in found] == [("DET209", "medium"), ("DET209", "high")]
    notes = [[step["message"] for step in one["flow"]] for one in found]
    assert notes[0][-1] == "only if `--model` has another value than its default"
    assert all("--model" not in note for note in notes[1])


def test_a_function_that_runs_by_default_too(
    run: Callable[..., Any], project: Callable[[dict[str, str]], Path]
) -> None:
    root = project({"train.py": PROGRAM + 'torch.save(data(), "y.pt")\n'})
    found = json.loads(run("--output-format=json", cwd=root).out)
    assert [one["confidence"] for one in found] == ["high", "high"]


MEDIUM = """
import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--test", action="store_true")
args = parser.parse_args()


def train(size):
    torch.use_deterministic_algorithms(True)
    model = nn.LSTM(size, 8).cuda()
    model(torch.randn(2, 3, size).cuda())[0].sum().backward()
    torch.save(model.state_dict(), "model.pt")


torch.manual_seed(0)
if args.test:
    train(4)
else:
    train(8)
"""


def test_what_needs_no_option_is_kept_of_two_that_are_equally_sure(
    run: Callable[..., Any], project: Callable[[dict[str, str]], Path]
) -> None:
    root = project({"train.py": MEDIUM})
    found = json.loads(run("--output-format=json", "--select=DET405", cwd=root).out)
    assert [(one["code"], one["confidence"]) for one in found] == [("DET405", "medium")]
    assert all("--test" not in step["message"] for step in found[0]["flow"])

    only = project({"train.py": MEDIUM.replace("    train(8)\n", "    print(8)\n")})
    found = json.loads(run("--output-format=json", "--select=DET405", cwd=only).out)
    assert "when `--test` is given" in found[0]["message"]


OPTIONS = """
import argparse

import numpy as np
import tensorflow as tf
import torch
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder

parser = argparse.ArgumentParser()
parser.add_argument("--loader", default="other", choices=["other", "torch"])
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()


def load(seed):
    if seed != 0:
        torch.manual_seed(seed)
    crop = transforms.Compose([transforms.RandomCrop(4), transforms.ToTensor()])
    return DataLoader(ImageFolder("d", transform=crop), batch_size=4, shuffle=True)


if args.seed != 0:
    np.random.seed(args.seed)
    tf.random.set_seed(args.seed)
if args.loader == "torch":
    loader = load(args.seed)
elif args.loader == "other":
    loader = []
for x, y in loader:
    print(x)
train, test = train_test_split(np.arange(10))
print(train)
for row in tf.data.Dataset.range(10).shuffle(10):
    print(row)
"""


def test_the_option_that_seeds_is_named(
    run: Callable[..., Any], project: Callable[[dict[str, str]], Path]
) -> None:
    root = project({"train.py": OPTIONS})
    said = {}
    # What shuffles is not reported beside the missing seed that is its cause.
    for select in ("DET101,DET109,DET207", "DET202"):
        found = json.loads(run("--output-format=json", f"--select={select}", cwd=root).out)
        said |= {one["code"]: one["message"] for one in found}
    assert said.keys() == {"DET101", "DET109", "DET202", "DET207"}
    # The seed stands in a branch that another option leads to.
    assert said.pop("DET101").endswith("unless `--loader` and `--seed` are given")
    assert all("`--seed` is given" in text and "`--loader`" not in text for text in said.values())


SEVERAL = """
import argparse
import os

import torch


def keep(count, extra):
    if extra > 0:
        torch.save([torch.load(n) for n in os.listdir("d")], f"{count}.pt")


parser = argparse.ArgumentParser()
parser.add_argument("--model", default="plain")
parser.add_argument("--extra", default=0, type=int)
args = parser.parse_args()
if args.model == "other":
    keep(2, args.extra)
"""


def test_all_options_of_a_way_are_named(
    run: Callable[..., Any], project: Callable[[dict[str, str]], Path]
) -> None:
    root = project({"train.py": SEVERAL})
    found = json.loads(run("--output-format=json", cwd=root).out)
    notes = [[step["message"] for step in one["flow"]] for one in found]
    assert [one[-1] for one in notes] == [
        "only if `--model` and `--extra` have other values than their defaults"
    ]


def test_the_way_with_the_fewest_options_is_shown(
    run: Callable[..., Any], project: Callable[[dict[str, str]], Path]
) -> None:
    root = project({"train.py": SEVERAL + "keep(1, args.extra)\n"})
    found = json.loads(run("--output-format=json", cwd=root).out)
    notes = [[step["message"] for step in one["flow"]] for one in found]
    assert [one[-1] for one in notes] == ["only if `--extra` has another value than its default"]


SETTING = """
import argparse
import os
from dataclasses import dataclass

import torch
import yaml
from transformers import HfArgumentParser


@dataclass
class Config:
    test: bool = True


parser = argparse.ArgumentParser()
parser.add_argument("--test", action="store_true")
with open("config.yaml") as file:
    params = yaml.safe_load(file)["params"]
torch.manual_seed(0)
model = torch.nn.LSTM(8, 8)
decided = DECIDED
if decided:
    model.cuda()
    model(torch.randn(2, 3, 8).cuda())[0].sum().backward()
    torch.optim.SGD(model.parameters(), 0.1).step()
torch.save(model.state_dict(), "model.pt")
"""


@pytest.mark.parametrize(
    ("decided", "words"),
    [
        ("parser.parse_args().test", "when `--test` is given"),
        (
            "not HfArgumentParser(Config).parse_args_into_dataclasses()[0].test",
            "when `test` is set to another value",
        ),
        ("not params['test']", "when `params.test` is set to another value"),
        ("os.environ.get('TEST')", "when `$TEST` is set"),
    ],
)
def test_what_decides_is_named_as_what_it_is(
    decided: str, words: str, run: Callable[..., Any], project: Callable[[dict[str, str]], Path]
) -> None:
    root = project({"train.py": SETTING.replace("DECIDED", decided), "config.yaml": "params:\n  test: 1\n"})
    found = json.loads(run("--output-format=json", "--select=DET302", cwd=root).out)
    assert [one["message"].partition("(True)` ")[2] for one in found] == [words]


WORKERS = """
import argparse
import random

import numpy as np
import torch
import yaml
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--noise", type=float, default=0.0)
parser.add_argument("--augment", action="store_true")
args = parser.parse_args()
with open("config.yaml") as file:
    conf = yaml.safe_load(file)
torch.manual_seed(0)
random.seed(0)
np.random.seed(0)


class Rows(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        row = torch.ones(3) * index
        CODE
        return row


for batch in DataLoader(Rows(), num_workers=2):
    print(batch)
"""


@pytest.mark.parametrize(
    ("code", "severity", "drawn"),
    [
        ("row *= np.random.rand()", "error", "`np.random`, and before"),
        (
            "row *= np.random.rand() if args.augment else 1",
            "warning",
            "`np.random` when `--augment` is given",
        ),
        (
            "row *= np.random.rand() if conf['mode'] == 'train' else 1",
            "warning",
            "`np.random` when `mode` is set to another value",
        ),
        (
            "row *= np.random.rand() if random.random() < args.noise else 1",
            "warning",
            "`np.random` when `--noise` is given",
        ),
        ("row *= np.random.rand() if random.random() < 0.5 else 1", "error", "`np.random`, and before"),
        (
            "row *= np.random.rand() * (random.random() if args.augment else 1)",
            "error",
            "`np.random`, and before",
        ),
    ],
)
def test_what_workers_draw_behind_an_option_is_not_always_drawn(
    code: str,
    severity: str,
    drawn: str,
    run: Callable[..., Any],
    project: Callable[[dict[str, str]], Path],
) -> None:
    files = {
        "train.py": WORKERS.replace("CODE", code),
        "config.yaml": "mode: eval\n",
        "requirements.txt": "torch==1.8.1\n",
    }
    found = json.loads(run("--output-format=json", "--select=DET201", cwd=project(files)).out)
    assert [one["severity"] for one in found] == [severity]
    assert f"its dataset draws from {drawn}" in found[0]["message"]


TWO = """
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--name")
parser.add_argument("--folder")
parser.add_argument("--all", action="store_true")
args = parser.parse_args()


class Runs:
    def __init__(self, name):
        self.name = name

    def train(self):
        model = torch.nn.LSTM(8, 8).cuda()
        model(torch.randn(2, 3, 8).cuda())[0].sum().backward()
        torch.optim.SGD(model.parameters(), 0.1).step()
        torch.save(model.state_dict(), self.name)


torch.manual_seed(0)
CODE
"""


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("if args.all or args.name:\n    Runs('a').train()", "when `--all` or `--name` is given"),
        (
            "runs = None\nif args.name:\n    runs = Runs(args.name)\nelif args.folder:\n    runs = Runs(args.folder)\n"
            "if runs is not None:\n    runs.train()",
            "when `--folder` or `--name` is given",
        ),
        (
            "runs = None\nif args.name:\n    runs = Runs(args.name)\nif args.folder:\n    runs = Runs(args.folder)\n"
            "if runs is not None:\n    runs.train()",
            "when `--name` or `--folder` is given",
        ),
        (
            "wanted = args.all\nif args.name:\n    wanted = True\nif wanted:\n    Runs('a').train()",
            "when `--all` or `--name` is given",
        ),
        (
            "wanted = args.all\nif args.name:\n    wanted = False\nif wanted:\n    Runs('a').train()",
            "when `--all` is given",
        ),
        (
            "runs = Runs(args.name) if args.name else None\nif runs:\n    runs.train()",
            "when `--name` is given",
        ),
    ],
)
def test_each_option_is_named_that_leads_there(
    code: str, words: str, run: Callable[..., Any], project: Callable[[dict[str, str]], Path]
) -> None:
    root = project({"train.py": TWO.replace("CODE", code)})
    found = json.loads(run("--output-format=json", "--select=DET302", cwd=root).out)
    assert [one["message"].partition("(True)` ")[2] for one in found] == [words]


RANKS = """
import argparse

import torch
from torch import nn, multiprocessing


def work(rank, path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(288, 2)).cuda(rank)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    start = 0
    if path:
        state = torch.load(path)
        start = state["epoch"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    for epoch in range(start, 10):
        model(torch.randn(4, 3, 8, 8).cuda(rank)).sum().backward()
        optimizer.step()
        state = {"epoch": epoch + 1, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state, "c.pt")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", default="")
    parser.add_argument("--spread", action="store_true")
    args = parser.parse_args()
    MODE
    if args.spread:
        multiprocessing.spawn(work, (args.resume,), 2)
    else:
        work(0, args.resume)
"""


@pytest.mark.parametrize(
    ("mode", "needing_an_option"),
    [("", []), ("torch.use_deterministic_algorithms(True)", ["DET302"])],
)
def test_started_processes_are_one_way_to_what_the_program_does_itself(
    mode: str,
    needing_an_option: list[str],
    run: Callable[..., Any],
    project: Callable[[dict[str, str]], Path],
) -> None:
    root = project({"train.py": RANKS.replace("MODE", mode)})
    found = json.loads(run("--output-format=json", "--select=DET302,DET601", cwd=root).out)
    assert [one["code"] for one in found] == ["DET302", "DET601"]
    noted = [one["code"] for one in found if any("only if" in step["message"] for step in one["flow"])]
    assert noted == needing_an_option
    assert "at the start of `work()`, which runs in new processes" in found[0]["help"]


def test_what_is_saved_by_default_is_shown(
    run: Callable[..., Any], project: Callable[[dict[str, str]], Path]
) -> None:
    saving = '        torch.save(state, "c.pt")\n'
    more = '        if best:\n            torch.save(state, "best.pt")\n'
    code = (
        RANKS.replace("MODE", "")
        .replace("path):", "path, best):")
        .replace("args.resume", "args.resume, False")
    )
    code = code.replace("work(0, args.resume, False", "work(0, args.resume, args.spread").replace(
        saving, more + saving
    )
    root = project({"train.py": code})
    found = json.loads(run("--output-format=json", "--select=DET601", cwd=root).out)
    assert [one["location"]["row"] for one in found] == [code[: code.index(saving)].count("\n") + 1]
    assert not any("only if" in step["message"] for step in found[0]["flow"])


DRAWN = """
import argparse

import torch


def layer(size):
    return torch.nn.Conv2d(3, size, 3)


parser = argparse.ArgumentParser()
parser.add_argument("--mode")
parser.add_argument("--wide", default=0, type=int)
args = parser.parse_args()
if args.mode == "train":
    if args.wide > 2:
        torch.save(layer(4), "wide.pt")
    torch.save(layer(5), "x.pt")
"""


def test_a_draw_is_shown_on_the_way_that_needs_the_fewest_options(
    run: Callable[..., Any], project: Callable[[dict[str, str]], Path]
) -> None:
    root = project({"train.py": DRAWN})
    found = json.loads(run("--output-format=json", "--select=DET101", cwd=root).out)
    assert [one["message"].partition(" without ")[2] for one in found] == [
        "a torch seed when `--mode` is given"
    ]
    assert [step["message"] for step in found[0]["flow"]] == ["layer() is called here"]


SEEDED_IF_GIVEN = """
import argparse
import random

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--algo", default="plain")
parser.add_argument("--seed", default=None, type=int)
args = parser.parse_args()
if args.seed is not None:
    SEED
if args.algo == "mix":
    np.save("a.npy", np.random.rand(3))
"""


@pytest.mark.parametrize(
    ("seed", "words", "help"),
    [
        (
            "np.random.seed(args.seed)",
            "when `--algo` is given, unless `--seed` is given",
            "give `--seed` a default value",
        ),
        (
            "random.seed(args.seed)",
            "when `--algo` is given: `--seed` does not seed it",
            "give `--seed` a number as its default value, and call `numpy.random.seed(args.seed)` after the options are "
            "parsed",
        ),
    ],
)
def test_a_seed_that_an_option_sets_reaches_draws_behind_options(
    seed: str, words: str, help: str, run: Callable[..., Any], project: Callable[[dict[str, str]], Path]
) -> None:
    root = project({"train.py": SEEDED_IF_GIVEN.replace("SEED", seed)})
    found = json.loads(run("--output-format=json", "--select=DET102", cwd=root).out)
    assert [one["message"].partition(" without a NumPy seed ")[2] for one in found] == [words]
    assert found[0]["help"] == help


ASKED = """
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--one", action="store_true")
parser.add_argument("--two", action="store_true")
args = parser.parse_args()
mode = "first" if args.one else "second" if args.two else "none"
if {test}:
    torch.manual_seed(0)
print(torch.rand(1))
"""


@pytest.mark.parametrize(
    ("test", "unless"),
    [
        ("all([args.one, args.two])", "`--one` and `--two` are given"),
        ("any((args.one, args.two))", "`--one` or `--two` is given"),
        ("not (not args.one or not all({args.two}))", "`--one` and `--two` are given"),
        ("mode != 'none'", "`--one` or `--two` is given"),
    ],
)
def test_all_options_of_a_test_are_named(
    run: Callable[..., Any], project: Callable[[dict[str, str]], Path], test: str, unless: str
) -> None:
    root = project({"train.py": ASKED.format(test=test)})
    (found,) = json.loads(run("--output-format=json", "--select=DET101", cwd=root).out)
    assert found["message"].endswith(f"unless {unless}")


IN_PROCESSES = """
import argparse
from concurrent.futures import ProcessPoolExecutor

from tensorflow import keras

keras.utils.set_random_seed(42)


def work(number):
    return float(keras.layers.Dense(1)(keras.ops.ones((1, 3)))[0, 0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--multiple", action="store_true")
    if parser.parse_args().multiple:
        with ProcessPoolExecutor() as pool:
            print(list(pool.map(work, range(4))))
"""


def test_a_draw_of_new_processes_is_not_said_to_lack_the_seed_of_the_program(
    run: Callable[..., Any], project: Callable[[dict[str, str]], Path]
) -> None:
    root = project({"train.py": IN_PROCESSES})
    found = json.loads(run("--output-format=json", "--select=DET104", cwd=root).out)
    assert [one["message"].partition(" draws ")[2] for one in found] == [
        "random numbers in a new process, in which Keras is not seeded, when `--multiple` is given"
    ]
