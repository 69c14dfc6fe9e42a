"""How severe a missing seed is where a program only tries a model out."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import lint

PROGRAM = (
    "import torch\nfrom torch import nn\n\nif __name__ == '__main__':\n    net = {net}\n"
    "    x = torch.randn(2, 3, 8, 8)\n    out = net(x)\n    print(out.size())\n    {then}\n"
)
MODEL = "nn.Conv2d(3, 5, 3)"


@pytest.mark.parametrize(
    ("net", "then", "severity"),
    [
        (MODEL, "print(out[0, :, 0, 0])", "warning"),
        (MODEL, "print(out.softmax(1).sum())", "warning"),
        ("nn.Sequential(nn.Conv2d(3, 5, 3), nn.ReLU())", "print(out.mean().item())", "warning"),
        (MODEL, "torch.save(out, 'out.pt')", "error"),
        (MODEL, "open('out.txt', 'w').write(str(out.mean().item()))", "error"),
        (MODEL, "net.load_state_dict(torch.load('net.pt')); print(net(x).mean())", "error"),
        (
            MODEL,
            "best = torch.optim.SGD(net.parameters(), lr=0.1); out.sum().backward(); best.step(); print(out.mean())",
            "error",
        ),
        ("torch.abs", "print(out.mean())", "error"),
    ],
)
def test_the_values_of_an_untrained_model_are_no_result(
    tmp_path: Path, net: str, then: str, severity: str
) -> None:
    (tmp_path / "check.py").write_text(PROGRAM.format(net=net, then=then), encoding="utf-8")
    (found,) = [one.finding for one in lint(tmp_path, {}).items if one.finding.code == "DET101"]
    assert found.severity == severity
