"""What a user's call is decides what is run: shapes, options and constructor arguments, in many spellings."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from d9mlint.base.findings import Finding
from d9mlint.config.settings import load_settings
from d9mlint.pipeline import check as lint
from d9mlint.verify import plan
from d9mlint.verify.recipes import Recipe, load_recipes

RECIPES = load_recipes()
RECIPE = {recipe.id: recipe for recipe in RECIPES}
RUN = """
import json, sys
from d9mlint.verify.measure import backend

framework = backend(sys.argv[1], "cpu")
for recipe in json.load(sys.stdin):
    try:
        program = framework.program(recipe, recipe["dtypes"][0], 1.0, 0)
        outputs = program.run()[1]
        row = {"sizes": program.sizes, "outputs": {name: array.shape for name, array in outputs.items()}}
    except Exception as error:
        row = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(row), flush=True)
"""


def needs(library: str) -> pytest.MarkDecorator:
    missing = importlib.util.find_spec(library) is None
    return pytest.mark.skipif(missing, reason=f"{library} is not installed")


def run(library: str, recipes: list[Recipe]) -> list[dict[str, Any]]:
    """What comes of recipes when they are run once."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, library],
        input=msgspec.json.encode(recipes).decode(),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


class Case(NamedTuple):
    """A line of a program, which recipe is run for it, with inputs of which sizes and which outputs; ``whole``: whether it
    is the call itself."""

    line: str
    recipe: str
    sizes: dict[str, list[int]]
    outputs: list[int]
    whole: bool = True


TORCH = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import scatter as put_there
from torch.nn import Upsample as Bigger
from torch.nn.functional import interpolate

torch.manual_seed(0)


class Pool(nn.AdaptiveMaxPool2d):
    def __init__(self, size):
        super().__init__(size, return_indices=False)


class Net(nn.Module):
    def __init__(self, width, layers=2):
        super().__init__()
        self.rnn = nn.LSTM(width, hidden_size=6, num_layers=layers, bidirectional=True, batch_first=True)
        self.parts = nn.ModuleList([nn.AvgPool3d(3, stride=(1, 2, 2), padding=1), nn.ReflectionPad3d(2)])

    def forward(self, x, v):
        y, _ = self.rnn(x)
        for part in self.parts:
            v = part(v)
        return y.sum() + v.sum()


x = torch.randn(2, 3, 16, 12, requires_grad=True).cuda()
v = torch.randn(1, 2, 9, 8, 7, requires_grad=True).cuda()
flat = torch.zeros(40, 5).cuda()
rows = torch.randint(0, 40, (300,), device="cuda")
many = torch.randint(0, 40, (300, 5), device="cuda")
net = Net(4).cuda()
Pool(3)(x).sum().backward()
net(torch.randn(3, 7, 4).cuda(), v).backward()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
optimizer.step()
"""
TORCH_CASES = [
    Case(
        "nn.AdaptiveMaxPool2d((5, None))(x).sum().backward()",
        "adaptive_max_pool2d_backward",
        {"x": [2, 3, 16, 12]},
        [2, 3, 5, 12],
    ),
    Case(
        "F.fractional_max_pool2d(x, kernel_size=2, output_size=(5, 4)).sum().backward()",
        "fractional_max_pool2d_backward",
        {"x": [2, 3, 16, 12]},
        [2, 3, 5, 4],
    ),
    Case(
        "interpolate(x, [9, 9], mode='bilinear', align_corners=True).sum().backward()",
        "interpolate_bilinear_backward",
        {"x": [2, 3, 16, 12]},
        [2, 3, 9, 9],
    ),
    Case(
        "Bigger(None, 1.5, 'bicubic')(x).sum().backward()",
        "interpolate_bicubic_backward",
        {"x": [2, 3, 16, 12]},
        [2, 3, 24, 18],
    ),
    Case(
        "nn.UpsamplingBilinear2d(scale_factor=2)(x).sum().backward()",
        "interpolate_bilinear_backward",
        {"x": [2, 3, 16, 12]},
        [2, 3, 32, 24],
    ),
    Case(
        "F.interpolate(torch.randn(1, 2, 9, 8, 7, requires_grad=True).cuda(), scale_factor=(2, 1, 3), mode='trilinear')"
        ".sum().backward()",
        "interpolate_trilinear_backward",
        {"x": [1, 2, 9, 8, 7]},
        [1, 2, 18, 8, 21],
    ),
    Case(
        "F.grid_sample(x, torch.zeros(2, 4, 6, 2).cuda(), padding_mode='border').sum().backward()",
        "grid_sample_2d_backward",
        {"x": [2, 3, 16, 12], "grid": [2, 4, 6, 2]},
        [2, 3, 4, 6],
    ),
    Case(
        "F.max_pool3d(torch.randn(1, 2, 9, 8, 7, requires_grad=True).cuda(), (2, 3, 2), stride=2).sum().backward()",
        "max_pool3d_backward",
        {"x": [1, 2, 9, 8, 7]},
        [1, 2, 4, 3, 3],
    ),
    Case(
        "F.max_unpool2d(x, torch.randint(0, 768, (2, 3, 16, 12), device='cuda'), 2)",
        "max_unpool2d",
        {"o": [2, 3, 16, 12], "ix": [2, 3, 16, 12]},
        [2, 3, 32, 24],
    ),
    Case(
        "flat.index_add_(1, torch.randint(0, 5, (9,), device='cuda'), torch.randn(40, 9).cuda(), alpha=2)",
        "index_add",
        {"x": [40, 5], "i": [9], "s": [40, 9]},
        [40, 5],
    ),
    Case(
        "put_there(flat, 0, many, torch.randn(300, 5).cuda())",
        "scatter_duplicates",
        {"x": [40, 5], "i": [300, 5], "s": [300, 5]},
        [40, 5],
    ),
    Case(
        "flat.scatter_add_(dim=0, index=many, src=torch.randn(300, 5).cuda())",
        "scatter_add_2d",
        {"x": [40, 5], "i": [300, 5], "s": [300, 5]},
        [40, 5],
    ),
    Case("torch.histc(input=torch.randn(900).cuda(), bins=7, min=-2, max=2)", "histc", {"x": [900]}, [7]),
    Case("torch.randn(900).cuda().histc(7)", "histc", {"x": [900]}, [7]),
    Case(
        "F.cross_entropy(x, torch.randint(0, 3, (2, 16, 12), device='cuda'), ignore_index=2, reduction='sum')",
        "cross_entropy_2d_forward",
        {"x": [2, 3, 16, 12], "y": [2, 16, 12]},
        [],
    ),
    Case(
        "F.ctc_loss(torch.randn(300, 2, 20, requires_grad=True).cuda(),"
        " torch.randint(1, 20, (2, 30), device='cuda'), (300, 250), (30, 25), zero_infinity=True).backward()",
        "ctc_loss_native_backward",
        {"x": [300, 2, 20], "y": [2, 30], "il": [2], "tl": [2]},
        [],
    ),
    Case(
        "nn.EmbeddingBag(30, embedding_dim=4, mode='max').cuda()(torch.randint(0, 30, (8, 6), device='cuda')).sum().backward()",
        "embedding_bag_max_backward",
        {"w": [30, 4], "i": [8, 6]},
        [8, 4],
        False,
    ),
    Case(
        "F.embedding_bag(torch.randint(0, 30, (8, 6), device='cuda'), torch.randn(30, 4, requires_grad=True).cuda(),"
        " mode='max').sum().backward()",
        "embedding_bag_max_backward",
        {"w": [30, 4], "i": [8, 6]},
        [8, 4],
    ),
    Case("torch.cumsum(torch.randn(5000).cuda(), dim=-1)", "cumsum_float", {"x": [5000]}, [5000]),
    Case(
        "torch.median(torch.randn(30, 8).cuda(), 1, keepdim=True)",
        "median_indices_ties",
        {"x": [30, 8]},
        [30, 1],
    ),
]
TENSORFLOW = """\
import tensorflow as tf
from tensorflow import math as m
from tensorflow.keras import layers

tf.keras.utils.set_random_seed(0)
x = tf.random.normal([30, 8])
ids = tf.random.uniform([30], maxval=5, dtype=tf.int32)
image = tf.Variable(tf.ones([2, 12, 10, 3]))
weight = tf.Variable(tf.zeros([20, 4]))
logits = tf.Variable(tf.zeros([6, 11]))
with tf.GradientTape() as tape:
    tape.watch([image, weight, logits])
    total = 0.0
"""
TENSORFLOW_CASES = [
    Case(
        "m.unsorted_segment_sum(x, ids, num_segments=5)",
        "tf_unsorted_segment_sum",
        {"x": [30, 8], "i": [30]},
        [5, 8],
    ),
    Case(
        "tf.math.segment_prod(data=x, segment_ids=tf.constant([0] * 30))",
        "tf_segment_prod",
        {"x": [30, 8]},
        [],
        False,
    ),
    Case("tf.gather(weight, [3, 3, 7], axis=0)", "tf_gather", {"x": [20, 4], "i": [3]}, [3, 4]),
    Case("tf.gather(weight, tf.constant([3, 3, 7]))", "tf_gather", {"x": [20, 4], "i": [3]}, [3, 4]),
    Case("tf.nn.embedding_lookup(params=weight, ids=ids)", "tf_embedding_lookup", {"i": [30]}, [30, 4]),
    Case(
        "tf.scatter_nd(tf.random.uniform([30, 1], maxval=9, dtype=tf.int32), x, [9, 8])",
        "tf_scatter_nd",
        {"s": [30, 8], "i": [30, 1]},
        [9, 8],
    ),
    Case(
        "tf.tensor_scatter_nd_add(tf.zeros([5, 8]), tf.reshape(ids, [30, 1]), updates=x)",
        "tf_tensor_scatter_nd_add",
        {"x": [5, 8], "s": [30, 8]},
        [5, 8],
        False,
    ),
    Case(
        "tf.math.bincount(ids, weights=tf.ones([30]), minlength=5)",
        "tf_bincount",
        {"i": [30], "w": [30]},
        [5],
    ),
    Case(
        "tf.image.resize(image, (24, 15), method='bilinear')",
        "tf_resize_bilinear",
        {"x": [2, 12, 10, 3]},
        [2, 24, 15, 3],
    ),
    Case(
        "tf.image.adjust_contrast(tf.ones([2, 12, 10, 3]), 0.5)",
        "tf_adjust_contrast",
        {"x": [2, 12, 10, 3]},
        [2, 12, 10, 3],
    ),
    Case(
        "tf.nn.depthwise_conv2d(image, tf.ones([3, 3, 3, 2]), [1, 2, 2, 1], 'SAME')",
        "tf_depthwise_conv2d",
        {"x": [2, 12, 10, 3], "w": [3, 3, 3, 2]},
        [2, 6, 5, 6],
    ),
    Case(
        "layers.DepthwiseConv2D(kernel_size=3, strides=2, depth_multiplier=2)(image)",
        "tf_depthwise_conv2d_layer",
        {"x": [2, 12, 10, 3]},
        [2, 5, 4, 6],
    ),
    Case(
        "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.constant([1, 2, 3, 4, 5, 6]), logits=logits)",
        "tf_sparse_softmax_xent",
        {"x": [6, 11], "y": [6]},
        [6],
    ),
    Case(
        "tf.nn.softmax_cross_entropy_with_logits(tf.ones([6, 11]), logits)",
        "tf_softmax_xent",
        {"x": [6, 11], "y": [6, 11]},
        [6],
    ),
    Case(
        "tf.image.crop_and_resize(image, tf.ones([4, 4]), tf.zeros([4], tf.int32), crop_size=[5, 6])",
        "tf_crop_and_resize",
        {"x": [2, 12, 10, 3], "b": [4, 4], "k": [4]},
        [4, 5, 6, 3],
        False,
    ),
    Case(
        "tf.linalg.svd(tf.ones([3, 9, 1]), compute_uv=False)", "tf_svd_one_column", {"x": [3, 9, 1]}, [3, 1]
    ),
]


def made_for(tmp_path: Path, text: str, cases: list[Case], indent: str) -> list[Recipe]:
    """The first recipe that is run for each line."""
    start = text.count("\n") + 1
    lines = [f"{indent}total = {case.line}" if indent else case.line for case in cases]
    (tmp_path / "train.py").write_text(
        "\n".join([text.rstrip("\n"), *lines, "tape.gradient(total, logits)" if indent else ""])
    )
    source = (tmp_path / "train.py").read_text()
    settings = load_settings(str(tmp_path), overrides={"cache": False, "min-confidence": "low"})
    found: dict[int, list[Finding]] = {}
    for item in lint([str(tmp_path)], settings).items:
        if item.finding.op:
            found.setdefault(source.count("\n", 0, item.finding.start) + 1, []).append(item.finding)
    made = []
    for number, case in enumerate(cases):
        chosen = [r for one in found.get(start + number, []) for r in plan.for_findings([one], RECIPES)]
        own = [r for r in chosen if r.id.startswith(f"{case.recipe} [")]
        assert own, f"{case.line}: {[r.id for r in chosen]}"
        made.append(own[0])
    return made


def compare(cases: list[Case], recipes: list[Recipe], rows: list[dict[str, Any]]) -> None:
    for case, recipe, row in zip(cases, recipes, rows, strict=True):
        assert "error" not in row, f"{case.line}: {row['error']}"
        assert {name: row["sizes"].get(name) for name in case.sizes} == case.sizes, case.line
        assert not case.outputs or case.outputs == row["outputs"]["out0"], case.line
        assert recipe.given.whole is case.whole, f"{case.line}: {recipe.given}"


@needs("torch")
def test_the_call_of_a_torch_program_is_what_is_run(tmp_path: Path) -> None:
    recipes = made_for(tmp_path, TORCH, TORCH_CASES, "")
    compare(TORCH_CASES, recipes, run("torch", recipes))


@needs("tensorflow")
def test_the_call_of_a_tensorflow_program_is_what_is_run(tmp_path: Path) -> None:
    recipes = made_for(tmp_path, TENSORFLOW, TENSORFLOW_CASES, "    ")
    compare(TENSORFLOW_CASES, recipes, run("tensorflow", recipes))
