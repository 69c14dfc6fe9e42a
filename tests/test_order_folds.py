"""Values that a loop over an arbitrary order folds into one, by functions that commute and by others."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import lint

HEAD = "import cv2\nimport numpy as np\nimport torch\nfrom glob import glob\ns = np.zeros(4)\nt = torch.zeros(4)\n"
LOOP = f"{HEAD}for f in glob('masks/*'):\n    x = np.load(f)\n"
SAME = {
    "maximum": f"{LOOP}    s = np.maximum(s, x)\nnp.save('s.npy', s)\n",
    "logical or": f"{LOOP}    s = np.logical_or(x, s)\nnp.save('s.npy', s)\n",
    "union": f"{LOOP}    s = np.union1d(s, x)\nnp.save('s.npy', s)\n",
    "torch": f"{LOOP}    t = torch.minimum(t, torch.from_numpy(x))\ntorch.save(t, 't.pt')\n",
    "images": f"{LOOP}    s = cv2.bitwise_or(s, x)\ncv2.imwrite('s.png', s)\n",
    "shape of one": f"{HEAD}m = [np.load(f) for f in glob('masks/*')]\nnp.save('s.npy', np.zeros(m[0].shape, m[0].dtype))\n",
}
DIFFERENT = {
    "subtract": f"{LOOP}    s = np.subtract(s, x)\nnp.save('s.npy', s)\n",
    "concatenate": f"{LOOP}    s = np.concatenate([s, x])\nnp.save('s.npy', s)\n",
    "maximum of all together": f"{LOOP}    s = np.maximum(np.concatenate([s, x]), 0)\nnp.save('s.npy', s)\n",
    "maximum of rows": (
        f"{HEAD}m = np.stack([np.load(f) for f in glob('masks/*')])\nnp.save('s.npy', np.maximum(m, 0))\n"
    ),
    "one of them": f"{HEAD}m = [np.load(f) for f in glob('masks/*')]\nnp.save('s.npy', m[0])\n",
}


def found(tmp_path: Path, text: str) -> list[str]:
    (tmp_path / "merge.py").write_text(text, encoding="utf-8")
    return [one.finding.code for one in lint(tmp_path, {}).items]


@pytest.mark.parametrize("case", SAME)
def test_what_commutes_does_not_depend_on_the_order(tmp_path: Path, case: str) -> None:
    assert found(tmp_path, SAME[case]) == []


@pytest.mark.parametrize("case", DIFFERENT)
def test_other_functions_do(tmp_path: Path, case: str) -> None:
    assert found(tmp_path, DIFFERENT[case]) == ["DET209"]
