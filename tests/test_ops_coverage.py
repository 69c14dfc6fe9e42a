"""Every op that PyTorch or TensorFlow documents as nondeterministic is flagged in a snippet, or it is said
why not. A snippet is one line of a program that trains on a GPU with no determinism switched on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import lint
from test_ops_knowledge import documented

TORCH = {
    "torch.nn.ReplicationPad1d": "nn.ReplicationPad1d(1)(x3)",
    "torch.nn.ReplicationPad2d": "nn.ReplicationPad2d(1)(x)",
    "torch.nn.ReplicationPad3d": "nn.ReplicationPad3d(1)(x5)",
    "torch.Tensor.put_": "(x * 1).put_(i, x.flatten()[:4])",
    "torch.Tensor.scatter_add_": "(x1 * 1).scatter_add_(0, i, x1)",
    "torch.gather": "torch.gather(x1, 0, i)",
    "torch.index_add": "torch.index_add(x1, 0, i, x1)",
    "torch.index_select": "torch.index_select(x1, 0, i)",
    "torch.repeat_interleave": "torch.repeat_interleave(x1, i)",
    "torch.Tensor.index_copy": "x1.index_copy(0, i, x1)",
    "torch.Tensor.index_put": "x1.index_put((i,), x1)",
    "torch.Tensor.scatter": "x1.scatter(0, i, x1)",
    "torch.Tensor.scatter_reduce": 'x1.scatter_reduce(0, i, x1, "sum")',
    "torch.nn.MaxPool3d": "nn.MaxPool3d(3, stride=1)(x5)",
    "torch.nn.AvgPool3d": "nn.AvgPool3d(3, stride=2)(x5)",
    "torch.nn.AdaptiveAvgPool2d": "nn.AdaptiveAvgPool2d(3)(x)",
    "torch.nn.AdaptiveAvgPool3d": "nn.AdaptiveAvgPool3d((2, 2, 2))(x5)",
    "torch.nn.AdaptiveMaxPool2d": "nn.AdaptiveMaxPool2d(3)(x)",
    "torch.nn.FractionalMaxPool2d": "nn.FractionalMaxPool2d(2, output_size=3)(x)",
    "torch.nn.FractionalMaxPool3d": "nn.FractionalMaxPool3d(2, output_size=3)(x5)",
    "torch.nn.MaxUnpool1d": "nn.MaxUnpool1d(2)(x3, i)",
    "torch.nn.MaxUnpool2d": "nn.MaxUnpool2d(2)(x, i)",
    "torch.nn.MaxUnpool3d": "nn.MaxUnpool3d(2)(x5, i)",
    "torch.nn.functional.interpolate": 'F.interpolate(x, scale_factor=2, mode="bilinear")',
    "torch.nn.ReflectionPad2d": "nn.ReflectionPad2d(1)(x)",
    "torch.nn.ReflectionPad3d": "nn.ReflectionPad3d(1)(x5)",
    "torch.nn.NLLLoss": 'nn.NLLLoss()(x, torch.zeros(2, 8, 8, dtype=torch.int64, device="cuda"))',
    "torch.nn.CTCLoss": "nn.CTCLoss()(x3.repeat(256, 1, 1), i, i, i)",
    "torch.nn.EmbeddingBag": 'nn.EmbeddingBag(4, 2, mode="max").cuda()(i.view(2, 2))',
    "torch.bincount": "torch.bincount(i, x1.detach())",
    "torch.median": "torch.median(x, 0)[0]",
    "torch.nn.functional.grid_sample": "F.grid_sample(x, grid)",
    "torch.cumsum": "torch.cumsum(x1, 0)",
}
TORCH_NOT = {
    "torch.histc": "counts are exact in any order; DET402 says that it raises",
    "torch.nn.ReflectionPad1d": "at most two gradients meet, in any order the same; DET402 says that it raises",
    "torch.nn.Conv1d": "told once a program by DET302: one setting is the remedy",
    "torch.nn.Conv2d": "as Conv1d",
    "torch.nn.Conv3d": "as Conv1d",
    "torch.nn.ConvTranspose1d": "as Conv1d",
    "torch.nn.ConvTranspose2d": "as Conv1d",
    "torch.nn.ConvTranspose3d": "as Conv1d",
    "torch.bmm": "only sparse times dense, which the call does not show; DET302 tells of the setting",
    "torch.Tensor.__getitem__": "on the CPU only",
    "torch.Tensor.resize_": "only quantized tensors, which the call does not show",
}
TF = {
    # The RFC "Enabling determinism in TensorFlow" (20210119) and the release notes of 2.8.
    "tf.compat.v1.nn.fused_batch_norm": "tf.compat.v1.nn.fused_batch_norm(x, v, v, is_training=False)[0]",
    "tf.convert_to_tensor": "tf.convert_to_tensor(s)",
    "tf.gather": "tf.gather(v, i)",
    "tf.image.resize": 'tf.image.resize(x, [8, 8], method="nearest")',
    "tf.image.crop_and_resize": "tf.image.crop_and_resize(x, b, i, [2, 2])",
    "tf.image.adjust_contrast": "tf.image.adjust_contrast(x, 2.0)",
    "tf.math.segment_mean": "tf.math.segment_mean(v, i)",
    "tf.math.segment_prod": "tf.math.segment_prod(v, i)",
    "tf.math.segment_sum": "tf.math.segment_sum(v, i)",
    "tf.math.unsorted_segment_mean": "tf.math.unsorted_segment_mean(v, i, 2)",
    "tf.math.unsorted_segment_prod": "tf.math.unsorted_segment_prod(v, i, 2)",
    "tf.math.unsorted_segment_sqrt_n": "tf.math.unsorted_segment_sqrt_n(v, i, 2)",
    "tf.math.unsorted_segment_sum": "tf.math.unsorted_segment_sum(v, i, 2)",
    "tf.nn.ctc_loss": "tf.nn.ctc_loss(i, x, i, i)",
    "tf.nn.depthwise_conv2d": 'tf.nn.depthwise_conv2d(x, x[0, ..., None], [1, 1, 1, 1], "SAME")',
    "tf.nn.dilation2d": 'tf.nn.dilation2d(x, w, [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1])',
    "tf.nn.max_pool_with_argmax": 'tf.nn.max_pool_with_argmax(x, 2, 2, "SAME")[0]',
    "tf.nn.softmax_cross_entropy_with_logits": "tf.nn.softmax_cross_entropy_with_logits(v, v)",
    "tf.nn.sparse_softmax_cross_entropy_with_logits": "tf.nn.sparse_softmax_cross_entropy_with_logits(i, v)",
    "tf.sparse.sparse_dense_matmul": "tf.sparse.sparse_dense_matmul(s, w)",
    "tf.scatter_nd": "tf.scatter_nd(i, v, [2])",
    "tf.tensor_scatter_nd_add": "tf.tensor_scatter_nd_add(v, i, v)",
    "tf.tensor_scatter_nd_update": "tf.tensor_scatter_nd_update(v, i, v)",
    "tf.math.bincount": "tf.math.bincount(i, tf.ones([4]))",
    "tf.linalg.svd": "tf.linalg.svd(tf.ones([4, 1]))[0]",
    "tf.quantization.fake_quant_with_min_max_vars": "tf.quantization.fake_quant_with_min_max_vars(x, 0, 1)",
    "sparse loss of probabilities": "tf.keras.losses.SparseCategoricalCrossentropy()(i, v)",
    "tf.keras.layers.UpSampling2D": "tf.keras.layers.UpSampling2D()(x)",
    "tf.keras.layers.DepthwiseConv2D": "tf.keras.layers.DepthwiseConv2D(2)(x)",
}
TORCH_SAFE = {
    "global average": "nn.AdaptiveAvgPool2d(1)(x)",
    "global average of both sides": "F.adaptive_avg_pool2d(x, (1, 1))",
    "nearest": "F.interpolate(x, scale_factor=2)",
    "nearest by position": 'F.interpolate(x, None, 2, "nearest")',
    "nearest module": "nn.Upsample(scale_factor=2)(x)",
    "area to one": 'F.interpolate(x, size=1, mode="area")',
    "one-hot": "x1.scatter(0, i, 1.0)",
    "one-hot by name": "torch.scatter(x1, 0, i, value=1)",
    "repeats is a number": "torch.repeat_interleave(x1, 3, dim=0)",
    "median without indices": "torch.median(x)",
    "counts": "torch.bincount(i)",
    "sum of bags": 'nn.EmbeddingBag(4, 2, mode="sum").cuda()(i.view(2, 2))',
    "zero padding": "F.pad(x, (1, 1))",
    "integer sums": "torch.cumsum(i, 0, dtype=torch.int64)",
    "maximum by index": 'x1.scatter_reduce(0, i, x1, "amax")',
    "unreduced loss": 'F.cross_entropy(x, i, reduction="none")',
    "2-D pooling": "F.max_pool2d(x, 2)",
}
TF_SAFE = {
    "counts": "tf.math.bincount(i)",
    "bicubic": 'tf.image.resize(x, [8, 8], method="bicubic")',
    "maximum of segments": "tf.math.unsorted_segment_max(v, i, 2)",
    "sum": "tf.reduce_sum(x)",
    "loss of probabilities": "tf.keras.losses.CategoricalCrossentropy()(tf.one_hot(i, 4), v)",
    "training": "tf.compat.v1.nn.fused_batch_norm(x, v, v)[0]",
}
CODES = {"DET401", "DET403", "DET404"}


def flagged(directory: Path, head: str, lines: dict[str, str], tail: str, **settings: str) -> set[str]:
    """The names whose line has a finding about the op."""
    body = "".join(f"    y = y + {line}.sum()\n" for line in lines.values())
    if "tf" in settings:
        body = body.replace(".sum()\n", "\n")
    text = head + body + tail
    (directory / "train.py").write_text(text)
    (directory / "pyproject.toml").write_text("")
    chosen = {"min-confidence": "low", "device": "cuda"}
    chosen.update({key: value for key, value in settings.items() if key != "tf"})
    result = lint(directory, chosen)
    rows = {
        result.sources[item.finding.path].row_column(item.finding.start)[0]
        for item in result.items
        if item.finding.code in CODES
    }
    first = head.count("\n") + 1
    return {name for number, name in enumerate(lines) if first + number in rows}


TORCH_HEAD = (
    "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
    "def main():\n    torch.manual_seed(0)\n"
    '    x1 = torch.randn(4, device="cuda", requires_grad=True)\n'
    '    x3 = torch.randn(2, 3, 8, device="cuda", requires_grad=True)\n'
    '    x = torch.randn(2, 3, 8, 8, device="cuda", requires_grad=True)\n'
    '    x5 = torch.randn(2, 3, 8, 8, 8, device="cuda", requires_grad=True)\n'
    '    i = torch.zeros(4, dtype=torch.int64, device="cuda")\n'
    '    grid = torch.zeros(2, 4, 4, 2, device="cuda")\n'
    '    y = torch.zeros((), device="cuda")\n'
)
TORCH_TAIL = '    y.backward()\n\n\nif __name__ == "__main__":\n    main()\n'
TF_HEAD = (
    "import tensorflow as tf\n\n\n"
    "def main(x, b, i, w, s):\n    tf.random.set_seed(0)\n"
    "    v = tf.Variable(tf.ones([4]))\n"
    "    y = 0.0\n"
    "    tape = tf.GradientTape()\n    tape.__enter__()\n"
)
TF_TAIL = (
    '    print(tape.gradient(y, v))\n\n\nif __name__ == "__main__":\n'
    "    w = tf.ones([2, 2, 3])\n"
    "    main(tf.Variable(tf.ones([1, 4, 4, 3])), tf.zeros([1, 4]), tf.zeros([4], tf.int32), w, None)\n"
)


def test_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    names = {name for name, _ in documented()}
    assert sorted(names - set(TORCH) - set(TORCH_NOT)) == []
    version = re.match(r"[\d.]+", torch.__version__)
    assert version is not None
    found = flagged(tmp_path, TORCH_HEAD, TORCH, TORCH_TAIL, **{"torch-version": version.group()})
    assert sorted(set(TORCH) - found) == []


def test_tensorflow(tmp_path: Path) -> None:
    # Beside the finding that asks for op determinism, ops that it makes deterministic are advice.
    chosen = {"tensorflow-version": "2.15", "min-severity": "advice"}
    found = flagged(tmp_path, TF_HEAD, TF, TF_TAIL, tf="", **chosen)
    assert sorted(set(TF) - found) == []


def test_harmless_forms_are_silent(tmp_path: Path) -> None:
    for name in ("torch", "tf"):
        (tmp_path / name).mkdir()
    version = {"torch-version": "2.13"}
    assert flagged(tmp_path / "torch", TORCH_HEAD, TORCH_SAFE, TORCH_TAIL, **version) == set()
    version = {"tensorflow-version": "2.15"}
    assert flagged(tmp_path / "tf", TF_HEAD, TF_SAFE, TF_TAIL, tf="", **version) == set()
