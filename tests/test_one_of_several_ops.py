"""One name that stands for several ops is reported once at a place."""

from __future__ import annotations

from pathlib import Path

from support import lint

PROGRAM = """\
import torch.nn as nn
from torch_geometric.nn import global_add_pool, global_mean_pool


class Net(nn.Module):
    def __init__(self, readout):
        super().__init__()
        self.pool = global_add_pool if readout == "sum" else global_mean_pool

    def forward(self, x, batch):
        return self.pool(x, batch)
"""


def test_reported_once(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(PROGRAM)
    found = [one.finding for one in lint(tmp_path, {"device": "cuda"}).items]
    assert [(one.code, PROGRAM[one.start : one.end]) for one in found] == [("DET407", "self.pool(x, batch)")]
