"""The table of releases is current, and the linter judges programs as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import version_table

from d9mlint.cli.check import check
from d9mlint.config.settings import load_settings
from d9mlint.knowledge.loader import load_compiled

TORCH = {
    "index_add": "torch.index_add(x1, 0, i, x1)",
    "put_, overwrite": "(x1 * 1).put_(i, x1)",
    "put_, accumulate": "(x1 * 1).put_(i, x1, accumulate=True)",
    "scatter, reduce='multiply'": 'x1.scatter(0, i, x1, reduce="multiply")',
    "scatter_add, one dimension": "x1.scatter_add(0, i, x1)",
    "scatter_reduce, sum or mean": 'x1.scatter_reduce(0, i, x1, "sum")',
    "scatter_reduce, prod": 'x1.scatter_reduce(0, i, x1, "prod")',
    "cumsum, one dimension": "torch.cumsum(x1, 0)",
    "cumprod, one dimension": "torch.cumprod(torch.randn(4000, device='cuda', requires_grad=True), 0)",
    "histc": "torch.histc(x1.detach(), 4)",
    "bincount, weights": "torch.bincount(i, x1.detach())",
    "bincount": "torch.bincount(i)",
    "kthvalue": "torch.kthvalue(x1, 1)[0]",
    "median with indices": "torch.median(x, 0)[0]",
    "nn.MaxPool3d, backward": "nn.MaxPool3d(3, 1)(x5)",
    "nn.MaxPool3d(return_indices=True), backward": "nn.MaxPool3d(3, 1, return_indices=True)(x5)[0]",
    "nn.AvgPool3d, backward": "nn.AvgPool3d(3, 2)(x5)",
    "nn.AdaptiveAvgPool2d, backward": "nn.AdaptiveAvgPool2d(3)(x)",
    "nn.MaxUnpool2d": "nn.MaxUnpool2d(2)(x, i)",
    "interpolate linear, backward": 'F.interpolate(x3, scale_factor=2, mode="linear")',
    "interpolate bilinear, backward": 'F.interpolate(x, scale_factor=2, mode="bilinear")',
    "interpolate bicubic, backward": 'F.interpolate(x, scale_factor=2, mode="bicubic")',
    "nn.ReflectionPad1d, backward": "nn.ReflectionPad1d(1)(x3)",
    "nn.ReflectionPad2d, backward": "nn.ReflectionPad2d(1)(x)",
    "nn.ReplicationPad2d, backward": "nn.ReplicationPad2d(1)(x)",
    "grid_sample, backward": "F.grid_sample(x, grid)",
}
TENSORFLOW = {
    "tf.nn.max_pool_with_argmax, backward": 'tf.nn.max_pool_with_argmax(x, 2, 2, "SAME")[0]',
    "tf.nn.ctc_loss, backward": "tf.nn.ctc_loss(i, x, i, i)",
    "tf.nn.depthwise_conv2d, backward": 'tf.nn.depthwise_conv2d(x, x[0, ..., None], [1, 1, 1, 1], "SAME")',
    "tf.image.resize bilinear, backward": 'tf.image.resize(x, [8, 8], method="bilinear")',
    "tf.image.resize nearest, backward": 'tf.image.resize(x, [8, 8], method="nearest")',
    "tf.image.adjust_contrast": "tf.image.adjust_contrast(x, 2.0)",
    "tf.image.crop_and_resize, backward": "tf.image.crop_and_resize(x, b, i, [2, 2])",
    "tf.nn.sparse_softmax_cross_entropy_with_logits": "tf.nn.sparse_softmax_cross_entropy_with_logits(i, v)",
    "tf.math.unsorted_segment_sum": "tf.math.unsorted_segment_sum(v, i, 2)",
    "tf.scatter_nd": "tf.scatter_nd(i, v, [2])",
    "tf.math.bincount": "tf.math.bincount(i, v)",
    "tf.sparse.sparse_dense_matmul": "tf.sparse.sparse_dense_matmul(s, w)",
    "tf.linalg.svd": "tf.linalg.svd(x)[0]",
    "tf.quantization.fake_quant_with_min_max_vars, backward": "tf.quantization.fake_quant_with_min_max_vars(x, 0, 1)",
}
TORCH_PROGRAM = """\
import torch
import torch.nn.functional as F
from torch import nn

if __name__ == "__main__":
    torch.manual_seed(0)
    torch.{switch}(True)
    x1 = torch.randn(4, device="cuda", requires_grad=True)
    x3 = torch.randn(2, 3, 8, device="cuda", requires_grad=True)
    x = torch.randn(2, 3, 8, 8, device="cuda", requires_grad=True)
    x5 = torch.randn(2, 3, 8, 8, 8, device="cuda", requires_grad=True)
    i = torch.zeros(4, dtype=torch.int64, device="cuda")
    grid = torch.zeros(2, 4, 4, 2, device="cuda")
    y = torch.zeros((), device="cuda")
{lines}
    y.backward()
"""
TENSORFLOW_PROGRAM = """\
import os

os.environ["{switch}"] = "1"

import tensorflow as tf


def main(x, b, i, w, s):
    v = tf.Variable(tf.ones([4]))
    y = 0.0
    tape = tf.GradientTape()
    tape.__enter__()
{lines}
    print(tape.gradient(y, v))


if __name__ == "__main__":
    main(tf.Variable(tf.ones([1, 4, 4, 3])), tf.zeros([1, 4]), tf.zeros([4], tf.int32), tf.ones([2, 2, 3]), None)
"""


def judged(directory: Path, text: str, lines: dict[str, str], library: str, version: str) -> dict[str, str]:
    """What the linter says of each line with the determinism switch on: raises, varies or nothing."""
    (directory / "train.py").write_text(text)
    (directory / "pyproject.toml").write_text("")
    given = {
        "min-confidence": "medium",
        "device": "cuda",
        f"{library}-version": version,
        "cache": False,
        "jobs": 1,
    }
    result = check([str(directory)], load_settings(str(directory), overrides=given))
    said: dict[int, str] = {}
    for item in result.items:
        finding = item.finding
        if finding.code in ("DET401", "DET402", "DET403"):
            row = result.sources[finding.path].row_column(finding.start)[0]
            said[row] = "raises" if re.search("raises", finding.message) else "varies"
    rows = text.splitlines()
    return {
        name: said.get(next(n for n, row in enumerate(rows, 1) if row.endswith(f"y + {line}")), "")
        for name, line in lines.items()
    }


def expected(lines: dict[str, str], ops: dict[str, str], version: str) -> dict[str, str]:
    known = {op.id: op for op in load_compiled().ops}
    marks = {name: version_table.behaviour(known[ops[name]], version) for name in lines}
    return {name: mark if mark in ("raises", "varies") else "" for name, mark in marks.items()}


def body(lines: dict[str, str]) -> str:
    return "\n".join(f"    y = y + {line}" for line in lines.values())


def test_the_page_is_current() -> None:
    assert version_table.PAGE.read_text(encoding="utf-8") == version_table.page(load_compiled()), (
        "run python tests/knowledge/version_table.py"
    )
    assert len(version_table.TORCH_OPS) + len(version_table.TENSORFLOW_OPS) >= 60
    assert len(version_table.TORCH_SETTINGS) + len(version_table.TENSORFLOW_SETTINGS) == 30


@pytest.mark.parametrize("version", version_table.TORCH)
def test_the_linter_judges_torch_ops_so(version: str, tmp_path: Path) -> None:
    switch = "set_deterministic" if version == "1.7" else "use_deterministic_algorithms"
    text = TORCH_PROGRAM.format(switch=switch, lines=body(TORCH))
    assert judged(tmp_path, text, TORCH, "torch", version) == expected(
        TORCH, version_table.TORCH_OPS, version
    )


@pytest.mark.parametrize("version", version_table.TENSORFLOW)
def test_the_linter_judges_tensorflow_ops_so(version: str, tmp_path: Path) -> None:
    switch = "TF_CUDNN_DETERMINISTIC" if version in ("1.14", "2.0") else "TF_DETERMINISTIC_OPS"
    text = TENSORFLOW_PROGRAM.format(switch=switch, lines=body(TENSORFLOW))
    assert judged(tmp_path, text, TENSORFLOW, "tensorflow", version) == expected(
        TENSORFLOW, version_table.TENSORFLOW_OPS, version
    )
