"""What a finding says that is there only if an option has another value than its default."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
