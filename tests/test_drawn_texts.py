"""How a finding names what draws, where the call has no name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROGRAM = """
import torch
from torchvision.models import ResNet
from torchvision.models.resnet import BasicBlock


class Small(ResNet):
    def __init__(self):
        super().__init__(block=BasicBlock, layers=[1, 1, 1, 1])


{made}
"""


def test_the_base_class_of_several(
    run: Callable[..., Any], project: Callable[[dict[str, str]], Path]
) -> None:
    made = 'torch.save(Small().state_dict(), "small.pt")'
    root = project({"train.py": PROGRAM.format(made=made)})
    found = json.loads(run("--output-format=json", "--select=DET101", cwd=root).out)
    assert [one["message"].partition(" before ")[0] for one in found] == [
        "`super(...).__init__` draws random numbers"
    ]


def test_a_model_from_a_table(run: Callable[..., Any], project: Callable[[dict[str, str]], Path]) -> None:
    program = """
import torch
from models_of_others import *

net = globals()["small"]()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
net(torch.ones(2, 3)).sum().backward()
optimizer.step()
torch.save(net.state_dict(), "net.pt")
"""
    found = json.loads(run("--output-format=json", "--select=DET101", cwd=project({"train.py": program})).out)
    assert [one["message"].partition(",")[0] for one in found] == ["`globals(...)[...]` makes a model"]
