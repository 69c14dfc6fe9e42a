"""What transforms of torchvision give requires grad where what they are given does: they have no weights."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import lint

HEAD = (
    "import torch\nimport torch.nn.functional as F\nimport torchvision.transforms as T\nfrom PIL import Image\n"
    "torch.manual_seed(0)\nmodel = torch.nn.Linear(8, 1).cuda()\nnormalize = T.Normalize((0.5,), (0.5,))\n"
    "convert = T.Compose([T.Resize(8), T.ToTensor(), normalize])\n"
)
STEP = "model(F.pad(x, (2, 2, 2, 2), 'reflect')).sum().backward()\n"
DATA = {
    "tensors that are read": "x = normalize(torch.load('x.pt', map_location='cuda')['images'] / 255)\n",
    "images": "x = convert(Image.open('x.png')).unsqueeze(0).cuda()\n",
    "flipped": "x = T.RandomHorizontalFlip()(torch.zeros(1, 3, 8, 8, device='cuda'))\n",
}
RESULTS = {
    "of a model": "x = normalize(model(torch.zeros(1, 3, 8, 8, device='cuda')))\n",
    "a leaf": "x = normalize(torch.zeros(1, 3, 8, 8, device='cuda', requires_grad=True))\n",
}


def found(tmp_path: Path, text: str) -> list[str]:
    (tmp_path / "train.py").write_text(HEAD + text + STEP, encoding="utf-8")
    return [one.finding.code for one in lint(tmp_path, {}).items if one.finding.code == "DET401"]


@pytest.mark.parametrize("case", DATA)
def test_transformed_data_has_no_gradient(tmp_path: Path, case: str) -> None:
    assert found(tmp_path, DATA[case]) == []


@pytest.mark.parametrize("case", RESULTS)
def test_transformed_results_have_one(tmp_path: Path, case: str) -> None:
    assert found(tmp_path, RESULTS[case]) == ["DET401"]
