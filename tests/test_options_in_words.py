"""How findings name the options of a program that decide what it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from d9mlint.base.findings import Finding
from d9mlint.config.settings import load_settings
from d9mlint.pipeline import check

OPTIONS = """import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--first", action="store_true")
parser.add_argument("--second", action="store_true")
parser.add_argument("--mode", default="train")
parser.add_argument("--number", type=int)
args = parser.parse_args()
"""


def _found(directory: Path, program: str, rule: str = "DET101") -> list[Finding]:
    (directory / "train.py").write_text(OPTIONS + program)
    overrides = {"cache": False, "jobs": 1, "select": [rule], "device": "cuda"}
    result = check([str(directory)], load_settings(str(directory), overrides=overrides))
    return [one.finding for one in result.items]


def test_one_of_two_options_is_named_once(tmp_path: Path) -> None:
    (found,) = _found(tmp_path, "if args.first or args.second:\n    print(torch.rand(3))\n")
    assert found.message.endswith("when `--first` or `--second` is given")
    assert not [one.message for one in found.flow if "default" in one.message]


def test_the_default_of_one_of_two_options(tmp_path: Path) -> None:
    test = "args.number is not None or args.first"
    program = f"if {test}:\n    torch.manual_seed(args.number)\nprint(torch.rand(3))\n"
    (found,) = _found(tmp_path, program)
    assert found.message.endswith("unless `--number` or `--first` is given")
    assert found.help == "give `--number` or `--first` a default value"


@pytest.mark.parametrize("test", ["args.first", "args.first or args.second", 'args.mode == "test"'])
def test_a_seed_that_is_no_value_of_an_option(tmp_path: Path, test: str) -> None:
    (found,) = _found(tmp_path, f"if {test}:\n    torch.manual_seed(0)\nprint(torch.rand(3))\n")
    assert ", unless `--" in found.message
    assert found.help == "call `torch.manual_seed(seed)` at the start of train.py"


def test_all_of_several_options_are_named(tmp_path: Path) -> None:
    (found,) = _found(
        tmp_path, "if args.first and args.second:\n    torch.manual_seed(0)\nprint(torch.rand(3))\n"
    )
    assert found.message.endswith("unless `--first` and `--second` are given")
    nested = "if args.first:\n    if args.second:\n        torch.manual_seed(0)\nprint(torch.rand(3))\n"
    (found,) = _found(tmp_path, nested)
    assert found.message.endswith("unless `--first` and `--second` are given")


def test_the_other_options_of_a_draw_are_noted(tmp_path: Path) -> None:
    (found,) = _found(tmp_path, 'if args.first and args.mode == "test":\n    print(torch.rand(3))\n')
    assert found.message.endswith("when `--first` is given")
    assert [one.message for one in found.flow] == ["only if `--mode` has another value than its default"]


PADDED = """torch.manual_seed(0)
x = torch.ones(1, 3, 8, 8, requires_grad=True, device="cuda")
pad = torch.nn.ZeroPad2d(1) if {chosen} == "train" else torch.nn.ReflectionPad2d(1)
pad(x).sum().backward()
"""


@pytest.mark.parametrize(
    ("chosen", "begin"),
    [
        ("mode", 'mode = "train"\nif args.number:\n    mode = "test"\n'),
        ('conf["mode"]', 'conf = {"mode": "train"}\nif args.number:\n    conf["mode"] = "test"\n'),
        (
            'conf["mode"]',
            'conf = {"mode": "train"}\nif args.number is not None:\n    conf["mode"] = args.mode\n',
        ),
    ],
)
def test_an_op_that_is_only_made_with_an_option(tmp_path: Path, chosen: str, begin: str) -> None:
    (found,) = _found(tmp_path, begin + PADDED.format(chosen=chosen), "DET401")
    assert "only if `--number` has another value than its default" in [one.message for one in found.flow]


def test_whether_there_is_a_gpu_is_no_option(tmp_path: Path) -> None:
    (found,) = _found(tmp_path, "if not torch.cuda.is_available():\n    print(torch.rand(3))\n")
    assert found.message.endswith("when the test for a GPU gives another result")
    program = "import os\nif not torch.cuda.is_available():\n    print(torch.tensor([len(n) for n in os.listdir()]))\n"
    (found,) = _found(tmp_path, program, "DET209")
    assert [one.message for one in found.flow] == ["only if the test for a GPU gives another result"]


def test_a_chosen_part_of_a_configuration_is_no_value(tmp_path: Path) -> None:
    (tmp_path / "config" / "trainer").mkdir(parents=True)
    (tmp_path / "config" / "train.yaml").write_text("defaults:\n  - trainer: cpu\n  - _self_\n")
    for device in ("cpu", "cuda", "mps"):
        text = f"_target_: lightning.Trainer\naccelerator: {device}\n"
        (tmp_path / "config" / "trainer" / f"{device}.yaml").write_text(text)
    (tmp_path / "train.py").write_text(CHOSEN)
    overrides = {
        "cache": False,
        "jobs": 1,
        "select": ["DET302", "DET401"],
        "device": "cuda",
        "torch-version": "2.8",
    }
    result = check([str(tmp_path)], load_settings(str(tmp_path), overrides=overrides))
    embedding, resized, mode = [one.finding.message for one in result.items]
    assert "on MPS when `trainer=mps` is chosen" in embedding
    assert "on CUDA when `trainer=cuda` is chosen" in resized
    assert mode.endswith("when `trainer=cuda` is chosen")


CHOSEN = """import hydra
import lightning as L
import torch
from torch import nn


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 3)
        self.up = nn.Upsample(scale_factor=3, mode="bilinear")

    def training_step(self, batch, number):
        return self.up(self.embedding(batch)[:, None]).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


@hydra.main(version_base=None, config_path="config", config_name="train.yaml")
def main(cfg):
    L.seed_everything(0, workers=True)
    trainer = hydra.utils.instantiate(cfg.trainer)
    trainer.fit(Net(), torch.utils.data.DataLoader(torch.arange(10).view(5, 2)))


if __name__ == "__main__":
    main()
"""


_RESUMES = """
import pytorch_lightning as pl


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def training_step(self, batch, index):
        return self.layer(batch[0]).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


pl.seed_everything(0)
rows = torch.utils.data.TensorDataset(torch.zeros(10, 3))
trainer = pl.Trainer(resume_from_checkpoint={path}, accelerator="cpu")
trainer.fit(Model(), torch.utils.data.DataLoader(rows, shuffle=True))
"""


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (
            '"a.ckpt" if args.first else None',
            "`Trainer(resume_from_checkpoint=...)`, if `--first` is given, does not",
        ),
        ('"a.ckpt"', "`Trainer(resume_from_checkpoint=...)` does not"),
    ],
)
def test_the_option_is_named_that_lets_training_resume(tmp_path: Path, path: str, said: str) -> None:
    [found] = _found(tmp_path, _RESUMES.format(path=path), "DET602")
    assert found.message.startswith(said)
